// Streamlit changes its theme without a rerun. It calls this again, though: when the background is no longer the
// one that the page was drawn for, ask for a rerun. It also says which language the page is in: fonts choose the
// shapes of Chinese characters by it, and screen readers the voice.
export default function ({ parentElement, data, setTriggerValue }) {
  document.documentElement.lang = data.language;
  const root = parentElement.host ?? parentElement;
  const background = getComputedStyle(root).getPropertyValue("--st-background-color").trim().toUpperCase();
  if (background && background !== data.drawnFor) setTriggerValue("changed", background);
}
