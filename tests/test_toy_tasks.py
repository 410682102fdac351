"""The tasks: every sequence says what its row promises, found again by loops."""

from __future__ import annotations

import itertools

import pytest
import torch

from mha_core.toy_tasks import TOY_TASKS, Batch, ToyTask, stream, task_named
from tests.trained import some


def rows(batch: Batch) -> list[tuple[list[list[int]], list[list[int]]]]:
    """Each sequence's symbols and targets, as lists."""
    return list(zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True))


@pytest.mark.parametrize("task", TOY_TASKS, ids=lambda task: task.key)
def test_every_row_draws_what_it_says(task: ToyTask) -> None:
    batch = task.draw(stream(0, "data"), 50)
    n, targets = task.n, len(task.targets)
    assert batch.tokens.shape[:2] == (50, n) and batch.targets.shape == (50, n, targets) and batch.where.shape == (n,)
    assert batch.tokens.min() >= 0 and batch.tokens.max() < task.symbols
    assert batch.answers.min() == 0 and batch.answers.max() == task.classes - 1
    assert batch.answers.shape == (50, int(batch.where.sum()), targets)
    assert len(batch.tokens.unique(dim=0)) == 50
    for name, cells in task.places(batch.tokens).items():
        assert cells.shape == (50, n, n) and cells.dtype == torch.bool and cells.any(), name
    assert all(size.d_model % size.h == 0 and 1 <= size.layers <= 2 for size in task.sizes)
    labels = {task.label(tuple(at)) for at in batch.tokens.flatten(0, 1).tolist()}
    assert len(labels) == len(batch.tokens.flatten(0, 1).unique(dim=0))  # different symbols, different labels
    assert task_named(task.key) is task


def test_the_same_seed_draws_the_same_and_every_purpose_its_own() -> None:
    task = task_named("copy")
    purposes = "weights", "data", "curve", "evaluation"
    draws = {
        (seed, purpose): task.draw(stream(seed, purpose), 20).tokens for seed in (0, 1, 9999) for purpose in purposes
    }
    assert torch.equal(draws[0, "data"], task.draw(stream(0, "data"), 20).tokens)
    for one, other in itertools.combinations(draws.values(), 2):
        assert not torch.equal(one, other)


def test_an_unknown_task_is_named() -> None:
    with pytest.raises(KeyError, match="no task 'T1'; the tasks are copy, recall, induction, control"):
        task_named("T1")


@pytest.mark.parametrize(("key", "offsets"), [("copy", (1, 2, 3, -1)), ("control", (1,))])
def test_copy_asks_for_the_token_at_each_offset(key: str, offsets: tuple[int, ...]) -> None:
    task, batch = some(key)
    assert (task.n, task.symbols, task.d_model, task.steps) == (12, 10, 64, 300)
    assert batch.where.all()
    for tokens, targets in rows(batch):
        for i in range(12):
            assert targets[i] == [tokens[(i - offset) % 12][0] for offset in offsets]
    for offset, cells in zip(offsets, task.places(batch.tokens).values(), strict=True):
        assert [cells[0, i].nonzero().tolist() for i in range(12)] == [[[(i - offset) % 12]] for i in range(12)]


def test_recall_asks_for_the_value_of_the_key_and_of_the_slot() -> None:
    task, batch = some("recall")
    assert (task.n, task.d_model, task.steps, task.targets) == (12, 64, 400, ("match", "slot"))
    assert batch.where.tolist() == [False] * 6 + [True] * 6
    places = task.places(batch.tokens)
    for number, (tokens, targets) in enumerate(rows(batch)):
        keys, values = zip(*tokens[:6], strict=True)
        assert len(set(keys)) == 6 and all(key < 12 <= value < 24 for key, value in tokens[:6])
        assert {key for key, _ in tokens[6:]} == set(keys) and {blank for _, blank in tokens[6:]} == {24}
        for i in range(6, 12):
            match, slot = keys.index(tokens[i][0]), i - 6
            assert targets[i] == [values[match] - 12, values[slot] - 12]
            assert places["match"][number, i].nonzero().tolist() == [[match]]
            assert places["slot"][number, i].nonzero().tolist() == [[slot]]
        assert not places["match"][number, :6].any() and not places["slot"][number, :6].any()
    assert [task.label((2, 15)), task.label((2, 24))] == ["c3", "c?"]


def test_induction_repeats_a_stretch_and_asks_for_the_next_token() -> None:
    task, batch = some("induction", 200)
    assert (task.n, task.symbols, task.d_model, task.steps) == (20, 16, 64, 250)
    assert batch.where.tolist() == [False] * 10 + [True] * 10
    places, periods = task.places(batch.tokens), set()
    for number, (tokens, targets) in enumerate(rows(batch)):
        (token, following) = ([at[0] for at in sequence] for sequence in (tokens, targets))
        period = next(p for p in range(1, 20) if all(token[i] == token[i - p] for i in range(p, 20)))
        periods.add(period)
        assert len(set(token[:period])) == period  # distinct
        assert following[:-1] == token[1:] and following[-1] == token[20 - period]
        for i in range(10, 20):
            earlier = [j for j in range(i) if token[j] == token[i]]
            assert places["same"][number, i].nonzero().flatten().tolist() == earlier
            assert places["after"][number, i].nonzero().flatten().tolist() == [j + 1 for j in earlier]
        for i in range(20):
            assert places["previous"][number, i].nonzero().flatten().tolist() == ([i - 1] if i else [])
    assert periods == {5, 6, 7, 8, 9, 10}
