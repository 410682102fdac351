"""Three questions to the current calculation's maps: how free, how long the values are, how much a head matters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from mha_core.figures.canvas import Canvas
from mha_core.figures.geometry import Box, Cells, spans
from mha_core.figures.labels import escape, fit, plain_labels, text_width
from mha_core.figures.pick import Pick
from mha_core.figures.picture import Picture
from mha_core.figures.theme import number_text, theme_named
from mha_core.freedom import Freedom
from mha_core.importance import HeadRanking, Weighed

__all__ = ["BELIEVED_WORDS", "believed"]

WIDTH, HEIGHT = 1130, 330

BELIEVED_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "freedom": "How free? n − rank[V 1]",
        "rank": "rank",
        "free": "free, of n = {n}",
        "parts": "Head {head}, row of {query}",
        "alpha": "α",
        "share": "α‖f(v)‖, as a share",
        "more": "+{count} more",
        "heads": "Sharper, so more important?",
        "sharpness": "largest weight",
        "effect": "output moves without it",
        "head": "head {head}",
        "nothing": "may attend to nothing",
    }
)
"""English; {head} counts from 1, {query} is a token, {count} a number."""

_PANELS = (34, 322), (384, 744), (806, 1128)  # px: left and right of each
_TOP, _BASE = 84, 246  # px: the bars
_MOST_KEYS = 16


def believed(
    by_h: Mapping[int, Freedom],
    parts: Weighed,
    ranking: HeadRanking,
    tokens: Sequence[str],
    *,
    head: int,
    query: int,
    words: Mapping[str, str] = BELIEVED_WORDS,
    theme: str = "light",
) -> Picture:
    """Freedom for every h; the focus head's weights beside what they weigh; the heads' sharpness beside their effect.

    Args:
        by_h: of :func:`mha_core.freedom.freedom_by_h`.
        parts: of :func:`mha_core.importance.weighed`, for this head and query.
        ranking: of :func:`mha_core.importance.head_ranking`.
        tokens: n of them, as given by a user.
        head, query: from 0.
        words: see :data:`BELIEVED_WORDS`.
        theme: "light" or "dark".

    Returns:
        A picture for a chart 1130 px wide (it stretches). A click on a head's bars chooses it.

    Raises:
        ValueError: as many tokens as there are not.
    """
    if len(tokens) != len(parts.weights):
        raise ValueError(f"{len(tokens)} tokens for n={len(parts.weights)}; give one for each")
    canvas, names = Canvas(WIDTH, HEIGHT, theme_named(theme)), plain_labels(tokens)
    _freedom(canvas, by_h, len(ranking.effect), words)
    _parts(canvas, parts, names, head, query, words)
    _heads(canvas, ranking, head, words)
    return canvas.picture()


def _freedom(canvas: Canvas, by_h: Mapping[int, Freedom], h: int, words: Mapping[str, str]) -> None:
    """A column of n keys for every h: as many are pinned as [V 1] has rank, the others are free."""
    theme, (left, right) = canvas.theme, _PANELS[0]
    n = next(iter(by_h.values())).keys
    _title(canvas, left, words["freedom"], ((theme.V, words["rank"]), (theme.weights, words["free"].format(n=n))))
    pitch, high = (right - left) / len(by_h), (_BASE - _TOP) / n
    size = 14 if pitch >= 26 else 11
    for place, (heads, found) in enumerate(by_h.items()):
        x, half, chosen = left + (place + 0.5) * pitch, min(22.0, 0.36 * pitch), heads == h
        box = Box(x - half, _TOP, x + half, _BASE)
        canvas.raster.fill(box._replace(top=_BASE - round(high * found.rank)), theme.V)
        canvas.raster.fill(box._replace(bottom=_BASE - round(high * found.rank)), theme.weights)
        for key in range(1, n) if high >= 7 else ():
            y = _BASE - round(high * key)
            canvas.raster.fill(box._replace(top=y, bottom=y + 1), theme.background)
        if chosen:
            canvas.outline(box, theme.ink, 3)
        canvas.text(
            x, _TOP - 14, str(found.directions), size=20 if chosen else 15, bold=True, colour=theme.weights,
            anchor="center",
        )  # fmt: skip
        for y, text, colour in ((_BASE + 16, str(heads), theme.ink), (_BASE + 36, str(found.d_v), theme.soft)):
            canvas.text(x, y, text, size=size, bold=chosen, colour=colour, anchor="center")
    for y, text, colour in ((_BASE + 16, "h", theme.ink), (_BASE + 36, "d<sub>v</sub>", theme.soft)):
        canvas.text(left - 8, y, text, size=14, colour=colour, anchor="right")


def _parts(
    canvas: Canvas, parts: Weighed, names: Sequence[str], head: int, query: int, words: Mapping[str, str]
) -> None:
    """Two bars a key: its weight, and its share of the lengths that are added up."""
    theme, (left, right) = canvas.theme, _PANELS[1]
    title = words["parts"].format(head=head + 1, query=escape(fit(names[query], 130, 19)))
    _title(canvas, left, title, ((theme.weights, words["alpha"]), (theme.output, words["share"])))
    weights, shares = parts.weights.numpy(), parts.parts.numpy()
    if not weights.any():
        canvas.text((left + right) / 2, (_TOP + _BASE) / 2, words["nothing"], size=17, anchor="center")
        return
    larger = np.maximum(weights, shares)
    keys = np.sort(np.argsort(-larger, kind="stable")[:_MOST_KEYS])
    pitch, scale = (right - left) / len(keys), (_BASE - _TOP) / float(larger.max())
    _base(canvas, left, right)
    each = min(22.0, 0.4 * pitch)
    most = int(larger.argmax())
    for place, key in enumerate(keys.tolist()):
        x = left + (place + 0.5) * pitch
        for start, values, colour in ((x - each, weights, theme.weights), (x, shares, theme.output)):
            high = float(values[key]) * scale
            canvas.raster.fill(Box(start, _BASE - high, start + each - 1, _BASE), colour)
            if key == most or pitch >= 60:
                text = number_text(float(values[key]))
                middle = start + each / 2 + (0 if each >= 18 else (8 if values is shares else -8))
                canvas.text(middle, _BASE - high - 10, text, size=13, colour=colour, bold=True, anchor="center")
    _key_names(canvas, left, pitch, [names[key] for key in keys], np.flatnonzero(keys == query).tolist())
    if len(keys) < len(names):
        more = words["more"].format(count=len(names) - len(keys))
        canvas.text(right, 42, more, size=13, colour=theme.soft, anchor="right")
    cells = Cells(spans(left, right, 2 * len(keys)), spans(_TOP, _BASE, 1))
    both = np.stack([weights[keys], shares[keys]], 1).reshape(1, -1)
    labels = [f"{escape(names[key])}<br>{words[kind]}" for key in keys for kind in ("alpha", "share")]
    canvas.hover(both, cells, "%{x} <b>%{z:.4f}</b>", columns=labels)


def _key_names(canvas: Canvas, left: float, pitch: float, names: Sequence[str], bold: Sequence[int]) -> None:
    """Below the bars, all of them upright where one is too wide for its place."""
    flat = all(text_width(name, 14) <= pitch - 2 for name in names)
    for place, name in enumerate(names):
        x = left + (place + 0.5) * pitch
        if flat:
            canvas.text(x, _BASE + 14, escape(name), size=14, bold=place in bold, anchor="center")
        else:
            short = fit(name, 66, 13)
            canvas.rotated(x, _BASE + 12 + text_width(short, 13), escape(short), size=13, bold=place in bold)


def _heads(canvas: Canvas, ranking: HeadRanking, head: int, words: Mapping[str, str]) -> None:
    """Two bars a head: how sharp it looks, and how far the output moves without it."""
    theme, (left, right) = canvas.theme, _PANELS[2]
    _title(canvas, left, words["heads"], ((theme.weights, words["sharpness"]), (theme.output, words["effect"])))
    h = len(ranking.effect)
    pitch, scale = (right - left) / h, (_BASE - _TOP) / max(1.0, *ranking.effect)
    _base(canvas, left, right)
    each = min(26.0, 0.4 * pitch)
    size = 14 if each >= 20 else 11
    for i in range(h):
        x = left + (i + 0.5) * pitch
        for start, values, best, colour in (
            (x - each, ranking.sharpness, ranking.sharpest, theme.weights),
            (x, ranking.effect, ranking.weightiest, theme.output),
        ):
            high = values[i] * scale
            canvas.raster.fill(Box(start, _BASE - high, start + each - 1, _BASE), colour)
            if h <= 8 or i == best:
                over = high if h <= 8 else scale * max(ranking.sharpness[i], ranking.effect[i])
                twice = 14 if h > 8 and ranking.sharpest == ranking.weightiest and values is ranking.sharpness else 0
                y, text = _BASE - over - 10 - twice, number_text(values[i])
                canvas.text(start + each / 2, y, text, size=size, colour=colour, bold=i == best, anchor="center")
        canvas.text(x, _BASE + 16, str(i + 1), size=15, bold=i == head, anchor="center")
        width = 2 * each + 6
        down = math.ceil((_BASE - _TOP) / 40)
        cells = Cells(spans(x - width / 2, x + width / 2, 1), spans(_TOP, _BASE, down))
        values_of = np.full((down, 1), ranking.effect[i])
        name = words["head"].format(head=i + 1)
        template = f"%{{x}}<br>{words['effect']} <b>%{{customdata:.4f}}</b>"
        canvas.pick(values_of, cells, template, Pick("", "", (("head", i),)), columns=[name])
    middle = (left + right) / 2
    canvas.text(middle, _BASE + 38, words["head"].format(head="").strip(), size=14, colour=theme.soft, anchor="center")


def _title(canvas: Canvas, left: float, title: str, legend: Sequence[tuple[str, str]]) -> None:
    canvas.text(left - 2, 14, title, size=18, bold=True)
    x = left
    for colour, text in legend:
        canvas.raster.fill(Box(x, 36, x + 12, 48), colour)
        canvas.text(x + 17, 42, text, size=15, colour=colour)
        x += 17 + text_width(text, 15) + 16


def _base(canvas: Canvas, left: float, right: float) -> None:
    canvas.raster.fill(Box(left, _BASE, right, _BASE + 1), canvas.theme.soft)
