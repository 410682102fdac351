"""All that can be shown of a training that is over, live or recorded."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from mha_core.errors import InputError
from mha_core.toy_ablation import MAX_HEADS, Ablations, ablations
from mha_core.toy_compare import Moment, compare
from mha_core.toy_roles import Roles, roles
from mha_core.toy_tasks import Size, ToyTask
from mha_core.toy_training import Run, Trained, evaluation_batch

__all__ = ["MAX_COMPARED", "Report", "report", "study"]

MAX_COMPARED = 4
"""Models that are trained side by side."""


@dataclass(frozen=True, eq=False)
class Report:
    """A training, what became of its heads, and its model while there is one.

    Attributes:
        run: how it went; on recorded reports as well.
        roles: where each head looks, on the evaluation sequences.
        ablations: the accuracy without any of the heads, on the same; None for more than MAX_HEADS heads.
        trained: with the model; None where the report is a recorded one.
    """

    run: Run
    roles: Roles
    ablations: Ablations | None
    trained: Trained | None


def report(trained: Trained) -> Report:
    """Look at a trained model: half a second for 8 heads, much less for fewer."""
    model, run = trained.model, trained.run
    batch = evaluation_batch(model.task, run.seed)
    tried = ablations(model, batch) if run.size.h * run.size.layers <= MAX_HEADS else None
    return Report(run, roles(model, batch), tried, trained)


def study(
    task: ToyTask, sizes: Sequence[Size], *, seed: int, steps: int | None = None, every: int = 10
) -> Generator[Moment, None, tuple[Report, ...]]:
    """Train several sizes side by side, then look at what became of each.

    Args:
        task: a row of TOY_TASKS.
        sizes: up to MAX_COMPARED.
        seed, steps, every: as in :func:`~mha_core.toy_training.train`.

    Returns:
        The reports, as the generator's value.

    Raises:
        InputError, ValueError: more than MAX_COMPARED sizes, or none (at once); as ``train`` (at the first point).

    >>> from mha_core.toy_tasks import task_named
    >>> task = task_named("control")
    >>> [moment.step for moment in study(task, task.sizes, seed=0, steps=12)]
    [0, 10, 12]
    """
    if not 1 <= len(sizes) <= MAX_COMPARED:
        raise InputError("bound", name="models", value=len(sizes), low=1, high=MAX_COMPARED)
    return _study(compare(task, sizes, seed=seed, steps=steps, every=every))


def _study(
    moments: Generator[Moment, None, tuple[Trained, ...]],
) -> Generator[Moment, None, tuple[Report, ...]]:
    trained = yield from moments
    return tuple(report(each) for each in trained)
