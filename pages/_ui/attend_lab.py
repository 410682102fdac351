"""The experiments of the page "attend": each on the head and the query that are looked at above."""

from __future__ import annotations

from typing import Any

import streamlit as st

from mha_core.figures.attend_lines import attend_lines
from mha_core.figures.attend_plane import attend_plane, plane_of
from mha_core.figures.attend_sums import SumPanel, attend_sums
from mha_core.figures.labels import escape, fit, plain_labels
from mha_core.figures.pick import Pick
from mha_core.hull import inside_hull
from mha_core.leak import leak
from mha_core.masks import causal
from mha_core.mistakes import mask_zero_after, mask_zero_before, softmax_over_queries
from mha_core.variants import again, by_divisor, most_hidden, open_keys
from pages._ui import layout, state
from pages._ui.attending import WORDLESS, View
from pages._ui.predict import predict
from pages._ui.settings import ATTEND_LABS
from pages._ui.text import code

__all__ = ["draw"]

MOST_CLICKED = 40
"""Tokens a side of a mask that one makes by clicking."""


def draw(f: Any, seen: View) -> None:
    """The list of experiments, and the chosen one.

    Args:
        f: the page's frame.
    """
    t = f.t
    st.markdown(f"#### {t('attend.lab')}")
    lab = f.settings.lab if f.settings.lab in ATTEND_LABS else ATTEND_LABS[0]
    st.segmented_control(
        t("attend.lab"), ATTEND_LABS, format_func=lambda key: t(f"attend.lab_{key}"), label_visibility="collapsed",
        **f.control("lab", lab),
    )  # fmt: skip
    _LABS[lab](f, seen)


def _divide(f: Any, seen: View) -> None:
    t, d_k = f.t, seen.trace.sizes["d_k"]
    rows = by_divisor(seen.trace, seen.head, seen.query)
    right, bare = rows["sqrt"].largest, rows["one"].largest
    outcome = "same" if abs(bare - right) < 5e-4 else "larger" if bare > right else "smaller"
    query = code(plain_labels(seen.tokens)[seen.query])
    truth = t(f"attend.divide_truth_{outcome}", right=f"{right:.3f}", bare=f"{bare:.3f}", d_k=d_k)
    if not predict(t, "attend.guess_divide", ("smaller", "same", "larger"), truth, query=query, right=f"{right:.3f}"):
        return
    names = {"sqrt": f"√d_k = {d_k**0.5:.3g}", "one": "1", "d_k": f"d_k = {d_k}"}
    table = {
        t("attend.divide_lead"): [f"{row.ahead:.2f}" for row in rows.values()],
        t("attend.divide_largest"): [f"{row.largest:.3f}" for row in rows.values()],
        t("metric.entropy"): [f"{row.entropy:.2f}" for row in rows.values()],
    }
    import pandas as pd  # only where there is a table

    st.table(pd.DataFrame(table, index=pd.Index([names[name] for name in rows], name=t("attend.divide"))))


def _values(f: Any, seen: View) -> None:
    t, names = f.t, plain_labels(seen.tokens)
    picture = attend_plane(
        seen.trace, seen.tokens, head=seen.head, query=seen.query, context_tokens=seen.context,
        words=t.group("attend.plane"), theme=f.theme,
    )  # fmt: skip
    f.draw(picture, key="attend_plane", alt=t("attend.values_alt", head=seen.head + 1))
    plane, query = plane_of(seen.trace, seen.head, seen.query), code(names[seen.query])
    if not open_keys(seen.trace, seen.head, seen.query):
        st.markdown(t("attend.values_empty", query=query))
    elif inside_hull(plane.values, plane.outputs):
        share = f"{plane.share:.0%}"
        st.markdown(
            t("attend.values_notice" if plane.share < 0.995 else "attend.values_true", query=query, share=share)
        )


def _lines(f: Any, seen: View) -> None:
    t = f.t
    picture = attend_lines(
        seen.trace, seen.tokens, head=seen.head, query=seen.query, context_tokens=seen.context,
        words=t.group("attend.lines"), theme=f.theme,
    )  # fmt: skip
    f.draw(picture, key="attend_lines", alt=t("attend.lines_alt", head=seen.head + 1))
    st.markdown(t("attend.lines_notice"))


def _masking(f: Any, seen: View) -> None:
    t, trace = f.t, seen.trace
    if trace.cross:
        st.markdown(t("attend.not_cross"))
        return
    if trace.mask is None:
        trace = again(trace, mask=causal(trace.sizes["n_q"]))
        st.caption(t("attend.masking_causal"))
    query = most_hidden(trace, seen.head, seen.query)
    if query is None:
        st.markdown(t("attend.masking_none"))
        return
    before, after = mask_zero_before(trace), mask_zero_after(trace)
    leaked = before.evidence["leak"][1].sel(batch=0, head=seen.head, query=query).value.item()
    kept = after.evidence["row_sums"][1].sel(batch=0, head=seen.head, query=query).value.item()
    name = code(plain_labels(seen.tokens)[query])
    outcome = "none" if leaked < 5e-3 else "some" if leaked < 0.5 else "most"
    truth = t(f"attend.mask_truth_{outcome}", query=name, leaked=f"{leaked:.1%}", kept=f"{kept:.1%}")
    if not predict(t, "attend.guess_mask", ("none", "some", "most"), truth, query=name):
        return
    reach = leak(trace)
    forbidden = trace["masked_scores"].sel(batch=0, head=seen.head).numpy() == float("-inf")
    maps = (("minus_infinity", before.right), ("zero_before", before.wrong), ("zero_after", after.wrong))
    panels = [
        SumPanel(
            t(f"attend.mode_{mode}"),
            t("attend.mode_leak", change=_size(reach.of_hidden(mode))) if bool(reach.hidden.any()) else "",
            step.sel(batch=0, head=seen.head).numpy(),
            forbidden & (step.sel(batch=0, head=seen.head).numpy() == 0),
            forbidden & (step.sel(batch=0, head=seen.head).numpy() > 0.005),
        )
        for mode, step in maps
    ]
    picture = attend_sums(panels, seen.tokens, query=seen.query, words=t.group("attend.sums"), theme=f.theme)
    f.draw(picture, key="attend_masking", alt=t("attend.masking_alt"))
    st.markdown(t("attend.masking_notice" if bool(reach.hidden.any()) else "attend.masking_notice_short"))


