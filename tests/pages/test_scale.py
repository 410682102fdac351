"""The page "scale" without a browser: what it says is measured on the random queries and in the trainings."""

import time

import numpy as np
import pytest

from mha_core.figures.scale import SCALE_WORDS
from mha_core.figures.scale_race import RACE_WORDS
from mha_core.figures.scale_trap import TRAP_WORDS
from mha_core.random_queries import draw, sweep
from mha_core.scale_race import STEPS, Lap, race
from pages._ui import scale_notes, scale_race_notes
from pages._ui.scale_draws import draws_at
from pages._ui.settings import Settings
from pages._ui.text import LANGUAGES, words
from tests.pages.test_app import SETTINGS, open_app

EN = words("en")


def open_scale(**query):
    return open_app(**query).switch_page("pages/scale.py").run()


def said(at):
    return "\n".join(element.value for element in at.main.markdown)


def rows(at):
    """The cells of the table, by what the scores are divided by."""
    lines = [line for line in said(at).splitlines() if line.startswith("|")]
    cells = [[cell.strip().strip("*") for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in cells[2:]}


MORE = [
    {"draw_d_k": 512, "draw_by": "one"},
    {"draw_d_k": 37, "draw_by": "d_k", "draw_n": 4},
    {"draw_d_k": 1, "draw_n": 1},
    {"draw_n": 256, "input": "random", "n": 256, "h": 8},
]


@pytest.mark.parametrize(
    "query", [*SETTINGS, *MORE], ids=lambda query: "&".join(f"{k}={v}" for k, v in query.items()) or "default"
)
def test_every_setting_shows_the_medians_of_its_draws(query):
    at = open_scale(**query)
    assert not at.exception and not at.error
    settings, _ = Settings.read({name: str(value) for name, value in query.items()})
    d_k = settings.draw_d_k or settings.d_model // settings.h
    by = draws_at(settings.draw_n, d_k).by_divisor
    for divisor, cells in zip(("one", "sqrt", "d_k"), rows(at).values(), strict=True):
        medians = [by[divisor].spread, *(np.median(by[divisor].of(q)) for q in ("largest", "entropy", "jacobian"))]
        assert cells[:4] == [scale_notes.number(value) for value in medians]
        assert cells[5] == scale_notes.percent(np.mean(by[divisor].jacobian < 0.01))


@pytest.mark.parametrize("query", [{}, {"draw_d_k": 512, "draw_by": "d_k"}, {"draw_n": 1}, {"d_model": 8, "h": 4}])
def test_it_speaks_chinese_too(query):
    at = open_scale(lang="zh", **query)
    assert not at.exception
    assert "看点" in said(at) or "只有一个键" in said(at)


def test_the_random_queries_follow_the_calculation_until_they_are_sent_elsewhere():
    at = open_scale()
    slider = at.main.select_slider(key="ui_page_draw_d_k")
    assert slider.value == 16 and "d_k = 16" in said(at)
    at.select_slider(key="ui_h").set_value(8).run()
    assert at.main.select_slider(key="ui_page_draw_d_k").value == 8
    at.main.select_slider(key="ui_page_draw_d_k").set_value(256).run()
    assert at.session_state.draw_d_k == "256" and "at d_k = 256" in said(at)
    at.select_slider(key="ui_h").set_value(4).run()
    assert at.main.select_slider(key="ui_page_draw_d_k").value == 256
    at.main.select_slider(key="ui_page_draw_d_k").set_value(16).run()
    assert at.session_state.draw_d_k == "0"


def test_harm_is_told_where_there_is_harm():
    small = said(open_scale(draw_d_k=4))
    assert "there is no harm to show" in small and "Harm begins near d_k = 16" in small
    harmed = said(open_scale(draw_d_k=512))
    dead = sweep(16).at[512].by_divisor["one"].dead
    assert f"**{dead:.0%}**".replace("%", " %") in harmed and "no harm to show" not in harmed
    assert "overdoes it" in said(open_scale(draw_by="d_k"))
    for d_k in (1, 4):
        mild = said(open_scale(draw_by="d_k", draw_d_k=d_k))
        assert "makes the weights even" in mild and "plain mean" not in mild


def test_what_is_said_of_two_keys_is_no_rounding():
    """At d_k = 512 float32 says that all of the attention goes to one of two keys; near d_k = 2 harm lies ahead."""
    sharp = said(open_scale(draw_n=2, draw_d_k=512))
    assert "gives **> 99 %** of its attention" in sharp
    assert "Harm begins near d_k = 4" in said(open_scale(draw_n=2, draw_d_k=2))


def test_the_dots_are_the_heads():
    text = said(open_scale(weights="random", input="random", n=16, d_model=128))
    assert "are the 4 heads at the left, with d_k = 32" in text
    assert "those of random queries by 1.00" in text


def test_the_trap_is_told_after_a_guess_with_both_quantities():
    at = open_scale()
    assert "It rises" not in said(at) and len(at.get("plotly_chart")) == 1
    at.button_group(key="ui_guess_scale.trap").set_value("falls").run()
    small, large = (sweep(16).at[d_k].by_divisor["one"] for d_k in (4, 512))
    text = said(at)
    assert "**It rises.**" in text and len(at.get("plotly_chart")) == 2
    for drawn in (small, large):
        for quantity in ("gradient", "jacobian"):
            values = drawn.of(quantity)
            assert scale_notes.number(np.mean(values, dtype=float)) in text
            assert scale_notes.number(np.median(values)) in text
    assert "Many queries get next to no gradient" in text


def wait(at, until):
    deadline = time.monotonic() + 30
    while not until() and time.monotonic() < deadline:
        time.sleep(0.1)
        at.run()


def test_nothing_trains_before_the_button_and_a_stop_keeps_what_there_is():
    at = open_scale()
    assert "Divided by √d_k**" not in said(at)
    at.button(key="start_scale.race").click().run()
    wait(at, lambda: len(at.get("plotly_chart")) > 1)
    assert "Seed 0" not in said(at)
    at.button(key="stop_scale.race").click().run()
    wait(at, lambda: "start_scale.race" in [button.key for button in at.button])
    assert "Seed 0, learning rate 0.1" in said(at)
    assert not at.exception


def laps_of(right, one, dead=0.9):
    return [
        Lap(step, {"sqrt": a, "one": b}, {"sqrt": dead, "one": 0.95})
        for step, a, b in zip(range(0, 50, 10), right, one, strict=True)
    ]


def test_what_is_said_about_the_trainings_is_what_they_did():
    up, low = (0.0, 0.2, 0.4, 0.99, 1.0), (0.0, 0.2, 0.4, 0.8, 0.5)
    text = scale_race_notes.notice(EN, laps_of(up, low), 7, "0.03")
    assert "**Divided by √d_k**: 99 % right after 30 steps; 100 % at the end." in text
    assert "**Divided by 1**: never 99 % right in 40 steps; at best 80 % (step 30), 50 % at the end." in text
    assert (
        "8 times as large" in text
        and "90 % of the divided model's queries are saturated" in text
        and "Seed 7, learning rate 0.03" in text
    )
    assert "95 % of the undivided model's queries had ‖J‖ < .01, and 90 % of the other's" in text
    both = scale_race_notes.notice(EN, laps_of(up, up, dead=0.0), 0, "0.01")
    assert "both arrive" in both and "times as large" not in both and "are saturated" not in both
    neither = scale_race_notes.notice(EN, laps_of(low, low), 0, "0.01")
    assert "both arrive" not in neither and "times as large" not in neither
    quick = scale_race_notes.notice(EN, laps_of((0.0, 0.9, 1.0, 1.0, 1.0), low), 0, "0.1")
    assert "After 20 steps" in text and "After 20 steps" not in quick
    first = scale_race_notes.notice(EN, list(race(0, steps=10)), 0, "0.1")
    assert "After 20 steps" not in first
    for language in LANGUAGES:
        assert scale_race_notes.text(words(language)).count(str(STEPS)) == 1


def test_numbers_are_said_with_two_digits():
    assert scale_notes.number(draw(16, [512])[512].by_divisor["one"].median("jacobian")) == ".00054"


def test_every_word_of_the_pictures_is_there_in_both_languages():
    for language in LANGUAGES:
        for group, english in (("fig", SCALE_WORDS), ("trap_fig", TRAP_WORDS), ("race_fig", RACE_WORDS)):
            assert words(language).group(f"scale.{group}").keys() == english.keys()
