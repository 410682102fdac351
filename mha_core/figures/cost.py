"""What attention costs: the totals, where the FLOPs go, more heads at the same width, more tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from mha_core.cost import (
    COST_STEPS,
    activation_bytes,
    cache_bytes,
    flops,
    measure,
    parameters,
    softmax_cells,
)
from mha_core.figures.canvas import Canvas
from mha_core.figures.chart import Chart
from mha_core.figures.cost_curves import over_heads, over_tokens
from mha_core.figures.geometry import Box
from mha_core.figures.labels import text_width
from mha_core.figures.picture import Picture
from mha_core.figures.quantity import bytes_text, count_text, percent_text
from mha_core.figures.theme import Theme, ink_on, rgb, theme_named
from mha_core.sizes import Sizes

__all__ = ["COST_WORDS", "cost"]

WIDTH, HEIGHT = 1130, 496
_BAR = Box(0, 104, WIDTH, 142)  # px: where the FLOPs go
_MARKUP = re.compile(r"</?su[bp]>")

COST_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "parameters": "parameters",
        "flops": "FLOPs of the products",
        "cells": "softmax cells",
        "activations": "all tensors of one layer",
        "cache": "KV cache a token",
        "where": "Where the FLOPs go at n = {n}",
        "heads": "More heads",
        "as_one": "× one head of the same width",
        "alone": "no other h divides {width}",
        "tokens": "More tokens",
        "flops_axis": "FLOPs",
        "projections": "Q, K, V, output",
        "pairs": "QKᵀ, A·V",
        "equal": "equal at n = {n}",
    }
)
"""English."""


def cost(sizes: Sizes, *, told: bool = True, words: Mapping[str, str] = COST_WORDS, theme: str = "light") -> Picture:
    """The costs of self-attention of some sizes.

    Args:
        sizes: with n_q = n_k.
        told: whether the curves over h are shown; without, only d_k, and room for a guess.
        words: see :data:`COST_WORDS`.
        theme: "light" or "dark".

    Returns:
        A picture for a chart 1130 px wide (it stretches).
    """
    colours = theme_named(theme)
    chart = Chart(HEIGHT, colours)
    _totals(chart.canvas, sizes, words)
    _where(chart.canvas, sizes, words)
    over_heads(chart, sizes, told, words)
    over_tokens(chart, sizes, words)
    return chart.picture()


def _totals(canvas: Canvas, sizes: Sizes, words: Mapping[str, str]) -> None:
    """The numbers, large."""
    numbers = (
        ("parameters", count_text(parameters(sizes))),
        ("flops", count_text(flops(sizes))),
        ("cells", count_text(softmax_cells(sizes))),
        ("activations", bytes_text(activation_bytes(sizes))),
        ("cache", bytes_text(cache_bytes(sizes))),
    )
    for index, (name, text) in enumerate(numbers):
        x = index * WIDTH / len(numbers)
        canvas.text(x, 18, text, size=26, bold=True)
        canvas.text(x, 45, words[name], size=15, colour=canvas.theme.soft)


def step_colours(theme: Theme) -> Mapping[str, tuple[str, str]]:
    """The steps that multiply matrices: what is written on each, and its colour."""
    return {
        "Q": ("X·W<sub>Q</sub>", theme.Q),
        "K": ("X·W<sub>K</sub>", theme.K),
        "V": ("X·W<sub>V</sub>", theme.V),
        "raw_scores": ("Q·K<sup>T</sup>", theme.weights),
        "head_outputs": ("A·V", theme.weights),
        "output": ("Z·W<sub>O</sub>", theme.output),
    }


def _where(canvas: Canvas, sizes: Sizes, words: Mapping[str, str]) -> None:
    """One bar, as long as the picture is wide, cut by step."""
    canvas.text(0, _BAR.top - 18, words["where"].format(n=f"{sizes.n_q:,}"), size=17, bold=True)
    steps = {step.name: measure(step.flops, sizes) for step in COST_STEPS if step.flops}
    total, left = sum(steps.values()), _BAR.left
    for name, (label, colour) in step_colours(canvas.theme).items():
        share = steps[name] / total
        right = left + share * _BAR.width
        if round(right) - round(left) > 2:
            canvas.raster.fill(Box(round(left), _BAR.top, round(right) - 2, _BAR.bottom), colour)
        percent = percent_text(share).replace("<", "&lt;")
        texts = (f"{label}  {percent}", percent)
        if fitting := [text for text in texts if text_width(_MARKUP.sub("", text), 16) < right - left - 8]:
            ink = ink_on(rgb(colour))
            canvas.text((left + right) / 2 - 1, _BAR.y, fitting[0], size=16, bold=True, anchor="center", colour=ink)
        left = right
