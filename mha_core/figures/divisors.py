"""What scores are divided by, as figures name and colour it."""

from __future__ import annotations

from collections.abc import Mapping

from mha_core.figures.theme import Theme

__all__ = ["DIVISOR_NAMES", "beside", "divisor_colours"]

DIVISOR_NAMES: Mapping[str, str] = {"one": "÷ 1", "sqrt": "÷ √d<sub>k</sub>", "d_k": "÷ d<sub>k</sub>"}
"""For each of ``experiments.DIVISORS``."""


def divisor_colours(theme: Theme) -> Mapping[str, str]:
    """Warm where scores grow with d_k, cool where they are tamed; always with the name."""
    return {"one": theme.signed[-1], "sqrt": theme.signed[0], "d_k": theme.V}


def beside(divisor: str) -> str:
    """What a divisor is compared with: the paper's with none, others with the paper's.

    >>> beside("sqrt"), beside("d_k")
    ('one', 'sqrt')
    """
    return "one" if divisor == "sqrt" else "sqrt"
