"""To and from ``torch.nn.MultiheadAttention``: the same numbers, other names.

PyTorch keeps W_Q, W_K and W_V stacked in one ``in_proj_weight`` (three separate ones where the
context has another width) and has no d_k, d_v or h_kv of its own. What one side can't hold is
refused with the reason.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mha_core.attention import MultiHeadAttention

__all__ = ["from_torch", "to_torch"]


def from_torch(module: nn.MultiheadAttention) -> MultiHeadAttention:
    """A copy of the module's weights as a :class:`MultiHeadAttention`; it takes the batch first.

    Raises:
        ValueError: add_bias_kv, add_zero_attn, kdim ≠ vdim, or dropout while training.

    >>> theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    >>> X = torch.randn(1, 3, 8)
    >>> torch.allclose(from_torch(theirs)(X), theirs(X, X, X)[0], atol=1e-6)
    True
    """
    if module.bias_k is not None:
        raise ValueError("add_bias_kv=True appends a learned key and value; MultiHeadAttention has none")
    if module.add_zero_attn:
        raise ValueError("add_zero_attn=True appends a zero key and value; MultiHeadAttention has none")
    if module.kdim != module.vdim:
        raise ValueError(
            f"kdim={module.kdim} and vdim={module.vdim} differ; "
            "MultiHeadAttention takes keys and values from one context, so they must be equal"
        )
    if module.training and module.dropout > 0:
        raise ValueError(f"dropout={module.dropout} is random while training; call eval() on the module first")

    ours = MultiHeadAttention(
        module.embed_dim, module.num_heads, d_context=module.kdim, bias=module.in_proj_bias is not None
    )
    first = module.out_proj.weight
    ours = ours.to(device=first.device, dtype=first.dtype)
    packed = module.in_proj_weight
    if packed is None:
        projections: tuple[Tensor, ...] = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    else:
        projections = packed.chunk(3)
    with torch.no_grad():
        for linear, weight in zip((ours.W_Q, ours.W_K, ours.W_V), projections, strict=True):
            linear.weight.copy_(weight)
        ours.W_O.weight.copy_(module.out_proj.weight)
        if module.in_proj_bias is not None:
            for linear, bias in zip((ours.W_Q, ours.W_K, ours.W_V), module.in_proj_bias.chunk(3), strict=True):
                linear.bias.copy_(bias)
            ours.W_O.bias.copy_(module.out_proj.bias)
    return ours.train(module.training)


def to_torch(module: MultiHeadAttention) -> nn.MultiheadAttention:
    """A copy of the weights as a ``torch.nn.MultiheadAttention(batch_first=True)``.

    Its boolean masks mean the opposite of ours: hand it ``~mask``.

    Raises:
        ValueError: h_kv < h, or d_k or d_v other than d_model / h.
    """
    m = module
    if m.h_kv != m.h:
        raise ValueError(f"h_kv={m.h_kv} is below h={m.h}; nn.MultiheadAttention has as many key heads as query heads")
    if m.d_k * m.h != m.d_model or m.d_v * m.h != m.d_model:
        raise ValueError(
            f"d_k={m.d_k} and d_v={m.d_v}; nn.MultiheadAttention has only d_k = d_v = d_model / h = {m.d_model / m.h:g}"
        )
    has_bias = m.W_Q.bias is not None
    weight = m.W_O.weight
    theirs = nn.MultiheadAttention(
        m.d_model, m.h, bias=has_bias, kdim=m.d_context, vdim=m.d_context, batch_first=True,
        device=weight.device, dtype=weight.dtype,
    )  # fmt: skip
    projections = m.W_Q, m.W_K, m.W_V
    with torch.no_grad():
        if theirs.in_proj_weight is None:
            for target, linear in zip(
                (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight), projections, strict=True
            ):
                target.copy_(linear.weight)
        else:
            theirs.in_proj_weight.copy_(torch.cat([linear.weight for linear in projections]))
        theirs.out_proj.weight.copy_(weight)
        if has_bias:
            theirs.in_proj_bias.copy_(torch.cat([linear.bias for linear in projections]))
            theirs.out_proj.bias.copy_(m.W_O.bias)
    return theirs.train(m.training)
