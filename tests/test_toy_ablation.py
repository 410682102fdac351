"""Heads taken away: what goes with them, for every subset; the shortcut against the long way."""

from __future__ import annotations

import itertools

import pytest
import torch

from mha_core.contributions import without_heads
from mha_core.toy_ablation import Ablations, ablations, heads_of, redundancy, subsets, without
from mha_core.toy_model import ToyModel
from mha_core.toy_tasks import Size, task_named
from mha_core.toy_training import Accuracy, accuracy, evaluation_batch
from tests.trained import SEEDS, reported, some, trained


@pytest.mark.trains
@pytest.mark.parametrize("seed", SEEDS)
def test_copy_with_four_heads_each_carries_one_target(seed: int) -> None:
    tried = reported("copy", 4, seed).ablations
    assert tried is not None
    lost = set()
    for head in range(4):
        left = tried.without((0, head)).targets
        (fallen,) = [target for target, share in enumerate(left) if share < 0.9]
        assert left[fallen] < 0.2  # chance is .1
        lost.add(fallen)
    assert lost == {0, 1, 2, 3}


@pytest.mark.trains
def test_every_subset_agrees_with_the_model_that_has_only_these_heads() -> None:
    done = trained("copy", 4, 0)
    batch = evaluation_batch(done.model.task, 0)
    tried = reported("copy", 4, 0).ablations
    assert tried is not None and len(tried.accuracies) == 16
    assert tried.without().joint == done.run.accuracy.joint
    for off in ([(0, 0)], [(0, 1), (0, 3)], list(tried.heads)):
        slow, fast = accuracy(without(done.model, off), batch), tried.without(*off)
        assert fast.targets == pytest.approx(slow.targets, abs=2e-4)  # a tie may fall either way
        assert fast.joint == pytest.approx(slow.joint, abs=2e-4)
        assert fast.loss == pytest.approx(slow.loss, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("size", [Size(4, 1, 24), Size(2, 2, 24)], ids=["one layer", "two layers"])
def test_the_residual_stays_when_heads_go(size: Size) -> None:
    task, batch = some("induction")
    model = ToyModel(task, size, seed=1)
    tried = ablations(model, batch)
    assert tried.heads == heads_of(size) and len(tried.heads) == 4
    for off in ([tried.heads[1]], [tried.heads[0], tried.heads[3]]):
        assert tried.without(*off).loss == pytest.approx(accuracy(without(model, off), batch).loss, rel=1e-5)
    with torch.no_grad():  # nothing is left but embeddings, biases and the readout
        X = model.embed(batch.tokens)
        for attention in model.attentions:
            X = X + attention.W_O.bias
        right = (model.read(X).argmax(-1) == batch.targets)[:, batch.where]
    assert tried.without(*tried.heads).joint == pytest.approx(right.double().mean().item(), abs=1e-6)


def test_a_head_that_is_off_is_a_head_output_of_zeros() -> None:
    task, batch = some("copy")
    model = ToyModel(task, Size(4, 1, 64), seed=0)
    (trace,) = model.traces(batch.tokens)
    kept = without_heads(trace, [True, False, True, False])
    logits = model.read(kept.output)
    torch.testing.assert_close(without(model, [(0, 1), (0, 3)])(batch.tokens), logits, rtol=1e-4, atol=1e-5)
    assert torch.equal(model(batch.tokens), ToyModel(task, Size(4, 1, 64), seed=0)(batch.tokens))  # a copy was changed


def test_a_head_that_is_not_there_is_named() -> None:
    model = ToyModel(task_named("copy"), Size(2, 1, 64), seed=0)
    for head in ((0, 2), (1, 0), (0, -1)):
        with pytest.raises(IndexError, match="heads 0 … 1"):
            without(model, [head])


def test_too_many_subsets_are_refused() -> None:
    task, batch = some("copy")
    with pytest.raises(ValueError, match=r"16 heads have 2\^16 subsets; at most 8"):
        ablations(ToyModel(task, Size(16, 1, 64), seed=0), batch)


def table(joint: dict[str, float]) -> Ablations:
    """Three heads a, b, c; the joint accuracy of those that are left."""
    heads = heads_of(Size(3, 1, 3))
    names = {"abc"[head]: (0, head) for head in range(3)}
    share = {frozenset(names[letter] for letter in left): value for left, value in joint.items()}
    return Ablations(heads, {some: Accuracy((share[some],), share[some], 0.0) for some in subsets(heads)})


def test_redundancy_is_read_off_the_table() -> None:
    # each can go alone but for c; a and b together can't, a and c can: the greedy order misses it
    tried = table({"abc": 1.0, "bc": 0.995, "ac": 0.999, "ab": 0.98, "a": 0.2, "b": 0.99, "c": 0.5, "": 0.1})
    found = redundancy(tried)
    assert found.alone == ((0, 0), (0, 1))
    assert found.best == (1.0, 0.999, 0.99, 0.1)
    assert (found.together, found.kept) == (2, ((0, 1),))
    assert found.order == ((0, 1), (0, 0), (0, 2)) and found.greedy == (1.0, 0.999, 0.5, 0.1)
    assert redundancy(tried, enough=0.9999).together == 0
    nothing = redundancy(tried, enough=1.1)
    assert (nothing.together, nothing.kept, nothing.alone) == (-1, tried.heads, ())


def test_subsets_are_all_and_each_once() -> None:
    heads = heads_of(Size(2, 2, 4))
    assert heads == ((0, 0), (0, 1), (1, 0), (1, 1))
    found = subsets(heads)
    assert len(found) == len(set(found)) == 16
    assert set(found) == {frozenset(itertools.compress(heads, bits)) for bits in itertools.product((0, 1), repeat=4)}


@pytest.mark.trains
def test_of_eight_heads_four_targets_need_at_least_four() -> None:
    tried = reported("copy", 8, 0).ablations
    assert tried is not None
    found = redundancy(tried)
    print(f"alone {len(found.alone)}, together {found.together}, best {found.best}")
    assert found.best[0] >= 0.99 and 1 <= found.together <= 4 and len(found.kept) == 8 - found.together
    assert found.best[5] < 0.5
    assert all(greedy <= best for greedy, best in zip(found.greedy, found.best, strict=True))
