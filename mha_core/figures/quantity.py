"""Large counts and bytes as a person reads them."""

from __future__ import annotations

__all__ = ["bytes_text", "count_text", "percent_text", "seconds_text", "times_text"]

_EXACT = 10_000_000


def count_text(value: int) -> str:
    """Every digit below ten million, three above.

    >>> [count_text(value) for value in (400, 1_050_624, 604_028_928, 1_002_754_604_531_712)]
    ['400', '1,050,624', '604 M', '1,003 T']
    """
    if value < _EXACT:
        return f"{value:,}"
    for power, prefix in ((12, "T"), (9, "G"), (6, "M")):
        if value >= 10**power:
            return f"{_three(value / 10**power)} {prefix}"
    raise AssertionError(value)


def bytes_text(value: int) -> str:
    """In powers of 1024.

    >>> [bytes_text(value) for value in (512, 327_680, 2_621_440, 3 * 2**30, 1_600_000)]
    ['512 B', '320 KiB', '2.5 MiB', '3 GiB', '1.53 MiB']
    """
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if value >= 2**power:
            return f"{_three(value / 2**power)} {unit}"
    return f"{value} B"


def times_text(ratio: float) -> str:
    """×16, ×1, ×1/16.

    >>> [times_text(ratio) for ratio in (16.0, 1.0, 1 / 16, 2.5)]
    ['×16', '×1', '×1/16', '×2.5']
    """
    return f"×{_three(ratio)}" if ratio >= 1 else f"×1/{_three(1 / ratio)}"


def percent_text(share: float) -> str:
    """A whole percentage, and "< 1 %" rather than nothing.

    >>> [percent_text(share) for share in (0.0, 0.002, 0.5)]
    ['0 %', '< 1 %', '50 %']
    """
    return "< 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def seconds_text(seconds: float) -> str:
    """Three digits, in the unit that suits.

    >>> [seconds_text(seconds) for seconds in (0.0000123, 0.0123, 1.5)]
    ['12.3 µs', '12.3 ms', '1.5 s']
    """
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{_three(seconds / scale)} {unit}"
    return f"{_three(seconds / 1e-9)} ns"


def _three(value: float) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
