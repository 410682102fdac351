"""What becomes of a task when the same d_model is cut into more and more heads."""

from __future__ import annotations

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
    "sweep_x": "h · d_k",
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
    first = swept[0]
    ticks = [(float(h), f"{h} · {first.d_model // h}") for h in first.heads]
    panel = chart.panel(
        Box(60, 40, 880, HEIGHT - 50), title=words["sweep"], y=words["sweep_y"], x=words["sweep_x"], x_log=True,
        y_range=(0, 1), x_ticks=ticks, y_ticks=[(0, "0"), (0.5, ".5"), (1, "1")],
    )  # fmt: skip
    for one, colour in zip(swept, (colours.Q, colours.K, colours.V), strict=False):
        ends = np.array(one.ends, float)  # (heads, seeds)
        panel.band(one.heads, ends.min(1), ends.max(1), colour)
        panel.line(one.heads, np.median(ends, 1), colour, markers=True, name=one.name)
    return chart.picture()
