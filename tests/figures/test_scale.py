"""The pictures of the page "scale": what is drawn is what was drawn at random, and what was trained."""

import numpy as np
import pytest

from mha_core.figures.divisors import DIVISOR_NAMES, divisor_colours
from mha_core.figures.scale import HeadDots, scale
from mha_core.figures.scale_race import scale_race
from mha_core.figures.scale_trap import scale_trap
from mha_core.figures.theme import THEMES
from mha_core.random_queries import D_KS, SHARES, draw, sweep
from mha_core.saturation import head_saturation
from mha_core.scale_race import RACERS, Lap
from tests.figures.test_overview import decoded

LAPS = [Lap(step, {"sqrt": step / 20, "one": 0.3}, {"sqrt": 0.1, "one": step / 40}) for step in (0, 10, 20)]


@pytest.fixture(scope="module")
def swept():
    return sweep(16, count=300)


def traces(picture, **wanted):
    """Traces with these properties, such as mode="lines"."""
    return [one for one in picture.to_dict()["data"] if all(one.get(name) == value for name, value in wanted.items())]


def curves(picture, colour):
    """The x and y of every curve of a colour, in the order in which they were drawn."""
    lines = [one for one in traces(picture, mode="lines") if one["line"]["color"] == colour]
    return [decoded(one["customdata"]).reshape(-1, 2).T for one in lines]


def texts(picture):
    found = []
    for one in picture.to_dict()["data"]:
        text = one.get("text", [])
        found += text if isinstance(text, list) else [text]
    return found


def dots_of(trace, divisor):
    h = trace.sizes["h"]
    return HeadDots(trace.sizes["d_k"], head_saturation(trace, divisor), [f"head {i + 1}" for i in range(h)])


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("n", "d_k", "divisor"), [(1, 1, "sqrt"), (2, 512, "one"), (16, 37, "d_k"), (64, 64, "sqrt")])
def test_every_setting_is_a_valid_figure(trace_of, n, d_k, divisor, theme):
    swept = sweep(n, count=40)
    draws = draw(n, [d_k], count=40)[d_k]
    for heads in (None, dots_of(trace_of(6, 8, 16), divisor)):
        scale(swept, draws, divisor=divisor, heads=heads, theme=theme).figure()
    scale_trap(swept, theme=theme).figure()
    for laps in ([], LAPS[:1], LAPS):
        scale_race(laps, steps=300, theme=theme).figure()


@pytest.mark.parametrize("divisor", DIVISOR_NAMES)
def test_a_curve_along_d_k_is_the_median_of_the_draws(swept, divisor):
    picture = scale(swept, swept.at[64], divisor=divisor)
    for name, colour in divisor_colours(THEMES["light"]).items():
        _, *along = curves(picture, colour)  # the histogram comes first
        assert len(along) == 4
        medians = [
            [np.median(swept.at[d_k].by_divisor[name].of(quantity)) for d_k in D_KS]
            for quantity in ("largest", "entropy", "jacobian")
        ]
        dead = [np.mean(swept.at[d_k].by_divisor[name].jacobian < 0.01) for d_k in D_KS]
        for (x, y), expected in zip(along, [*medians, dead], strict=True):
            assert x.tolist() == list(D_KS)
            assert y == pytest.approx(np.array(expected))


def test_the_chosen_divisor_is_drawn_boldest(swept):
    for divisor in DIVISOR_NAMES:
        picture = scale(swept, swept.at[64], divisor=divisor)
        widths = {
            name: max(one["line"]["width"] for one in traces(picture, mode="lines") if one["line"]["color"] == colour)
            for name, colour in divisor_colours(THEMES["light"]).items()
        }
        assert max(widths, key=widths.get) == divisor


