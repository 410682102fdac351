"""Why √d_k: random scores and one query's weights at one d_k, and what becomes of them along d_k."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from mha_core.figures.chart import Chart, Panel, Ticks
from mha_core.figures.divisors import DIVISOR_NAMES, beside, divisor_colours
from mha_core.figures.geometry import Box
from mha_core.figures.picture import Picture
from mha_core.figures.theme import Theme, number_text, theme_named
from mha_core.random_queries import D_KS, SHARES, Draws, Sweep
from mha_core.saturation import DEAD, Saturation

__all__ = ["SCALE_WORDS", "HeadDots", "scale"]

SCALE_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "scores": "Scores at d<sub>k</sub> = {d_k}",
        "score": "score",
        "query": "Weights of one query, d<sub>k</sub> = {d_k}",
        "keys": "its {n} keys, by score",
        "keys_of": "its {shown} best keys of {n}",
        "largest": "Largest weight",
        "entropy": "Entropy",
        "nats": "nats",
        "jacobian": "Gradient through softmax",
        "dead": "Queries with ‖J‖ < {dead}",
        "head": "head {head}",
        "legend": "Lines: median of {count} random queries; bands: the middle half. "
        "2: the query with the median largest weight, undivided.",
        "dots": "heads at the left, {divisor}",
    }
)
"""English."""

HEIGHT = 560
_COLUMNS = (48, 434, 812)  # px, where data begin
_WIDTH = 256
_ROWS = ((38, 226), (308, 492))
_BINS = 41
_MOST_KEYS = 16  # bars of one query
_TICKS = (1, 8, 64, 512)


@dataclass(frozen=True, eq=False)
class HeadDots:
    """Heads of a calculation, to be drawn beside random queries.

    Attributes:
        d_k: theirs.
        measured: one each, under the divisor that is drawn.
        names: one each, safe for Plotly.
        focus: the head that is drawn larger.
    """

    d_k: int
    measured: Sequence[Saturation]
    names: Sequence[str]
    focus: int = 0


def scale(
    sweep: Sweep,
    draws: Draws,
    *,
    divisor: str = "sqrt",
    heads: HeadDots | None = None,
    words: Mapping[str, str] = SCALE_WORDS,
    theme: str = "light",
) -> Picture:
    """Six panels: scores and one query's weights at one d_k; largest weight, entropy, ‖J‖ and dead queries along it.

    Args:
        sweep: what is drawn along d_k.
        draws: of the same sweep or another d_k: what the first two panels show, and where the line stands.
        divisor: of ``experiments.DIVISORS``; drawn boldly, beside the one that it is to be compared with.
        heads: dots in the panels along d_k.
    """
    colours = theme_named(theme)
    chart = Chart(HEIGHT, colours)
    scores = chart.panel(
        _box(0, 0, 300), title=f"1  {words['scores'].format(d_k=draws.d_k)}", x=words["score"],
        x_range=(-_reach(draws), _reach(draws)), y_range=(0, 3), y_ticks=(),
    )  # fmt: skip
    _ridges(scores, draws, divisor, colours)
    shown = min(_MOST_KEYS, sweep.n)
    keys = words["keys" if shown == sweep.n else "keys_of"].format(n=sweep.n, shown=shown)
    query = chart.panel(
        _box(1, 0, 300), title=f"2  {words['query'].format(d_k=draws.d_k)}", x=keys, x_ticks=(), y_range=(0, 1.0),
        y_ticks=((0, "0"), (0.5, ".5"), (1, "1")),
    )  # fmt: skip
    _one_query(query, draws, divisor, shown, colours)

    top = math.log(sweep.n)
    nats = [(float(whole), str(whole)) for whole in range(math.ceil(top - 0.3))]
    kinds: list[tuple[str, str, str, tuple[float, float], Ticks]] = [
        ("largest", words["largest"], "", (0, 1), ((1 / sweep.n, f"1/{sweep.n}"), (0.5, ".5"), (1, "1"))),
        ("entropy", words["entropy"], words["nats"], (0, max(1.05 * top, 0.1)), [*nats, (top, f"ln {sweep.n}")]),
        ("jacobian", words["jacobian"], "‖J‖", (0, 0.5), ((0, "0"), (0.25, ".25"), (0.5, ".5"))),
        ("dead", words["dead"].format(dead=number_text(DEAD)), "", (0, 1), ((0, "0"), (0.5, "50 %"), (1, "100 %"))),
    ]
    for place, (quantity, title, unit, limits, ticks) in enumerate(kinds):
        panel = chart.panel(
            _box((place + 2) % 3, (place + 2) // 3, _WIDTH), title=f"{place + 3}  {title}", x="d<sub>k</sub>", y=unit,
            x_log=True, x_range=(1, D_KS[-1]), x_ticks=_d_k_ticks(draws.d_k), y_range=limits, y_ticks=ticks,
        )  # fmt: skip
        panel.mark(x=draws.d_k)
        _along(panel, sweep, quantity, divisor, colours)
        if heads is not None:
            _dots(panel, heads, _of(quantity), colours.weights)
    chart.canvas.text(0, HEIGHT - 12, words["legend"].format(count=f"{sweep.count:,}"), size=14, colour=colours.soft)
    if heads is not None:
        dots = words["dots"].format(divisor=DIVISOR_NAMES[divisor])
        chart.canvas.text(chart.canvas.width - 8, HEIGHT - 12, f"● {dots}", size=15, colour=colours.weights, bold=True,
                          anchor="right")  # fmt: skip
    return chart.picture()


def _box(column: int, row: int, width: float) -> Box:
    left, (top, bottom) = _COLUMNS[column], _ROWS[row]
    return Box(left, top, left + width, bottom)


def _reach(draws: Draws) -> float:
    return 3.4 * draws.by_divisor["one"].spread


def _ridges(panel: Panel, draws: Draws, divisor: str, theme: Theme) -> None:
    """A histogram for each divisor, one above the other, each as high as the others."""
    reach = _reach(draws)
    for row, (name, label) in enumerate(reversed(list(DIVISOR_NAMES.items()))):
        colour, spread = divisor_colours(theme)[name], draws.by_divisor[name].spread
        counts, edges = np.histogram(draws.scores(name), _BINS, (-3.6 * spread, 3.6 * spread))
        x = np.concatenate([[-reach], (edges[1:] + edges[:-1]) / 2, [reach]])
        y = row + np.concatenate([[0], 0.82 * counts / counts.max(), [0]])
        panel.band(x, np.full_like(x, row), y, colour)
        hover = f"{label}<br>%{{customdata[0]:.3g}}<extra></extra>"
        panel.line(x, y, colour, width=3 if name == divisor else 1.5, hover=hover)
        panel.text(-reach, row + 0.4, label, colour=colour, bold=True)
        panel.text(reach, row + 0.4, f"σ = {_short(spread)}", colour=colour, bold=name == divisor, anchor="right")


def _one_query(panel: Panel, draws: Draws, divisor: str, shown: int, theme: Theme) -> None:
    """Its weights by falling score: bars for the divisor, outlines for the one beside it."""
    order = np.argsort(-draws.raw_scores[draws.typical], kind="stable")[:shown]
    for place, name in enumerate((divisor, beside(divisor))):
        weights, colour = draws.weights(name, draws.typical)[order], divisor_colours(theme)[name]
        panel.bars(np.arange(shown), weights, colour, outlined=place > 0)
        text = f"{DIVISOR_NAMES[name]}:  {number_text(weights[0])}"
        panel.text(shown - 0.6, 0.94 - 0.12 * place, text, colour=colour, bold=True, anchor="right")


def _along(panel: Panel, sweep: Sweep, quantity: str, divisor: str, theme: Theme) -> None:
    """A curve for each divisor; bands for the one that is chosen and the one beside it."""
    for name, label in DIVISOR_NAMES.items():
        curve, colour = sweep.curves[name], divisor_colours(theme)[name]
        if quantity == "dead":
            values = curve.dead
        else:
            values = curve.median(quantity)
            if name in (divisor, beside(divisor)):
                low, high = (curve.quantiles[quantity][SHARES.index(share)] for share in (0.25, 0.75))
                panel.band(D_KS, low, high, colour)
        panel.line(D_KS, values, colour, width=4 if name == divisor else 2, name=label)


def _of(quantity: str) -> Callable[[Saturation], float]:
    return (lambda measured: measured.dead) if quantity == "dead" else lambda measured: measured.median(quantity)


def _dots(panel: Panel, heads: HeadDots, value: Callable[[Saturation], float], colour: str) -> None:
    values = np.array([value(measured) for measured in heads.measured])
    panel.dots(np.full(len(values), heads.d_k), values, colour, size=10, names=heads.names)


def _d_k_ticks(current: int) -> Ticks:
    """The current d_k in bold, others where they do not touch it."""
    others = [(d_k, str(d_k)) for d_k in _TICKS if not 0.4 < current / d_k < 2.6]
    return sorted([*others, (current, f"<b>{current}</b>")])


def _short(value: float) -> str:
    """Three digits.

    >>> _short(22.613), _short(1.004), _short(0.0441)
    ('22.6', '1.00', '.044')
    """
    text = f"{value:.1f}" if value >= 9.995 else f"{value:.2f}" if value >= 0.995 else f"{value:.2g}"
    return text.removeprefix("0")
