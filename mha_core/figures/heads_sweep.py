"""What becomes of a task when the same d_model is cut into more and more heads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mha_core.figures.chart import Chart
from mha_core.figures.geometry import Box
from mha_core.figures.picture import Picture
from mha_core.figures.theme import theme_named

__all__ = ["SWEEP_WORDS", "Swept", "heads_sweep"]

SWEEP_WORDS: Mapping[str, str] = {
    "sweep": "All targets right at the end", "sweep_y": "share of positions: median, lowest and highest",
}  # fmt: skip
"""English."""

HEIGHT = 300


@dataclass(frozen=True)
class Swept:
    """One task.

    Attributes:
        name: safe for Plotly.
        heads: the numbers of heads, rising.
        d_model: what they share.
        ends: for each number of heads, the joint accuracy of each seed.
    """

    name: str
    heads: Sequence[int]
    d_model: int
    ends: Sequence[Sequence[float]]


def heads_sweep(swept: Sequence[Swept], *, words: Mapping[str, str] = SWEEP_WORDS, theme: str = "light") -> Picture:
    """A line a task: the median over seeds, with a band from the lowest to the highest.

    Args:
        swept: of one d_model and the same numbers of heads, so that an axis can say both.
        words: see :data:`SWEEP_WORDS`.
        theme: "light" or "dark".
    """
    colours = theme_named(theme)
    chart = Chart(HEIGHT, colours)
    first, box = swept[0], Box(60, 40, 880, HEIGHT - 50)
    ticks = [(float(h), str(h)) for h in first.heads]
    panel = chart.panel(
        box, title=words["sweep"], y=words["sweep_y"], x_log=True,
        y_range=(0, 1), x_ticks=ticks, y_ticks=[(0, "0"), (0.5, ".5"), (1, "1")],
    )  # fmt: skip
    for one, colour in zip(swept, (colours.Q, colours.K, colours.V), strict=False):
        ends = np.array(one.ends, float)  # (heads, seeds)
        panel.band(one.heads, ends.min(1), ends.max(1), colour)
        panel.line(one.heads, np.median(ends, 1), colour, markers=True, name=one.name)
    _widths(chart, box, first)
    return chart.picture()


def _widths(chart: Chart, box: Box, swept: Swept) -> None:
    """Below the numbers of heads, what is left for each: a second row, since h · d_k would read as a product."""
    canvas, (least, most) = chart.canvas, (swept.heads[0], swept.heads[-1])
    for row, name in enumerate(("h", "d<sub>k</sub>")):
        canvas.text(box.left - 20, box.bottom + 15 + row * 20, name, size=14, colour=canvas.theme.soft, anchor="right")
    for h in swept.heads:
        x = box.left + (math.log(h / least) / math.log(most / least) if most > least else 0.5) * box.width
        d_k = str(swept.d_model // h)
        canvas.text(x, box.bottom + 35, d_k, size=14, colour=canvas.theme.soft, anchor="center")
