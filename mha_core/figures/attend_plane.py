"""A head's values as points, and its output among them: a mix of values lies within their polygon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mha_core.figures.canvas import Canvas
from mha_core.figures.geometry import Array, Box
from mha_core.figures.labels import escape, fit, plain_labels, text_width
from mha_core.figures.picture import Picture
from mha_core.figures.theme import Theme, theme_named
from mha_core.hull import convex_hull
from mha_core.plane import Plane, values_in_2d
from mha_core.trace import AttentionTrace

__all__ = ["PLANE_WORDS", "attend_plane", "plane_of"]

PLANE_WORDS: Mapping[str, str] = {
    "title": "The values of head {head}, and what {query} gets", "mix": "z is this mix of values",
    "rest": "{count} others together", "share": "on paper: {share} of the spread of the values",
}  # fmt: skip
"""English; {head} counts from 1."""

WIDTH, HEIGHT = 1130, 430
_FRAME = Box(2, 40, 740, HEIGHT - 12)
_MOST_LISTED = 9
_POINT, _HEAVIEST = 8.0, 34.0  # px, across


def plane_of(trace: AttentionTrace, head: int, query: int) -> Plane:
    """The values of a head, and one query's output, in the plane in which the values are spread most."""
    V = trace["V_heads"].sel(batch=0, head=head).value
    return values_in_2d(V, trace["head_outputs"].sel(batch=0, head=head, query=query).value)


def attend_plane(
    trace: AttentionTrace,
    tokens: Sequence[str],
    *,
    head: int = 0,
    query: int = 0,
    context_tokens: Sequence[str] | None = None,
    words: Mapping[str, str] = PLANE_WORDS,
    theme: str = "light",
) -> Picture:
    """The plane at the left, the mix in numbers at the right."""
    colours = theme_named(theme)
    names = plain_labels(tokens if context_tokens is None else context_tokens)
    canvas = Canvas(WIDTH, HEIGHT, colours)
    plane = plane_of(trace, head, query)
    weights = trace["weights"].sel(batch=0, head=head, query=query).numpy()
    at, z = _pixels(plane.values.numpy(), plane.outputs.numpy())
    who = escape(fit(plain_labels(tokens)[query], 150, 18))
    canvas.text(_FRAME.left, 16, words["title"].format(head=head + 1, query=who), size=18, bold=True)
    canvas.raster.frame(_FRAME, colours.soft, 1)

    corners = convex_hull(plane.values)
    path = "M" + "L".join(f"{at[i][0]:.1f},{at[i][1]:.1f}" for i in corners) + "Z"
    canvas.stroke(path, colours.V, 1.5)
    for j in np.argsort(weights).tolist():
        if weights[j] >= 0.01:
            line = f"M{at[j][0]:.1f},{at[j][1]:.1f}L{z[0]:.1f},{z[1]:.1f}"
            canvas.stroke(line, colours.weight[2], round(0.8 + 5 * float(weights[j]), 1))
    for j in np.argsort(weights).tolist():
        canvas.dot(at[j][0], at[j][1], _across(float(weights[j])), colours.V)
    canvas.dot(*z, 20, colours.background, "diamond")
    canvas.dot(*z, 15, colours.weights, "diamond")
    _labels(canvas, names, weights, at, z, set(corners), colours)
    _mix(canvas, names, weights, words, colours)
    share = words["share"].format(share=f"{plane.share:.0%}")
    canvas.text(_FRAME.right - 8, _FRAME.bottom - 12, share, size=14, colour=colours.soft, anchor="right")
    return canvas.picture()


def _pixels(values: Array, z: Array) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """Both directions on one scale, so that distances are true, in the middle of the frame."""
    every = np.concatenate([values, z[None]])
    low, high = every.min(0), every.max(0)
    extent = np.maximum(high - low, 1e-9)
    room = _FRAME.grow(-42)
    scale = min(room.width / extent[0], room.height / extent[1])
    if scale > 1e6:  # a single point
        scale = 0.0
    middle = (low + high) / 2
    placed = [(room.x + (x - middle[0]) * scale, room.y - (y - middle[1]) * scale) for x, y in every.tolist()]
    return placed[:-1], placed[-1]


def _labels(
    canvas: Canvas, names: Sequence[str], weights: Array, at: list[tuple[float, float]], z: tuple[float, float],
    corners: set[int], theme: Theme,
) -> None:  # fmt: skip
    """z first, then the tokens by weight, wherever there is room; the polygon's corners outside of it."""
    taken: list[Box] = []
    centre = np.mean(at, axis=0)

    def sides(x: float, y: float, corner: bool) -> list[tuple[int, int]]:
        every = [(1, 0), (-1, 0), (0, -1), (0, 1)]
        if not corner:
            return every
        return sorted(every, key=lambda side: -(side[0] * (x - centre[0]) + side[1] * (y - centre[1])))

    def place(
        x: float, y: float, text: str, size: float, away: float, colour: str, bold: bool, corner: bool = False
    ) -> None:
        wide = text_width(text, size)
        for dx, dy in sides(x, y, corner):
            cx = x + dx * (away + wide / 2 + 2)
            cy = y + dy * (away + size / 2 + 1)
            box = Box(cx - wide / 2, cy - size / 2, cx + wide / 2, cy + size / 2)
            free = all(box.left >= b.right or b.left >= box.right or box.top >= b.bottom or b.top >= box.bottom
                       for b in taken)  # fmt: skip
            if free and _FRAME.left < box.left and box.right < _FRAME.right and _FRAME.top < box.top:
                taken.append(box)
                canvas.text(cx, cy, escape(text), size=size, bold=bold, colour=colour, anchor="center")
                return

    taken.extend(Box(x - 4, y - 4, x + 4, y + 4) for x, y in (*at, z))
    under = max((_across(w) / 2 for w, (x, y) in zip(weights.tolist(), at, strict=True)
                 if abs(x - z[0]) + abs(y - z[1]) < _HEAVIEST), default=0.0)  # fmt: skip
    place(*z, "z", 20, max(10.0, under), theme.weights, True)
    for j in np.argsort(-weights, kind="stable").tolist():
        radius, heavy = _across(float(weights[j])) / 2, bool(weights[j] >= 0.05)
        size, colour = (15, theme.ink) if heavy else (13, theme.soft)
        place(at[j][0], at[j][1], fit(names[j], 110, size), size, radius, colour, heavy, j in corners)


def _across(weight: float) -> float:
    """A point's diameter: its area grows with the weight."""
    return _POINT + (_HEAVIEST - _POINT) * math.sqrt(weight)


def _mix(canvas: Canvas, names: Sequence[str], weights: Array, words: Mapping[str, str], theme: Theme) -> None:
    """The largest weights in numbers and as bars."""
    x, y = _FRAME.right + 36, _FRAME.top + 12
    canvas.text(x, y, words["mix"], size=16, bold=True, colour=theme.weights)
    order = np.argsort(-weights, kind="stable").tolist()
    listed = len(order) if len(order) <= _MOST_LISTED + 1 else _MOST_LISTED
    lines = [(names[j], float(weights[j])) for j in order[:listed]]
    if others := order[listed:]:
        lines.append((words["rest"].format(count=len(others)), float(weights[others].sum())))
    for name, weight in lines:
        y += 30
        number = f"{weight:.3f}".removeprefix("0")
        canvas.text(x + 46, y, number, size=15, mono=True, anchor="right")
        canvas.raster.fill(Box(x + 56, y - 8, x + 56 + max(1.0, 150 * weight), y + 8), theme.weights)
        canvas.text(x + 64 + 150 * weight, y, escape(fit(name, 120, 15)), size=15)
