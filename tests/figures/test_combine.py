"""The picture "combine": what is painted, written and chosen is the trace."""

import re

import numpy as np
import pytest

from mha_core import masks
from mha_core.combination import output_by_hand, recombine
from mha_core.contributions import contribution_sizes
from mha_core.figures import COMBINE_WORDS, combine
from mha_core.figures.hues import head_hues
from mha_core.figures.pick import cell_of
from mha_core.figures.raster import signed_levels
from mha_core.figures.theme import THEMES, rgb, signed_limit
from tests.figures.test_overview import decoded, image, tokens


def draw(trace, head=0, query=0, feature=0, kept=None, **more):
    number = output_by_hand(trace, head, query, feature)
    return combine(trace, tokens(trace.sizes["n_q"]), number, kept=kept, **more), number


def texts(picture):
    found = []
    for trace in picture.to_dict()["data"]:
        text = trace.get("text", [])
        found += text if isinstance(text, list) else [text]
    return found


def markers(picture):
    """What every marker chooses, and the x, y and value that it is drawn with."""
    for number, trace in enumerate(picture.to_dict()["data"]):
        if number in picture.picks:
            x, y, values = (decoded(trace[name]) for name in ("x", "y", "customdata"))
            for point in range(len(x)):
                yield cell_of(picture.picks[number], point), x[point], y[point], values[point]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("n", "h", "d_model"),
    [(1, 1, 4), (3, 2, 4), (10, 4, 64), (6, 7, 7), (6, 8, 64), (256, 2, 16), (81, 16, 64), (40, 16, 512), (256, 1, 5)],
)
def test_every_size_is_a_valid_figure(trace_of, n, h, d_model, theme):
    trace = trace_of(n, h, d_model)
    picture, _ = draw(trace, h - 1, n - 1, d_model - 1, theme=theme, labels=["a name of a head"] * h, note="note")
    picture.figure()
    assert sum(len(decoded(trace["x"])) for trace in picture.to_dict()["data"] if trace.get("customdata")) < 3600


@pytest.mark.parametrize("h", [1, 4, 16])
def test_a_cell_chooses_the_number_that_it_shows(trace_of, h):
    trace = trace_of(10, h, 64)
    picture, _ = draw(trace)
    outputs = trace["output"].sel(batch=0).numpy()
    parts = trace["head_contributions"].sel(batch=0).numpy()
    sizes = contribution_sizes(trace).numpy()
    concat = trace["concat"].sel(batch=0).numpy()
    W_O = trace.parameter("W_O").numpy()
    d_v, seen = 64 // h, {"output": set(), "parts": set(), "bars": set()}
    for chosen, _, _, value in markers(picture):
        match chosen:
            case {"head": head, "query": query, "feature": feature}:
                assert value == parts[head, query, feature]
                seen["parts"].add(head)
            case {"query": query, "feature": feature}:
                assert value == outputs[query, feature]
                seen["output"].add((query, feature))
            case {"head": head, "feature": feature}:
                block = W_O[head * d_v : (head + 1) * d_v]
                assert abs(value) == np.abs(block[:, feature]).max()
            case {"head": head, "query": query}:
                band = concat[query, head * d_v : (head + 1) * d_v]
                assert value == sizes[head, query] or abs(value) == np.abs(band).max()
            case {"head": head}:
                assert value == pytest.approx(parts[head, 0, 0])
                seen["bars"].add(head)
            case other:
                raise AssertionError(other)
    assert seen["output"] == {(i, m) for i in range(10) for m in range(64)}
    assert seen["parts"] == seen["bars"] == set(range(h))


def test_a_cell_that_can_be_chosen_lies_on_its_painted_number(trace_of):
    trace = trace_of(10, 4, 64)
    picture, _ = draw(trace, 2, 9, 63)
    dots = np.array(image(picture))
    own, seen = signed_limit(trace["output"].sel(batch=0).numpy()), 0
    for chosen, x, y, value in markers(picture):
        if set(chosen) == {"query", "feature"} and y < 220:
            assert dots[int(y), int(2 * x)] == signed_levels(np.array(value), own)
            seen += 1
    assert seen == 640


def test_all_terms_of_the_sum_are_painted_with_one_limit(trace_of):
    trace = trace_of(4, 2, 8)
    picture, _ = draw(trace)
    terms = [trace["head_contributions"].value, trace["output"].value, trace.module.W_O.bias]
    limit = max(signed_limit(term.detach().numpy()) for term in terms)
    (said,) = [text for text in texts(picture) if text.startswith(COMBINE_WORDS["one_limit"])]
    assert float(said.split("±")[1]) == limit


def test_a_changed_calculation_keeps_the_colours_of_the_first(trace_of):
    trace, kept = trace_of(6, 4, 16), [True, False, True, True]
    whole, off = draw(trace)[0], draw(recombine(trace, kept), kept=kept, like=trace)[0]
    limits = [[float(text.split("±")[1]) for text in texts(picture) if "±" in text] for picture in (whole, off)]
    assert all(one <= other for one, other in zip(*limits, strict=True))
    dots = [np.array(image(picture)) for picture in (whole, off)]
    if limits[0] == limits[1]:  # the third head's term
        assert (dots[0][290:380, 1150:1500] == dots[1][290:380, 1150:1500]).all()


