"""Two results side by side, and how far each is from what should hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from mha_core.trace import Intermediate

__all__ = ["Comparison", "detached", "pair", "relative_distance"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The right tensor, a wrong one of the same axes and shape, and an invariant measured on both.

    Attributes:
        right: as the trace has it.
        wrong: what the mistake makes of it.
        invariant_right: how far the right one is from the invariant; at most ``bound``.
        invariant_wrong: how far the wrong one is.
        bound: 0 where the invariant is exact, else what rounding may do.
        evidence: what else shows the difference, by name: (right, wrong) each.
    """

    right: Intermediate
    wrong: Intermediate
    invariant_right: float
    invariant_wrong: float
    bound: float
    evidence: Mapping[str, tuple[Intermediate, Intermediate]] = field(default_factory=dict)

    @property
    def broken(self) -> bool:
        """Whether the wrong one breaks the invariant here: with one head, or no mask, some mistakes do not show."""
        return self.invariant_wrong > self.bound


def relative_distance(a: Tensor, b: Tensor, dim: tuple[int, ...] | None = None) -> Tensor:
    """‖a − b‖ / ‖b‖ over the given axes (all when None), in float64.

    0 where a equals b, even where both are zero; ∞ where only b is zero.

    >>> relative_distance(torch.tensor([[3.0, 5.0], [0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 0.0]]), (1,))
    tensor([0.2000, 0.0000], dtype=torch.float64)
    """
    a, b = a.detach().double(), b.detach().double()
    apart: Tensor = torch.linalg.vector_norm(a - b, dim=dim)
    size: Tensor = torch.linalg.vector_norm(b, dim=dim)
    return (apart / size).masked_fill(apart == 0, 0)


def detached(step: Intermediate) -> Intermediate:
    """The same numbers, outside of autograd."""
    return Intermediate(step.name, step.axes, step.value.detach(), step.group)


def pair(name: str, axes: tuple[str, ...], right: Tensor, wrong: Tensor) -> tuple[Intermediate, Intermediate]:
    """Both under one name and with the same axes."""
    return Intermediate(name, axes, right), Intermediate(name, axes, wrong)
