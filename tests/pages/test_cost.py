"""The page "cost" without a browser: its numbers are the core's, for every setting."""

import time
from dataclasses import replace

import pytest

from mha_core.cost import COST_STEPS, activation_bytes, cache_bytes, flops, parameters, softmax_cells
from mha_core.figures.cost import COST_WORDS
from mha_core.figures.cost_race import RACE_WORDS
from mha_core.figures.cost_sharing import SHARING_WORDS
from mha_core.figures.quantity import bytes_text, percent_text
from mha_core.grouped import output_change, share_keys
from mha_core.model_sizes import MODEL_SIZES, model_sizes
from mha_core.race import Cell, Sweep, Times, cells_of
from mha_core.sizes import Sizes
from pages._ui import cost_race
from pages._ui.calculation import calculate
from pages._ui.settings import Settings
from pages._ui.text import LANGUAGES, words
from tests.pages.test_app import SETTINGS, open_app


def open_cost(**query):
    return open_app(**query).switch_page("pages/cost.py").run()


def said(at):
    return "\n".join(element.value for element in at.main.markdown)


@pytest.mark.parametrize(("lang", "says"), [("en", "The default is used instead."), ("zh", "现改用：默认值。")])
def test_a_default_that_has_no_name_is_not_printed_as_nothing(lang, says):
    (warning,) = open_cost(lang=lang, cost_of="gpt5").warning
    assert says in warning.value and "`gpt5`" in warning.value


def sizes_at(**query):
    settings, notices = Settings.read({name: str(value) for name, value in query.items()})
    assert notices == ()
    return Sizes.of(calculate(settings).trace)


MORE = [
    *({"cost_of": row.key} for row in MODEL_SIZES),
    {"cost_of": "llama2", "kv_heads": 7, "cost_n": 131072, "cost_batch": 1024},
    {"cost_of": "opt", "cost_n": 131072, "cost_batch": 1024, "cost_layers": 200},
    {"kv_heads": 2, "cost_n": 100, "cost_layers": 3, "cost_dtype": "bfloat16"},
    {"h": 8, "kv_heads": 4, "mask": "causal"},
]


CASES = [*(("en", query) for query in [*SETTINGS, *MORE]), *(("zh", query) for query in [SETTINGS[0], *MORE[2:5]])]


@pytest.mark.parametrize(("lang", "query"), CASES, ids=str)
def test_every_setting_draws_and_its_table_agrees_with_the_count(lang, query):
    at = open_cost(**{"lang": lang, "cost_steps": "true", **query})
    assert not at.exception
    assert not at.error
    assert said(at).count(":green[✓]") >= 5 and ":red[✗]" not in said(at)


def test_the_table_is_the_count_to_the_last_digit():
    at = open_cost(cost_steps="true", mask="causal", weights="random", bias="true")
    sizes = sizes_at(mask="causal", weights="random", bias="true")
    (table,) = [element.value for element in at.main.table]
    *_, total = table.to_numpy().tolist()
    counts = flops(sizes), parameters(sizes), softmax_cells(sizes), activation_bytes(sizes)
    assert total[1:] == [f"{count:,}" for count in counts]
    assert len(table) == 1 + sum(bool(activation_bytes(sizes, step)) for step in COST_STEPS)
    assert f"parameters: {parameters(sizes):,} here = {parameters(sizes):,}" in said(at)


def test_a_published_model_brings_its_sizes_and_gives_them_back():
    at = open_cost(cost_n=50, cost_dtype="float64")
    at.selectbox(key="ui_page_cost_of").set_value("llama2").run()
    assert f"{bytes_text(327_680)} a token" in said(at)
    assert (at.session_state.cost_n, at.session_state.cost_dtype) == ("0", "")
    assert at.select_slider(key="ui_page_cost_n").value == 4096
    at.selectbox(key="ui_page_cost_of").set_value("").run()
    assert at.select_slider(key="ui_page_cost_n").value == 10
    assert f"{bytes_text(cache_bytes(sizes_at()))} a token" in said(at)


def test_a_chosen_n_stays_and_ones_own_follows_the_sidebar():
    at = open_cost(input="random", n=12)
    slider = at.select_slider(key="ui_page_cost_n")
    slider.set_value(64).run()
    assert at.session_state.cost_n == "64" and "At n = 64 the maps" in said(at)
    at.select_slider(key="ui_page_cost_n").set_value(12).run()
    assert at.session_state.cost_n == "0"
    at.number_input(key="ui_n").set_value(20).run()
    assert "At n = 20 the maps" in said(at)


