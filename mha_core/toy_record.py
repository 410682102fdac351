"""Train everything that the app shows before anybody has trained: ``python -m mha_core.toy_record``.

Five minutes on one core. Writes mha_core/recorded/toys.npz and the weights of one size of every task
beside it. The numbers are of this machine's PyTorch; another one's may differ in the last digits, or where
a training is on the brink.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from mha_core.toy_files import to_safetensors
from mha_core.toy_recording import Recording, Result, recorded_name, to_npz
from mha_core.toy_report import report
from mha_core.toy_tasks import TOY_TASKS, Size, ToyTask
from mha_core.toy_training import Trained, train

__all__ = ["SEED", "SEEDS", "SWEEPS", "WEIGHTS", "record", "sizes_of"]

SEED = 0
"""Of the trainings that are recorded whole."""
SEEDS = range(5)
"""Of those of which only the end is recorded."""
SWEEPS = {"copy": (1, 2, 4, 8, 16, 32, 64), "recall": (1, 2, 4, 8, 16, 32, 64)}
"""Numbers of heads, down to d_k = 1."""
WEIGHTS = {"copy": Size(4, 1, 64), "recall": Size(2, 1, 64), "induction": Size(1, 2, 64), "control": Size(1, 1, 64)}
"""The size of each task whose weights are kept: the fewest heads that solve it."""


def sizes_of(task: ToyTask) -> tuple[Size, ...]:
    """The sizes of the recipe, then those of the sweep."""
    swept = [Size(h, 1, task.d_model) for h in SWEEPS.get(task.key, ())]
    return tuple(dict.fromkeys([*task.sizes, *swept]))


def record(today: str) -> tuple[Recording, tuple[Trained, ...]]:
    """Train all of it, and say how far it is: the recording, and the trainings whose weights are kept."""
    reports, results, kept = [], [], []
    for task, size, seed in _everything():
        trained = _train(task, size, seed)
        if seed == SEED and size in task.sizes:
            reports.append(report(trained))
            if WEIGHTS[task.key] == size:
                kept.append(trained)
        run = trained.run
        results.append(Result(run.task, run.size, run.seed, run.steps, run.accuracy))
        print(task.key, size, f"seed {seed}: joint {run.accuracy.joint:.3f}, {run.seconds:.1f} s", flush=True)
    return Recording(tuple(reports), tuple(results), today), tuple(kept)


def _everything() -> Iterator[tuple[ToyTask, Size, int]]:
    for task in TOY_TASKS:
        for size in sizes_of(task):
            for seed in SEEDS:
                yield task, size, seed


def _train(task: ToyTask, size: Size, seed: int) -> Trained:
    training = train(task, size.h, seed=seed, layers=size.layers, d_model=size.d_model)
    while True:
        try:
            next(training)
        except StopIteration as end:
            trained: Trained = end.value
            return trained


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "recorded"
    folder.mkdir(exist_ok=True)
    recording, kept = record(datetime.date.today().isoformat())
    (folder / "toys.npz").write_bytes(to_npz(recording))
    for trained in kept:
        name = recorded_name(trained.run.task, trained.run.size)
        (folder / f"{name}.safetensors").write_bytes(to_safetensors(trained))
    print(f"written to {folder}: " + ", ".join(f"{path.name} {path.stat().st_size}" for path in folder.iterdir()))
