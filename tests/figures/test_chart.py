"""Charts: what is drawn lies where the axes say it is."""

import base64
import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_core.figures.chart import Chart, nice_ticks, tick_text
from mha_core.figures.geometry import Box
from mha_core.figures.theme import DARK, LIGHT, THEMES

BOX = Box(100, 50, 500, 250)


def untyped(value):
    if not isinstance(value, dict) or "bdata" not in value:
        return value
    shape = [int(size) for size in value["shape"].split(",")]
    return np.frombuffer(base64.b64decode(value["bdata"]), "<" + value["dtype"]).reshape(shape)


def of_mode(picture, mode):
    return [
        SimpleNamespace(**{name: untyped(value) for name, value in trace.items()})
        for trace in picture.to_dict()["data"]
        if trace.get("mode") == mode
    ]


def texts(picture):
    return {
        text: (x, y)
        for trace in of_mode(picture, "text")
        for text, x, y in zip(trace.text, trace.x, trace.y, strict=True)
    }


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_plotly_accepts_everything_a_panel_can_draw(theme):
    chart = Chart(300, theme)
    panel = chart.panel(BOX, title="Title", x="x", y="y / nats", x_log=True)
    x = np.array([1.0, 10.0, 100.0])
    panel.band(x, [0, 1, 2], [1, 2, 3], theme.K)
    panel.line(x, [0.5, np.nan, 2.5], theme.K, name="line", dash="dot", markers=True)
    panel.dots(x, [1, 1, 1], theme.V, names=["a", "b", "c"])
    panel.mark(x=10.0, label="here")
    panel.mark(y=1.0, label="bound")
    panel.text(10.0, 2.0, "text")
    other = chart.panel(Box(600, 50, 900, 250))
    other.bars([0, 1], [1.0, -1.0], theme.weights)
    other.bars([0, 1], [1.0, -1.0], theme.ink, outlined=True)
    figure = chart.picture().figure()
    assert figure.layout.height == 300
    assert {trace.type for trace in figure.data} == {"image", "scatter"}


def test_a_line_lies_where_its_axes_say_it_is():
    chart = Chart(300, LIGHT)
    panel = chart.panel(BOX, x_range=(0, 4), y_range=(0, 1))
    panel.line([0, 1, 4], [0, 0.5, 1], LIGHT.Q)
    (line,) = of_mode(chart.picture(), "lines")
    assert line.x.tolist() == [100, 200, 500]
    assert line.y.tolist() == [250, 150, 50]
    assert line.customdata.tolist() == [[0, 0], [1, 0.5], [4, 1]]


def test_on_a_logarithmic_axis_equal_factors_are_equally_far_apart():
    chart = Chart(300, LIGHT)
    panel = chart.panel(BOX, x_log=True, y_log=True)
    panel.line([1, 10, 100], [1, 10, 100], LIGHT.Q)
    (line,) = of_mode(chart.picture(), "lines")
    assert np.allclose(np.diff(line.x), 200) and np.ptp(np.diff(line.y)) < 1e-3


def test_what_a_logarithm_cannot_show_is_left_out_and_breaks_nothing():
    chart = Chart(300, LIGHT)
    chart.panel(BOX, y_log=True).line([1, 2, 3], [1, 0, 100], LIGHT.Q)
    (line,) = of_mode(chart.picture(), "lines")
    assert np.isnan(line.y).tolist() == [False, True, False]


@pytest.mark.parametrize("values", [[], [3.0, 3.0], [np.nan, np.nan], [0.0]])
def test_a_panel_with_nothing_to_measure_still_has_axes(values):
    chart = Chart(300, LIGHT)
    chart.panel(BOX).line(range(len(values)), values, LIGHT.Q, name="line")
    assert chart.picture().figure().layout.height == 300


def test_ticks_stand_at_their_values():
    chart = Chart(300, LIGHT)
    panel = chart.panel(BOX, x_range=(0, 10), y_range=(0, 1), x_ticks=[(0, "zero"), (5, "five")])
    panel.line([0, 10], [0, 1], LIGHT.Q)
    at = texts(chart.picture())
    assert at["zero"][0] == 100 and at["five"][0] == 300
    assert at[".2"][1] == pytest.approx(210) and at["1"][1] == pytest.approx(50)


def test_texts_of_ticks_do_not_run_into_each_other():
    chart = Chart(300, LIGHT)
    panel = chart.panel(Box(100, 50, 200, 250), x_ticks=[(i, "10,000") for i in range(20)], x_range=(0, 19))
    panel.line([0, 19], [0, 1], LIGHT.Q)
    (trace,) = of_mode(chart.picture(), "text")
    x = sorted(x for text, x in zip(trace.text, trace.x, strict=True) if text == "10,000")
    assert 2 <= len(x) <= 3 and min(np.diff(x)) > 40


def test_labels_of_lines_that_end_together_are_moved_apart():
    chart = Chart(300, LIGHT)
    panel = chart.panel(BOX)
    for name in ("one", "two", "three"):
        panel.line([0, 1], [0.5, 0.5], LIGHT.Q, name=name)
    at = texts(chart.picture())
    heights = sorted(at[name][1] for name in ("one", "two", "three"))
    assert min(np.diff(heights)) >= 17


def test_a_bar_is_painted_from_zero_to_its_value():
    chart = Chart(300, LIGHT)
    panel = chart.panel(BOX, x_range=(0, 4), y_range=(-1, 1))
    panel.bars([1, 3], [0.5, -0.5], LIGHT.V, width=1)
    chart.picture()
    painted, green = chart.canvas.raster.at, chart.canvas.raster.ink(LIGHT.V)
    assert painted(200, 102) == painted(200, 148) == green  # 0 … .5 is y 150 … 100
    assert painted(200, 97) != green and painted(200, 153) != green
    assert painted(400, 152) == painted(400, 198) == green
    assert painted(400, 147) != green and painted(400, 203) != green


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_round_within_the_range_and_neither_few_nor_many(low, span):
    ticks = nice_ticks(low, low + span)
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in ticks)
    assert 1 <= len(ticks) <= 7


def test_numbers_at_axes_read_as_the_app_writes_them():
    assert [tick_text(v) for v in (0.25, -0.5, 2e7, 12.5)] == [".25", "−.5", "2·10<sup>7</sup>", "12.5"]


def test_both_themes_differ_in_nothing_but_colours():
    def shape(theme):
        chart = Chart(300, theme)
        chart.panel(BOX, title="t").line([0, 1], [0, 1], theme.Q)
        spec = chart.picture().to_dict()
        return re.sub(r"#[0-9A-F]{6}", "", str(spec["data"][1:]))

    assert shape(LIGHT) == shape(DARK)
