"""Several trainings side by side: each is the one that it would have been alone, and is looked at in the end."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
import torch

from mha_core.toy_ablation import ablations
from mha_core.toy_report import MAX_COMPARED, Report, study
from mha_core.toy_roles import roles
from mha_core.toy_tasks import Size, task_named
from mha_core.toy_training import Trained, evaluation_batch, train


def finish(work: Generator[Any, None, Any]) -> tuple[list[Any], Any]:
    """What a generator yields, and what it returns."""
    points = []
    while True:
        try:
            points.append(next(work))
        except StopIteration as end:
            return points, end.value


def test_each_is_the_training_that_it_would_be_alone() -> None:
    task, sizes = task_named("copy"), (Size(1, 1, 64), Size(4, 1, 64), Size(16, 1, 64))
    moments, reports = finish(study(task, sizes, seed=4, steps=12, every=5))
    assert [moment.step for moment in moments] == [0, 5, 10, 12]
    for number, (size, report) in enumerate(zip(sizes, reports, strict=True)):
        assert isinstance(report, Report) and report.trained is not None
        points, alone = finish(train(task, size.h, seed=4, steps=12, every=5))
        assert isinstance(alone, Trained)
        assert report.run.size == size and report.run.accuracy == alone.run.accuracy
        weights = zip(report.trained.model.parameters(), alone.model.parameters(), strict=True)
        assert all(torch.equal(one, other) for one, other in weights)
        for moment, point, kept in zip(moments, points, report.run.points, strict=True):
            assert moment.points[number].accuracy == point.accuracy == kept.accuracy
            np.testing.assert_array_equal(moment.points[number].maps, point.maps)
        batch = evaluation_batch(task, 4)
        np.testing.assert_array_equal(report.roles.mass, roles(alone.model, batch).mass)
        if size.h == 16:  # 65536 subsets are too many
            assert report.ablations is None
        else:
            assert report.ablations is not None
            assert report.ablations.accuracies == ablations(alone.model, batch).accuracies


def test_sizes_of_several_layers_are_compared_too() -> None:
    task = task_named("induction")
    _, reports = finish(study(task, task.sizes, seed=0, steps=2))
    assert [report.run.size for report in reports] == list(task.sizes)
    assert [len(report.ablations.accuracies) for report in reports] == [4, 16, 2]


def test_closing_ends_all_of_them() -> None:
    task = task_named("control")
    work = study(task, task.sizes, seed=0)
    next(work)
    work.close()
    assert list(work) == []


@pytest.mark.parametrize("number", [0, MAX_COMPARED + 1])
def test_none_or_too_many_are_refused_at_once(number: int) -> None:
    with pytest.raises(ValueError, match=f"models={number} is outside 1 … 4"):
        study(task_named("copy"), [Size(4, 1, 64)] * number, seed=0)
