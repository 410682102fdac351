"""Weights that slide while their output stays: a bar a key, the values below, the output in many digits beside."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mha_core.faithfulness import Slide
from mha_core.figures.canvas import Canvas
from mha_core.figures.deviation import deviation_text
from mha_core.figures.geometry import Box, Cells, spans
from mha_core.figures.picture import Picture
from mha_core.figures.theme import number_text, signed_limit, theme_named

__all__ = ["SLIDE_WORDS", "slide_picture"]

WIDTH, HEIGHT = 1130, 320

SLIDE_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "weights": "Weights α of one query",
        "original": "at 0 %",
        "now": "at {part} %",
        "key": "key",
        "values": "V",
        "output": "Output z = α V",
        "at_0": "at 0 %",
        "at": "at {part} %",
        "moved": "z moved by {size}",
        "top": "top key: {first} → {now}",
        "top_same": "top key: {first}",
    }
)
"""English; {part} is 0 … 100, {first} and {now} count from 1, {size} is a number."""

_LEFT, _RIGHT, _TOP, _BASE = 44, 640, 56, 226  # px: the bars
_VALUES = 254, 314  # px: top and bottom of V, a column a key
_TEXT, _NOW, _THEN = 706, 1128, 924  # px: the letters, and where the numbers of the two columns end
_ROWS, _ROW = 84, 36  # px: where the numbers begin, and how far apart they are
_DIGITS = 12


def slide_picture(case: Slide, part: float, *, words: Mapping[str, str] = SLIDE_WORDS, theme: str = "light") -> Picture:
    """The weights of a case, slid so far on the way to others with the same output.

    Args:
        case: of :func:`mha_core.faithfulness.slide`.
        part: 0 … 1.
        words: see :data:`SLIDE_WORDS`.
        theme: "light" or "dark".

    Returns:
        A picture for a chart 1130 px wide (it stretches).

    >>> from mha_core.faithfulness import slide
    >>> slide_picture(slide(), 0.5)
    Picture(image, heatmap, heatmap, scatter, scatter)
    """
    canvas, percent = Canvas(WIDTH, HEIGHT, theme_named(theme)), f"{100 * part:.0f}"
    _bars(canvas, case, part, percent, words)
    _values(canvas, case, words)
    _output(canvas, case, part, percent, words)
    return canvas.picture()


def _bars(canvas: Canvas, case: Slide, part: float, percent: str, words: Mapping[str, str]) -> None:
    """Filled as they are now, outlined as the softmax had them; the largest stands out."""
    theme, n, now = canvas.theme, len(case.weights), case.at(part)
    scale = (_BASE - _TOP) / max(case.weights.max(), case.other.max())  # the same for the whole way
    pitch = (_RIGHT - _LEFT) / n
    canvas.text(_LEFT - 2, 14, words["weights"], size=19, colour=theme.weights, bold=True)
    canvas.text(_RIGHT - 120, 15, f"□ {words['original']}", size=15, colour=theme.soft, anchor="right")
    canvas.text(_RIGHT, 15, f"■ {words['now'].format(part=percent)}", size=15, colour=theme.weights, anchor="right")
    canvas.raster.fill(Box(_LEFT, _BASE, _RIGHT, _BASE + 1), theme.soft)
    top = case.top(part)
    for key in range(n):
        x, half, bold = _LEFT + (key + 0.5) * pitch, 0.33 * pitch, key == top
        high, was = (float(weights[key]) * scale for weights in (now, case.weights))
        fill = theme.weights if bold else theme.weight[1]
        canvas.raster.fill(Box(x - half, _BASE - high, x + half, _BASE), fill)
        canvas.outline(Box(x - half, _BASE - was, x + half, _BASE).grow(-1), theme.ink, 1.5)
        label = number_text(float(now[key]) if now[key] > 1e-12 else 0.0)
        canvas.text(x, _BASE - max(high, was) - 11, label, size=17 if bold else 14, bold=bold, anchor="center")
        canvas.text(x, _BASE + 14, str(key + 1), size=15, bold=bold, anchor="center")
    canvas.text(_LEFT - 8, _BASE + 14, words["key"], size=14, colour=theme.K, anchor="right")
    cells = Cells(spans(_LEFT, _RIGHT, n), spans(_TOP, _BASE, 1))
    names = [f"{words['key']} {key + 1}" for key in range(n)]
    canvas.hover(now[None], cells, "%{x}<br>α <b>%{z:.4f}</b>", columns=names)


def _values(canvas: Canvas, case: Slide, words: Mapping[str, str]) -> None:
    """What the weights weigh, a column a key."""
    values, pitch = case.values.T, (_RIGHT - _LEFT) / len(case.weights)
    d_v, n = values.shape
    x = spans(_LEFT, _RIGHT, n)
    x = x._replace(starts=x.starts + 0.14 * pitch, stops=x.stops - 0.14 * pitch)
    cells = Cells(x, spans(*_VALUES, d_v))
    canvas.signed(values, cells, signed_limit(values))
    for key in range(n):
        left, right = float(x.starts[key]), float(x.stops[key])
        canvas.raster.frame(Box(left, _VALUES[0], right, _VALUES[1]), canvas.theme.V, 1.5)
    middle = sum(_VALUES) / 2
    canvas.text(_LEFT - 8, middle, words["values"], size=19, colour=canvas.theme.V, bold=True, anchor="right")
    names = [f"v<sub>{key + 1}</sub>" for key in range(n)]
    canvas.hover(values, cells, "%{x}<br><b>%{z:.4f}</b>", columns=names)


def _output(canvas: Canvas, case: Slide, part: float, percent: str, words: Mapping[str, str]) -> None:
    """z at the beginning and now, digit under digit, how far it moved, and who is on top."""
    theme = canvas.theme
    canvas.text(_TEXT, 14, words["output"], size=19, colour=theme.output, bold=True)
    canvas.text(_THEN, 48, words["at_0"], size=15, colour=theme.soft, anchor="right")
    canvas.text(_NOW, 48, words["at"].format(part=percent), size=15, bold=True, anchor="right")
    d_v, first = len(case.output(0)), case.output(0)
    for feature, now in enumerate(case.output(part)):
        y = _ROWS + feature * _ROW
        canvas.text(_TEXT, y, f"z<sub>{feature + 1}</sub>", size=19, colour=theme.output, bold=True)
        for x, value, bold in ((_THEN, first[feature], False), (_NOW, now, True)):
            text = f"{value:.{_DIGITS}f}".replace("-", "−")
            colour = theme.ink if bold else theme.soft
            canvas.text(x, y, text, size=19, colour=colour, bold=bold, anchor="right", mono=True)
    y = _ROWS + d_v * _ROW + 16
    canvas.raster.fill(Box(_TEXT, y - 26, _NOW, y - 25), theme.soft)
    size = f"<b>{deviation_text(case.moved(part))}</b>"
    canvas.text(_TEXT, y + 2, words["moved"].format(size=size), size=22)
    tops = case.top(0) + 1, case.top(part) + 1
    key = "top" if tops[0] != tops[1] else "top_same"
    text = words[key].format(first=f"<b>{tops[0]}</b>", now=f"<b>{tops[1]}</b>")
    canvas.text(_TEXT, y + 38, text, size=22, colour=theme.weights)