@pytest.mark.parametrize(("h", "d_model"), [(2, 8), (4, 64), (16, 64)])
def test_the_steps_are_the_heads_parts_and_the_last_bar_the_output(trace_of, h, d_model):
    trace = trace_of(6, h, d_model)
    for feature in range(min(d_model, 8)):
        picture, number = draw(trace, 0, 5, feature)
        steps = [*number.parts, number.output.terms[-1].product]
        written = [read(text) for text in texts(picture) if re.fullmatch(r"[+−]\d*\.\d+", text)]
        for step in steps:
            assert min(abs(step - value) for value in written) <= 0.5 * 10**-number.decimals + 1e-12
        total = f"{number.output.value:.{number.decimals}f}".replace("-", "−").replace("0.", ".", 1)
        assert any(text.endswith(total) for text in texts(picture))


def read(text):
    return float(text.replace("−", "-"))


def test_bars_are_as_high_as_their_numbers(trace_of):
    trace = trace_of(6, 4, 64)
    picture, number = draw(trace, 0, 3, 9)
    light = THEMES["light"]
    rgba = np.array(image(picture).convert("RGB"))[470:618, :1320]
    bars = [*zip(number.parts, head_hues(light, 4), strict=True), (number.output.value, light.output)]
    heights = [(np.abs(rgba.astype(int) - rgb(hue)).sum(-1) == 0).any(1).sum() for _, hue in bars]
    scale = max(heights) / max(abs(value) for value, _ in bars)
    for (value, _), height in zip(bars, heights, strict=True):
        assert height == pytest.approx(max(2, abs(value) * scale), abs=2.5)


def test_a_head_that_is_off_is_hatched_and_written_off(trace_of):
    trace, kept = trace_of(6, 4, 16), [True, False, True, False]
    off = recombine(trace, kept)
    picture, _ = draw(off, kept=kept)
    assert texts(picture).count(COMBINE_WORDS["off"]) == 2
    assert {f"2 · {COMBINE_WORDS['off']}", f"4 · {COMBINE_WORDS['off']}"} <= set(texts(picture))
    (hatch,) = [trace for trace in picture.to_dict()["data"] if "fillpattern" in trace]
    assert np.isfinite(decoded(hatch["x"])).sum() == 2 * 3 * 5  # band, term and row, five corners each
    assert not [trace for trace in draw(trace)[0].to_dict()["data"] if "fillpattern" in trace]


def test_the_pocket_numbers_stand_in_the_cells(trace_of):
    trace = trace_of(3, 2, 4)
    shown = texts(draw(trace)[0])
    for number in trace["output"].value.flatten().tolist():
        assert f"{number:.2f}".replace("-", "−").replace("0.", ".", 1) in shown


def test_the_strip_has_the_heads_factors(trace_of):
    trace = trace_of(5, 2, 64)
    picture, number = draw(trace, 1, 4, 7)
    shown = set(texts(picture))
    terms, rest, more = number.columns
    assert len(terms) == 15 and more == 17 and rest is not None
    assert COMBINE_WORDS["more"].format(count=17) in shown
    for term in terms:
        for value in (*term.factors, term.product):
            text = f"{value:.{number.decimals}f}".replace("-", "−").replace("0.", ".", 1)
            assert text in shown or float(text.replace("−", "-")) == 0


def test_rows_that_attend_to_nothing_bring_nothing(trace_of):
    trace = trace_of(6, 2, 8, mask=masks.padding([0], 6))
    picture, number = draw(trace, query=2)
    picture.figure()
    assert number.parts == (0, 0)


@pytest.mark.parametrize("theme", THEMES)
def test_hues_differ_and_stand_out(theme):
    colours = THEMES[theme]
    for h in (1, 2, 4, 8, 16):
        hues = head_hues(colours, h)
        assert len(set(hues)) == h
        for hue in hues:
            assert contrast(hue, colours.background) >= 3


def contrast(one, other):
    def luminance(colour):
        channels = [c / 12.92 if c <= 0.04 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in rgb(colour))]
        return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2] + 0.05

    low, high = sorted((luminance(one), luminance(other)))
    return high / low


def test_users_words_cannot_draw(trace_of):
    trace = trace_of(6, 2, 8)
    nasty = ["<b>x</b>", "$\\alpha$", "", "%{z}", "a" * 99, "\ud800"]
    picture = combine(trace, nasty, output_by_hand(trace, 0, 0, 0))
    picture.figure()
    assert not any("<b>x" in text or "$" in text for text in texts(picture))
    for each in picture.to_dict()["data"]:
        assert "x</b>" not in each.get("hovertemplate", "").replace("<b>%", "")


def test_no_english_that_is_not_in_words(trace_of):
    chinese = {key: re.sub(r"[A-Za-z…]+(?![^{]*})", "字", text) for key, text in COMBINE_WORDS.items()}
    trace = trace_of(100, 4, 128)
    number = output_by_hand(trace, 0, 0, 0)
    picture = combine(trace, ["猫"] * 100, number, kept=[True, True, True, False], words=chinese)
    seen = texts(picture) + picture.to_dict()["layout"]["xaxis"]["ticktext"]
    words = {word for text in seen for word in re.findall("[A-Za-z]+", text)}
    assert words <= {"Z", "W", "O", "i", "b", "sub", "sup"}


@pytest.mark.parametrize("wrong", [{"kept": [True]}, {"labels": ["a"]}])
def test_wrong_arguments_are_named(trace_of, wrong):
    trace = trace_of()
    with pytest.raises(ValueError, match=next(iter(wrong))):
        combine(trace, tokens(6), output_by_hand(trace, 0, 0, 0), **wrong)
