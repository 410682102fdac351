"""What moves when one thing is changed: identities, and what the app says in general, over seeds."""

from __future__ import annotations

import copy
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from mha_core import MultiHeadAttention
from mha_core.experiments import DIVISORS, asymmetry, nudge, rescale, scale_for, self_weight, tie
from mha_core.leak import MASK_MODES, leak
from mha_core.masks import causal, padding, sliding_window
from mha_core.metrics import entropy
from mha_core.splits import sliced
from tests.reference import Case, attention_by_loops, cases
from tests.seeds import SEEDS, mean_over_seeds, module_and_X, trace_of


@pytest.mark.parametrize("seed", range(5))
def test_a_nudge_moves_every_projected_head_and_one_sliced_head(seed: int) -> None:
    module, X = module_and_X(10, 64, 8, seed)
    moved, sliced_moved = nudge(module, X, 63, 2.0), nudge(sliced(module), X, 63, 2.0)
    for name in ("Q_heads", "K_heads", "V_heads", "head_outputs"):
        assert moved[name].value.shape == (8,)
        assert (moved[name].value > 0.05).all()
        assert sliced_moved[name].value[:7].tolist() == [0] * 7  # exactly
        assert sliced_moved[name].value[7] > 0.05


def test_a_nudge_is_what_loops_in_numpy_give() -> None:
    module, X = module_and_X(5, 12, 3, 0)
    nudged = X.clone()
    nudged[0, 2, 7] -= 1.5
    moved = nudge(module, X, 7, -1.5, token=2, mask=causal(5))
    before, after = (attention_by_loops(module, x, mask=causal(5))["head_outputs"][0] for x in (X, nudged))
    expected = [np.linalg.norm(after[i] - before[i]) / np.linalg.norm(before[i]) for i in range(3)]
    np.testing.assert_allclose(moved["head_outputs"].numpy(), expected, rtol=1e-4)
    W, x = module.W_K.weight.detach().double().numpy(), X[0].double().numpy()
    expected = [
        1.5 * np.linalg.norm(W[4 * i : 4 * i + 4, 7]) / np.linalg.norm(x @ W[4 * i : 4 * i + 4].T) for i in range(3)
    ]
    np.testing.assert_allclose(moved["K_heads"].numpy(), expected, rtol=1e-4)


def test_a_nudge_of_X_leaves_a_context_alone() -> None:
    module = MultiHeadAttention(8, 4, h_kv=2, d_context=5)
    moved = nudge(module, torch.randn(1, 3, 8), 0, 1.0, context=torch.randn(1, 4, 5))
    assert moved["K_heads"].axes == ("kv_head",) and moved["Q_heads"].axes == ("head",)
    assert moved["K_heads"].value.tolist() == moved["V_heads"].value.tolist() == [0, 0]
    assert (moved["Q_heads"].value > 0).all() and (moved["head_outputs"].value > 0).all()


def test_a_nudge_of_nothing_moves_nothing_and_of_zeros_from_nothing() -> None:
    module, X = MultiHeadAttention(8, 2, bias=False), torch.randn(1, 3, 8)
    assert all(moved.value.tolist() == [0, 0] for moved in nudge(module, X, 1, 0.0).values())
    assert nudge(module, torch.zeros(1, 3, 8), 1, 1.0)["Q_heads"].value.tolist() == [math.inf] * 2


@pytest.mark.parametrize(("feature", "token", "name"), [(8, None, "feature"), (-1, None, "feature"), (0, 3, "token")])
def test_a_nudge_out_of_range_is_refused(feature: int, token: int | None, name: str) -> None:
    with pytest.raises(IndexError, match=f"{name}=-?\\d is out of range for X; choose 0 … "):
        nudge(MultiHeadAttention(8, 2), torch.randn(1, 3, 8), feature, 1.0, token=token)


