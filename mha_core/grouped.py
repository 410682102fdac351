"""Fewer heads of keys and values than of queries: MHA, GQA, MQA, made from one module."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from mha_core.attention import MultiHeadAttention
from mha_core.comparison import relative_distance
from mha_core.trace import AttentionTrace

__all__ = ["grouped", "output_change", "share_keys"]


def grouped(module: MultiHeadAttention, h_kv: int) -> MultiHeadAttention:
    """A copy with h_kv heads of keys and values, each the mean of the heads whose queries now share it.

    W_Q and W_O stay. With h_kv = h it is the same attention; 1 is multi-query attention. A model is
    trained on after that; here it is not.

    Raises:
        ValueError: h_kv does not divide the module's own number of key heads.

    Source: Ainslie et al. 2023, "GQA", section 2.1 (mean pooling); Shazeer 2019 (one key head).

    >>> module = MultiHeadAttention(8, 4)
    >>> grouped(module, 1).W_K.weight.shape, torch.equal(grouped(module, 4).W_K.weight, module.W_K.weight)
    (torch.Size([2, 8]), True)
    """
    if h_kv < 1 or module.h_kv % h_kv:
        divisors = ", ".join(str(i) for i in range(1, module.h_kv + 1) if module.h_kv % i == 0)
        raise ValueError(f"h_kv={h_kv} does not divide {module.h_kv}, the module's key heads; choose from {divisors}")
    pooled = MultiHeadAttention(
        module.d_model, module.h, d_k=module.d_k, d_v=module.d_v, h_kv=h_kv, d_context=module.d_context,
        bias=module.W_Q.bias is not None,
    )  # fmt: skip
    with torch.no_grad():
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            theirs, ours = getattr(module, name), getattr(pooled, name)
            for parameter in ("weight", "bias") if theirs.bias is not None else ("weight",):
                full: Tensor = getattr(theirs, parameter)
                kept = _mean_of_groups(full, module.h_kv, h_kv) if name in ("W_K", "W_V") else full
                setattr(ours, parameter, nn.Parameter(kept.detach().clone()))
    return pooled


def _mean_of_groups(rows: Tensor, heads: int, groups: int) -> Tensor:
    """(heads·d, …) → (groups·d, …): consecutive heads are averaged."""
    each = rows.view(groups, heads // groups, -1, *rows.shape[1:])  # (groups, heads a group, d, …)
    return each.mean(1).flatten(0, 1)


def share_keys(trace: AttentionTrace, h_kv: int, keep: Iterable[str] | None = None) -> AttentionTrace:
    """The same calculation with fewer key heads; the trace itself where there are as many already.

    Args:
        keep: as in ``MultiHeadAttention.trace``.

    >>> trace = MultiHeadAttention(8, 4).trace(torch.randn(1, 3, 8))
    >>> share_keys(trace, 2)["K_heads"].shape
    (1, 2, 3, 2)
    """
    if h_kv == trace.sizes["h_kv"]:
        return trace
    context = trace["context"].value.detach() if trace.cross else None
    with torch.no_grad():
        return grouped(trace.module, h_kv).trace(
            trace["X"].value.detach(), context, trace.mask, scale=trace.scale, keep=keep
        )


def output_change(shared: AttentionTrace, trace: AttentionTrace) -> float:
    """How far the output moves: ‖Y′ − Y‖ / ‖Y‖."""
    return relative_distance(shared["output"].value, trace["output"].value).item()
