"""What a narrow head cannot do: its scores have rank d_k at most, and at d_k = 1 a query can only favour an end.

The score of query i and key j is a product of two vectors of d_k numbers. So the matrix of scores
is a product of an (n, d_k) and a (d_k, n) matrix. With d_k = 1 row i is q_i times the one row of
keys: largest at the largest key where q_i is positive, at the smallest where it is negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mha_core.attention import MultiHeadAttention
from mha_core.inputs import random_input
from mha_core.trace import AttentionTrace
from mha_core.weights import randomize

__all__ = ["NarrowHeads", "narrow_heads", "score_ranks", "two_ends"]


def score_ranks(trace: AttentionTrace) -> Tensor:
    """The rank of each head's raw scores, before any mask: (batch, h).

    At most min(n_q, n_k, d_k). Computed in float64 from Q and K, with PyTorch's tolerance for rounding.

    >>> X = torch.randn(1, 6, 16)
    >>> for h in (1, 4, 16):
    ...     trace = MultiHeadAttention(16, h).trace(X)
    ...     print(trace.sizes["d_k"], score_ranks(trace).unique().tolist())
    16 [6]
    4 [4]
    1 [1]
    """
    Q, K = (trace[name].value.detach().double() for name in ("Q_heads", "K_heads"))
    group = trace.sizes["h"] // trace.sizes["h_kv"]
    ranks: Tensor = torch.linalg.matrix_rank(Q @ K.repeat_interleave(group, 1).mT)
    return ranks


def two_ends(trace: AttentionTrace) -> Tensor:
    """The tokens with the smallest and the largest key of each head: (batch, h_kv, 2), for d_k = 1.

    Raises:
        ValueError: d_k is not 1: only single numbers have a smallest and a largest.
    """
    if trace.sizes["d_k"] != 1:
        raise ValueError(f"d_k={trace.sizes['d_k']}; keys have a smallest and a largest only where d_k=1")
    keys = trace["K_heads"].value.detach().squeeze(-1)  # (batch, h_kv, n_k)
    return torch.stack([keys.argmin(-1), keys.argmax(-1)], -1)


@dataclass(frozen=True, eq=False)
class NarrowHeads:
    """The same X and the same matrices, cut into heads of width d_k.

    Attributes:
        trace: the calculation.
        d_k: features of a head.
        ranks: of each head's scores, (h,).
        bound: min(n, d_k).
        favoured: how many different tokens are the favourite of some query, in each head, (h,).
    """

    trace: AttentionTrace
    d_k: int
    ranks: Tensor
    bound: int
    favoured: Tensor


def narrow_heads(n: int, d_model: int, d_k: int, seed: int) -> NarrowHeads:
    """Random X and weights of a seed (float64, b = 0) in heads of width d_k: how much a head can express.

    Between seeds and widths nothing changes but the cut: X and all four matrices are the same for
    every d_k. ``favoured`` counts each query's largest score; for d_k = 1 it is at most 2 in every
    head, whatever X and the weights are.

    Raises:
        ValueError: d_k does not divide d_model; sizes that ``inputs.check_bounds`` refuses.

    Source: the rank, Bhojanapalli et al. 2020, "Low-Rank Bottleneck in Multi-head Attention Models".

    >>> for d_k in (16, 4, 1):
    ...     cut = narrow_heads(n=12, d_model=16, d_k=d_k, seed=0)
    ...     print(cut.d_k, cut.ranks.tolist()[:4], cut.favoured.max().item() <= 2)
    16 [12] False
    4 [4, 4, 4, 4] False
    1 [1, 1, 1, 1] True
    """
    if d_k < 1 or d_model % d_k:
        divisors = ", ".join(str(i) for i in range(1, d_model + 1) if d_model % i == 0)
        raise ValueError(f"d_k={d_k} does not divide d_model={d_model}; choose d_k from {divisors}")
    X = random_input(n, d_model, seed).double()
    module = randomize(MultiHeadAttention(d_model, d_model // d_k, bias=False), seed).double()
    with torch.no_grad():
        trace = module.trace(X)
    favourites = trace["raw_scores"].value[0].argmax(-1)  # (h, n)
    favoured = torch.tensor([len(row.unique()) for row in favourites])
    return NarrowHeads(trace, d_k, score_ranks(trace)[0], min(n, d_k), favoured)
