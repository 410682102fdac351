"""The page "order" without a browser: what it says is the comparison of this very calculation."""

import re

import pytest

from mha_core.figures.deviation import deviation_text
from mha_core.figures.order import ORDER_WORDS
from mha_core.order import CASES
from mha_core.reorder import REORDERS
from pages._ui import order_notes
from pages._ui.calculation import calculate
from pages._ui.settings import RULES, Settings
from pages._ui.text import LANGUAGES, words
from tests.pages.test_app import SETTINGS, open_app


def open_order(**query):
    return open_app(**query).switch_page("pages/order.py").run()


def guess(at, answer="changes"):
    return at.button_group(key="ui_guess_order.guess").set_value(answer).run()


def said(at):
    return "\n".join(element.value for element in at.main.markdown)


def seen_at(**query):
    settings, notices = Settings.read({name: str(value) for name, value in query.items()})
    assert notices == ()
    return order_notes.view(settings, calculate(settings))


MORE = [
    {"order_case": 1, "query": 3},
    {"order_case": 2, "reorder": "swap", "query": 9},
    {"order_case": 3, "mask": "prefix", "reorder": "reverse"},
    {"order_case": 3, "mask": "causal", "positions": "false"},
    {"order_case": 3, "mask": "window", "positions": "false"},
    {"order_case": 1, "input": "pocket", "reorder_seed": 4},
    {"order_case": 2, "input": "text", "text": "a a a"},
    {"query": 255, "order_case": 3},
]


@pytest.mark.parametrize(
    "query",
    [*SETTINGS, *MORE, *({"lang": "zh", **query} for query in MORE)],
    ids=lambda query: "&".join(f"{k}={v}" for k, v in query.items()) or "default",
)
def test_every_setting_says_what_was_measured(query):
    at = open_order(**query)
    seen = seen_at(**query)
    if len(seen.names) > 1:
        assert "float64" not in said(at)
        guess(at)
    assert not at.exception and not at.error
    text = said(at)
    if len(seen.names) > 1:
        assert deviation_text(seen.cases["none"].largest) in text
    for feature in seen.shown.widest(seen.token, order_notes.MOST_FEATURES):
        assert order_notes.number(seen.shown.before[seen.token, feature].item()) in text
    assert deviation_text(seen.shown.of(seen.token)) in text
    assert "{" not in re.sub(r"\$[^$]*\$", "", text)


def test_before_the_guess_nothing_is_given_away():
    at = open_order()
    assert "What to notice" not in said(at)
    assert "hidden until you have guessed" in at.get("plotly_chart")[0].proto.alt
    guess(at, "same")
    assert "You guessed: stays the same" in said(at) and "it stays the same" in said(at)
    assert "What to notice" in said(at)
    at.switch_page("pages/combine.py").run()
    at.switch_page("pages/order.py").run()
    assert "You guessed: stays the same" in said(at)


def test_the_controls_choose_case_order_and_token():
    at = guess(open_order())
    at.button_group(key="ui_page_order_case").set_value(2).run()
    at.button_group(key="ui_page_reorder").set_value("swap").run()
    at.selectbox(key="ui_page_query").set_value(4).run()
    assert (at.session_state.order_case, at.session_state.reorder, at.session_state.query) == ("2", "swap", "4")
    seen = seen_at(order_case=2, reorder="swap", query=4)
    assert seen.values["here"] == 5 and seen.values["there"] == 6
    assert f"went from place 5 to place 6, sees other tokens, and its output moves by up to {seen.values['size']}" in (
        said(at)
    )
    assert not [box for box in at.number_input if box.key == "ui_page_reorder_seed"]


@pytest.mark.parametrize("case", [1, 2, 3])
def test_a_token_that_stays_at_its_place_is_not_said_to_have_moved(case):
    """Backwards, the one in the middle: its row of X is the same, its output is not."""
    sentence = {"input": "text", "text": "a b c d e", "mask": "window"}
    told = order_notes.notice(words("en"), seen_at(**sentence, reorder="reverse", query=2, order_case=case))
    assert "stay at place 3" in told and "place 3 to place 3" not in told and "its row of X is another one" not in told


def test_where_nothing_changes_no_change_is_told():
    told = order_notes.notice(words("en"), seen_at(order_case=2, input="text", text="a a a", reorder="reverse"))
    assert "all outputs stay" in told and "differ" not in told


def test_what_is_not_there_falls_back():
    assert seen_at(order_case=3).case == "none"
    assert seen_at(order_case=3, mask="padding").case == "yours"
    assert seen_at(query=200).token == 9


def test_x_without_positions_says_that_they_were_added():
    added = "the paper's sinusoids are added to all its features"
    assert added in said(guess(open_order(input="random", order_case=1)))
    assert added not in said(guess(open_order(order_case=1)))


def test_a_trained_models_rows_take_their_positions_along():
    at = guess(open_order(input="trained", order_case=1))
    assert not at.exception
    assert "learned positions are part of each of its rows" in "\n".join(each.value for each in at.main.caption)
    assert "came without positions" not in said(at)


def test_one_token_has_nothing_to_shuffle():
    at = open_order(input="random", n=1)
    assert "there is nothing to shuffle" in said(at)
    assert not [group for group in at.get("button_group") if "guess" in (group.key or "")]


def test_a_bar_among_the_tokens_does_not_break_the_table():
    at = guess(open_order(input="text", text="a | b", query=1))
    (table,) = [element.value for element in at.main.markdown if element.value.startswith("| Output of")]
    assert r"Output of `\|`, feature" in table
    cells = [len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()]
    assert len(set(cells)) == 1


def test_settings_and_core_agree():
    assert RULES["order_case"].high == len(CASES) - 1
    assert RULES["reorder"].codes == REORDERS
    for language in LANGUAGES:
        assert words(language).group("order.fig").keys() == ORDER_WORDS.keys()
