"""The page "project" without a browser: the chosen cell, its number by hand, and the experiments."""

import json
import re

import pytest
from streamlit.testing.v1 import AppTest

from mha_core.figures.project import PROJECT_WORDS
from mha_core.figures.project_lab import LAB_WORDS
from pages._ui.calculation import calculate
from pages._ui.settings import Settings
from pages._ui.text import words
from tests.pages.test_app import APP


def open_page(**query):
    at = AppTest.from_file(APP, default_timeout=30)
    for name, value in query.items():
        at.query_params[name] = str(value)
    at.run()
    return at.switch_page("pages/project.py").run()


def trace_of(**query):
    return calculate(Settings.read({name: str(value) for name, value in query.items()})[0]).trace


def texts(at):
    traces = json.loads(at.get("plotly_chart")[0].proto.spec)["data"]
    return [text for trace in traces if "text" in trace for text in trace["text"]]


def result(at):
    """The number after Σ."""
    (text,) = [text for text in texts(at) if "Σ" in text]
    return float(re.search(r"[=≈] (.*)$", text)[1].replace("−", "-"))


SETTINGS = [
    {},
    {"input": "pocket", "which": "K"},
    {"h": 1, "which": "V"},
    {"h": 16, "d_model": 512, "input": "random", "n": 40, "head": 15},
    {"input": "random", "n": 256, "query": 255},
    {"input": "random", "n": 1, "query": 9, "feature": 511},
    {"d_model": 7, "h": 7},
    {"input": "text", "text": "$a$ <b>b</b> `c` [d](e) :red[f]"},
    {"weights": "random", "bias": "true", "mask": "causal", "which": "V"},
    {"input": "mao", "positions": "false", "mask": "padding", "mask_size": 1},
]


@pytest.mark.parametrize("query", SETTINGS, ids=lambda query: "&".join(map(str, query.values())) or "default")
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_setting_draws_and_its_number_is_the_trace_s(query, lang):
    at = open_page(lang=lang, **query)
    assert not at.exception
    assert not at.error
    settings, _ = Settings.read({name: str(value) for name, value in query.items()})
    heads = trace_of(**query)[f"{settings.which}_heads"].sel(batch=0, head=settings.head).numpy()
    n, d_k = heads.shape
    expected = heads[min(settings.query, n - 1), min(settings.feature, d_k - 1)]
    assert abs(result(at) - expected) < 6e-3


def test_selectors_move_the_cell():
    at = open_page(which="K")
    at.selectbox(key="ui_page_head").set_value(2).run()
    at.selectbox(key="ui_page_query").set_value(4).run()
    at.selectbox(key="ui_page_feature").set_value(9).run()
    assert not at.exception
    expected = trace_of()["K_heads"].sel(batch=0, head=2, key=4, feature=9).value.item()
    assert abs(result(at) - expected) < 6e-3


@pytest.mark.parametrize("which", "QKV")
def test_pocket_by_hand_is_exact(which):
    """The displayed products give the displayed number, in integers, in the formula and on the picture."""
    for query in range(3):
        for head in range(2):
            for feature in range(2):
                at = open_page(input="pocket", which=which, head=head, query=query, feature=feature)
                (formula,) = [m.value for m in at.markdown if m.value.startswith("$")]
                left, written = formula.split("$")[1].rsplit(" = ", 1)
                products = left.rsplit("= ", 1)[1].replace(r"\cdot", "*")
                assert eval(products) == int(written) == result(at)  # only digits and signs
                assert (
                    float(written)
                    == trace_of(input="pocket")[f"{which}_heads"]
                    .sel(batch=0, head=head, **{"query" if which == "Q" else "key": query}, feature=feature)
                    .value.item()
                )


LABS = {
    "ledger": ("ledger", "same"), "nudge": ("nudge", "owner"), "times": ("times", "both"), "tie": ("tie", "yes"),
    "split": ("split", "same"), "bias": ("bias", "none"),
}  # fmt: skip


@pytest.mark.parametrize("lab", LABS)
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    "query",
    [{}, {"input": "pocket"}, {"weights": "random", "bias": "true", "h": 16, "mask": "causal"}, {"h": 1},
     {"input": "random", "n": 1}, {"d_model": 7, "h": 7, "head": 6}, {"mask": "padding", "mask_size": 1, "head": 3}],
    ids=lambda query: "&".join(map(str, query.values())) or "default",
)  # fmt: skip
def test_every_experiment_asks_then_tells(lab, lang, query):
    at = open_page(lab=lab, lang=lang, **query)
    key, guess = LABS[lab]
    charts = len(at.get("plotly_chart"))
    if not [group for group in at.segmented_control if group.key == f"ui_guess_project.{key}"]:
        assert query.get("h") == 1  # nothing to compare
        return
    at.segmented_control(key=f"ui_guess_project.{key}").set_value(guess).run()
    assert not at.exception
    shown = at.get("plotly_chart")
    trivial = lab == "split" and query.get("n") == 1
    assert len(shown) + len(at.table) > charts or trivial
    written = [m.value for m in at.markdown]
    for chart in shown:
        written += [text for trace in json.loads(chart.proto.spec)["data"] for text in trace.get("text", ())]
    assert not [text for text in written if re.search(r"\bnan\b|\binf\b", text)]


def told(at, start):
    (text,) = [m.value for m in at.markdown if start in m.value]
    return text


def guessed(lab, guess, **query):
    at = open_page(lab=lab, **query)
    return at.segmented_control(key=f"ui_guess_project.{lab}").set_value(guess).run()


def test_the_ledger_is_equal_for_every_h():
    at = guessed("ledger", "more", d_model=512, h=8)
    table = at.table[0].value
    assert set(table["all parameters"]) == {"1,050,624"}
    assert len(table) == 5


def test_nudging_names_the_heads_that_move():
    """LESSONS 3: feature 64 of 64, h = 8: all heads, against the one whose slice it is."""
    at = guessed("nudge", "owner", h=8, weights="random")
    assert "V moves in 8 of 8 heads" in told(at, "In all that read it")
    assert "V moves in 1 of 8 heads (the slice of head 8)" in told(at, "In all that read it")


def test_scaling_w_v_moves_no_weight_and_w_k_does():
    text = told(guessed("times", "both", weights="random"), "Only W_K.")
    assert "the largest change of any weight is 0, and the output becomes 3.000 times" in text


def test_a_guess_stays_beside_the_truth_when_a_setting_changes():
    at = guessed("times", "both")
    at.segmented_control(key="ui_page_times").set_value("5").run()
    assert "You guessed: Both" in told(at, "Only W_K.") and "×5" in told(at, "Only W_K.")


def test_the_pictures_speak_the_same_english_in_the_app_and_in_a_notebook():
    assert words("en").group("project.fig") == {**PROJECT_WORDS, **LAB_WORDS}


def test_an_experiment_of_another_page_in_the_address_is_no_error():
    at = open_page(lab="values")
    assert not at.exception
    assert at.segmented_control(key="ui_page_lab").value == "ledger"