def test_the_bars_are_the_weights_of_the_typical_query(swept):
    draws = swept.at[64]
    picture = scale(swept, draws, divisor="sqrt")
    invisible = [one for one in traces(picture, mode="markers") if one["marker"].get("opacity") == 0]
    shown = [decoded(one["customdata"]).reshape(-1, 2)[:, 1] for one in invisible]
    for values, divisor in zip(shown, ("sqrt", "one"), strict=True):
        scores = draws.raw_scores[draws.typical].astype(float) / (8 if divisor == "sqrt" else 1)
        weights = np.exp(scores - scores.max())
        assert values == pytest.approx(np.sort(weights / weights.sum())[::-1])
        assert np.all(np.diff(values) <= 0)


def test_of_many_keys_the_best_are_drawn_and_it_is_said():
    swept = sweep(64, count=40)
    picture = scale(swept, swept.at[64])
    bars = [one for one in traces(picture, mode="markers") if one["marker"].get("opacity") == 0]
    assert [len(decoded(one["x"])) for one in bars] == [16, 16]
    assert "its 16 best keys of 64" in texts(picture)
    assert "ln 64" in texts(picture) and "1/64" in texts(picture)


def test_the_heads_are_dots_at_their_own_d_k(swept, trace_of):
    trace = trace_of(6, 4, 32)
    heads = dots_of(trace, "one")
    picture = scale(swept, swept.at[64], divisor="one", heads=heads)
    dots = [one for one in traces(picture, mode="markers") if one["marker"].get("color") == THEMES["light"].weights]
    assert len(dots) == 4
    for one, quantity in zip(dots, ("largest", "entropy", "jacobian", "dead"), strict=True):
        x, y = decoded(one["customdata"]).reshape(-1, 2).T
        assert x.tolist() == [8] * 4
        measured = heads.measured
        expected = [head.dead if quantity == "dead" else head.median(quantity) for head in measured]
        assert y == pytest.approx(np.array(expected))
        assert one["text"] == ["head 1", "head 2", "head 3", "head 4"]


def test_the_current_d_k_is_written_in_bold(swept):
    for d_k in (1, 8, 16, 512):
        assert texts(scale(swept, swept.at[d_k])).count(f"<b>{d_k}</b>") == 4
    written = texts(scale(swept, swept.at[16]))
    assert "<b>16</b>" in written and "8" not in written  # no room for both


def test_the_trap_shows_mean_and_median_of_both_quantities(swept):
    picture = scale_trap(swept)
    bare, scaled = swept.curves["one"], swept.curves["sqrt"]
    colours = divisor_colours(THEMES["light"])
    drawn = [y for _, y in curves(picture, colours["one"])]
    expected = []
    for quantity in ("jacobian", "gradient"):
        tenth = bare.quantiles[quantity][SHARES.index(0.9)]
        expected += [tenth, bare.median(quantity), bare.mean[quantity]]
    assert len(drawn) == 6
    for y, values in zip(drawn, expected, strict=True):
        assert y == pytest.approx(values)
    both = [y for _, y in curves(picture, colours["sqrt"])]
    assert both[2] == pytest.approx(scaled.median("gradient")) and both[3] == pytest.approx(scaled.mean["gradient"])


def test_the_trainings_are_drawn_as_far_as_they_are():
    picture = scale_race(LAPS, steps=300)
    colours = divisor_colours(THEMES["light"])
    for divisor in RACERS:
        right, dead = curves(picture, colours[divisor])
        assert right[0].tolist() == dead[0].tolist() == [0, 10, 20]
        assert right[1] == pytest.approx([lap.right[divisor] for lap in LAPS])
        assert dead[1] == pytest.approx([lap.dead[divisor] for lap in LAPS])
    assert traces(scale_race([], steps=300), mode="lines") == []
    (x, _), *_ = [(decoded(one["x"]), one) for one in traces(picture, mode="lines")]
    assert x[-1] < 56 + 400 * 20 / 300 + 1  # a tenth of the axis, which is there from the start


def test_spread_is_written_beside_each_histogram(swept):
    written = texts(scale(swept, swept.at[256]))
    spread = swept.at[256].by_divisor["one"].spread
    assert spread == pytest.approx(16, rel=0.05)
    assert f"σ = {spread:.1f}" in written
    assert f"σ = {spread / 16:.2f}" in written
    assert f"σ = {spread / 256:.3f}".replace("0.", ".") in written
