"""Where things are on a canvas, in pixels, y downwards."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Array", "Box", "Cells", "Spans", "spans"]

Array = np.ndarray[Any, Any]


class Box(NamedTuple):
    """A rectangle in canvas pixels, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """In pixels."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """In pixels."""
        return self.bottom - self.top

    @property
    def x(self) -> float:
        """The middle."""
        return (self.left + self.right) / 2

    @property
    def y(self) -> float:
        """The middle."""
        return (self.top + self.bottom) / 2

    def grow(self, by: float) -> Box:
        """Larger by so many pixels on every side."""
        return Box(self.left - by, self.top - by, self.right + by, self.bottom + by)


class Spans(NamedTuple):
    """Where each row, or each column, of a matrix begins and ends: (count,), (count,), in pixels."""

    starts: Array
    stops: Array

    @property
    def middles(self) -> Array:
        """(count,)"""
        middles: Array = (self.starts + self.stops) / 2
        return middles

    def band(self, index: int, bands: int) -> tuple[float, float]:
        """Begin and end of one of so many equal groups."""
        each = len(self.starts) // bands
        return float(self.starts[index * each]), float(self.stops[(index + 1) * each - 1])


class Cells(NamedTuple):
    """Where a matrix' cells are: its columns' spans and its rows'."""

    x: Spans
    y: Spans

    @property
    def box(self) -> Box:
        """Around all of them."""
        return Box(self.x.starts[0], self.y.starts[0], self.x.stops[-1], self.y.stops[-1])

    def columns(self, head: int, h: int) -> Box:
        """Around the columns of one head."""
        left, right = self.x.band(head, h)
        return self.box._replace(left=left, right=right)

    def rows(self, head: int, h: int) -> Box:
        """Around the rows of one head."""
        top, bottom = self.y.band(head, h)
        return self.box._replace(top=top, bottom=bottom)


def spans(start: float, stop: float, count: int, bands: int = 1, gap: float = 0.0) -> Spans:
    """``count`` equal spans between two pixels, with a gap between any two of ``bands`` groups.

    >>> spans(0, 11, 4, bands=2, gap=1).starts.tolist()
    [0.0, 2.5, 6.0, 8.5]
    """
    size = (stop - start - (bands - 1) * gap) / count
    index = np.arange(count)
    starts = start + index * size + index // (count // bands) * gap
    return Spans(starts, starts + size)
