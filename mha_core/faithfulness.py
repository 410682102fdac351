"""Can an attention map be believed? Other weights with the very same output.

A query's output is z = α V, with α ≥ 0 and Σ α = 1. The weights α + δ give the same z where δ V = 0,
and still sum to 1 where δ 1 = 0: where δ lies in null([V 1]ᵀ). How large that space is, and so how free
a head of a calculation is, :mod:`mha_core.freedom` tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

__all__ = ["Slide", "other_weights", "slide"]

Array = np.ndarray[Any, np.dtype[np.float64]]

_STREAM = 11 * 10**8
"""So that this case has nothing in common with the other random numbers of the same seed."""
MOST_CORNERS = 20_000


@dataclass(frozen=True, eq=False)
class Slide:
    """Weights, and others with the same output; all weights between the two have that output, too.

    Attributes:
        weights: of one query, (n,), float64.
        other: (n,); 0 or more, and of the same sum.
        values: (n, d_v).
    """

    weights: Array
    other: Array
    values: Array

    def at(self, part: float) -> Array:
        """The weights so far on the way, (n,): 0 for ``weights``, 1 for ``other``."""
        mixed: Array = (1 - part) * self.weights + part * self.other
        return mixed

    def output(self, part: float) -> Array:
        """z, (d_v,)."""
        return self.at(part) @ self.values

    def moved(self, part: float) -> float:
        """The largest |change| of the output: nothing but rounding."""
        return float(np.abs(self.output(part) - self.output(0)).max())

    def top(self, part: float) -> int:
        """The token with the largest weight, from 0."""
        return int(self.at(part).argmax())

    @property
    def turn(self) -> float:
        """From which part of the way on another token is on top than at its beginning; ∞ for never."""
        first = self.top(0)
        way = self.other - self.weights
        lead, closing = self.weights[first] - self.weights, way - way[first]
        parts = lead[closing > 0] / closing[closing > 0]
        return float(parts.min()) if len(parts) and parts.min() <= 1 else float("inf")

    @property
    def arrival(self) -> float:
        """From which part of the way on the token that ends on top is there; a third one may be on top before."""
        last = self.top(1)
        way = self.other - self.weights
        behind, gaining = self.weights - self.weights[last], way[last] - way
        return float((behind[behind > 0] / gaining[behind > 0]).max(initial=0.0))


def slide(seed: int = 0, n: int = 12, d_v: int = 3) -> Slide:
    """A case with much freedom: n keys, few features, and scores that do not differ much.

    Values are N(0, 1) and scores N(0, 1/4), in float64, by the seed.

    >>> case = slide()
    >>> case.top(0) != case.top(1), case.moved(1) < 1e-14
    (True, True)
    """
    generator = np.random.default_rng(_STREAM + seed)
    values, scores = generator.normal(size=(n, d_v)), generator.normal(scale=0.5, size=n)
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    return Slide(weights, other_weights(weights, values), values)


def other_weights(weights: Array, values: Array) -> Array:
    """Of all weights with the same output, those that give most to a token that is not on top now.

    That is a linear program for each token: maximise its weight where α ≥ 0 and [V 1]ᵀα is what it was. Where
    there is an optimum, a corner is one: weights of which at most d_v + 1 are not 0. A small program has so few
    corners, C(n, d_v + 1), that all can be looked at.

    Args:
        weights: (n,), at least 0, with the sum 1.
        values: (n, d_v), no d_v + 2 of which lie in one hyperplane (as random ones don't).

    Raises:
        ValueError: no freedom (n ≤ d_v + 1), or more than MOST_CORNERS corners.

    Source: that such weights exist, Brunner et al. 2020, section 3; that a corner is an optimum, Dantzig 1951.

    >>> other_weights(np.full(4, 0.25), np.array([[-1.0], [-0.5], [0.5], [1.0]])).round(3).tolist()
    [0.0, 0.667, 0.0, 0.333]
    """
    n, d_v = values.shape
    size = d_v + 1
    if n <= size:
        raise ValueError(f"n={n} weights have no freedom with d_v={d_v}; there must be more than d_v + 1 = {size}")
    if (count := comb(n, size)) > MOST_CORNERS:
        raise ValueError(f"n={n} and d_v={d_v} give {count} corners; choose sizes with at most {MOST_CORNERS}")
    corners = np.array(list(combinations(range(n), size)))  # (corners, d_v + 1)
    M = np.concatenate([values, np.ones((n, 1))], 1).T  # (d_v + 1, n)
    wanted = np.broadcast_to((M @ weights)[:, None], (len(corners), size, 1))
    solved = np.linalg.solve(M[:, corners].swapaxes(0, 1), wanted)[..., 0]  # (corners, d_v + 1)
    forbidden = np.any(solved < 0, axis=1, keepdims=True)  # (corners, 1)
    found = np.where((corners == weights.argmax()) | forbidden, -np.inf, solved)
    best = int(found.max(1).argmax())
    other = np.zeros(n)
    other[corners[best]] = solved[best]

    way = other - weights
    way -= np.linalg.pinv(M) @ (M @ way)  # what the solver's rounding left outside of the null space
    falling = way < 0
    share = min(1.0, float((weights[falling] / -way[falling]).min()))
    exact: Array = np.maximum(weights + share * way, 0.0)
    return exact
