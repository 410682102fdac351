"""The recording: whole, small, and reproduced."""

from __future__ import annotations

import math
from importlib import resources

import numpy as np
import pytest

from mha_core.toy_ablation import redundancy
from mha_core.toy_record import SEED, SEEDS, WEIGHTS, sizes_of
from mha_core.toy_recording import Recording, Result, from_npz, recorded, recorded_model, recorded_name, to_npz
from mha_core.toy_report import Report
from mha_core.toy_tasks import TOY_TASKS, Size
from mha_core.toy_training import point_count
from tests.trained import reported

TASKS_AND_SIZES = [(task, size) for task in TOY_TASKS for size in task.sizes]


def test_the_recording_is_small() -> None:
    assert resources.files("mha_core").joinpath("recorded", "toys.npz").stat().st_size < 300_000  # type: ignore[attr-defined]


@pytest.mark.parametrize(("task", "size"), TASKS_AND_SIZES, ids=lambda x: getattr(x, "key", str(x)))
def test_every_size_of_every_task_is_there(task: object, size: Size) -> None:
    from mha_core.toy_tasks import ToyTask

    assert isinstance(task, ToyTask)
    report = recorded().report(task.key, size)
    assert report is not None and report.trained is None
    run, roles = report.run, report.roles
    assert (run.task, run.size, run.seed, run.steps) == (task.key, size, SEED, task.steps)
    assert [point.step for point in run.points] == list(range(0, task.steps + 1, 10))
    assert len(run.points) == point_count(task.steps, 10)
    assert run.versions.keys() == {"python", "torch"} and run.seconds > 0
    heads = size.layers, size.h
    for point in run.points:
        assert point.maps.shape == (2, *heads, task.n, task.n) and not point.maps.flags.writeable
        np.testing.assert_allclose(point.maps.sum(-1), 1, atol=task.n * 0.5 / 255)
        assert len(point.accuracy.targets) == len(task.targets)
    assert run.probes.shape[:2] == (2, task.n)
    assert roles.mass.shape == (*heads, len(roles.places)) and roles.divergence.shape == (*heads, size.h)
    assert roles.movement.shape == heads
    assert report.ablations is not None and len(report.ablations.accuracies) == 2 ** (size.h * size.layers)
    full = report.ablations.without()
    assert full.targets == pytest.approx(run.accuracy.targets, abs=2e-4)
    assert redundancy(report.ablations).best[0] == full.joint


def test_every_seed_and_number_of_heads_is_there() -> None:
    for task in TOY_TASKS:
        for size in sizes_of(task):
            results = recorded().of(task.key, size)
            assert [result.seed for result in results] == list(SEEDS)
            assert all(len(result.accuracy.targets) == len(task.targets) for result in results)
    assert {size.d_model // size.h for size in sizes_of(TOY_TASKS[0])} == {64, 32, 16, 8, 4, 2, 1}
    assert recorded().report("copy", Size(64, 1, 64)) is None and recorded().of("copy", Size(3, 1, 64)) == ()


def test_the_weights_of_one_size_of_every_task_belong_to_its_recording() -> None:
    assert WEIGHTS.keys() == {task.key for task in TOY_TASKS}
    for key, size in WEIGHTS.items():
        trained, report = recorded_model(recorded_name(key, size)), recorded().report(key, size)
        assert trained is not None and report is not None
        assert (trained.run.seed, trained.run.steps) == (report.run.seed, report.run.steps)
        assert trained.run.accuracy.joint == pytest.approx(report.run.accuracy.joint, abs=0.01)
        last = report.run.points[-1].maps
        np.testing.assert_allclose(trained.run.points[0].maps, last, atol=0.5 / 255 + 1e-3)
    for name in ("copy-8x1", "copy-4x2", "", "../copy-4x1", "x" * 99):
        assert recorded_model(name) is None


def test_what_is_recorded_is_what_lessons_say() -> None:
    def joints(task: str, *size: int) -> list[float]:
        return [result.accuracy.joint for result in recorded().of(task, Size(*size))]

    assert max(joints("copy", 1, 1, 64)) <= 0.05 and min(joints("copy", 4, 1, 64)) >= 0.99
    assert max(joints("copy", 2, 1, 64)) < 0.9
    assert max(joints("recall", 1, 1, 64)) <= 0.35 and min(joints("recall", 2, 1, 64)) >= 0.99
    assert min(joints("induction", 1, 2, 64)) >= 0.99 and max(joints("induction", 1, 1, 88)) <= 0.6
    assert 0.6 < np.median(joints("induction", 4, 1, 88)) < 0.99
    assert min(joints("control", 1, 1, 64)) >= 0.99 and min(joints("control", 4, 1, 64)) >= 0.99


def close(live: Report, old: Report) -> None:
    """The end of a training that succeeds is the same on every machine, the way there nearly."""
    assert (live.run.task, live.run.size, live.run.seed) == (old.run.task, old.run.size, old.run.seed)
    assert live.run.parameters == old.run.parameters
    assert (live.run.probes == old.run.probes).all()
    assert live.run.accuracy.joint == pytest.approx(old.run.accuracy.joint, abs=0.02)
    first, last = (0, -1)
    np.testing.assert_allclose(live.run.points[first].maps, old.run.points[first].maps, atol=0.5 / 255 + 1e-4)
    np.testing.assert_allclose(live.run.points[last].maps, old.run.points[last].maps, atol=0.15)
    np.testing.assert_allclose(live.roles.mass, old.roles.mass, atol=0.05)
    apart = [
        abs(a.accuracy.joint - b.accuracy.joint) for a, b in zip(live.run.points, old.run.points, strict=True)
    ]  # fmt: skip
    assert np.median(apart) < 0.02


@pytest.mark.trains
@pytest.mark.parametrize(("key", "h", "layers"), [("copy", 4, 1), ("recall", 2, 1), ("induction", 1, 2)])
def test_a_sample_is_reproduced(key: str, h: int, layers: int) -> None:
    old = recorded().report(key, Size(h, layers, 64))
    assert old is not None
    close(reported(key, h, SEED, layers), old)


@pytest.mark.trains
def test_what_is_written_is_read() -> None:
    old = [reported("copy", 4, 0), reported("control", 1, 0)]
    results = [Result(r.run.task, r.run.size, 0, r.run.steps, r.run.accuracy) for r in old]
    read = from_npz(to_npz(Recording(tuple(old), tuple(results), "2026-11-29")))
    assert read.date == "2026-11-29"
    for before, after in zip(old, read.reports, strict=True):
        close(before, after)
        assert after.run.versions == before.run.versions and after.run.seconds == before.run.seconds
        for one, other in zip(before.run.points, after.run.points, strict=True):
            assert one.step == other.step and np.abs(one.maps - other.maps).max() <= 0.5 / 255 + 1e-6
            assert other.accuracy.targets == pytest.approx(one.accuracy.targets, abs=1e-6)
        assert before.ablations is not None and after.ablations is not None
        for some, accuracy in before.ablations.accuracies.items():
            assert after.ablations.accuracies[some].targets == pytest.approx(accuracy.targets, abs=1e-6)
        np.testing.assert_array_equal(before.roles.divergence, after.roles.divergence)
        np.testing.assert_array_equal(before.roles.movement, after.roles.movement)
    for one, other in zip(results, read.results, strict=True):
        assert (one.task, one.size, one.seed) == (other.task, other.size, other.seed)
        assert other.accuracy.joint == pytest.approx(one.accuracy.joint, abs=1e-6)
        assert len(other.accuracy.targets) == len(one.accuracy.targets) and not math.isnan(other.accuracy.joint)
