"""How sharp a query's weights are, and how much gradient its softmax lets through.

With weights p = softmax(s), s = scale · K q, there are two derivatives, and they are not alike:

    J = ∂p/∂s = diag(p) − p pᵀ          of the weights by the scores; vanishes as p becomes one-hot
    ∂p/∂q = J K · scale                 of the weights by the query; K grows with d_k, J shrinks

Softmax and ‖J‖ are computed in float64: close to one-hot, 1 − 2 + 1 is off by 3·10⁻⁴ in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mha_core.attention import safe_softmax
from mha_core.experiments import scale_for
from mha_core.metrics import entropy
from mha_core.trace import AttentionTrace

__all__ = ["DEAD", "QUANTITIES", "Saturation", "head_saturation", "jacobian_norm", "query_gradient_norm", "saturation"]

DEAD = 0.01
"""A query whose ‖J‖ is below gets next to no gradient through its softmax."""
QUANTITIES = ("largest", "entropy", "jacobian", "gradient")

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Saturation:
    """What the softmax made of some queries' scores; arrays (queries,), float32.

    Attributes:
        spread: the standard deviation of all their finite scores.
        largest: each query's largest weight.
        entropy: of its weights, in nats.
        jacobian: ‖J‖, the Frobenius norm of ∂p/∂s.
        gradient: ‖J K · scale‖, the Frobenius norm of ∂p/∂q.
    """

    spread: float
    largest: Array
    entropy: Array
    jacobian: Array
    gradient: Array

    def of(self, quantity: str) -> Array:
        """One of QUANTITIES, a number a query."""
        if quantity not in QUANTITIES:
            raise KeyError(f"there is no quantity {quantity!r}; there are {', '.join(QUANTITIES)}")
        values: Array = getattr(self, quantity)
        return values

    def quantiles(self, quantity: str, shares: Sequence[float]) -> Array:
        """Of one of QUANTITIES; NaN where there is no query."""
        values = self.of(quantity)
        return np.quantile(values, shares) if values.size else np.full(len(shares), np.nan)

    def median(self, quantity: str) -> float:
        """Of one of QUANTITIES."""
        return float(self.quantiles(quantity, [0.5])[0])

    def mean(self, quantity: str) -> float:
        """Of one of QUANTITIES."""
        values = self.of(quantity)
        return float(values.mean(dtype=float)) if values.size else float("nan")

    @property
    def dead(self) -> float:
        """The share of queries whose ‖J‖ is below DEAD."""
        return float((self.jacobian < DEAD).mean()) if self.jacobian.size else float("nan")


def jacobian_norm(weights: Tensor) -> Tensor:
    """‖J‖_F of J = diag(p) − p pᵀ for rows p of weights: (…, n_k) → (…).

    ‖J‖² = Σp² − 2Σp³ + (Σp²)²: 0 for one-hot weights, at most ½ (two equal ones).

    >>> jacobian_norm(torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]))
    tensor([0.5000, 0.0000])
    """
    squares = weights.square().sum(-1)
    norm: Tensor = (squares - 2 * weights.pow(3).sum(-1) + squares.square()).clamp(min=0).sqrt()
    return norm


def query_gradient_norm(weights: Tensor, K: Tensor, scale: float) -> Tensor:
    """‖∂p/∂q‖_F = ‖J K‖_F · scale: weights (…, n_q, n_k) and keys (…, n_k, d_k) → (…, n_q).

    Row i of J K is p_i (k_i − k̄) with k̄ = Σ p_j k_j: two keys far apart that share the attention
    make it large, a single favourite makes it 0.

    >>> K = torch.tensor([[[2.0], [0.0]]])
    >>> query_gradient_norm(torch.tensor([[[0.5, 0.5], [1.0, 0.0]]]), K, scale=1.0)
    tensor([[0.7071, 0.0000]])
    """
    middle = weights @ K  # (…, n_q, d_k)
    # the difference itself: |k|² − 2 k·k̄ + |k̄|² would lose the digits that matter
    apart = torch.cdist(middle, K, compute_mode="donot_use_mm_for_euclid_dist")  # (…, n_q, n_k)
    norm: Tensor = (weights * apart).square().sum(-1).sqrt() * scale
    return norm


def saturation(scores: Tensor, K: Tensor, scale: float) -> Saturation:
    """Measure the softmax of scores that are already scaled and masked.

    Args:
        scores: (…, n_q, n_k), −∞ where masked; a query that may attend to nothing is left out.
        K: (…, n_k, d_k).
        scale: what the raw scores were multiplied by.
    """
    scores = scores.detach().double()
    weights = safe_softmax(scores)  # (…, n_q, n_k)
    alive = scores.isfinite().any(-1)  # (…, n_q)
    gradient = query_gradient_norm(weights.to(K.dtype), K.detach(), scale)
    rows = weights[alive]  # (queries, n_k)
    finite = scores[scores.isfinite()]
    largest = rows.amax(-1) if rows.numel() else rows.new_zeros(0)
    arrays = largest, entropy(rows), jacobian_norm(rows), gradient[alive]
    spread = finite.std(correction=0).item() if finite.numel() else float("nan")
    return Saturation(spread, *(array.float().numpy() for array in arrays))


def head_saturation(trace: AttentionTrace, divisor: str) -> tuple[Saturation, ...]:
    """What each head's queries would be like if the scores were divided by √d_k, 1 or d_k (batch 0).

    Args:
        divisor: of ``experiments.DIVISORS``.

    >>> from mha_core import MultiHeadAttention
    >>> heads = head_saturation(MultiHeadAttention(64, 2).trace(torch.randn(1, 6, 64)), "d_k")
    >>> len(heads), heads[0].largest.shape
    (2, (6,))
    """
    scale = scale_for(divisor, trace.sizes["d_k"])
    raw, K = trace["raw_scores"].value[0].detach(), trace["K_heads"].value[0].detach()
    added = trace["masked_scores"].value[0].detach() - trace["scores"].value[0].detach()  # what the mask adds
    scores = raw * scale + added  # (h, n_q, n_k)
    group = trace.sizes["h"] // K.size(0)
    return tuple(saturation(scores[head], K[head // group], scale) for head in range(trace.sizes["h"]))
