"""Pictures of the experiments on Q, K and V: maps side by side, how far heads move, where cells come from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from mha_core.comparison import Comparison
from mha_core.figures.blocks import blocks
from mha_core.figures.canvas import Canvas
from mha_core.figures.focus import key_names
from mha_core.figures.geometry import Array, Box, Cells, spans
from mha_core.figures.labels import plain_labels, text_width
from mha_core.figures.picture import Picture
from mha_core.figures.raster import weight_levels
from mha_core.figures.scene import Scene
from mha_core.figures.theme import ink_on, limit_text, signed_limit, theme_named
from mha_core.figures.words import WORDS
from mha_core.trace import AttentionTrace
from mha_core.what_if import Nudged

__all__ = ["LAB_WORDS", "Panel", "moved_heads", "panels", "token_sources"]

WIDTH = 1130
_MAP_TOP, _NAMES = 30, 76  # px
_MOST_CELLS = 96  # a side

LAB_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "projected": "Project, then split: a head reads all of X",
        "sliced": "Slice, then project: a head reads its slice",
        "moved": "change of each head's Q, K, V, in % of its size",
        "right": "view(n, h, d<sub>k</sub>), then transpose",
        "wrong": "view(h, n, d<sub>k</sub>)",
        "colours": "colour, and number where it fits: the token that a cell comes from",
    }
)
"""English."""


@dataclass(frozen=True)
class Panel:
    """A map of one head, queries down and keys across.

    Attributes:
        title, note: above and below it, safe to print.
        matrix: (n_q, n_k).
        kind: "weights" (0 … 1) or "scores" (signed).
        limit: of the scores' colours.
    """

    title: str
    note: str
    matrix: Array
    kind: str = "weights"
    limit: float | None = None


def panels(
    trace: AttentionTrace,
    tokens: Sequence[str],
    shown: Sequence[Panel],
    *,
    words: Mapping[str, str] = WORDS,
    theme: str = "light",
) -> Picture:
    """Maps of one head side by side, for an eye that looks for a difference.

    Args:
        trace: whose tokens and mask they have in common.
        tokens: n of them.
        shown: two to four maps.
    """
    names = plain_labels(tokens)
    side = 208.0
    n = len(names)
    size = min(15.0, max(11.0, 0.92 * side / n))
    flat = all(text_width(name, size) <= side / n - 1 for name in names)
    room = 20 if flat else math.ceil(min(_NAMES, max(text_width(name, size) for name in names))) + 4
    top = _MAP_TOP + room
    canvas = Canvas(WIDTH, int(top + side + 30), theme_named(theme))
    scene = Scene(canvas, trace, 0, names, names, None, {**WORDS, **words})
    step = (WIDTH - 90 - side) / max(1, len(shown) - 1)
    pitch = min(step, side + 66.0)
    for place, panel in enumerate(shown):
        x = 84 + place * pitch
        _map(scene, panel, Box(x, top, x + side, top + side), named=place == 0)
    return canvas.picture()


def _map(scene: Scene, panel: Panel, box: Box, *, named: bool) -> None:
    canvas, theme, words = scene.canvas, scene.theme, scene.words
    drawn = blocks(panel.matrix, (_MOST_CELLS, _MOST_CELLS))
    rows, columns = drawn.values.shape
    cells = Cells(spans(box.left, box.right, columns), spans(box.top, box.bottom, rows))
    gap = 1.0 if box.width / max(rows, columns) >= 8 else 0.0
    canvas.raster.fill(box, theme.grid)
    ink = theme.weights if panel.kind == "weights" else theme.ink
    canvas.raster.frame(box, ink, 2)
    finite = np.where(np.isneginf(drawn.values), np.nan, drawn.values)
    at = f"{words['query']} %{{y}} → {words['key']} %{{x}}<br><b>%{{z:.4g}}</b>"
    if panel.kind == "weights":
        canvas.weights(drawn.values, cells, gap)
    else:
        limit = panel.limit or signed_limit(drawn.values)
        canvas.signed(drawn.values, cells, limit, gap)
        text = limit_text(limit)
        canvas.text(box.right, _MAP_TOP - 12, text, size=13, colour=theme.soft, anchor="right", mono=True)
    names = [scene.row_names(scene.queries, starts) for starts in (drawn.row_starts, drawn.column_starts)]
    canvas.hover(finite, cells, at, rows=names[0], columns=names[1])
    canvas.text(box.left - 2, _MAP_TOP - 14, panel.title, size=17, colour=ink, bold=True)
    canvas.text(box.left, box.bottom + 16, panel.note, size=15)
    key_names(scene, cells)
    if named:
        scene.row_labels(box.left - 6, cells, scene.queries, box.left - 10)
        if max(drawn.size) > 1:
            note = words["largest_square"].format(rows=drawn.size[0], columns=drawn.size[1])
            canvas.text(WIDTH, box.bottom + 16, note, size=13, colour=theme.soft, anchor="right")


def moved_heads(found: Nudged, *, words: Mapping[str, str] = WORDS, theme: str = "light") -> Picture:
    """Two tables, a column a head: how far its Q, K and V move, projected and sliced."""
    names = {**LAB_WORDS, **words}
    canvas = Canvas(WIDTH, 176, theme_named(theme))
    colours = canvas.theme
    for side, (changes, title, ink) in enumerate(
        ((found.projected, names["projected"], colours.ink), (found.sliced, names["sliced"], colours.soft))
    ):
        left = 30 + side * 580
        canvas.text(left - 28, 14, title, size=17, bold=True)
        matrix = np.stack([changes[f"{letter}_heads"].numpy() for letter in "QKV"])  # (3, h)
        h = matrix.shape[1]
        width = min(510.0 / h, 120.0)
        cells = Cells(spans(left, left + h * width, h), spans(58, 58 + 3 * 32, 3))
        levels = weight_levels(np.nan_to_num(matrix, posinf=1.0))
        canvas.raster.fill(cells.box, colours.grid)
        canvas.raster.cells(levels, cells, 1.0)
        canvas.raster.frame(cells.box, ink, 2)
        for row, letter in enumerate("QKV"):
            y = float(cells.y.middles[row])
            colour = {"Q": colours.Q, "K": colours.K, "V": colours.V}[letter]
            canvas.text(left - 9, y, letter, size=18, colour=colour, bold=True, anchor="right")
            for head in range(h):
                x = float(cells.x.middles[head])
                text = _percent(float(matrix[row, head]))
                size = min(15.0, 15 * (width - 3) / text_width(text, 15))
                on = ink_on(canvas.raster.colour(int(levels[row, head])))
                canvas.text(x, y, text, size=size, colour=on, anchor="center")
        for head in range(h):
            own = head == found.owner
            canvas.text(
                float(cells.x.middles[head]), 44, str(head + 1), size=15, bold=own,
                colour=colours.ink if own else colours.soft, anchor="center",
            )  # fmt: skip
    canvas.text(2, 166, names["moved"], size=13, colour=colours.soft)
    return canvas.picture()


def _percent(share: float) -> str:
    """How far something moved; 0 only where it did not move at all.

    >>> [_percent(share) for share in (0.0, 0.004, 0.123, 2.5, math.inf)]
    ['0', '<1', '12', '250', '∞']
    """
    if share == 0:
        return "0"
    return "∞" if math.isinf(share) else "<1" if share < 0.01 else f"{100 * share:.0f}"


def token_sources(
    trace: AttentionTrace,
    split: Comparison,
    tokens: Sequence[str],
    *,
    words: Mapping[str, str] = WORDS,
    theme: str = "light",
) -> Picture:
    """Which token each cell of each head comes from: the right split above the wrong one."""
    names = {**LAB_WORDS, **words}
    right, wrong = (pair.numpy() for pair in split.evidence["token"])  # (h, n, d_k) each
    h, n = right.shape[:2]
    room = min(max(60.0, 16.0 * n), 176.0)
    canvas = Canvas(WIDTH, int(2 * (room + 62) + 22), theme_named(theme))
    colours = canvas.theme
    labels = plain_labels(tokens)
    scene = Scene(canvas, trace, 0, labels, labels, None, {**WORDS, **words})
    gap = 14.0 if h <= 8 else 8.0
    each = min((WIDTH - 90 - (h - 1) * gap) / h, 250.0)
    for half, (sources, title, ink) in enumerate(
        ((right, names["right"], colours.Q), (wrong, names["wrong"], colours.soft))
    ):
        top = half * (room + 62) + 50
        canvas.text(0, top - 36, title, size=17, bold=True)
        for head in range(h):
            x = 84 + head * (each + gap)
            shown = blocks(sources[head] + 1, (88, max(1, min(64, int(each / 2)))))
            rows, columns = shown.values.shape
            cells = Cells(spans(x, x + each, columns), spans(top, top + room, rows))
            levels = weight_levels((shown.values - 0.5) / n)
            canvas.raster.cells(levels, cells)
            canvas.raster.frame(cells.box, ink, 1.5)
            canvas.text(
                x + each / 2, top - 13, f"Q<sub>{head + 1}</sub>", size=15, colour=colours.soft, anchor="center"
            )
            _write(canvas, shown.values, levels, cells)
            if head == 0:
                scene.row_labels(78, cells, labels, 74, most=13)
    canvas.text(0, canvas.height - 9, names["colours"], size=13, colour=colours.soft)
    return canvas.picture()


def _write(canvas: Canvas, values: Array, levels: Array, cells: Cells) -> None:
    """The tokens' numbers in the cells, where they fit; a run of equal ones is written once."""
    rows, columns = values.shape
    if cells.box.height / rows < 12:
        return
    for row in range(rows):
        start = 0
        y = float(cells.y.middles[row])
        for column in range(1, columns + 1):
            if column < columns and values[row, column] == values[row, start]:
                continue
            left, right = float(cells.x.starts[start]), float(cells.x.stops[column - 1])
            if right - left >= 16:
                colour = ink_on(canvas.raster.colour(int(levels[row, start])))
                text = str(int(values[row, start]))
                canvas.text((left + right) / 2, y, text, size=12, colour=colour, anchor="center")
            start = column
