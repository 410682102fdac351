"""Every number explains itself: its operands, summed, give the tensor's cell."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_core import STEPS, AttentionTrace, Explanation, MultiHeadAttention
from mha_core.masks import causal
from tests.reference import Case, attention_by_loops, cases

NAMES = [step.name for step in STEPS]


def cells(trace: AttentionTrace, step: str, count: int) -> Iterator[dict[str, int]]:
    """The step's first cell, its last, and some between, by axis."""
    intermediate = trace[step]
    for flat in np.unique(np.linspace(0, intermediate.value.numel() - 1, count).astype(int)):
        place = np.unravel_index(flat, intermediate.shape)
        yield dict(zip(intermediate.axes, map(int, place), strict=True))


def braces_balance(latex: str) -> bool:
    depth = 0
    for character in latex:
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return False
    return depth == 0


@settings(max_examples=60, deadline=None, derandomize=True)
@given(cases())
def test_every_cell_of_every_step_adds_up(case: Case) -> None:
    trace = case.trace()
    for step in NAMES:
        for cell in cells(trace, step, 7):
            e = trace.explain(step, **cell)
            assert e.value == trace[step].value[tuple(cell.values())].item()
            if math.isinf(e.total):
                assert e.value == e.total == -math.inf
                assert e.masked
                assert e.residual == 0
            else:
                size = 1.0 if step == "weights" else max(1.0, sum(abs(term.product) for term in e.terms))
                assert abs(e.residual) <= 1e-5 * size
            assert braces_balance(e.symbols)
            assert braces_balance(e.numbers())


@settings(max_examples=30, deadline=None, derandomize=True)
@given(cases(dtypes=(torch.float64,)))
def test_the_total_is_what_loops_in_numpy_give(case: Case) -> None:
    trace = case.trace()
    for step, expected in case.loops.items():
        for cell in cells(trace, step, 7):
            assert trace.explain(step, **cell).total == pytest.approx(
                expected[tuple(cell.values())], rel=1e-9, abs=1e-9
            )


def test_concat_reads_the_head_that_owns_the_feature() -> None:
    torch.manual_seed(0)
    module, X = MultiHeadAttention(12, 4, d_v=5, h_kv=2).double(), torch.randn(2, 3, 12).double()
    heads, trace = attention_by_loops(module, X)["head_outputs"], module.trace(X)
    for feature in range(20):  # d_v = 5: features 0 … 4 are head 0's
        e = trace.explain("concat", batch=1, query=2, feature=feature)
        assert e.total == pytest.approx(heads[1, feature // 5, 2, feature % 5], abs=1e-12)


@pytest.mark.parametrize("head", range(4))
def test_keys_and_values_can_be_asked_for_by_query_head(head: int) -> None:
    trace = MultiHeadAttention(8, 4, h_kv=2).trace(torch.randn(1, 3, 8))
    for step in ("K_heads", "V_heads"):
        e = trace.explain(step, head=head, key=1, feature=1)
        assert e.value == trace[step].value[0, head // 2, 1, 1].item()


def test_a_masked_cell_explains_minus_infinity() -> None:
    trace = MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8), mask=causal(3))
    score = trace.explain("masked_scores", head=1, query=0, key=2)
    assert (score.value, score.total, score.residual, score.masked) == (-math.inf, -math.inf, 0, True)
    assert r"- \infty = -\infty" in score.numbers()
    weight = trace.explain("weights", head=1, query=0, key=2)
    assert (weight.value, weight.total, weight.masked) == (0, 0, True)
    assert r"e^{-\infty -" in weight.numbers()
    assert not trace.explain("weights", head=1, query=0, key=0).masked


def test_an_empty_row_is_said_to_be_masked() -> None:
    trace = MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8), mask=torch.zeros(3, 3, dtype=torch.bool))
    e = trace.explain("weights", head=0, query=1, key=1)
    assert (e.value, e.total, e.residual, e.masked) == (0, 0, 0, True)
    assert e.softmax == (-math.inf, 0)
    assert "masked" in e.symbols
    assert e.numbers() == "0.000"


def test_a_mask_entry_is_taken_as_it_was_added() -> None:
    mask = torch.zeros(3, 3, dtype=torch.float64)
    mask[0, 1] = -1e300  # −∞ once it is float32
    e = MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8), mask=mask).explain("masked_scores", head=0, query=0, key=1)
    assert (e.value, e.total, e.masked) == (-math.inf, -math.inf, True)


def long_sum(terms: int) -> Explanation:
    torch.manual_seed(0)
    module = MultiHeadAttention(terms, 1, bias=False)
    return module.trace(torch.randn(1, 2, terms)).explain("Q", query=1, feature=0)


def test_up_to_sixteen_terms_are_all_shown() -> None:
    e = long_sum(16)
    assert e.shown == (e.terms, None)
    assert e.numbers().count(r"\cdot") == 16


@pytest.mark.parametrize("terms", [17, 40])
def test_a_longer_sum_shows_its_eight_largest_terms_and_the_rest(terms: int) -> None:
    e = long_sum(terms)
    shown, rest = e.shown
    assert rest is not None
    assert len(e.terms) == terms
    assert shown == tuple(sorted(sorted(e.terms, key=lambda t: abs(t.product))[-8:], key=lambda t: t.index))
    assert sum(term.product for term in shown) + rest == pytest.approx(e.total, abs=1e-12)
    assert e.numbers().count(r"\cdot") == 8
    assert e.numbers(3).split(" = ")[0].endswith(f"{abs(rest):.3f}")


