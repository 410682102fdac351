"""Calculations to draw."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from mha_core import AttentionTrace, MultiHeadAttention

Tracer = Callable[..., AttentionTrace]


@pytest.fixture
def trace_of() -> Tracer:
    """trace_of(n, h, d_model, mask=…, n_k=…, d_k=…): a traced calculation with random numbers."""

    def build(
        n: int = 6,
        h: int = 2,
        d_model: int = 8,
        *,
        mask: torch.Tensor | None = None,
        n_k: int | None = None,
        zero: bool = False,
        **sizes: int,
    ) -> AttentionTrace:
        generator = torch.Generator().manual_seed(n + 100 * h + d_model)
        module = MultiHeadAttention(d_model, h, **sizes)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.normal_(0, 0.0 if zero else d_model**-0.5, generator=generator)
        X = torch.randn(1, n, d_model, generator=generator)
        context = None if n_k is None else torch.randn(1, n_k, d_model, generator=generator)
        return module.trace(X * 0 if zero else X, context, mask)

    return build
