"""What the page "order" looks at, and what it says about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import streamlit as st

from mha_core.figures.deviation import deviation_text
from mha_core.figures.labels import plain_labels
from mha_core.inputs import PRESETS
from mha_core.order import CASES, Reordered, order_cases
from mha_core.reorder import Way, reorder
from mha_core.trace import AttentionTrace
from pages._ui import tables
from pages._ui.calculation import Calculation
from pages._ui.settings import Settings
from pages._ui.text import Words, code

__all__ = ["Seen", "alt", "notice", "side_by_side", "truth", "view"]

MOST_FEATURES = 6
WORDED = ("text", *(preset.key for preset in PRESETS))
"""The inputs whose X is contents and positions in halves of their own."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What the settings choose, of what there is.

    Attributes:
        names: a plain label for each token.
        token: the one that is followed, from 0.
        cases: the same new order in each case.
        case: the one on screen.
        embedded: whether X is words, with positions in features of their own.
        learned: whether X is a trained model's, with positions that are part of each row.
    """

    names: tuple[str, ...]
    token: int
    cases: Mapping[str, Reordered]
    case: str
    embedded: bool
    learned: bool

    @property
    def shown(self) -> Reordered:
        """The case on screen."""
        return self.cases[self.case]

    @property
    def values(self) -> dict[str, object]:
        """For placeholders: the token, its two places, and how far its output moves."""
        return {
            "token": code(self.names[self.token]),
            "here": self.token + 1,
            "there": self.shown.place[self.token] + 1,
            "size": deviation_text(self.shown.of(self.token)),
            "largest": deviation_text(self.shown.largest),
        }


def view(settings: Settings, calculation: Calculation) -> Seen:
    """Reorder the current calculation's tokens; what the settings name and is not there falls back."""
    n = len(calculation.tokens)
    token, embedded = min(settings.query, n - 1), settings.input in WORDED
    order = reorder(cast(Way, settings.reorder), n, seed=settings.reorder_seed, token=token)
    cases = _cases(settings.calculation(), order, settings.head, calculation.trace, embedded)
    case = CASES[settings.order_case] if CASES[settings.order_case] in cases else CASES[0]
    return Seen(plain_labels(calculation.tokens), token, cases, case, embedded, settings.input == "trained")


@st.cache_resource(max_entries=4, show_spinner=False)
def _cases(
    calculation: tuple[Any, ...], order: tuple[int, ...], head: int, _trace: AttentionTrace, _embedded: bool
) -> dict[str, Reordered]:
    """Computed once for all cases and tokens that are looked at; the first three say which it is."""
    return order_cases(_trace, order, embedded=_embedded, head=head)


def truth(t: Words, seen: Seen) -> str:
    """What becomes of the token's output with neither positions nor a mask."""
    found = seen.cases["none"]
    sizes = {"exact": deviation_text(found.largest), "single": deviation_text(found.single)}
    return t("order.guess_truth", token=code(seen.names[seen.token]), **sizes)


def notice(t: Words, seen: Seen) -> str:
    """What to notice in the case on screen."""
    if len(seen.names) == 1:
        return t("order.notice_one")
    stays = seen.shown.place[seen.token] == seen.token  # the one in the middle, backwards
    values = {**seen.values, "way": t("order.stays" if stays else "order.went", **seen.values)}
    if seen.case == "yours":
        kind = "follows" if seen.shown.follows else "placed" if seen.shown.placed else "masked"
        return t(f"order.notice_yours_{kind}", **values)
    if seen.case != "none" and seen.shown.follows:
        sentences = [t("order.notice_alike")]
    else:
        kind = "positions_stays" if stays and seen.case == "positions" else seen.case
        sentences = [t(f"order.notice_{kind}", **values)]
    if seen.case == "positions" and not (seen.embedded or seen.learned):
        sentences.append(t("order.notice_added"))
    return "  \n".join(sentences)


def side_by_side(t: Words, seen: Seen) -> str:
    """The token's output in both sentences, in the features that differ most, as a table in Markdown."""
    found, token = seen.shown, seen.token
    features = found.widest(token, MOST_FEATURES)
    rows = (
        (t("order.row_before", place=token + 1), [number(found.before[token, m].item()) for m in features]),
        (
            t("order.row_after", place=found.place[token] + 1),
            [number(found.aligned[token, m].item()) for m in features],
        ),
        (t("order.row_apart"), [deviation_text(abs(found.difference[token, m].item())) for m in features]),
    )
    name = code(seen.names[token]).replace("|", r"\|")  # a cell of the table ends at a bare one
    head = [t("order.row_features", token=name), *(str(m + 1) for m in features)]
    return tables.markdown(head, ([name, *cells] for name, cells in rows))


def number(value: float) -> str:
    """Four decimals, so that one can see where two outputs part."""
    return f"{value:.4f}".replace("-", "−")


def alt(t: Words, seen: Seen, covered: bool) -> str:
    """The picture in words."""
    new = " ".join(seen.names[i] for i in seen.shown.order)
    if covered:
        return t("order.alt_covered", order=new)
    each = (f"{t(f'order.fig.{name}')}: {deviation_text(case.largest)}" for name, case in seen.cases.items())
    cases = t("semicolon").join(each)
    return t("order.alt", order=new, cases=cases)
