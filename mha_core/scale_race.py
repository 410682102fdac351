"""Two models learn the same task from the same numbers: one divides its scores by √d_k, one does not.

The task is "recall" of TOY_TASKS with h = 2 and d_k = 64; entries of Q and K begin with variance 1,
as the random queries of :mod:`mha_core.random_queries`. Plain SGD, so that nothing makes up for
small gradients (Adam would divide each by its own size).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from mha_core.experiments import scale_for
from mha_core.saturation import DEAD, jacobian_norm
from mha_core.toy_model import ToyModel
from mha_core.toy_tasks import task_named
from mha_core.toy_training import evaluation_batch, train

__all__ = [
    "D_MODEL", "EVERY", "HEADS", "MEASURED_SEQUENCES", "RACERS", "RATE", "STEPS",
    "Lap", "first_at", "race", "unit_variance",
]  # fmt: skip

RACERS = ("sqrt", "one")
"""The divisors of ``experiments.DIVISORS`` that run."""
HEADS, D_MODEL = 2, 128
RATE, MOMENTUM = 0.1, 0.9
STEPS, EVERY = 300, 10
MEASURED_SEQUENCES = 64
"""Sequences that saturation is measured on: 768 queries."""
_STREAM = 4 * 10**8  # so that W_Q and W_K share no numbers with anything else of the seed


@dataclass(frozen=True)
class Lap:
    """A moment of both trainings.

    Attributes:
        step: steps that each has taken.
        right: for each of RACERS, the share of positions with all targets right.
        dead: for each of RACERS, the share of queries with ‖J‖ < DEAD, over both heads.
    """

    step: int
    right: Mapping[str, float]
    dead: Mapping[str, float]


def race(
    seed: int, *, rate: float = RATE, steps: int = STEPS, every: int = EVERY
) -> Generator[Lap, None, tuple[Lap, ...]]:
    """Train both, in turn from point to point, on the same sequences. Close the generator to cancel.

    Args:
        seed: of weights and data.
        rate: the learning rate of SGD with momentum .9.
        steps: of each model.
        every: steps between two laps.

    Raises:
        InputError: as :func:`mha_core.toy_training.train`.

    >>> [lap.step for lap in race(seed=0, steps=20)]
    [0, 10, 20]
    """
    task = task_named("recall")
    batch = evaluation_batch(task, seed)
    tokens = batch.tokens[:MEASURED_SEQUENCES]
    models: dict[str, ToyModel] = {}

    def prepared(divisor: str) -> Callable[[ToyModel], None]:
        def prepare(model: ToyModel) -> None:
            unit_variance(model, seed, variance=tokens.size(-1) + 1)  # X is so many embeddings, and a position
            models[divisor] = model

        return prepare

    def sgd(parameters: Iterable[nn.Parameter]) -> Optimizer:
        return SGD(parameters, lr=rate, momentum=MOMENTUM)

    runs = [
        train(
            task, HEADS, seed=seed, steps=steps, every=every, d_model=D_MODEL, optimizer=sgd,
            prepare=prepared(divisor), scale=scale_for(divisor, D_MODEL // HEADS),
        )
        for divisor in RACERS
    ]  # fmt: skip
    laps = []
    for points in zip(*runs, strict=True):
        right = {divisor: point.accuracy.joint for divisor, point in zip(RACERS, points, strict=True)}
        dead = {divisor: _dead(models[divisor], tokens, batch.where) for divisor in RACERS}
        laps.append(Lap(points[0].step, right, dead))
        yield laps[-1]
    return tuple(laps)


def unit_variance(model: ToyModel, seed: int, variance: float) -> None:
    """Fill W_Q and W_K so that entries of Q and K have variance 1; their biases are 0. In place.

    Args:
        variance: of the entries of X.
    """
    generator = torch.Generator().manual_seed(_STREAM + seed)
    with torch.no_grad():
        for attention in model.attentions:
            for linear in (attention.W_Q, attention.W_K):
                linear.weight.normal_(0, (variance * linear.in_features) ** -0.5, generator=generator)
                linear.bias.zero_()


def first_at(laps: Iterable[Lap], divisor: str, share: float = 0.99) -> int | None:
    """The first step of a lap with at least this share right; None where there is none."""
    return next((lap.step for lap in laps if lap.right[divisor] >= share), None)


def _dead(model: ToyModel, tokens: Tensor, where: Tensor) -> float:
    (trace,) = model.traces(tokens, keep=["masked_scores"])
    weights = trace["masked_scores"].value.double().softmax(-1)[:, :, where]  # (batch, h, counted, n)
    return (jacobian_norm(weights) < DEAD).double().mean().item()
