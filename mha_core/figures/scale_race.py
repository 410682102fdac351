"""Two trainings as they run: how often each is right, and how many of its queries are saturated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from mha_core.figures.chart import Chart
from mha_core.figures.divisors import DIVISOR_NAMES, divisor_colours
from mha_core.figures.geometry import Box
from mha_core.figures.picture import Picture
from mha_core.figures.theme import number_text, theme_named
from mha_core.saturation import DEAD
from mha_core.scale_race import RACERS, Lap

__all__ = ["RACE_WORDS", "scale_race"]

RACE_WORDS: Mapping[str, str] = MappingProxyType(
    {"right": "Answers right", "dead": "Queries with ‖J‖ < {dead}", "steps": "steps"}
)
"""English."""

HEIGHT = 300
_TOP, _BOTTOM = 40, 250
_LEFTS, _WIDTH = (56, 632), 400
_TICKS = ((0, "0"), (0.5, "50 %"), (1, "100 %"))


def scale_race(
    laps: Sequence[Lap], *, steps: int, words: Mapping[str, str] = RACE_WORDS, theme: str = "light"
) -> Picture:
    """Both curves so far; the axis reaches to ``steps`` from the start."""
    colours = theme_named(theme)
    chart = Chart(HEIGHT, colours)
    at = [lap.step for lap in laps]
    titles = words["right"], words["dead"].format(dead=number_text(DEAD))
    for left, title, values in zip(_LEFTS, titles, ("right", "dead"), strict=True):
        panel = chart.panel(
            Box(left, _TOP, left + _WIDTH, _BOTTOM), title=title, x=words["steps"], x_range=(0, steps),
            y_range=(0, 1), y_ticks=_TICKS,
        )  # fmt: skip
        for divisor in reversed(RACERS) if laps else ():
            shares = [getattr(lap, values)[divisor] for lap in laps]
            panel.line(at, shares, divisor_colours(colours)[divisor], width=4, name=DIVISOR_NAMES[divisor])
    return chart.picture()
