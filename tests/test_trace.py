"""A trace: every step by name, with the axes and shapes that STEPS promises, and nothing copied."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch

from mha_core import STEPS, AttentionTrace, Intermediate, MultiHeadAttention
from mha_core.masks import causal
from mha_core.trace import Recorder, Step

# batch 2, n_q 3, n_k 5, d_model 12, h 4, h_kv 2, d_k 5, d_v 7, d_context 6: multiplied out by hand
SHAPES = {
    "X": (2, 3, 12),
    "context": (2, 5, 6),
    "Q": (2, 3, 20),
    "K": (2, 5, 10),
    "V": (2, 5, 14),
    "Q_heads": (2, 4, 3, 5),
    "K_heads": (2, 2, 5, 5),
    "V_heads": (2, 2, 5, 7),
    "raw_scores": (2, 4, 3, 5),
    "scores": (2, 4, 3, 5),
    "masked_scores": (2, 4, 3, 5),
    "weights": (2, 4, 3, 5),
    "head_outputs": (2, 4, 3, 7),
    "concat": (2, 3, 28),
    "head_contributions": (2, 4, 3, 12),
    "output": (2, 3, 12),
}


@pytest.fixture
def module() -> MultiHeadAttention:
    torch.manual_seed(0)
    return MultiHeadAttention(12, 4, d_k=5, d_v=7, h_kv=2, d_context=6)


@pytest.fixture
def trace(module: MultiHeadAttention) -> AttentionTrace:
    return module.trace(torch.randn(2, 3, 12), torch.randn(2, 5, 6), causal(3, 5))


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_every_step_is_traced_with_its_axes_and_shape(step: Step, trace: AttentionTrace) -> None:
    intermediate = trace[step.name]
    assert intermediate.name == step.name
    assert intermediate.shape == SHAPES[step.name]
    assert intermediate.axes == step.axes
    assert len(step.axes) == len(step.shape) == len(set(step.axes))
    assert step.formula.count("{") == step.formula.count("}")


def test_the_steps_are_these_in_this_order() -> None:
    assert [step.name for step in STEPS] == list(SHAPES)


def test_a_tensor_that_breaks_its_row_of_steps_is_caught(module: MultiHeadAttention) -> None:
    recorder = Recorder(module, torch.randn(2, 3, 12), None, None, None, None)
    recorder("X", torch.randn(2, 3, 12))
    with pytest.raises(AssertionError, match=r"Q has shape \(2, 3, 19\); STEPS says batch, n_q, h·d_k"):
        recorder("Q", torch.randn(2, 3, 19))


def test_the_trace_knows_its_sizes(trace: AttentionTrace) -> None:
    sizes = {"batch": 2, "n_q": 3, "n_k": 5, "d_model": 12, "d_context": 6, "h": 4, "h_kv": 2, "d_k": 5, "d_v": 7}
    assert trace.sizes == sizes
    assert trace.scale == pytest.approx(5**-0.5)
    assert trace.cross
    assert trace.mask is not None
    assert trace.mask.dim() == 4


def test_the_contributions_of_the_heads_and_the_bias_are_the_output(trace: AttentionTrace) -> None:
    total = trace["head_contributions"].value.sum(1) + trace.module.W_O.bias
    assert torch.allclose(total, trace["output"].value, atol=1e-6)


def test_sel_fixes_axes_by_name_in_any_order(trace: AttentionTrace) -> None:
    weights, plain = trace["weights"], trace["weights"].value
    assert torch.equal(weights.sel(batch=1, head=2, query=0).value, plain[1, 2, 0])
    assert torch.equal(weights.sel(query=0, batch=1, head=2).value, plain[1, 2, 0])
    assert torch.equal(weights.sel(key=4, head=3).value, plain[:, 3, :, 4])
    assert weights.sel(key=4, head=3).axes == ("batch", "query")
    assert weights.sel().axes == weights.axes


def test_sel_can_be_chained(trace: AttentionTrace) -> None:
    step_by_step = trace["weights"].sel(head=2).sel(batch=1).sel(key=3)
    assert step_by_step.axes == ("query",)
    assert torch.equal(step_by_step.value, trace["weights"].value[1, 2, :, 3])


@pytest.mark.parametrize(("head", "kv_head"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_sel_head_finds_the_key_head_that_it_reads(trace: AttentionTrace, head: int, kv_head: int) -> None:
    for name in ("K_heads", "V_heads"):
        assert torch.equal(trace[name].sel(head=head).value, trace[name].value[:, kv_head])
        assert torch.equal(trace[name].sel(batch=1).sel(head=head, key=2).value, trace[name].value[1, kv_head, 2])


def test_names_that_there_are_not_are_answered_with_those_that_there_are(trace: AttentionTrace) -> None:
    with pytest.raises(KeyError, match=r"there is no step 'attention'; the steps are X, context, Q, .*, output"):
        trace["attention"]
    with pytest.raises(KeyError, match="weights has no axis 'token'; its axes are batch, head, query, key"):
        trace["weights"].sel(token=0)
    with pytest.raises(KeyError, match="weights has no axis 'head'; its axes are batch, query, key"):
        trace["weights"].sel(head=0).sel(head=0)
    with pytest.raises(KeyError, match="there is no parameter 'W_Z'; there are W_Q, W_K, W_V, W_O and b_Q"):
        trace.parameter("W_Z")


@pytest.mark.parametrize(("name", "index"), [("query", 3), ("query", -1), ("head", 4)])
def test_an_index_out_of_range_is_answered_with_the_range(trace: AttentionTrace, name: str, index: int) -> None:
    with pytest.raises(IndexError, match=rf"{name}={index} is out of range for weights; choose 0 … "):
        trace["weights"].sel(**{name: index})


def test_the_representation_names_every_axis(trace: AttentionTrace) -> None:
    assert repr(trace["V_heads"]) == "V_heads: batch 2, kv_head 2, key 5, feature 7"
    assert "  weights: batch 2, head 4, query 3, key 5\n" in repr(trace)


def storage(intermediate: Intermediate) -> int:
    return intermediate.value.untyped_storage().data_ptr()


def test_nothing_is_copied(module: MultiHeadAttention) -> None:
    X = torch.randn(2, 3, 12)
    trace = MultiHeadAttention(12, 4).trace(X)
    assert trace["X"].value is X
    assert trace["context"].value is X
    for whole, heads in [("Q", "Q_heads"), ("K", "K_heads"), ("V", "V_heads"), ("scores", "masked_scores")]:
        assert storage(trace[whole]) == storage(trace[heads])


def test_a_trace_holds_each_tensor_once(trace: AttentionTrace) -> None:
    own_memory = [name for name in SHAPES if name not in ("Q_heads", "K_heads", "V_heads", "head_contributions")]
    held = {storage(trace[name]): trace[name].value.untyped_storage().nbytes() for name in SHAPES if name in trace}
    assert sum(held.values()) == sum(4 * int(np.prod(SHAPES[name])) for name in own_memory)


def test_a_parameter_is_the_module_s_own_memory_in_the_formula_s_orientation(trace: AttentionTrace) -> None:
    W_Q, b_O = trace.parameter("W_Q"), trace.parameter("b_O")
    assert W_Q is not None
    assert b_O is not None
    assert W_Q.value.data_ptr() == trace.module.W_Q.weight.data_ptr()
    assert (W_Q.axes, W_Q.shape) == (("in", "out"), (12, 20))
    assert (b_O.axes, b_O.shape) == (("out",), (12,))
    assert torch.allclose(trace["X"].value @ W_Q.value + trace.module.W_Q.bias, trace["Q"].value, atol=1e-6)


def test_a_bias_that_there_is_not_is_none() -> None:
    assert MultiHeadAttention(8, 2, bias=False).trace(torch.randn(1, 3, 8)).parameter("b_Q") is None


def test_numpys_own_functions_take_it(trace: AttentionTrace) -> None:
    weights = trace["weights"]
    assert np.asarray(weights).shape == weights.shape
    assert np.allclose(weights, weights.numpy()) and not np.allclose(weights, weights.numpy() + 1)
    assert np.asarray(weights, dtype=np.float64).dtype == np.float64
    np.asarray(weights)[...] = 0  # a copy
    assert weights.numpy().any()


def test_numpy_is_a_read_only_view(trace: AttentionTrace) -> None:
    weights = trace["weights"]
    assert np.shares_memory(weights.numpy(), weights.value.detach().numpy())
    with pytest.raises(ValueError, match="read-only"):
        weights.numpy()[0, 0, 0, 0] = 1
    weights.value.detach().zero_()  # the tensor itself stays writable
    assert not weights.numpy().any()


def test_numpy_has_no_bfloat16_and_gets_float32() -> None:
    X = torch.randn(1, 3, 8).bfloat16()
    trace = MultiHeadAttention(8, 2).bfloat16().trace(X)
    assert trace["X"].numpy().dtype == np.float32
    assert np.array_equal(trace["X"].numpy(), X.float().numpy())


def test_traces_and_intermediates_are_frozen(trace: AttentionTrace) -> None:
    with pytest.raises(FrozenInstanceError):
        trace.scale = 1.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        trace["weights"].value = torch.zeros(1)  # type: ignore[misc]
    assert trace["weights"] != trace["weights"]  # no elementwise comparison by accident


def test_keep_holds_these_steps_and_no_others(module: MultiHeadAttention) -> None:
    X, context = torch.randn(2, 3, 12), torch.randn(2, 5, 6)
    few = module.trace(X, context, keep=("weights", "output"))
    assert [name for name in SHAPES if name in few] == ["weights", "output"]
    assert torch.equal(few["weights"].value, module.trace(X, context)["weights"].value)
    with pytest.raises(KeyError, match=r"scores was not kept; it can be had with trace\(keep=\[…, 'scores'\]\)"):
        few["scores"]
    with pytest.raises(KeyError, match="masked_scores was not kept"):
        few.explain("weights", head=0, query=0, key=0)


def test_keeping_the_heads_contributions_is_enough_to_have_them(module: MultiHeadAttention) -> None:
    X, context = torch.randn(2, 3, 12), torch.randn(2, 5, 6)
    kept = module.trace(X, context, keep=("head_contributions",))["head_contributions"].value
    assert torch.equal(kept, module.trace(X, context)["head_contributions"].value)
