"""Is this calculation right? Three identities, computed anew for a trace, each beside its bound."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mha_core.trace import AttentionTrace

__all__ = ["Check", "checks"]


@dataclass(frozen=True)
class Check:
    """An identity, how far the numbers are from it, and how far rounding may put them.

    Attributes:
        key: "rows_sum", "heads_add_up" or "equals_torch".
        error: the largest deviation; of the output, as a share of its largest entry.
        bound: 8 ε for a sum of weights; 32 ε · max(1, largest |score|) for outputs, with ε the
            spacing of the output's dtype at 1 (1.2e-7 for float32).
    """

    key: str
    error: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the deviation is within the bound."""
        return self.error <= self.bound


def checks(trace: AttentionTrace) -> tuple[Check, ...]:
    """Rows of weights sum to 1; the heads' contributions add up to the output; PyTorch agrees.

    A row that may attend to nothing sums to 0, and PyTorch's own module gives NaN there: such
    rows are left out of the first and the last. The last is missing where
    ``nn.MultiheadAttention`` cannot hold the module (h_kv < h, other d_k or d_v).
    """
    output = trace["output"].value.detach()
    weights = trace["weights"].value.detach()
    eps = torch.finfo(output.dtype).eps
    size = max(output.abs().max().item(), eps)
    outputs_bound = 32 * eps * max(1.0, trace["scores"].value.detach().abs().max().item())

    sums = weights.sum(-1)
    rows = [Check("rows_sum", ((sums - 1).abs() * (sums > 0)).max().item(), 8 * eps)]

    added = trace["head_contributions"].value.detach().sum(1)
    if (bias := trace.parameter("b_O")) is not None:
        added = added + bias.value.detach()
    rows.append(Check("heads_add_up", (added - output).abs().max().item() / size, outputs_bound))

    if (theirs := _torch_output(trace)) is not None:
        full = (sums > 0).all(1)  # (batch, n_q): every head of this query has something to attend to
        apart = (theirs - output).abs().amax(-1)[full]
        rows.append(Check("equals_torch", apart.max().item() / size if len(apart) else 0.0, outputs_bound))
    return tuple(rows)


def _torch_output(trace: AttentionTrace) -> Tensor | None:
    sizes = trace.sizes
    if trace.scale != sizes["d_k"] ** -0.5:
        return None
    try:
        module = trace.module.to_torch()
    except ValueError:
        return None
    mask = trace.mask
    if mask is not None:
        mask = mask.expand(trace["scores"].shape).flatten(0, 1)  # (batch·h, n_q, n_k), as PyTorch wants it
        mask = ~mask if mask.dtype == torch.bool else mask
    X, context = trace["X"].value.detach(), trace["context"].value.detach()
    with torch.no_grad():
        output: Tensor = module(X, context, context, attn_mask=mask, need_weights=False)[0]
    return output
