"""The polygon around points on paper: where a mix of them can be."""

from __future__ import annotations

from torch import Tensor

__all__ = ["convex_hull", "inside_hull"]


def convex_hull(points: Tensor) -> list[int]:
    """Which points, (n, 2), are corners of the smallest convex polygon around all, in its order.

    Source: Andrew 1979, "Another efficient algorithm for convex hulls in two dimensions".

    >>> import torch
    >>> sorted(convex_hull(torch.tensor([[0.0, 0.0], [2.0, 0.0], [1.0, 1.0], [0.0, 2.0], [0.5, 0.5]])))
    [0, 1, 3]
    """
    places: list[list[float]] = points.double().tolist()
    order = sorted(range(len(places)), key=lambda i: places[i])
    if len(order) <= 2:
        return order

    def turn(a: int, b: int, c: int) -> float:
        (ax, ay), (bx, by), (cx, cy) = places[a], places[b], places[c]
        return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)

    def half(indices: list[int]) -> list[int]:
        chain: list[int] = []
        for i in indices:
            while len(chain) >= 2 and turn(chain[-2], chain[-1], i) <= 0:
                chain.pop()
            chain.append(i)
        return chain[:-1]

    return half(order) + half(order[::-1])


def inside_hull(points: Tensor, place: Tensor, slack: float = 1e-6) -> bool:
    """Whether a place, (2,), lies within the polygon of points, (n, 2), or on it.

    Args:
        slack: how far outside still counts, as a share of the points' extent.

    >>> import torch
    >>> triangle = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    >>> inside_hull(triangle, torch.tensor([0.5, 0.5])), inside_hull(triangle, torch.tensor([2.0, 2.0]))
    (True, False)
    """
    points, place = points.double(), place.double()
    corners = points[convex_hull(points)]
    size = float((points.amax(0) - points.amin(0)).norm()) or 1.0
    after = corners.roll(-1, 0)
    along, to = after - corners, place - corners
    lengths = along.norm(dim=1)
    if len(corners) < 3 or float(lengths.min()) == 0:  # a segment or a point: the distance to it
        a, b = corners[0], corners[-1]
        way = b - a
        share = ((place - a) @ way / way.square().sum()).clamp(0, 1) if bool((way != 0).any()) else 0.0
        return float((a + share * way - place).norm()) <= slack * size
    left = (along[:, 0] * to[:, 1] - along[:, 1] * to[:, 0]) / lengths  # the distance to the left of each edge
    return float(left.min()) >= -slack * size
