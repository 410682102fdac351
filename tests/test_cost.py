"""Costs from sizes alone against real modules, torch's own counter, and published models."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from mha_core import MultiHeadAttention
from mha_core.cost import (
    COST_STEPS,
    activation_bytes,
    cache_bytes,
    crossing,
    flops,
    formula,
    measure,
    parameters,
    softmax_cells,
)
from mha_core.counted import count
from mha_core.masks import causal
from mha_core.model_sizes import MODEL_SIZES, model_sizes
from mha_core.sizes import Sizes, head_counts, kv_head_counts, with_heads
from mha_core.trace import STEPS


@st.composite
def any_sizes(draw: st.DrawFn, most: int = 7) -> Sizes:
    """Any module and input: h_kv < h, d_k ≠ d_v, a context of another width and length, half precision."""
    h = draw(st.sampled_from([1, 2, 3, 4, 6]))
    d_model, d_k, d_v, d_context, n_q, n_k = (draw(st.integers(1, most)) for _ in range(6))
    cross = draw(st.booleans())
    return Sizes(
        d_model=d_model, h=h, d_k=d_k, d_v=d_v, h_kv=draw(st.sampled_from(kv_head_counts(h))),
        d_context=d_context if cross else d_model, n_q=n_q, n_k=n_k if cross else n_q, batch=draw(st.integers(1, 3)),
        dtype=draw(st.sampled_from(["float64", "float32", "bfloat16"])), bias=draw(st.booleans()),
        masked=draw(st.booleans()), cross=cross,
    )  # fmt: skip


def build(sizes: Sizes) -> tuple[MultiHeadAttention, torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
    dtype = getattr(torch, sizes.dtype)
    module = MultiHeadAttention(
        sizes.d_model, sizes.h, d_k=sizes.d_k, d_v=sizes.d_v, h_kv=sizes.h_kv, d_context=sizes.d_context,
        bias=sizes.bias,
    ).to(dtype)  # fmt: skip
    X = torch.randn(sizes.batch, sizes.n_q, sizes.d_model, dtype=dtype)
    context = torch.randn(sizes.batch, sizes.n_k, sizes.d_context, dtype=dtype) if sizes.cross else None
    mask = torch.ones(sizes.n_q, sizes.n_k, dtype=torch.bool) if sizes.masked else None
    return module, X, context, mask


@given(any_sizes())
@settings(max_examples=60, deadline=None)
def test_parameters_flops_and_bytes_are_those_of_a_real_module(sizes: Sizes) -> None:
    module, X, context, mask = build(sizes)
    trace = module.trace(X, context, mask)
    assert Sizes.of(trace) == sizes
    assert parameters(sizes) == sum(parameter.numel() for parameter in module.parameters())
    with FlopCounterMode(display=False) as counter:
        module(X, context, mask)
    assert flops(sizes) == counter.get_total_flops()
    assert softmax_cells(sizes) == trace["weights"].value.numel()
    counted = [step for step in COST_STEPS if activation_bytes(sizes, step)]
    for step in counted:
        assert activation_bytes(sizes, step) == trace[step.name].value.nbytes
    assert activation_bytes(sizes) == sum(trace[step.name].value.nbytes for step in counted)


@given(any_sizes())
@settings(max_examples=20, deadline=None)
def test_the_count_on_the_meta_device_is_the_same(sizes: Sizes) -> None:
    sizes = replace(sizes, masked=False)
    counted = count(sizes)
    assert (counted.parameters, counted.flops) == (parameters(sizes), flops(sizes))


@pytest.mark.parametrize("mask", [None, causal(5)], ids=["no mask", "causal"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_trace_holds_so_much_memory_and_no_more(mask: torch.Tensor | None, dtype: torch.dtype) -> None:
    """Every storage once: views of Q, K and V are not counted, and nothing is forgotten."""
    module = MultiHeadAttention(12, 4, h_kv=2, d_v=5, d_k=3).to(dtype)
    trace = module.trace(torch.randn(2, 5, 12, dtype=dtype), mask=mask)
    storages = {trace[name].value.untyped_storage().data_ptr(): trace[name].value.untyped_storage() for name in trace}
    assert activation_bytes(Sizes.of(trace)) == sum(storage.nbytes() for storage in storages.values())


@given(any_sizes())
@settings(max_examples=60, deadline=None)
def test_no_memory_is_counted_twice(sizes: Sizes) -> None:
    """With one head, one query or one feature a head Concat is a view of the heads' outputs."""
    module, X, context, mask = build(sizes)
    trace = module.trace(X, context, mask)
    storages = {trace[name].value.untyped_storage().data_ptr(): trace[name].value.untyped_storage() for name in trace}
    assert activation_bytes(sizes) == sum(storage.nbytes() for storage in storages.values())


def test_total_compute_stays_close_to_one_heads() -> None:
    """The sentence every text repeats: parameters and FLOPs are equal for all h, softmax cells are h·n²."""
    n, d_model = 100, 512
    one = Sizes.standard(d_model, 1, n)
    for h in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
        several = Sizes.standard(d_model, h, n)
        assert flops(several) == flops(one) == 8 * n * d_model**2 + 4 * n**2 * d_model
        assert parameters(several) == parameters(one)
        assert softmax_cells(several) == h * n**2
        assert cache_bytes(several) == cache_bytes(one)
        copied = 4 * n * d_model if 1 < h < d_model else 0  # Concat; a view with one head, or one feature a head
        assert activation_bytes(several) - activation_bytes(one) == 3 * 4 * (h - 1) * n**2 + copied


