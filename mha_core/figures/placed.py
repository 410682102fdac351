"""A matrix of the page about Q, K and V on its canvas: painted, framed, titled, and where its rows and columns are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mha_core.figures.blocks import Blocks, blocks
from mha_core.figures.geometry import Array, Box, Cells, Spans, spans
from mha_core.figures.scene import Scene
from mha_core.figures.theme import limit_text, signed_limit

__all__ = [
    "MOST",
    "Band",
    "Chosen",
    "Placed",
    "band_numbers",
    "bands_of",
    "colour_of",
    "features",
    "frames",
    "headline",
    "height_of",
    "paint",
]

MOST = (64, 64)  # rows and columns that are drawn; more are reduced in blocks
_TALLEST = 56.0


@dataclass(frozen=True)
class Chosen:
    """A number of Q, K or V; the feature counts within the head."""

    which: str
    head: int
    query: int
    feature: int


@dataclass(frozen=True)
class Placed:
    """A matrix on the canvas, reduced where it is too large."""

    drawn: Blocks
    cells: Cells

    def row(self, index: int) -> Box:
        """Around the cells of one row."""
        i = int(np.searchsorted(self.drawn.row_starts, index, "right")) - 1
        return self.cells.box._replace(top=float(self.cells.y.starts[i]), bottom=float(self.cells.y.stops[i]))

    def column(self, index: int) -> Box:
        """Around the cells of one column."""
        j = int(np.searchsorted(self.drawn.column_starts, index, "right")) - 1
        return self.cells.box._replace(left=float(self.cells.x.starts[j]), right=float(self.cells.x.stops[j]))

    def cell(self, row: int, column: int) -> Box:
        """Around one cell."""
        across, down = self.column(column), self.row(row)
        return Box(across.left, down.top, across.right, down.bottom)


def colour_of(scene: Scene, which: str) -> str:
    return {"Q": scene.theme.Q, "K": scene.theme.K, "V": scene.theme.V}[which]


def paint(
    scene: Scene, matrix: Array, left: float, right: float, top: float, room: float, *,
    bands: int = 1, gap: float = 0.0, square: bool = False, limit: float | None = None,
) -> Placed:  # fmt: skip
    """Paint a matrix; ``square``: into all of the room, whatever its rows are."""
    drawn = blocks(matrix, MOST, band=matrix.shape[1] // bands)
    rows, columns = drawn.values.shape
    whole = room / rows if square else height_of(rows, room) / rows
    cells = Cells(spans(left, right, columns, bands, gap), spans(top, top + rows * whole, rows))
    line = 1.0 if min(whole, float(cells.x.stops[0] - cells.x.starts[0])) >= 12 else 0.0
    if line:
        for band in range(bands):
            scene.canvas.raster.fill(cells.columns(band, bands), scene.theme.grid)
    scene.canvas.signed(drawn.values, cells, limit or signed_limit(matrix), line)
    return Placed(drawn, cells)


def height_of(rows: int, room: float) -> float:
    """How much of the room rows take: 56 px each at most, whole pixels from 4 on.

    >>> height_of(10, 126), height_of(1, 126), height_of(64, 126)
    (120.0, 56.0, 126.0)
    """
    height = min(_TALLEST, room / rows)
    return rows * (height if height < 4 else float(int(height)))


def headline(
    scene: Scene, box: Box, text: str, colour: str, shape: tuple[int, ...], limit: float | None = None
) -> None:
    """The name at the left; the shape and the limit of the colours at the right."""
    scene.canvas.text(box.left - 2, box.top - 17, text, size=20, colour=colour, bold=True)
    sizes = "×".join(map(str, shape)) + ("" if limit is None else f" {limit_text(limit)}")
    scene.canvas.text(box.right + 1, box.top - 15, sizes, size=14, colour=scene.theme.soft, anchor="right", mono=True)


def frames(scene: Scene, cells: Cells, colour: str, bands: int) -> None:
    count = bands if bands <= 8 else 1
    for band in range(count):
        box = cells.columns(band, count) if count > 1 else cells.box
        scene.canvas.raster.frame(box, colour, 1.5 if count > 4 else 2.0)


def band_numbers(scene: Scene, cells: Cells, bands: int, head: int, y: float) -> None:
    """The heads' numbers under (or above) their bands, as many as fit."""
    if bands == 1:
        return
    pitch = cells.columns(0, bands).width
    every = 1 if pitch >= 15 else 2
    for band in range(bands):
        if band == head or (band % every == 0 and not (every > 1 and abs(band - head) == 1)):
            box, bold = cells.columns(band, bands), band == head
            colour = scene.theme.ink if bold else scene.theme.soft
            scene.canvas.text(
                box.x, y, str(band + 1), size=15 if bold else 14, colour=colour, bold=bold, anchor="center"
            )


@dataclass(frozen=True)
class Band:
    """A head's columns of a matrix.

    Attributes:
        values, cells: what is drawn, and where.
        rows, features, starts: the row and the feature of the head that each cell shows, and its first feature.
        names: of the columns.
    """

    index: int
    values: Array
    cells: Cells
    rows: Array
    features: Array
    starts: Array
    names: list[str]


def bands_of(scene: Scene, placed: Placed, bands: int) -> Iterator[Band]:
    """Each head's columns."""
    drawn, x = placed.drawn, placed.cells.x
    each = drawn.values.shape[1] // bands
    for band in range(bands):
        own = slice(band * each, (band + 1) * each)
        starts = drawn.column_starts[band * each : (band + 1) * each + 1]
        within = starts - starts[0]
        names = [scene.words["place"].format(head=band + 1, feature=name) for name in features(scene, within)]
        cells = Cells(Spans(x.starts[own], x.stops[own]), placed.cells.y)
        first = np.broadcast_to(within[:-1], drawn.values[:, own].shape)
        yield Band(
            band, drawn.values[:, own], cells, drawn.rows[:, own], drawn.columns[:, own] - starts[0], first, names
        )


def features(scene: Scene, starts: Array) -> list[str]:
    """The features, from 1, that columns stand for."""
    names = []
    for first, after in pairwise(starts.tolist()):
        one = str(first + 1)
        names.append(one if after == first + 1 else scene.words["range"].format(first=one, last=after))
    return names
