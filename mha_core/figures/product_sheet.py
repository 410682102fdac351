"""A sum of products as a strip of cells with their numbers: for checking on paper."""

from __future__ import annotations

import numpy as np

from mha_core.combination import OutputByHand
from mha_core.figures.geometry import Cells, spans
from mha_core.figures.labels import text_width
from mha_core.figures.raster import signed_levels
from mha_core.figures.scene import Scene
from mha_core.figures.theme import ink_on, signed_limit

__all__ = ["HEIGHT", "product_sheet"]

HEIGHT = 124  # px
_LEFT, _RIGHT = 96, 1000  # px
_ROW = 28


def product_sheet(
    scene: Scene, top: float, number: OutputByHand, names: tuple[str, str, str], colours: tuple[str, str]
) -> None:
    """Two rows of factors, a row of products, and their sum at the right.

    Args:
        number: whose head's part is written down. Rows of whole numbers are written as such.
        names: of the rows.
        colours: of the two factors' frames.
    """
    canvas, theme = scene.canvas, scene.theme
    (terms, rest, more), decimals = number.columns, number.decimals
    count = len(terms) + (1 if more else 0)
    width = min(70.0, (_RIGHT - _LEFT) / count)
    factors = [[term.factors[row] for term in terms] for row in (0, 1)]
    rows = [*factors, [term.product for term in terms] + ([] if rest is None else [rest])]
    for place, term in enumerate(terms):
        x = _LEFT + (place + 0.5) * width
        canvas.text(x, top + 9, str(term.index + 1), size=13, colour=theme.soft, anchor="center")
    if more:
        note = scene.words["more"].format(count=more)
        canvas.text(_LEFT + (count - 0.5) * width, top + 9, note, size=13, colour=theme.soft, anchor="center")
    for line, values in enumerate(rows):
        y = top + 20 + line * (_ROW + 4) + (4 if line == 2 else 0)
        cells = Cells(spans(_LEFT, _LEFT + len(values) * width, len(values)), spans(y, y + _ROW, 1))
        matrix = np.array([values])
        levels = signed_levels(matrix, signed_limit(matrix))
        canvas.raster.cells(levels, cells, 1.0)
        canvas.raster.frame(cells.box, theme.ink if line == 2 else colours[line], 2)
        canvas.text(_LEFT - 10, y + _ROW / 2, names[line], size=16, bold=True, anchor="right",
                    colour=theme.ink if line == 2 else colours[line])  # fmt: skip
        places = 0 if all(value == round(value) for value in values) else decimals
        texts = [written(value, places) for value in values]
        size = 14.0 * min(1.0, (width - 4) / max(text_width(text, 14) for text in texts))
        for j, text in enumerate(texts):
            ink = ink_on(canvas.raster.colour(int(levels[0, j])))
            canvas.text(float(cells.x.middles[j]), y + _ROW / 2, text, size=size, colour=ink, anchor="center")
        if line == 2:
            total = f"Σ {'=' if number.products_add_up else '≈'} {written(number.head.value, decimals)}"
            canvas.text(cells.box.right + 12, y + _ROW / 2, total, size=18, bold=True)


def written(value: float, decimals: int) -> str:
    """With a real minus and without a 0 before the point.

    >>> written(-0.25, 2), written(-0.001, 2), written(3.0, 0)
    ('−.25', '.00', '3')
    """
    text = f"{abs(value):.{decimals}f}"
    sign = "−" if value < 0 and float(text) != 0 else ""
    return sign + (text.removeprefix("0") if "." in text else text)
