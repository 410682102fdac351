"""A row of scores or weights as bars, one under each column of the map above."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mha_core.figures.geometry import Array, Box, Cells, spans
from mha_core.figures.labels import text_width
from mha_core.figures.pick import Pick
from mha_core.figures.scene import Scene

__all__ = ["Bars", "bar_text", "bars"]

_LABEL = 15.0  # px for a number above or below the bars
_HATCH = 12  # px, how high the hatch stands
_MOST_WIDE = 4  # numbers wider than their columns
_SIZE, _CHOSEN = 12.0, 15.0  # px, of a bar's number and of the chosen bar's


@dataclass(frozen=True)
class Bars:
    """A scale of bars: values low … high (0 is among them) between two heights, with room for numbers."""

    low: float
    high: float
    top: float
    bottom: float

    @property
    def zero(self) -> float:
        """Where 0 is."""
        return self.at(0.0)

    def at(self, value: float) -> float:
        """The height of a value."""
        top, bottom = self.top + _LABEL + 3, self.bottom - (_LABEL if self.low < 0 else 0.0)
        spread = self.high - self.low
        return bottom if spread == 0 else round(bottom - (value - self.low) / spread * (bottom - top))


def bars(scene: Scene, row: Array, hidden: Array, over: Box, scale: Bars, chosen: int, *, weights: bool) -> None:
    """Bars with their numbers, as many as find room; hatched where hidden.

    Args:
        row: (n_k,).
        hidden: (n_k,), which of them are masked.
        over: the map whose columns are shared.
        chosen: the key whose bar is dark and whose number is large.
        weights: in the weights' colour.
    """
    canvas, theme = scene.canvas, scene.theme
    columns = spans(over.left, over.right, len(row))
    pitch = over.width / len(row)
    thin = min(pitch * 0.22, 5.0) if pitch >= 4 else 0.0
    canvas.raster.fill(Box(over.left, scale.zero, over.right, scale.zero + 1), theme.soft)
    for j, value in enumerate(row.tolist()):
        left, right = float(columns.starts[j]) + thin / 2, float(columns.stops[j]) - thin / 2
        if hidden[j]:
            continue
        end = scale.at(value)
        if weights:
            colour = theme.weights if j == chosen else theme.weight[2]
        else:
            colour = theme.signed[(4 if j == chosen else 3) if value >= 0 else (0 if j == chosen else 1)]
        if value and abs(end - scale.zero) < 1:  # a trace of a bar for a trace of a weight
            end = scale.zero - (1 if value > 0 else -1)
        canvas.raster.fill(Box(left, min(end, scale.zero), right, max(end, scale.zero)), colour)
    for first, after in _runs(hidden):
        box = Box(float(columns.starts[first]), scale.zero - _HATCH, float(columns.stops[after - 1]), scale.zero)
        canvas.masked(np.ones((1, 1), bool), Cells(spans(box.left, box.right, 1), spans(box.top, box.bottom, 1)))
    _numbers(scene, row, hidden, columns.middles, scale, chosen, pitch, weights)
    if len(row) <= 40 and len(scene.queries) <= 40:
        names = [name.translate(_SAFE) for name in scene.keys]
        here = Cells(columns, spans(scale.top, scale.bottom, 1))
        form = "%{customdata:.4f}" if weights else "%{customdata:.4g}"
        template = f"{scene.words['query']} %{{y}} → {scene.words['key']} %{{x}}<br><b>{form}</b>"
        canvas.pick(row[None], here, template, Pick("", "key"), rows=["·"], columns=names)


_SAFE = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})


def _runs(hidden: Array) -> list[tuple[int, int]]:
    """Where runs of True begin and end.

    >>> _runs(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    padded = np.concatenate([[False], hidden, [False]])
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _numbers(
    scene: Scene, row: Array, hidden: Array, x: Array, scale: Bars, chosen: int, pitch: float, weights: bool
) -> None:
    """The chosen bar's number first, then the others by size where they do not meet one that is there."""
    canvas, theme = scene.canvas, scene.theme
    taken: list[Box] = []
    order = [chosen, *(j for j in np.argsort(-np.abs(row)).tolist() if j != chosen)]
    for j in order:
        if hidden[j]:
            continue
        value = float(row[j])
        if weights and value < 0.005 and j != chosen:
            continue
        text, size = bar_text(value, weights), _CHOSEN if j == chosen else _SIZE
        half = text_width(text, size) / 2 * 0.92 + (2.5 if j == chosen else 1.5)
        if half > 1.1 * pitch and len(taken) >= _MOST_WIDE:
            continue
        end = scale.at(value)
        y = end - size / 2 - 2 if value >= 0 else end + size / 2 + 2
        if value >= 0 and hidden.any():
            y = min(y, scale.zero - _HATCH - size / 2 - 1)
        centre = float(np.clip(x[j], float(x[0]) - pitch / 2 + half - 4, float(x[-1]) + pitch / 2 - half + 4))
        box = Box(centre - half, y - size / 2 + 1, centre + half, y + size / 2 - 1)
        if any(box.left < b.right and b.left < box.right and box.top < b.bottom and b.top < box.bottom for b in taken):
            continue
        taken.append(box)
        colour = theme.ink if j == chosen else theme.soft
        canvas.text(centre, y, text, size=size, bold=j == chosen, colour=colour, anchor="center")


def bar_text(value: float, weight: bool = False) -> str:
    """Two digits before the softmax, two decimals after it.

    >>> [bar_text(value) for value in (56.2, 8.4, 2.06, -0.31, 0.0)], bar_text(0.914, True), bar_text(1.0, True)
    (['56', '8.4', '2.1', '−.3', '0'], '.91', '1')
    """
    if value == round(value):
        text = f"{value:.0f}"
    elif weight:
        text = f"{value:.2f}"
    else:
        text = f"{value:.0f}" if abs(value) >= 9.95 else f"{value:.1f}"
    if float(text) == 0:
        return ".00" if weight and value else "0"
    if weight and float(text) == 1:
        return "1" if value == 1 else "1.0"
    return text.replace("-", "−").replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text.replace("-", "−")
