"""The number of the output that is followed: where it is in a matrix, and how cells choose another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mha_core.contributions import contribution_sizes
from mha_core.figures.blocks import Blocks, blocks
from mha_core.figures.geometry import Array, Box, Cells, Spans, spans
from mha_core.figures.pick import Pick
from mha_core.figures.scene import Scene
from mha_core.figures.theme import signed_limit
from mha_core.trace import AttentionTrace

__all__ = [
    "Cell",
    "Limits",
    "column_of",
    "largest_here",
    "limits_of",
    "outline",
    "pick",
    "pick_columns",
    "row_of",
    "whole",
]


@dataclass(frozen=True)
class Cell:
    """The number that is followed, and what of it: indices from 0.

    Attributes:
        kept: for every head, whether it is on.
    """

    head: int
    query: int
    feature: int
    kept: tuple[bool, ...]


class Limits(NamedTuple):
    """The limits of the colours: of Concat, of the output beside it, of all terms of the sum, of the lengths."""

    concat: float
    output: float
    parts: float
    sizes: float

    def at_least(self, other: Limits) -> Limits:
        """The larger of each."""
        return Limits(*map(max, self, other))


def limits_of(trace: AttentionTrace) -> Limits:
    """What the numbers of a trace need."""
    concat, output, parts = (
        signed_limit(trace[name].sel(batch=0).numpy()) for name in ("concat", "output", "head_contributions")
    )
    bias = trace.parameter("b_O")
    added = signed_limit(bias.numpy()) if bias is not None and bias.value.any() else 0.0
    sizes = signed_limit(contribution_sizes(trace).numpy())
    return Limits(concat, output, max(output, parts, added), sizes)


def whole(box: Box) -> Cells:
    """A box as one cell."""
    return Cells(spans(box.left, box.right, 1), spans(box.top, box.bottom, 1))


def row_of(cells: Cells, drawn: Blocks, query: int) -> Box:
    """The row that shows a query."""
    at = _block(drawn.row_starts, query)
    return cells.box._replace(top=float(cells.y.starts[at]), bottom=float(cells.y.stops[at]))


def column_of(cells: Cells, drawn: Blocks, feature: int) -> Box:
    """The column that shows a feature."""
    at = _block(drawn.column_starts, feature)
    return cells.box._replace(left=float(cells.x.starts[at]), right=float(cells.x.stops[at]))


def outline(scene: Scene, cells: Cells, drawn: Blocks, cell: Cell, *, strong: bool = True) -> None:
    """The chosen token's row, and the chosen cell in it."""
    row, column = row_of(cells, drawn, cell.query), column_of(cells, drawn, cell.feature)
    scene.canvas.outline(row, scene.theme.ink, 2)
    scene.canvas.outline(row._replace(left=column.left, right=column.right), scene.theme.ink, 4 if strong else 2)


def pick(
    scene: Scene, matrix: Array, box: Box, title: str, fixed: tuple[tuple[str, int], ...] = (), *, most: int = 700
) -> None:
    """Every cell of a matrix with d_model columns chooses its query and its feature.

    A cell that can be chosen costs the browser time. Where there are more than ``most``, each stands for
    a block, and means the number in it that is largest.
    """
    drawn = _coarse(matrix, most)
    cells = Cells(_along(box.left, box.right, drawn.column_starts), _along(box.top, box.bottom, drawn.row_starts))
    template = "%{x}<br>%{y}<br><b>%{customdata:.4g}</b>" if drawn.size == (1, 1) else largest_here(scene)
    meaning = Pick("query", "feature", fixed, at=(drawn.rows, drawn.columns))
    names = scene.row_names(scene.queries, drawn.row_starts)
    scene.canvas.pick(drawn.values, cells, template, meaning, rows=names, columns=_features(scene, title, drawn))


def pick_columns(scene: Scene, block: Array, box: Box, head: int) -> None:
    """A column of a head's block of W_O chooses the head and its feature."""
    drawn = blocks(block, (1, min(64, max(8, 128 // scene.trace.sizes["h"]))))
    cells = Cells(_along(box.left, box.right, drawn.column_starts), whole(box).y)
    meaning = Pick("", "feature", (("head", head),), at=(drawn.rows, drawn.columns))
    rows, columns = [scene.words["head"].format(head=head + 1)], _features(scene, "W<sub>O</sub>", drawn)
    scene.canvas.pick(drawn.values, cells, largest_here(scene), meaning, rows=rows, columns=columns)


def largest_here(scene: Scene) -> str:
    """What a cell says that stands for several numbers."""
    return f"%{{x}}<br>%{{y}}<br>{scene.words['largest_here']} <b>%{{customdata:.4g}}</b>"


def _features(scene: Scene, title: str, drawn: Blocks) -> list[str]:
    feature, several = scene.words["feature"], scene.words["range"]
    names = []
    for first, after in zip(drawn.column_starts[:-1].tolist(), drawn.column_starts[1:].tolist(), strict=True):
        which = str(after) if after == first + 1 else several.format(first=first + 1, last=after)
        names.append(f"{title}, {feature} {which}")
    return names


def _coarse(matrix: Array, most: int) -> Blocks:
    rows = min(len(matrix), 80, most // 8)
    return blocks(matrix, (rows, min(64, most // rows)))


def _along(start: float, stop: float, starts: Array) -> Spans:
    edges = start + (stop - start) * starts / starts[-1]
    return Spans(edges[:-1], edges[1:])


def _block(starts: Array, index: int) -> int:
    return int(np.searchsorted(starts, index, "right")) - 1
