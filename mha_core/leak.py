"""Does a mask hide a token? Edit it, and see whose output changes, for three ways to forbid a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from mha_core.masks import EMPTY
from mha_core.mistakes import output_with, zero_after, zero_before
from mha_core.trace import AttentionTrace

__all__ = ["MASK_MODES", "Leak", "leak"]

MASK_MODES: Mapping[str, Callable[[AttentionTrace], Tensor]] = {
    "minus_infinity": lambda trace: trace["weights"].value.detach(),
    "zero_before": zero_before,
    "zero_after": zero_after,
}
"""The weights, (batch, h, n_q, n_k), by three ways to forbid a key; only the first is right."""


@dataclass(frozen=True, eq=False)
class Leak:
    """How far an edit of the last token reaches.

    Attributes:
        hidden: the queries from which the last key is hidden, in every head, and that are not
            edited themselves: (batch, n_q).
        changes: for each of MASK_MODES the largest |change| of each query's output: (batch, n_q).
    """

    hidden: Tensor
    changes: Mapping[str, Tensor]

    def of_hidden(self, mode: str) -> float:
        """The largest change of an output that should not change; 0 where there is none."""
        return self.changes[mode].masked_fill(~self.hidden, 0).max().item()


def leak(trace: AttentionTrace, by: float = 1.0) -> Leak:
    """Add to every feature of the last token (of the context in cross-attention): which outputs change?

    With −∞ before the softmax, a query that may not see the token changes by 0, exactly. With 0
    in the scores it reads the token; with 0 after the softmax it feels it in the denominator.

    Source: Vaswani et al. 2017, section 3.2.3.

    >>> from mha_core import MultiHeadAttention
    >>> from mha_core.masks import causal
    >>> found = leak(MultiHeadAttention(8, 2).trace(torch.randn(1, 6, 8), mask=causal(6)))
    >>> {mode: found.of_hidden(mode) > 0 for mode in MASK_MODES}
    {'minus_infinity': False, 'zero_before': True, 'zero_after': True}
    """
    X, context = trace["X"].value.detach(), trace["context"].value.detach() if trace.cross else None
    edited = (X if context is None else context).clone()
    edited[:, -1] += by
    mask, scale = trace.mask, trace.scale
    with torch.no_grad():
        if context is None:
            after = trace.module.trace(edited, mask=mask, scale=scale)
        else:
            after = trace.module.trace(X, edited, mask, scale=scale)
    changes = {
        mode: (output_with(after, weights(after)) - output_with(trace, weights(trace))).abs().amax(-1)
        for mode, weights in MASK_MODES.items()
    }
    hidden = (trace["masked_scores"].value[..., -1] == EMPTY).all(1)  # (batch, n_q)
    if context is None:
        hidden[:, -1] = False
    return Leak(hidden, changes)
