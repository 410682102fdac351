"""Attention written twice more, without mha_core: the textbook's class, and loops in NumPy.

What the library computes is compared with these. They are slow and plain on purpose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from mha_core import AttentionTrace, MultiHeadAttention


class TextbookAttention(nn.Module):
    """Multi-head attention as tutorials write it: d_k = d_v = d_model / h, self-attention."""

    def __init__(self, d_model: int, h: int) -> None:
        super().__init__()
        self.d_model, self.h, self.d_k = d_model, h, d_model // h
        self.W_Q = nn.Linear(d_model, d_model)
        self.W_K = nn.Linear(d_model, d_model)
        self.W_V = nn.Linear(d_model, d_model)
        self.W_O = nn.Linear(d_model, d_model)

    def split_heads(self, x: Tensor) -> Tensor:
        batch, n, _ = x.size()
        return x.view(batch, n, self.h, self.d_k).transpose(1, 2)

    def scaled_dot_product_attention(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None) -> Tensor:
        scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        return torch.matmul(torch.softmax(scores, dim=-1), V)

    def combine_heads(self, x: Tensor) -> Tensor:
        batch, _, n, _ = x.size()
        return x.transpose(1, 2).contiguous().view(batch, n, self.d_model)

    def forward(self, X: Tensor, mask: Tensor | None = None) -> Tensor:
        Q, K, V = self.split_heads(self.W_Q(X)), self.split_heads(self.W_K(X)), self.split_heads(self.W_V(X))
        return self.W_O(self.combine_heads(self.scaled_dot_product_attention(Q, K, V, mask)))


def array(tensor: Tensor) -> np.ndarray:
    """The tensor as float64 (a boolean one as boolean)."""
    tensor = tensor.detach()
    return tensor.numpy() if tensor.dtype == torch.bool else tensor.double().numpy()


def attention_by_loops(
    module: MultiHeadAttention,
    X: Tensor,
    context: Tensor | None = None,
    mask: Tensor | None = None,
    scale: float | None = None,
) -> dict[str, np.ndarray]:
    """Every sequence, head and query by itself, in float64. Of the module only its numbers are read."""
    W = {name: array(parameter) for name, parameter in module.state_dict().items()}
    X_, C = array(X), array(X if context is None else context)
    batch, n_q, d_model = X_.shape
    n_k, h, h_kv = C.shape[1], module.h, module.h_kv
    d_k, d_v = len(W["W_Q.weight"]) // h, len(W["W_V.weight"]) // h_kv
    scale = 1 / math.sqrt(d_k) if scale is None else scale
    allowed = None if mask is None else np.broadcast_to(array(mask), (batch, h, n_q, n_k))

    def project(letter: str, token: np.ndarray, first: int, last: int) -> np.ndarray:
        bias = W.get(f"W_{letter}.bias")
        return W[f"W_{letter}.weight"][first:last] @ token + (0 if bias is None else bias[first:last])

    scores, weights = np.zeros((batch, h, n_q, n_k)), np.zeros((batch, h, n_q, n_k))
    head_outputs, output = np.zeros((batch, h, n_q, d_v)), np.zeros((batch, n_q, d_model))
    contributions = np.zeros((batch, h, n_q, d_model))
    for b in range(batch):
        for i in range(h):
            g = i // (h // h_kv)  # the key head that query head i reads
            keys = [project("K", C[b, j], g * d_k, (g + 1) * d_k) for j in range(n_k)]
            values = [project("V", C[b, j], g * d_v, (g + 1) * d_v) for j in range(n_k)]
            for t in range(n_q):
                query = project("Q", X_[b, t], i * d_k, (i + 1) * d_k)
                scores[b, i, t] = row = np.array([query @ key * scale for key in keys])
                if allowed is not None:
                    entry = allowed[b, i, t]
                    row = np.where(entry, row, -np.inf) if entry.dtype == bool else row + entry
                if row.max() > -np.inf:  # else: nothing to attend to, all zeros
                    exponentials = np.exp(row - row.max())
                    weights[b, i, t] = exponentials / exponentials.sum()
                head_outputs[b, i, t] = sum(w * v for w, v in zip(weights[b, i, t], values, strict=True))
                contributions[b, i, t] = W["W_O.weight"][:, i * d_v : (i + 1) * d_v] @ head_outputs[b, i, t]
        output[b] = sum(contributions[b]) + W.get("W_O.bias", 0)
    return {
        "scores": scores,
        "weights": weights,
        "head_outputs": head_outputs,
        "head_contributions": contributions,
        "output": output,
    }


@dataclass
class Case:
    """A module and what it is called with."""

    module: MultiHeadAttention
    X: Tensor
    context: Tensor | None = None
    mask: Tensor | None = None
    scale: float | None = None
    loops: dict[str, np.ndarray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.loops = attention_by_loops(self.module, self.X, self.context, self.mask, self.scale)

    def forward(self) -> Tensor:
        return self.module(self.X, self.context, self.mask, scale=self.scale)

    def trace(self) -> AttentionTrace:
        return self.module.trace(self.X, self.context, self.mask, scale=self.scale)


@st.composite
def cases(draw: st.DrawFn, dtypes: tuple[torch.dtype, ...] = (torch.float32, torch.float64)) -> Case:
    """Any sizes, any kind of mask (rows that may attend to nothing among them), with or without a context."""
    size = st.integers(1, 6)
    dtype, h_kv = draw(st.sampled_from(dtypes)), draw(st.integers(1, 3))
    batch, n_q, n_k, d_context = draw(st.integers(1, 3)), draw(size), draw(size), draw(size)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    self_attention = draw(st.booleans())
    d_model = draw(st.integers(1, 12))
    module = MultiHeadAttention(
        d_model,
        h_kv * draw(st.integers(1, 3)),
        d_k=draw(size),
        d_v=draw(size),
        h_kv=h_kv,
        d_context=d_model if self_attention else d_context,
        bias=draw(st.booleans()),
    ).to(dtype)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / parameter.shape[-1] ** 0.5)
    X = torch.randn(batch, n_q, d_model, generator=generator).to(dtype)
    context = None if self_attention else torch.randn(batch, n_k, d_context, generator=generator).to(dtype)

    kind = draw(st.sampled_from(["none", "boolean", "float", "float with -inf"]))
    full = (batch, module.h, n_q, n_q if self_attention else n_k)
    shape = draw(st.sampled_from([full, full[2:], (full[0], 1, 1, full[3]), (1, full[1], full[2], 1)]))
    mask = None if kind == "none" else torch.randn(shape, generator=generator).to(dtype)
    if mask is not None and kind == "boolean":
        mask = mask > 0
    if mask is not None and kind == "float with -inf":
        mask = mask.masked_fill(mask > 0, -math.inf)
    return Case(module, X, context, mask, draw(st.sampled_from([None, 0.3, 2.0])))
