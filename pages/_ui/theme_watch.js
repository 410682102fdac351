// Streamlit changes its theme without a rerun. It calls this again, though: when the background is no longer the
// one that the page was drawn for, ask for a rerun.
export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.host ?? parentElement;
  const background = getComputedStyle(root).getPropertyValue("--st-background-color").trim().toUpperCase();
  if (background && background !== data.drawnFor) setTriggerValue("changed", background);
}
