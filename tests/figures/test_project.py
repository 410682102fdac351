"""The picture of the projection: what is drawn is the trace, and a click means the cell under it."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from mha_core.figures import THEMES, WORDS, project
from mha_core.figures.pick import cell_of
from mha_core.figures.project import PROJECT_WORDS
from mha_core.figures.raster import signed_levels
from mha_core.figures.theme import signed_limit
from tests.figures.test_overview import decoded, texts, tokens


def painted(picture):
    source = next(trace for trace in picture.to_dict()["data"] if trace["type"] == "image")["source"]
    return np.array(Image.open(io.BytesIO(base64.b64decode(source.split(",")[1]))))


def markers(picture):
    """Every cell that can be clicked: x, y, value, what it chooses, and the template of its hover."""
    traces = picture.to_dict()["data"]
    for number, pickables in picture.picks.items():
        trace = traces[number]
        x, y, values = (decoded(trace[key]) for key in ("x", "y", "customdata"))
        for point in range(len(x)):
            yield x[point], y[point], values[point], cell_of(pickables, point), trace["hovertemplate"]


@pytest.mark.parametrize("which", "QKV")
@pytest.mark.parametrize("h", [1, 2, 8])
def test_a_click_chooses_the_cell_whose_number_is_painted_there(trace_of, which, h):
    trace = trace_of(6, h, 16)
    picture = project(trace, tokens(6), which=which, head=h - 1, query=2, feature=1)
    dots = painted(picture)
    heads, X = trace[f"{which}_heads"].sel(batch=0).numpy(), trace["X"].sel(batch=0).numpy()
    limit = signed_limit(trace[which].sel(batch=0).numpy())
    seen = set()
    for x, y, value, chosen, template in markers(picture):
        if template.startswith(f"{which}, "):
            assert value == heads[chosen["head"], chosen["query"], chosen["feature"]]
            assert dots[int(y), int(2 * x)] == signed_levels(np.array(value), limit)
            seen.add(tuple(chosen.values()))
        elif template.startswith("X, "):
            assert set(chosen) == {"query"} and value in X[chosen["query"]]
        elif template.startswith("W"):
            assert set(chosen) == {"head", "feature"}
        else:
            assert set(chosen) == {"head"} and value == chosen["head"] + 1
    assert len(seen) == heads.size


def test_a_block_chooses_the_number_that_it_shows(trace_of):
    trace = trace_of(5, 4, 256)
    heads, blocks = trace["V_heads"].sel(batch=0).numpy(), set()
    for *_, value, cell, template in markers(project(trace, tokens(5), which="V")):
        if template.startswith("V, "):
            assert value == heads[cell["head"], cell["query"], cell["feature"]]
            blocks.add((cell["head"], cell["query"], cell["feature"] // 4))
        elif template.startswith("W"):
            assert cell["feature"] % 4 == 0  # of a column of W, the first
    assert len(blocks) == 4 * 5 * 16


def test_a_column_of_the_weight_matrix_is_where_its_marker_is(trace_of):
    trace = trace_of(6, 2, 16)
    dots, limit = painted(project(trace, tokens(6))), signed_limit(trace.parameter("W_Q").numpy())
    W = trace.parameter("W_Q").numpy()
    for x, _, _, chosen, template in markers(project(trace, tokens(6))):
        if template.startswith("W"):
            column = W[:, chosen["head"] * 8 + chosen["feature"]]
            tops = 32 + (np.arange(16) + 0.5) * 254 / 16
            levels = dots[tops.astype(int), int(2 * x)]
            assert (levels == signed_levels(column, limit)).mean() > 0.9  # an edge falls on a pixel here and there


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("n", "h", "d_model", "more"),
    [(1, 1, 4, {}), (3, 2, 4, {}), (10, 4, 64, {}), (40, 16, 512, {}), (256, 8, 64, {}), (7, 7, 7, {}),
     (6, 4, 16, {"h_kv": 2}), (5, 3, 12, {"d_k": 7, "d_v": 2}), (4, 16, 16, {}), (2, 1, 509, {})],
)  # fmt: skip
def test_every_setting_gives_a_figure_that_plotly_accepts(trace_of, n, h, d_model, more, theme):
    trace = trace_of(n, h, d_model, **more)
    for which in "QKV":
        project(trace, tokens(n), which=which, head=h - 1, query=n - 1, feature=0, theme=theme).figure()
    assert len(project(trace, tokens(n), theme=theme).to_dict()["data"]) <= 8


def test_the_number_by_hand_is_the_one_of_the_trace(trace_of):
    trace = trace_of(6, 2, 8)
    value = trace["K_heads"].sel(batch=0, head=1, key=4, feature=3).value.item()
    seen = [text for text in texts(project(trace, tokens(6), which="K", head=1, query=4, feature=3)) if "Σ" in text]
    assert len(seen) == 1
    written = float(re.search(r"[=≈] (.*)$", seen[0])[1].replace("−", "-"))
    assert abs(written - value) < 6e-3


def test_zeros_and_user_text_are_drawn(trace_of):
    picture = project(trace_of(4, 2, 8, zero=True), ["<b>x</b>", "$a$", "%{z}", ""])
    picture.figure()
    assert not any("<b>x" in text or "$" in text for text in texts(picture))


def test_no_english_that_is_not_in_words(trace_of):
    chinese = {key: re.sub(r"[A-Za-z]+(?![^{<]*[}>])", "字", text) for key, text in {**WORDS, **PROJECT_WORDS}.items()}
    picture = project(trace_of(100, 4, 128), ["猫"] * 100, words=chinese)
    seen = [re.sub("<[^>]*>", "", text) for text in texts(picture)]
    left = {word for text in seen for word in re.findall("[A-Za-z]+", text)}
    assert left <= {"X", "W", "WQ", "Q", "K", "V", "x", "w", "q", "b", "k"}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [({"which": "O"}, KeyError), ({"head": 2}, IndexError), ({"query": 6}, IndexError), ({"feature": 4}, IndexError)],
)
def test_a_cell_that_there_is_not_is_named(trace_of, arguments, error):
    with pytest.raises(error):
        project(trace_of(), tokens(6), **arguments)


def test_it_stays_small(trace_of):
    import plotly.io as pio

    assert len(pio.to_json(project(trace_of(16, 8, 64), tokens(16)), validate=False)) < 110_000
    assert len(pio.to_json(project(trace_of(40, 16, 512), tokens(40)), validate=False)) < 215_000
