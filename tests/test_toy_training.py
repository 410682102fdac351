"""Training: the recipes reach what LESSONS says, over three seeds; the same seed, the same numbers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from mha_core import toy_training
from mha_core.errors import InputError
from mha_core.toy_model import ToyModel
from mha_core.toy_tasks import Size, ToyTask, stream, task_named
from mha_core.toy_training import BATCH, EVALUATED_SEQUENCES, MAX_STEPS, adamw, evaluation_batch, point_count, train
from tests.trained import SEEDS, all_sizes, some, trained

RECIPES: list[tuple[str, int, int, Callable[[float], bool]]] = [
    ("copy", 4, 1, lambda joint: joint >= 0.99),
    ("copy", 1, 1, lambda joint: joint <= 0.05),
    ("recall", 2, 1, lambda joint: joint >= 0.99),
    ("recall", 1, 1, lambda joint: joint <= 0.35),
    ("induction", 1, 2, lambda joint: joint >= 0.99),
    ("induction", 1, 1, lambda joint: joint <= 0.6),
    ("control", 1, 1, lambda joint: joint >= 0.99),
    ("control", 4, 1, lambda joint: joint >= 0.99),
]


@pytest.mark.trains
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("key", "h", "layers", "holds"), RECIPES, ids=[f"{r[0]}-h{r[1]}-l{r[2]}" for r in RECIPES])
def test_the_recipe_ends_as_it_should(key: str, h: int, layers: int, holds: Callable[[float], bool], seed: int) -> None:
    run = trained(key, h, seed, layers).run
    print(f"{key} h={h} layers={layers} seed={seed}: {run.accuracy}, {run.seconds:.1f} s")
    assert holds(run.accuracy.joint), run.accuracy
    assert run.steps == task_named(key).steps


@pytest.mark.trains
@pytest.mark.parametrize(("key", "h"), [("copy", 4), ("copy", 1), ("recall", 1)])
def test_the_result_is_right_by_a_count_of_ones_own(key: str, h: int) -> None:
    done = trained(key, h, 0)
    batch = evaluation_batch(task_named(key), 0)
    assert len(batch.tokens) == EVALUATED_SEQUENCES == 512
    logits = done.model(batch.tokens)
    hits: list[list[bool]] = []
    for said, right in zip(logits.argmax(-1).tolist(), batch.targets.tolist(), strict=True):
        positions = range(12) if key == "copy" else range(6, 12)
        hits += [[a == b for a, b in zip(said[i], right[i], strict=True)] for i in positions]
    accuracy = done.run.accuracy
    assert accuracy.targets == pytest.approx(np.mean(hits, 0), abs=1e-9)
    assert accuracy.joint == pytest.approx(np.mean([all(hit) for hit in hits]), abs=1e-9)
    loss = cross_entropy(logits[:, batch.where].flatten(0, 2), batch.answers.flatten()).item()
    assert accuracy.loss == pytest.approx(loss, rel=1e-4, abs=1e-6)


def test_equal_parameters_for_every_h() -> None:
    counts: dict[str, set[int]] = {}
    for task, size in all_sizes():
        counts.setdefault(task.key, set()).add(ToyModel(task, size, 0).parameter_count)
    assert counts["copy"] == {20_648}
    assert len(counts["recall"]) == len(counts["control"]) == 1
    assert max(counts["induction"]) / min(counts["induction"]) < 1.03  # two layers of 64 beside one of 88


def test_sizes_of_one_seed_start_from_the_same_numbers() -> None:
    task = task_named("copy")
    one, many = (ToyModel(task, Size(h, 1, 64), seed=3).state_dict() for h in (1, 8))
    assert one.keys() == many.keys() and all(torch.equal(one[name], many[name]) for name in one)
    other = ToyModel(task, Size(1, 1, 64), seed=4).state_dict()
    assert not any(torch.equal(one[name], other[name]) for name in one)


def test_weights_start_as_pytorchs_own() -> None:
    model = ToyModel(task_named("recall"), Size(2, 1, 64), seed=0)
    assert model.symbols.weight.std().item() == pytest.approx(1, abs=0.05)
    assert model.positions.std().item() == pytest.approx(1, abs=0.1)
    for linear in (*model.attentions[0].children(), model.readout):
        assert isinstance(linear, torch.nn.Linear)
        for numbers in linear.parameters():
            assert numbers.abs().max() <= 1 / 8
        assert linear.weight.std().item() == pytest.approx(1 / 8 / 3**0.5, rel=0.05)


def test_logits_come_straight_from_attention_and_readout() -> None:
    for (task, batch), layers in ((some("copy"), 1), (some("induction"), 2)):
        model = ToyModel(task, Size(2, layers, 64), seed=0)
        X = model.symbols.weight[batch.tokens[..., 0]] + model.positions
        n = task.n
        forbidden = torch.ones(n, n, dtype=torch.bool).triu(1) if task.layered else None
        for attention in model.attentions:
            output, _ = attention.to_torch()(X, X, X, attn_mask=forbidden, need_weights=False)
            X = X + output if task.layered else output
        logits = (X @ model.readout.weight.T + model.readout.bias).unflatten(-1, (len(task.targets), task.classes))
        torch.testing.assert_close(model(batch.tokens), logits, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(model.traces(batch.tokens)[-1]["output"].value.shape, X.shape)
        maps = model.maps(batch.tokens)
        assert maps.shape == (40, layers, 2, n, n)
        torch.testing.assert_close(maps.sum(-1), torch.ones(40, layers, 2, n))
        if forbidden is not None:
            assert not maps[..., forbidden].any()


def take(task: ToyTask, h: int = 2, **options: object) -> list[dict[str, torch.Tensor]]:
    """The numbers of a model after 15 steps."""
    models: list[ToyModel] = []
    options = {"seed": 5, "steps": 15, **options}
    for _ in train(task, h, prepare=models.append, **options):  # type: ignore[arg-type]
        pass
    return [{name: value.clone() for name, value in models[0].state_dict().items()}]


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def test_the_same_seed_gives_the_same_numbers_whatever_else_is_drawn_or_shown() -> None:
    task = task_named("recall")
    before = torch.get_rng_state()
    (first,) = take(task)
    assert torch.equal(before, torch.get_rng_state())  # the global generator is not touched
    torch.manual_seed(1)
    (again,) = take(task)
    (often,) = take(task, every=1)
    (other,) = take(task, seed=6)
    assert same(first, again) and same(first, often) and not same(first, other)


def test_two_threads_do_not_disturb_one_another() -> None:
    task, found = task_named("copy"), {}
    (alone,) = take(task, steps=40)

    def work(name: int) -> None:
        (found[name],) = take(task, steps=40)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same(alone, found[0]) and same(alone, found[1])


def test_the_steps_are_those_of_a_loop_written_out() -> None:
    task = task_named("control")
    model = ToyModel(task, Size(2, 1, 64), seed=5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0)
    data = stream(5, "data")
    for _ in range(15):
        batch = task.draw(data, 64)
        loss = cross_entropy(model(batch.tokens).flatten(0, 2), batch.targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert BATCH == 64
    assert same(model.state_dict(), take(task)[0])


def test_points_come_at_their_steps_with_maps_of_the_probes() -> None:
    task = task_named("induction")
    points = list(train(task, 1, seed=0, steps=7, every=3))
    assert [point.step for point in points] == [0, 3, 6, 7]
    assert len(points) == point_count(7, 3) == 4
    for point in points:
        assert point.maps.shape == (2, 2, 1, 20, 20) and point.maps.dtype == np.float32
        assert not point.maps.flags.writeable
        np.testing.assert_allclose(point.maps.sum(-1), 1, rtol=1e-5)
    assert points[0].accuracy.loss == pytest.approx(np.log(16), abs=0.5)  # knows nothing yet
    assert points[-1].accuracy.loss < points[0].accuracy.loss
    model = ToyModel(task, Size(1, 2, 64), seed=0)
    assert points[0].accuracy == toy_training.accuracy(
        model, task.draw(stream(0, "curve"), toy_training.CURVE_SEQUENCES)
    )


def test_optimizer_scale_and_first_weights_can_be_others() -> None:
    task = task_named("recall")

    def sgd(parameters: object) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)  # type: ignore[arg-type]

    plain, by_sgd, unscaled = (take(task, **options)[0] for options in ({}, {"optimizer": sgd}, {"scale": 1.0}))
    assert not same(plain, by_sgd) and not same(plain, unscaled)
    assert isinstance(adamw([torch.nn.Parameter(torch.zeros(1))]), torch.optim.AdamW)


def test_closing_the_generator_ends_the_training() -> None:
    steps: list[int] = []

    class Counting(torch.optim.SGD):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            steps.append(1)

    training = train(task_named("copy"), 1, seed=0, optimizer=lambda parameters: Counting(parameters, lr=0.1))
    next(training), next(training)
    training.close()
    assert len(steps) == 10 and list(training) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"steps": MAX_STEPS + 1}, "steps=2001 is outside 1 … 2000; choose one in between"),
        ({"steps": 0}, "steps=0 is outside"),
        ({"every": 0}, "every=0 is outside"),
        ({"seed": -1}, "seed=-1 is outside 0 … 9999"),
        ({"d_model": 512}, "d_model=512 is outside 1 … 256"),
        ({"layers": 2}, "layers=2 is outside 1 … 1"),
        ({"h": 128}, "h=128 is outside 1 … 64"),
        ({"h": 5}, "d_model=64 is not divisible by h=5"),
    ],
)
def test_what_is_out_of_bounds_is_refused_at_once(options: dict[str, int], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        train(task_named("copy"), **{"h": 4, "seed": 0, **options})


def test_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy_training, "MAX_SECONDS", 0.05)
    began = time.thread_time()
    with pytest.raises(InputError, match=r"used 0.05 s of CPU at step \d+ of 2000; choose fewer steps"):
        list(train(task_named("copy"), 4, seed=0, steps=2000))
    assert time.thread_time() - began < 2


def test_a_training_that_diverges_says_so() -> None:
    with pytest.raises(InputError, match="no longer a finite number at step 10; choose a smaller learning rate"):
        list(train(task_named("copy"), 4, seed=0, optimizer=lambda p: torch.optim.SGD(p, lr=1e20)))
