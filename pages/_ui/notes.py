"""What is worth noticing in a calculation, in sentences that are true for its weights."""

from __future__ import annotations

from mha_core.metrics import METRICS
from pages._ui.calculation import Calculation
from pages._ui.text import Words, code

__all__ = ["caption", "what_to_notice"]

MOST_NAMED = 4
"""More heads leave the canvas no room for a caption."""


def caption(t: Words, calculation: Calculation) -> str | None:
    """ "Same X, 4 heads, 4 ways of looking": only where every head does what its name says."""
    h = calculation.trace.sizes["h"]
    kept = bool(calculation.reports) and all(report.holds for report in calculation.reports)
    return t("overview.caption", h=h) if kept and 1 < h <= MOST_NAMED else None


def what_to_notice(t: Words, calculation: Calculation, head: int) -> str:
    """Two or three sentences about the picture of the whole calculation."""
    sizes = calculation.trace.sizes
    values = {"head": head + 1, "h": sizes["h"], "d_k": sizes["d_k"], "d_model": sizes["d_model"]}
    if calculation.origin == "pocket":
        return t("overview.notice_pocket", head=head + 1, **_by_hand(calculation, head))
    if calculation.origin == "random":
        spread = next(metric for metric in METRICS if metric.key == "entropy_ratio")
        ratio = spread.compute(calculation.trace, calculation.tokens).mean().item()
        return t("overview.notice_random", ratio=f"{ratio:.0%}", **values)
    kept = sum(report.holds for report in calculation.reports)
    sentences = [t("overview.notice_designed", kept=kept, **values)]
    if kept < sizes["h"]:
        sentences.append(t("overview.notice_missed"))
    return "  \n".join(sentences)


def _by_hand(calculation: Calculation, head: int) -> dict[str, str]:
    """The first query's largest weight, from its operands: LaTeX with the numbers put in."""
    trace, query = calculation.trace, 0
    key = int(trace["weights"].sel(batch=0, head=head, query=query).numpy().argmax())
    cell = {"head": head, "query": query, "key": key}
    return {
        "query": code(calculation.tokens[query]),
        "key": code(calculation.tokens[key]),
        "raw": trace.explain("raw_scores", **cell).numbers(0),
        "score": trace.explain("scores", **cell).numbers(2),
        "weight": trace.explain("weights", **cell).numbers(2),
    }
