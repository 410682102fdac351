"""Masks: which query may attend to which key.

A mask is boolean, True meaning *may attend* (as in ``F.scaled_dot_product_attention``; note that
``nn.MultiheadAttention`` means the opposite), or float and added to the scores. Constructors
return boolean masks, (n_q, n_k) unless they say otherwise; combine them with ``&`` and ``|``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = [
    "EMPTY",
    "MASKS",
    "MaskKind",
    "add_mask",
    "broadcastable",
    "causal",
    "padding",
    "prefix_lm",
    "sliding_window",
]

EMPTY = -math.inf
"""The score of a pair that may not attend."""


def causal(n_q: int, n_k: int | None = None) -> Tensor:
    """Query i may attend to keys 0 … i. Boolean, (n_q, n_k); n_k is n_q when None.

    Aligned at the first token where n_q ≠ n_k, as ``is_causal=True`` in PyTorch.

    >>> causal(3).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    return torch.ones(n_q, n_q if n_k is None else n_k, dtype=torch.bool).tril()


def sliding_window(n: int, width: int) -> Tensor:
    """Query i may attend to itself and the width − 1 tokens before it. Boolean, (n, n).

    Source: Jiang et al. 2023 (Mistral 7B), section 2; a causal form of Beltagy et al. 2020.

    >>> sliding_window(4, 2).int()
    tensor([[1, 0, 0, 0],
            [1, 1, 0, 0],
            [0, 1, 1, 0],
            [0, 0, 1, 1]], dtype=torch.int32)
    """
    if width < 1:
        raise ValueError(f"width={width} leaves nothing to attend to; width must be at least 1")
    return causal(n).triu(1 - width)


def prefix_lm(n: int, prefix: int) -> Tensor:
    """The first ``prefix`` tokens see each other both ways; the rest is causal. Boolean, (n, n).

    Source: Raffel et al. 2020 (T5), section 3.2.1.

    >>> prefix_lm(3, 2).int()
    tensor([[1, 1, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    if prefix < 0:
        raise ValueError(f"prefix={prefix} is negative; prefix counts tokens, from 0 to n={n}")
    mask = causal(n)
    mask[:, :prefix] = True
    return mask


def padding(lengths: Sequence[int], n_k: int) -> Tensor:
    """Hide the keys behind each sequence's end. Boolean, (batch, 1, 1, n_k).

    Args:
        lengths: how many real tokens each sequence of the batch has, 0 … n_k.
        n_k: the padded length.

    >>> padding([2, 3], 3).int().flatten(1)
    tensor([[1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    for row, length in enumerate(lengths):
        if not 0 <= length <= n_k:
            raise ValueError(f"lengths[{row}]={length} is outside 0 … n_k={n_k}; give the number of real tokens")
    return (torch.arange(n_k) < torch.tensor(lengths).unsqueeze(1)).view(len(lengths), 1, 1, n_k)


def broadcastable(mask: Tensor, shape: torch.Size | tuple[int, ...]) -> Tensor:
    """The mask as 4-D, once it is sure to fit scores of ``shape`` = (batch, h, n_q, n_k).

    Raises:
        ValueError: neither boolean nor float; 3-D (ambiguous: batch or heads?) or another
            number of axes; sizes that do not broadcast; NaN or +∞ in a float mask.
    """
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise ValueError(
            f"mask has dtype {mask.dtype}; give a boolean mask (True: may attend) or a float mask (added to the scores)"
        )
    if mask.dim() == 3:
        batch, h = shape[:2]
        raise ValueError(
            f"mask is 3-D with shape {tuple(mask.shape)}; its first axis could be the batch or the heads: "
            f"give 4-D, mask.unsqueeze(1) for one mask per sequence (batch={batch}), "
            f"mask.unsqueeze(0) for one per head (h={h})"
        )
    wide = mask.view(1, 1, *mask.shape) if mask.dim() == 2 else mask
    if wide.dim() != 4 or any(size not in (1, want) for size, want in zip(wide.shape, shape, strict=True)):
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}; expected (n_q, n_k) = {tuple(shape[2:])}, "
            f"or 4-D broadcastable to (batch, h, n_q, n_k) = {tuple(shape)}"
        )
    if mask.dtype != torch.bool and bool((mask.isnan() | (mask == math.inf)).any()):
        raise ValueError("mask holds NaN or +inf; a float mask is added to the scores: use 0 to allow, -inf to forbid")
    return wide


def add_mask(scores: Tensor, mask: Tensor | None) -> Tensor:
    """The scores, (batch, h, n_q, n_k), with −∞ where the mask forbids, or the float mask added.

    >>> add_mask(torch.zeros(1, 1, 2, 2), causal(2))
    tensor([[[[0., -inf],
              [0., 0.]]]])
    """
    if mask is None:
        return scores
    mask = broadcastable(mask, scores.shape)
    return scores.masked_fill(~mask, EMPTY) if mask.dtype == torch.bool else scores + mask.to(scores.dtype)


@dataclass(frozen=True)
class MaskKind:
    """A row of MASKS: a mask that one picks by name.

    ``build(n, size)`` gives the boolean mask, 2-D (n, n) or 4-D for a batch of 1; ``size`` is the
    one number some kinds need (real tokens, width, prefix), and ``default_size(n)`` proposes it.
    """

    key: str
    build: Callable[[int, int], Tensor | None]
    default_size: Callable[[int], int] | None = None


MASKS: tuple[MaskKind, ...] = (
    MaskKind("none", lambda n, size: None),
    MaskKind("causal", lambda n, size: causal(n)),
    MaskKind("padding", lambda n, size: padding([min(size, n)], n), lambda n: max(1, n - 2)),
    MaskKind("window", sliding_window, lambda n: 3),
    MaskKind("prefix", lambda n, size: prefix_lm(n, min(size, n)), lambda n: max(1, n // 2)),
)
