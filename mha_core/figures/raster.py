"""Matrices painted into one palette image: eight heads cost the browser no more than one.

Each Plotly trace costs milliseconds, whatever it shows. So everything on a canvas that is made
of rectangles is painted here, by NumPy, and sent as one PNG of palette indices.
"""

from __future__ import annotations

import base64
import math
from functools import lru_cache
from typing import Any

import numpy as np

from mha_core.figures.geometry import Array, Box, Cells, Spans
from mha_core.figures.png import palette_png
from mha_core.figures.theme import Theme, ramp, rgb

__all__ = ["SIGNED_LEVELS", "WEIGHT_LEVELS", "Raster", "signed_levels", "weight_levels"]

SIGNED_LEVELS, WEIGHT_LEVELS = 121, 101
_SIGNED = 1  # index 0 is clear
_WEIGHT = _SIGNED + SIGNED_LEVELS
_INKS = _WEIGHT + WEIGHT_LEVELS

_DOTS_X, _DOTS_Y = 2, 1
"""Image dots a canvas pixel: columns are the narrow direction, rows are whole pixels."""


def signed_levels(matrix: Array, limit: float) -> Array:
    """Palette indices: 0 is the middle level, ±limit the outer ones."""
    half = SIGNED_LEVELS // 2
    finite = np.nan_to_num(matrix, posinf=0.0, neginf=0.0)
    levels: Array = (np.rint(np.clip(finite / limit, -1, 1) * half) + half + _SIGNED).astype(np.uint8)
    return levels


def weight_levels(matrix: Array) -> Array:
    """Palette indices: 0 … 1 whatever the largest weight is."""
    levels: Array = (np.rint(np.clip(matrix, 0, 1) * (WEIGHT_LEVELS - 1)) + _WEIGHT).astype(np.uint8)
    return levels


class Raster:
    """An image of palette indices, painted in canvas pixels.

    Args:
        width, height: of the canvas, in pixels.
        theme: whose colours the palette holds.
    """

    def __init__(self, width: int, height: int, theme: Theme) -> None:
        self.width, self.height, self.theme = width, height, theme
        self.dots = np.zeros((height * _DOTS_Y, width * _DOTS_X), np.uint8)
        self._inks: dict[str, int] = {}

    def ink(self, colour: str) -> int:
        """The palette index of "#RRGGBB"."""
        return self._inks.setdefault(colour, _INKS + len(self._inks))

    def fill(self, box: Box, colour: str) -> None:
        """A filled rectangle."""
        self._region(box)[:] = self.ink(colour)

    def frame(self, box: Box, colour: str, width: float) -> None:
        """A line around a rectangle, on its outside; above and below in whole pixels, rounded up."""
        ink, high = self.ink(colour), math.ceil(width)
        outer = Box(box.left - width, round(box.top) - high, box.right + width, round(box.bottom) + high)
        self._region(outer._replace(bottom=round(box.top)))[:] = ink
        self._region(outer._replace(top=round(box.bottom)))[:] = ink
        self._region(outer._replace(right=box.left))[:] = ink
        self._region(outer._replace(left=box.right))[:] = ink

    def cells(self, levels: Array, cells: Cells, gap: float = 0.0) -> None:
        """A matrix of palette indices; ``gap`` pixels between any two cells stay unpainted."""
        x, column = _dots(cells.x, _DOTS_X, gap)
        y, row = _dots(cells.y, _DOTS_Y, gap)
        painted = levels[:, column][row]
        if x[-1] - x[0] == len(x) - 1 and y[-1] - y[0] == len(y) - 1:  # no gaps
            self.dots[y[0] : y[-1] + 1, x[0] : x[-1] + 1] = painted
        else:
            self.dots[y[:, None], x] = painted

    def clear(self, where: Array, cells: Cells) -> None:
        """The cells of a boolean matrix made transparent again, without seams."""
        x, column = _dots(cells.x, _DOTS_X)
        y, row = _dots(cells.y, _DOTS_Y)
        self.dots[y[0] : y[-1] + 1, x[0] : x[-1] + 1][where[:, column][row]] = 0

    def colour(self, level: int) -> tuple[int, int, int]:
        """Red, green and blue of a level of the two scales."""
        r, g, b = _scales(self.theme)[level].tolist()
        return r, g, b

    def at(self, x: float, y: float) -> int:
        """The palette index at a canvas pixel."""
        return int(self.dots[int(y * _DOTS_Y), int(x * _DOTS_X)])

    def trace(self) -> dict[str, Any]:
        """A Plotly image trace that covers the canvas' axes."""
        dx, dy = 1 / _DOTS_X, 1 / _DOTS_Y
        return {
            "type": "image", "source": "data:image/png;base64," + base64.b64encode(self.png()).decode("ascii"),
            "x0": dx / 2, "dx": dx, "y0": dy / 2, "dy": dy, "hoverinfo": "skip",
        }  # fmt: skip

    def png(self) -> bytes:
        """The image as a PNG of palette indices, index 0 transparent."""
        inks = np.array([rgb(ink) for ink in self._inks], np.uint8).reshape(-1, 3)
        return palette_png(self.dots, np.concatenate([_scales(self.theme), inks]))

    def _region(self, box: Box) -> Array:
        left, right = (max(0, round(edge * _DOTS_X)) for edge in (box.left, box.right))
        top, bottom = (max(0, round(edge * _DOTS_Y)) for edge in (box.top, box.bottom))
        return self.dots[top:bottom, left:right]


def _dots(spans: Spans, dots: int, gap: float = 0.0) -> tuple[Array, Array]:
    """The dots that spans cover, and which of the spans covers each."""
    starts = np.rint(spans.starts * dots).astype(int)
    stops = np.rint(spans.stops * dots).astype(int)
    touching = np.isclose(spans.stops[:-1], spans.starts[1:])  # the two may round apart, and would leave a hole
    stops[:-1] = np.where(touching, starts[1:], stops[:-1])
    stops[:-1] -= round(gap * dots)
    dot = np.arange(starts[0], max(stops[-1], starts[0] + 1))
    owner = np.searchsorted(starts, dot, "right") - 1
    covered = dot < np.maximum(stops, starts + 1)[owner]
    return dot[covered], owner[covered]


@lru_cache(maxsize=4)
def _scales(theme: Theme) -> Array:
    """The palette up to the inks, (n, 3)."""
    clear = np.zeros((1, 3), np.uint8)
    return np.concatenate([clear, ramp(theme.signed, SIGNED_LEVELS), ramp(theme.weight, WEIGHT_LEVELS)])
