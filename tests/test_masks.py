"""Masks against their definitions, pair by pair."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from mha_core import attend
from mha_core.masks import MASKS, MaskKind, add_mask, causal, padding, prefix_lm, sliding_window

SIZES = range(1, 7)


def by_definition(n_q: int, n_k: int, may_attend: Callable[[int, int], bool]) -> Tensor:
    return torch.tensor([[may_attend(i, j) for j in range(n_k)] for i in range(n_q)])


@pytest.mark.parametrize("n_q", SIZES)
@pytest.mark.parametrize("n_k", SIZES)
def test_causal_allows_itself_and_what_came_before(n_q: int, n_k: int) -> None:
    assert torch.equal(causal(n_q, n_k), by_definition(n_q, n_k, lambda i, j: j <= i))
    assert torch.equal(causal(n_q), causal(n_q, n_q))


def test_causal_with_no_key_has_no_key() -> None:
    assert causal(3, 0).shape == (3, 0)


@pytest.mark.parametrize(("n_q", "n_k"), [(5, 5), (3, 5), (5, 3)])
def test_causal_is_pytorch_s_is_causal(n_q: int, n_k: int) -> None:
    generator = torch.Generator().manual_seed(0)
    Q, K, V = (torch.randn(2, 3, n, 4, generator=generator, dtype=torch.float64) for n in (n_q, n_k, n_k))
    theirs = F.scaled_dot_product_attention(Q, K, V, is_causal=True)
    assert (attend(Q, K, V, causal(n_q, n_k)) - theirs).abs().max() <= 1e-12


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("width", [1, 2, 3, 9])
def test_sliding_window_allows_itself_and_the_nearest_before(n: int, width: int) -> None:
    assert torch.equal(sliding_window(n, width), by_definition(n, n, lambda i, j: i - width < j <= i))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("prefix", [0, 1, 2, 6])
def test_prefix_lm_is_causal_but_for_the_prefix(n: int, prefix: int) -> None:
    assert torch.equal(prefix_lm(n, prefix), by_definition(n, n, lambda i, j: j <= i or j < prefix))


def test_padding_hides_what_lies_behind_each_sequence_s_end() -> None:
    mask = padding([0, 2, 4], 4)
    assert mask.shape == (3, 1, 1, 4)
    assert torch.equal(mask[:, 0, 0], by_definition(3, 4, lambda b, j: j < [0, 2, 4][b]))


def test_add_mask_writes_minus_infinity_or_adds() -> None:
    scores, allowed = torch.tensor([[[[1.0, 2.0]]]]), torch.tensor([[True, False]])
    assert add_mask(scores, None) is scores
    assert add_mask(scores, allowed).tolist() == [[[[1.0, -torch.inf]]]]
    assert add_mask(scores, torch.tensor([[0.5, -torch.inf]])).tolist() == [[[[1.5, -torch.inf]]]]
    assert scores.tolist() == [[[[1.0, 2.0]]]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: sliding_window(4, 0), "width=0 leaves nothing to attend to; width must be at least 1"),
        (lambda: prefix_lm(4, -1), "prefix=-1 is negative; prefix counts tokens, from 0 to n=4"),
        (lambda: padding([2, 5], 4), r"lengths\[1\]=5 is outside 0 … n_k=4; give the number of real tokens"),
        (lambda: padding([-1], 4), r"lengths\[0\]=-1 is outside"),
    ],
)
def test_impossible_sizes_are_refused(build: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_no_two_kinds_share_a_key() -> None:
    assert len({kind.key for kind in MASKS}) == len(MASKS)


@pytest.mark.parametrize("kind", MASKS, ids=lambda kind: kind.key)
@pytest.mark.parametrize("n", SIZES)
def test_every_kind_builds_a_mask_that_leaves_each_query_a_key(kind: MaskKind, n: int) -> None:
    mask = kind.build(n, kind.default_size(n) if kind.default_size else 0)
    if mask is not None:
        assert mask.dtype == torch.bool
        assert mask.expand(1, 2, n, n).any(-1).all()
