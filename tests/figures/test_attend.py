"""The page's main picture: what is drawn is the trace."""

import re

import numpy as np
import pytest
import torch

from mha_core import masks
from mha_core.figures.attend import MOST_PICKED, attend
from mha_core.figures.attend_bars import Bars, bar_text
from mha_core.figures.pick import cell_of
from tests.figures.test_overview import decoded, hovers


def tokens(n):
    return [f"w{i}" for i in range(n)]


def texts(picture):
    return [text for trace in picture.to_dict()["data"] if trace.get("mode") == "text" for text in trace["text"]]


def pick_values(picture):
    """For each pickable matrix its meaning and the values that its markers carry."""
    spec = picture.to_dict()["data"]
    for number, pickables in picture.picks.items():
        values = decoded(spec[number]["customdata"])
        for pick, (rows, columns) in pickables:
            yield pick, values[: rows * columns].reshape(rows, columns)
            values = values[rows * columns :]


CASES = [
    {"n": 1, "h": 1, "d_model": 4},
    {"n": 3, "h": 2},
    {"n": 10, "h": 4, "d_model": 64},
    {"n": 40, "h": 16, "d_model": 64},
    {"n": 50, "h": 2},
    {"n": 256, "h": 1, "d_model": 128},
    {"n": 9, "h": 2, "d_model": 8, "n_k": 5},
    {"n": 2, "h": 2, "d_model": 8, "n_k": 70},
    {"n": 6, "h": 2, "zero": True},
    {"n": 6, "h": 4, "d_model": 16, "h_kv": 2, "d_v": 3},
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("mode", ["score", "value"])
def test_it_is_a_figure(trace_of, case, theme, mode):
    trace = trace_of(**case)
    n_q, n_k = trace.sizes["n_q"], trace.sizes["n_k"]
    context = tokens(n_k) if trace.cross else None
    cell = {"head": trace.sizes["h"] - 1, "query": n_q - 1, "key": n_k // 2, "feature": trace.sizes["d_v"] - 1}
    picture = attend(trace, tokens(n_q), context_tokens=context, mode=mode, theme=theme, **cell)
    picture.figure()


@pytest.mark.parametrize("mask", [None, masks.causal(7), torch.zeros(7, 7, dtype=torch.bool)])
def test_the_four_squares_carry_their_steps(trace_of, mask):
    trace = trace_of(7, 2, 8, mask=mask)
    picture = attend(trace, tokens(7), head=1, query=3, key=2)
    squares = [values for pick, values in pick_values(picture) if (pick.rows, pick.columns) == ("query", "key")]
    for step, values in zip(("raw_scores", "scores", "masked_scores", "weights"), squares, strict=True):
        np.testing.assert_array_equal(values, trace[step].sel(batch=0, head=1).numpy())
    (V,) = [values for pick, values in pick_values(picture) if pick.rows == "key"]
    np.testing.assert_array_equal(V, trace["V_heads"].sel(batch=0, head=1).numpy())


def test_a_click_chooses_the_cell_and_its_head(trace_of):
    picture = attend(trace_of(5, 2, 8), tokens(5), head=1)
    pickables = next(iter(picture.picks.values()))
    assert cell_of(pickables, 5 * 3 + 2) == {"head": 1, "query": 3, "key": 2}


@pytest.mark.parametrize(("n", "clicked"), [(24, 4), (28, 3), (34, 2), (40, 1), (50, 0)])
def test_of_large_maps_fewer_can_be_clicked_and_all_answer_the_pointer(trace_of, n, clicked):
    trace = trace_of(n, 2, 8)
    picture = attend(trace, tokens(n))
    squares = [values for pick, values in pick_values(picture) if (pick.rows, pick.columns) == ("query", "key")]
    assert len(squares) == clicked
    assert len(hovers(picture)) == 4 - clicked
    assert sum(values.size for values in squares) <= MOST_PICKED
    if squares:
        np.testing.assert_array_equal(squares[-1], trace["weights"].sel(batch=0, head=0).numpy())


def test_every_operand_is_printed(trace_of):
    trace = trace_of(6, 2, 8)
    shown = texts(attend(trace, tokens(6), head=1, query=4, key=2))
    q = trace["Q_heads"].value[0, 1, 4].tolist()
    assert sum(bool(re.fullmatch(r"−?\d*\.\d\d\d?", text)) for text in shown) >= 12
    assert any(text.startswith(f"{q[0]:.2f}".replace("-", "−").replace("0.", ".")) for text in shown)
    assert any(text.startswith("Σ = ") for text in shown)


def test_the_chosen_names_are_bold(trace_of):
    picture = attend(trace_of(6, 2, 8), tokens(6), query=4, key=2)
    bold = {
        text
        for trace in picture.to_dict()["data"]
        if trace.get("mode") == "text"
        for text, weight in zip(trace["text"], trace["textfont"]["weight"], strict=True)
        if weight > 400
    }
    assert {"w4", "w2"} <= bold
    assert not {"w0", "w1", "w3", "w5"} & bold


def test_what_a_user_typed_is_escaped(trace_of):
    picture = attend(trace_of(3, 1, 4), ["<b>x</b>", "$a$", "ok"], query=0, key=1)
    spec = picture.to_dict()
    drawn = [*texts(picture), *spec["layout"]["xaxis"]["ticktext"], *spec["layout"]["yaxis"]["ticktext"]]
    assert not [text for text in drawn if "<b>x" in text or "$a$" in text]


def test_bars_stand_on_zero():
    scale = Bars(-2.0, 6.0, 100, 180)
    assert scale.at(0.0) == scale.zero
    assert scale.at(6.0) < scale.zero < scale.at(-2.0) <= 180
    assert Bars(0.0, 0.0, 100, 180).zero == 180
    assert [bar_text(value) for value in (-12.4, 0.04, -0.04)] == ["−12", "0", "0"]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [({"head": 2}, IndexError), ({"query": 5}, IndexError), ({"mode": "x"}, ValueError), ({"theme": "x"}, KeyError)],
)
def test_a_cell_that_there_is_not(trace_of, wrong, error):
    with pytest.raises(error):
        attend(trace_of(5, 2, 8), tokens(5), **wrong)
    with pytest.raises(ValueError, match="4 and 4 tokens"):
        attend(trace_of(5, 2, 8), tokens(4))
