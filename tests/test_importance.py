"""Lengths, shares and lost heads against NumPy and against leaving heads out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from mha_core import MultiHeadAttention, masks
from mha_core.contributions import without_heads
from mha_core.importance import head_ranking, shares, two_tokens, value_lengths, weighed
from mha_core.inputs import random_input
from mha_core.weights import randomize
from tests.reference import Case, cases


def test_the_seventy_percent_token_brings_a_fifth() -> None:
    """.7 · .1 = .07 and .3 · 1 = .3: .07 / .37."""
    assert two_tokens().shares == pytest.approx((7 / 37, 30 / 37), abs=1e-7)
    assert f"{two_tokens().shares[0]:.0%}" == "19%"


@settings(max_examples=40, deadline=None, derandomize=True)
@given(cases(dtypes=(torch.float64,)))
def test_weighed_vectors_add_up_to_what_the_head_adds(case: Case) -> None:
    trace = case.trace()
    h, n_q, W_O = trace.sizes["h"], trace.sizes["n_q"], case.module.W_O.weight.detach().numpy().T
    d_v = trace.sizes["d_v"]
    for head in range(h):
        V = trace["V_heads"].sel(batch=0, head=head).value.detach().numpy()
        vectors = V @ W_O[head * d_v : (head + 1) * d_v]
        np.testing.assert_allclose(value_lengths(trace, head).numpy(), np.linalg.norm(vectors, axis=1), atol=1e-12)
        for query in range(n_q):
            found = weighed(trace, head, query)
            expected = case.loops["head_contributions"][0, head, query]
            np.testing.assert_allclose(found.weights.numpy() @ vectors, expected, atol=1e-10)
            assert found.residual < 1e-12
            products = found.weights.numpy() * np.linalg.norm(vectors, axis=1)
            if products.any():
                np.testing.assert_allclose(found.parts.numpy(), products / products.sum(), atol=1e-12)
            else:
                assert not found.parts.any()


def test_nothing_weighed_has_no_shares() -> None:
    assert shares(torch.zeros(3), torch.ones(3)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("mask", [None, masks.causal(7), masks.padding([0], 7)], ids=["none", "causal", "all hidden"])
@pytest.mark.parametrize("h", [1, 2, 4, 8])
def test_effects_are_those_of_leaving_heads_out(h: int, mask: torch.Tensor | None) -> None:
    module = randomize(MultiHeadAttention(16, h), seed=3, with_bias=True)
    with torch.no_grad():
        trace = module.trace(random_input(7, 16, 3), mask=mask)
    found = head_ranking(trace)
    for head in range(h):
        left_out = without_heads(trace, [i != head for i in range(h)])
        assert found.effect[head] == pytest.approx(left_out.distance, abs=1e-6)
    largest = trace["weights"].value[0].amax(-1)
    assert found.sharpness == pytest.approx(largest.mean(-1).tolist(), abs=1e-6)
    assert found.effect[found.weightiest] == max(found.effect)
    assert found.sharpness[found.sharpest] == max(found.sharpness)


def test_pairs_that_agree_are_counted() -> None:
    """Random heads of 8: every pair is compared by hand; Kendall's tau is (agreeing − disagreeing) / pairs."""
    trace = randomize(MultiHeadAttention(32, 8), seed=5).trace(random_input(9, 32, 5))
    found = head_ranking(trace)
    agree = sum(
        (found.sharpness[i] > found.sharpness[j]) == (found.effect[i] > found.effect[j])
        for i in range(8)
        for j in range(i)
    )
    assert (found.agreeing, found.pairs) == (agree, 28)


def test_heads_that_tie_are_no_pair() -> None:
    module = randomize(MultiHeadAttention(8, 2), seed=0)
    with torch.no_grad():
        for linear in (module.W_Q, module.W_K):
            linear.weight.zero_()  # both heads look evenly
    found = head_ranking(module.trace(random_input(4, 8, 0)))
    assert found.sharpness == (0.25, 0.25) and (found.agreeing, found.pairs) == (0, 0)
