"""A Plotly figure drawn in pixels: one image for all matrices, one trace for all text.

The axes count pixels (x to the right, y downwards) and stretch with the chart. What is made of
rectangles is painted (:mod:`mha_core.figures.raster`); arrowheads and outlines are vectors above
it; hover comes from transparent heatmaps, whose rows and columns are named by the axes' ticks,
once a row and once a column instead of once a cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from mha_core.figures.geometry import Array, Box, Cells
from mha_core.figures.hover import Answer, Names, edges, hover_trace
from mha_core.figures.labels import text_width
from mha_core.figures.pick import Pick, Pickable, pick_trace
from mha_core.figures.picture import Picture, typed
from mha_core.figures.raster import Raster, signed_levels, weight_levels
from mha_core.figures.theme import MONO, SANS, Theme, ink_on, number_text

__all__ = ["Anchor", "Canvas"]

_BOLD, _NORMAL = 600, 400
Anchor = Literal["left", "center", "right"]
_POSITION = {"left": "middle right", "center": "middle center", "right": "middle left"}
_HEADS = {(1, 0): "triangle-right", (-1, 0): "triangle-left", (0, 1): "triangle-down", (0, -1): "triangle-up"}
_HEAD = 10  # px
_STRETCH = 1.5  # a canvas is so much wider on a large screen: cells that can be chosen answer to their corners
MOST_NUMBERS, SMALLEST_NUMBER = 16, 10.0  # cells of a matrix that print their numbers, px


class Canvas:
    """Collects what is drawn; :meth:`picture` makes the figure.

    Args:
        width, height: in pixels; the axes' ranges, and the height of the chart.
        theme: its colours.
    """

    def __init__(self, width: int, height: int, theme: Theme) -> None:
        self.width, self.height, self.theme = width, height, theme
        self.raster = Raster(width, height, theme)
        self._texts: list[tuple[float, float, str, str, float, str, int, str]] = []
        self._rotated: list[tuple[float, float, str, float, str, int]] = []
        self._heads: list[tuple[float, float, str, str]] = []
        self._dots: list[tuple[float, float, float, str, str]] = []
        self._strokes: dict[tuple[str, float], list[str]] = {}
        self._outlines: dict[tuple[str, float], list[str]] = {}
        self._hatched: list[Box] = []
        self._hovers: dict[tuple[bytes, str], list[Answer]] = {}
        self._picks: dict[str, list[tuple[Pickable, Array, Array, Array]]] = {}
        self._added: list[dict[str, Any]] = []
        self._reach = 0.0
        self._names = (Names(width / 1e4), Names(height / 1e4))

    def signed(self, matrix: Array, cells: Cells, limit: float, gap: float = 0.0) -> None:
        """A matrix in the signed scale, −limit … limit; −∞ is left out, for :meth:`masked`."""
        levels = signed_levels(matrix, limit)
        self.raster.cells(levels, cells, gap)
        self._numbers(matrix, levels, cells)

    def weights(self, matrix: Array, cells: Cells, gap: float = 0.0) -> None:
        """A matrix in the weights' scale, 0 … 1."""
        levels = weight_levels(matrix)
        self.raster.cells(levels, cells, gap)
        self._numbers(matrix, levels, cells)

    def masked(self, masked: Array, cells: Cells) -> None:
        """The hatch in place of the cells that may not attend.

        One hatched rectangle lies below the image, which is cleared where it shall show: so the hatch is
        sharp, has no seams, and costs the same for every mask.
        """
        if masked.any():
            self.raster.clear(masked, cells)
            self._hatched.append(cells.box)

    def outline(self, box: Box, colour: str, width: float) -> None:
        """A line around a rectangle above everything else, on its outside."""
        left, top, right, bottom = box.grow(width / 2)
        path = f"M{left:.6g},{top:.6g}H{right:.6g}V{bottom:.6g}H{left:.6g}Z"
        self._outlines.setdefault((colour, width), []).append(path)

    def stroke(self, path: str, colour: str, width: float) -> None:
        """A line along an SVG path (M, L, C, Z) in canvas pixels, below everything else."""
        self._strokes.setdefault((colour, width), []).append(path)

    def add(self, trace: dict[str, Any]) -> None:
        """A Plotly trace in canvas pixels, above the image and what was added before, below dots and text."""
        self._added.append(trace)

    def dot(self, x: float, y: float, size: float, colour: str, symbol: str = "circle") -> None:
        """A disc, or another of Plotly's symbols, above the image and below the text."""
        self._dots.append((x, y, size, colour, symbol))

    def arrow(self, *points: tuple[float, float], colour: str, width: int = 2, head: bool = True) -> None:
        """A line along the points, each straight across or straight down from the last, to an arrowhead.

        Whole pixels look best.

        Raises:
            ValueError: a slanted piece.
        """
        low = math.floor(width / 2)  # every line is as wide as the others, wherever its middle is rounded to
        for start, stop in pairwise(points):
            (x0, y0), (x1, y1) = start, stop
            if x0 != x1 and y0 != y1:
                raise ValueError(f"the line from {start} to {stop} is slanted; an arrow runs straight across or down")
            if head and stop == points[-1]:  # the head's tip is the end
                x1 -= np.sign(x1 - x0) * _HEAD / 2
                y1 -= np.sign(y1 - y0) * _HEAD / 2
            left, right, top, bottom = min(x0, x1) - low, max(x0, x1) - low, min(y0, y1) - low, max(y0, y1) - low
            self.raster.fill(Box(left, top, right + width, bottom + width), colour)
        if head:
            (x0, y0), (x1, y1) = points[-2:]
            step = (int(np.sign(x1 - x0)), int(np.sign(y1 - y0)))
            aside = width / 2 - low
            x, y = x1 - step[0] * _HEAD / 2 + abs(step[1]) * aside, y1 - step[1] * _HEAD / 2 + abs(step[0]) * aside
            self._heads.append((x, y, _HEADS[step], colour))

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 15,
        colour: str | None = None,
        bold: bool = False,
        anchor: Anchor = "left",
        mono: bool = False,
    ) -> None:
        """A line of Plotly's pseudo-HTML, its middle at the height y. Text of a user comes escaped."""
        weight, family = _BOLD if bold else _NORMAL, MONO if mono else SANS
        self._texts.append((x, y, text, _POSITION[anchor], size, colour or self.theme.ink, weight, family))

    def rotated(
        self, x: float, y: float, text: str, *, size: float = 15, colour: str | None = None, bold: bool = False
    ) -> None:
        """A line that runs upwards from (x, y)."""
        self._rotated.append((x, y, text, size, colour or self.theme.ink, _BOLD if bold else _NORMAL))

    def hover(
        self,
        values: Array,
        cells: Cells,
        template: str,
        *,
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
        numbers: Array | None = None,
    ) -> None:
        """Values that answer the pointer; NaN does not.

        Args:
            values: (rows, columns).
            template: Plotly's hovertemplate; nothing of a user's may be in it.
            rows, columns: the names of rows and columns, safe for Plotly: %{y} and %{x} in the template.
            numbers: a whole number for each cell, (rows, columns), 0 … 65535: %{customdata}; given for all matrices
                of a template, or for none.
        """
        x, y = edges(cells.x), edges(cells.y)
        across, down = self._names[0].place(x, columns), self._names[1].place(y, rows)
        if across is None or down is None:
            return  # no room left for other names: rather no hover than a wrong name
        answer = Answer(values, numbers, x + across, y + down)
        self._hovers.setdefault((answer.x.tobytes(), template), []).append(answer)

    def pick(
        self,
        values: Array,
        cells: Cells,
        template: str,
        meaning: Pick,
        *,
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
    ) -> None:
        """Cells that can be chosen with a click or a tap, and answer the pointer as in :meth:`hover`.

        Args:
            values: (rows, columns), every cell a row and a column of its own (no blocks).
            template: %{customdata} is the value, %{y} and %{x} the names of the row and the column.
            meaning: what a cell stands for.
        """
        across, down = self._names[0].place(edges(cells.x), columns), self._names[1].place(edges(cells.y), rows)
        x, y = np.meshgrid(cells.x.middles + (across or 0.0), cells.y.middles + (down or 0.0))
        corner = math.hypot(*(float((along.stops - along.starts).max()) / 2 for along in (cells.x, cells.y)))
        self._reach = max(self._reach, corner)
        parts = self._picks.setdefault(template, [])
        parts.append((Pickable(meaning, (values.shape[0], values.shape[1])), x.ravel(), y.ravel(), values.ravel()))

    def picture(self) -> Picture:
        """The figure."""
        hovers = [hover_trace(template, answers) for (_, template), answers in self._hovers.items()]
        traces = [self.raster.trace(), *hovers, *self._added]
        picks = {}
        for template, parts in self._picks.items():
            pickables, x, y, values = zip(*parts, strict=True)
            picks[len(traces)] = tuple(pickables)
            traces.append(pick_trace(template, *(np.concatenate(part) for part in (x, y, values))))
        if self._hatched:
            traces.append(self._hatch_trace())
        if self._dots:
            traces.append(self._dots_trace())
        if self._heads:
            traces.append(self._heads_trace())
        if self._rotated:
            traces.append(self._rotated_trace())
        for family in (SANS, MONO):
            if texts := [text[:-1] for text in self._texts if text[-1] == family]:
                traces.append(_text_trace(texts, family))
        return Picture(traces, self._layout(), picks)

    def _numbers(self, matrix: Array, levels: Array, cells: Cells) -> None:
        """Every cell's number in it, where they are few and fit: a calculation that one can check by hand."""
        if matrix.size > MOST_NUMBERS:
            return
        width, height = (float(spans.stops[0] - spans.starts[0]) for spans in (cells.x, cells.y))
        texts = [[number_text(value) if np.isfinite(value) else "" for value in row] for row in matrix.tolist()]
        size = min(16.0, 0.8 * height)
        size *= min(1.0, (width - 2) / max(1.0, *(text_width(text, size) for row in texts for text in row)))
        if size < SMALLEST_NUMBER:
            return
        for i, j in np.ndindex(matrix.shape):
            x, y = float(cells.x.starts[j]) + width / 2, float(cells.y.starts[i]) + height / 2
            colour = ink_on(self.raster.colour(int(levels[i, j])))
            self.text(x, y, texts[i][j], size=size, colour=colour, anchor="center")

    def _rotated_trace(self) -> dict[str, Any]:
        x, y, text, size, colour, weight = (list(column) for column in zip(*self._rotated, strict=True))
        base = np.array(y)
        length = np.minimum(90.0, base - 1)  # a bar that ends outside the axes loses its text
        return {  # Plotly turns the text of bars and of nothing else
            "type": "bar", "x": typed(np.array(x)), "base": typed(base), "y": typed(-length),
            "width": 1, "marker": {"color": "rgba(0,0,0,0)"}, "text": text, "textangle": -90, "textposition": "inside",
            "insidetextanchor": "start", "constraintext": "none", "cliponaxis": False, "hoverinfo": "skip",
            "insidetextfont": {"size": size, "color": colour, "weight": weight, "family": SANS},
        }  # fmt: skip

    def _hatch_trace(self) -> dict[str, Any]:
        left, top, right, bottom = np.array(self._hatched).T
        apart = np.full(len(left), np.nan)
        x, y = np.stack([left, right, right, left, left, apart], 1), np.stack([top, top, bottom, bottom, top, apart], 1)
        pattern = {"shape": "/", "fgcolor": self.theme.hatch, "bgcolor": self.theme.mask, "size": 7, "solidity": 0.25}
        return {
            "type": "scatter", "mode": "none", "x": typed(x.ravel()), "y": typed(y.ravel()), "fill": "toself",
            "fillpattern": pattern, "zorder": -1, "hoverinfo": "skip",
        }  # fmt: skip

    def _dots_trace(self) -> dict[str, Any]:
        x, y, size, colour, symbol = (list(column) for column in zip(*self._dots, strict=True))
        marker = {"symbol": symbol, "color": colour, "size": size, "opacity": 1, "line": {"width": 0}}
        return {
            "type": "scatter", "mode": "markers", "x": typed(np.array(x)), "y": typed(np.array(y)), "marker": marker,
            "hoverinfo": "skip", "cliponaxis": False,
        }  # fmt: skip

    def _heads_trace(self) -> dict[str, Any]:
        x, y, symbol, colour = (list(column) for column in zip(*self._heads, strict=True))
        marker = {"symbol": symbol, "color": colour, "size": _HEAD, "opacity": 1, "line": {"width": 0}}
        return {
            "type": "scatter", "mode": "markers", "x": typed(np.array(x)), "y": typed(np.array(y)), "marker": marker,
            "hoverinfo": "skip", "cliponaxis": False,
        }  # fmt: skip

    def _layout(self) -> dict[str, Any]:
        theme = self.theme
        shapes = [
            {"type": "path", "path": "".join(paths), "line": {"color": colour, "width": width}, "layer": layer}
            for layer, lines in (("below", self._strokes), ("above", self._outlines))
            for (colour, width), paths in lines.items()
        ]
        bare = {"fixedrange": True, "showgrid": False, "zeroline": False, "showticklabels": False, "ticks": ""}
        across, down = (names.ticks() for names in self._names)
        reach = math.ceil(_STRETCH * self._reach)
        return {
            "height": self.height,
            "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": SANS, "color": theme.ink},
            "showlegend": False,
            "hovermode": "closest",
            "dragmode": False,
            **({"clickmode": "event+select", "hoverdistance": reach} if self._picks else {}),
            "hoverlabel": {
                "bgcolor": theme.tint, "bordercolor": theme.soft, "align": "left",
                "font": {"family": SANS, "size": 15, "color": theme.ink},
            },
            "xaxis": {"range": [0, self.width], "constrain": "range", "scaleanchor": False, **bare, **across},
            "yaxis": {"range": [self.height, 0], "constrain": "range", "scaleanchor": False, **bare, **down},
            "shapes": shapes,
        }  # fmt: skip


def _text_trace(texts: list[tuple[Any, ...]], family: str) -> dict[str, Any]:
    """All lines of one font family."""
    x, y, text, position, size, colour, weight = (list(column) for column in zip(*texts, strict=True))
    font = {"family": family, "size": size, "color": colour, "weight": weight}
    return {
        "type": "scatter", "mode": "text", "x": typed(np.array(x)), "y": typed(np.array(y)), "text": text,
        "textposition": position, "textfont": font, "hoverinfo": "skip", "cliponaxis": False,
    }  # fmt: skip
