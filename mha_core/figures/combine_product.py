"""The upper part of the picture "combine": Concat in bands × W_O in blocks = Output."""

from __future__ import annotations

import numpy as np

from mha_core.figures.blocks import Blocks, blocks
from mha_core.figures.geometry import Cells, spans
from mha_core.figures.hues import head_hues
from mha_core.figures.output_cell import (
    Cell,
    Limits,
    column_of,
    largest_here,
    outline,
    pick,
    pick_columns,
    row_of,
    whole,
)
from mha_core.figures.pick import Pick
from mha_core.figures.scene import Scene, row_height
from mha_core.figures.theme import limit_text, signed_limit

__all__ = ["product"]

_TOP, _ROOM = 40, 160  # px
_CONCAT, _WO, _OUTPUT = (76, 386), (506, 692), (814, 1124)  # px: left and right
_MOST = (80, 64)  # rows and columns that are painted


def product(scene: Scene, cell: Cell, limits: Limits) -> None:
    """Band i of Concat and block i of W_O in one hue; the chosen row of the one and column of the other outlined."""
    concat, output, W_O = scene.step("concat"), scene.step("output"), scene.weight_matrix("O")
    drawn = blocks(concat, _MOST, band=scene.trace.sizes["d_v"])
    rows = len(drawn.values)
    bottom = _TOP + rows * row_height(rows, _ROOM)
    _concat(scene, cell, drawn, bottom, limits.concat)
    _weights(scene, cell)

    shown, theme, canvas = blocks(output, _MOST), scene.theme, scene.canvas
    cells = Cells(spans(*_OUTPUT, shown.values.shape[1]), spans(_TOP, bottom, rows))
    canvas.signed(shown.values, cells, limits.output)
    canvas.raster.frame(cells.box, theme.output, 3)
    pick(scene, output, cells.box, scene.words["output"])
    outline(scene, cells, shown, cell)

    h = scene.trace.sizes["h"]
    bands = "Z<sub>1</sub>" + (" … " if h > 2 else " ") + f"Z<sub>{h}</sub>" if h > 1 else "Z<sub>1</sub>"
    for title, colour, (left, right), matrix, limit in (
        (f"{scene.words['concat']} [{bands}]", theme.weights, _CONCAT, concat, limits.concat),
        ("W<sub>O</sub>", theme.output, _WO, W_O, signed_limit(W_O)),
        (scene.words["output"], theme.output, _OUTPUT, output, limits.output),
    ):
        canvas.text(left - 2, _TOP - 20, title, size=20, colour=colour, bold=True)
        note = f"{'×'.join(map(str, matrix.shape))} {limit_text(limit)}"
        canvas.text(right, _TOP - 18, note, size=14, colour=theme.soft, anchor="right", mono=True)
    for sign, x in (("×", (_CONCAT[1] + _WO[0] - 20) / 2), ("=", (_WO[1] + _OUTPUT[0]) / 2)):
        canvas.text(x, (_TOP + bottom) / 2, sign, size=30, bold=True, anchor="center")
    _reduced(scene, drawn, shown)


def _concat(scene: Scene, cell: Cell, drawn: Blocks, bottom: float, limit: float) -> None:
    canvas, theme, h = scene.canvas, scene.theme, scene.trace.sizes["h"]
    hues, (rows, columns) = head_hues(theme, h), drawn.values.shape
    gap = 8.0 if h <= 4 else 6.0 if h <= 8 else 4.0
    cells = Cells(spans(*_CONCAT, columns, h, gap), spans(_TOP, bottom, rows))
    canvas.signed(drawn.values, cells, limit)
    size, tokens = 15 if h <= 8 else 12, scene.row_names(scene.queries, drawn.row_starts)
    for head in range(h):
        band, bold = cells.columns(head, h), head == cell.head
        if not cell.kept[head]:
            canvas.masked(np.ones((1, 1), bool), whole(band))
        canvas.raster.frame(band, hues[head], 2 if h <= 8 else 1)
        ink = theme.ink if bold or h <= 8 else theme.soft
        canvas.text(band.x, bottom + 14, str(head + 1), size=size, colour=ink, bold=bold, anchor="center")
        strip = blocks(drawn.values[:, head * columns // h : (head + 1) * columns // h], 1)
        title = f"{scene.words['concat']}, {scene.words['head'].format(head=head + 1)}"
        meaning = Pick("query", "", (("head", head),), at=(drawn.rows[:, :1], strip.columns))
        scene.canvas.pick(
            strip.values, Cells(whole(band).x, cells.y), largest_here(scene), meaning, rows=tokens, columns=[title],
        )  # fmt: skip
    scene.row_labels(_CONCAT[0] - 8, cells, scene.queries, _CONCAT[0] - 8, chosen=cell.query)
    row, band = row_of(cells, drawn, cell.query), cells.columns(cell.head, h)
    canvas.outline(row, theme.ink, 2)
    canvas.outline(row._replace(left=band.left, right=band.right), theme.ink, 4)


def _weights(scene: Scene, cell: Cell) -> None:
    canvas, theme, h = scene.canvas, scene.theme, scene.trace.sizes["h"]
    W_O, hues = scene.weight_matrix("O"), head_hues(theme, h)
    drawn = blocks(W_O, (64, 64), row_band=scene.trace.sizes["d_v"])
    down, across = drawn.values.shape
    gap = 10.0 if h <= 4 else 6.0 if h <= 8 else 3.0
    cells = Cells(spans(*_WO, across), spans(_TOP, _TOP + _ROOM, down, h, gap))
    canvas.signed(drawn.values, cells, signed_limit(W_O))
    size = 15 if h <= 8 else 12
    for head in range(h):
        block, bold = cells.rows(head, h), head == cell.head
        canvas.raster.frame(block, hues[head], 2 if h <= 8 else 1)
        ink = theme.ink if bold or h <= 8 else theme.soft
        canvas.text(_WO[0] - 8, block.y, str(head + 1), size=size, colour=ink, bold=bold, anchor="right")
        part = W_O[head * len(W_O) // h : (head + 1) * len(W_O) // h]
        pick_columns(scene, part, block, head)
    column, block = column_of(cells, drawn, cell.feature), cells.rows(cell.head, h)
    canvas.outline(column, theme.ink, 2)
    canvas.outline(column._replace(top=block.top, bottom=block.bottom), theme.ink, 4)
    if max(drawn.size) > 1:
        note = scene.words["largest_square"].format(rows=drawn.size[0], columns=drawn.size[1])
        canvas.text(_WO[1], _TOP + _ROOM + 14, note, size=13, colour=theme.soft, anchor="right")


def _reduced(scene: Scene, *drawn: Blocks) -> None:
    """What was reduced, in small print under the output."""
    notes = []
    for axis, word in ((0, "largest_rows"), (1, "largest_of")):
        if (size := max(each.size[axis] for each in drawn)) > 1:
            notes.append(scene.words[word].format(k=size))
    if notes:
        text = "; ".join(notes)
        scene.canvas.text(_OUTPUT[1], _TOP + _ROOM + 14, text, size=13, colour=scene.theme.soft, anchor="right")
