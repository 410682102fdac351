"""Wrong variants: against NumPy, against what the app says of them, and each on every kind of trace."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from mha_core import AttentionTrace, Intermediate, MultiHeadAttention
from mha_core.comparison import Comparison, relative_distance
from mha_core.inputs import POCKET, embed
from mha_core.masks import causal, padding
from mha_core.mistakes import (
    MISTAKES,
    Mistake,
    averaged_heads,
    mask_zero_after,
    mask_zero_before,
    output_with,
    softmax_over_queries,
)
from mha_core.splits import slice_then_project, sliced, view_without_transpose
from mha_core.weights import design, set_pocket
from tests.reference import Case, array, cases
from tests.seeds import mean_over_seeds, module_and_X, trace_of

MISTAKE = {mistake.key: mistake for mistake in MISTAKES}
each_mistake = pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.key)


def some_rows_empty(n: int) -> Tensor:
    mask = causal(n)
    mask[::3] = False
    return mask


def designed(n: int) -> AttentionTrace:
    module = MultiHeadAttention(64, 8)
    design(module, 0, with_bias=True)
    with torch.no_grad():
        return module.trace(embed([f"w{i}" for i in range(n)], 64))


def pocket() -> AttentionTrace:
    return set_pocket(MultiHeadAttention(POCKET.d_model, POCKET.h)).trace(POCKET.input(), mask=causal(3))


def unseen_features() -> AttentionTrace:
    return MultiHeadAttention(8, 2).trace(torch.zeros(1, 4, 8))


SETTINGS: dict[str, Callable[[], AttentionTrace]] = {
    "one token, one head": lambda: trace_of(1, 4, 1, 0),
    "one token": lambda: trace_of(1, 16, 4, 0, causal(1)),
    "d_k = 1": lambda: trace_of(5, 16, 16, 0),
    "one head": lambda: trace_of(7, 12, 1, 0, causal(7)),
    "three heads": lambda: trace_of(9, 12, 3, 0, padding([7], 9)),
    "causal": lambda: trace_of(10, 64, 8, 0, causal(10)),
    "rows empty": lambda: trace_of(10, 16, 4, 0, some_rows_empty(10)),
    "all rows empty": lambda: trace_of(4, 8, 2, 0, torch.zeros(4, 4, dtype=torch.bool)),
    "all keys padded": lambda: trace_of(4, 8, 2, 0, padding([0], 4)),
    "float mask": lambda: trace_of(4, 8, 2, 0, torch.full((4, 4), -1.5).triu(1) + torch.eye(4).log().tril()),
    "designed": lambda: designed(10),
    "pocket": pocket,
    "X of zeros": unseen_features,
    "as many tokens and heads as there can be": lambda: trace_of(256, 512, 16, 0, causal(256)),
    "large scores": lambda: MultiHeadAttention(8, 2).trace(1e15 * torch.randn(1, 5, 8)),
}


@each_mistake
@pytest.mark.parametrize("name", SETTINGS)
def test_a_mistake_runs_on_every_trace(mistake: Mistake, name: str) -> None:
    check_contract(mistake, SETTINGS[name]())


@settings(max_examples=40, deadline=None, derandomize=True)
@given(cases())
def test_mistakes_run_on_any_sizes_masks_contexts_and_scales(case: Case) -> None:
    trace = case.trace()
    for mistake in MISTAKES:
        check_contract(mistake, trace)


def check_contract(mistake: Mistake, trace: AttentionTrace) -> None:
    before = {name: trace[name].value.clone() for name in trace}
    parameters = {name: p.clone() for name, p in trace.module.state_dict().items()}
    found = mistake.run(trace)

    assert all(torch.equal(trace[name].value, value) for name, value in before.items())
    assert all(torch.equal(p, parameters[name]) for name, p in trace.module.state_dict().items())
    own = trace[found.right.name]
    assert torch.equal(found.right.value, own.value)
    assert found.right.axes == found.wrong.axes == own.axes
    pairs = [(found.right, found.wrong), *found.evidence.values()]
    for right, wrong in pairs:
        assert right.name == wrong.name
        assert right.shape == wrong.shape and len(right.axes) == len(right.shape)
        for side in (right, wrong):
            assert bool(side.value.isfinite().all())
            assert not side.value.requires_grad
    usual_scale = math.isclose(trace.scale, trace.sizes["d_k"] ** -0.5)
    if usual_scale or mistake.key not in ("no_scale", "scale_by_d_k"):
        assert 0 <= found.invariant_right <= found.bound
    assert math.isfinite(found.invariant_wrong) and found.invariant_wrong >= 0


@each_mistake
def test_a_mistake_is_broken_on_an_ordinary_masked_trace(mistake: Mistake) -> None:
    found = mistake.run(trace_of(10, 64, 8, 0, causal(10)))
    assert found.broken
    assert found.invariant_wrong > 100 * found.bound
    assert not torch.equal(found.right.value, found.wrong.value)


@pytest.mark.parametrize(
    ("key", "trace"),
    [
        ("slice_then_project", SETTINGS["one head"]),
        ("view_without_transpose", SETTINGS["one head"]),
        ("averaged_heads", SETTINGS["one head"]),
        ("mask_zero_before", lambda: trace_of(6, 16, 4, 0)),
        ("mask_zero_after", lambda: trace_of(6, 16, 4, 0)),
        ("no_scale", SETTINGS["d_k = 1"]),
        ("scale_by_d_k", SETTINGS["d_k = 1"]),
    ],
)
def test_a_mistake_that_makes_no_difference_is_not_broken(key: str, trace: Callable[[], AttentionTrace]) -> None:
    found = MISTAKE[key].run(trace())
    assert not found.broken
    torch.testing.assert_close(found.right.value, found.wrong.value)


@each_mistake
def test_a_mistake_is_documented(mistake: Mistake) -> None:
    text = mistake.run.__doc__ or ""
    assert "No error: " in text
    assert "The invariant " in text
    assert "Source: " in text
    assert mistake.run.__name__ == mistake.key


def test_mistakes_have_their_own_keys() -> None:
    assert len(MISTAKE) == len(MISTAKES) == 8


def softmax(scores: np.ndarray, axis: int = -1) -> np.ndarray:
    exponentials = np.exp(scores)
    return exponentials / exponentials.sum(axis, keepdims=True)


def in_numpy(trace: AttentionTrace) -> dict[str, np.ndarray]:
    """Every mistake again, in float64, from the parameters (batch of 1, causal mask, no bias)."""
    X, (h, d_k, n) = array(trace["X"].value)[0], (trace.sizes[name] for name in ("h", "d_k", "n_q"))
    W = {name: array(trace.parameter(f"W_{name}").value) for name in "QKVO"}  # (in, out)
    Q, K, V = ((X @ W[name]).reshape(n, h, d_k).swapaxes(0, 1) for name in "QKV")  # (h, n, d_k) each
    raw, seen = Q @ K.swapaxes(1, 2), np.tril(np.ones((n, n)))
    scores = raw / np.sqrt(d_k)
    right = softmax(scores + np.log(seen + 1e-300))
    heads = right.mean(0) @ V  # (h, n, d_k)
    bands = [slice(i * d_k, (i + 1) * d_k) for i in range(h)]
    return {
        "slice_then_project": np.stack([X[:, band] @ W["Q"][band, band] for band in bands]),
        "view_without_transpose": (X @ W["Q"]).reshape(h, n, d_k),
        "softmax_over_queries": np.exp(scores) * seen / (np.exp(scores) * seen).sum(1, keepdims=True),
        "mask_zero_before": softmax(scores * seen),
        "mask_zero_after": softmax(scores) * seen,
        "averaged_heads": sum(heads[i] @ W["O"][band] for i, band in enumerate(bands)),
        "no_scale": softmax(raw + np.log(seen + 1e-300)),
        "scale_by_d_k": softmax(raw / d_k + np.log(seen + 1e-300)),
    }


@each_mistake
def test_a_mistake_is_what_numpy_makes_of_it(mistake: Mistake) -> None:
    trace = trace_of(7, 24, 4, 3, causal(7))
    wrong = mistake.run(trace).wrong.numpy()[0]
    np.testing.assert_allclose(wrong, in_numpy(trace)[mistake.key], atol=2e-6)


def test_slices_nudged_move_one_head_and_projections_all() -> None:
    module, X = module_and_X(10, 64, 8, 0)
    right, wrong = slice_then_project(module.trace(X), feature=63, by=2).evidence["moved"]
    assert (right.value > 0.1).all()
    assert wrong.value[:7].tolist() == [0] * 7  # exactly
    assert wrong.value[7] > 0.1
    W = array(module.W_Q.weight)[:, 63].reshape(8, 8)  # (h, d_k): ΔQ of every token is 2 W[63]
    np.testing.assert_allclose(right.numpy(), 2 * math.sqrt(10) * np.linalg.norm(W, axis=1), rtol=1e-5)


@pytest.mark.parametrize("h", [1, 2, 4, 8, 16])
def test_slices_have_an_hth_of_the_parameters(h: int) -> None:
    found = slice_then_project(trace_of(3, 64, h, 0))
    right, wrong = found.evidence["parameters"]
    assert (right.value.item(), wrong.value.item()) == (3 * 64**2, 3 * 64**2 // h)
    assert (found.invariant_right, found.invariant_wrong) == (0, pytest.approx(1 - 1 / h))


def test_of_slices_there_are_as_many_as_key_heads() -> None:
    trace = MultiHeadAttention(8, 4, h_kv=2, d_context=6).trace(torch.randn(1, 3, 8), torch.randn(1, 5, 6))
    found = slice_then_project(trace)
    right, wrong = found.evidence["parameters"]
    assert right.value.item() == 8 * 8 + 2 * 6 * 4  # W_Q; W_K and W_V
    assert wrong.value.item() == 8 * 8 // 4 + 2 * 6 * 4 // 2
    assert found.invariant_wrong == pytest.approx(3 / 4)  # of W_Q
    W_V = sliced(trace.module).W_V.weight
    assert (W_V != 0).int().tolist() == [[1, 1, 1, 0, 0, 0]] * 2 + [[0, 0, 0, 1, 1, 1]] * 2


def test_bands_of_unequal_width_share_out_every_feature() -> None:
    W = sliced(MultiHeadAttention(7, 3, d_k=2, d_v=2)).W_V.weight
    assert (W != 0).int().sum(0).tolist() == [2] * 7  # each feature goes to one head of d_v = 2
    assert (W != 0).int().sum(1).tolist() == [2, 2, 2, 2, 3, 3]


def test_a_view_takes_rows_from_the_wrong_tokens() -> None:
    found = view_without_transpose(trace_of(6, 16, 4, 0))
    right, wrong = found.evidence["token"]
    assert (right.sel(head=0, feature=0).value + 1).tolist() == [1, 2, 3, 4, 5, 6]
    assert (wrong.sel(head=0, feature=0).value + 1).tolist() == [1, 1, 1, 1, 2, 2]


@pytest.mark.parametrize(("n", "d_model", "h"), [(6, 16, 4), (1, 8, 2), (5, 12, 3), (9, 16, 16)])
def test_the_sources_of_a_view_are_where_its_numbers_came_from(n: int, d_model: int, h: int) -> None:
    trace = trace_of(n, d_model, h, 1)
    found, Q = view_without_transpose(trace), trace["Q"].numpy()[0]
    tokens, features = found.evidence["token"], found.evidence["feature"]
    for side, heads in enumerate((found.right, found.wrong)):
        source = tokens[side].numpy(), features[side].numpy()
        assert (heads.numpy()[0] == Q[source]).all()
    astray = (tokens[1].numpy() != np.arange(n)[None, :, None]).mean()
    assert found.invariant_wrong == pytest.approx(astray)


@pytest.mark.parametrize(("d_model", "h"), [(64, 1), (64, 4), (64, 8)])
def test_columns_of_right_weights_do_not_sum_to_1(d_model: int, h: int) -> None:
    """n = 8: the smallest and the largest column sum of a head are .57 and 1.57 on average."""

    def extreme(seed: int, largest: bool) -> float:
        sums = softmax_over_queries(trace_of(8, d_model, h, seed)).evidence["column_sums"][0].value  # (1, h, n_k)
        return (sums.amax(-1) if largest else sums.amin(-1)).mean().item()

    assert mean_over_seeds(lambda seed: extreme(seed, False)) == pytest.approx(0.57, abs=0.06)
    assert mean_over_seeds(lambda seed: extreme(seed, True)) == pytest.approx(1.57, abs=0.08)


def test_marginals_of_the_wrong_softmax_are_the_other_way_round() -> None:
    found = softmax_over_queries(trace_of(8, 16, 4, 0))
    (rows, wrong_rows), (columns, wrong_columns) = (found.evidence[name] for name in ("row_sums", "column_sums"))
    np.testing.assert_allclose(rows.numpy(), 1, atol=1e-6)
    np.testing.assert_allclose(wrong_columns.numpy(), 1, atol=1e-6)
    assert found.invariant_wrong == pytest.approx(np.abs(wrong_rows.numpy() - 1).max())
    assert np.abs(columns.numpy() - 1).max() > 0.3


def test_a_constant_added_to_a_row_of_scores_changes_nothing_and_to_a_column_something() -> None:
    module, X = module_and_X(8, 16, 4, 0)
    weights = module.trace(X)["weights"].value
    row, column = torch.zeros(8, 8), torch.zeros(8, 8)
    row[3] = column[:, 3] = 2.0
    torch.testing.assert_close(module.trace(X, mask=row)["weights"].value, weights)
    assert (module.trace(X, mask=column)["weights"].value - weights).abs().max() > 0.1


@pytest.mark.parametrize(("d_model", "h"), [(16, 4), (64, 8)])
def test_zeros_in_the_logits_leak_and_zeros_after_the_softmax_leave_too_little(d_model: int, h: int) -> None:
    """Row 1 of six, causal: about .80 leaks with the one, and it sums to about .16 with the other."""

    def first_row(run: Callable[[AttentionTrace], Comparison], name: str, seed: int) -> float:
        rows: Intermediate = run(trace_of(6, d_model, h, seed, causal(6))).evidence[name][1]
        return rows.value[..., 0].mean().item()

    leaked = mean_over_seeds(lambda seed: first_row(mask_zero_before, "leak", seed))
    assert leaked == pytest.approx(0.80, abs=0.015)
    assert mean_over_seeds(lambda seed: first_row(mask_zero_after, "row_sums", seed)) == pytest.approx(0.16, abs=0.01)


def test_each_wrong_mask_breaks_one_invariant_and_keeps_the_other() -> None:
    trace = trace_of(6, 16, 4, 0, causal(6))
    before, after = mask_zero_before(trace).evidence, mask_zero_after(trace).evidence
    np.testing.assert_allclose(before["row_sums"][1].numpy(), 1, atol=1e-6)
    assert after["leak"][1].value.max() == 0
    for found in (before, after):
        assert found["leak"][0].value.max() == 0


def test_a_row_that_may_attend_to_nothing_leaks_all_of_itself_and_is_not_asked_for_its_sum() -> None:
    trace = trace_of(3, 8, 2, 0, torch.tensor([[True, False, False], [False] * 3, [True] * 3]))
    assert mask_zero_before(trace).evidence["leak"][1].sel(batch=0, head=0, query=1).value.item() == pytest.approx(1)
    only_empty = trace_of(3, 8, 2, 0, torch.zeros(3, 3, dtype=torch.bool))
    assert mask_zero_after(only_empty).invariant_wrong == 0


def test_a_finite_float_mask_forbids_nothing() -> None:
    trace = trace_of(4, 8, 2, 0, torch.randn(4, 4, generator=torch.Generator().manual_seed(0)))
    for run in (mask_zero_before, mask_zero_after):
        torch.testing.assert_close(run(trace).wrong.value, trace["weights"].value)


def test_averaged_heads_move_the_output_by_60_percent() -> None:
    moved = mean_over_seeds(lambda seed: averaged_heads(trace_of(6, 16, 4, seed)).invariant_wrong)
    assert moved == pytest.approx(0.60, abs=0.03)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(cases())
def test_the_right_weights_give_the_right_output(case: Case) -> None:
    trace = case.trace()
    torch.testing.assert_close(output_with(trace, trace["weights"].value), trace["output"].value)


@pytest.mark.parametrize("d_k", [1, 4, 16, 64])
def test_scores_without_scale_have_a_spread_of_root_d_k(d_k: int) -> None:
    """The invariant says √d_k − 1 and 1 − 1/√d_k; so do the scores, whose spread is 1 as they are."""
    trace = trace_of(64, 4 * d_k, 4, 0)
    for key, spread in (("no_scale", math.sqrt(d_k)), ("scale_by_d_k", 1 / math.sqrt(d_k))):
        found = MISTAKE[key].run(trace)
        right, wrong = (scores.value.std().item() for scores in found.evidence["scores"])
        assert wrong / right == pytest.approx(spread, rel=1e-5)
        assert found.invariant_wrong == pytest.approx(abs(spread - 1))
        sharper, largest = (found.evidence[name] for name in ("entropy", "largest_weight"))
        falls = sharper[1].value.mean() - sharper[0].value.mean()
        assert math.copysign(1, falls) == (1 if spread < 1 else -1) or d_k == 1
        assert largest[1].value.max() <= 1 + 1e-6


def test_distance_is_a_share_of_the_second() -> None:
    a, b, zero = torch.tensor([3.0, 5.0]), torch.tensor([3.0, 4.0]), torch.zeros(2)
    assert relative_distance(a, b).item() == pytest.approx(0.2)
    assert (relative_distance(zero, zero).item(), relative_distance(a, zero).item()) == (0, math.inf)
