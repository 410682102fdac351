"""The heads of a trained model, what each looks at, and what becomes of the targets without some of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mha_core.figures.canvas import Canvas
from mha_core.figures.geometry import Array, Box, Cells, spans
from mha_core.figures.hues import head_hues
from mha_core.figures.labels import fit, text_width
from mha_core.figures.picture import Picture
from mha_core.figures.theme import Theme, theme_named
from mha_core.figures.training import floor_share

__all__ = ["ABLATION_WORDS", "ablation"]

ABLATION_WORDS: Mapping[str, str] = {
    "right": "How often each target is right", "all": "all heads", "now": "without head {heads}", "off": "off",
    "head": "head {head}", "query": "query", "key": "key",
}  # fmt: skip
"""English; {head} counts from 1, {heads} lists those that are off."""

WIDTH = 1130
_EDGE, _GAP, _TOP = 76, 26, 58
_MOST_ACROSS = 4
_ROW = 34


def ablation(
    maps: Array,
    names: Sequence[str],
    off: Sequence[int],
    targets: Sequence[str],
    before: Sequence[float],
    now: Sequence[float],
    labels: Sequence[str],
    *,
    numbers: Sequence[str] = (),
    words: Mapping[str, str] = ABLATION_WORDS,
    theme: str = "light",
) -> Picture:
    """Every head's map with its name; below, each target with all heads (outlined) and with those that are on.

    Args:
        maps: weights, (head, query, key).
        names: what each head does, safe for Plotly; may be empty strings.
        off: heads that are switched off, from 0.
        targets: names, safe for Plotly; the last one is drawn as the sum of the others.
        before, now: the share of right answers of each target, with all heads and without those that are off.
        labels: of the tokens, safe for Plotly.
        numbers: how the heads are numbered; 1, 2, … when empty.
        words: see :data:`ABLATION_WORDS`.
        theme: "light" or "dark".
    """
    colours = theme_named(theme)
    h = len(maps)
    numbers = numbers or [str(head + 1) for head in range(h)]
    across = min(h, _MOST_ACROSS)
    down = math.ceil(h / across)
    size = 180 if down == 1 else 150
    pitch = size + _TOP
    bars_top = down * pitch + 66
    canvas = Canvas(WIDTH, bars_top + len(targets) * _ROW, colours)
    hues = head_hues(colours, max(2, h))
    column = (WIDTH - (_MOST_ACROSS - 1) * _GAP) / _MOST_ACROSS
    for head in range(h):
        row, place = divmod(head, across)
        left, top = round(place * (column + _GAP)), row * pitch + _TOP - 10
        title, place_of = words["head"].format(head=numbers[head]), (left, top, size, column)
        name = words["off"] if head in off else names[head]
        _map(canvas, maps[head], place_of, title, name, head in off, hues[head], labels, words)
    _bars(canvas, colours, bars_top, [numbers[head] for head in sorted(off)], targets, before, now, words)
    return canvas.picture()


def _map(
    canvas: Canvas, weights: Array, at: tuple[int, int, float, float], head: str, name: str, off: bool, hue: str,
    labels: Sequence[str], words: Mapping[str, str],
) -> None:  # fmt: skip
    left, top, size, column = at
    theme, n = canvas.theme, len(labels)
    cell = math.floor(2 * size / n) / 2
    x, y = left + _EDGE - 30, top
    cells = Cells(spans(x, x + n * cell, n), spans(y, y + n * cell, n))
    title = f"{head} · {name}" if name else head
    ink = theme.soft if off else hue
    canvas.text(x, top - 30, fit(title, column - 40, 17), size=17, bold=True, colour=ink)
    if off:
        canvas.masked(np.ones_like(weights, bool), cells)
    else:
        canvas.weights(weights, cells, 0.6)
        template = f"{head}<br>{words['query']} %{{y}} → {words['key']} %{{x}}"
        canvas.hover(weights, cells, f"{template}<br><b>%{{z:.3f}}</b>", rows=labels, columns=labels)
    canvas.outline(cells.box, ink, 2)
    every = math.ceil(13 / cell) if cell < 13 else 1
    longest = max(text_width(label, 12) for label in labels)
    for index in range(0, n, every):
        label = fit(labels[index], 40, 12)
        canvas.text(x - 5, float(cells.y.middles[index]), label, size=12, colour=theme.soft, anchor="right")
        if longest <= cell:
            canvas.text(
                float(cells.x.middles[index]), y - 9, label, size=12, colour=theme.soft, anchor="center"
            )  # fmt: skip


def _bars(
    canvas: Canvas, theme: Theme, top: int, off: Sequence[str], targets: Sequence[str], before: Sequence[float],
    now: Sequence[float], words: Mapping[str, str],
) -> None:  # fmt: skip
    heads = " + ".join(off)  # in any language
    title = words["right"] + (f" · {words['now'].format(heads=heads)}" if off else f" · {words['all']}")
    canvas.text(0, top - 28, title, size=17, bold=True)
    left, right = 150, WIDTH - 190
    for row, (target, was, share) in enumerate(zip(targets, before, now, strict=True)):
        y = top + row * _ROW + 10
        last = row == len(targets) - 1
        canvas.text(0, y, target, size=16, bold=last)
        bar = Box(left, y - 10, right, y + 10)
        canvas.raster.fill(bar, theme.mask)
        colour = theme.ink if last else theme.soft  # the hues are heads'
        canvas.raster.fill(bar._replace(right=left + max(1.0, share * bar.width)), colour)
        canvas.outline(bar._replace(right=left + max(2.0, was * bar.width)).grow(-1), theme.ink, 1.5)
        text = floor_share(share)
        canvas.text(right + 14, y, text, size=18, bold=True)
        if off:
            canvas.text(right + 66, y, f"← {floor_share(was)}", size=15, colour=theme.soft)
