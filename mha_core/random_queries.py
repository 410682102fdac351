"""Thousands of random queries and keys: what √d_k is for, with d_k free of d_model.

q, k ~ N(0, 1) in each of d_k features, so that Var(q·k) = d_k. All divisors and all d_k look at the
same draws: d_k features are the first d_k of 512. What differs between two curves is the divisor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from mha_core.experiments import DIVISORS, scale_for
from mha_core.saturation import QUANTITIES, Saturation, saturation

__all__ = ["DRAWS", "D_KS", "MOST_D_K", "SHARES", "Curve", "Draws", "Sweep", "draw", "draws_for", "sweep"]

MOST_D_K = 512
D_KS = tuple(2**power for power in range(10))
"""1, 2, 4 … 512."""
DRAWS = 4000
SHARES = (0.10, 0.25, 0.50, 0.75, 0.90)
"""The quantiles that are kept."""
_KEYS = 64_000  # drawn at most: more keys a query, fewer queries
_TOGETHER = 2_000  # keys drawn at a time, 4 MB

Array = np.ndarray[Any, Any]


def draws_for(n: int) -> int:
    """How many queries are drawn with n keys each: 4000, fewer above 16 keys.

    >>> draws_for(16), draws_for(64)
    (4000, 1000)
    """
    return min(DRAWS, _KEYS // n)


@dataclass(frozen=True, eq=False)
class Draws:
    """The same queries and keys at one d_k, under each divisor.

    Attributes:
        raw_scores: q·k, (queries, n), float32.
        by_divisor: what the softmax makes of them, for each of ``experiments.DIVISORS``.
    """

    d_k: int
    raw_scores: Array
    by_divisor: Mapping[str, Saturation]

    def scores(self, divisor: str) -> Array:
        """(queries, n)"""
        scaled: Array = self.raw_scores * scale_for(divisor, self.d_k)
        return scaled

    @property
    def typical(self) -> int:
        """The query whose largest weight, unscaled, is the median one."""
        largest = self.by_divisor["one"].largest
        return int(np.argsort(largest, kind="stable")[len(largest) // 2])

    def weights(self, divisor: str, query: int) -> Array:
        """One query's weights, (n,)."""
        scores = torch.from_numpy(self.raw_scores[query]).double() * scale_for(divisor, self.d_k)
        weights: Array = scores.softmax(-1).numpy()
        return weights


@dataclass(frozen=True, eq=False)
class Curve:
    """One divisor along D_KS; arrays (len(D_KS),).

    Attributes:
        quantiles: for each of QUANTITIES, (len(SHARES), len(D_KS)).
        mean: for each of QUANTITIES.
        dead: the share of queries with ‖J‖ < DEAD.
    """

    quantiles: Mapping[str, Array]
    mean: Mapping[str, Array]
    dead: Array

    def median(self, quantity: str) -> Array:
        """Of one of QUANTITIES."""
        middle: Array = self.quantiles[quantity][SHARES.index(0.5)]
        return middle


@dataclass(frozen=True, eq=False)
class Sweep:
    """All divisors at all of D_KS."""

    n: int
    count: int
    seed: int
    at: Mapping[int, Draws]
    curves: Mapping[str, Curve]


def draw(n: int, d_ks: Sequence[int] = D_KS, *, count: int | None = None, seed: int = 0) -> dict[int, Draws]:
    """Random queries with n random keys each, at every d_k asked for.

    Args:
        n: keys of a query.
        d_ks: each from 1 to 512.
        count: queries; ``draws_for(n)`` when None.

    Raises:
        ValueError: no key, no query, or a d_k out of range.

    Source: Vaswani et al. 2017, section 3.2.1, footnote 4.

    >>> wide = draw(16, [512], count=100)[512].by_divisor
    >>> float(wide["one"].median("largest")) > 0.9 > 0.5 > float(wide["sqrt"].median("largest"))
    True
    """
    count = draws_for(n) if count is None else count
    if n < 1 or count < 1 or not all(1 <= d_k <= MOST_D_K for d_k in d_ks):
        raise ValueError(
            f"n={n}, count={count}, d_k={list(d_ks)}: draw a query and a key, with d_k from 1 to {MOST_D_K}"
        )
    parts: dict[int, list[tuple[Tensor, dict[str, Saturation]]]] = {d_k: [] for d_k in d_ks}
    for Q, K in _drawn(n, count, seed):
        for d_k in d_ks:
            keys = K[..., :d_k].contiguous()  # (queries, n, d_k)
            raw = Q[..., :d_k] @ keys.mT  # (queries, 1, n)
            scales = {divisor: scale_for(divisor, d_k) for divisor in DIVISORS}
            parts[d_k].append((raw[:, 0], {name: saturation(raw * by, keys, by) for name, by in scales.items()}))
    return {d_k: _joined(d_k, several) for d_k, several in parts.items()}


def sweep(n: int, *, count: int | None = None, seed: int = 0) -> Sweep:
    """All of D_KS, with curves along them.

    >>> curves = sweep(16, count=200).curves
    >>> bool(curves["one"].dead[-1] > 0.4), float(curves["sqrt"].dead[-1])
    (True, 0.0)
    """
    at = draw(n, D_KS, count=count, seed=seed)
    curves = {}
    for divisor in DIVISORS:
        along = [at[d_k].by_divisor[divisor] for d_k in D_KS]
        curves[divisor] = Curve(
            {name: np.stack([one.quantiles(name, SHARES) for one in along], 1) for name in QUANTITIES},
            {name: np.array([one.mean(name) for one in along]) for name in QUANTITIES},
            np.array([one.dead for one in along]),
        )
    return Sweep(n, len(at[1].raw_scores), seed, at, curves)


def _drawn(n: int, count: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Queries (some, 1, 512) and their keys (some, n, 512), until there are ``count``."""
    generator = Generator().manual_seed(seed)
    together = max(1, _TOGETHER // n)
    for start in range(0, count, together):
        some = min(together, count - start)
        Q = torch.randn(some, 1, MOST_D_K, generator=generator)
        yield Q, torch.randn(some, n, MOST_D_K, generator=generator)


def _joined(d_k: int, parts: list[tuple[Tensor, dict[str, Saturation]]]) -> Draws:
    raw = torch.cat([scores for scores, _ in parts])  # (queries, n)
    spread = raw.double().std(correction=0).item()
    by_divisor = {}
    for divisor in DIVISORS:
        arrays = [np.concatenate([each[divisor].of(name) for _, each in parts]) for name in QUANTITIES]
        by_divisor[divisor] = Saturation(spread * scale_for(divisor, d_k), *arrays)
    return Draws(d_k, raw.numpy(), by_divisor)
