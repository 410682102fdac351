"""What a weight is worth: the length of what it weighs, and what is lost without its head."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from mha_core.metrics import METRICS
from mha_core.trace import AttentionTrace

__all__ = ["HeadRanking", "Weighed", "head_ranking", "shares", "two_tokens", "value_lengths", "weighed"]

ROUNDING = 1e-5
"""Weights that differ by less are equal: in float32 they are up to 3·10⁻⁶ off where large scores cancel."""


def value_lengths(trace: AttentionTrace, head: int, batch: int = 0) -> Tensor:
    """‖f(x_j)‖ with f(x_j) = V_j W_i^O, what key j has to give to the output: (n_k,), float64.

    Source: Kobayashi et al. 2020, section 3 (b_V is part of f there, as it is of V here).

    >>> from mha_core import MultiHeadAttention
    >>> value_lengths(MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8)), head=1).shape
    torch.Size([3])
    """
    lengths: Tensor = torch.linalg.vector_norm(_transformed(trace, head, batch), dim=-1)
    return lengths


@dataclass(frozen=True, eq=False)
class Weighed:
    """A query's weights, and what comes of them, (n_k,) each, in float64.

    Attributes:
        weights: α.
        lengths: ‖f(x_j)‖ of each key.
        parts: α ‖f(x_j)‖ as shares of their sum; zeros where that is 0.
        residual: how far Σ_j α_j f(x_j) is from what the head adds to the output (the largest |difference|).
    """

    weights: Tensor
    lengths: Tensor
    parts: Tensor
    residual: float

    @property
    def heaviest(self) -> tuple[int, ...]:
        """The keys with the largest weight: several where they are equal, but for rounding."""
        largest = self.weights >= self.weights.max() - ROUNDING
        return tuple(int(key) for key in largest.nonzero())


def weighed(trace: AttentionTrace, head: int, query: int, batch: int = 0) -> Weighed:
    """The lengths of the vectors that a head adds up for a query, beside its weights.

    Lengths are no shares of the sum: vectors may cancel.

    Source: Kobayashi et al. 2020, section 3.

    >>> from mha_core import MultiHeadAttention
    >>> found = weighed(MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8)), head=0, query=2)
    >>> round(found.parts.sum().item(), 6), found.residual < 1e-5
    (1.0, True)
    """
    weights = trace["weights"].sel(batch=batch, head=head, query=query).value.detach().double()
    vectors = _transformed(trace, head, batch)  # (n_k, d_model)
    brought = trace["head_contributions"].sel(batch=batch, head=head, query=query).value.detach()
    lengths = torch.linalg.vector_norm(vectors, dim=-1)
    residual = (weights @ vectors - brought).abs().max().item()
    return Weighed(weights, lengths, shares(weights, lengths), residual)


def shares(weights: Tensor, lengths: Tensor) -> Tensor:
    """α ‖f‖ over their sum, along the last axis.

    >>> shares(torch.tensor([0.7, 0.3]), torch.tensor([0.1, 1.0]))
    tensor([0.1892, 0.8108])
    """
    products = weights * lengths
    return products / products.sum(-1, keepdim=True).clamp(min=torch.finfo(products.dtype).tiny)


@dataclass(frozen=True)
class TwoTokens:
    """Weights, lengths of the values, and the shares that come of them, of two tokens."""

    weights: tuple[float, float] = (0.7, 0.3)
    lengths: tuple[float, float] = (0.1, 1.0)

    @property
    def shares(self) -> tuple[float, float]:
        """Of the lengths that are added up."""
        first, second = shares(torch.tensor(self.weights), torch.tensor(self.lengths)).tolist()
        return first, second


def two_tokens() -> TwoTokens:
    """The smallest case in which a weight misleads.

    >>> f"{two_tokens().shares[0]:.0%}"
    '19%'
    """
    return TwoTokens()


@dataclass(frozen=True)
class HeadRanking:
    """How sharp each head looks, and how far the output moves without it, (h,) each.

    Attributes:
        sharpness: its largest weight, the mean over its queries.
        effect: ‖Y − Y without it‖ / ‖Y‖ over all tokens and features.
        agreeing, pairs: in so many of so many pairs of heads, the sharper one is also the one whose loss moves more;
            pairs that tie in either, but for rounding, are left out.
    """

    sharpness: tuple[float, ...]
    effect: tuple[float, ...]
    agreeing: int
    pairs: int

    @property
    def sharpest(self) -> int:
        """From 0."""
        return max(range(len(self.sharpness)), key=self.sharpness.__getitem__)

    @property
    def equally_sharp(self) -> tuple[int, ...]:
        """The heads that are as sharp as the sharpest, but for rounding: as all are where there is one token."""
        most = max(self.sharpness)
        return tuple(head for head, sharp in enumerate(self.sharpness) if sharp >= most - ROUNDING)

    @property
    def weightiest(self) -> int:
        """The head whose loss moves the output most, from 0."""
        return max(range(len(self.effect)), key=self.effect.__getitem__)


def head_ranking(trace: AttentionTrace, batch: int = 0) -> HeadRanking:
    """Does the head with the sharpest map matter most?

    Leaving out head i takes exactly Z_i W_i^O from the output.

    Source: ablation, Michel et al. 2019; one way to look at importance beside many.

    >>> from mha_core import MultiHeadAttention
    >>> found = head_ranking(MultiHeadAttention(8, 4).trace(torch.randn(1, 5, 8)))
    >>> len(found.effect), found.pairs
    (4, 6)
    """
    largest = next(metric for metric in METRICS if metric.key == "largest_weight")
    sharpness = largest.compute(trace, ())[batch].nan_to_num(0.0).tolist()
    brought = trace["head_contributions"].sel(batch=batch).value.detach().double()  # (h, n_q, d_model)
    size = torch.linalg.vector_norm(trace["output"].sel(batch=batch).value.detach().double())
    effect = (torch.linalg.vector_norm(brought, dim=(1, 2)) / size).nan_to_num(0.0).tolist()
    pairs = [(sharpness[i] - sharpness[j], effect[i] - effect[j]) for i, j in combinations(range(len(effect)), 2)]
    signs = [sharper * moving for sharper, moving in pairs if min(abs(sharper), abs(moving)) > ROUNDING]
    return HeadRanking(tuple(sharpness), tuple(effect), sum(sign > 0 for sign in signs), len(signs))


def _transformed(trace: AttentionTrace, head: int, batch: int) -> Tensor:
    """f(x_j) = V_j W_i^O, (n_k, d_model), float64."""
    values = trace["V_heads"].sel(batch=batch, head=head).value.detach().double()  # (n_k, d_v)
    W_O = trace.module.W_O.weight.detach().mT.double()  # (h·d_v, d_model)
    d_v = trace.sizes["d_v"]
    return values @ W_O[head * d_v : (head + 1) * d_v]
