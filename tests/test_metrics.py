"""Metrics against values by hand and loops in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mha_core import AttentionTrace, MultiHeadAttention
from mha_core.masks import causal
from mha_core.metrics import METRICS, TARGETS, Metric, divergence, effective_rank, entropy, favourites, mass_on, target

METRIC = {metric.key: metric for metric in METRICS}
LN2 = math.log(2)


def trace_of(n: int, *, d_model: int = 12, h: int = 3, batch: int = 2, mask: Tensor | None = None) -> AttentionTrace:
    torch.manual_seed(n)
    return MultiHeadAttention(d_model, h).trace(3 * torch.randn(batch, n, d_model), mask=mask)


def words(n: int) -> list[str]:
    return [f"w{i % 3}" for i in range(n)]


@st.composite
def weights(draw: st.DrawFn, h: int = 1) -> Tensor:
    """Rows that sum to 1, some of their cells zero, some rows empty: (h, n_q, n_k)."""
    n_q, n_k = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    sharpness, dropped = draw(st.sampled_from([0.0, 1.0, 30.0])), draw(st.sampled_from([0.0, 0.4]))
    scores = sharpness * torch.randn(h, n_q, n_k, generator=generator)
    hidden = torch.rand(h, n_q, n_k, generator=generator) < dropped
    return scores.masked_fill(hidden, -math.inf).softmax(-1).nan_to_num(0)


def kullback(p: np.ndarray, q: np.ndarray) -> float:
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def divergence_by_loops(A: np.ndarray) -> np.ndarray:
    h = len(A)
    result = np.full((h, h), np.nan)
    for i in range(h):
        for j in range(h):
            rows = [(p, q) for p, q in zip(A[i], A[j], strict=True) if p.sum() > 0 and q.sum() > 0]
            if rows:
                result[i, j] = np.mean([(kullback(p, (p + q) / 2) + kullback(q, (p + q) / 2)) / 2 for p, q in rows])
    return result


def test_entropy_by_hand() -> None:
    rows = torch.tensor([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.25, 0.25, 0.25], [0.5, 0.25, 0.25, 0], [0, 0, 0, 0]])
    assert entropy(rows).tolist() == pytest.approx([0, LN2, 2 * LN2, 1.5 * LN2, 0])


@given(weights(h=2))
def test_entropy_lies_between_0_and_ln_n(A: Tensor) -> None:
    assert entropy(A).min() >= 0
    assert entropy(A).max() <= math.log(A.size(-1)) + 1e-5


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("previous", [[0, 0, 0], [1, 0, 0], [0, 1, 0]]),
        ("next", [[0, 1, 0], [0, 0, 1], [0, 0, 0]]),
        ("self", [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        ("first", [[1, 0, 0], [1, 0, 0], [1, 0, 0]]),
        ("same", [[1, 0, 1], [0, 1, 0], [1, 0, 1]]),
    ],
)
def test_targets_by_hand(name: str, cells: list[list[int]]) -> None:
    assert torch.equal(target(name, ["The", "cat", "the"]), torch.tensor(cells).bool())


def test_an_unknown_target_lists_those_there_are() -> None:
    with pytest.raises(KeyError, match="'last'; there are previous, next, self, first, same"):
        target("last", ["a"])


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_target_is_boolean_and_square(name: str, n: int) -> None:
    cells = target(name, words(n))
    assert cells.shape == (n, n)
    assert cells.dtype == torch.bool


def test_mass_leaves_out_queries_without_a_target_and_empty_rows() -> None:
    A = torch.tensor([[1, 0, 0], [0.75, 0.25, 0], [0, 0.5, 0.5], [0, 0, 0]])
    cells = torch.tensor([[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]]).bool()
    assert mass_on(A, cells).item() == pytest.approx((0.75 + 1) / 2)


def test_mass_of_no_query_at_all_is_nan() -> None:
    assert mass_on(torch.ones(1, 1), target("previous", ["a"])).isnan()
    assert mass_on(torch.zeros(2, 2), target("self", ["a", "b"])).isnan()


@pytest.mark.parametrize("shape", [(3, 4), (1, 3), (3, 1)])
def test_mass_refuses_cells_of_another_shape(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"the marked cells are \(3, 3\) and the weights \(n_q, n_k\) = "):
        mass_on(torch.ones(shape) / shape[1], target("first", ["a", "b", "c"]))


def test_divergence_by_hand() -> None:
    A = torch.tensor([[[1.0, 0]], [[0, 1.0]], [[0.5, 0.5]]])
    half = 1.5 * LN2 - 0.75 * math.log(3)  # of (1, 0) and (½, ½)
    expected = [[0, LN2, half], [LN2, 0, half], [half, half, 0]]
    np.testing.assert_allclose(divergence(A).numpy(), expected, atol=1e-6)


@given(weights(h=3))
def test_divergence_is_the_mean_of_two_kullback_leibler_divergences(A: Tensor) -> None:
    np.testing.assert_allclose(divergence(A).numpy(), divergence_by_loops(A.double().numpy()), atol=1e-5)


@given(weights(h=3))
def test_divergence_is_symmetric_zero_to_itself_and_at_most_ln_2(A: Tensor) -> None:
    js = divergence(A)
    assert torch.equal(js.nan_to_num(-1), js.mT.nan_to_num(-1))
    known = js[~js.isnan()]
    assert ((known >= 0) & (known <= LN2 + 1e-5)).all()
    assert js.diagonal().nan_to_num(0).abs().max() <= 1e-6


def test_effective_rank_by_hand() -> None:
    u, v = torch.tensor([[1.0, 2, 3]]), torch.tensor([[4.0, 5]])
    assert effective_rank(u.mT @ v).item() == pytest.approx(1, abs=1e-3)
    assert effective_rank(torch.eye(5)).item() == pytest.approx(5)
    assert effective_rank(torch.zeros(3, 3)).item() == 0
    # shares ¾ and ¼: e^H = 4 / 3^¾; a scale changes nothing
    assert effective_rank(torch.diag(torch.tensor([300.0, 100]))).item() == pytest.approx(4 / 3**0.75)


@given(st.integers(1, 10), st.integers(1, 6), st.integers(0, 2**16))
def test_effective_rank_lies_between_1_and_the_smaller_of_n_and_d_k(n: int, d_k: int, seed: int) -> None:
    torch.manual_seed(seed)
    trace = MultiHeadAttention(8, 2, d_k=d_k).trace(torch.randn(1, n, 8))
    rank = METRIC["effective_rank"].compute(trace, words(n))
    assert ((rank >= 1 - 1e-5) & (rank <= min(n, d_k) + 1e-2)).all()


def mean_over_rows(A: np.ndarray, measure: Callable[[int, np.ndarray], float | None]) -> float:
    values = [measure(i, row) for i, row in enumerate(A) if row.sum() > 0]
    return float(np.mean([value for value in values if value is not None]))


def plain(row: np.ndarray) -> float:
    return -sum(a * math.log(a) for a in row if a > 0)


LOOPS: dict[str, Callable[[int, np.ndarray], float | None]] = {
    "entropy": lambda i, row: plain(row),
    "entropy_ratio": lambda i, row: plain(row) / math.log(len(row)),
    "largest_weight": lambda i, row: max(row),
    "mean_distance": lambda i, row: sum(a * abs(i - j) for j, a in enumerate(row)),
    "mass_previous": lambda i, row: row[i - 1] if i > 0 else None,
    "mass_next": lambda i, row: row[i + 1] if i + 1 < len(row) else None,
    "mass_self": lambda i, row: row[i],
    "mass_first": lambda i, row: row[0],
    "mass_same": lambda i, row: sum(a for j, a in enumerate(row) if j % 3 == i % 3),
}


def some_rows_empty(n: int) -> Tensor:
    mask = causal(n)
    mask[[0, 3]] = False
    return mask


@pytest.mark.parametrize("key", LOOPS)
@pytest.mark.parametrize("mask", [None, causal(7), some_rows_empty(7)], ids=["none", "causal", "rows empty"])
def test_a_metric_is_the_mean_over_the_queries_of_what_a_loop_finds(key: str, mask: Tensor | None) -> None:
    trace = trace_of(7, mask=mask)
    found = METRIC[key].compute(trace, words(7)).numpy()
    A = trace["weights"].value.detach().double().numpy()
    expected = [[mean_over_rows(A[b, i], LOOPS[key]) for i in range(3)] for b in range(2)]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_divergence_and_rank_of_a_trace_are_each_sequence_s_and_head_s_own() -> None:
    trace = trace_of(7, mask=some_rows_empty(7))
    A, S = (trace[name].value.detach().double().numpy() for name in ("weights", "scores"))
    js, rank = (METRIC[key].compute(trace, words(7)).numpy() for key in ("divergence", "effective_rank"))
    for b in range(2):
        np.testing.assert_allclose(js[b], divergence_by_loops(A[b]), atol=1e-5)
        for i in range(3):
            shares = np.sqrt(np.maximum(np.linalg.eigvalsh(S[b, i] @ S[b, i].T), 0))
            shares = shares / shares.sum()
            assert rank[b, i] == pytest.approx(math.exp(plain(shares)), rel=1e-3)


def test_metrics_have_their_own_keys_and_one_each_target() -> None:
    assert len(METRIC) == len(METRICS)
    assert {f"mass_{name}" for name in TARGETS} <= METRIC.keys()
    assert {metric.unit for metric in METRICS} == {"nats", "share", "tokens", "rank"}
    assert METRIC.keys() - LOOPS.keys() == {"divergence", "effective_rank"}


CASES = {
    "n = 1": (1, None),
    "causal": (6, causal(6)),
    "rows empty": (6, some_rows_empty(6)),
    "all rows empty": (4, torch.zeros(4, 4, dtype=torch.bool)),
    "a float mask": (4, torch.full((4, 4), -1.5)),
}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
@pytest.mark.parametrize("case", CASES)
def test_a_metric_has_the_axes_it_promises_and_finite_values_within_its_unit(metric: Metric, case: str) -> None:
    n, mask = CASES[case]
    values = metric.compute(trace_of(n, mask=mask), words(n))
    assert values.shape == tuple({"batch": 2, "head": 3}[axis] for axis in metric.axes)
    assert not values.requires_grad
    nothing_to_average = case == "all rows empty" or (n == 1 and metric.key in ("mass_previous", "mass_next"))
    if nothing_to_average and metric.key != "effective_rank":  # the rank is of the scores, before the mask
        assert values.isnan().all()
        return
    highest = {"nats": math.log(max(n, 2)), "share": 1, "tokens": max(n - 1, 0), "rank": n}[metric.unit]
    assert ((values >= -1e-6) & (values <= highest + 1e-3)).all()


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
def test_a_metric_of_a_context_works_but_for_targets_among_X_s_own_tokens(metric: Metric) -> None:
    torch.manual_seed(0)
    trace = MultiHeadAttention(8, 2, d_context=5).trace(torch.randn(1, 3, 8), torch.randn(1, 4, 5))
    if metric.key.startswith("mass_"):
        with pytest.raises(ValueError, match=r"\(3, 3\) and the weights \(n_q, n_k\) = \(3, 4\)"):
            metric.compute(trace, words(3))
    else:
        assert metric.compute(trace, words(3)).isfinite().all()


def test_favourites_count_the_different_top_tokens_of_a_query() -> None:
    heads = torch.stack([torch.eye(4), torch.eye(4), torch.eye(4).roll(1, 1), torch.eye(4)[[0, 0, 0, 0]]])
    # query 0: keys 0, 0, 1, 0; query 1: 1, 1, 2, 0; query 2: 2, 2, 3, 0; query 3: 3, 3, 0, 0
    assert favourites(heads).item() == pytest.approx((2 + 3 + 3 + 2) / 4)
    assert favourites(heads[:1]).item() == 1


def test_favourites_leave_out_what_may_attend_to_nothing() -> None:
    heads = torch.stack([torch.eye(3), torch.eye(3).roll(1, 1)])
    heads[:, 0] = 0
    heads[0, 1] = 0
    assert favourites(heads).item() == pytest.approx((1 + 2) / 2)
