"""How a size is written that may be a rounding error or a real difference."""

from __future__ import annotations

import math

__all__ = ["deviation_text", "power_text"]

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def deviation_text(value: float) -> str:
    """Two digits, a power of ten where it is small: 0 only where it is 0.

    >>> [deviation_text(value) for value in (0.0, 4.4e-16, 1e-7, 0.0123, 0.856, 1.83, 23.4)]
    ['0', '4·10⁻¹⁶', '10⁻⁷', '.012', '.86', '1.8', '23']
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "∞"
    if value >= 0.001:
        decimals = max(0, 1 - math.floor(math.log10(value)))
        text = f"{value:.{decimals}f}"
        return text[1:] if text.startswith("0.") else text
    return power_text(value)


def power_text(value: float) -> str:
    """One digit and a power of ten, whatever the size.

    >>> power_text(6.04e-7), power_text(1e-6), power_text(0.0)
    ('6·10⁻⁷', '10⁻⁶', '0')
    """
    if value == 0:
        return "0"
    digit, _, power = f"{value:.0e}".partition("e")
    raised = "10" + str(int(power)).translate(_RAISED)
    return raised if digit == "1" else f"{digit}·{raised}"
