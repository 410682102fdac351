"""Cells that answer the pointer: transparent heatmaps, and the names of their rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mha_core.figures.geometry import Array, Spans
from mha_core.figures.picture import typed

__all__ = ["Answer", "Names", "edges", "hover_trace"]


class Names:
    """The ticks of an axis: names at pixel positions.

    Plotly takes the first tick within a ten-thousandth of the axis as a position's name. Two names that
    would meet are kept apart by moving the later matrix' answering cells by less than a pixel.
    """

    def __init__(self, tolerance: float) -> None:
        self._apart = 1.3 * tolerance
        self._at: Array = np.empty(0)
        self._names: Array = np.empty(0, object)

    def place(self, at: Array, names: Sequence[str]) -> float | None:
        """By how many pixels to move cells with these edges so that each name is known; None: there is no room.

        A row or column without a name ("") needs none.
        """
        if not names:
            return 0.0
        new = np.array(names, object)
        middles, new = ((at[:-1] + at[1:]) / 2)[new != ""], new[new != ""]
        for step in range(9):
            shift = (step + 1) // 2 * (-1) ** step * 1.5 * self._apart
            if not self._clash(middles + shift, new):
                at, all_names = np.append(self._at, middles + shift), np.append(self._names, new)
                order = np.argsort(at, kind="stable")
                self._at, self._names = at[order], all_names[order]
                return float(shift)
        return None

    def _clash(self, middles: Array, names: Array) -> bool:
        if not len(self._at):
            return False
        right = np.searchsorted(self._at, middles).clip(max=len(self._at) - 1)
        left = (right - 1).clip(min=0)
        return any(
            ((np.abs(self._at[i] - middles) < self._apart) & (self._names[i] != names)).any() for i in (left, right)
        )

    def ticks(self) -> dict[str, Any]:
        """The axis' properties."""
        if not len(self._at):
            return {"tickmode": "array", "tickvals": []}
        apart = np.append(True, np.diff(self._at) > 1e-3)  # one name for the matrices above each other
        return {"tickmode": "array", "tickvals": typed(self._at[apart]), "ticktext": self._names[apart].tolist()}


class Answer(NamedTuple):
    """Values that answer the pointer, and the edges of their columns and rows, one more than there are."""

    values: Array
    numbers: Array | None
    x: Array
    y: Array


def hover_trace(template: str, answers: list[Answer]) -> dict[str, Any]:
    """One transparent heatmap for matrices above each other, with a row of NaN between them."""
    first, *others = sorted(answers, key=lambda answer: float(answer.y[0]))
    values, numbers, y = [first.values], [first.numbers], [first.y]
    for answer in others:
        nothing = np.full((1, first.values.shape[1]), np.nan)
        values += [nothing, answer.values]
        numbers += [np.zeros(nothing.shape), answer.numbers]
        y.append(answer.y)
    trace: dict[str, Any] = {
        "type": "heatmap", "z": typed(np.concatenate(values)), "x": typed(first.x), "y": typed(np.concatenate(y)),
        "opacity": 0, "showscale": False, "hoverongaps": False, "hovertemplate": template + "<extra></extra>",
    }  # fmt: skip
    if first.numbers is not None:
        all_numbers = np.concatenate([part for part in numbers if part is not None])
        trace["customdata"] = typed(all_numbers, "u1" if all_numbers.max() < 256 else "u2")
    return trace


def edges(spans: Spans) -> Array:
    """Where one cell ends and the next begins, (count + 1,): a gap is shared by its neighbours."""
    return np.concatenate([spans.starts[:1], (spans.stops[:-1] + spans.starts[1:]) / 2, spans.stops[-1:]])
