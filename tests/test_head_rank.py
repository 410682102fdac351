"""A narrow head: its rank, and the two tokens that are all it can favour at d_k = 1."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_core.attention import MultiHeadAttention
from mha_core.head_rank import narrow_heads, score_ranks, two_ends


@pytest.mark.parametrize("n", [1, 3, 12])
@pytest.mark.parametrize("d_k", [1, 2, 4, 8, 16])
def test_the_rank_is_the_smaller_of_n_and_d_k(n: int, d_k: int) -> None:
    cut = narrow_heads(n, 16, d_k, seed=0)
    assert cut.bound == min(n, d_k) and cut.ranks.shape == (16 // d_k,)
    assert cut.ranks.unique().tolist() == [cut.bound]
    scores = cut.trace["raw_scores"].value[0].numpy()
    assert [np.linalg.matrix_rank(head) for head in scores] == cut.ranks.tolist()


def test_only_the_cut_differs() -> None:
    wide, narrow = narrow_heads(6, 16, 16, seed=1).trace, narrow_heads(6, 16, 1, seed=1).trace
    for name in ("X", "Q", "K", "V"):
        assert torch.equal(wide[name].value, narrow[name].value)
    raw = narrow["raw_scores"].value.sum(1)
    torch.testing.assert_close(raw, wide["raw_scores"].value[:, 0])  # h scores of rank 1 add up to the one of rank h


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 20), st.integers(0, 9999), st.booleans())
def test_at_d_k_one_every_favourite_is_one_of_two_tokens(n: int, seed: int, bias: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    attention = MultiHeadAttention(6, 6, bias=bias).double()
    with torch.no_grad():
        for numbers in attention.parameters():
            numbers.normal_(generator=generator)
        trace = attention.trace(torch.randn(2, n, 6, generator=generator, dtype=torch.float64))
    scores, queries = trace["raw_scores"].value, trace["Q_heads"].value.squeeze(-1)
    ends = two_ends(trace)
    assert ends.shape == (2, 6, 2)
    for b in range(2):
        for head in range(6):
            low, high = ends[b, head].tolist()
            for i in range(n):
                row = scores[b, head, i]
                end = high if queries[b, head, i] > 0 else low
                assert row[end] == row.max()  # exactly: rounding keeps the order of q times larger and larger keys


def test_no_more_than_two_are_favoured_and_wider_heads_favour_more() -> None:
    for seed in range(10):
        assert narrow_heads(40, 16, 1, seed).favoured.max() <= 2
    assert min(narrow_heads(40, 16, 4, seed).favoured.min().item() for seed in range(10)) > 2


def test_grouped_keys_are_counted_for_the_heads_that_read_them() -> None:
    attention = MultiHeadAttention(8, 4, h_kv=2)
    trace = attention.trace(torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(0)))
    assert score_ranks(trace).tolist() == [[2] * 4] * 3


def test_what_cannot_be_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="d_k=3 does not divide d_model=16; choose d_k from 1, 2, 4, 8, 16"):
        narrow_heads(6, 16, 3, seed=0)
    with pytest.raises(ValueError, match="d_k=2"):
        two_ends(narrow_heads(6, 16, 2, seed=0).trace)
