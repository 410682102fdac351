"""Train a toy task while someone watches: a generator of points, each a moment of the training."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import AdamW, Optimizer

from mha_core.errors import InputError
from mha_core.toy_model import ToyModel
from mha_core.toy_tasks import MAX_SEED, Batch, Size, ToyTask, stream

__all__ = [
    "BATCH", "CURVE_SEQUENCES", "EVALUATED_SEQUENCES", "MAX_SECONDS", "MAX_STEPS", "PROBES",
    "Accuracy", "Array", "Point", "Run", "Trained",
    "accuracy", "accuracy_of", "adamw", "evaluation_batch", "look_at", "point_count", "present_versions",
    "read_only", "train",
]  # fmt: skip

Array = np.ndarray[Any, Any]
"""A read-only NumPy array."""

BATCH = 64
"""Fresh sequences a step."""
CURVE_SEQUENCES = 128
"""Sequences that the points along the way are measured on, always the same ones of a seed."""
EVALUATED_SEQUENCES = 512
"""Sequences that the result is measured on."""
PROBES = 2
"""Sequences whose weights every point holds."""
MAX_STEPS = 2000
MAX_SECONDS = 60.0
"""Of this thread's CPU, for one training; the recipes take one or two."""
MAX_FEATURES = 256
MAX_HEADS = 64
MAX_LAYERS = 2


@dataclass(frozen=True)
class Accuracy:
    """Shares of right answers, at the positions that count.

    Attributes:
        targets: of each target.
        joint: of positions with all targets right.
        loss: the mean cross-entropy, in nats.
    """

    targets: tuple[float, ...]
    joint: float
    loss: float


@dataclass(frozen=True, eq=False)
class Point:
    """A moment of a training.

    Attributes:
        step: steps taken, from 0.
        accuracy: on CURVE_SEQUENCES.
        maps: weights on the probe sequences, float32, read-only, (probe, layer, head, query, key).
    """

    step: int
    accuracy: Accuracy
    maps: Array


@dataclass(frozen=True, eq=False)
class Run:
    """A training that is over, without its weights: what can be shown of it, live or recorded.

    Attributes:
        task: a key of TOY_TASKS.
        size: heads, layers, features.
        seed, steps: what it was trained with.
        parameters: how many numbers were learnt.
        points: along the way, from step 0 to the last.
        accuracy: at the end, on EVALUATED_SEQUENCES.
        probes: the probe sequences, (probe, n, parts).
        seconds: of CPU.
        versions: of what it was computed with, by name.
    """

    task: str
    size: Size
    seed: int
    steps: int
    parameters: int
    points: tuple[Point, ...]
    accuracy: Accuracy
    probes: Array
    seconds: float
    versions: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Trained:
    """A run and the model that came of it (in eval mode, without gradients)."""

    run: Run
    model: ToyModel


def adamw(parameters: Iterable[nn.Parameter]) -> Optimizer:
    """The recipe's optimizer: AdamW, learning rate 3e-3, no weight decay."""
    return AdamW(parameters, lr=3e-3, weight_decay=0)


def train(
    task: ToyTask,
    h: int,
    *,
    seed: int,
    steps: int | None = None,
    every: int = 10,
    layers: int | None = None,
    d_model: int | None = None,
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] = adamw,
    prepare: Callable[[ToyModel], object] | None = None,
    scale: float | None = None,
) -> Generator[Point, None, Trained]:
    """Train, and yield a point at step 0, every ``every`` steps and after the last one.

    Close the generator to cancel: nothing runs between two ``next``. Weights, fresh data and
    evaluation come from the seed, each from a generator of its own: the same seed gives the same
    numbers on the same machine, whatever else runs in the process. The tensors are small: call
    ``torch.set_num_threads(1)`` first, or threads that wait for each other make it many times slower.

    Args:
        task: a row of TOY_TASKS.
        h: heads in each layer, up to MAX_HEADS.
        seed: 0 … MAX_SEED.
        steps: 1 … MAX_STEPS; the task's own when None.
        every: steps between two points.
        layers: 1 or, in a task with residual, MAX_LAYERS; the recipe's when None.
        d_model: up to MAX_FEATURES; the task's own when None.
        optimizer: from the parameters; :func:`adamw` is the recipe's.
        prepare: called with the model before the first step, to start from other weights.
        scale: what the scores are multiplied by; 1/√d_k when None.

    Returns:
        The run and the model, as the generator's value (``StopIteration.value``).

    Raises:
        InputError: h, seed, steps, every, layers or d_model out of bounds (at once); MAX_SECONDS are over, or
            the loss is no longer finite (while it runs).
        ValueError: h does not divide d_model.

    >>> from mha_core.toy_tasks import task_named
    >>> [point.step for point in train(task_named("control"), h=1, seed=0, steps=25)]
    [0, 10, 20, 25]
    """
    size = Size(h, task.sizes[0].layers if layers is None else layers, task.d_model if d_model is None else d_model)
    steps = task.steps if steps is None else steps
    _check("seed", seed, 0, MAX_SEED)
    _check("steps", steps, 1, MAX_STEPS)
    _check("every", every, 1, MAX_STEPS)
    _check("h", h, 1, MAX_HEADS)
    _check("layers", size.layers, 1, MAX_LAYERS if task.layered else 1)
    _check("d_model", size.d_model, 1, MAX_FEATURES)
    model = ToyModel(task, size, seed, scale=scale)
    if prepare is not None:
        prepare(model)
    return _train(model, optimizer(model.parameters()), seed, steps, every)


