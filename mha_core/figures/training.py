"""Models that learn one task side by side: their accuracy as it grows, and what their heads look at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mha_core.figures.chart import Chart
from mha_core.figures.geometry import Array, Box, Cells, spans
from mha_core.figures.hues import head_hues
from mha_core.figures.labels import fit
from mha_core.figures.picture import Picture
from mha_core.figures.theme import theme_named

__all__ = ["TRAINING_WORDS", "Learner", "floor_share", "training"]

TRAINING_WORDS: Mapping[str, str] = {
    "curves": "All targets right", "share": "share of positions", "steps": "steps", "joint": "all right",
    "sizes": "d_k = {d_k}",
    "query": "query", "key": "key", "head": "head {head}",
}  # fmt: skip
"""English; {head} counts from 1."""

WIDTH = 1130
_CURVES = Box(60, 40, 1030, 158)
_TOP, _MAPS = 246, 226  # px: where the maps begin, and how large their square is
_COLUMN_GAP = 34
_BARS = _TOP + _MAPS + 50
_ROW = 21
_SMALLEST_NAMED = 64  # px: a map that has a name above it


@dataclass(frozen=True, eq=False)
class Learner:
    """One of the models.

    Attributes:
        name: of its size, safe for Plotly.
        d_k: features of a head.
        steps: of each point of its curve.
        joint: at each of them, the share of positions with all targets right.
        joint_now: the same now, which at the end may be measured on more sequences.
        targets: now, of each target.
        maps: weights now, (layer, head, query, key).
        names: a short name for each map, layer by layer, or nothing.
    """

    name: str
    d_k: int
    steps: Sequence[int]
    joint: Sequence[float]
    joint_now: float
    targets: Sequence[float]
    maps: Array
    names: Sequence[str]


def training(
    learners: Sequence[Learner],
    targets: Sequence[str],
    labels: Sequence[str],
    *,
    steps: int,
    words: Mapping[str, str] = TRAINING_WORDS,
    theme: str = "light",
) -> Picture:
    """The curves of all, and below a column for each: the maps of its heads, and how often each target is right.

    Args:
        learners: one to four.
        targets: a name for each target, safe for Plotly.
        labels: of the probe's tokens, safe for Plotly.
        steps: how many there will be: the curves grow into room that is there from the start.
        words: see :data:`TRAINING_WORDS`.
        theme: "light" or "dark".
    """
    colours = theme_named(theme)
    chart = Chart(_BARS + len(targets) * _ROW + 8, colours)
    hues = head_hues(colours, max(2, len(learners)))
    panel = chart.panel(
        _CURVES, title=words["curves"], y=words["share"], x=words["steps"], x_range=(0, steps), y_range=(0, 1),
        y_ticks=[(0, "0"), (0.5, ".5"), (1, "1")],
    )  # fmt: skip
    width = (WIDTH - 3 * _COLUMN_GAP) / 4
    for index, learner in enumerate(learners):
        panel.line(learner.steps, learner.joint, hues[index], width=3.5, name=learner.name)
        left = index * (width + _COLUMN_GAP)
        _column(chart, learner, targets, labels, left, width, hues[index], words)
    return chart.picture()


def _column(
    chart: Chart,
    learner: Learner,
    targets: Sequence[str],
    labels: Sequence[str],
    left: float,
    width: float,
    hue: str,
    words: Mapping[str, str],
) -> None:
    canvas, theme = chart.canvas, chart.canvas.theme
    canvas.text(left, _TOP - 26, learner.name, size=21, bold=True, colour=hue)
    sizes = words["sizes"].format(d_k=learner.d_k)
    canvas.text(left + width, _TOP - 26, sizes, size=14, colour=theme.soft, anchor="right", mono=True)

    layers, h, n, _ = learner.maps.shape
    count = layers * h
    across = 1 if count == 1 else 2 if count <= 4 else math.ceil(math.sqrt(count))
    named = _MAPS / across >= _SMALLEST_NAMED + 20
    gap = 22 if named else 8
    room = (_MAPS - gap * (across if named else across - 1)) / across
    size = n * max(0.5, math.floor(2 * room / n) / 2)  # cells of whole half pixels
    place = f"{words['query']} %{{y}} → {words['key']} %{{x}}<br><b>%{{z:.3f}}</b>"
    for number, weights in enumerate(learner.maps.reshape(count, n, n)):
        row, column = divmod(number, across)
        x = round(left) + 2 + column * math.ceil(size + gap)
        y = _TOP + row * math.ceil(size + gap) + (14 if named else 0)
        cells = Cells(spans(x, x + size, n), spans(y, y + size, n))
        canvas.weights(weights, cells, 0.6)
        canvas.raster.frame(cells.box, theme.hatch, 1)
        if named:
            name = learner.names[number] if learner.names else ""
            canvas.text(x, y - 11, fit(name, size + gap - 4, 14), size=14, bold=True)
        head = words["head"].format(head=number % h + 1)
        canvas.hover(weights, cells, f"{head}<br>{place}", rows=labels, columns=labels)

    joint = learner.joint_now
    canvas.text(left, _BARS - 24, words["joint"], size=17, bold=True)
    canvas.text(left + width, _BARS - 24, floor_share(joint), size=24, bold=True, colour=hue, anchor="right")
    for row, (target, share) in enumerate(zip(targets, learner.targets, strict=True)):
        y = _BARS + row * _ROW + 6
        canvas.text(left, y, target, size=14, colour=theme.soft)
        bar = Box(left + 92, y - 6, left + width - 46, y + 6)
        canvas.raster.fill(bar, theme.mask)
        canvas.raster.fill(bar._replace(right=bar.left + max(1.0, share * bar.width)), hue)
        canvas.text(left + width, y, floor_share(share), size=14, anchor="right")


def floor_share(share: float) -> str:
    """Two decimals, rounded down: 1.00 is said of nothing less.

    >>> floor_share(1.0), floor_share(0.9999), floor_share(0.0016)
    ('1.00', '.99', '.00')
    """
    text = f"{np.floor(share * 100 + 1e-9) / 100:.2f}"
    return text.removeprefix("0")