def test_what_is_given_stays_as_it_is() -> None:
    module, X = module_and_X(4, 8, 2, 0)
    before, X_before = copy.deepcopy(module.state_dict()), X.clone()
    trace = module.trace(X, mask=causal(4))
    tensors = {name: trace[name].value.clone() for name in trace}
    nudge(module, X, 1, 2.0)
    leak(trace)
    for changed in (rescale(module, "Q", 3.0), tie(module), sliced(module)):
        assert any(not torch.equal(p, before[name]) for name, p in changed.state_dict().items())
    assert torch.equal(X, X_before)
    assert all(torch.equal(p, before[name]) for name, p in module.state_dict().items())
    assert all(torch.equal(trace[name].value, tensor) for name, tensor in tensors.items())


@pytest.mark.parametrize("factor", [3.0, -0.5, 0.0])
def test_larger_values_leave_the_weights_and_scale_the_output(factor: float) -> None:
    module, X = module_and_X(10, 64, 8, 0)
    before, after = module.trace(X), rescale(module, "V", factor).trace(X)
    assert torch.equal(before["weights"].value, after["weights"].value)
    torch.testing.assert_close(after["output"].value, factor * before["output"].value, rtol=1e-5, atol=1e-5)


def test_larger_keys_sharpen_every_head_s_weights() -> None:
    for seed in SEEDS:
        module, X = module_and_X(10, 64, 8, seed)
        before, after = module.trace(X), rescale(module, "K", 3.0).trace(X)
        torch.testing.assert_close(after["scores"].value, 3 * before["scores"].value, rtol=1e-4, atol=1e-4)
        assert (entropy(after["weights"].value) < entropy(before["weights"].value)).float().mean() > 0.99
    assert entropy(after["weights"].value).mean() < 0.7 * entropy(before["weights"].value).mean()


def test_a_letter_that_names_no_matrix_is_refused() -> None:
    with pytest.raises(KeyError, match="there is no W_X; choose Q, K, V or O"):
        rescale(MultiHeadAttention(8, 2), "X", 2.0)


def test_tied_queries_and_keys_make_symmetric_scores_and_asymmetric_weights() -> None:
    for seed in range(20):
        module, X = module_and_X(10, 64, 8, seed)
        trace = tie(module).trace(X)
        assert (asymmetry(trace["scores"].value) < 1e-6).all()
        assert (asymmetry(trace["weights"].value) > 0.05).all()
        assert asymmetry(module.trace(X)["scores"].value).mean().item() == pytest.approx(2**-0.5, abs=0.1)


def test_tied_queries_and_keys_raise_the_self_weight() -> None:
    def of(seed: int, tied: bool) -> float:
        module, X = module_and_X(10, 64, 8, seed)
        with torch.no_grad():
            return self_weight((tie(module) if tied else module).trace(X)["weights"].value).mean().item()

    assert mean_over_seeds(lambda seed: of(seed, False)) == pytest.approx(1 / 10, abs=0.01)
    assert mean_over_seeds(lambda seed: of(seed, True)) == pytest.approx(0.51, abs=0.03)


def test_tied_biases_keep_the_scores_symmetric() -> None:
    torch.manual_seed(0)
    trace = tie(MultiHeadAttention(8, 2)).trace(torch.randn(1, 5, 8))
    assert (asymmetry(trace["scores"].value) < 1e-6).all()


@pytest.mark.parametrize("sizes", [{"h_kv": 1}, {"d_context": 5}])
def test_matrices_that_differ_in_shape_cannot_be_tied(sizes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"W_Q is \(in, out\) = \(8, 8\) and W_K .* h_kv = h"):
        tie(MultiHeadAttention(8, 2, **sizes))


