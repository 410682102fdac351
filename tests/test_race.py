"""The race: every method computes the same, every cell is timed, and it ends. No time is asserted."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from mha_core.machine import devices, machine
from mha_core.race import METHODS, SWEEPS, Cell, Sweep, cells_of, race

SMALL = [Cell("cpu", 1, 6, ("h",)), Cell("cpu", 4, 6, ("h", "n"))]


def ticking(by: float) -> Callable[[], float]:
    """A clock that goes on by so many seconds whenever someone looks."""
    ticks = itertools.count()
    return lambda: next(ticks) * by


@pytest.mark.parametrize("method", METHODS)
def test_every_method_computes_the_same(method: str) -> None:
    torch.manual_seed(0)
    Q, K, V = torch.randn(3, 2, 4, 5, 3)
    expected = ((Q @ K.mT / 3**0.5).softmax(-1)) @ V
    assert torch.allclose(METHODS[method](Q, K, V), expected, atol=1e-6)
    assert torch.allclose(METHODS[method](Q, K, V), F.scaled_dot_product_attention(Q, K, V), atol=1e-6)


@pytest.mark.parametrize("device", devices())
def test_every_cell_is_a_point_with_median_spread_and_difference(device: str) -> None:
    cells = [replace(cell, device=device) for cell in SMALL]
    points = list(race(cells, d_model=8, most_rounds=5))
    assert [point.cell for point in points] == cells
    for point in points:
        assert set(point.median) == set(METHODS)
        assert all(0 < point.low[name] <= point.median[name] <= point.high[name] for name in METHODS)
        assert point.rounds == 5
        assert 0 <= point.difference < 1e-5


def test_a_wrong_method_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "loop", lambda Q, K, V: V)  # type: ignore[arg-type]
    (point,) = race(SMALL[1:], d_model=8, most_rounds=3)
    assert point.difference > 0.1


def test_the_methods_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    for name, method in list(METHODS.items()):

        def noted(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, name=name, method=method) -> torch.Tensor:  # type: ignore[no-untyped-def]
            called.append(name)
            return method(Q, K, V)

        monkeypatch.setitem(METHODS, name, noted)  # type: ignore[arg-type]
    list(race(SMALL[:1], d_model=8, most_rounds=6, clock=ticking(0.01)))
    timed = called[-18:]
    assert {frozenset(timed[i : i + 3]) for i in range(0, 18, 3)} == {frozenset(METHODS)}
    assert {timed[i] for i in range(0, 18, 3)} == set(METHODS)  # each is the first of a round, sometimes


def test_it_ends_in_time_and_says_what_it_left_out() -> None:
    running = race(SMALL * 50, d_model=8, seconds=3.0, seconds_a_cell=0.1, clock=ticking(0.05))
    points = []
    while True:
        try:
            points.append(next(running))
        except StopIteration as end:
            left = end.value
            break
    assert 0 < len(points) < 100
    assert len(points) + len(left) == 100
    assert all(point.rounds >= 3 for point in points)


def test_it_can_be_closed_between_two_points() -> None:
    running = race(SMALL, d_model=8, most_rounds=3)
    next(running)
    running.close()
    assert list(running) == []


def test_the_cells_are_those_of_the_sweeps_each_once_on_every_device() -> None:
    cells = cells_of(where=["cpu", "cuda"])
    assert len({(cell.device, cell.h, cell.n) for cell in cells}) == len(cells)
    for device, sweep in itertools.product(("cpu", "cuda"), SWEEPS):
        mine = [cell for cell in cells if cell.device == device and sweep.key in cell.sweeps]
        assert sorted(getattr(cell, sweep.key) for cell in mine) == list(sweep.values)
    assert {cell.device for cell in cells_of()} == set(devices())
    assert cells_of((Sweep("h", (2,), 8, 4),), ["cpu"]) == (Cell("cpu", 2, 4, ("h",)),)


def test_random_numbers_of_others_are_left_alone() -> None:
    torch.manual_seed(3)
    expected = torch.randn(4)
    torch.manual_seed(3)
    list(race(SMALL[:1], d_model=8, most_rounds=3))
    assert torch.equal(torch.randn(4), expected)


def test_the_machine_is_named() -> None:
    facts = machine()
    assert facts.device
    assert (facts.threads, facts.torch, facts.dtype) == (torch.get_num_threads(), torch.__version__, "float32")


def test_a_width_that_the_heads_do_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="not divisible by h=4"):
        next(race(SMALL, d_model=6))
