"""Long work on a page: it starts on a button, can be stopped, and what came of it stays."""

import time
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest

from pages._ui import working


def page():
    import time

    import streamlit as st

    from mha_core.errors import InputError
    from pages._ui import working
    from pages._ui.text import words

    kind = st.segmented_control("kind", ["short", "endless", "wrong", "input"], default="short")

    def work():
        yield 1
        if kind == "wrong":
            raise ZeroDivisionError
        if kind == "input":
            raise InputError("text_empty", text="…")
        while kind == "endless":
            time.sleep(0.01)
            yield 2
        return "result"

    outcome = working.work(
        words("en"), "test", work, total=2, key=(kind,),
        show=lambda points, done, key: st.text(f"{len(points)} points of {key}, {'done' if done else 'running'}"),
    )  # fmt: skip
    if outcome is not None:
        st.text(f"outcome {outcome.key} {outcome.result} {'stopped' if outcome.stopped else 'ended'}")


@pytest.fixture
def app():
    return AppTest.from_function(page, default_timeout=20).run()


def start(app, kind="short"):
    app.segmented_control[0].set_value(kind).run()
    return app.button[0].click().run()


def until(app, condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end and not app.exception
        time.sleep(0.1)
        app.run()


def said(app):
    return [text.value for text in app.text]


def test_nothing_runs_before_the_button_is_pressed(app):
    assert said(app) == ["0 points of ('short',), done"] and app.button[0].label == "Start"


def test_it_runs_to_its_end_and_the_result_stays(app):
    start(app)
    until(app, lambda: len(app.text) == 2)
    assert said(app) == ["1 points of ('short',), done", "outcome ('short',) result ended"]
    assert app.run().text[1].value == "outcome ('short',) result ended"


def test_it_can_be_stopped_and_keeps_what_there_was(app):
    start(app, "endless")
    assert app.button[0].label == "Stop" and "running" in said(app)[0]
    app.button[0].click().run()
    until(app, lambda: len(app.text) == 2)
    assert said(app)[1] == "outcome ('endless',) None stopped" and not said(app)[0].startswith("0")
    assert app.button[0].label == "Start"


def test_the_outcome_says_what_it_was_started_with(app):
    start(app)
    app.segmented_control[0].set_value("endless").run()
    until(app, lambda: len(app.text) == 2)
    assert "('short',)" in said(app)[1]


def test_what_runs_is_shown_as_what_it_was_started_with(app):
    start(app, "endless")
    app.segmented_control[0].set_value("short").run()
    assert "of ('endless',), running" in said(app)[0]
    app.button[0].click().run()
    until(app, lambda: len(app.text) == 2)
    assert "of ('endless',), done" in said(app)[0]


def test_a_second_quick_click_starts_nothing(monkeypatch):
    def page():
        from pages._ui import working

        for _ in range(2):
            working._start("test", iter, 1, (), 1)

    jobs = Mock()
    monkeypatch.setattr(working, "_jobs", lambda: jobs)
    assert not AppTest.from_function(page).run().exception
    jobs.start.assert_called_once_with(iter, 1)


@pytest.mark.parametrize(("kind", "sentence"), [("wrong", "an error of ours"), ("input", "holds no word")])
def test_what_fails_says_so_and_leaves_what_was_there(app, kind, sentence):
    start(app)
    until(app, lambda: len(app.text) == 2)
    start(app, kind)
    until(app, lambda: app.error)
    assert sentence in app.error[0].value and said(app)[1].startswith("outcome ('short',)")
    assert app.button[0].label == "Start"