def _size(change: float) -> str:
    """A change: 0 only where it is exactly 0.

    >>> [_size(change) for change in (0.0, 3e-7, 0.0042, 0.341)]
    ['0', '&lt; .0001', '0.0042', '0.34']
    """
    if 0 < change < 5e-5:
        return "&lt; .0001"
    return f"{change:.2f}" if change >= 0.01 else f"{change:.4f}" if change else "0"


def _axis(f: Any, seen: View) -> None:
    t, both = f.t, softmax_over_queries(seen.trace)
    forbidden = seen.trace["masked_scores"].sel(batch=0, head=seen.head).numpy() == float("-inf")
    panels = [
        SumPanel(t(f"attend.axis_{name}"), "", step.sel(batch=0, head=seen.head).numpy(), forbidden, columns=True)
        for name, step in (("right", both.right), ("wrong", both.wrong))
    ]
    picture = attend_sums(
        panels, seen.tokens, context_tokens=seen.context, query=seen.query, words=t.group("attend.sums"), theme=f.theme
    )
    f.draw(picture, key="attend_axis", alt=t("attend.axis_alt"))
    sums = both.evidence["row_sums"][1].sel(batch=0, head=seen.head).numpy()
    low, high = f"{sums.min():.2f}", f"{sums.max():.2f}"
    query = code(plain_labels(seen.tokens)[seen.query])
    st.markdown(t("attend.axis_notice", low=low, high=high, query=query, sum=f"{sums[seen.query]:.2f}"))


def _own(f: Any, seen: View) -> None:
    t, trace = f.t, seen.trace
    if trace.cross:
        st.markdown(t("attend.not_cross"))
        return
    if trace.sizes["n_q"] > MOST_CLICKED:
        st.markdown(t("attend.own_large", most=MOST_CLICKED))
        if f.settings.flipped:
            st.button(t("attend.own_clear"), on_click=state.unflip, key="attend_clear")
        return
    open_now = open_keys(trace, seen.head, seen.query)
    names = plain_labels(seen.tokens)
    query, key = code(names[seen.query]), code(names[seen.key])
    with st.container(horizontal=True, vertical_alignment="center"):
        label = t("attend.own_forbid" if seen.key in open_now else "attend.own_allow", query=query, key=key)
        st.button(label, on_click=state.flip, args=([(seen.query, seen.key)],), key="attend_flip")
        row = [(seen.query, k) for k in open_now]
        st.button(
            t("attend.own_row", query=query), on_click=state.flip, args=(row,), disabled=not row, key="attend_row"
        )
        st.button(t("attend.own_clear"), on_click=state.unflip, disabled=not f.settings.flipped, key="attend_clear")
    weights = trace["weights"].sel(batch=0, head=seen.head).numpy()
    forbidden = trace["masked_scores"].sel(batch=0, head=seen.head).numpy() == float("-inf")
    head = escape(fit(t("attend.own_title", head=seen.head + 1), 400, 17))
    panel = SumPanel(head, "", weights, forbidden, pick=Pick("query", "key"))
    picture = attend_sums([panel], seen.tokens, query=seen.query, words=t.group("attend.sums"), theme=f.theme)
    f.draw(picture, key="attend_own", alt=t("attend.own_alt"), on_pick=state.flipped)
    empty = [code(names[row]) for row in range(len(names)) if forbidden[row].all()]
    notice = t("attend.own_notice")
    st.markdown(t.sentences(notice, t("attend.own_empty", rows=t("list").join(empty))) if empty else notice)


def _cross(f: Any, seen: View) -> None:
    t = f.t
    if f.settings.input in WORDLESS:
        st.markdown(t("attend.cross_wordless"))
        return
    st.text_input(t("attend.cross_context"), max_chars=200, placeholder=t("attend.cross_hint"), **f.control("context"))
    if seen.problem is not None:
        layout.error(t, seen.problem)
    elif seen.trace.cross:
        sizes = seen.trace.sizes
        st.markdown(t("attend.cross_notice", n_q=sizes["n_q"], n_k=sizes["n_k"]))
    else:
        st.markdown(t("attend.cross_empty"))


_LABS = {
    "divide": _divide,
    "values": _values,
    "lines": _lines,
    "masking": _masking,
    "axis": _axis,
    "own": _own,
    "cross": _cross,
}
