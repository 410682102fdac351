"""The race: seconds a call over h and over n, the median of each method with its quartiles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mha_core.figures.chart import Chart, Panel, tick_text
from mha_core.figures.geometry import Box
from mha_core.figures.hues import head_hues
from mha_core.figures.picture import Picture
from mha_core.figures.theme import theme_named
from mha_core.race import METHODS, SWEEPS, Sweep, Times

__all__ = ["RACE_WORDS", "race_lines"]

WIDTH, _ROW = 1130, 330  # px, a device a row
_LEFT = {"h": 66, "n": 650}  # px
_SPAN = 326  # px

RACE_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "loop": "loop over heads",
        "batched": "one product",
        "fused": "fused",
        "over_h": "{device}: more heads, n = {n}",
        "over_n": "{device}: more tokens, h = {h}",
        "axis": "ms a call",
        "none": "not measured yet",
    }
)
"""English."""


def race_lines(
    points: Sequence[Times], devices: Sequence[str], *, sweeps: Sequence[Sweep] = SWEEPS,
    words: Mapping[str, str] = RACE_WORDS, theme: str = "light",
) -> Picture:  # fmt: skip
    """Two panels a device: over h, and over n, as far as it is measured.

    Args:
        points: as they come from ``race.race``.
        devices: "cpu", "cuda": a row of panels each.
        sweeps: what is measured, for the axes.
        words: see :data:`RACE_WORDS`.
        theme: "light" or "dark".
    """
    chart = Chart(_ROW * len(devices), theme_named(theme))
    colours = dict(zip(METHODS, head_hues(chart.canvas.theme, len(METHODS)), strict=True))  # not those of Q, K and V
    for row, device in enumerate(devices):
        for sweep in sweeps:
            left, top = _LEFT[sweep.key], row * _ROW + 46
            mine = sorted(
                (point for point in points if point.cell.device == device and sweep.key in point.cell.sweeps),
                key=lambda point: int(getattr(point.cell, sweep.key)),
            )
            title = words[f"over_{sweep.key}"].format(device=device.upper(), h=sweep.h, n=sweep.n)
            box = Box(left, top, left + _SPAN, row * _ROW + _ROW - 52)
            panel = chart.panel(
                box, title=title, x=sweep.key, y=words["axis"], x_log=True, y_log=True,
                x_range=(sweep.values[0], sweep.values[-1]), x_ticks=[(v, f"{v:,}") for v in sweep.values[::2]],
                **_y_axis(mine),
            )  # fmt: skip
            if mine:
                _lines(panel, mine, sweep.key, colours, words)
            else:
                chart.canvas.text(box.x, box.y, words["none"], size=16, colour=chart.canvas.theme.soft, anchor="center")
    return chart.picture()


def _y_axis(points: Sequence[Times]) -> dict[str, Any]:
    """From the fastest quartile to the slowest, with ticks at 1, 2 and 5 times powers of ten where they are few."""
    if not points:
        return {"y_range": (0.01, 10)}
    low = 1e3 * min(value for point in points for value in point.low.values())
    high = 1e3 * max(value for point in points for value in point.high.values())
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if sum(low <= 10.0**power <= high for power in powers) < 3 else (1,)
    ticks = [step * 10.0**power for power in powers for step in steps]
    low, high = low / 1.15, high * 1.15
    return {"y_range": (low, high), "y_ticks": [(tick, tick_text(tick)) for tick in ticks if low <= tick <= high]}


def _lines(
    panel: Panel, points: Sequence[Times], key: str, colours: Mapping[str, str], words: Mapping[str, str]
) -> None:
    x = [getattr(point.cell, key) for point in points]
    for name, colour in colours.items():
        low, median, high = ([1e3 * getattr(p, what)[name] for p in points] for what in ("low", "median", "high"))
        panel.band(x, low, high, colour)
        hover = f"{words[name]}<br>{key} = %{{customdata[0]}}<br><b>%{{customdata[1]:.3g}}</b> ms<extra></extra>"
        panel.line(x, median, colour, name=words[name], markers=True, hover=hover)
