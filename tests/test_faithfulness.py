"""Weights that slide: an exact optimum by its certificate, an output that stays, weights that stay weights."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mha_core.faithfulness import other_weights, slide

SEEDS = range(25)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_output_stays_while_the_top_changes(seed: int) -> None:
    case = slide(seed)
    assert case.values.shape == (12, 3) and case.weights.dtype == np.float64
    for percent in range(101):
        weights = case.at(percent / 100)
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(1, abs=1e-14)
        assert np.abs(weights @ case.values - case.weights @ case.values).max() < 1e-14
        assert case.moved(percent / 100) < 1e-14
    assert np.array_equal(case.at(0), case.weights)
    assert case.top(0) == case.weights.argmax() != case.other.argmax() == case.top(1)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_turn_is_where_another_key_takes_over(seed: int) -> None:
    case = slide(seed)
    assert 0 < case.turn < 1
    assert case.top(case.turn - 1e-9) == case.top(0) != case.top(case.turn + 1e-9)


@pytest.mark.parametrize("seed", [*SEEDS, 13, 27, 31])
def test_who_ends_on_top_may_arrive_later_than_another(seed: int) -> None:
    """13, 27 and 31: a third key takes over first."""
    case = slide(seed)
    assert case.turn <= case.arrival <= 1
    assert case.top(case.arrival + 1e-9) == case.top(1) != case.top(case.arrival - 1e-9)
    assert (case.arrival > case.turn) == (case.top(case.turn + 1e-9) != case.top(1))


def test_weights_come_from_shallow_scores_by_the_seed() -> None:
    scores = np.concatenate([np.log(slide(seed).weights) for seed in range(300)]).reshape(300, 12)
    spread = (scores - scores.mean(1, keepdims=True)).std(ddof=1) * np.sqrt(12 / 11)
    assert spread == pytest.approx(0.5, abs=0.03)
    assert np.array_equal(slide(4).other, slide(4).other) and not np.array_equal(slide(4).values, slide(5).values)


@pytest.mark.parametrize("seed", range(12))
def test_the_other_weights_are_an_optimum_by_the_dual(seed: int) -> None:
    """For the key k on top there: y with yᵀM ≥ e_k proves α_k ≤ yᵀb for all allowed α; here yᵀb is reached."""
    case = slide(seed)
    M = np.vstack([case.values.T, np.ones(12)])
    b = M @ case.weights
    best = 0.0
    for key in set(range(12)) - {case.top(0)}:
        bounds = [
            y @ b
            for basis in combinations(range(12), 4)
            if ((y := np.linalg.solve(M[:, basis].T, np.eye(12)[key][list(basis)])) @ M >= np.eye(12)[key] - 1e-9).all()
        ]
        best = max(best, min(bounds))
    assert case.other.max() == pytest.approx(best, abs=1e-9)


def test_by_hand() -> None:
    """Four keys at −1, −½, ½, 1 with the mean 0: key 2 (at −½) gets most together with key 4: 2/3 and 1/3."""
    other = other_weights(np.full(4, 0.25), np.array([[-1.0], [-0.5], [0.5], [1.0]]))
    np.testing.assert_allclose(other, [0, 2 / 3, 0, 1 / 3], atol=1e-15)


def test_what_cannot_be_done_is_named() -> None:
    with pytest.raises(ValueError, match="no freedom with d_v=3"):
        other_weights(np.full(4, 0.25), np.random.default_rng(0).normal(size=(4, 3)))
    with pytest.raises(ValueError, match="76904685 corners; choose sizes"):
        other_weights(np.full(40, 1 / 40), np.random.default_rng(0).normal(size=(40, 7)))
