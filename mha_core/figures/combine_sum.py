"""The middle of the picture "combine": the same output as a sum of what each head brings."""

from __future__ import annotations

import numpy as np

from mha_core.figures.blocks import blocks
from mha_core.figures.geometry import Array, Cells, spans
from mha_core.figures.hues import head_hues
from mha_core.figures.labels import escape, fit, text_width
from mha_core.figures.output_cell import Cell, outline, pick, whole
from mha_core.figures.scene import Scene, row_height
from mha_core.figures.theme import limit_text

__all__ = ["by_head"]

_TOP, _ROOM, _RIGHT = 284, 136, 1124  # px
_GAP, _BETWEEN = 24, 28  # px: between two terms, where a + stands; between two lines
_MOST_IN_A_LINE = 6
_MOST_CHOICES = 100  # cells of a term that can be chosen; the output above has more


def by_head(scene: Scene, cell: Cell, limit: float, note: str | None) -> None:
    """Z_1 W_1 + … + Z_h W_h (+ b_O) = Output, in colours with one limit; more than six terms in two lines."""
    canvas, theme, words, h = scene.canvas, scene.theme, scene.words, scene.trace.sizes["h"]
    output = scene.step("output")
    terms: list[Array] = list(scene.step("head_contributions"))
    bias = scene.trace.parameter("b_O")
    if bias is not None and bias.value.any():
        terms.append(np.broadcast_to(bias.numpy(), output.shape))
    hues = [*head_hues(theme, h), theme.soft]

    lines = 1 if len(terms) <= _MOST_IN_A_LINE else 2
    in_a_line = -(-len(terms) // lines)
    width = min(300.0, (_RIGHT - 2 - in_a_line * _GAP) / (in_a_line + 1))
    room = (_ROOM - (lines - 1) * _BETWEEN) / lines
    most = int(min(80, room)), 64 if width > 120 else 32
    reduced = (1, 1)
    for index, matrix in enumerate(terms):
        line, place = divmod(index, in_a_line)
        x, y = 2 + place * (width + _GAP), _TOP + line * (room + _BETWEEN)
        drawn = blocks(matrix, most)
        reduced = drawn.size
        rows, columns = drawn.values.shape
        cells = Cells(spans(x, x + width, columns), spans(y, y + rows * row_height(rows, room), rows))
        is_head, chosen = index < h, index == cell.head
        name = _name(scene, index, width) if is_head else "b<sup>O</sup>"
        if is_head and not cell.kept[index]:
            canvas.masked(np.ones((1, 1), bool), whole(cells.box))
            name = f"{index + 1} · {words['off']}"
        else:
            canvas.signed(drawn.values, cells, limit)
        canvas.raster.frame(cells.box, hues[min(index, h)], 3)
        size, above = (15, 15) if lines == 1 else (13, 12)
        canvas.text(x - 2, y - above, name, size=size, bold=chosen or lines == 1)
        if is_head:
            title = words["head"].format(head=index + 1)
            pick(scene, matrix, cells.box, title, (("head", index),), most=_MOST_CHOICES)
        outline(scene, cells, drawn, cell, strong=chosen)
        if index + 1 < len(terms):
            canvas.text(x + width + _GAP / 2, cells.box.y, "+", size=22, bold=True, anchor="center")

    x, high = 2 + in_a_line * (width + _GAP), min(_ROOM, len(output) * 40.0)
    top = _TOP + (_ROOM - high) / 2 if lines == 2 else _TOP
    drawn = blocks(output, (80, most[1]))
    rows, columns = drawn.values.shape
    cells = Cells(spans(x, x + width, columns), spans(top, top + rows * row_height(rows, high), rows))
    canvas.signed(drawn.values, cells, limit)
    canvas.raster.frame(cells.box, theme.output, 3)
    canvas.text(x - 2, top - 15, words["output"], size=15, colour=theme.output, bold=True)
    canvas.text(x - _GAP / 2, cells.box.y, "=", size=22, bold=True, anchor="center")
    pick(scene, output, cells.box, words["output"], most=_MOST_CHOICES)
    outline(scene, cells, drawn, cell)
    _heading(scene, limit, reduced, len(terms) > h, note)


def _heading(scene: Scene, limit: float, reduced: tuple[int, int], with_bias: bool, note: str | None) -> None:
    canvas, theme, words, y = scene.canvas, scene.theme, scene.words, _TOP - 48
    formula = f"{words['output']} = Σ<sub>i</sub> Z<sub>i</sub> W<sub>i</sub><sup>O</sup>"
    title = f"{words['by_head']}  {formula}" + (" + b<sup>O</sup>" if with_bias else "")
    canvas.text(0, y, title, size=18, bold=True)
    scale = f"{words['one_limit']} {limit_text(limit)}"
    if max(reduced) > 1:
        rows, columns = reduced
        said = (
            words["largest_of"].format(k=columns)
            if rows == 1
            else words["largest_square"].format(rows=rows, columns=columns)
        )
        scale += f"; {said}"
    canvas.text(_RIGHT, y + 1, scale, size=14, colour=theme.soft, anchor="right")
    if note:
        canvas.text(580, y, note, size=16, bold=True, colour=theme.output, anchor="center")


def _name(scene: Scene, head: int, width: float) -> str:
    label = scene.labels[head] if scene.labels else ""
    full = f"{head + 1} · {label}" if label else str(head + 1)
    return escape(full if text_width(full, 15) <= width else fit(full, width, 15) if width > 80 else str(head + 1))
