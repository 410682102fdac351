"""The same heads computed three ways, timed here and now: one after the other, in one product, fused.

Times are a machine's, never a property of attention: whoever shows them names the device, the
threads and the spread. The three take turns within every cell, so that what slows the machine slows
all of them alike.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from mha_core.attention import attend
from mha_core.machine import devices, wait

__all__ = ["METHODS", "SWEEPS", "Cell", "Sweep", "Times", "cells_of", "race"]


def _loop(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    heads = range(Q.size(1))
    return torch.cat([attend(Q[:, i : i + 1], K[:, i : i + 1], V[:, i : i + 1]) for i in heads], 1)


def _fused(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    output: Tensor = F.scaled_dot_product_attention(Q, K, V)
    return output


METHODS: Mapping[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {"loop": _loop, "batched": attend, "fused": _fused}
"""From Q, K, V, (batch, h, n, d_k) each, to the heads' outputs: a Python loop over heads, one product
for all heads, and the kernel that never keeps the n × n maps (Dao et al. 2022)."""


@dataclass(frozen=True)
class Sweep:
    """One size grows, the others stay.

    Attributes:
        key: "h" or "n", the size that grows.
        values: which values it takes.
        h, n: the other one's value is taken from here.
    """

    key: str
    values: tuple[int, ...]
    h: int
    n: int


SWEEPS: tuple[Sweep, ...] = (
    Sweep("h", (1, 2, 4, 8, 16, 32), 8, 128),
    Sweep("n", (16, 32, 64, 128, 256, 512, 1024), 8, 128),
)


@dataclass(frozen=True)
class Cell:
    """What is timed at once: a device and sizes; "h" and "n" in ``sweeps`` say whose picture it belongs to."""

    device: str
    h: int
    n: int
    sweeps: tuple[str, ...]


@dataclass(frozen=True)
class Times:
    """What a cell took, in seconds a call.

    Attributes:
        median, low, high: by method; low and high are the quartiles.
        rounds: how often each method was timed.
        calls: how many calls one timing held, by method: short ones are timed together.
        difference: the largest difference between two methods' outputs.
    """

    cell: Cell
    median: Mapping[str, float]
    low: Mapping[str, float]
    high: Mapping[str, float]
    rounds: int
    calls: Mapping[str, int]
    difference: float


def cells_of(sweeps: Sequence[Sweep] = SWEEPS, where: Sequence[str] | None = None) -> tuple[Cell, ...]:
    """The cells of some sweeps on every device, each once, the cheap ones first.

    >>> sweeps = Sweep("h", (1, 8), 8, 4), Sweep("n", (2, 4), 8, 4)
    >>> [(cell.h, cell.n, cell.sweeps) for cell in cells_of(sweeps, ["cpu"])]
    [(1, 4, ('h',)), (8, 2, ('n',)), (8, 4, ('h', 'n'))]
    """
    found: dict[tuple[str, int, int], tuple[str, ...]] = {}
    for device in devices() if where is None else where:
        for sweep in sweeps:
            for value in sweep.values:
                h, n = (value, sweep.n) if sweep.key == "h" else (sweep.h, value)
                found[device, h, n] = (*found.get((device, h, n), ()), sweep.key)
    cells = [Cell(device, h, n, keys) for (device, h, n), keys in found.items()]
    return tuple(sorted(cells, key=lambda cell: (cell.h * cell.n**2, cell.h)))


def race(
    cells: Sequence[Cell],
    *,
    d_model: int = 256,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    seconds: float = 20.0,
    seconds_a_cell: float = 1.2,
    most_rounds: int = 40,
    clock: Callable[[], float] = time.perf_counter,
) -> Generator[Times, None, tuple[Cell, ...]]:
    """Time every cell, a point a cell: Q, K, V random, d_k = d_model / h, so that FLOPs don't depend on h.

    Args:
        seconds: no cell begins later than this after the start.
        seconds_a_cell: rounds end after this, or after ``most_rounds``; there are at least three.
        clock: seconds, such as ``time.perf_counter``.

    Returns:
        The cells that were left out because the time was over.

    Raises:
        ValueError: h of a cell does not divide d_model.

    >>> (times,) = race([Cell("cpu", 2, 4, ("h",))], d_model=8, most_rounds=3)
    >>> sorted(times.median), times.rounds, times.difference < 1e-5
    (['batched', 'fused', 'loop'], 3, True)
    """
    for cell in cells:
        if d_model % cell.h:
            raise ValueError(f"d_model={d_model} is not divisible by h={cell.h}; choose another d_model or h")
    over = clock() + seconds
    for number, cell in enumerate(cells):
        if clock() > over:
            return tuple(cells[number:])
        yield _time_cell(cell, d_model, dtype, seed, seconds_a_cell, most_rounds, clock)
    return ()


@torch.no_grad()
def _time_cell(
    cell: Cell,
    d_model: int,
    dtype: torch.dtype,
    seed: int,
    seconds: float,
    most_rounds: int,
    clock: Callable[[], float],
) -> Times:
    generator = torch.Generator().manual_seed(seed)
    shape = (3, 1, cell.h, cell.n, d_model // cell.h)
    Q, K, V = torch.randn(shape, generator=generator).to(cell.device, dtype)  # (1, h, n, d_k) each

    def once(name: str, calls: int = 1) -> float:
        wait(cell.device)
        start = clock()
        for _ in range(calls):
            METHODS[name](Q, K, V)
        wait(cell.device)
        return (clock() - start) / calls

    outputs = {name: method(Q, K, V).float().cpu() for name, method in METHODS.items()}  # the first warm-up as well
    difference = max((a - b).abs().max().item() for a, b in itertools.combinations(outputs.values(), 2))
    calls = {name: max(1, min(200, round(_AT_LEAST / max(once(name, 3), 1e-7)))) for name in METHODS}
    taken: dict[str, list[float]] = {name: [] for name in METHODS}
    order, end, rounds = list(METHODS), clock() + seconds, 0
    while rounds < most_rounds and (rounds < _FEWEST or clock() < end):
        order = order[1:] + order[:1]  # who comes first changes from round to round
        for name in order:
            taken[name].append(once(name, calls[name]))
        rounds += 1
    low, median, high = (
        {name: float(np.quantile(each, share)) for name, each in taken.items()} for share in (0.25, 0.5, 0.75)
    )
    return Times(cell, median, low, high, rounds, calls, difference)


_AT_LEAST = 1e-3  # seconds that one timing should hold
_FEWEST = 3  # rounds