def test_the_crossing_is_twice_d_model_and_is_said():
    assert "beyond n = 1,024 the maps cost more" in said(open_cost(d_model=512, h=8))
    assert "neither h nor d_k is in it" in said(open_cost(d_model=512, h=8))
    shared = said(open_cost(d_model=512, h=8, kv_heads=1))
    assert "beyond n = 576 the maps cost more" in shared and "512 · (1 + 1 / 8)" in shared
    assert "neither h nor d_k is in it" not in shared


@pytest.mark.parametrize(("loop", "said_so"), [(2e-3, True), (1.1e-3, False), (0.9e-3, False)])
def test_a_slow_loop_is_explained_only_where_it_was_slow(loop, said_so):
    median = {"loop": loop, "batched": 1e-3, "fused": 1e-3}
    times = Times(Cell("cpu", 8, 16, ("n",)), median, median, median, 3, dict.fromkeys(median, 1), 0.0)
    assert ("calls cost more than one" in cost_race._notice(words("en"), [times])) == said_so


def test_the_crossing_is_not_laid_to_a_width_that_has_no_part_in_it():
    """PaLM's h·d_k is 12,288, its d_model 18,432: with a key head for each it crosses at 2·d_model all the same."""
    palm = said(open_cost(cost_of="palm", kv_heads=48))
    assert "beyond n = 36,864 the maps" in palm and "neither h nor d_k is in it" in palm
    assert "beyond n = 18,816 the maps" in said(open_cost(cost_of="palm"))


def test_the_truth_about_heads_comes_after_the_guess():
    at = open_cost()
    assert "Only the softmax cells" not in said(at)
    at.button_group(key="ui_guess_cost.which").set_value("all").run()
    assert "**Only the softmax cells**: 100 → 800" in said(at)
    assert "16,640" in said(at) and f"{flops(sizes_at()):,}" in said(at)


def test_with_no_other_h_there_is_nothing_to_guess_or_to_share():
    at = open_cost(d_model=509, h=1)
    assert [group.key for group in at.get("button_group") if "guess" in (group.key or "")] == ["ui_guess_cost.slowest"]
    assert "With one head there is nothing to share" in said(at)


@pytest.mark.parametrize("query", [{}, {"h": 8, "kv_heads": 2}, {"input": "pocket"}, {"weights": "random", "h": 16}])
def test_what_sharing_saves_and_costs_is_measured(query):
    settings, _ = Settings.read({name: str(value) for name, value in query.items()})
    trace = calculate(settings).trace
    sizes = Sizes.of(trace)
    moved = percent_text(output_change(share_keys(trace, 1), trace))
    text = said(open_cost(**query))
    assert f"moves by {moved} of its length" in text
    assert f"from {bytes_text(cache_bytes(sizes))} to {bytes_text(cache_bytes(replace(sizes, h_kv=1)))} a token" in text
    llama = model_sizes("llama2").sizes
    assert f"= {cache_bytes(llama):,} bytes a token" in text


def test_equal_maps_are_not_called_different():
    assert "their maps are much the same" in said(open_cost(input="random", n=1))
    assert "yet their maps differ" in said(open_cost())


def test_a_small_race_runs_and_says_what_it_measured(monkeypatch):
    sweeps = (Sweep("h", (1, 2), 8, 16), Sweep("n", (16, 1024), 8, 16))
    monkeypatch.setattr(cost_race, "cells_of", lambda: cells_of(sweeps, ["cpu"]))
    at = open_cost()
    assert "Measured here" not in said(at)
    at.button_group(key="ui_guess_cost.slowest").set_value("fused").run()
    assert "The machine decides" in said(at)
    at.button(key="start_cost.race").click().run()
    for _ in range(100):
        if any(button.key == "start_cost.race" for button in at.button):
            break
        time.sleep(0.1)
        at.run()
    assert not at.exception
    text = said(at)
    assert "Measured here" in text and "32 MiB each" in text
    assert ":green[✓] all three give the same" in text
    (table,) = [element.value for element in at.main.table]
    assert list(table.index) == [f"CPU, h = {h}, n = {n}" for h, n in ((1, 16), (2, 16), (8, 16), (8, "1,024"))]
    assert "were left out" not in text


def test_every_word_of_the_pictures_is_there_in_both_languages():
    for language in LANGUAGES:
        t = words(language)
        assert t.group("cost.fig").keys() == COST_WORDS.keys()
        assert t.group("cost.shared").keys() == SHARING_WORDS.keys()
        assert t.group("cost.lines").keys() == RACE_WORDS.keys()
        assert all(f"cost.step_{step.name}" in t for step in COST_STEPS)