@pytest.fixture
def pocket() -> AttentionTrace:
    """For paper and pencil: h = 2, W_Q = W_V = W_O = I, W_K = −I, b_Q = (0, 0, 1, 0)."""
    module = MultiHeadAttention(4, 2)
    with torch.no_grad():
        for letter, sign in zip("QKVO", (1, -1, 1, 1), strict=True):
            linear = getattr(module, f"W_{letter}")
            linear.weight.copy_(sign * torch.eye(4))
            linear.bias.zero_()
        module.W_Q.bias[2] = 1
    X = torch.tensor([[[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 1.0, -1.0]]])
    return module.trace(X, mask=torch.tensor([[True, False], [True, True]]))


@pytest.mark.parametrize(
    ("step", "cell", "latex"),
    [
        ("X", {"query": 1, "feature": 3}, "-1.0"),
        (
            "Q",
            {"query": 1, "feature": 2},
            r"0.0 \cdot 0.0 + 1.0 \cdot 0.0 + 1.0 \cdot 1.0 - 1.0 \cdot 0.0 + 1.0 = 2.0",
        ),
        ("Q_heads", {"head": 1, "query": 1, "feature": 0}, "2.0"),
        ("K_heads", {"head": 1, "key": 0, "feature": 1}, "-1.0"),
        ("raw_scores", {"head": 0, "query": 0, "key": 1}, r"1.0 \cdot 0.0 + 2.0 \cdot (-1.0) = -2.0"),
        ("scores", {"head": 0, "query": 0, "key": 1}, r"\frac{-2.0}{\sqrt{2}} = -1.4"),
        ("masked_scores", {"head": 0, "query": 0, "key": 1}, r"-1.4 - \infty = -\infty"),
        ("masked_scores", {"head": 0, "query": 0, "key": 0}, r"-3.5 + 0.0 = -3.5"),
        # query 1 of head 0: (0, 1) · (−1, −2) = −2 and (0, 1) · (0, −1) = −1, over √2; e^(−1/√2) = 0.493
        (
            "weights",
            {"head": 0, "query": 1, "key": 0},
            r"\frac{e^{-1.4 - (-0.7)}}{\sum_k e^{s_k - (-0.7)}} = \frac{0.5}{1.5} = 0.3",
        ),
        ("head_outputs", {"head": 0, "query": 1, "feature": 1}, r"0.3 \cdot 2.0 + 0.7 \cdot 1.0 = 1.3"),
        ("concat", {"query": 0, "feature": 1}, "2.0"),
        ("head_contributions", {"head": 0, "query": 0, "feature": 1}, r"1.0 \cdot 0.0 + 2.0 \cdot 1.0 = 2.0"),
        ("output", {"query": 0, "feature": 1}, "2.0 + 0.0 + 0.0 = 2.0"),
    ],
)
def test_numbers_are_written_as_one_would_by_hand(
    pocket: AttentionTrace, step: str, cell: dict[str, int], latex: str
) -> None:
    assert pocket.explain(step, **cell).numbers(1) == latex


def test_a_scale_of_one_s_own_is_written_as_a_factor(pocket: AttentionTrace) -> None:
    trace = pocket.module.trace(pocket["X"].value, scale=0.5)
    e = trace.explain("scores", head=0, query=0, key=1)
    assert e.numbers(1) == r"-2.0 \cdot 0.5 = -1.0"
    assert r"\mathrm{scale}" in e.symbols


def test_the_batch_is_the_first_one_when_left_out() -> None:
    trace = MultiHeadAttention(8, 2).trace(torch.randn(2, 3, 8))
    assert trace.explain("output", query=1, feature=2).cell == {"batch": 0, "query": 1, "feature": 2}


@pytest.mark.parametrize(
    ("step", "cell", "error", "message"),
    [
        ("attention", {}, KeyError, "there is no step 'attention'; the steps are X"),
        ("weights", {"head": 0}, KeyError, "weights needs query, key as well; its axes are batch, head, query, key"),
        ("output", {"head": 0, "query": 0, "feature": 0}, KeyError, "output has no axis 'head'; its axes are"),
        ("weights", {"head": 0, "query": 0, "key": 3}, IndexError, "key=3 is out of range for weights; choose 0 … 2"),
    ],
)
def test_a_cell_that_there_is_not_is_refused(
    step: str, cell: dict[str, int], error: type[Exception], message: str
) -> None:
    trace = MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8))
    with pytest.raises(error, match=message):
        trace.explain(step, **cell)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.floats(-1e9, 1e9), st.integers(0, 6))
def test_a_number_is_rounded_and_never_minus_zero(number: float, decimals: int) -> None:
    trace = MultiHeadAttention(1, 1).double().trace(torch.tensor([[[number]]], dtype=torch.float64))
    text = trace.explain("X", query=0, feature=0).numbers(decimals)
    assert float(text) == pytest.approx(number, abs=0.5 * 10**-decimals, rel=1e-12)
    assert math.copysign(1, float(text)) == (1 if float(text) == 0 else math.copysign(1, number))
