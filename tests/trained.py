"""Toy models that several tests look at, each trained once a test run: half a minute of CPU for all of them."""

from __future__ import annotations

import functools

from mha_core.toy_report import Report, report
from mha_core.toy_tasks import TOY_TASKS, Batch, Size, ToyTask, stream, task_named
from mha_core.toy_training import Trained, train

SEEDS = range(3)


def trained(key: str, h: int, seed: int, layers: int = 1) -> Trained:
    """By the recipe. One layer of the induction task is wider than two, for about equal parameters."""
    return _trained(key, h, seed, layers)


def reported(key: str, h: int, seed: int, layers: int = 1) -> Report:
    """The same, looked at."""
    return _reported(key, h, seed, layers)


@functools.cache
def _trained(key: str, h: int, seed: int, layers: int) -> Trained:
    task = task_named(key)
    (d_model,) = {size.d_model for size in task.sizes if size.layers == layers}
    training = train(task, h, seed=seed, layers=layers, d_model=d_model)
    while True:
        try:
            next(training)
        except StopIteration as end:
            result: Trained = end.value
            return result


@functools.cache
def _reported(key: str, h: int, seed: int, layers: int) -> Report:
    return report(_trained(key, h, seed, layers))


def some(key: str, number: int = 40, seed: int = 0) -> tuple[ToyTask, Batch]:
    """A task and sequences of it."""
    task = task_named(key)
    return task, task.draw(stream(seed, "evaluation"), number)


def all_sizes() -> list[tuple[ToyTask, Size]]:
    """Every size of every task."""
    return [(task, size) for task in TOY_TASKS for size in task.sizes]
