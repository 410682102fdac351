"""The page "combine" without a browser: what it says is true of the trace, for every setting."""

import re
from fractions import Fraction

import numpy as np
import pytest

from mha_core.combination import move, recombine
from mha_core.figures import COMBINE_WORDS
from mha_core.one_head import one_head_averages
from pages._ui.calculation import calculate
from pages._ui.settings import Settings
from pages._ui.text import LANGUAGES, words
from tests.pages.test_app import SETTINGS, open_app


def open_combine(**query):
    return open_app(**query).switch_page("pages/combine.py").run()


def said(at):
    return "\n".join(element.value for element in at.main.markdown)


def trace_at(**query):
    settings, notices = Settings.read({name: str(value) for name, value in query.items()})
    assert notices == ()
    return calculate(settings).trace, settings


def total(at):
    """The sum by hand: its summands and what stands behind the = or the ≈."""
    (line,) = re.findall(r"\$y = (.*)\$", said(at))
    sides = re.split(r" = | \\approx ", line)
    summands, result = (re.findall(r"-? ?\d+\.\d+", side) for side in sides)
    return [Fraction(text.replace(" ", "")) for text in summands], Fraction(result[0].replace(" ", "")), " = " in line


MORE = [
    {"off": "0", "query": 2, "feature": 3},
    {"off": "0.1.2.3"},
    {"average": "true", "mask": "causal"},
    {"average": "true", "off": "1.15", "h": 8},
    {"query": 255, "feature": 511},
    {"input": "random", "n": 256, "d_model": 16, "h": 2},
]


@pytest.mark.parametrize(
    "query", [*SETTINGS, *MORE], ids=lambda query: "&".join(f"{k}={v}" for k, v in query.items()) or "default"
)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_setting_shows_the_sum_of_the_heads(query, lang):
    at = open_combine(**{"lang": lang, **query})
    assert not at.exception
    assert not at.error
    trace, settings = trace_at(**query)
    kept = [head not in settings.off for head in range(settings.h)]
    changed = recombine(trace, kept, average=settings.average)
    row, feature = min(settings.query, trace.sizes["n_q"] - 1), min(settings.feature, settings.d_model - 1)
    value = changed["output"].sel(batch=0, query=row, feature=feature).value.item()
    summands, result, exactly = total(at)
    assert len(summands) in (settings.h, settings.h + settings.bias)
    assert float(result) == pytest.approx(value, abs=0.0051)
    if exactly:
        assert sum(summands) == result
    share = f"{move(trace, kept, average=settings.average):.0%}".replace("%", " %")
    assert f"**{share}**" in said(at)


def test_on_the_pocket_example_everything_comes_out_exactly():
    for query in range(3):
        for feature in range(4):
            at = open_combine(input="pocket", query=query, feature=feature)
            summands, result, exactly = total(at)
            assert exactly and sum(summands) == result
            assert "Every digit comes out" in said(at)


def test_rounding_is_said():
    assert "Numbers are rounded" in said(open_combine())


def test_the_selectors_choose_the_cell():
    at = open_combine()
    at.selectbox(key="ui_page_query").set_value(7).run()
    at.selectbox(key="ui_page_feature").set_value(5).run()
    at.selectbox(key="ui_page_head").set_value(2).run()
    trace, _ = trace_at()
    _, result, _ = total(at)
    assert float(result) == pytest.approx(trace["output"].value[0, 7, 5].item(), abs=0.0051)
    assert "Head 3's part" in said(at) and "`it`, feature 6" in said(at)
    assert (at.session_state.query, at.session_state.feature, at.session_state.head) == ("7", "5", "2")


def test_a_head_can_be_switched_off_and_on_again():
    at = open_combine()
    pills = at.get("button_group")
    assert pills
    at.button_group(key="ui_page_off").set_value([0, 2, 3]).run()
    trace, _ = trace_at()
    assert at.session_state.off == "1"
    share = f"{move(trace, [True, False, True, True]):.0%}".replace("%", " %")
    assert f"**{share}**" in said(at)
    assert "A head that is off brings zeros" in said(at)
    at.button_group(key="ui_page_off").set_value([0, 1, 2, 3]).run()
    assert "**0 %**" in said(at)


def test_who_adds_most_is_measured():
    trace, _ = trace_at(query=4, weights="random")
    sizes = np.linalg.norm(trace["head_contributions"].numpy()[0, :, 4], axis=-1)
    text = said(open_combine(query=4, weights="random"))
    assert f"head {sizes.argmax() + 1} adds most (length {sizes.max():.2f})" in text
    assert f"head {sizes.argmin() + 1} least ({sizes.min():.2f})" in text


def test_the_truth_is_told_after_a_guess_and_stays():
    at = open_combine(head=1)
    trace, _ = trace_at()
    one_less = f"Measured: {move(trace, [True, False, True, True]):.0%}".replace("%", " %")
    averaged = f"Measured: {move(trace, average=True):.0%}".replace("%", " %")
    assert "Measured" not in said(at)
    at.button_group(key="ui_guess_combine.take").set_value("share").run()
    assert one_less in said(at) and averaged not in said(at)
    assert "You guessed: about 1/4 of it (25 %)" in said(at)
    at.button_group(key="ui_guess_combine.mean").set_value("none").run()
    at.switch_page("pages/overview.py").run()
    at.switch_page("pages/combine.py").run()
    assert one_less in said(at) and averaged in said(at)


def test_the_two_needs_are_the_computed_ones():
    at = open_combine()
    at.button_group(key="ui_guess_combine.swap").set_value("yes").run()
    found = one_head_averages()
    for trace in (found.one, found.two, found.two_swapped):
        row = ", ".join(f"{value:g}" for value in trace["output"].value[0, 0].tolist()).replace("-", "−")
        assert f"({row})" in said(at)
    assert "head 1: (0.5, 0.5)" in said(at)
    assert "head 1: (1, 0); head 2: (0, 1)" in said(at)


def test_with_one_head_nothing_is_asked_about_several():
    at = open_combine(h=1)
    assert "With one head there is one band" in said(at)
    assert [group.key for group in at.get("button_group") if "guess" in (group.key or "")] == ["ui_guess_combine.swap"]


def test_every_word_of_the_picture_is_there_in_both_languages():
    for language in LANGUAGES:
        assert words(language).group("combine.fig").keys() == COMBINE_WORDS.keys()
