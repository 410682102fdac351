"""Curves, bands, bars and dots over axes with numbers, several panels on one canvas.

A panel is drawn in the canvas's pixels, like everything else: one pair of axes in Plotly, whatever
the number of panels, and matrices beside curves where a picture wants both (``chart.canvas``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mha_core.figures.canvas import Anchor, Canvas
from mha_core.figures.geometry import Array, Box
from mha_core.figures.labels import text_width
from mha_core.figures.picture import Picture, typed
from mha_core.figures.theme import Theme, rgb

__all__ = ["Chart", "Panel", "nice_ticks", "tick_text"]

WIDTH = 1130
LEFT, ABOVE, BELOW = 52, 34, 46  # px around a panel for its numbers, its title, and the name of x
_TICK, _NAME, _TITLE, _LABEL = 14.0, 14.0, 17.0, 15.0
_APART = 19  # px between the labels of two lines
_ROOM = 0.06  # of the axis, above and below what is drawn

Ticks = Sequence[tuple[float, str]]


class Chart:
    """Panels on one canvas.

    Args:
        height: in pixels.
        theme: its colours.
    """

    def __init__(self, height: int, theme: Theme, width: int = WIDTH) -> None:
        self.canvas = Canvas(width, height, theme)
        self._panels: list[Panel] = []

    def panel(
        self,
        box: Box,
        *,
        title: str = "",
        x: str = "",
        y: str = "",
        x_log: bool = False,
        y_log: bool = False,
        x_range: tuple[float, float] | None = None,
        y_range: tuple[float, float] | None = None,
        x_ticks: Ticks | None = None,
        y_ticks: Ticks | None = None,
    ) -> Panel:
        """A panel to draw in.

        Args:
            box: where its data lie; 52 px at the left, 34 above and 46 below stay for the axes.
            title: bold, above it.
            x, y: what the axes count, with the unit: x below at the right, y beside the title.
            x_range, y_range: from what is drawn when None; what lies outside is drawn at the edge.
            x_ticks, y_ticks: pairs (value, text); round numbers when None.
        """
        panel = Panel(
            self.canvas, box, title, x, y, _Axis(x_log, x_range, x_ticks, tight=True), _Axis(y_log, y_range, y_ticks)
        )
        self._panels.append(panel)
        return panel

    def picture(self) -> Picture:
        """The figure."""
        for panel in self._panels:
            panel.draw()
        return self.canvas.picture()


@dataclass
class _Axis:
    log: bool
    given: tuple[float, float] | None
    given_ticks: Ticks | None
    tight: bool = False  # no room at its ends
    seen: list[Array] = field(default_factory=list)

    def see(self, values: Array) -> None:
        self.seen.append(values)

    def range(self) -> tuple[float, float]:
        """In its own measure: the logarithm on a logarithmic axis."""
        if self.given is not None:
            low, high = (float(end) for end in self.measure(np.array(self.given, float)))
            return low, high
        seen = np.concatenate([np.ravel(values) for values in self.seen]) if self.seen else np.zeros(1)
        measured = self.measure(seen)
        measured = measured[np.isfinite(measured)]
        low, high = (float(measured.min()), float(measured.max())) if measured.size else (0.0, 1.0)
        if high == low:
            low, high = low - 0.5, high + 0.5
        room = 0.0 if self.tight else _ROOM * (high - low)
        return (low if low == 0 and not self.log else low - room), high + room

    def measure(self, values: Array) -> Array:
        if not self.log:
            return values
        return np.log10(np.where(values > 0, values, np.nan))

    def ticks(self) -> Ticks:
        if self.given_ticks is not None:
            return self.given_ticks
        low, high = self.range()
        if self.log:
            powers = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
            step = max(1, math.ceil(len(powers) / 6))
            return [(10.0**power, tick_text(10.0**power)) for power in powers[::step]]
        return [(value, tick_text(value)) for value in nice_ticks(low, high)]


class Panel:
    """One pair of axes; made by :meth:`Chart.panel`. Everything is drawn when the chart is finished."""

    def __init__(self, canvas: Canvas, box: Box, title: str, x: str, y: str, x_axis: _Axis, y_axis: _Axis) -> None:
        self._canvas, self.box, self._names = canvas, box, (title, x, y)
        self._x, self._y = x_axis, y_axis
        self._drawn: list[Callable[[], None]] = []
        self._labels: list[tuple[float, float, str, str]] = []

    def line(
        self,
        x: Array | Sequence[float],
        y: Array | Sequence[float],
        colour: str,
        *,
        width: float = 3,
        dash: str | None = None,
        name: str = "",
        markers: bool = False,
        hover: str = "",
    ) -> None:
        """A curve; NaN leaves a gap.

        Args:
            dash: "dot" or "dash".
            name: written at its right end, and first in what answers the pointer.
            hover: another template for that: %{customdata[0]} is x, %{customdata[1]} is y.
        """
        xs, ys = self._see(x, y)

        def draw() -> None:
            px, py = self.at(xs, ys)
            self._answer(
                (px, py), (xs, ys), hover or self._template(name), mode="lines+markers" if markers else "lines",
                line={"color": colour, "width": width, **({"dash": dash} if dash else {})},
                marker={"color": colour, "size": 7}, cliponaxis=False,
            )  # fmt: skip
            drawn = np.flatnonzero(np.isfinite(py))
            if name and drawn.size:
                self._labels.append((float(px[drawn[-1]]) + 8, float(py[drawn[-1]]), name, colour))

        self._drawn.append(draw)

    def band(
        self, x: Array | Sequence[float], low: Array | Sequence[float], high: Array | Sequence[float], colour: str
    ) -> None:
        """What lies between two curves, such as quantiles, translucent and without hover."""
        xs, lows = self._see(x, low)
        xs, highs = self._see(x, high)

        def draw() -> None:
            px, down = self.at(xs, lows)
            _, up = self.at(xs, highs)
            keep = np.isfinite(up) & np.isfinite(down)
            around = np.concatenate([px[keep], px[keep][::-1]]), np.concatenate([up[keep], down[keep][::-1]])
            red, green, blue = rgb(colour)
            self._canvas.add(
                {
                    "type": "scatter", "mode": "none", "x": typed(around[0]), "y": typed(around[1]), "fill": "toself",
                    "fillcolor": f"rgba({red},{green},{blue},.18)", "hoverinfo": "skip",
                }
            )  # fmt: skip

        self._drawn.insert(0, draw)  # below every line

    def dots(
        self,
        x: Array | Sequence[float],
        y: Array | Sequence[float],
        colour: str,
        *,
        size: float = 9,
        symbol: str = "circle",
        name: str = "",
        names: Sequence[str] = (),
    ) -> None:
        """Points; ``names``, safe for Plotly, say what each of them is, to the pointer."""
        xs, ys = self._see(x, y)

        def draw() -> None:
            edge = {"color": self._canvas.theme.background, "width": 1.5}
            self._answer(
                self.at(xs, ys), (xs, ys), self._template(name), names, mode="markers", cliponaxis=False,
                marker={"color": colour, "size": size, "symbol": symbol, "opacity": 1, "line": edge},
            )  # fmt: skip

        self._drawn.append(draw)

    def bars(
        self,
        x: Array | Sequence[float],
        heights: Array | Sequence[float],
        colour: str,
        *,
        width: float = 0.8,
        names: Sequence[str] = (),
        outlined: bool = False,
    ) -> None:
        """Bars from 0; ``width`` in the units of x; ``names`` answer the pointer; or only their outlines."""
        xs, ys = self._see(x, heights)
        self._x.see(np.array([xs.min() - width / 2, xs.max() + width / 2]))
        self._y.see(np.zeros(1))

        def draw() -> None:
            left, top = self.at(xs - width / 2, ys)
            right, zero = self.at(xs + width / 2, np.zeros_like(ys))
            for index in np.flatnonzero(np.isfinite(top)).tolist():
                y0, y1 = sorted((float(top[index]), float(zero[index])))
                x0, x1 = round(float(left[index])), round(float(right[index]))
                bar = Box(x0, min(round(y0), round(y1) - 1), max(x1, x0 + 1), round(y1))
                if outlined:
                    self._canvas.outline(bar.grow(-1), colour, 2)
                else:
                    self._canvas.raster.fill(bar, colour)
            height = "<b>%{customdata[1]:.4g}</b><extra></extra>"
            at = (left + right) / 2, top
            self._answer(at, (xs, ys), height, names, mode="markers", marker={"size": 12, "opacity": 0})

        self._drawn.append(draw)

    def mark(self, *, x: float | None = None, y: float | None = None, label: str = "", colour: str = "") -> None:
        """A line across the panel, at x or at y, with its label at the end: the current value, a bound."""
        if x is not None:
            self._x.see(np.array([x]))
        if y is not None:
            self._y.see(np.array([y]))

        def draw() -> None:
            box, ink = self.box, colour or self._canvas.theme.ink
            px, py = (
                float(value[0])
                for value in self.at(
                    np.array([self._any_x() if x is None else x]), np.array([self._any_y() if y is None else y])
                )
            )
            if x is not None:
                self._canvas.raster.fill(Box(round(px) - 1, box.top, round(px) + 1, box.bottom), ink)
                left = px < (box.left + box.right) / 2
                anchor: Anchor = "left" if left else "right"
                self._canvas.text(px + (7 if left else -7), box.top + 9, label, size=_LABEL, bold=True, colour=ink,
                                  anchor=anchor)  # fmt: skip
            else:
                self._canvas.raster.fill(Box(box.left, round(py), box.right, round(py) + 1), ink)
                self._canvas.text(box.left + 6, py - 10, label, size=_NAME, colour=ink)

        self._drawn.append(draw)

    def text(
        self, x: float, y: float, text: str, *, colour: str = "", anchor: Anchor = "left", size: float = _LABEL,
        bold: bool = False,
    ) -> None:  # fmt: skip
        """A line of text at a place among the data. Text of a user comes escaped."""
        self._see([x], [y])

        def draw() -> None:
            px, py = self.at(np.array([x]), np.array([y]))
            self._canvas.text(
                float(px[0]), float(py[0]), text, size=size, bold=bold, colour=colour or None, anchor=anchor
            )

        self._drawn.append(draw)

    def at(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Where data lie on the canvas, in pixels; only once everything has been said."""
        box = self.box
        (x0, x1), (y0, y1) = self._x.range(), self._y.range()
        across = np.clip((self._x.measure(x) - x0) / (x1 - x0), 0, 1)
        up = np.clip((self._y.measure(y) - y0) / (y1 - y0), 0, 1)
        return box.left + across * box.width, box.bottom - up * (box.bottom - box.top)

    def draw(self) -> None:
        """Axes, then everything in the order in which it was said, then the labels of lines."""
        self._draw_axes()
        for one in self._drawn:
            one()
        labels = sorted(self._labels, key=lambda label: label[1])
        for (x, _, text, colour), y in zip(labels, self._apart([y for _, y, _, _ in labels]), strict=True):
            self._canvas.text(x, y, text, size=_LABEL, bold=True, colour=colour)

    def _apart(self, heights: list[float]) -> list[float]:
        """Heights of labels, downwards, moved so far that each can be read: down, and up again from the bottom."""
        for index in range(1, len(heights)):
            heights[index] = max(heights[index], heights[index - 1] + _APART)
        lowest = self.box.bottom
        for index in reversed(range(len(heights))):
            heights[index] = min(heights[index], lowest)
            lowest = heights[index] - _APART
        return heights

    def _draw_axes(self) -> None:
        canvas, box, theme = self._canvas, self.box, self._canvas.theme
        title, x_name, y_name = self._names
        for value, text in self._y.ticks():
            y = float(self.at(np.array([self._any_x()]), np.array([value]))[1][0])
            canvas.raster.fill(Box(box.left, round(y), box.right, round(y) + 1), theme.mask)
            canvas.text(box.left - 8, y, text, size=_TICK, colour=theme.soft, anchor="right")
        taken = -math.inf
        for value, text in self._x.ticks():
            x = float(self.at(np.array([value]), np.array([self._any_y()]))[0][0])
            canvas.raster.fill(Box(round(x), box.bottom, round(x) + 1, box.bottom + 5), theme.soft)
            half = text_width(re.sub("<[^>]+>", "", text), _TICK) / 2
            if x - half < taken:  # no room for its text
                continue
            taken = x + half + 6
            canvas.text(x, box.bottom + 15, text, size=_TICK, colour=theme.soft, anchor="center")
        canvas.raster.fill(Box(box.left, box.bottom, box.right, box.bottom + 1), theme.soft)
        quantity = f'  <span style="font-size:{_NAME:.0f}px;font-weight:400">{y_name}</span>' if y_name else ""
        canvas.text(box.left, box.top - 20, f"{title}{quantity}" if title else y_name, size=_TITLE if title else _NAME,
                    bold=bool(title))  # fmt: skip
        if x_name:
            canvas.text(box.right, box.bottom + 34, x_name, size=_NAME, colour=theme.soft, anchor="right")

    def _any_x(self) -> float:
        low = self._x.range()[0]
        return 10.0**low if self._x.log else low

    def _any_y(self) -> float:
        low = self._y.range()[0]
        return 10.0**low if self._y.log else low

    def _answer(
        self, at: tuple[Array, Array], data: tuple[Array, Array], template: str, names: Sequence[str] = (), **more: Any
    ) -> None:
        """A trace at these pixels that answers the pointer with its data, and with a name for each point."""
        trace = {
            "type": "scatter", "x": typed(at[0]), "y": typed(at[1]), "customdata": typed(np.stack(data, 1), "f8"),
            "hovertemplate": ("%{text}<br>" if names else "") + template, **more,
        }  # fmt: skip
        self._canvas.add({**trace, "text": list(names)} if names else trace)

    def _see(self, x: Array | Sequence[float], y: Array | Sequence[float]) -> tuple[Array, Array]:
        xs, ys = np.asarray(x, float), np.asarray(y, float)
        self._x.see(xs)
        self._y.see(ys)
        return xs, ys

    def _template(self, name: str) -> str:
        _, x_name, _ = self._names
        first = f"{name}<br>" if name else ""
        return f"{first}{x_name} %{{customdata[0]:.4g}}<br><b>%{{customdata[1]:.4g}}</b><extra></extra>"


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from low to high, about so many: steps of 1, 2 or 5 times a power of ten.

    >>> nice_ticks(0, 1), nice_ticks(-3.2, 12)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 5.0, 10.0])
    """
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= rough * (1 - 1e-9))
    count = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [float(f"{index * step:.12g}") for index in count]


def tick_text(value: float) -> str:
    """How a number at an axis is printed.

    >>> [tick_text(value) for value in (0.0, 0.5, -2.0, 1000.0, 1e6, 1e-4)]
    ['0', '.5', '−2', '1,000', '10<sup>6</sup>', '10<sup>−4</sup>']
    """
    size = abs(value)
    if size and (size >= 1e6 or size < 1e-3):
        mantissa, exponent = f"{value:.0e}".split("e")
        factor = {"1": "", "-1": "−"}.get(mantissa, mantissa.replace("-", "−") + "·")
        return f"{factor}10<sup>{int(exponent)}</sup>".replace("<sup>-", "<sup>−")
    text = f"{value:,.6g}" if size >= 1 else f"{value:.3g}".replace("0.", ".", 1)
    return text.replace("-", "−")
