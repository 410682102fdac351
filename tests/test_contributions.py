"""What heads bring: sizes, steps and sums against NumPy; ablation over seeds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_core.contributions import contribution_sizes, decimals_that_add_up, waterfall, without_heads
from tests.reference import Case, cases
from tests.seeds import mean_over_seeds, trace_of


@settings(max_examples=30, deadline=None, derandomize=True)
@given(cases(dtypes=(torch.float64,)))
def test_sizes_are_the_norms_of_what_loops_in_numpy_give(case: Case) -> None:
    trace = case.trace()
    for b, parts in enumerate(case.loops["head_contributions"]):
        np.testing.assert_allclose(contribution_sizes(trace, b).numpy(), np.linalg.norm(parts, axis=-1), atol=1e-9)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(cases(dtypes=(torch.float64,)), st.data())
def test_a_waterfall_steps_from_0_to_the_output(case: Case, data: st.DataObject) -> None:
    batch, n_q, d_model = case.X.shape
    b, query, feature = (data.draw(st.integers(0, size - 1)) for size in (batch, n_q, d_model))
    steps = waterfall(case.trace(), query, feature, b)
    bias = [] if case.module.W_O.bias is None else [case.module.W_O.bias[feature].item()]
    expected = [*case.loops["head_contributions"][b, :, query, feature], *bias]
    assert steps.values == pytest.approx(expected, abs=1e-9)
    assert steps.has_bias == bool(bias)
    assert steps.starts == (0.0, *steps.ends[:-1])
    assert steps.ends == pytest.approx(np.cumsum(expected), abs=1e-9)
    assert steps.ends[-1] == pytest.approx(steps.total, abs=1e-9)
    assert steps.total == pytest.approx(case.loops["output"][b, query, feature], abs=1e-9)


def adds_up(parts: list[float], total: float, decimals: int) -> bool:
    """As read off the screen."""
    return sum(Fraction(f"{part:.{decimals}f}") for part in parts) == Fraction(f"{total:.{decimals}f}")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.floats(-9, 9), min_size=1, max_size=17))
def test_decimals_are_the_fewest_that_add_up(parts: list[float]) -> None:
    total = math.fsum(parts)
    decimals = decimals_that_add_up(parts, total)
    fewer = range(2, 8 if decimals is None else decimals)
    assert not any(adds_up(parts, total, d) for d in fewer)
    assert decimals is None or adds_up(parts, total, decimals)


def test_decimals_by_hand() -> None:
    assert decimals_that_add_up([0.5, 0.25], 0.75) == 2
    assert decimals_that_add_up([0.125, 0.25, 0.333], 0.708) == 3
    assert decimals_that_add_up([0.004, 0.004], 0.008) == 3
    assert decimals_that_add_up([0.004, 0.004], 0.008, least=4) == 4
    assert decimals_that_add_up([1.0, 1.0], 3.0) is None
    assert decimals_that_add_up([-0.001, 0.0], -0.001) == 2  # "-0.00" is 0


@pytest.mark.parametrize(("h", "share"), [(1, 1.0), (2, 0.98), (4, 0.98), (8, 0.9), (16, 0.8)])
def test_most_waterfalls_of_random_heads_can_be_written_so_that_they_add_up(h: int, share: float) -> None:
    found = [waterfall(trace_of(6, 64, h, seed), seed % 6, seed % 64).decimals for seed in range(100)]
    assert sum(decimals is not None for decimals in found) >= share * 100


@pytest.mark.parametrize("h", [1, 2, 4, 8, 16])
def test_one_random_head_less_moves_the_output_by_one_over_root_h(h: int) -> None:
    def distance(seed: int) -> float:
        return without_heads(trace_of(10, 64, h, seed), [i != seed % h for i in range(h)]).distance

    assert mean_over_seeds(distance) == pytest.approx(1 / math.sqrt(h), rel=0.06)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(cases(dtypes=(torch.float64,)), st.data())
def test_the_output_of_some_heads_is_what_loops_in_numpy_give(case: Case, data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=case.module.h, max_size=case.module.h))
    found = without_heads(case.trace(), kept)
    bias = 0 if case.module.W_O.bias is None else case.module.W_O.bias.detach().numpy()
    parts = case.loops["head_contributions"]
    expected = sum((parts[:, i] for i in range(case.module.h) if kept[i]), np.zeros(case.X.shape)) + bias
    np.testing.assert_allclose(found.output.numpy(), expected, atol=1e-9)
    size = np.linalg.norm(case.loops["output"])
    if size > 1e-6:
        assert found.distance == pytest.approx(np.linalg.norm(expected - case.loops["output"]) / size, abs=1e-7)


def test_without_any_head_the_bias_remains() -> None:
    trace = trace_of(5, 8, 2, 0)
    assert without_heads(trace, [False, False]).output.abs().max() == 0
    assert without_heads(trace, [False, False]).distance == 1


def test_every_head_must_be_said_to_stay_or_go() -> None:
    with pytest.raises(ValueError, match="kept has 3 entries; give one for each of the h=2 heads"):
        without_heads(trace_of(3, 8, 2, 0), [True] * 3)
