"""The experiments of the page "project": each asks first, then computes and shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from mha_core import what_if
from mha_core.figures.labels import escape, plain_labels
from mha_core.figures.project_lab import Panel, moved_heads, panels, token_sources
from mha_core.figures.strip import decimal_text, small_text
from mha_core.projection import bias_moves, ledger
from mha_core.splits import view_without_transpose
from mha_core.trace import AttentionTrace
from pages._ui.calculation import Calculation
from pages._ui.frame import Frame
from pages._ui.predict import predict
from pages._ui.settings import FACTORS, LABS, divisors
from pages._ui.text import code

__all__ = ["draw"]

MOST_NAMED = 6


def draw(f: Frame, calculation: Calculation) -> None:
    """The list of experiments, and the chosen one.

    Args:
        f: the page's frame.
    """
    t, choices = f.t, LABS[1:]
    st.markdown(f"#### {t('project.lab')}")
    lab = f.settings.lab if f.settings.lab in choices else choices[0]
    st.segmented_control(
        t("project.lab"), choices, format_func=lambda key: t(f"project.lab_{key}"), label_visibility="collapsed",
        **f.control("lab", lab),
    )  # fmt: skip
    if lab in ("nudge", "split") and f.settings.h == 1:
        st.markdown(t("project.needs_heads"))
    else:
        _LABS[lab](f, calculation)


def _ledger(f: Frame, calculation: Calculation) -> None:
    t, sizes = f.t, calculation.trace.sizes
    d_model, h = sizes["d_model"], sizes["h"]
    rows = [ledger(d_model, each, sizes["n_q"]) for each in divisors(d_model)]
    now = next(row for row in rows if row.h == h)
    truth = t("project.ledger_truth", total=f"{now.total:,}", d_model=d_model, first=rows[0].h, last=rows[-1].h)
    if len(rows) == 1:
        st.markdown(t("overview.only_one", d_model=d_model))
        return
    if not predict(t, "project.ledger", ("fewer", "same", "more"), truth, other=rows[-1].h):
        return
    names = {
        "h": [f"{row.h} ◀" if row is now else str(row.h) for row in rows],
        "d_k": [str(row.d_k) for row in rows],
        **{name: [f"{row.weights[name]:,}" for row in rows] for name in now.weights},
        t("project.biases"): [f"{row.biases:,}" for row in rows],
        t("project.total"): [f"{row.total:,}" for row in rows],
        t("project.score_cells", n=sizes["n_q"]): [f"{row.scores:,}" for row in rows],
    }
    import pandas as pd  # only where there is a table

    st.table(pd.DataFrame(names).set_index("h"))


def _nudge(f: Frame, calculation: Calculation) -> None:
    t, trace = f.t, calculation.trace
    d_model, h = trace.sizes["d_model"], trace.sizes["h"]
    feature = min(f.settings.nudged, d_model - 1)
    st.selectbox(
        t("project.nudged"), range(d_model), format_func=lambda i: str(i + 1), width=220, **f.control("nudged", feature)
    )
    found = what_if.nudged(trace, feature)
    q, k, v = (found.moving(found.projected, letter) for letter in "QKV")
    only = found.moving(found.sliced, "V")
    truth = t("project.nudge_truth", q=q, k=k, v=v, h=h, only=only, owner=found.owner + 1)
    if calculation.origin == "designed":
        truth += " " + t("project.nudge_designed")
    values = {"feature": feature + 1, "owner": found.owner + 1, "h": h}
    if predict(t, "project.nudge", ("owner", "all", "none"), truth, **values):
        picture = moved_heads(found, words=t.group("project.fig"), theme=f.theme)
        f.draw(picture, key="lab_nudge_picture", alt=t("project.nudge_alt", **values))


def _times(f: Frame, calculation: Calculation) -> None:
    t, trace, head = f.t, calculation.trace, f.settings.head
    factor = f.settings.times
    st.segmented_control(
        t("project.factor"), FACTORS, format_func=lambda k: f"×{k.removeprefix('0')}", **f.control("times")
    )
    k = float(factor)
    shown = factor.removeprefix("0")
    V, K = what_if.scaled(trace, "V", k), what_if.scaled(trace, "K", k)
    before, after = (each[head].item() for each in K.entropy)
    values = {"k": shown, "head": head + 1}
    told = "project.times_truth" if K.moved > 1e-6 else "project.times_trivial"
    truth = t(
        told, moved=small_text(V.moved), output=f"{V.output:.3f}", before=decimal_text(before, 2),
        after=decimal_text(after, 2), shift=small_text(K.moved), **values,
    )  # fmt: skip
    if f.settings.bias and calculation.origin != "pocket":
        truth += " " + t("project.times_bias", apart=f"{V.apart:.0%}")
    if not predict(t, "project.times", ("neither", "both", "only_k", "only_v"), truth, **values):
        return
    maps = [
        (trace, t("project.times_now"), before),
        (V.trace, f"W<sub>V</sub> ×{shown}", V.entropy[1][head].item()),
        (K.trace, f"W<sub>K</sub> ×{shown}", after),
    ]
    shown_maps = [
        Panel(title, t("project.entropy", value=decimal_text(entropy, 2)), _of(one, "weights", head))
        for one, title, entropy in maps
    ]
    _panels(f, calculation, "times", shown_maps, values)


def _tie(f: Frame, calculation: Calculation) -> None:
    t, trace, head = f.t, calculation.trace, f.settings.head
    found = what_if.tied(trace)
    scores, weights, own = (
        [each[head].item() for each in pair] for pair in (found.scores, found.weights, found.self_weight)
    )
    values = {"head": head + 1}
    apart, untied, uneven = (small_text(number) for number in (scores[1], scores[0], weights[1]))
    before, after = (decimal_text(share, 2) for share in own)
    truth = t(
        "project.tie_even" if weights[1] < 1e-6 else "project.tie_truth", scores=apart, untied=untied, weights=uneven,
        own_before=before, own_after=after, **values,
    )  # fmt: skip
    if not predict(t, "project.tie", ("yes", "no"), truth, **values):
        return
    maps = [
        ("tie_scores", t("project.asymmetry", value=escape(untied)), _of(trace, "scores", head), "scores"),
        ("tied_scores", t("project.asymmetry", value=escape(apart)), _of(found.trace, "scores", head), "scores"),
        ("tie_weights", t("project.self_weight", value=before), _of(trace, "weights", head), "weights"),
        ("tied_weights", t("project.self_weight", value=after), _of(found.trace, "weights", head), "weights"),
    ]
    shown = [Panel(t(f"project.{title}"), note, matrix, kind) for title, note, matrix, kind in maps]
    _panels(f, calculation, "tie", shown, values)


def _split(f: Frame, calculation: Calculation) -> None:
    t, trace = f.t, calculation.trace
    found = view_without_transpose(trace)
    first = found.evidence["token"][1].sel(head=0, feature=0).numpy()
    names, others = plain_labels(calculation.tokens), sorted(set(first.tolist()))
    tokens = t("list").join(code(names[i]) for i in others[:MOST_NAMED]) + (" …" if len(others) > MOST_NAMED else "")
    truth = t("project.split_truth", astray=f"{found.invariant_wrong:.0%}", tokens=tokens, rows=len(first))
    if predict(t, "project.split", ("same", "error", "mixed"), truth if found.broken else t("project.split_trivial")):
        picture = token_sources(trace, found, calculation.tokens, words=_words(f), theme=f.theme)
        f.draw(picture, key="lab_split_picture", alt=t("project.split_alt", h=f.settings.h))


def _bias(f: Frame, calculation: Calculation) -> None:
    t, trace = f.t, calculation.trace
    moved = bias_moves(trace)
    truth = t("project.bias_truth", q=decimal_text(moved["Q"], 2), k=small_text(moved["K"]))
    if predict(t, "project.bias", ("sharper", "other", "none"), truth):
        changes = [small_text(change) for change in moved.values()]
        columns = {t("project.bias_which"): [f"b_{letter}" for letter in moved], t("project.bias_moved"): changes,
                   t("project.bias_why"): [t(f"project.bias_why_{letter}") for letter in moved]}  # fmt: skip
        import pandas as pd  # only where there is a table

        st.table(pd.DataFrame(columns).set_index(t("project.bias_which")))


def _panels(f: Frame, calculation: Calculation, key: str, shown: list[Panel], values: dict[str, object]) -> None:
    picture = panels(calculation.trace, calculation.tokens, shown, words=_words(f), theme=f.theme)
    f.draw(picture, key=f"lab_{key}_picture", alt=f.t(f"project.{key}_alt", **values))


def _words(f: Any) -> dict[str, str]:
    return {**f.t.group("figure"), **f.t.group("project.fig")}


def _of(trace: AttentionTrace, step: str, head: int) -> Any:
    return trace[step].sel(batch=0, head=head).numpy()


_LABS: dict[str, Callable[[Frame, Calculation], None]] = {
    "ledger": _ledger, "nudge": _nudge, "times": _times, "tie": _tie, "split": _split, "bias": _bias,
}  # fmt: skip