@given(st.integers(1, 300), st.integers(1, 12), st.booleans())
def test_the_maps_cost_more_than_the_projections_from_twice_d_model_on(d_k: int, h: int, bias: bool) -> None:
    d_model = d_k * h

    def shares(n: int) -> tuple[int, int]:
        sizes = Sizes.standard(d_model, h, n, bias=bias)
        pairs = sum(measure(step.flops, sizes) for step in COST_STEPS if step.name in ("raw_scores", "head_outputs"))
        return flops(sizes) - pairs, pairs

    assert crossing(Sizes.standard(d_model, h, 1)) == 2 * d_model
    projections, pairs = shares(2 * d_model)
    assert projections == pairs
    projections, pairs = shares(2 * d_model + 1)
    assert projections < pairs


@given(any_sizes())
@settings(max_examples=40)
def test_the_crossing_is_where_the_counted_costs_are_equal(sizes: Sizes) -> None:
    sizes = replace(sizes, cross=False, d_context=sizes.d_model, n_k=sizes.n_q)
    at = crossing(sizes)
    for n in range(1, 40):
        each = replace(sizes, n_q=n, n_k=n)
        pairs = sum(measure(step.flops, each) for step in COST_STEPS if step.name in ("raw_scores", "head_outputs"))
        assert (pairs > flops(each) - pairs) == (n > at)


def test_published_sizes() -> None:
    base = model_sizes("base").sizes
    assert (base.d_k, base.layers) == (64, 6)
    assert parameters(base) == 6 * 4 * 512**2 == 6 * 1_048_576  # section 3.2.2 has matrices and no biases
    assert parameters(replace(base, bias=True)) == 6 * (1_048_576 + 2_048) == 6 * 1_050_624
    bert = model_sizes("bert").sizes  # torch's own module of the same sizes
    theirs = torch.nn.MultiheadAttention(768, 12)
    assert parameters(bert) == 12 * sum(parameter.numel() for parameter in theirs.parameters())
    llama = model_sizes("llama2").sizes
    assert (llama.layers, llama.h_kv, llama.d_k) == (80, 8, 128)
    assert cache_bytes(llama) == 2 * 80 * 8 * 128 * 2 == 327_680
    assert cache_bytes(replace(llama, h_kv=64)) == 8 * 327_680
    palm = model_sizes("palm").sizes
    assert palm.h * palm.d_k == 12_288 != palm.d_model


@pytest.mark.parametrize("row", MODEL_SIZES, ids=lambda row: row.key)
def test_a_published_model_is_counted_without_its_memory(row) -> None:  # type: ignore[no-untyped-def]
    counted = count(row.sizes)
    assert counted.parameters * row.sizes.layers == parameters(row.sizes)
    assert counted.flops * row.sizes.layers == flops(row.sizes)
    assert row.source and row.name


def test_layers_and_batch_are_factors() -> None:
    one = Sizes.standard(12, 3, 5)
    for total in (parameters, flops, softmax_cells, cache_bytes):
        assert total(replace(one, layers=7)) == 7 * total(one)
    for total in (flops, softmax_cells, activation_bytes):
        assert total(replace(one, batch=7)) == 7 * total(one)
    assert parameters(replace(one, batch=7)) == parameters(one)
    assert cache_bytes(one, tokens=9) == 9 * cache_bytes(one)


def test_heads_are_changed_at_constant_width() -> None:
    palm = model_sizes("palm").sizes
    for h in head_counts(palm):
        several = with_heads(palm, h)
        assert (several.h * several.d_k, several.h * several.d_v, several.h_kv) == (12_288, 12_288, h)
    with pytest.raises(ValueError, match="not divisible by h=5"):
        with_heads(palm, 5)
    with pytest.raises(ValueError, match="not divisible by h=5"):
        Sizes.standard(12, 5, 3)
    with pytest.raises(KeyError, match="there is no model"):
        model_sizes("skynet")


def test_every_step_is_one_of_the_trace_and_its_formula_says_what_is_counted() -> None:
    names = [step.name for step in STEPS]
    assert [step.name for step in COST_STEPS] == [name for name in names if name in {s.name for s in COST_STEPS}]
    values = {"d_model": 8, "d_context": 8, "h": 2, "h_kv": 2, "d_k": 3, "d_v": 5, "n": 7, "b": 1}
    sizes = Sizes.standard(8, 2, 7, d_k=3, d_v=5, masked=True)
    for step in COST_STEPS:
        for factors in (step.weights, step.biases, step.flops, step.cells, step.held):
            if factors and "cross" not in factors:
                latex = formula(factors).replace(r"d_{\mathrm{model}}", "d_model").replace("h_{kv}", "h_kv")
                latex = latex.replace(r"d_{\mathrm{context}}", "d_context").replace("^2", "**2")
                tree = ast.parse(latex.replace(r"\,", "*"), mode="eval")
                assert eval(compile(tree, "", "eval"), {}, values) == measure(factors, sizes)
