"""One number by hand: operands, products and their sum as a worksheet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mha_core.by_hand import Worksheet, digits, score_sheet, value_sheet
from mha_core.figures.geometry import Array, Box, Cells, spans
from mha_core.figures.labels import escape, fit, text_width
from mha_core.figures.raster import signed_levels, weight_levels
from mha_core.figures.scene import Scene
from mha_core.figures.theme import ink_on, signed_limit

__all__ = ["hand_height", "hand_score", "hand_value"]

_LEFT, _RIGHT = 96, 1016  # px, of the columns
_COLUMN = 64  # px, the widest
_ROW, _BETWEEN = 26, 5  # px
_FIRST = 46  # px from the top to the first row


def hand_height() -> float:
    """In pixels."""
    return _FIRST + 3 * _ROW + 2 * _BETWEEN + 8


def hand_score(scene: Scene, query: int, key: int, feature: int, top: float) -> None:
    """q, k, their products feature by feature, and the raw score."""
    theme, words = scene.theme, scene.words
    names = escape(fit(scene.queries[query], 150, 18)), escape(fit(scene.keys[key], 150, 18))
    scene.canvas.text(0, top + 12, words["hand_score"].format(query=names[0], key=names[1]), size=18, bold=True)
    sheet = score_sheet(scene.trace, scene.head, query, key)
    short = escape(fit(scene.queries[query], 62, 13)), escape(fit(scene.keys[key], 62, 13))
    rows = [(f"q<sub>{short[0]}</sub>", theme.Q), (f"k<sub>{short[1]}</sub>", theme.K), ("q × k", theme.ink)]
    headers = [str(term.index + 1) for term in sheet.terms]
    _strip(scene, sheet, headers, rows, signed_levels, top, f"Σ = {sheet.total_text}", theme.ink)


def hand_value(scene: Scene, query: int, key: int, feature: int, top: float) -> None:
    """The row of weights, the column of V, their products key by key, and the output's feature."""
    theme, words = scene.theme, scene.words
    name = escape(fit(scene.queries[query], 150, 18))
    title = words["hand_value"].format(query=name, feature=feature + 1)
    scene.canvas.text(0, top + 12, title, size=18, bold=True)
    sheet = value_sheet(scene.trace, scene.head, query, feature)
    short = escape(fit(scene.queries[query], 62, 13))
    rows = [
        (f"A<sub>{short}</sub>", theme.weights),
        (f"V<sub>{words['feature'].format(feature=feature + 1)}</sub>", theme.V),
        ("A × V", theme.ink),
    ]
    headers = [scene.keys[term.index] for term in sheet.terms]

    def shares(row: Array, limit: float) -> Array:
        return weight_levels(row)

    total = f"z<sub>{feature + 1}</sub> = {sheet.total_text}"
    _strip(scene, sheet, headers, rows, shares, top, total, theme.weights)


def _row_texts(row: Sequence[float], text: Callable[[float], str]) -> list[str]:
    """Whole numbers without decimals where all of the row are such."""
    whole = all(value == round(value) for value in row)
    return [digits(value, 0) if whole else text(value) for value in row]


def _strip(
    scene: Scene,
    sheet: Worksheet,
    headers: Sequence[str],
    rows: Sequence[tuple[str, str]],
    first_levels: Callable[[Array, float], Array],
    top: float,
    total: str,
    total_colour: str,
) -> None:
    """Three rows of numbers: the first factors, the second, and the products; the sum at the right."""
    canvas, theme = scene.canvas, scene.theme
    count = len(sheet.terms)
    width = min(_COLUMN, (_RIGHT - _LEFT) / (count + (1.4 if sheet.rest else 0)))
    products = [term.product for term in sheet.terms]
    numbers = [[term.factors[0] for term in sheet.terms], [term.factors[1] for term in sheet.terms], products]
    columns = spans(_LEFT, _LEFT + count * width, count)
    for j, header in enumerate(headers):
        name = escape(fit(header, width - 2, 13))
        canvas.text(float(columns.middles[j]), top + 35, name, size=13, colour=theme.soft, anchor="center")
    printed = (sheet.factor_text, sheet.factor_text, sheet.product_text)
    texts = [_row_texts(row, text) for row, text in zip(numbers, printed, strict=True)]
    longest = max((text_width(text, 14) for row in texts for text in row), default=1.0)
    size = max(10.0, min(14.0, 14 * (width - 3) / longest))
    y = top + _FIRST
    for place, (label, colour) in enumerate(rows):
        row = np.array([numbers[place]])
        cells = Cells(columns, spans(y, y + _ROW, 1))
        levels = (first_levels if place == 0 else signed_levels)(row, signed_limit(row))
        canvas.raster.cells(levels, cells)
        canvas.raster.frame(cells.box, colour, 2)
        canvas.text(_LEFT - 8, cells.box.y, label, size=17, colour=colour, bold=True, anchor="right")
        for j, text in enumerate(texts[place]):
            ink = ink_on(canvas.raster.colour(int(levels[0, j])))
            canvas.text(float(columns.middles[j]), cells.box.y, text, size=size, colour=ink, anchor="center")
        y += _ROW + (2 if place == 0 else _BETWEEN)
    box = cells.box
    after = box.right + 12
    if sheet.rest is not None:
        rest = Box(box.right + 6, box.top, box.right + 6 + 1.2 * width, box.bottom)
        canvas.raster.frame(rest, theme.soft, 1)
        canvas.text(rest.x, rest.y, sheet.product_text(sheet.rest[0]), size=size, anchor="center")
        more = scene.words["more"].format(count=sheet.rest[1])
        canvas.text(rest.x, rest.top - 12, more, size=13, colour=theme.soft, anchor="center")
        after = rest.right + 10
    canvas.text(after, box.y, total, size=18, colour=total_colour, bold=True)
