"""A sum of products by hand: two rows of factors, the row of their products, and the sum."""

from __future__ import annotations

import numpy as np

from mha_core.figures.geometry import Box, Cells, spans
from mha_core.figures.labels import text_width
from mha_core.figures.raster import signed_levels
from mha_core.figures.scene import Scene
from mha_core.figures.theme import ink_on, signed_limit
from mha_core.worksheet import Worksheet

__all__ = ["decimal_text", "draw_worksheet", "small_text"]

_ROW = 25
_LEFT, _RIGHT = 66, 950  # px
_WIDEST = 110


def decimal_text(value: float, decimals: int) -> str:
    """A number with so many decimals, as cells print it.

    >>> [decimal_text(value, 3) for value in (-0.5, 12.0, -0.0001)], decimal_text(-2.0, 0)
    (['−.500', '12.000', '.000'], '−2')
    """
    text = f"{value:.{decimals}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    sign, digits = ("−", text[1:]) if text.startswith("-") else ("", text)
    return sign + (digits[1:] if digits.startswith("0.") else digits)


def small_text(value: float) -> str:
    """A deviation: 0 only where it is 0, "< 10⁻⁶" for what is rounding, else two digits.

    >>> [small_text(value) for value in (0.0, 3e-8, 0.00071, 0.0123, 0.5)]
    ['0', '< 10⁻⁶', '7·10⁻⁴', '.012', '.50']
    """
    if value == 0:
        return "0"
    if value < 1e-6:
        return "< 10⁻⁶"
    if value >= 0.001:
        return decimal_text(value, 3 if value < 0.1 else 2)
    digit, _, exponent = f"{value:.0e}".partition("e-")
    return f"{digit}·10⁻" + str(int(exponent)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def draw_worksheet(
    scene: Scene,
    sheet: Worksheet,
    *,
    top: float,
    names: tuple[tuple[str, str], tuple[str, str], tuple[str, str]],
    colour: str,
    limits: tuple[float, float],
) -> Box:
    """Draw it from ``top`` (the row of place numbers above it), three rows of 25 px.

    Args:
        names: letter and colour of the left factors, the right ones, and the products.
        colour: of the sum.
        limits: of the two factors' colour scales.

    Returns:
        Around the cells.
    """
    canvas, theme = scene.canvas, scene.theme
    count = len(sheet.index) + bool(sheet.more)
    width = min(_WIDEST, (_RIGHT - _LEFT) / count)
    x = spans(_LEFT, _LEFT + count * width, count)
    usual = 0 if sheet.integers else 3
    rows = (
        (sheet.left, limits[0], usual, 0.0),
        (sheet.right, limits[1], usual, 0.0),
        (sheet.products, signed_limit(np.array(sheet.products)), sheet.decimals, 5.0),
    )
    tops = []
    for place, ((numbers, limit, decimals, below), (name, ink)) in enumerate(zip(rows, names, strict=True)):
        y = top + place * (_ROW + 3) + below
        tops.append(y)
        written = len(sheet.index)
        cells = Cells(spans(_LEFT, _LEFT + written * width, written), spans(y, y + _ROW, 1))
        levels = signed_levels(np.array([numbers]), limit)
        canvas.raster.cells(levels, cells)
        canvas.raster.frame(cells.box, ink, 2)
        canvas.text(_LEFT - 9, y + _ROW / 2, name, size=17, colour=ink, bold=True, anchor="right")
        for j, number in enumerate(numbers):
            on = ink_on(canvas.raster.colour(int(levels[0, j])))
            text = decimal_text(number, decimals)
            size = min(14.0, 14 * (width - 3) / max(1.0, text_width(text, 14)))
            canvas.text(float(x.middles[j]), y + _ROW / 2, text, size=size, colour=on, anchor="center")
    for j, index in enumerate(sheet.index):
        canvas.text(float(x.middles[j]), top - 10, str(index + 1), size=13, colour=theme.soft, anchor="center")
    box = Box(_LEFT, top, _LEFT + count * width, tops[-1] + _ROW)
    if sheet.more:
        middle = float(x.middles[-1])
        more = scene.words["more"].format(count=sheet.more)
        canvas.text(middle, top - 10, more, size=13, colour=theme.soft, anchor="center")
        for y in tops[:2]:
            canvas.text(middle, y + _ROW / 2, "…", size=15, colour=theme.soft, anchor="center")
        rest = decimal_text(sheet.rest, sheet.decimals) if sheet.rest else "0"
        canvas.text(middle, tops[2] + _ROW / 2, rest, size=14, anchor="center")
    _sum(scene, sheet, box.right + 14, tops[2] + _ROW / 2, colour)
    return box


def _sum(scene: Scene, sheet: Worksheet, x: float, y: float, colour: str) -> None:
    """Σ (+ b) = the number."""
    equal = "=" if sheet.exact else "≈"
    total = decimal_text(sheet.total, sheet.decimals)
    text = f"Σ {equal} {total}"
    if sheet.bias is not None:
        bias = decimal_text(sheet.bias, sheet.decimals)
        scene.canvas.text(x, y - 27, f"b = {bias}", size=16, colour=colour)
        text = f"Σ + b {equal} {total}"
    scene.canvas.text(x, y, text, size=18, colour=colour, bold=True)
