"""The chosen cell as a page has it: clamped to what there is, with the names of its tokens."""

from __future__ import annotations

from dataclasses import dataclass

from mha_core.figures.labels import plain_labels
from pages._ui.calculation import Calculation
from pages._ui.settings import Settings

__all__ = ["OutputCell", "ProjectCell", "output_cell", "project_cell"]


@dataclass(frozen=True)
class ProjectCell:
    """A number of Q, K or V.

    Attributes:
        which: "Q", "K" or "V".
        head, query, feature: from 0; the feature counts within the head.
        d_k: features of a head.
        names: a plain label for each token.
    """

    which: str
    head: int
    query: int
    feature: int
    d_k: int
    names: tuple[str, ...]

    @property
    def first(self) -> int:
        """The head's first column, from 0."""
        return self.head * self.d_k

    @property
    def place(self) -> dict[str, int]:
        """The cell for ``trace.explain(which, …)``."""
        return {"query" if self.which == "Q" else "key": self.query, "feature": self.first + self.feature}


def project_cell(settings: Settings, calculation: Calculation) -> ProjectCell:
    """What the settings choose, of what there is."""
    names = plain_labels(calculation.tokens)
    d_k = calculation.trace.sizes["d_k"]
    query, feature = min(settings.query, len(names) - 1), min(settings.feature, d_k - 1)
    return ProjectCell(settings.which, settings.head, query, feature, d_k, names)


@dataclass(frozen=True)
class OutputCell:
    """A number of the output, and which heads take part.

    Attributes:
        query, feature: from 0; the feature is one of d_model.
        names: a plain label for each token.
        kept: for every head, whether it is on.
    """

    query: int
    feature: int
    names: tuple[str, ...]
    kept: tuple[bool, ...]

    @property
    def on(self) -> list[int]:
        """The heads that are on, from 0."""
        return [head for head, kept in enumerate(self.kept) if kept]


def output_cell(settings: Settings, calculation: Calculation) -> OutputCell:
    """What the settings choose, of what there is."""
    names = plain_labels(calculation.tokens)
    query, feature = min(settings.query, len(names) - 1), min(settings.feature, settings.d_model - 1)
    return OutputCell(query, feature, names, tuple(head not in settings.off for head in range(settings.h)))
