"""The sizes of an attention, and which numbers of heads fit them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mha_core.trace import AttentionTrace

__all__ = ["DTYPE_BYTES", "Sizes", "head_counts", "kv_head_counts", "with_heads"]

DTYPE_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of a number."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What costs depend on, in the notation of attention.py.

    Attributes:
        dtype: a key of DTYPE_BYTES.
        layers: how many such attentions stand on each other; a factor of every total.
        masked: whether a mask is given: the masked scores are a tensor of their own then.
        cross: whether keys and values come from a context of n_k other tokens.
    """

    d_model: int
    h: int
    d_k: int
    d_v: int
    h_kv: int
    d_context: int
    n_q: int
    n_k: int
    batch: int = 1
    dtype: str = "float32"
    bias: bool = True
    layers: int = 1
    masked: bool = False
    cross: bool = False

    @classmethod
    def standard(cls, d_model: int, h: int, n: int, **more: Any) -> Sizes:
        """Self-attention of n tokens with d_k = d_v = d_model / h and a key head for every query head.

        Raises:
            ValueError: h does not divide d_model.

        >>> Sizes.standard(512, 8, 10, bias=False).d_k
        64
        """
        if d_model % h:
            raise ValueError(f"d_model={d_model} is not divisible by h={h}; choose a divisor, or give all sizes")
        each = {"d_k": d_model // h, "d_v": d_model // h, "h_kv": h, "d_context": d_model, "n_q": n, "n_k": n}
        return cls(d_model=d_model, h=h, **{**each, **more})

    @classmethod
    def of(cls, trace: AttentionTrace) -> Sizes:
        """The sizes of a calculation.

        >>> import torch
        >>> from mha_core import MultiHeadAttention
        >>> Sizes.of(MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8))) == Sizes.standard(8, 2, 3)
        True
        """
        return cls(
            **trace.sizes, dtype=str(trace["output"].value.dtype).removeprefix("torch."),
            bias=trace.module.W_Q.bias is not None, masked=trace.mask is not None, cross=trace.cross,
        )  # fmt: skip

    @property
    def copied(self) -> bool:
        """Whether the heads' outputs are copied to lie side by side; one head, query or feature is there already."""
        return min(self.h, self.n_q, self.d_v) > 1

    @property
    def bytes_a_number(self) -> int:
        """Of the dtype."""
        return DTYPE_BYTES[self.dtype]


def head_counts(sizes: Sizes, most: int = 128) -> tuple[int, ...]:
    """The numbers of heads that share h·d_k and h·d_v evenly, up to a largest; the present one among them.

    >>> head_counts(Sizes.standard(12, 2, 3))
    (1, 2, 3, 4, 6, 12)
    """
    key, value = sizes.h * sizes.d_k, sizes.h * sizes.d_v
    return tuple(h for h in range(1, max(most, sizes.h) + 1) if key % h == 0 == value % h)


def kv_head_counts(h: int) -> tuple[int, ...]:
    """The numbers of key heads that h query heads can share, from h (MHA) over groups (GQA) down to 1 (MQA).

    >>> kv_head_counts(8)
    (8, 4, 2, 1)
    """
    return tuple(count for count in range(h, 0, -1) if h % count == 0)


def with_heads(sizes: Sizes, h: int) -> Sizes:
    """As many features in all, cut into h heads, each with keys and values of its own.

    Raises:
        ValueError: h does not divide them.

    >>> with_heads(Sizes.standard(512, 8, 10), 64).d_k
    8
    """
    if h not in head_counts(sizes, most=h):
        raise ValueError(f"h·d_k={sizes.h * sizes.d_k} is not divisible by h={h}; choose from {head_counts(sizes)}")
    return replace(sizes, h=h, h_kv=h, d_k=sizes.h * sizes.d_k // h, d_v=sizes.h * sizes.d_v // h)
