"""The page about one head: every setting draws its trace, selectors move the cell, the arithmetic is the trace's."""

import json
import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from mha_core.figures.attend import ATTEND_WORDS
from mha_core.figures.attend_lines import LINES_WORDS
from mha_core.figures.attend_plane import PLANE_WORDS
from mha_core.figures.attend_sums import SUMS_WORDS
from pages._ui import attending
from pages._ui.calculation import calculate
from pages._ui.settings import RULES, Settings
from pages._ui.text import words
from tests.pages.test_app import APP, SETTINGS, decode


def open_page(**query):
    at = AppTest.from_file(APP, default_timeout=30)
    for name, value in query.items():
        at.query_params[name] = str(value)
    at.switch_page("pages/attend.py")
    return at.run()


def seen_by(**query):
    settings, notices = Settings.read({name: str(value) for name, value in query.items()})
    assert notices == ()
    return settings, attending.view(settings, calculate(settings))


def spec(at, chart=0):
    return json.loads(at.get("plotly_chart")[chart].proto.spec)


def texts(at, chart=0):
    return [text for trace in spec(at, chart)["data"] if trace.get("mode") == "text" for text in trace["text"]]


def markers(at):
    """The numbers behind every cell that can be chosen."""
    return [
        np.ravel(decode(trace["customdata"]))
        for trace in spec(at)["data"]
        if trace.get("mode") == "markers" and "customdata" in trace
    ]


OWN = [
    {"divide": "one"},
    {"divide": "d_k", "temperature": "0.25"},
    {"hand": "value", "feature": 3, "query": 4},
    {"hand": "value", "feature": 500},
    {"query": 255, "key": 255, "head": 3},
    {"flipped": "0.0_0.1_200.3", "mask": "causal"},
    {"context": "a short one", "mask": "causal"},
    {"context": "猫 <b>", "input": "mao"},
    {"context": "ignored", "input": "pocket"},
    {"context": "!" * 200},
    {"input": "random", "n": 256, "h": 1, "d_model": 32},
    {"input": "random", "n": 40, "h": 16, "hand": "value"},
]


@pytest.mark.parametrize("query", [*SETTINGS, *OWN], ids=lambda query: "&".join(f"{k}={v}" for k, v in query.items()))
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_setting_draws_the_weights_of_its_trace(query, lang):
    query = {"lang": lang, **query}
    at = open_page(**query)
    assert not at.exception
    assert not at.error
    settings, seen = seen_by(**query)
    weights = seen.trace["weights"].sel(batch=0, head=seen.head).numpy()
    hovered = [decode(trace["z"]).ravel() for trace in spec(at)["data"] if trace["type"] == "heatmap"]
    drawn = [*hovered, *markers(at)]
    assert any(np.isin(weights.ravel(), numbers).all() for numbers in drawn) or max(weights.shape) > 98  # blocks
    sheet = (
        attending.score_sheet(seen.trace, seen.head, seen.query, seen.key)
        if settings.hand == "score"
        else attending.value_sheet(seen.trace, seen.head, seen.query, seen.feature)
    )
    assert any(text.endswith(f"= {sheet.total_text}") for text in texts(at))
    assert attending.notice(words(query["lang"]), seen) in [markdown.value for markdown in at.markdown]


def test_the_selectors_move_the_cell():
    at = open_page()
    at.selectbox(key="ui_page_head").set_value(2).run()
    at.selectbox(key="ui_page_query").set_value(7).run()
    at.selectbox(key="ui_page_key").set_value(4).run()
    _, seen = seen_by(head=2, query=7, key=4)
    raw = seen.trace["raw_scores"].value[0, 2, 7, 4].item()
    assert f"Σ = {raw:.2f}".replace("-", "−") in texts(at)
    assert at.select_slider(key="ui_head").value == 2  # the sidebar follows


def test_by_hand_on_the_pocket_is_exact():
    at = open_page(input="pocket", query=2, key=0)
    assert {"q<sub>C</sub>", "k<sub>A</sub>", "Σ = 4"} <= set(texts(at))
    assert any(r"\frac{4}{\sqrt{2}} = 2.83" in markdown.value for markdown in at.markdown)
    assert words("en")("attend.exact") in [caption.value for caption in at.caption]
    at.segmented_control(key="ui_page_hand").set_value("value").run()
    total = next(text for text in texts(at) if text.startswith("z<sub>1"))
    _, seen = seen_by(input="pocket", query=2, key=0)
    assert total.endswith(f"{seen.trace['head_outputs'].value[0, 0, 2, 0].item():.3f}".removeprefix("0"))
    assert words("en")("attend.exact") in [caption.value for caption in at.caption]


@pytest.mark.parametrize("divide", ["one", "d_k"])
def test_dividing_otherwise_is_said_and_does_not_reach_the_checks(divide):
    at = open_page(divide=divide)
    assert words("en")("attend.changed_scale") in [caption.value for caption in at.caption]
    checks = [m.value for m in at.markdown if "equals torch" in m.value]
    assert ":red" not in checks[0]


def test_a_row_that_may_attend_to_nothing_is_explained():
    at = open_page(input="pocket", flipped="1.0_1.1_1.2", query=1)
    assert not at.exception
    assert any("NaN" in markdown.value for markdown in at.markdown)
    assert not any("nan" in text.lower() for text in texts(at))


