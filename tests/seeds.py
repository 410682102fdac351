"""The random calculation that what the app says in general is measured on: X ~ N(0, 1), W ~ N(0, 1/d_model), b = 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from mha_core import AttentionTrace, MultiHeadAttention
from mha_core.weights import randomize

SEEDS = range(200)


def module_and_X(n: int, d_model: int, h: int, seed: int) -> tuple[MultiHeadAttention, Tensor]:
    """From the seed: a module, and X, (1, n, d_model)."""
    X = torch.randn(1, n, d_model, generator=torch.Generator().manual_seed(1000 + seed))
    return randomize(MultiHeadAttention(d_model, h), seed), X


def trace_of(n: int, d_model: int, h: int, seed: int, mask: Tensor | None = None) -> AttentionTrace:
    module, X = module_and_X(n, d_model, h, seed)
    with torch.no_grad():
        return module.trace(X, mask=mask)


def mean_over_seeds(measure: Callable[[int], float]) -> float:
    return float(np.mean([measure(seed) for seed in SEEDS]))