def _train(model: ToyModel, optimizer: Optimizer, seed: int, steps: int, every: int) -> Generator[Point, None, Trained]:
    task, data = model.task, stream(seed, "data")
    curve = task.draw(stream(seed, "curve"), CURVE_SEQUENCES)
    points = []
    used = 0.0
    for step in range(steps + 1):
        began = time.thread_time()
        if step:
            _step(model, optimizer, task.draw(data, BATCH))
        point = None
        if step % every == 0 or step == steps:
            point = _point(model, curve, step)
            points.append(point)
        used += time.thread_time() - began
        if used > MAX_SECONDS:
            raise InputError("toy_time", most=f"{MAX_SECONDS:g}", step=step, steps=steps)
        if point is not None:
            yield point
    return look_at(model, seed=seed, steps=steps, points=points, seconds=used)


def look_at(
    model: ToyModel,
    *,
    seed: int,
    steps: int,
    points: Sequence[Point] = (),
    seconds: float = 0.0,
    versions: Mapping[str, str] | None = None,
) -> Trained:
    """Measure a model that was trained; from here on it is read only.

    Args:
        model: as it came out of the training.
        seed, steps: what it was trained with.
        points: along the way; only the last one, measured now, where there are none.
        seconds: of CPU that it took.
        versions: of what it was trained with; the present ones when None.

    Raises:
        InputError: the weights are so large that the scores overflow.
    """
    task = model.task
    model.requires_grad_(False)
    curve = task.draw(stream(seed, "curve"), CURVE_SEQUENCES)
    run = Run(
        task.key,
        model.size,
        seed,
        steps,
        model.parameter_count,
        tuple(points) or (_point(model, curve, steps),),
        accuracy(model, evaluation_batch(task, seed)),
        read_only(curve.tokens[:PROBES]),
        seconds,
        present_versions() if versions is None else versions,
    )
    return Trained(run, model)


def _step(model: ToyModel, optimizer: Optimizer, batch: Batch) -> None:
    logits = model(batch.tokens)[:, batch.where]  # (batch, counted, targets, classes)
    loss = cross_entropy(logits.flatten(0, -2), batch.answers.flatten())
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()


def _point(model: ToyModel, curve: Batch, step: int) -> Point:
    measured = accuracy(model, curve)
    if not math.isfinite(measured.loss):
        raise InputError("toy_diverged", step=step)
    return Point(step, measured, read_only(model.maps(curve.tokens[:PROBES])))


def read_only(tensor: Tensor) -> Array:
    """A copy that cannot be written to."""
    array: Array = tensor.numpy().copy()
    array.setflags(write=False)
    return array


def _check(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InputError("bound", name=name, value=value, low=low, high=high)


def point_count(steps: int, every: int) -> int:
    """How many points :func:`train` yields.

    >>> point_count(300, 10), point_count(25, 10)
    (31, 4)
    """
    return steps // every + 1 + (steps % every > 0)


def present_versions() -> dict[str, str]:
    """Of what the numbers depend on."""
    return {"python": platform.python_version(), "torch": torch.__version__}


def evaluation_batch(task: ToyTask, seed: int) -> Batch:
    """The EVALUATED_SEQUENCES sequences of a seed, none of which was trained on but by chance."""
    return task.draw(stream(seed, "evaluation"), EVALUATED_SEQUENCES)


def accuracy(model: ToyModel, batch: Batch) -> Accuracy:
    """How often the model is right on these sequences."""
    with torch.no_grad():
        logits = model(batch.tokens)[:, batch.where]  # (batch, counted, targets, classes)
    return accuracy_of(logits.movedim(-1, 0).contiguous(), batch.answers)


def accuracy_of(logits: Tensor, answers: Tensor) -> Accuracy:
    """The same from logits, (classes, batch, counted, targets), and answers, (batch, counted, targets).

    An answer is right if no other class has a larger logit. Classes come first because that makes
    the many ablations several times as fast.
    """
    chosen = logits.gather(0, answers.unsqueeze(0)).squeeze(0)  # (batch, counted, targets)
    right = chosen >= logits.amax(0)  # (batch, counted, targets)
    shares = right.float().mean((0, 1), dtype=torch.float64).tolist()
    joint = right.all(-1).float().mean(dtype=torch.float64).item()
    return Accuracy(tuple(shares), joint, (logits.logsumexp(0) - chosen).mean().item())
