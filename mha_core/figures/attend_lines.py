"""A head as lines: queries at the left, keys at the right, a line as thick as its weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mha_core.figures.canvas import Canvas
from mha_core.figures.geometry import Array, Cells, spans
from mha_core.figures.labels import escape, fit, plain_labels
from mha_core.figures.pick import Pick
from mha_core.figures.picture import Picture
from mha_core.figures.scene import printed_names
from mha_core.figures.theme import ramp, theme_named
from mha_core.trace import AttentionTrace

__all__ = ["LINES_WORDS", "attend_lines"]

LINES_WORDS: Mapping[str, str] = {
    "query": "query", "key": "key", "all": "all queries", "one": "{query} only", "weight": "weight",
    "left_out": "weights under {least} are not drawn",
}  # fmt: skip
"""English."""

WIDTH = 1130
_TOP, _LONGEST, _ROW = 50, 420, 28  # px
_PANELS = ((110, 420), (690, 1000))  # px, where the lines of each begin and end
LEAST = 0.01
_STEPS = 16  # thicknesses
_THICKEST = 13.0  # px


def attend_lines(
    trace: AttentionTrace,
    tokens: Sequence[str],
    *,
    head: int = 0,
    query: int = 0,
    context_tokens: Sequence[str] | None = None,
    words: Mapping[str, str] = LINES_WORDS,
    theme: str = "light",
) -> Picture:
    """All queries of a head at the left; at the right the chosen one alone, with its weights in numbers."""
    colours = theme_named(theme)
    queries = plain_labels(tokens)
    keys = queries if context_tokens is None else plain_labels(context_tokens)
    weights = trace["weights"].sel(batch=0, head=head).numpy()
    longest = max(weights.shape)
    height = min(_LONGEST, longest * _ROW)
    canvas = Canvas(WIDTH, _TOP + height + 34, colours)
    rows = spans(_TOP, _TOP + height, len(queries))
    columns = spans(_TOP, _TOP + height, len(keys))
    shades = [f"#{r:02X}{g:02X}{b:02X}" for r, g, b in ramp(colours.weight[1:], _STEPS).tolist()]
    size = min(15.0, max(11.0, 0.75 * height / longest))
    everyone, one = range(len(queries)), [query]
    for (left, right), drawn in zip(_PANELS, (everyone, one), strict=True):
        name = escape(fit(queries[query], 150, 18))
        title = words["all"] if drawn is everyone else words["one"].format(query=name)
        canvas.text((left + right) / 2, 14, title, size=18, bold=True, anchor="center")
        canvas.text(left - 8, _TOP - 14, f"{words['query']} ↓", size=14, colour=colours.Q, anchor="right")
        canvas.text(right + 8, _TOP - 14, f"{words['key']} ↓", size=14, colour=colours.K)
        for i in _names(len(queries), height, size, query):
            shade = colours.ink if drawn is everyone or i == query else colours.soft
            text = escape(fit(queries[i], 96, size))
            canvas.text(left - 8, rows.middles[i], text, size=size, anchor="right", bold=i == query, colour=shade)
        favourite = int(weights[query].argmax())
        for j in _names(len(keys), height, size, favourite):
            weight, bold = float(weights[query, j]), drawn is one and weights[query, j] >= 0.05
            text = escape(fit(keys[j], 78, size))
            canvas.text(right + 8, columns.middles[j], text, size=size, bold=bool(bold))
            if drawn is one and weight >= LEAST:
                number = f"{weight:.2f}".removeprefix("0")
                canvas.text(right + 128, columns.middles[j], number, size=size, anchor="right", mono=True)
        _lines(canvas, weights, list(drawn), left, right, rows.middles, columns.middles, shades)
    note = words["left_out"].format(least=str(LEAST).removeprefix("0"))
    canvas.text(0, _TOP + height + 20, note, size=13, colour=colours.soft)
    if len(queries) <= 64:
        cells = Cells(spans(0, _PANELS[0][0], 1), rows)
        template = f"{words['query']} %{{y}}<br>{words['weight']} ≤ <b>%{{customdata:.4f}}</b>"
        names = [escape(name) for name in queries]
        canvas.pick(weights.max(1, keepdims=True), cells, template, Pick("query", ""), rows=names)
    return canvas.picture()


def _names(count: int, height: float, size: float, chosen: int) -> list[int]:
    return printed_names(count, max(1, int(-(-(size + 1) // (height / count)))), chosen)


def _lines(
    canvas: Canvas, weights: Array, queries: list[int], left: int, right: int,
    rows: Array, columns: Array, shades: list[str],
) -> None:  # fmt: skip
    """Curves from the left to the right, thin and pale ones first."""
    chosen = weights[queries]
    order = np.argsort(chosen, axis=None)
    thickest = max(1.0, min(_THICKEST, 0.8 * float(rows[1] - rows[0]) if len(rows) > 1 else _THICKEST))
    for place in order[np.searchsorted(chosen.ravel()[order], LEAST) :].tolist():
        row, j = divmod(place, chosen.shape[1])
        level = min(_STEPS - 1, int(chosen[row, j] * _STEPS))
        width = max(0.6, round(thickest * (level + 1) / _STEPS, 2))
        y0, y1, middle = rows[queries[row]], columns[j], (left + right) / 2
        path = f"M{left},{y0:.1f}C{middle:.0f},{y0:.1f} {middle:.0f},{y1:.1f} {right},{y1:.1f}"
        canvas.stroke(path, shades[level], width)