def test_what_a_user_typed_is_never_markup():
    at = open_page(input="text", text="**a** $b$ <i>c</i> `d`", query=2)
    notice = next(m.value for m in at.markdown if "What to notice" in m.value)
    assert not re.search(r"(?<!`)\*\*a", notice)
    assert "$b$" not in re.sub(r"`[^`]*`", "", notice)


LABS = ("divide", "values", "lines", "masking", "axis", "own", "cross")
LAB_SETTINGS = [
    {},
    {"input": "pocket", "mask": "causal"},
    {"input": "random", "n": 1},
    {"input": "random", "n": 256, "h": 1, "d_model": 32, "mask": "window"},
    {"context": "two words", "mask": "causal"},
    {"flipped": "2.0_2.1_2.2", "mask": "causal", "query": 2},
    {"input": "mao", "weights": "random", "seed": 3, "mask": "padding"},
]


@pytest.mark.parametrize("query", LAB_SETTINGS, ids=lambda query: "&".join(f"{k}={v}" for k, v in query.items()))
@pytest.mark.parametrize("lab", LABS)
def test_every_experiment_runs(query, lab):
    at = open_page(lab=lab, lang="zh" if "input" in query else "en", **query)
    assert not at.exception
    assert not at.error
    for guess in at.segmented_control:
        if guess.key.startswith("ui_guess_"):
            guess.set_value({"divide": "larger", "masking": "most"}[lab]).run()
    assert not at.exception


def test_a_guess_stays_beside_the_truth():
    at = open_page(weights="random", seed=3, lab="divide", query=4)
    assert not at.table
    at.segmented_control(key="ui_guess_attend.guess_divide").set_value("smaller").run()
    told = next(m.value for m in at.markdown if "You guessed" in m.value)
    assert "smaller" in told
    _, seen = seen_by(weights="random", seed=3, query=4)
    _, bare = seen_by(weights="random", seed=3, query=4, divide="one")
    for view in (seen, bare):
        assert f"{view.trace['weights'].value[0, 0, 4].max().item():.3f}" in told
    at.selectbox(key="ui_page_query").set_value(5).run()
    assert any("You guessed" in m.value for m in at.markdown)


def test_masking_with_zero_leaks_as_much_as_is_said():
    at = open_page(weights="random", seed=3, lab="masking", mask="causal", query=0)
    at.segmented_control(key="ui_guess_attend.guess_mask").set_value("none").run()
    _, seen = seen_by(weights="random", seed=3, mask="causal", query=0)
    scores = seen.trace["scores"].value[0, 0, 0].exp()  # row 1: its own score, and nine times 0 instead of −∞
    leaked = (9 / (9 + scores[0])).item()
    assert any(f"{leaked:.1%}" in m.value for m in at.markdown)
    notes = [text for text in texts(at, 1) if "move by" in text]
    assert notes[0].endswith("by 0") and not notes[1].endswith("by 0") and not notes[2].endswith("by 0")


def test_a_row_can_be_forbidden_by_keyboard_and_comes_back():
    at = open_page(lab="own", query=3)
    at.button(key="attend_row").click().run()
    assert at.button(key="attend_row").disabled
    assert any("NaN" in m.value for m in at.markdown)
    at.button(key="attend_flip").click().run()
    assert not any("NaN" in m.value for m in at.markdown)
    assert any("only, so its weight is 1" in m.value for m in at.markdown)
    at.button(key="attend_clear").click().run()
    assert at.button(key="attend_clear").disabled


def test_a_second_sentence_makes_the_maps_rectangular():
    at = open_page(lab="cross")
    at.text_input(key="ui_page_context").set_value("a small dog").run()
    assert len(at.selectbox(key="ui_page_key").options) == 3
    _, seen = seen_by(context="a small dog")
    assert seen.trace["weights"].shape == (1, 4, 10, 3)
    assert any(np.isin(seen.trace["weights"].value[0, 0].numpy().ravel(), numbers).all() for numbers in markers(at))
    at.text_input(key="ui_page_context").set_value("").run()
    assert len(at.selectbox(key="ui_page_key").options) == 10


def test_a_second_sentence_without_a_word_is_explained():
    at = open_page(lab="cross", context="  ")
    assert not at.exception
    assert len(at.error) == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    ("group", "wanted"),
    [("fig", ATTEND_WORDS.keys() - {"scale"}), ("lines", LINES_WORDS), ("plane", PLANE_WORDS), ("sums", SUMS_WORDS)],
)
def test_every_word_of_the_pictures_is_there_and_no_other(lang, group, wanted):
    assert words(lang).group(f"attend.{group}").keys() == set(wanted)


def test_a_mask_of_ones_own_survives_the_address():
    rule = RULES["flipped"]
    cells = frozenset({(0, 3), (12, 1), (255, 255)})
    assert rule.read(rule.write(cells)) == cells
    assert rule.read("") == frozenset()
    for wrong in ("1", "1.2.3", "a.b", "1.256", "1.2__3.4", "-1.0"):
        assert [notice.key for notice in Settings.read({"flipped": wrong})[1]] == ["url"]
