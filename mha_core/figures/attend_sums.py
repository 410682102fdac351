"""Maps of weights side by side with the sums of their rows and columns: which of them share out a 1?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mha_core.figures.blocks import blocks
from mha_core.figures.canvas import Canvas
from mha_core.figures.geometry import Array, Box, Cells, spans
from mha_core.figures.labels import escape, fit, plain_labels, text_width
from mha_core.figures.pick import Pick
from mha_core.figures.picture import Picture
from mha_core.figures.scene import printed_names, snap
from mha_core.figures.theme import Theme, theme_named

__all__ = ["SUMS_WORDS", "SumPanel", "attend_sums"]

SUMS_WORDS: Mapping[str, str] = {
    "query": "query", "key": "key", "row_sums": "row sums", "column_sums": "column sums",
    "weight": "weight",
}  # fmt: skip
"""English."""

WIDTH = 1130
_SIDE, _LEFT = 210, 84  # px
_SUMS = 66  # px for a column's sum, its bar and number
MOST_CELLS = 105  # a side


@dataclass(frozen=True, eq=False)
class SumPanel:
    """A map.

    Attributes:
        title: above it, safe to print.
        note: below it, safe to print: what was measured.
        weights: (n_q, n_k).
        hatched: (n_q, n_k), the cells that are drawn as masked.
        framed: (n_q, n_k), the cells that are forbidden and have a weight all the same.
        columns: whether the sums of the columns are shown.
        pick: what a click on a cell means.
    """

    title: str
    note: str
    weights: Array
    hatched: Array
    framed: Array | None = None
    columns: bool = False
    pick: Pick | None = None


def attend_sums(
    panels: Sequence[SumPanel],
    tokens: Sequence[str],
    *,
    context_tokens: Sequence[str] | None = None,
    query: int | None = None,
    words: Mapping[str, str] = SUMS_WORDS,
    theme: str = "light",
) -> Picture:
    """Up to three maps; at the right of each the sum of every row as a bar, below it, if asked for, of every column."""
    colours = theme_named(theme)
    queries = plain_labels(tokens)
    keys = queries if context_tokens is None else plain_labels(context_tokens)
    names = _room(keys)
    top = 36 + names
    below = _SUMS if any(panel.columns for panel in panels) else 0
    noted = 34 if any(panel.note for panel in panels) else 6
    canvas = Canvas(WIDTH, round(top + _SIDE + below + noted), colours)
    pitch = (WIDTH - _LEFT) / max(2, len(panels))
    for place, panel in enumerate(panels):
        _panel(canvas, panel, _LEFT + place * pitch, top, queries, keys, query, words, labels=place == 0)
    return canvas.picture()


def _room(keys: Sequence[str]) -> float:
    return min(72.0, max(text_width(name, 14) for name in keys)) + 6


def _panel(
    canvas: Canvas, panel: SumPanel, left: float, top: float, queries: Sequence[str], keys: Sequence[str],
    query: int | None, words: Mapping[str, str], *, labels: bool,
) -> None:  # fmt: skip
    theme = canvas.theme
    drawn = blocks(panel.weights, (MOST_CELLS, MOST_CELLS))
    n_q, n_k = drawn.values.shape
    cells = Cells(spans(left, left + snap(_SIDE, n_k), n_k), spans(top, top + snap(_SIDE, n_q), n_q))
    box = cells.box
    gap = 1.0 if min(box.width / n_k, box.height / n_q) >= 8 else 0.0
    canvas.raster.fill(box, theme.grid)
    canvas.raster.frame(box, theme.weights, 2)
    canvas.weights(drawn.values, cells, gap)
    hatched = panel.hatched[drawn.rows, drawn.columns]
    canvas.masked(hatched, cells)
    canvas.text(left - 1, 14, panel.title, size=17, bold=True)
    canvas.text(left - 1, canvas.height - 14, panel.note, size=15)
    _names(canvas, cells, queries, keys, query, words, labels)
    if panel.framed is not None and min(box.width / n_k, box.height / n_q) >= 6:
        for i, j in np.argwhere(panel.framed[drawn.rows, drawn.columns]).tolist():
            x, y = float(cells.x.middles[j]), float(cells.y.middles[i])
            canvas.dot(x, y, 6, theme.X, "x")
    row_sums = panel.weights.sum(1)
    _row_sums(canvas, row_sums, box, theme, words)
    if panel.columns:
        _column_sums(canvas, panel.weights.sum(0), box, theme, words)
    at = f"{words['query']} %{{y}} → {words['key']} %{{x}}<br>{words['weight']} "
    if drawn.size == (1, 1) and panel.weights.size <= 1600:
        rows, columns = [escape(name) for name in queries], [escape(name) for name in keys]
        meaning = panel.pick or Pick("query", "key")
        template = f"{at}<b>%{{customdata:.4f}}</b>"
        canvas.pick(panel.weights, cells, template, meaning, rows=rows, columns=columns)


def _names(
    canvas: Canvas, cells: Cells, queries: Sequence[str], keys: Sequence[str], query: int | None,
    words: Mapping[str, str], labels: bool,
) -> None:  # fmt: skip
    theme, box = canvas.theme, cells.box
    pitch = box.width / len(keys)
    size = min(14.0, max(11.0, 0.92 * pitch))
    flat = all(text_width(name, size) <= pitch - 1 for name in keys)
    for j in printed_names(len(keys), 1 if pitch >= 9 else int(-(-11 // pitch))):
        x = box.left + (j + 0.5) * pitch
        if flat:
            canvas.text(x, box.top - 11, escape(keys[j]), size=size, anchor="center")
        else:
            canvas.rotated(x, box.top - 4, escape(fit(keys[j], 70, size)), size=size)
    if not labels:
        return
    pitch = box.height / len(queries)
    size = min(15.0, max(11.0, 0.92 * pitch))
    for i in printed_names(len(queries), 1 if pitch >= 9 else int(-(-11 // pitch)), query):
        name, y = escape(fit(queries[i], _LEFT - 10, size)), box.top + (i + 0.5) * pitch
        canvas.text(box.left - 6, y, name, size=size, anchor="right", bold=i == query)
    canvas.text(box.left - 9, box.top - 27, f"{words['key']} →", size=14, colour=theme.K, anchor="right")
    canvas.text(box.left - 9, box.top - 9, f"{words['query']} ↓", size=14, colour=theme.Q, anchor="right")


def _row_sums(canvas: Canvas, sums: Array, box: Box, theme: Theme, words: Mapping[str, str]) -> None:
    """A bar a row, 40 px for 1, and its number where there is room."""
    start, pitch = box.right + 10, box.height / len(sums)
    canvas.text(start - 2, box.top - 12, words["row_sums"], size=13, colour=theme.soft)
    one = start + 40
    thin = min(3.0, pitch * 0.2)
    for i, value in enumerate(sums.tolist()):
        top = box.top + i * pitch
        end = start + 40 * min(value, 1.8)
        whole = abs(value - 1) < 5e-4
        bar = Box(start, top + thin, max(end, start + 1), max(top + pitch - thin, top + thin + 1))
        canvas.raster.fill(bar, theme.weights if whole else theme.soft)
        if pitch >= 11:
            size = min(14.0, 0.8 * pitch)
            canvas.text(max(end, one) + 5, top + pitch / 2, _sum_text(value), size=size, bold=not whole)
    canvas.raster.fill(Box(one, box.top, one + 1, box.bottom), theme.soft)


def _column_sums(canvas: Canvas, sums: Array, box: Box, theme: Theme, words: Mapping[str, str]) -> None:
    """A bar a column, downwards, 26 px for 1, and its number where there is room."""
    start, pitch = box.bottom + 8, box.width / len(sums)
    canvas.text(box.right + 8, start + 10, words["column_sums"], size=13, colour=theme.soft)
    thin = min(3.0, pitch * 0.2)
    for j, value in enumerate(sums.tolist()):
        left = box.left + j * pitch
        end = start + 26 * min(value, 1.6)
        whole = abs(value - 1) < 5e-4
        bar = Box(left + thin, start, max(left + pitch - thin, left + thin + 1), max(end, start + 1))
        canvas.raster.fill(bar, theme.weights if whole else theme.soft)
        text = f"{value:.1f}".removeprefix("0") if not whole else "1"
        if pitch >= 11 and text_width(text, 12) <= pitch + 3:
            canvas.text(left + pitch / 2, max(end, start + 26) + 9, text, size=12, bold=not whole, anchor="center")
    canvas.raster.fill(Box(box.left, start + 26, box.right, start + 27), theme.soft)


def _sum_text(value: float) -> str:
    if abs(value - 1) < 5e-4 or value == 0:
        return f"{value:.0f}"
    return f"{value:.2f}".removeprefix("0") if value >= 5e-3 else "&lt; .01"