def test_asymmetry_and_self_weight_by_hand() -> None:
    assert asymmetry(torch.tensor([[0.0, 2.0], [0.0, 0.0]])).item() == pytest.approx(2**-0.5)
    assert asymmetry(torch.zeros(2, 3, 3)).tolist() == [0, 0]
    empty_row = torch.tensor([[0.2, 0.8, 0], [0, 0, 0], [0.3, 0.3, 0.4]])
    assert self_weight(empty_row).item() == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("divisor", "d_k", "T", "scale"), [("sqrt", 16, 1, 1 / 4), ("one", 16, 4, 1 / 4), ("d_k", 8, 0.5, 1 / 4)]
)
def test_scales_by_hand(divisor: str, d_k: int, T: float, scale: float) -> None:
    assert scale_for(divisor, d_k, T) == scale


def test_the_default_scale_is_the_root_s_at_temperature_1() -> None:
    trace = trace_of(3, 24, 2, 0)
    assert scale_for("sqrt", trace.sizes["d_k"]) == pytest.approx(trace.scale)
    assert tuple(DIVISORS) == ("sqrt", "one", "d_k")


def test_temperature_goes_from_one_hot_to_uniform() -> None:
    module, X = module_and_X(6, 16, 4, 0)
    weights = [module.trace(X, scale=scale_for("sqrt", 4, T))["weights"].value for T in (1e-4, 0.5, 1, 2, 1e4)]
    entropies = [entropy(A).mean().item() for A in weights]
    assert all(low < high for low, high in pairwise(entropies))
    assert entropies[0] < 0.01 and entropies[-1] == pytest.approx(math.log(6), abs=1e-3)


@pytest.mark.parametrize("temperature", [0, -1, math.nan])
def test_a_temperature_must_be_above_0(temperature: float) -> None:
    with pytest.raises(ValueError, match=f"temperature={temperature} is not above 0"):
        scale_for("sqrt", 4, temperature)


def test_an_unknown_divisor_lists_those_there_are() -> None:
    with pytest.raises(KeyError, match="'ln'; choose from sqrt, one, d_k"):
        scale_for("ln", 4)


@pytest.mark.parametrize("seed", range(10))
def test_only_minus_infinity_hides_the_last_token(seed: int) -> None:
    found = leak(trace_of(6, 16, 4, seed, causal(6)))
    assert found.hidden.tolist() == [[True] * 5 + [False]]
    assert found.changes["minus_infinity"][0, :5].tolist() == [0] * 5  # exactly
    for mode in ("zero_before", "zero_after"):
        assert (found.changes[mode][0, :5] > 1e-3).all()
        assert found.of_hidden(mode) == found.changes[mode][0, :5].max()
    assert all((found.changes[mode][0, 5] > 1e-3).all() for mode in MASK_MODES)


def test_the_change_is_what_loops_in_numpy_give() -> None:
    module, X = module_and_X(5, 12, 3, 0)
    edited = X.clone()
    edited[0, -1] += 0.7
    before, after = (attention_by_loops(module, x, mask=causal(5), scale=2.0)["output"] for x in (X, edited))
    found = leak(module.trace(X, mask=causal(5), scale=2.0), by=0.7).changes["minus_infinity"]
    np.testing.assert_allclose(found.numpy(), np.abs(after - before).max(-1), atol=1e-5)


@pytest.mark.parametrize(
    ("mask", "hidden"),
    [(None, 0), (sliding_window(6, 2), 5), (padding([4], 6), 5), (torch.zeros(6, 6, dtype=torch.bool), 5)],
)
def test_hidden_are_the_queries_that_may_not_see_the_last_key(mask: torch.Tensor | None, hidden: int) -> None:
    found = leak(trace_of(6, 16, 4, 0, mask))
    assert int(found.hidden.sum()) == hidden
    assert found.of_hidden("minus_infinity") == 0
    if mask is None:
        assert torch.equal(found.changes["zero_before"], found.changes["minus_infinity"])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(cases())
def test_minus_infinity_hides_exactly_on_any_trace(case: Case) -> None:
    found = leak(case.trace())
    assert found.of_hidden("minus_infinity") == 0
    assert all(bool(change.isfinite().all()) for change in found.changes.values())
