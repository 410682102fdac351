"""The colours of every figure, light and dark, and the limit of a signed colour scale."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

__all__ = [
    "DARK", "LIGHT", "MONO", "SANS", "THEMES", "Theme", "ink_on", "limit_text", "number_text", "ramp", "rgb",
    "signed_limit", "theme_named",
]  # fmt: skip

SANS = '"Source Sans", "Source Sans Pro", "Noto Sans CJK SC", "Microsoft YaHei", "PingFang SC", sans-serif'
MONO = '"Source Code Pro", "DejaVu Sans Mono", monospace'


@dataclass(frozen=True)
class Theme:
    """Colours as "#RRGGBB". A role's colour always comes with its letter, never alone.

    Attributes:
        signed: five stops from the lowest value over 0 to the highest; hue tells the sign.
        weight: five stops from 0 to 1; lightness tells the size.
        grid: between the cells of a large map.
    """

    name: str
    background: str
    tint: str
    ink: str
    soft: str
    Q: str
    K: str
    V: str
    weights: str
    output: str
    X: str
    signed: tuple[str, ...]
    weight: tuple[str, ...]
    mask: str
    hatch: str
    grid: str


LIGHT = Theme(
    name="light",
    background="#FFFFFF",
    tint="#F3F4F8",
    ink="#1A1C23",
    soft="#5A6072",
    Q="#0072B2",
    K="#C24A00",
    V="#007A59",
    weights="#A3437F",
    output="#B06F00",
    X="#3D4454",
    signed=("#1F4E9C", "#7FA6DB", "#F4F4F2", "#E9A15F", "#9C3D00"),
    weight=("#FBF7FA", "#EBC5DC", "#CC79A7", "#923F73", "#4B0F38"),
    mask="#E4E6EB",
    hatch="#8D93A3",
    grid="#FFFFFF",
)

DARK = Theme(
    name="dark",
    background="#0F1218",
    tint="#181D27",
    ink="#F2F4F8",
    soft="#AEB5C4",
    Q="#56B4E9",
    K="#FF8A4C",
    V="#2BD4A4",
    weights="#E79BC6",
    output="#F5B942",
    X="#C8CEDA",
    signed=("#8CC4FF", "#2E66B0", "#20242E", "#B4591A", "#FFC08A"),
    weight=("#1B1720", "#542347", "#A3437F", "#E79BC6", "#FFF0F8"),
    mask="#2A2F3A",
    hatch="#6E7689",
    grid="#10131A",
)

THEMES: Mapping[str, Theme] = MappingProxyType({"light": LIGHT, "dark": DARK})


def theme_named(name: str) -> Theme:
    """The theme of that name.

    Raises:
        KeyError: there is none.
    """
    if name not in THEMES:
        raise KeyError(f"there is no theme {name!r}; the themes are {', '.join(THEMES)}")
    return THEMES[name]


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue, 0 … 255, of "#RRGGBB".

    >>> rgb("#FF8A4C")
    (255, 138, 76)
    """
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def ramp(stops: tuple[str, ...], count: int) -> np.ndarray[Any, Any]:
    """``count`` colours along evenly spaced stops, (count, 3) as uint8.

    >>> ramp(("#000000", "#FFFFFF"), 3)[:, 0].tolist()
    [0, 128, 255]
    """
    at = np.linspace(0, len(stops) - 1, count)
    channels = np.array([rgb(stop) for stop in stops], float).T
    return np.stack([np.interp(at, range(len(stops)), channel) for channel in channels], 1).round().astype(np.uint8)


def signed_limit(array: np.ndarray[Any, Any]) -> float:
    """The largest magnitude, rounded up to two digits, so that the limit printed is the limit used.

    Entries that are not finite (masked scores) do not count; 1 when nothing but zeros is left.

    >>> signed_limit(np.array([-3.01, 2.0, -np.inf])), signed_limit(np.zeros(3))
    (3.1, 1.0)
    """
    largest = max(-float(array.min(initial=0)), float(array.max(initial=0)))
    if not math.isfinite(largest):
        largest = float(np.abs(array).max(initial=0, where=np.isfinite(array)))
    if largest < 1e-300:
        return 1.0
    step = 10.0 ** (math.floor(math.log10(largest)) - 1)
    digits = math.ceil(largest / step * (1 - 1e-6))  # 14.000001 is 14: rounding noise is no reason for 15
    return float(f"{digits * step:.2g}")


def limit_text(limit: float) -> str:
    """How a limit is printed.

    >>> [limit_text(limit) for limit in (14.0, 0.5, 3.1, 0.0024, 120000.0)]
    ['±14', '±.5', '±3.1', '±.0024', '±1.2e5']
    """
    if 1e-4 <= limit < 1e5:
        return "±" + f"{limit:.6f}".rstrip("0").rstrip(".").removeprefix("0")
    mantissa, exponent = f"{limit:.1e}".split("e")
    return f"±{mantissa.removesuffix('.0')}e{int(exponent)}"


def ink_on(colour: tuple[int, int, int]) -> str:
    """Black or white, whichever has more contrast on a colour (WCAG 2.1, relative luminance).

    >>> ink_on((156, 61, 0)), ink_on((244, 244, 242))
    ('#FFFFFF', '#000000')
    """
    linear = [(c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4) for c in colour]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#FFFFFF" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 else "#000000"


def number_text(value: float) -> str:
    """How a number in a cell is printed: two decimals, none where there are none.

    >>> [number_text(value) for value in (-2.0, 0.0, 0.894285, -1.6828556, 0.0001, 1.0)]
    ['−2', '0', '.89', '−1.68', '.00', '1']
    """
    text = f"{value:.0f}" if value == round(value) else f"{value:.2f}".replace("0.", ".", 1)
    return "0" if text == "-0" else text.replace("-", "−")
