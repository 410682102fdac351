"""One number of the output as steps, each beginning where the last one ended."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mha_core.figures.geometry import Box, Cells, spans
from mha_core.figures.hues import head_hues
from mha_core.figures.labels import escape, fit, text_width
from mha_core.figures.output_cell import Cell
from mha_core.figures.pick import Pick
from mha_core.figures.scene import Scene

__all__ = ["waterfall_bars"]

_TITLE, _TOP, _BOTTOM = 446, 488, 616  # px
_LABEL = 14.0
_CELL = 40  # px: no cell that can be chosen is larger, or it would reach beyond the bars


def waterfall_bars(
    scene: Scene, cell: Cell, values: Sequence[float], total: float, decimals: int | None, left: float, right: float
) -> None:
    """Each step begins where the last one ended; the last bar is the output.

    Args:
        values: what each head brings, then b_O where there is one.
        decimals: with which the written values add up; None where they do not.
    """
    canvas, theme, words, h = scene.canvas, scene.theme, scene.words, scene.trace.sizes["h"]
    token = f"<b>{escape(fit(scene.queries[cell.query], 160, 17))}</b>"
    title = words["one_number"].format(token=token, feature=cell.feature + 1)
    canvas.text(0, _TITLE, title, size=17)

    ends = np.cumsum([0.0, *values])
    low, high = min(0.0, float(ends.min()), total), max(0.0, float(ends.max()), total)
    pitch = (right - left) / (len(values) + 1)
    texts = [_signed_text(value, 3 if decimals is None else decimals) for value in values]
    equals = "" if decimals is not None else "≈ "
    total_text = equals + _signed_text(total, 3 if decimals is None else decimals).removeprefix("+")
    lying = max(text_width(text, _LABEL) for text in [*texts, total_text]) <= pitch + 6
    top = _TOP if lying else _TOP + 24
    scale = (_BOTTOM - top) / (high - low) if high > low else 0.0

    def y(value: float) -> float:
        return round(_BOTTOM - (value - low) * scale)

    zero = y(0.0)
    canvas.raster.fill(Box(left - 6, zero, right, zero + 1), theme.soft)
    canvas.text(left - 12, zero, "0", size=13, colour=theme.soft, anchor="right")
    hues = [*head_hues(theme, h), theme.soft]
    bar = min(64.0, 0.66 * pitch)
    for index in range(len(values) + 1):
        is_total = index == len(values)
        start, end = (0.0, total) if is_total else (float(ends[index]), float(ends[index + 1]))
        x = left + (index + 0.5) * pitch
        upper, lower = min(y(start), y(end)), max(y(start), y(end))
        box = Box(x - bar / 2, upper, x + bar / 2, max(lower, upper + 2))
        colour = theme.output if is_total else hues[min(index, h)]
        on = is_total or index >= h or cell.kept[index]
        if on:
            canvas.raster.fill(box, colour)
        if not is_total:
            canvas.raster.fill(
                Box(x + (bar / 2 if on else -bar / 2), y(end), x + pitch - bar / 2, y(end) + 1), theme.soft
            )
        if is_total or index == cell.head:
            canvas.outline(box, theme.ink, 2)
        if index < h:
            _pick(scene, index, values[index], Box(x - pitch / 2, _TOP, x + pitch / 2, _BOTTOM))
        name = words["output"] if is_total else str(index + 1) if index < h else "b<sup>O</sup>"
        text = total_text if is_total else texts[index] if on else words["off"]
        bold = is_total or index == cell.head
        if lying:
            canvas.text(x, upper - 12, text, size=_LABEL, bold=bold, anchor="center")
        else:
            canvas.rotated(x, upper - 5, text, size=12, bold=bold)
        size = 15 if h <= 8 else 13
        canvas.text(
            x, _BOTTOM + 14, name, size=size, bold=bold, anchor="center", colour=theme.ink if on else theme.soft
        )


def _pick(scene: Scene, head: int, value: float, box: Box) -> None:
    """A click on a bar, or above or below it, chooses its head."""
    across, down = math.ceil(box.width / _CELL), math.ceil(box.height / _CELL)
    cells = Cells(spans(box.left, box.right, across), spans(box.top, box.bottom, down))
    names = [scene.words["head"].format(head=head + 1)] * across
    meaning = Pick("", "", (("head", head),))
    scene.canvas.pick(
        np.full((down, across), value), cells, "%{x}<br><b>%{customdata:+.4g}</b>", meaning, columns=names
    )


def _signed_text(value: float, decimals: int) -> str:
    """+.242, −.043: always a sign, no 0 before the point.

    >>> _signed_text(0.2419, 3), _signed_text(-2.0, 2), _signed_text(-0.0001, 2)
    ('+.242', '−2.00', '.00')
    """
    text = f"{abs(value):.{decimals}f}"
    zero = float(text) == 0
    bare = text.removeprefix("0") if "." in text else text
    return bare if zero else ("−" if value < 0 else "+") + bare
