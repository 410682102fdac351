"""Shared keys and values: the pooled module against a mean by hand, and the ends of the range."""

from __future__ import annotations

import pytest
import torch

from mha_core import MultiHeadAttention
from mha_core.grouped import grouped, output_change, share_keys
from mha_core.masks import causal
from mha_core.sizes import kv_head_counts


@pytest.mark.parametrize("bias", [True, False])
def test_a_shared_head_is_the_mean_of_those_it_replaces(bias: bool) -> None:
    torch.manual_seed(0)
    module, X = MultiHeadAttention(12, 6, d_k=3, d_v=5, bias=bias), torch.randn(2, 4, 12)
    full, shared = module.trace(X), grouped(module, 2).trace(X)
    for name in ("K_heads", "V_heads"):  # the mean of matrices is the mean of what they make
        for group in range(2):
            expected = full[name].value[:, 3 * group : 3 * group + 3].mean(1)
            assert torch.allclose(shared[name].value[:, group], expected, atol=1e-6)
    assert torch.equal(full["Q"].value, shared["Q"].value)
    assert torch.equal(module.W_O.weight, shared.module.W_O.weight)


def test_as_many_key_heads_change_nothing() -> None:
    module, X = MultiHeadAttention(8, 4), torch.randn(1, 5, 8)
    assert torch.equal(grouped(module, 4)(X), module(X))
    trace = module.trace(X)
    assert share_keys(trace, 4) is trace
    assert output_change(trace, trace) == 0


def test_the_mask_and_the_scale_stay() -> None:
    module, X = MultiHeadAttention(8, 4), torch.randn(1, 5, 8)
    trace = module.trace(X, mask=causal(5), scale=0.3)
    shared = share_keys(trace, 1)
    assert shared.scale == 0.3
    assert torch.equal(shared["weights"].value.triu(1), torch.zeros(1, 4, 5, 5))
    assert output_change(shared, trace) > 0.01


def test_the_given_module_is_left_alone() -> None:
    module = MultiHeadAttention(8, 4)
    before = [parameter.clone() for parameter in module.parameters()]
    with torch.no_grad():
        for parameter in grouped(module, 2).parameters():
            parameter.zero_()
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))


def test_heads_share_evenly() -> None:
    assert kv_head_counts(12) == (12, 6, 4, 3, 2, 1)
    with pytest.raises(ValueError, match=r"h_kv=3 does not divide 4.*choose from 1, 2, 4"):
        grouped(MultiHeadAttention(8, 4), 3)
