"""Several models learn one task side by side, point by point: which number of heads can do it?"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mha_core.toy_roles import Role, leading, mass_on_places
from mha_core.toy_tasks import Size, ToyTask, stream
from mha_core.toy_training import CURVE_SEQUENCES, PROBES, Array, Point, Trained, train

__all__ = ["Moment", "compare", "probe", "probe_roles"]


def probe(task: ToyTask, seed: int) -> Tensor:
    """The sequences whose weights every point holds: (probe, n, parts)."""
    return task.draw(stream(seed, "curve"), CURVE_SEQUENCES).tokens[:PROBES]


def probe_roles(task: ToyTask, seed: int, maps: Array) -> list[Role]:
    """What each head looks at most in these sequences, layer by layer.

    Args:
        maps: of a point, (probe, layer, head, query, key).
    """
    return leading(mass_on_places(torch.from_numpy(maps.copy()), task.places(probe(task, seed))))


@dataclass(frozen=True, eq=False)
class Moment:
    """One point of each of several trainings, at the same step.

    Attributes:
        points: in the order of the sizes.
    """

    points: tuple[Point, ...]

    @property
    def step(self) -> int:
        """Steps that each has taken."""
        return self.points[0].step


def compare(
    task: ToyTask, sizes: Sequence[Size], *, seed: int, steps: int | None = None, every: int = 10
) -> Generator[Moment, None, tuple[Trained, ...]]:
    """Train a model of each size, in turn from point to point; all see the same sequences.

    Close the generator to cancel. Each training is the one that :func:`mha_core.toy_training.train`
    does alone: the same numbers to the last digit.

    Args:
        task: a row of TOY_TASKS.
        sizes: heads, layers and features of each model.
        seed, steps, every: as in ``train``.

    Returns:
        The trained models in the order of the sizes, as the generator's value.

    Raises:
        InputError, ValueError: as ``train``.

    >>> from mha_core.toy_tasks import task_named
    >>> task = task_named("control")
    >>> [moment.step for moment in compare(task, task.sizes, seed=0, steps=20)]
    [0, 10, 20]
    """
    runs = [
        train(task, size.h, seed=seed, steps=steps, every=every, layers=size.layers, d_model=size.d_model)
        for size in sizes
    ]
    trained: list[Trained] = []
    try:
        while len(trained) < len(runs):
            points = []
            for run in runs:
                try:
                    points.append(next(run))
                except StopIteration as end:
                    trained.append(end.value)
            if points:
                yield Moment(tuple(points))
        return tuple(trained)
    finally:
        for run in runs:
            run.close()
