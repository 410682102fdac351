"""Order: what follows its token and what does not, against the permutation itself and torch.nn.MultiheadAttention."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mha_core import AttentionTrace, MultiHeadAttention, masks
from mha_core.inputs import POCKET, content_size, embed, positions, random_input, tokenize
from mha_core.order import CASES, compare, order_cases
from mha_core.reorder import REORDERS, Way, parts, reorder
from mha_core.weights import design, randomize, set_pocket

SENTENCE = tokenize("The cat sat on the mat because it was tired")
ORDER = (2, 9, 1, 7, 6, 8, 4, 5, 0, 3)


def designed(h: int = 4, mask: Tensor | None = None, *, with_positions: bool = True) -> AttentionTrace:
    module = MultiHeadAttention(64, h)
    design(module, seed=0)
    with torch.no_grad():
        return module.trace(embed(SENTENCE, 64, with_positions=with_positions), mask=mask)


def at_random(n: int, d_model: int, h: int, seed: int = 0, mask: Tensor | None = None) -> AttentionTrace:
    module = randomize(MultiHeadAttention(d_model, h), seed, with_bias=True)
    with torch.no_grad():
        return module.trace(random_input(n, d_model, seed), mask=mask)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from(REORDERS), st.integers(2, 40), st.integers(0, 99), st.data())
def test_a_new_order_is_a_permutation_and_another_one(way: Way, n: int, seed: int, data: st.DataObject) -> None:
    token = data.draw(st.integers(0, n - 1))
    order = reorder(way, n, seed=seed, token=token)
    assert sorted(order) == list(range(n))
    moved = [i for i in range(n) if order[i] != i]
    if way == "shuffle":
        assert len(moved) == n
    elif way == "swap":
        assert len(moved) == 2 and token in moved and moved[1] == moved[0] + 1
    else:
        assert order == tuple(range(n - 1, -1, -1))
    assert order == reorder(way, n, seed=seed, token=token)


def test_one_token_stays_and_what_there_is_not_is_named() -> None:
    assert all(reorder(way, 1) == (0,) for way in REORDERS)
    with pytest.raises(IndexError, match="token=3"):
        reorder("swap", 3, token=3)
    with pytest.raises(KeyError, match="shuffle, swap, reverse"):
        reorder("sort", 3)  # type: ignore[arg-type]
    trace = designed()
    with pytest.raises(ValueError, match="no permutation"):
        compare(trace, (0, 0, *range(2, 10)), parts(trace["X"].value, embedded=True))


def test_a_shuffle_leaves_the_global_generator_alone() -> None:
    state = torch.random.get_rng_state()
    reorder("shuffle", 50, seed=3)
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize("with_positions", [True, False])
@pytest.mark.parametrize("d_model", [4, 6, 7, 64, 509])
def test_words_split_into_contents_and_places(d_model: int, with_positions: bool) -> None:
    split = parts(embed(SENTENCE, d_model, with_positions=with_positions), embedded=True)
    size = content_size(d_model)
    assert torch.equal(split.content, embed(SENTENCE, d_model, with_positions=False))
    assert torch.equal(split.content + split.places, embed(SENTENCE, d_model))
    assert not split.places[..., :size].any()
    assert split.own


def test_other_inputs_have_no_places_of_their_own() -> None:
    X = random_input(6, 8, seed=1)
    split = parts(X, embedded=False)
    assert torch.equal(split.content, X) and torch.equal(split.places[0], positions(6, 8)) and not split.own


@pytest.mark.parametrize("trace", [designed(), designed(16), designed(1)], ids=["h=4", "h=16", "h=1"])
def test_designed_outputs_follow_without_positions_and_mask_only(trace: AttentionTrace) -> None:
    found = order_cases(trace, ORDER, embedded=True)
    assert list(found) == ["none", "positions", "causal"]
    assert [each.placed for each in found.values()] == [False, True, False]
    assert [bool(each.forbidden.any()) for each in found.values()] == [False, False, True]
    assert found["none"].largest <= 1e-14 and found["none"].single <= 1e-6
    assert 0.3 < found["positions"].largest < 5 and 0.3 < found["causal"].largest < 5


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(2, 20), st.sampled_from([(8, 2), (16, 4), (32, 1)]), st.integers(0, 1000))
def test_random_outputs_follow_without_positions_and_mask_only(n: int, size: tuple[int, int], seed: int) -> None:
    trace = at_random(n, *size, seed=seed)
    order = reorder("shuffle", n, seed=seed)
    found = order_cases(trace, order, embedded=False, head=size[1] - 1)
    assert found["none"].largest <= 1e-14 and found["none"].single <= 2e-6
    assert found["none"].follows and found["none"].map_follows
    old, new = found["none"].weights
    torch.testing.assert_close(old.float(), trace["weights"].value[0, size[1] - 1], rtol=0, atol=1e-5)
    P = torch.eye(n, dtype=torch.float64)[list(order)]  # (P X)[place] = X[order[place]]
    torch.testing.assert_close(new, P @ old @ P.T, rtol=0, atol=1e-14)
    torch.testing.assert_close(found["none"].after, P @ found["none"].before, rtol=0, atol=1e-14)
    assert not found["positions"].follows and not found["causal"].follows
    assert found["positions"].largest > 0.01 and found["causal"].largest > 0.01


def test_both_outputs_are_those_of_torch() -> None:
    trace, order = at_random(7, 16, 4), (3, 0, 6, 1, 5, 2, 4)
    X, theirs = trace["X"].value.double(), copy.deepcopy(trace.module).double().to_torch()
    down = ~masks.causal(7)
    with torch.no_grad():
        before, after = (theirs(x, x, x, attn_mask=down, need_weights=False)[0][0] for x in (X, X[:, list(order)]))
    found = compare(trace, order, parts(trace["X"].value, embedded=False), mask=masks.causal(7))
    torch.testing.assert_close(found.before, before, rtol=0, atol=1e-13)
    torch.testing.assert_close(found.after, after, rtol=0, atol=1e-13)
    for token, place in enumerate(found.place):
        assert torch.equal(found.aligned[token], found.after[place]) and order[place] == token
        assert found.of(token) == (found.after[place] - found.before[token]).abs().max().item()
    assert found.largest == max(found.of(token) for token in range(7))


def test_places_stay_while_contents_move() -> None:
    trace = designed()
    found = compare(trace, ORDER, parts(trace["X"].value, embedded=True), places=True)
    moved = embed([SENTENCE[i] for i in ORDER], 64).double()  # the words in their new order, embedded anew
    with torch.no_grad():
        expected = copy.deepcopy(trace.module).double()(moved)[0]
    torch.testing.assert_close(found.after, expected, rtol=0, atol=1e-13)


def test_the_pocket_follows_too() -> None:
    module = set_pocket(MultiHeadAttention(4, 2))
    with torch.no_grad():
        trace = module.trace(POCKET.input())
    found = order_cases(trace, (2, 0, 1), embedded=False)
    assert found["none"].largest <= 1e-14 and found["causal"].largest > 0.5


@pytest.mark.parametrize(
    ("mask", "with_positions", "extra"),
    [
        (None, True, None),
        (None, False, None),
        (masks.causal(10), False, None),
        (masks.causal(10), True, (True, True)),
        (masks.padding([8], 10), True, (True, True)),
        (masks.sliding_window(10, 3), False, (False, True)),
    ],
)
def test_the_sidebars_own_case_is_shown_where_it_is_another(
    mask: Tensor | None, with_positions: bool, extra: tuple[bool, bool] | None
) -> None:
    trace = designed(mask=mask, with_positions=with_positions)
    found = order_cases(trace, ORDER, embedded=True)
    assert tuple(found) == CASES[: len(found)]
    assert ("yours" in found) == (extra is not None)
    if extra is not None:
        yours = found["yours"]
        assert (yours.placed, bool(yours.forbidden.any())) == extra
        torch.testing.assert_close(yours.before, trace["output"].value[0].double(), rtol=0, atol=1e-5)


def test_equal_words_that_change_places_change_nothing() -> None:
    module = MultiHeadAttention(16, 2)
    design(module, seed=0)
    with torch.no_grad():
        trace = module.trace(embed(("a", "b", "b"), 16))
    found = order_cases(trace, (0, 2, 1), embedded=True)
    assert found["causal"].largest > 0.01  # the first b sees one token less than the second
    assert found["none"].follows and not found["positions"].follows


def test_a_row_that_may_attend_to_nothing_is_no_trouble() -> None:
    trace = at_random(4, 8, 2, mask=masks.padding([0], 4))
    found = order_cases(trace, (3, 2, 1, 0), embedded=False)
    assert found["yours"].largest == 0 and found["yours"].forbidden.all()


def test_the_features_that_differ_most() -> None:
    trace = designed()
    found = order_cases(trace, ORDER, embedded=True)["positions"]
    features, size = found.widest(3, 6), found.difference[3].abs()
    assert features == sorted(features) and len(features) == 6
    others = [m for m in range(64) if m not in features]
    assert size[features].min() >= size[others].max()
