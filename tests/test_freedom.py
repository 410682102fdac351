"""Freedom against numpy's rank, and the directions themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_core import MultiHeadAttention, masks
from mha_core.freedom import freedom, freedom_by_h, freedom_of_heads
from mha_core.inputs import embed, random_input
from mha_core.weights import design, randomize


def with_ones(values: torch.Tensor) -> np.ndarray:
    return np.hstack([values.numpy(), np.ones((len(values), 1), values.numpy().dtype)])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1, 30), st.integers(1, 12), st.integers(0, 8), st.integers(0, 10**6))
def test_the_rank_is_numpys(keys: int, d_v: int, repeated: int, seed: int) -> None:
    values = torch.randn(keys, d_v, generator=torch.Generator().manual_seed(seed))
    values[: min(repeated, keys)] = values[0].clone()
    found = freedom(values)
    assert found.rank == np.linalg.matrix_rank(with_ones(values))
    different = keys - min(repeated, keys) + (1 if repeated else 0)
    assert found.directions == keys - min(different, d_v + 1)
    assert found.sure == max(0, keys - d_v - 1) <= found.directions
    singular = np.linalg.svd(with_ones(values).astype(np.float64), compute_uv=False)
    assert found.tolerance == pytest.approx(singular[0] * max(keys, d_v + 1) * np.finfo(np.float32).eps)


def test_so_many_directions_leave_the_output() -> None:
    values = torch.randn(9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = freedom(values)
    null = np.linalg.svd(with_ones(values).T)[2][found.rank :]  # (directions, 9)
    assert len(null) == found.directions == 5
    assert np.abs(null @ with_ones(values)).max() < 1e-14


def test_no_key_no_freedom() -> None:
    found = freedom(torch.zeros(0, 4))
    assert (found.keys, found.rank, found.directions, found.sure) == (0, 0, 0, 0)


@pytest.mark.parametrize("h", [1, 2, 4, 8])
def test_heads_see_the_keys_that_their_mask_allows(h: int) -> None:
    module = randomize(MultiHeadAttention(16, h), seed=2)
    with torch.no_grad():
        trace = module.trace(random_input(12, 16, 2), mask=masks.causal(12))
    for query in range(12):
        for head, found in enumerate(freedom_of_heads(trace, query)):
            values = trace["V_heads"].value[0, head, : query + 1]
            assert found.keys == query + 1
            assert found.rank == np.linalg.matrix_rank(with_ones(values)) == min(query + 1, 16 // h + 1)


def test_the_same_values_in_other_cuts() -> None:
    X = random_input(12, 16, 2)
    for h, found in freedom_by_h(randomize(MultiHeadAttention(16, 4), seed=2).trace(X)).items():
        trace = randomize(MultiHeadAttention(16, h), seed=2).trace(X)  # W_V does not depend on h
        assert found == freedom(trace["V_heads"].value[0, 0])
        assert found.d_v == 16 // h and found.rank == min(12, 16 // h + 1)


def test_repeated_words_without_positions_are_freer() -> None:
    module = MultiHeadAttention(64, 4)
    design(module, seed=0)
    words = ("a", "b", "a", "b", "a", "c")
    with torch.no_grad():
        for with_positions, directions in ((True, 0), (False, 3)):
            trace = module.trace(embed(words, 64, with_positions=with_positions))
            assert [found.directions for found in freedom_of_heads(trace, 0)] == [directions] * 4


def test_a_row_that_may_attend_to_nothing() -> None:
    trace = randomize(MultiHeadAttention(8, 2), seed=0).trace(random_input(4, 8, 0), mask=masks.padding([0], 4))
    assert [found.keys for found in freedom_of_heads(trace, 3)] == [0, 0]
