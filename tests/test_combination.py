"""Heads switched off, one map for all, and one output number on paper."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
import torch

from mha_core import MultiHeadAttention
from mha_core.combination import move, output_by_hand, recombine
from mha_core.contributions import without_heads
from mha_core.inputs import POCKET
from mha_core.masks import causal
from mha_core.mistakes import averaged_heads
from mha_core.weights import randomize, set_pocket
from tests.seeds import mean_over_seeds, trace_of


def pocket(mask=None):
    module = set_pocket(MultiHeadAttention(POCKET.d_model, POCKET.h))
    return module.trace(POCKET.input(), mask=mask)


def test_nothing_changed_is_the_trace_itself() -> None:
    trace = trace_of(5, 16, 4, 0)
    assert recombine(trace) is trace
    assert recombine(trace, [True] * 4) is trace
    assert move(trace) == 0


@pytest.mark.parametrize("kept", [(True, False, True, True), (False, False, True, False), (False,) * 4])
def test_heads_switched_off_leave_the_sum(kept) -> None:
    trace = trace_of(5, 16, 4, 1)
    changed = recombine(trace, kept)
    expected = without_heads(trace, kept)
    torch.testing.assert_close(changed["output"].value, expected.output, atol=1e-6, rtol=0)
    assert move(trace, kept) == pytest.approx(expected.distance, abs=1e-6)
    for head in range(4):
        part = changed["head_contributions"].sel(head=head).value
        assert torch.equal(part, trace["head_contributions"].sel(head=head).value * kept[head])


@pytest.mark.parametrize("mask", [None, causal(5)])
def test_averaged_maps_are_the_mistake(mask) -> None:
    trace = trace_of(5, 16, 4, 2, mask)
    changed, mistake = recombine(trace, average=True), averaged_heads(trace)
    torch.testing.assert_close(changed["output"].value, mistake.wrong.value, atol=1e-6, rtol=0)
    assert move(trace, average=True) == pytest.approx(mistake.invariant_wrong, abs=1e-5)
    rows = changed["weights"].value.sum(-1)
    torch.testing.assert_close(rows, torch.ones_like(rows))


def test_averaging_random_maps_moves_the_output_by_about_60_percent() -> None:
    assert mean_over_seeds(lambda seed: move(trace_of(6, 16, 4, seed), average=True)) == pytest.approx(0.6, abs=0.06)


def test_one_head_has_nothing_to_average() -> None:
    assert move(trace_of(5, 16, 1, 0), average=True) < 1e-6


def test_the_changed_trace_explains_itself() -> None:
    changed = recombine(trace_of(5, 16, 4, 3), (True, False, True, True), average=True)
    for query in range(5):
        explained = changed.explain("output", query=query, feature=7)
        assert abs(explained.residual) < 1e-5
        assert explained.terms[1].product == 0
        assert explained.value == changed["output"].value[0, query, 7].item()


def test_the_trace_stays_as_it_was() -> None:
    trace = trace_of(5, 16, 4, 3)
    before = {name: trace[name].value.clone() for name in trace}
    recombine(trace, (True, False, True, True), average=True)
    assert all(torch.equal(before[name], trace[name].value) for name in before)


def test_as_many_as_there_are_heads() -> None:
    with pytest.raises(ValueError, match="kept has 3 entries; give one for each of the h=2 heads"):
        recombine(trace_of(3, 8, 2, 0), [True] * 3)


def fractions(text: str) -> list[Fraction]:
    return [Fraction(number) for number in re.findall(r"-?\d+\.\d+", text.replace("- ", "-").replace("+ ", ""))]


@pytest.mark.parametrize("mask", [None, causal(3)])
def test_on_the_pocket_example_every_number_is_exact_as_written(mask) -> None:
    trace = pocket(mask)
    for query in range(3):
        for feature in range(4):
            for head in range(2):
                found = output_by_hand(trace, head, query, feature)
                assert found.exact and found.adds_up
                d = found.decimals
                *parts, total = fractions(found.numbers())
                assert sum(parts) == total == Fraction(f"{trace['output'].value[0, query, feature].item():.{d}f}")
                products = [Fraction(f"{z:.{d}f}") * Fraction(f"{w:.{d}f}") for z, w in
                            (term.factors for term in found.head.terms)]  # fmt: skip
                assert sum(products) == parts[head]


@pytest.mark.parametrize("h", [1, 2, 4, 8, 16])
def test_elsewhere_the_parts_add_up_as_written_or_it_is_said_that_they_do_not(h) -> None:
    for seed in range(30):
        trace = trace_of(6, 64, h, seed)
        found = output_by_hand(trace, seed % h, seed % 6, seed)
        *parts, total = fractions(found.numbers())
        assert len(parts) == h
        assert not found.exact
        assert (sum(parts) == total) == found.adds_up
        assert (" = " in found.numbers()) == found.adds_up
        assert total == Fraction(f"{trace['output'].value[0, seed % 6, seed].item():.{found.decimals}f}")


def test_a_bias_is_one_more_part() -> None:
    module = randomize(MultiHeadAttention(16, 4), 0, with_bias=True)
    trace = module.trace(torch.randn(1, 5, 16, generator=torch.Generator().manual_seed(0)))
    found = output_by_hand(trace, 0, 2, 3)
    *parts, _ = fractions(found.numbers())
    assert found.has_bias and len(parts) == 5
    assert len(found.parts) == 4
