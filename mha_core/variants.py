"""The same module and input once more, with one thing of the call changed: scale, mask or context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mha_core.experiments import DIVISORS, scale_for
from mha_core.favourite import favourite_gap
from mha_core.metrics import entropy
from mha_core.trace import AttentionTrace

__all__ = ["Sharpness", "again", "by_divisor", "flip", "most_hidden", "open_keys"]

_SAME: Any = object()


def again(
    trace: AttentionTrace,
    *,
    scale: float | None = None,
    mask: Tensor | None = _SAME,
    context: Tensor | None = None,
) -> AttentionTrace:
    """The trace itself where nothing is changed, else another one.

    Args:
        scale: what the raw scores are multiplied by; the trace's own when None.
        mask: the trace's own unless given; None for no mask.
        context: (batch, n_k, d_context) for cross-attention; then there is no mask unless one is given.

    >>> from mha_core import MultiHeadAttention
    >>> trace = MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8))
    >>> again(trace) is trace, again(trace, context=torch.randn(1, 5, 8)).sizes["n_k"]
    (True, 5)
    """
    if mask is _SAME:
        mask = trace.mask if context is None else None
    scale = trace.scale if scale is None else scale
    if context is None and mask is trace.mask and abs(scale / trace.scale - 1) < 1e-9:
        return trace
    with torch.no_grad():
        X = trace["X"].value.detach()
        if context is None and trace.cross:
            context = trace["context"].value.detach()
        return trace.module.trace(X, context, mask, scale=scale)


def flip(trace: AttentionTrace, cells: frozenset[tuple[int, int]]) -> Tensor | None:
    """The trace's mask with some (query, key) changed from allowed to forbidden and back; boolean, (n_q, n_k).

    Cells that there are not are left out; None for a mask that forbids nothing. Of a mask that
    differs between heads, the first head's.
    """
    n_q, n_k = trace.sizes["n_q"], trace.sizes["n_k"]
    allowed = trace["masked_scores"].value[0, 0] != -torch.inf  # (n_q, n_k)
    for query, key in cells:
        if query < n_q and key < n_k:
            allowed[query, key] = ~allowed[query, key]
    return None if bool(allowed.all()) else allowed


@dataclass(frozen=True)
class Sharpness:
    """One query's row for one divisor: its largest weight, its entropy (nats), and its favourite's lead in scores."""

    largest: float
    entropy: float
    ahead: float


def by_divisor(trace: AttentionTrace, head: int, query: int) -> dict[str, Sharpness]:
    """A row for each of DIVISORS, without a temperature.

    >>> from mha_core import MultiHeadAttention
    >>> rows = by_divisor(MultiHeadAttention(64, 2).trace(torch.randn(1, 6, 64)), 0, 0)
    >>> rows["one"].largest > rows["sqrt"].largest > rows["d_k"].largest
    True
    """
    rows = {}
    for name in DIVISORS:
        other = again(trace, scale=scale_for(name, trace.sizes["d_k"]))
        weights = other["weights"].sel(batch=0, head=head, query=query).value
        ahead = favourite_gap(other, head, query).ahead
        rows[name] = Sharpness(weights.max().item(), entropy(weights).item(), ahead)
    return rows


def most_hidden(trace: AttentionTrace, head: int, query: int) -> int | None:
    """The query itself where keys are forbidden to it and not all, else the first query of which this is so."""
    forbidden = trace["masked_scores"].value[0, head] == -torch.inf  # (n_q, n_k)
    some = forbidden.any(-1) & ~forbidden.all(-1)
    if bool(some[query]):
        return query
    return int(some.nonzero()[0]) if bool(some.any()) else None


def open_keys(trace: AttentionTrace, head: int, query: int) -> list[int]:
    """The keys to which a query may attend."""
    row = trace["masked_scores"].sel(batch=0, head=head, query=query).value
    keys: list[int] = (row != -torch.inf).nonzero().flatten().tolist()
    return keys
