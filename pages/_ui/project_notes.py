"""The sentences of the page "project", true for the calculation on screen."""

from __future__ import annotations

from mha_core.explain import Explanation
from mha_core.figures.strip import decimal_text
from mha_core.worksheet import Worksheet
from pages._ui.calculation import Calculation
from pages._ui.choice import ProjectCell
from pages._ui.text import Words

__all__ = ["alt", "by_hand", "orientation", "what_to_notice"]

MOST_WRITTEN = 6
"""A longer sum is in the worksheet and is not written out a second time."""


def alt(t: Words, calculation: Calculation, cell: ProjectCell, explanation: Explanation) -> str:
    """The picture in words."""
    sizes = calculation.trace.sizes
    return t(
        "project.alt", n=sizes["n_q"], d_model=sizes["d_model"], h=sizes["h"], d_k=cell.d_k, which=cell.which,
        head=cell.head + 1, token=cell.names[cell.query], feature=cell.feature + 1,
        value=decimal_text(explanation.value, 3),
    )  # fmt: skip


def by_hand(t: Words, explanation: Explanation, sheet: Worksheet) -> str:
    """The formula, with the numbers put in where they are few, and how they are rounded."""
    formula = explanation.symbols
    if len(explanation.terms) <= MOST_WRITTEN:
        formula += " = " + explanation.numbers(0 if sheet.integers else 3)
    rounding = "pocket" if sheet.integers else "rounded" if sheet.exact else "approximate"
    return f"${formula}$  \n{t(f'project.{rounding}')}"


def orientation(t: Words, calculation: Calculation, cell: ProjectCell) -> str:
    """How the weight matrix is drawn, and how code stores it."""
    return t("project.orientation", which=cell.which, d_model=calculation.trace.sizes["d_model"])


def what_to_notice(t: Words, calculation: Calculation, cell: ProjectCell, explanation: Explanation) -> str:
    """What the picture shows, and what the weights mean."""
    d_model = calculation.trace.sizes["d_model"]
    values = {"which": cell.which, "head": cell.head + 1, "d_model": d_model}
    if calculation.trace.sizes["h"] == 1:
        sentences = [t("project.notice_one", **values)]
    else:
        sentences = [t("project.notice", first=cell.first + 1, last=cell.first + cell.d_k, **values)]
    if calculation.origin == "random":
        sentences.append(t("project.random"))
    elif calculation.origin == "designed" and cell.which == "V":
        sentences.append(t("project.designed_v"))
    elif calculation.origin == "designed":
        used = sum(len(term.factors) == 2 and term.factors[1] != 0 for term in explanation.terms)
        sentences.append(t("project.designed", used=used, d_model=d_model))
    return ("" if t.language == "zh" else " ").join(sentences)
