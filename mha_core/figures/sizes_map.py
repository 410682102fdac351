"""How much each head brings to each token: lengths, a head a row."""

from __future__ import annotations

import math

import numpy as np

from mha_core.figures.blocks import blocks
from mha_core.figures.geometry import Array, Box, Cells, spans
from mha_core.figures.hues import head_hues
from mha_core.figures.labels import escape, fit, text_width
from mha_core.figures.output_cell import Cell, whole
from mha_core.figures.pick import Pick
from mha_core.figures.raster import signed_levels
from mha_core.figures.scene import Scene
from mha_core.figures.theme import ink_on, limit_text, number_text

__all__ = ["sizes_map"]

_TITLE, _BOTTOM = 446, 616  # px


def sizes_map(scene: Scene, cell: Cell, sizes: Array, limit: float, left: float, right: float) -> None:
    """A head a row, a token a column: the length of what the head adds there.

    Args:
        sizes: (h, n_q).
        limit: of their colours.
    """
    canvas, theme, words, h = scene.canvas, scene.theme, scene.words, scene.trace.sizes["h"]
    hues = head_hues(theme, h)
    formula = "  ‖Z<sub>i</sub> W<sub>i</sub><sup>O</sup>‖" if right - left > 340 else ""
    canvas.text(left - 30, _TITLE, words["sizes"] + formula, size=17)
    drawn = blocks(sizes, (16, 64))
    columns = drawn.values.shape[1]
    pitch = (right - left) / columns
    names = scene.row_names(scene.queries, drawn.column_starts)
    lying = all(text_width(name, 13) <= pitch - 2 for name in scene.queries) and columns == sizes.shape[1]
    top, bottom = _TITLE + 18, _BOTTOM + 6 if lying else _BOTTOM - 34
    height = min(30.0, math.floor((bottom - top) / h))
    cells = Cells(spans(left, right, columns), spans(top, top + h * height, h))
    box = cells.box
    gap = 1.0 if pitch >= 8 and height >= 8 else 0.0
    canvas.raster.fill(box, theme.grid)
    levels = signed_levels(drawn.values, limit)
    canvas.raster.cells(levels, cells, gap)
    for head in range(h):
        row = cells.rows(head, h)
        canvas.raster.fill(Box(left - 8, row.top, left - 3, row.bottom - gap), hues[head])
        if not cell.kept[head]:
            canvas.masked(np.ones((1, 1), bool), whole(row))
    canvas.raster.frame(box, theme.output, 2)
    scene.row_labels(left - 13, cells, [str(head + 1) for head in range(h)], 30, chosen=cell.head)
    canvas.text(right, _TITLE, f"0 … {limit_text(limit)[1:]}", size=13, colour=theme.soft, anchor="right", mono=True)

    at = int(np.searchsorted(drawn.column_starts, cell.query, "right")) - 1
    chosen = box._replace(left=left + at * pitch, right=left + (at + 1) * pitch)
    canvas.outline(chosen, theme.ink, 2)
    if pitch >= 24 and height >= 14:
        for head in range(h):
            if cell.kept[head]:
                ink = ink_on(canvas.raster.colour(int(levels[head, at])))
                middle = cells.rows(head, h).y
                canvas.text(
                    chosen.x, middle, number_text(float(drawn.values[head, at])), size=13, colour=ink, anchor="center"
                )
    size = 13.0 if pitch >= 13 else 11.0
    every = 1 if pitch >= 11 else math.ceil(12 / pitch)
    for j in range(columns):
        if j != at and (j % every or abs(j - at) < every):
            continue
        name = scene.queries[int(drawn.column_starts[j])]
        x, bold = box.left + (j + 0.5) * pitch, j == at
        if lying:
            canvas.text(x, box.bottom + 13, escape(name), size=size, bold=bold, anchor="center")
        else:
            short = fit(name, 58, size)
            canvas.rotated(x, box.bottom + 6 + text_width(short, size), escape(short), size=size, bold=bold)
    meaning = Pick("head", "query", at=(drawn.rows, drawn.columns))
    rows = [words["head"].format(head=head + 1) for head in range(h)]
    template = f"%{{y}}<br>%{{x}}<br>{words['size']} <b>%{{customdata:.4g}}</b>"
    canvas.pick(drawn.values, cells, template, meaning, rows=rows, columns=names)
