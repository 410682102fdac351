"""Of the picture "order": the tokens' ways, one head's map before and after, and all cases side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mha_core.figures.blocks import blocks
from mha_core.figures.deviation import deviation_text
from mha_core.figures.geometry import Box, Cells, spans
from mha_core.figures.hues import head_hues
from mha_core.figures.labels import fit, text_width
from mha_core.figures.output_cell import whole
from mha_core.figures.pick import Pick
from mha_core.figures.raster import signed_levels
from mha_core.figures.scene import Scene, snap
from mha_core.figures.theme import signed_limit
from mha_core.order import CASES, Reordered

__all__ = ["all_cases", "both_maps", "nought", "ways"]

_TITLE, _TOP, _BOTTOM = 370, 386, 488  # px
_MAPS, _CASES, _RIGHT = 98, 380, 1128  # px
_SIDE = 102
_TAG, _APART = 5, 3  # px: a token's colour beside its row
_HUES = 12  # more colours cannot be told apart


def ways(scene: Scene, shown: Reordered, boxes: tuple[Box, Box, Box], token: int) -> None:
    """A line from each token to its new place, and one from there back; the chosen token's is thick."""
    canvas, place, n = scene.canvas, shown.place, len(shown.order)
    room = 108.0 if shown.placed else 22 + min(76.0, max(text_width(name, 15) for name in scene.queries))
    hues = head_hues(scene.theme, min(n, _HUES))
    pitch = boxes[0].height / n
    before, after, back = boxes
    tags = ((before.right + _APART, 0), (after.left - _APART - _TAG, 1), (after.right + _APART, 1))
    for i in (*(j for j in range(n) if j != token), token):
        hue = hues[i * len(hues) // n]
        there, here = (before.top + (at + 0.5) * pitch for at in (place[i], i))
        for x, moved in (*tags, (back.left - _APART - _TAG, 0)):
            y = there if moved else here
            high = max(1.0, pitch - 2) / 2
            canvas.raster.fill(Box(x, y - high, x + _TAG, y + high), hue)
        width = 4.0 if i == token else 2.0 if pitch >= 6 else 1.0
        for (x0, y0), (x1, y1) in (
            ((before.right + 10, here), (after.left - room, there)),
            ((after.right + 10, there), (back.left - 10, here)),
        ):
            bend = (x1 - x0) / 2
            path = f"M{x0:g},{y0:.4g}C{x0 + bend:g},{y0:.4g} {x1 - bend:g},{y1:.4g} {x1:g},{y1:.4g}"
            canvas.stroke(path, hue, width)


def both_maps(scene: Scene, shown: Reordered, covered: bool) -> None:
    """The focus head's weights of both sentences; the second is named P A Pᵀ where it is."""
    canvas, theme, words, head = scene.canvas, scene.theme, scene.words, scene.head
    index = f"<sub>{head + 1}</sub>"
    moved = tuple(scene.queries[i] for i in shown.order)
    follows = not covered and shown.map_follows
    titles = (f"A{index}", f"A′{index} = P A{index} P<sup>T</sup>" if follows else f"A′{index}")
    forbidden = shown.forbidden.numpy()
    side = snap(_SIDE, len(forbidden))
    for x, title, weights, names in zip(
        (_MAPS, _MAPS + _SIDE + 34), titles, shown.weights, (scene.queries, moved), strict=True
    ):
        drawn = blocks(weights.numpy(), (64, 64))
        n = drawn.values.shape[0]
        cells = Cells(spans(x, x + side, n), spans(_TOP, _TOP + side, n))
        canvas.raster.frame(cells.box, theme.weights, 2)
        canvas.text(x - 2, _TITLE, title, size=16, colour=theme.weights, bold=True)
        if covered and names is moved:
            hide(scene, cells.box, 30)
            continue
        canvas.weights(drawn.values, cells)
        canvas.masked(blocks(np.where(forbidden, 1.0, 0.0), (64, 64)).values > 0, cells)
        rows = scene.row_names(names, drawn.row_starts)
        template = f"{words['query']} %{{y}} → {words['key']} %{{x}}<br>{words['weight']} <b>%{{z:.4f}}</b>"
        canvas.hover(drawn.values, cells, template, rows=rows, columns=rows)
        if n > 1 and float(np.ptp(weights.numpy())) < 1e-6:  # nothing to choose by: say so, it looks like no map
            canvas.text(cells.box.x, cells.box.y, f"1/{len(names)}", size=20, bold=True, anchor="center")
    canvas.text(_MAPS - 10, _TOP + 12, words["head"].format(head=head + 1), size=15, anchor="right")


def all_cases(scene: Scene, cases: Mapping[str, Reordered], case: str, covered: bool) -> None:
    """What is left in each case, in the scale of its own outputs, side by side. A click chooses the case."""
    canvas, theme, words = scene.canvas, scene.theme, scene.words
    gap = 22
    width = (_RIGHT - _CASES - (len(cases) - 1) * gap) // len(cases)  # whole pixels, as frames are
    for index, (name, found) in enumerate(cases.items()):
        x = _CASES + index * (width + gap)
        box = Box(x, _TOP, x + width, _BOTTOM - 26)
        chosen = name == case
        canvas.text(x - 2, _TITLE, fit(words[name], width, 16), size=16, bold=chosen)
        if covered:
            hide(scene, box, 30)
        else:
            _left(scene, found, box)
            size = words["largest"].format(size=f"<b>{deviation_text(found.largest)}</b>")
            canvas.text(x - 2, _BOTTOM - 10, size, size=15)
        canvas.raster.frame(box, theme.output, 2)
        if chosen:
            canvas.outline(box, theme.ink, 3.5)
        _choice(scene, words[name], box, CASES.index(name), found.largest)


def nought(scene: Scene, box: Box, size: float) -> None:
    """A matrix that is nothing but rounding errors of 0: its colour, and "0", large."""
    scene.canvas.raster.cells(signed_levels(np.zeros((1, 1)), 1.0), whole(box))
    scene.canvas.text(box.x, box.y, "0", size=min(size, box.height), bold=True, anchor="center")


def hide(scene: Scene, box: Box, size: float) -> None:
    """A hatched box with a question mark."""
    scene.canvas.masked(np.ones((1, 1), bool), whole(box))
    scene.canvas.text(box.x, box.y, "?", size=size, bold=True, anchor="center")


def _left(scene: Scene, found: Reordered, box: Box) -> None:
    if found.follows:
        nought(scene, box, 30)
        return
    drawn = blocks(found.difference.numpy(), (int(box.height / 2), 64))
    rows, columns = drawn.values.shape
    cells = Cells(spans(box.left, box.right, columns), spans(box.top, box.bottom, rows))
    scene.canvas.signed(drawn.values, cells, signed_limit(found.before.numpy()))


def _choice(scene: Scene, name: str, box: Box, index: int, largest: float) -> None:
    """The whole box chooses the case: markers close enough that none reaches beyond it."""
    across = 4
    cells = Cells(spans(box.left, box.right, across), spans(box.top, box.bottom, 2))
    meaning = Pick("", "", (("order_case", index),))
    scene.canvas.pick(np.full((2, across), largest), cells, "%{x}", meaning, columns=[name] * across)
