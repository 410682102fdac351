"""MHA, GQA, MQA: the maps of the same queries with fewer and fewer key heads, and what the KV cache holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from mha_core.figures.blocks import blocks
from mha_core.figures.canvas import Canvas
from mha_core.figures.geometry import Box, Cells, spans
from mha_core.figures.labels import escape, plain_labels
from mha_core.figures.picture import Picture
from mha_core.figures.quantity import times_text
from mha_core.figures.scene import snap
from mha_core.figures.theme import theme_named
from mha_core.trace import AttentionTrace

__all__ = ["SHARING_WORDS", "Shared", "sharing"]

WIDTH = 1130
_COLUMN, _BETWEEN = 354, 34  # px
_TOP, _ROOM, _BELOW = 44, 432, 116  # px: where the maps begin, how high they may stand, and below them
_FRAME, _NAME = 7, 20  # px around a group of heads, and above it for its name
_MOST_HOVERED = 8  # heads

SHARING_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "mha": "MHA",
        "gqa": "GQA",
        "mqa": "MQA",
        "keys": "h_kv = {h_kv}",
        "cache": "KV cache: {size} a token",
        "same": "as computed above",
        "moved": "output moves by {share}",
        "head": "head {head}",
        "query": "query",
        "key": "key",
        "weight": "weight",
    }
)
"""English."""


@dataclass(frozen=True, eq=False)
class Shared:
    """A column.

    Attributes:
        trace: of a module with so many key heads.
        cache: what its KV cache holds a token, as text.
        share: that, as a share of the first column's.
        moved: by how much its output differs from the first column's, as text; "" for the first.
    """

    trace: AttentionTrace
    cache: str
    share: float
    moved: str


def sharing(
    columns: Sequence[Shared], tokens: Sequence[str], *, words: Mapping[str, str] = SHARING_WORDS, theme: str = "light"
) -> Picture:
    """Up to three columns: all heads' maps, framed in the colour of keys where they share a key head.

    Args:
        columns: the same calculation with fewer and fewer key heads.
        tokens: n of them.
        words: see :data:`SHARING_WORDS`.
        theme: "light" or "dark".

    Raises:
        ValueError: as many tokens as there are not.
    """
    if any(len(tokens) != column.trace.sizes["n_k"] for column in columns):
        raise ValueError(f"{len(tokens)} tokens for n={columns[0].trace.sizes['n_k']}; give one for each")
    h = columns[0].trace.sizes["h"]
    across, side = _grid(h, [h // column.trace.sizes["h_kv"] for column in columns])
    bottom = _TOP + h // across * _pitch(side)[1] + _FRAME
    canvas = Canvas(WIDTH, round(bottom) + _BELOW, theme_named(theme))
    names = [escape(name) for name in plain_labels(tokens)]
    for place, column in enumerate(columns):
        left = place * (_COLUMN + _BETWEEN)
        _title(canvas, column, left, words)
        _maps(canvas, column.trace, left, across, side, names, words)
        _cache(canvas, column, left, words)
    return canvas.picture()


def _title(canvas: Canvas, column: Shared, left: float, words: Mapping[str, str]) -> None:
    h, h_kv = column.trace.sizes["h"], column.trace.sizes["h_kv"]
    name = words["mha" if h_kv == h else "mqa" if h_kv == 1 else "gqa"]
    canvas.text(left, 16, name, size=22, bold=True)
    note = words["keys"].format(h_kv=h_kv)
    canvas.text(left + _COLUMN, 18, note, size=16, bold=True, colour=canvas.theme.K, anchor="right")


def _grid(h: int, groups: Sequence[int]) -> tuple[int, float]:
    """How many maps stand in a row, and their side: the largest that let every group be a rectangle."""
    fitting = {}
    for across in range(1, h + 1):
        if h % across == 0 and all(group % across == 0 or across % group == 0 for group in groups):
            down = h // across
            wide, high = _COLUMN / across - 2 * _FRAME, (_ROOM - _NAME) / down - 2 * _FRAME - _NAME + 4
            fitting[across] = min(wide, high)
    enough = 0.8 * max(fitting.values())  # of those that are nearly as large, the flattest
    return max((across, side) for across, side in fitting.items() if side >= enough)


def _pitch(side: float) -> tuple[float, float]:
    """From one map to the next, across and down."""
    return side + 2 * _FRAME, side + 2 * _FRAME + _NAME - 4


def _maps(
    canvas: Canvas, trace: AttentionTrace, left: float, across: int, side: float, names: Sequence[str],
    words: Mapping[str, str],
) -> None:  # fmt: skip
    theme, h, h_kv = canvas.theme, trace.sizes["h"], trace.sizes["h_kv"]
    group, pitch = h // h_kv, _pitch(side)
    weights, scores = trace["weights"].sel(batch=0).numpy(), trace["masked_scores"].sel(batch=0).numpy()
    most = max(1, int(side))

    def corner(head: int) -> tuple[float, float]:
        row, column = divmod(head, across)
        return left + column * pitch[0] + _FRAME, _TOP + row * pitch[1] + _NAME

    for number, first in enumerate(range(0, h, group)):
        (x0, y0), (x1, y1) = corner(first), corner(first + group - 1)
        if group >= across:
            x0, x1 = corner(0)[0], corner(across - 1)[0]
        frame = Box(x0 - _FRAME + 2, y0 - _NAME + 1, x1 + side + _FRAME - 2, y1 + side + _FRAME - 2)
        canvas.raster.fill(frame, theme.tint)
        canvas.raster.frame(frame.grow(-1), theme.K, 1.5 if group == 1 else 3)
        index = f"<sub>{number + 1}</sub>"
        key = f"K{index} V{index}" if side >= 60 else f"K{index}" if side >= 40 else ""
        canvas.text(x1 + side, y0 - 9, key, size=13, colour=theme.K, bold=True, anchor="right")
    for head in range(h):
        x, y = corner(head)
        drawn = blocks(weights[head], (most, most))
        rows, columns = drawn.values.shape
        width, height = snap(side, columns), snap(side, rows)
        cells = Cells(spans(x, x + width, columns), spans(y, y + height, rows))
        canvas.raster.fill(cells.box, theme.grid)
        canvas.weights(drawn.values, cells, 1.0 if width / columns >= 8 else 0.0)
        canvas.masked(np.isneginf(blocks(scores[head], (most, most)).values), cells)
        canvas.text(x, y - 9, f"{head + 1}", size=12 if side < 60 else 14, bold=True)
        if h <= _MOST_HOVERED and width / columns >= 4 and drawn.size == (1, 1):
            at = f"{words['query']} %{{y}} → {words['key']} %{{x}}<br>{words['weight']} <b>%{{z:.3f}}</b>"
            template = f"{words['head'].format(head='%{customdata}')}<br>{at}"
            numbers = np.full(drawn.values.shape, head + 1)
            canvas.hover(drawn.values, cells, template, rows=names, columns=names, numbers=numbers)


def _cache(canvas: Canvas, column: Shared, left: float, words: Mapping[str, str]) -> None:
    """A bar as long as the share of MHA's cache, its size, and what it costs."""
    theme, top = canvas.theme, canvas.height - 92
    canvas.raster.fill(Box(left, top, left + _COLUMN, top + 22), theme.mask)
    canvas.raster.fill(Box(left, top, left + max(3, round(_COLUMN * column.share)), top + 22), theme.K)
    canvas.text(left, top + 40, words["cache"].format(size=column.cache), size=17, bold=True)
    canvas.text(left + _COLUMN, top + 40, times_text(column.share), size=17, bold=True, colour=theme.K, anchor="right")
    note = words["moved"].format(share=column.moved) if column.moved else words["same"]
    canvas.text(left, top + 66, note, size=15, colour=theme.soft)
