"""What each head brings to the output: sizes, sums, and the output without some of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import torch
from torch import Tensor

from mha_core.comparison import relative_distance
from mha_core.trace import AttentionTrace

__all__ = ["Ablation", "Waterfall", "contribution_sizes", "decimals_that_add_up", "waterfall", "without_heads"]


def contribution_sizes(trace: AttentionTrace, batch: int = 0) -> Tensor:
    """‖head_i W_i^O‖ of each head at each token: (h, n_q).

    Lengths, not shares: contributions may cancel, so that they do not add up to the output's length.

    Source: Kobayashi et al. 2020, section 3, for norms as a measure.

    >>> from mha_core import MultiHeadAttention
    >>> contribution_sizes(MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8))).shape
    torch.Size([2, 3])
    """
    sizes: Tensor = torch.linalg.vector_norm(trace["head_contributions"].sel(batch=batch).value.detach(), dim=-1)
    return sizes


@dataclass(frozen=True)
class Waterfall:
    """One number of the output as steps, each beginning where the last one ended.

    Attributes:
        values: what each head adds, in order; then the bias, if there is one.
        starts, ends: of each step, from 0 to the sum.
        has_bias: whether the last step is b_O's.
        total: the output's number. Rounding of float32 may put it a little off ``ends[-1]``.
        decimals: how many make the displayed values add up to the displayed total; None where no number of them
            does (see :func:`decimals_that_add_up`).
    """

    values: tuple[float, ...]
    starts: tuple[float, ...]
    ends: tuple[float, ...]
    has_bias: bool
    total: float
    decimals: int | None


def waterfall(trace: AttentionTrace, query: int, feature: int, batch: int = 0) -> Waterfall:
    """How one number of the output comes about from head to head.

    Raises:
        IndexError: query, feature or batch out of range.

    Source: Vaswani et al. 2017, section 3.2.2: Concat(head_1 … head_h) W^O, as a sum over heads.

    >>> from mha_core import MultiHeadAttention
    >>> steps = waterfall(MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8)), query=2, feature=5)
    >>> len(steps.values), steps.starts[0], steps.has_bias, abs(steps.ends[-1] - steps.total) < 1e-6
    (3, 0.0, True, True)
    """
    explained = trace.explain("output", batch=batch, query=query, feature=feature)
    values = tuple(term.product for term in explained.terms)
    ends = tuple(math.fsum(values[: step + 1]) for step in range(len(values)))
    has_bias = trace.parameter("b_O") is not None
    decimals = decimals_that_add_up(values, explained.value)
    return Waterfall(values, (0.0, *ends[:-1]), ends, has_bias, explained.value, decimals)


def decimals_that_add_up(parts: Sequence[float], total: float, least: int = 2, most: int = 7) -> int | None:
    """The fewest decimals with which the written parts add up to the written total, exactly.

    Each number is rounded for itself, as ``f"{x:.2f}"`` does. Rounding can be unlucky at every number of decimals:
    then it is None, and the sum is written with ≈.

    >>> decimals_that_add_up([0.125, 0.25, 0.333], 0.708)  # .12 + .25 + .33 is .70, not .71
    3
    """
    for decimals in range(least, most + 1):
        written = [Decimal(f"{part:.{decimals}f}") for part in parts]
        if sum(written) == Decimal(f"{total:.{decimals}f}"):
            return decimals
    return None


@dataclass(frozen=True, eq=False)
class Ablation:
    """The output of some of the heads.

    Attributes:
        output: the sum of their contributions, and b_O: (batch, n_q, d_model).
        distance: from the full output, as a share of its size; norms over the whole tensor.
    """

    output: Tensor
    distance: float


def without_heads(trace: AttentionTrace, kept: Sequence[bool]) -> Ablation:
    """Leave heads out of the output: Σ over the kept ones of head_i W_i^O, and b_O.

    Of h random heads each brings about 1/h of the squared length, so that one less moves the
    output by about 1/√h.

    Args:
        kept: for every head, whether it stays.

    Raises:
        ValueError: not as many as there are heads.

    Source: Michel et al. 2019, section 2.3.

    >>> from mha_core import MultiHeadAttention
    >>> trace = MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8))
    >>> without_heads(trace, [True, True]).distance < 1e-6, without_heads(trace, [True, False]).distance > 1e-3
    (True, True)
    """
    contributions, full = trace["head_contributions"].value.detach(), trace["output"].value.detach()
    if len(kept) != contributions.size(1):
        raise ValueError(f"kept has {len(kept)} entries; give one for each of the h={contributions.size(1)} heads")
    output = contributions[:, torch.tensor(list(kept), dtype=torch.bool)].sum(1)  # (batch, n_q, d_model)
    if (bias := trace.parameter("b_O")) is not None:
        output = output + bias.value.detach()
    return Ablation(output, relative_distance(output, full).item())
