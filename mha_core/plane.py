"""A head's values and what it makes of them, as points on paper."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Plane", "values_in_2d"]


@dataclass(frozen=True, eq=False)
class Plane:
    """Points of one head, seen from where its values are spread most.

    Attributes:
        values: (n_k, 2).
        outputs: (…, 2).
        share: of the values' variance, what the two coordinates show, 0 … 1.
    """

    values: Tensor
    outputs: Tensor
    share: float


def values_in_2d(V: Tensor, z: Tensor) -> Plane:
    """The two principal components of a head's values, and its outputs in the same plane, float64.

    The map is affine, so a mix of values stays that mix: an output lies within the polygon of the
    values, nearest those with large weights. With d_v ≤ 2 (or up to three values) nothing is lost:
    distances are the true ones. (A query that may attend to nothing has the output 0, which is no
    mix and may lie outside.) Each component's largest loading is positive.

    Args:
        V: one head's values, (n_k, d_v).
        z: its outputs, (…, d_v): one query's, or several.

    Source: Jolliffe 2002, "Principal Component Analysis", chapter 1.

    >>> V = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]])
    >>> plane = values_in_2d(V, V.mean(0))
    >>> plane.outputs.abs().max().item() < 1e-6, plane.share  # the mean of the values is the origin
    (True, 1.0)
    """
    V, z = V.detach().double(), z.detach().double()
    mean = V.mean(0)
    spread, directions = torch.linalg.svd(V - mean, full_matrices=False)[1:]  # (r,), (r, d_v), r = min(n_k, d_v)
    directions = directions[:2]
    largest = directions.abs().argmax(1, keepdim=True)
    axes = torch.zeros(2, V.size(1), dtype=torch.float64)
    axes[: len(directions)] = directions * directions.gather(1, largest).sign()
    total = spread.square().sum().item()
    share = spread[:2].square().sum().item() / total if total > 0 else 1.0
    return Plane((V - mean) @ axes.mT, (z - mean) @ axes.mT, share)
