"""Two derivatives of the weights along d_k, each as mean and median: they tell different stories."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mha_core.figures.chart import Chart
from mha_core.figures.divisors import DIVISOR_NAMES, divisor_colours
from mha_core.figures.geometry import Box
from mha_core.figures.picture import Picture
from mha_core.figures.theme import theme_named
from mha_core.random_queries import D_KS, SHARES, Sweep

__all__ = ["TRAP_WORDS", "scale_trap"]

TRAP_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "jacobian": "By the scores: ‖J‖ = ‖∂p/∂s‖",
        "gradient": "By the query: ‖∂p/∂q‖ = ‖J K‖ · scale",
        "mean": "mean, {divisor}",
        "median": "median, {divisor}",
        "both": "both, {divisor}",
        "tenth": "largest tenth, {divisor}",
        "legend": "Bands: the middle 80 % of {count} random queries, undivided.",
    }
)
"""English."""

HEIGHT = 326
_TOP, _BOTTOM = 40, 256
_LEFTS, _WIDTH = (44, 612), 400
_TICKS = tuple((d_k, str(d_k)) for d_k in (*D_KS[:-1:2], D_KS[-1]))


def scale_trap(sweep: Sweep, *, words: Mapping[str, str] = TRAP_WORDS, theme: str = "light") -> Picture:
    """‖J‖ at the left, ‖∂p/∂q‖ at the right; undivided in mean and median, ÷ √d_k for comparison."""
    colours = theme_named(theme)
    chart = Chart(HEIGHT, colours)
    hues = divisor_colours(colours)
    bare, scaled = sweep.curves["one"], sweep.curves["sqrt"]
    for left, quantity in zip(_LEFTS, ("jacobian", "gradient"), strict=True):
        low, high = (bare.quantiles[quantity][SHARES.index(share)] for share in (0.10, 0.90))
        panel = chart.panel(
            Box(left, _TOP, left + _WIDTH, _BOTTOM), title=words[quantity], x="d<sub>k</sub>", x_log=True,
            x_range=(1, D_KS[-1]), x_ticks=_TICKS, y_range=(0, max(0.1, 1.04 * float(high.max()))),
        )  # fmt: skip
        panel.band(D_KS, low, high, hues["one"])
        both = words["both"].format(divisor=DIVISOR_NAMES["sqrt"])
        panel.line(D_KS, scaled.median(quantity), hues["sqrt"], width=2, name=both)
        panel.line(D_KS, scaled.mean[quantity], hues["sqrt"], width=2, dash="dash")
        median, mean, tenth = (words[name].format(divisor=DIVISOR_NAMES["one"]) for name in ("median", "mean", "tenth"))
        panel.line(D_KS, high, hues["one"], width=1, name=tenth)
        panel.line(D_KS, bare.median(quantity), hues["one"], width=4, name=median)
        panel.line(D_KS, bare.mean[quantity], hues["one"], width=4, dash="dash", name=mean)
    legend = words["legend"].format(count=f"{sweep.count:,}")
    chart.canvas.text(0, HEIGHT - 10, legend, size=14, colour=colours.soft)
    return chart.picture()
