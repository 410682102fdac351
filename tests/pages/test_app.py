"""The app without a browser: every setting draws, and what it draws is the trace."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages._ui.calculation import calculate
from pages._ui.settings import Settings

APP = str(Path(__file__).parents[2] / "app.py")


def open_app(**query):
    at = AppTest.from_file(APP, default_timeout=30)
    for name, value in query.items():
        at.query_params[name] = str(value)
    return at.run()


def decode(typed):
    shape = [int(size) for size in typed["shape"].split(",")]
    return np.frombuffer(base64.b64decode(typed["bdata"]), typed["dtype"]).reshape(shape)


def drawn(at):
    """The focus head's scores and weights, then every head's weights, as drawn."""
    traces = json.loads(at.get("plotly_chart")[0].proto.spec)["data"]
    return [decode(trace["z"]) for trace in traces if trace["type"] == "heatmap"]


def holds(at, array):
    return any(z.shape == array.shape and np.array_equal(z, array, equal_nan=True) for z in drawn(at))


SETTINGS = [
    {},
    {"h": 1},
    {"h": 16, "d_model": 128},
    {"d_model": 4, "h": 4},
    {"d_model": 512, "h": 8},
    {"d_model": 7, "h": 7},
    {"d_model": 509, "h": 1},
    {"input": "mao", "lang": "zh"},
    {"input": "pocket"},
    {"input": "random", "n": 1},
    {"input": "random", "n": 64, "d_model": 96, "h": 12},
    {"input": "text", "text": "Don't panic, 猫! 42"},
    {"weights": "random", "seed": 7, "bias": "true"},
    {"mask": "causal", "head": 2},
    {"mask": "padding", "mask_size": 3},
    {"mask": "window", "mask_size": 2},
    {"mask": "prefix"},
    {"positions": "false"},
    {"input": "random", "n": 256, "d_model": 512, "h": 16},
]


@pytest.mark.parametrize(
    "query", SETTINGS, ids=lambda query: "&".join(f"{k}={v}" for k, v in query.items()) or "default"
)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_setting_draws_the_weights_of_its_trace(query, lang):
    query = {"lang": lang, **query}
    at = open_app(**query)
    assert not at.exception
    assert not at.error
    settings, notices = Settings.read({name: str(value) for name, value in query.items()})
    assert notices == ()
    trace = calculate(settings).trace
    weights = trace["weights"].sel(batch=0, head=settings.head).numpy()

    assert settings.n > 128 or holds(at, weights)  # larger maps are drawn by blocks


def test_an_unrelated_control_changes_no_number():
    at = open_app(weights="random")
    before = drawn(at)
    at.segmented_control(key="ui_lang").set_value("zh").run()
    for left, right in zip(before, drawn(at), strict=True):
        np.testing.assert_array_equal(left, right)


def test_two_sessions_see_the_same_numbers():
    for left, right in zip(drawn(open_app(weights="random")), drawn(open_app(weights="random")), strict=True):
        np.testing.assert_array_equal(left, right)


def test_what_the_address_gets_wrong_is_named_until_it_is_dismissed():
    at = open_app(h=7, mask="foo")
    (warning,) = at.warning
    assert "`7`" in warning.value
    assert "`foo`" in warning.value
    at.button[0].click().run()
    assert not at.warning


def test_h_follows_d_model_and_comes_back():
    at = open_app(d_model=64, h=8)
    at.select_slider(key="ui_d_model").set_value(36).run()
    assert at.select_slider(key="ui_h").value == 9
    at.select_slider(key="ui_d_model").set_value(64).run()
    assert at.select_slider(key="ui_h").value == 8


def test_the_pocket_example_sets_its_sizes_and_gives_the_old_ones_back():
    at = open_app(d_model=48, h=6)
    at.selectbox(key="ui_input").set_value("pocket").run()
    assert (at.select_slider(key="ui_d_model").value, at.select_slider(key="ui_h").value) == (4, 2)
    at.selectbox(key="ui_input").set_value("cat").run()
    assert (at.select_slider(key="ui_d_model").value, at.select_slider(key="ui_h").value) == (48, 6)


def test_an_empty_text_is_explained_and_what_was_typed_stays():
    at = open_app(input="text", text="!?")
    at.text_area(key="ui_text").set_value("   ").run()
    assert len(at.error) == 1
    assert not at.get("plotly_chart")
    at.text_area(key="ui_text").set_value("back again").run()
    assert not at.error
    assert at.get("plotly_chart")


def test_choosing_own_text_begins_with_the_sentence_that_was_there():
    at = open_app(input="mao")
    at.selectbox(key="ui_input").set_value("text").run()
    assert at.text_area(key="ui_text").value == "猫坐在垫子上因为它累了"
    assert at.get("plotly_chart")


def test_before_the_first_upload_the_page_asks_for_one():
    (error,) = open_app(input="upload").error
    assert error.value == "No table yet: upload a CSV or NPY file at the left."


def test_a_lost_upload_says_so():
    at = open_app(input="upload", src="up-12345678")
    assert len(at.error) == 1
    assert not at.exception
