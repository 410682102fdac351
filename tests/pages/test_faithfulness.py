"""The page "faithfulness" without a browser: what it says is computed for this very calculation."""

import re

import pytest

from mha_core.faithfulness import slide
from mha_core.figures.believed import BELIEVED_WORDS
from mha_core.figures.deviation import deviation_text
from mha_core.figures.slide import SLIDE_WORDS
from mha_core.freedom import freedom_of_heads
from mha_core.importance import head_ranking, weighed
from pages._ui.calculation import calculate
from pages._ui.combine_notes import percent
from pages._ui.settings import Settings
from pages._ui.text import LANGUAGES, words
from tests.pages.test_app import SETTINGS, open_app


def open_page(**query):
    return open_app(**query).switch_page("pages/faithfulness.py").run()


def said(at):
    return "\n".join(element.value for element in (*at.main.markdown, *at.main.caption))


def trace_at(**query):
    settings, notices = Settings.read({name: str(value) for name, value in query.items()})
    assert notices == ()
    return calculate(settings).trace, settings


MORE = [
    {"slide": 40, "seed": 3, "head": 2, "query": 7},
    {"slide": 100, "h": 16, "weights": "random"},
    {"input": "zhidao", "positions": "false", "query": 2},
    {"query": 255, "mask": "causal"},
]


@pytest.mark.parametrize(
    "query",
    [*SETTINGS, *MORE, *({"lang": "zh", **query} for query in MORE)],
    ids=lambda query: "&".join(f"{k}={v}" for k, v in query.items()) or "default",
)
def test_every_setting_says_what_was_measured(query):
    at = open_page(**query)
    assert not at.exception and not at.error
    trace, settings = trace_at(**query)
    row = min(settings.query, trace.sizes["n_q"] - 1)
    text, parts = said(at), weighed(trace, settings.head, row)
    found = freedom_of_heads(trace, row)[settings.head]
    t = words(settings.lang or "en")
    assert t("faithfulness.free_why", size=deviation_text(found.tolerance)) in text
    assert f"{parts.weights.max():.2f}" in text and percent(float(parts.parts.max())) in text
    ranking = head_ranking(trace)
    assert trace.sizes["h"] == 1 or percent(max(ranking.effect)) in text
    if settings.slide:
        case = slide(settings.seed)
        assert deviation_text(case.moved(settings.slide / 100)) in text and f"{case.other.max():.2f}" in text
    assert "{" not in re.sub(r"\$[^$]*\$", "", text)


def test_before_the_guess_nothing_is_given_away():
    at = open_page()
    for given_away in ("another key is on top", "ends at", "19 %"):
        assert given_away not in said(at)
    at.button_group(key="ui_guess_faithfulness.other").set_value("no").run()
    assert "12 weights have to meet 3 + 1 = 4 conditions" in said(at) and "8 directions" in said(at)
    at.button_group(key="ui_guess_faithfulness.two").set_value("half").run()
    assert "**19 %.** 0.7 · 0.1 = 0.07 and 0.3 · 1 = 0.30" in said(at)


def test_the_slider_moves_the_weights_and_not_the_output():
    at = open_page()
    at.slider(key="ui_page_slide").set_value(50).run()
    assert at.session_state.slide == "50"
    case = slide(0)
    assert f"At 50 % z has moved by {deviation_text(case.moved(0.5))}" in said(at)
    alt = at.get("plotly_chart")[0].proto.alt
    assert ", ".join(f"{weight:.2f}" for weight in case.at(0.5)) in alt
    assert ", ".join(f"{value:.12f}" for value in case.output(0)) in alt


def test_the_key_that_ends_on_top_is_said_to_be_there_only_once_it_is():
    case = slide(13)
    words_of = re.search(r"it is on top from (\d+) % on", said(open_page(seed=13, slide=50)))
    first = int(words_of[1])
    assert [case.top(part / 100) == case.top(1) for part in (first - 1, first)] == [False, True]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({}, "All weights are pinned"),
        ({"h": 16}, "5 directions are free, whatever the values are"),
        ({"input": "zhidao", "positions": "false"}, "values depend on each other"),
        ({"h": 1}, "There is but one head here"),
        ({"input": "text", "text": "a"}, "heads 1, 2, 3, 4 are equally sharp (largest weight 1.00"),
        ({}, "heads 1, 3 are equally sharp (largest weight 0.95"),
        ({"d_model": 7, "h": 7, "head": 5}, "gives 10 keys the same, largest weight, 0.10"),
        ({"input": "text", "text": "a a a", "positions": "false"}, "gives 3 keys the same, largest weight, 0.33"),
    ],
)
def test_the_reason_is_the_right_one(query, sentence):
    assert sentence in said(open_page(**query))


def test_the_selectors_choose_head_and_query():
    at = open_page(weights="random")
    at.selectbox(key="ui_page_head").set_value(3).run()
    at.selectbox(key="ui_page_query").set_value(4).run()
    trace, _ = trace_at(weights="random")
    parts = weighed(trace, 3, 4)
    assert f"between {parts.lengths.min():.2f} and {parts.lengths.max():.2f} long" in said(at)


def test_every_word_of_the_pictures_is_there_in_both_languages():
    for language in LANGUAGES:
        assert words(language).group("faithfulness.slide_fig").keys() == SLIDE_WORDS.keys()
        assert words(language).group("faithfulness.fig").keys() == BELIEVED_WORDS.keys()
