"""Costs over the number of heads, at the same width, and over the number of tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mha_core.cost import COST_STEPS, crossing, flops, measure, parameters, softmax_cells
from mha_core.figures.chart import Chart
from mha_core.figures.geometry import Box
from mha_core.figures.quantity import times_text
from mha_core.sizes import Sizes, head_counts, with_heads

__all__ = ["over_heads", "over_tokens"]

_TOP, _BOTTOM = 202, 446  # px: both panels
_LONGEST = 131_072


def over_heads(chart: Chart, sizes: Sizes, told: bool, words: Mapping[str, str]) -> None:
    """Everything relative to one head of the same width, over h."""
    theme, counts = chart.canvas.theme, _powers(head_counts(sizes), sizes.h)
    each = [with_heads(sizes, h) for h in counts]
    one, most = each[0], counts[-1]
    ratios = {
        "cells": [softmax_cells(s) / softmax_cells(one) for s in each],
        "parameters": [parameters(s) / parameters(one) for s in each],
        "flops": [flops(s) / flops(one) for s in each],
        "d_k": [s.d_k / one.d_k for s in each],
    }
    ticks = _powers_of(most)
    panel = chart.panel(
        Box(66, _TOP, 366, _BOTTOM), title=words["heads"], y=words["as_one"], x="h", x_log=True, y_log=True,
        x_range=(1, max(2, most)), y_range=(1 / max(2, most), max(2, most) ** 1.15),
        x_ticks=[(h, str(h)) for h in ticks], y_ticks=[(r, times_text(r)) for h in ticks for r in sorted({1 / h, h})],
    )  # fmt: skip
    lines = {"cells": (theme.weights, 4.0), "parameters": (theme.ink, 8.0), "flops": (theme.output, 3.0)}
    panel.mark(x=sizes.h, label=f"h = {sizes.h}")
    if most == 1:
        alone = words["alone"].format(width=sizes.h * sizes.d_k)
        chart.canvas.text(216, (_TOP + _BOTTOM) / 2 - 20, alone, size=16, colour=theme.soft, anchor="center")
        return
    for name, (colour, width) in lines.items() if told else ():
        label = f"{words[name]} {times_text(ratios[name][-1])}"
        panel.line(
            counts, ratios[name], colour, width=width, name=label, markers=name == "cells", hover=_hover(words[name])
        )
    panel.line(counts, ratios["d_k"], theme.Q, width=4, name=f"d<sub>k</sub> {times_text(ratios['d_k'][-1])}",
               markers=True, hover=_hover("d<sub>k</sub>"))  # fmt: skip
    if not told:
        for line, name in enumerate(("parameters", "flops", "cells")):
            chart.canvas.text(374, _TOP + 8 + 25 * line, f"{words[name]} ×?", size=15, bold=True, colour=lines[name][0])


def _hover(name: str) -> str:
    return f"{name}<br>h = %{{customdata[0]}}<br><b>× %{{customdata[1]:.4g}}</b><extra></extra>"


def over_tokens(chart: Chart, sizes: Sizes, words: Mapping[str, str]) -> None:
    """FLOPs of the projections, which grow with n, and of the maps, which grow with n²."""
    theme, even = chart.canvas.theme, crossing(sizes)
    low, high = 1, max(_LONGEST, sizes.n_q)
    n = np.unique(np.geomspace(low, high, 35).round().astype(int))
    pairs, projections = [], []
    for count in n.tolist():
        each = replace(sizes, n_q=count, n_k=count)
        of_pairs = sum(measure(s.flops, each) for s in COST_STEPS if s.name in ("raw_scores", "head_outputs"))
        pairs.append(sizes.layers * of_pairs)
        projections.append(flops(each) - pairs[-1])
    panel = chart.panel(
        Box(640, _TOP, 966, _BOTTOM), title=words["tokens"], y=words["flops_axis"], x="n", x_log=True, y_log=True,
        x_ticks=[(10.0**power, f"{10**power:,}") for power in range(0, 6)],
        y_ticks=_tens(min(*pairs, *projections), max(*pairs, *projections)),
    )  # fmt: skip
    panel.line(
        n,
        projections,
        theme.ink,
        width=4,
        name=f"{words['projections']} ∝ n",
        hover=_count_hover(words["projections"]),
    )
    panel.line(n, pairs, theme.weights, width=4, name=f"{words['pairs']} ∝ n²", hover=_count_hover(words["pairs"]))
    panel.mark(x=sizes.n_q, label=f"n = {sizes.n_q:,}")
    at = float(even)
    if low <= at <= high:
        logs = np.log(np.array(projections, float))  # exact integers up to here, and beyond 64 bits
        panel.dots([at], [np.exp(np.interp(np.log(at), np.log(n), logs))], theme.output, size=13)
    text = f"{even.numerator:,}" if even.denominator == 1 else f"{at:,.1f}"
    chart.canvas.dot(982, _BOTTOM - 66, 12, theme.output)
    chart.canvas.text(996, _BOTTOM - 66, words["equal"].format(n=text), size=15, bold=True, colour=theme.output)


def _tens(low: int, high: int) -> list[tuple[float, str]]:
    """Powers of ten between two counts, all written as powers; every second or third where they are many."""
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    return [(10.0**power, f"10<sup>{power}</sup>") for power in powers[:: max(1, math.ceil(len(powers) / 6))]]


def _count_hover(name: str) -> str:
    return f"{name}<br>n = %{{customdata[0]:,}}<br><b>%{{customdata[1]:.4s}}</b> FLOPs<extra></extra>"


def _powers(counts: tuple[int, ...], own: int) -> list[int]:
    """Powers of two among the counts and the present one; all of them where there are few."""
    powers = [h for h in counts if h & (h - 1) == 0 or h == own]
    return powers if len(powers) > 2 else list(counts)


def _powers_of(most: int) -> list[int]:
    """1, 2, 4 …, every second where they are many."""
    powers = [2**k for k in range(most.bit_length())]
    return powers[:: 1 if len(powers) <= 5 else 2] or [1]
