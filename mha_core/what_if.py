"""The same calculation with other weights, and what that changes: the experiments of the page about Q, K and V."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from mha_core.attention import MultiHeadAttention
from mha_core.comparison import relative_distance
from mha_core.experiments import asymmetry, nudge, rescale, self_weight, tie
from mha_core.metrics import METRICS
from mha_core.splits import sliced
from mha_core.trace import AttentionTrace, Intermediate

__all__ = ["Nudged", "Scaled", "Tied", "nudged", "scaled", "tied", "with_module"]


def with_module(trace: AttentionTrace, module: MultiHeadAttention) -> AttentionTrace:
    """The same input, mask and scale through another module."""
    context = trace["context"].value.detach() if trace.cross else None
    with torch.no_grad():
        return module.trace(trace["X"].value.detach(), context, trace.mask, scale=trace.scale)


@dataclass(frozen=True)
class Nudged:
    """How far each head moves when a feature of X does, by name: "Q_heads", "K_heads", "V_heads".

    Attributes:
        projected: project, then split: each head reads all of X.
        sliced: slice, then project: each head reads its part of X.
        owner: the head in whose part of X the feature stands.
    """

    projected: Mapping[str, Intermediate]
    sliced: Mapping[str, Intermediate]
    owner: int

    @staticmethod
    def moving(changes: Mapping[str, Intermediate], letter: str) -> int:
        """How many heads move at all."""
        return int((changes[f"{letter}_heads"].value > 0).sum())


def nudged(trace: AttentionTrace, feature: int, by: float = 2.0) -> Nudged:
    """Add to one feature of every token.

    >>> trace = MultiHeadAttention(64, 8).trace(torch.randn(1, 6, 64))
    >>> found = nudged(trace, feature=63)
    >>> found.moving(found.projected, "V"), found.moving(found.sliced, "V"), found.owner
    (8, 1, 7)
    """
    X, module = trace["X"].value, trace.module
    changes = [nudge(each, X, feature, by, mask=trace.mask, scale=trace.scale) for each in (module, sliced(module))]
    h, d_model = trace.sizes["h"], trace.sizes["d_model"]
    owner = next(i for i in range(h) if feature < (i + 1) * d_model // h)
    return Nudged(changes[0], changes[1], owner)


@dataclass(frozen=True, eq=False)
class Scaled:
    """One weight matrix times a factor.

    Attributes:
        trace: the calculation with it.
        moved: the largest |change| of a weight.
        output: ‖output‖ after, over before.
        apart: how far the output is from factor times the old one, as a share of that.
        entropy: of each head, the mean over its queries in nats, before and after: (h,) each.
    """

    trace: AttentionTrace
    moved: float
    output: float
    apart: float
    entropy: tuple[Tensor, Tensor]


def scaled(trace: AttentionTrace, letter: str, factor: float) -> Scaled:
    """W_Q, W_K, W_V or W_O times a factor; biases stay.

    >>> trace = MultiHeadAttention(8, 2, bias=False).trace(torch.randn(1, 5, 8))
    >>> tripled = scaled(trace, "V", 3)
    >>> tripled.moved, round(tripled.output, 4), tripled.apart < 1e-6
    (0.0, 3.0, True)
    """
    after = with_module(trace, rescale(trace.module, letter, factor))
    old, new = trace["output"].value.detach(), after["output"].value
    moved = (after["weights"].value - trace["weights"].value.detach()).abs().max().item()
    ratio = (torch.linalg.vector_norm(new.double()) / torch.linalg.vector_norm(old.double())).item()
    entropy = next(metric for metric in METRICS if metric.key == "entropy")
    before_after = (entropy.compute(trace, ()).detach()[0], entropy.compute(after, ())[0])
    return Scaled(after, moved, ratio, relative_distance(new, factor * old).item(), before_after)


@dataclass(frozen=True, eq=False)
class Tied:
    """W_K = W_Q, and b_K = b_Q.

    Attributes:
        trace: the calculation with it.
        scores, weights: how far from symmetric each head's are, untied and tied: (h,) each. 0 is symmetric.
        self_weight: of a token on itself, untied and tied: (h,) each.
    """

    trace: AttentionTrace
    scores: tuple[Tensor, Tensor]
    weights: tuple[Tensor, Tensor]
    self_weight: tuple[Tensor, Tensor]


def tied(trace: AttentionTrace) -> Tied:
    """Let keys be queries.

    >>> trace = MultiHeadAttention(8, 2).trace(torch.randn(1, 5, 8))
    >>> found = tied(trace)
    >>> bool((found.scores[1] < 1e-6).all()), bool((found.weights[1] > 1e-3).all())
    (True, True)
    """
    after = with_module(trace, tie(trace.module))
    both = trace, after

    def each(step: str) -> tuple[Tensor, Tensor]:
        before, later = (asymmetry(one[step].value)[0] for one in both)
        return before, later

    before, later = (self_weight(one["weights"].value)[0] for one in both)
    return Tied(after, each("scores"), each("weights"), (before, later))
