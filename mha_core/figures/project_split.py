"""The lower half of the page about Q, K and V: a head computed alone, all heads apart, and one number by hand."""

from __future__ import annotations

import numpy as np

from mha_core.figures.blocks import blocks
from mha_core.figures.geometry import Cells, spans
from mha_core.figures.labels import escape, fit
from mha_core.figures.pick import Pick
from mha_core.figures.placed import MOST, Chosen, colour_of, frames, headline, height_of, paint
from mha_core.figures.scene import Scene
from mha_core.figures.strip import draw_worksheet, small_text
from mha_core.figures.theme import signed_limit
from mha_core.projection import head_alone
from mha_core.worksheet import worksheet

__all__ = ["ALONE_TOP", "alone", "apart", "by_hand"]

_X, _W, _OUT = (66, 196), (248, 348), (402, 502)  # px: left and right of the head alone
_APART = 570, 1126  # of the heads apart
ALONE_TOP, _ROOM = 376, 126.0
_HAND = 564


def alone(scene: Scene, cell: Chosen) -> None:
    """One head computed from its own columns of W, and how far that is from its band."""
    found = head_alone(scene.trace, cell.which, cell.head)
    canvas, theme, words, which = scene.canvas, scene.theme, scene.words, cell.which
    colour = colour_of(scene, which)
    _, bands, _, d_k = scene.trace[f"{which}_heads"].shape
    band = cell.head * bands // scene.trace.sizes["h"]
    index = f"<sub>{band + 1}</sub>"
    X, W, result = scene.step("X"), found.weight.numpy(), found.result.numpy()

    text = words["alone"].format(head=band + 1, d_k=d_k)
    canvas.text(0, ALONE_TOP - 44, text, size=17, bold=True)
    left = paint(scene, X, *_X, ALONE_TOP, _ROOM)
    weight = paint(scene, W, *_W, ALONE_TOP, _ROOM, square=True, limit=signed_limit(scene.weight_matrix(which)))
    limit = signed_limit(scene.step(which))  # the same numbers in the same colours
    out = paint(scene, result, *_OUT, ALONE_TOP, _ROOM, limit=limit)
    own = f"W<sub>{which},{band + 1}</sub>"
    for placed, name, ink, matrix in (
        (left, "X", theme.X, X), (weight, own, colour, W), (out, which + index, colour, result),
    ):  # fmt: skip
        frames(scene, placed.cells, ink, 1)
        headline(scene, placed.cells.box, name, ink, matrix.shape)
    y = left.cells.box.y
    canvas.text((_X[1] + _W[0]) / 2, y, "×", size=24, bold=True, anchor="center")
    canvas.text((_W[1] + _OUT[0]) / 2, y, "=", size=24, bold=True, anchor="center")
    scene.row_labels(_X[0] - 6, left.cells, scene.queries, _X[0] - 8, most=13, chosen=cell.query)
    canvas.outline(left.row(cell.query), theme.ink, 2)
    canvas.outline(weight.column(cell.feature), theme.ink, 2)
    canvas.outline(out.cell(cell.query, cell.feature), theme.ink, 4)
    difference = words["difference"].format(value=escape(small_text(found.difference)))
    below = max(out.cells.box.bottom, weight.cells.box.bottom) + 15
    canvas.text(_OUT[1], below, f"{words['same']}: {difference}", size=14, colour=theme.soft, anchor="right")


def apart(scene: Scene, cell: Chosen) -> None:
    """All bands as matrices of their own, in the colours of the whole."""
    canvas, theme, which = scene.canvas, scene.theme, cell.which
    heads = scene.step(f"{which}_heads")  # (h, n, d_k)
    bands, n, d_k = heads.shape
    group = scene.trace.sizes["h"] // bands
    limit, colour = signed_limit(scene.step(which)), colour_of(scene, which)
    start = _APART[0]
    canvas.text(start, ALONE_TOP - 44, f"{scene.words['cut']} = {bands}×{n}×{d_k}", size=17, bold=True)
    gap = 14.0 if bands <= 8 else 7.0
    most = (_APART[1] - start - (bands - 1) * gap) / bands
    each = min(most, 240.0)
    for i in range(bands):
        x = start + i * (each + gap)
        drawn = blocks(heads[i], (MOST[0], min(64, int(2 * each))))
        rows, columns = drawn.values.shape
        cells = Cells(spans(x, x + each, columns), spans(ALONE_TOP, ALONE_TOP + height_of(rows, _ROOM), rows))
        canvas.signed(drawn.values, cells, limit)
        canvas.raster.frame(cells.box, colour, 2.0 if bands <= 8 else 1.0)
        chosen = i == cell.head // group
        label = f"{which}<sub>{i + 1}</sub>" if each >= 24 else str(i + 1)
        ink = theme.ink if chosen else theme.soft
        canvas.text(cells.box.x, ALONE_TOP - 15, label, size=17, colour=ink, bold=chosen, anchor="center")
        if chosen:
            canvas.outline(cells.box, theme.ink, 3.5)
        few = Cells(spans(x, x + each, 1), spans(cells.box.top, cells.box.bottom, 3))
        numbers = np.full((3, 1), i + 1.0)
        canvas.pick(numbers, few, scene.words["choose_head"].format(), Pick("", "", (("head", i * group),)))


def by_hand(scene: Scene, cell: Chosen) -> None:
    """The chosen number as a worksheet."""
    words, theme, which = scene.words, scene.theme, cell.which
    colour = colour_of(scene, which)
    heads = scene.trace[f"{which}_heads"]
    band = cell.head * heads.shape[1] // scene.trace.sizes["h"]
    column = band * heads.shape[-1] + cell.feature
    row = "query" if which == "Q" else "key"
    explanation = scene.trace.explain(which, **{row: cell.query}, feature=column)
    token = escape(fit(scene.queries[cell.query], 160, 18))
    place = words["place"].format(head=band + 1, feature=cell.feature + 1)
    text = words["by_hand"].format(letter=which, token=f"<b>{token}</b>", place=place)
    scene.canvas.text(0, _HAND - 30, text, size=17, bold=True)
    small = which.lower()
    sheet = worksheet(explanation)
    bias = "" if sheet.bias is None else " + b"
    formula = f"{small} = x<sub>1</sub> w<sub>1</sub> + x<sub>2</sub> w<sub>2</sub> + …{bias}"
    scene.canvas.text(_APART[1], _HAND - 30, formula, size=17, colour=colour, anchor="right")
    draw_worksheet(
        scene, sheet, top=_HAND,
        names=(("x", theme.X), ("w", colour), ("x × w", theme.ink)), colour=colour,
        limits=(signed_limit(scene.step("X")), signed_limit(scene.weight_matrix(which))),
    )  # fmt: skip
