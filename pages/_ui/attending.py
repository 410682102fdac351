"""What the page "attend" looks at: its own trace, the chosen cell, and sentences that are true for them."""

from __future__ import annotations

from dataclasses import dataclass

from mha_core import AttentionTrace
from mha_core.by_hand import score_sheet, score_to_weight, value_sheet
from mha_core.errors import InputError
from mha_core.experiments import scale_for
from mha_core.favourite import favourite_gap
from mha_core.figures.labels import plain_labels
from mha_core.inputs import embed, tokenize
from mha_core.variants import again, flip
from pages._ui.calculation import Calculation
from pages._ui.settings import Settings
from pages._ui.text import Words, code

__all__ = ["View", "alt", "changed", "figure_words", "formulas", "notice", "rounding", "view"]

WORDLESS = ("random", "upload", "pocket", "trained")
"""Inputs that are not sentences: a second sentence would not be of their kind."""


@dataclass(frozen=True, eq=False)
class View:
    """What is looked at.

    Attributes:
        trace: the calculation's, or with another scale, mask or context.
        tokens, keys: n_q and n_k of them, as given by a user; the same without a context.
        head, query, key, feature: the chosen cell, clamped to what there is; the feature within the head.
        problem: why the second sentence could not be used.
    """

    trace: AttentionTrace
    tokens: tuple[str, ...]
    keys: tuple[str, ...]
    head: int
    query: int
    key: int
    feature: int
    problem: InputError | None = None

    @property
    def cell(self) -> dict[str, int]:
        """The chosen cell."""
        return {"head": self.head, "query": self.query, "key": self.key, "feature": self.feature}

    @property
    def context(self) -> tuple[str, ...] | None:
        """The keys' tokens where they are not the queries'."""
        return self.keys if self.trace.cross else None

    @property
    def query_names(self) -> list[str]:
        """ "3 · sat": for lists."""
        return [f"{place + 1} · {label}" for place, label in enumerate(plain_labels(self.tokens))]

    @property
    def key_names(self) -> list[str]:
        """As query_names."""
        return [f"{place + 1} · {label}" for place, label in enumerate(plain_labels(self.keys))]


def view(settings: Settings, calculation: Calculation) -> View:
    """The page's trace and cell."""
    trace, tokens, keys, problem = calculation.trace, calculation.tokens, calculation.tokens, None
    scale = scale_for(settings.divide, trace.sizes["d_k"], float(settings.temperature))
    if settings.context and settings.input not in WORDLESS:
        try:
            keys = tokenize(settings.context)
            context = embed(keys, settings.d_model, with_positions=settings.positions)
            trace = again(trace, context=context, scale=scale)
        except InputError as error:
            keys, problem = tokens, error
    if not trace.cross:
        mask = flip(trace, settings.flipped) if settings.flipped else trace.mask
        trace = again(trace, scale=scale, mask=mask)
    sizes = trace.sizes
    return View(
        trace, tokens, keys, min(settings.head, sizes["h"] - 1), min(settings.query, sizes["n_q"] - 1),
        min(settings.key, sizes["n_k"] - 1), min(settings.feature, sizes["d_v"] - 1), problem,
    )  # fmt: skip


def changed(settings: Settings, seen: View) -> list[str]:
    """What this page does other than the other pages: keys of the texts attend.changed_…"""
    return [
        name
        for name, other in (
            ("scale", settings.divide != "sqrt" or settings.temperature != "1"),
            ("own", bool(settings.flipped) and not seen.trace.cross),
            ("cross", seen.trace.cross),
        )
        if other
    ]


def figure_words(t: Words, settings: Settings, seen: View) -> dict[str, str]:
    """What stands on the picture; the second square says what the scores were divided by."""
    divisor = {"sqrt": "√{d_k}", "one": "1", "d_k": "{d_k}"}[settings.divide].format(d_k=seen.trace.sizes["d_k"])
    if settings.temperature != "1":
        divisor = f"({divisor}·{settings.temperature})"
    return {**t.group("attend.fig"), "scale": f"÷ {divisor}"}


def formulas(settings: Settings, seen: View) -> str:
    """From the raw score to the weight, in numbers: Markdown."""
    steps = score_to_weight(
        seen.trace, seen.head, seen.query, seen.key, divisor=settings.divide, temperature=float(settings.temperature)
    )
    return r"$\displaystyle " + r" \;\;\longrightarrow\;\; ".join(steps) + "$"


def alt(t: Words, seen: View) -> str:
    """What the picture shows, for those who cannot see it."""
    sizes, cell = seen.trace.sizes, {"head": seen.head, "query": seen.query, "key": seen.key}
    raw, score, weight = (
        seen.trace[step].sel(batch=0, **cell).value.item() for step in ("raw_scores", "scores", "weights")
    )
    output = seen.trace["head_outputs"].sel(batch=0, head=seen.head, query=seen.query, feature=seen.feature).value
    return t(
        "attend.alt", head=seen.head + 1, n_q=sizes["n_q"], n_k=sizes["n_k"], query=seen.query + 1, key=seen.key + 1,
        raw=f"{raw:.2f}", score=f"{score:.2f}", weight=f"{weight:.3f}", feature=seen.feature + 1,
        output=f"{output.item():.3f}",
    )  # fmt: skip


def rounding(t: Words, settings: Settings, seen: View) -> str:
    """Whether the printed numbers give the printed result."""
    if settings.hand == "score":
        sheet = score_sheet(seen.trace, seen.head, seen.query, seen.key)
    else:
        sheet = value_sheet(seen.trace, seen.head, seen.query, seen.feature)
    return t("attend.exact" if sheet.exact else "attend.rounded")


def notice(t: Words, seen: View) -> str:
    """What to notice in the chosen query's row."""
    gap = favourite_gap(seen.trace, seen.head, seen.query)
    query = code(plain_labels(seen.tokens)[seen.query])
    if gap.first is None:
        return t("attend.notice_empty", query=query)
    names = plain_labels(seen.keys)
    first = code(names[gap.first])
    if gap.second is None:
        return t("attend.notice_only", query=query, first=first)
    if gap.ahead < 0.005:
        second = code(names[gap.second])
        values = {"score": f"{gap.score:.2f}", "weight": f"{gap.weight:.3f}"}
        return t("attend.notice_tie", query=query, first=first, second=second, **values)
    return t(
        "attend.notice", query=query, first=first, second=code(names[gap.second]), score=f"{gap.score:.2f}",
        ahead=f"{gap.ahead:.2f}", times=gap.times_text, weight=f"{gap.weight:.3f}",
    )  # fmt: skip
