"""Multi-head attention, read from top to bottom: from X to the output.

Notation, the paper's (Vaswani et al. 2017, "Attention Is All You Need", section 3.2):

    batch       sequences computed side by side
    n_q, n_k    number of queries and of keys (both n in self-attention)
    d_model     features of a token, in X and in the output
    d_context   features of a token of the context (d_model in self-attention)
    h, h_kv     heads of queries, and of keys and values (h_kv < h: grouped-query attention)
    d_k, d_v    features of one head's queries and keys, and of its values (d_model / h)

A comment at the end of a line is the shape of the tensor that the line makes. ``trace`` runs
the same lines as ``forward`` and checks each of those shapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from mha_core.masks import EMPTY, add_mask
from mha_core.trace import AttentionTrace, Recorder

__all__ = ["MultiHeadAttention", "attend", "merge_heads", "safe_softmax", "split_heads"]

Record = Callable[[str, Tensor], Tensor]


def _record_nothing(name: str, tensor: Tensor) -> Tensor:
    return tensor


def keeps(record: Record, name: str) -> bool:
    """Whether a recorder may still be asked for this tensor."""
    return name in record.keep if isinstance(record, Recorder) else record is not _record_nothing


def attend(
    Q: Tensor,
    K: Tensor,
    V: Tensor,
    mask: Tensor | None = None,
    *,
    scale: float | None = None,
    record: Record = _record_nothing,
) -> Tensor:
    """Scaled dot-product attention in every head: softmax(Q Kᵀ · scale + mask) V.

    Args:
        Q: queries, (batch, h, n_q, d_k).
        K: keys, (batch, h_kv, n_k, d_k); query head i reads key head i // (h / h_kv).
        V: values, (batch, h_kv, n_k, d_v).
        mask: boolean (True: this query may attend to this key) or float (added to the scores);
            (n_q, n_k), or 4-D and broadcastable to (batch, h, n_q, n_k).
        scale: what the scores are multiplied by; 1/√d_k when None.
        record: called with each intermediate's name and tensor; returns the tensor.

    Returns:
        The heads' outputs, (batch, h, n_q, d_v). A query that may attend to nothing gets zeros.

    Raises:
        ValueError: a mask of the wrong shape or kind.

    Source: Vaswani et al. 2017, equation 1; grouped queries: Ainslie et al. 2023.

    >>> Q = K = V = torch.eye(3).view(1, 1, 3, 3)
    >>> attend(Q, K, V).shape
    torch.Size([1, 1, 3, 3])
    """
    dtype, group = V.dtype, Q.size(1) // K.size(1)
    if dtype.itemsize < 4:  # half precision: the scores need float32's range and digits
        Q, K, V = Q.float(), K.float(), V.float()
    if group > 1:
        K, V = K.repeat_interleave(group, 1), V.repeat_interleave(group, 1)
    scale = 1 / math.sqrt(Q.size(-1)) if scale is None else scale

    raw_scores = record("raw_scores", Q @ K.mT)  # (batch, h, n_q, n_k)
    in_place = not keeps(record, "raw_scores")  # a long sequence should not pay for what nobody will ask for
    scores = record("scores", raw_scores.mul_(scale) if in_place else raw_scores * scale)  # (batch, h, n_q, n_k)
    masked_scores = record("masked_scores", add_mask(scores, mask))  # (batch, h, n_q, n_k)
    softmax = torch.softmax if mask is None else safe_softmax  # without a mask no row is empty
    weights = record("weights", softmax(masked_scores, -1))  # (batch, h, n_q, n_k)
    del raw_scores, scores, masked_scores
    return record("head_outputs", (weights @ V).to(dtype))  # (batch, h, n_q, d_v)


def safe_softmax(masked_scores: Tensor, dim: int = -1) -> Tensor:
    """Softmax over the keys; a row of nothing but −∞ gives zeros instead of NaN.

    Zeros forward and backward: the row's scores are replaced before the softmax, so that no
    0/0 is ever computed for autograd to differentiate.

    >>> safe_softmax(torch.tensor([[0.0, 0.0], [-math.inf, -math.inf]]))
    tensor([[0.5000, 0.5000],
            [0.0000, 0.0000]])
    """
    empty = (masked_scores == EMPTY).all(dim, keepdim=True)  # (…, n_q, 1)
    return masked_scores.masked_fill(empty, 0).softmax(dim).masked_fill(empty, 0)


def split_heads(projected: Tensor, h: int) -> Tensor:
    """Cut the features into h consecutive bands: (batch, n, h·d) → (batch, h, n, d).

    Head i owns features i·d … (i+1)·d − 1. The view comes first and the transpose second:
    ``view(batch, h, n, d)`` has the right shape as well, and mixes tokens up.
    """
    batch, n, features = projected.shape
    return projected.view(batch, n, h, features // h).transpose(1, 2)


def merge_heads(heads: Tensor) -> Tensor:
    """Lay the heads side by side again: (batch, h, n, d) → (batch, n, h·d)."""
    return heads.transpose(1, 2).flatten(2)


class MultiHeadAttention(nn.Module):
    """Multi-head attention whose every intermediate tensor can be asked for.

    With the defaults it is the textbook's module, and its ``state_dict`` has the textbook's
    names and shapes: four ``nn.Linear(d_model, d_model)`` called W_Q, W_K, W_V and W_O.
    ``nn.Linear`` stores the transpose of the formula's matrix: ``X @ W_Q.weight.T``.

    Args:
        d_model: features of a token.
        h: number of heads.
        d_k: features of a head's queries and keys; d_model / h when None.
        d_v: features of a head's values; d_k's default, d_model / h, when None.
        h_kv: heads of keys and values; h when None. 1 is multi-query attention.
        d_context: features of a context token; d_model when None.
        bias: whether the four projections add a bias.

    Raises:
        ValueError: sizes below 1; h does not divide d_model while d_k or d_v is left out;
            h_kv does not divide h.

    Source: Vaswani et al. 2017, section 3.2.2; h_kv: Shazeer 2019, Ainslie et al. 2023.

    >>> attention = MultiHeadAttention(d_model=64, h=4)
    >>> X = torch.randn(1, 10, 64)
    >>> attention(X).shape
    torch.Size([1, 10, 64])
    >>> attention.trace(X)["weights"]
    weights: batch 1, head 4, query 10, key 10
    """

    def __init__(
        self,
        d_model: int,
        h: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        h_kv: int | None = None,
        d_context: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        h_kv = h if h_kv is None else h_kv
        d_context = d_model if d_context is None else d_context
        _check_sizes(d_model=d_model, h=h, h_kv=h_kv, d_context=d_context)
        if (d_k is None or d_v is None) and d_model % h:
            divisors = ", ".join(str(i) for i in range(1, d_model + 1) if d_model % i == 0)
            raise ValueError(
                f"d_model={d_model} is not divisible by h={h}; choose h from {divisors}, or give both d_k and d_v"
            )
        if h % h_kv:
            raise ValueError(f"h={h} is not divisible by h_kv={h_kv}; each key head serves h / h_kv query heads")
        d_k = d_model // h if d_k is None else d_k
        d_v = d_model // h if d_v is None else d_v
        _check_sizes(d_k=d_k, d_v=d_v)

        self.d_model, self.h, self.h_kv = d_model, h, h_kv
        self.d_k, self.d_v, self.d_context = d_k, d_v, d_context
        self.W_Q = nn.Linear(d_model, h * d_k, bias=bias)
        self.W_K = nn.Linear(d_context, h_kv * d_k, bias=bias)
        self.W_V = nn.Linear(d_context, h_kv * d_v, bias=bias)
        self.W_O = nn.Linear(h * d_v, d_model, bias=bias)

    def forward(
        self,
        X: Tensor,
        context: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        scale: float | None = None,
    ) -> Tensor:
        """The output alone, (batch, n_q, d_model).

        Args:
            X: (batch, n_q, d_model).
            context: (batch, n_k, d_context), where keys and values come from; X when None.
            mask: as in :func:`attend`.
            scale: as in :func:`attend`.

        Raises:
            ValueError: X, context or mask of the wrong shape. Values are not looked at, as in
                ``torch.nn``: NaN in, NaN out. :meth:`trace` names a NaN's place instead.
        """
        return self._compute(X, context, mask, scale, _record_nothing)

    def trace(
        self,
        X: Tensor,
        context: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        scale: float | None = None,
        keep: Iterable[str] | None = None,
    ) -> AttentionTrace:
        """Every intermediate of ``forward``, by the same lines.

        Args:
            X, context, mask, scale: as in :meth:`forward`.
            keep: names of the steps to keep, for long sequences; all of STEPS when None.

        Raises:
            ValueError: as :meth:`forward`; X or context holds NaN or ∞, named by row and
                column; magnitudes so large that the scores overflow.
            KeyError: ``keep`` names a step that there is not.
        """
        recorder = Recorder(self, X, context, mask, scale, keep)
        self._compute(X, context, mask, scale, recorder)
        return recorder.trace()

    def _compute(
        self, X: Tensor, context: Tensor | None, mask: Tensor | None, scale: float | None, record: Record
    ) -> Tensor:
        _check_tokens("X", X, "d_model", self.d_model)
        if context is None:
            context = X
        _check_tokens("context", context, "d_context", self.d_context)
        if context.size(0) != X.size(0):
            raise ValueError(
                f"context has batch {context.size(0)} and X has batch {X.size(0)}; they must be equal: "
                "repeat the shorter one with expand(batch, -1, -1)"
            )
        record("X", X)  # (batch, n_q, d_model)
        record("context", context)  # (batch, n_k, d_context)

        Q = record("Q", self.W_Q(X))  # (batch, n_q, h·d_k)
        K = record("K", self.W_K(context))  # (batch, n_k, h_kv·d_k)
        V = record("V", self.W_V(context))  # (batch, n_k, h_kv·d_v)

        Q_heads = record("Q_heads", split_heads(Q, self.h))  # (batch, h, n_q, d_k)
        K_heads = record("K_heads", split_heads(K, self.h_kv))  # (batch, h_kv, n_k, d_k)
        V_heads = record("V_heads", split_heads(V, self.h_kv))  # (batch, h_kv, n_k, d_v)

        head_outputs = attend(Q_heads, K_heads, V_heads, mask, scale=scale, record=record)  # (batch, h, n_q, d_v)
        concat = record("concat", merge_heads(head_outputs))  # (batch, n_q, h·d_v)
        return record("output", self.W_O(concat))  # (batch, n_q, d_model)

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> MultiHeadAttention:
        """The same attention as a ``torch.nn.MultiheadAttention``; see :mod:`mha_core.convert`."""
        from mha_core.convert import from_torch

        return from_torch(module)

    def to_torch(self) -> nn.MultiheadAttention:
        """The same attention as a ``torch.nn.MultiheadAttention``; see :mod:`mha_core.convert`."""
        from mha_core.convert import to_torch

        return to_torch(self)

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, h={self.h}, d_k={self.d_k}, d_v={self.d_v}, h_kv={self.h_kv}"


def _check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name}={size} is too small; {name} must be at least 1")


def _check_tokens(name: str, tokens: Tensor, axis: str, features: int) -> None:
    if tokens.dim() != 3 or tokens.size(-1) != features:
        remedy = "; add the batch axis with unsqueeze(0)" if tokens.dim() == 2 and tokens.size(-1) == features else ""
        raise ValueError(f"{name} has shape {tuple(tokens.shape)}; expected (batch, n, {axis}={features}){remedy}")
