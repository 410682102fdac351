"""The recorded trainings: what ``python -m mha_core.toy_record`` wrote, read back as the same types as live ones."""

from __future__ import annotations

import functools
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from mha_core.toy_ablation import Ablations, heads_of, subsets
from mha_core.toy_files import from_safetensors
from mha_core.toy_report import Report
from mha_core.toy_roles import Roles
from mha_core.toy_tasks import Size
from mha_core.toy_training import Accuracy, Array, Point, Run, Trained

__all__ = ["Recording", "Result", "from_npz", "recorded", "recorded_model", "recorded_name", "to_npz"]


@dataclass(frozen=True)
class Result:
    """How one training ended, without how it went.

    Attributes:
        task: a key of TOY_TASKS.
        size: heads, layers, features.
        seed, steps: what it was trained with.
        accuracy: at the end, on EVALUATED_SEQUENCES.
    """

    task: str
    size: Size
    seed: int
    steps: int
    accuracy: Accuracy


@dataclass(frozen=True, eq=False)
class Recording:
    """Trainings that took place when the file was written.

    Attributes:
        reports: every size of every task, with one seed; weights in maps are rounded to 1/255.
        results: the same, more numbers of heads, several seeds.
        date: when, as year-month-day.
    """

    reports: tuple[Report, ...]
    results: tuple[Result, ...]
    date: str

    def report(self, task: str, size: Size) -> Report | None:
        """The recorded training of this task and size, if there is one."""
        found = (report for report in self.reports if (report.run.task, report.run.size) == (task, size))
        return next(found, None)

    def of(self, task: str, size: Size) -> tuple[Result, ...]:
        """How the trainings of this task and size ended, by seed."""
        return tuple(result for result in self.results if (result.task, result.size) == (task, size))


@functools.cache
def recorded() -> Recording:
    """The recording that comes with the package.

    >>> sorted({report.run.task for report in recorded().reports})
    ['control', 'copy', 'induction', 'recall']
    """
    return from_npz(resources.files("mha_core").joinpath("recorded", "toys.npz").read_bytes())


def recorded_name(task: str, size: Size) -> str:
    """How the weights of a recorded training are called: "copy-4x1" has 4 heads and 1 layer."""
    return f"{task}-{size.h}x{size.layers}"


@functools.cache
def recorded_model(name: str) -> Trained | None:
    """A recorded training with its weights, which come with the package for one size of every task.

    >>> trained = recorded_model("copy-4x1")
    >>> trained.run.size
    Size(h=4, layers=1, d_model=64)
    """
    if not re.fullmatch(r"[a-z]{1,20}-[0-9]{1,2}x[0-9]", name):
        return None
    file = resources.files("mha_core").joinpath("recorded", f"{name}.safetensors")
    return from_safetensors(file.read_bytes(), file.name) if file.is_file() else None


def to_npz(recording: Recording) -> bytes:
    """The recording as a compressed NPZ file."""
    told = {
        "date": recording.date,
        "reports": [_told(report) for report in recording.reports],
        "results": [[r.task, *_numbers(r.size), r.seed, r.steps] for r in recording.results],
    }
    arrays = {"results": _table([result.accuracy for result in recording.results])}
    for number, report in enumerate(recording.reports):
        arrays |= {f"{name}-{number}": array for name, array in _arrays(report).items()}
    file = io.BytesIO()
    np.savez_compressed(file, told=np.frombuffer(json.dumps(told).encode(), np.uint8), **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def from_npz(data: bytes) -> Recording:
    """What :func:`to_npz` wrote."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    for array in arrays.values():
        array.setflags(write=False)
    told = json.loads(arrays["told"].tobytes())
    reports = []
    for number, each in enumerate(told["reports"]):
        own = {name.partition("-")[0]: array for name, array in arrays.items() if name.endswith(f"-{number}")}
        reports.append(_report(each, own))
    results = [
        Result(task, Size(*size), seed, steps, _accuracy(row))
        for (task, *size, seed, steps), row in zip(told["results"], arrays["results"], strict=True)
    ]
    return Recording(tuple(reports), tuple(results), told["date"])


def _told(report: Report) -> dict[str, Any]:
    run = report.run
    return {
        "task": run.task,
        "size": _numbers(run.size),
        "seed": run.seed,
        "steps": run.steps,
        "parameters": run.parameters,
        "seconds": run.seconds,
        "versions": dict(run.versions),
        "point_steps": [point.step for point in run.points],
        "places": report.roles.places,
    }


def _arrays(report: Report) -> dict[str, Array]:
    run, roles = report.run, report.roles
    arrays = {
        "points": _table([point.accuracy for point in run.points]),
        "maps": np.rint(np.stack([point.maps for point in run.points]) * 255).astype(np.uint8),
        "end": _table([run.accuracy]),
        "probes": run.probes.astype(np.uint8),
        "mass": roles.mass.astype(np.float32),
        "divergence": roles.divergence.astype(np.float32),
        "movement": roles.movement.astype(np.float32),
    }
    if report.ablations is not None:
        arrays["ablations"] = _table(list(report.ablations.accuracies.values()))
    return arrays


def _report(told: Mapping[str, Any], arrays: Mapping[str, Array]) -> Report:
    size = Size(*told["size"])
    moments = zip(told["point_steps"], arrays["points"], arrays["maps"], strict=True)
    points = tuple(Point(step, _accuracy(row), _shares(maps)) for step, row, maps in moments)
    run = Run(
        told["task"],
        size,
        told["seed"],
        told["steps"],
        told["parameters"],
        points,
        _accuracy(arrays["end"][0]),
        arrays["probes"].astype(np.int64),
        told["seconds"],
        told["versions"],
    )
    tried = None
    if "ablations" in arrays:
        heads = heads_of(size)
        tried = Ablations(heads, dict(zip(subsets(heads), map(_accuracy, arrays["ablations"]), strict=True)))
    roles = Roles(tuple(told["places"]), arrays["mass"], arrays["divergence"], arrays["movement"])
    return Report(run, roles, tried, None)


def _numbers(size: Size) -> list[int]:
    return [size.h, size.layers, size.d_model]


def _table(accuracies: Sequence[Accuracy]) -> Array:
    most = max(len(accuracy.targets) for accuracy in accuracies)
    rows = [[a.joint, a.loss, *a.targets, *[np.nan] * (most - len(a.targets))] for a in accuracies]
    return np.array(rows, np.float32)  # (accuracies, 2 + targets)


def _accuracy(row: Array) -> Accuracy:
    joint, loss, *targets = row.tolist()
    return Accuracy(tuple(share for share in targets if not np.isnan(share)), joint, loss)


def _shares(maps: Array) -> Array:
    shares: Array = maps.astype(np.float32) / 255
    shares.setflags(write=False)
    return shares
