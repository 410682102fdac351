"""The picture "order": what is painted, written and chosen is the comparison."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from mha_core import masks
from mha_core.figures.order import ORDER_WORDS, order
from mha_core.figures.pick import cell_of
from mha_core.figures.raster import signed_levels
from mha_core.figures.theme import THEMES, signed_limit
from mha_core.order import CASES, order_cases
from mha_core.reorder import reorder
from tests.figures.test_combine import markers, texts
from tests.figures.test_overview import image, tokens


def draw(trace, way="shuffle", case="none", token=0, **more):
    n = trace.sizes["n_q"]
    cases = order_cases(trace, reorder(way, n, seed=1, token=token), embedded=False, head=more.get("head", 0))
    return order(trace, tokens(n), cases, case=case, token=token, **more), cases


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("covered", [False, True])
@pytest.mark.parametrize("size", [(1, 1, 4), (2, 2, 4), (3, 2, 4), (10, 4, 64), (7, 7, 7), (40, 16, 512), (256, 2, 16)])
def test_every_size_is_a_valid_figure(trace_of, size, covered, theme):
    n, h, _ = size
    for case in CASES[:3]:
        picture, _ = draw(trace_of(*size), case=case, token=n - 1, head=h - 1, covered=covered, theme=theme)
        picture.figure()
        assert sum(1 for _ in markers(picture)) < 1000


def test_wrong_counts_and_unknown_cases_are_named(trace_of):
    trace = trace_of(4, 2, 8)
    cases = order_cases(trace, (3, 2, 1, 0), embedded=False)
    with pytest.raises(ValueError, match="3 tokens for n=4"):
        order(trace, tokens(3), cases)
    with pytest.raises(KeyError, match="none, positions, causal"):
        order(trace, tokens(4), cases, case="yours")


def rows_of(picture, left, right, n):
    """The painted levels in the middle of each row, from left to right: (n, columns of dots)."""
    dots = np.array(image(picture))
    height = min(66, 40 if n > 6 else 250 // n, 250 // n)
    return np.stack([dots[58 + i * height + height // 2, 2 * left : 2 * right] for i in range(n)]), height


@pytest.mark.parametrize("case", ["positions", "causal"])
def test_each_matrix_is_painted_as_it_is(trace_of, case):
    trace = trace_of(8, 2, 38)  # 38 columns in 190 px: 5 px each
    picture, cases = draw(trace, case=case)
    found, limit = cases[case], signed_limit(cases[case].before.numpy())
    for left, matrix in ((98, found.before), (524, found.after), (846, found.difference)):
        painted, _ = rows_of(picture, left, left + 190, 8)
        np.testing.assert_array_equal(painted[:, 5::10], signed_levels(matrix.numpy(), limit))


def test_what_is_left_is_nothing_without_positions(trace_of):
    picture, cases = draw(trace_of(8, 2, 38))
    painted, _ = rows_of(picture, 846, 1036, 8)
    assert (painted == signed_levels(np.zeros(1), 1.0)).all()
    assert texts(picture).count("0") == 2  # the large one, and its small twin
    written = [text for text in texts(picture) if text.startswith("largest difference")]
    assert len(written) == 4 and written[0] == written[1] and "10⁻¹" in written[0]
    assert cases["none"].largest < 1e-14


def test_a_row_chooses_its_token_wherever_it_stands(trace_of):
    trace = trace_of(8, 2, 16)
    picture, cases = draw(trace, case="positions")
    found, seen = cases["positions"], set()
    for chosen, x, y, value in markers(picture):
        if "query" not in chosen:
            continue
        token, row = chosen["query"], int((y - 58) // 31)
        if x < 300:
            assert token == row and value in found.before[token].float()
        elif x < 720:
            assert token == found.order[row] and value in found.after[row].float()
        else:
            assert token == row and value in found.difference[token].float()
        seen.add((x < 300, x > 720, token))
    assert len(seen) == 24


def test_a_small_matrix_chooses_its_case(trace_of):
    picture, cases = draw(trace_of(6, 2, 8, mask=masks.padding([4], 6)))
    chosen = [cell["order_case"] for cell, *_ in markers(picture) if "order_case" in cell]
    assert set(chosen) == {0, 1, 2, 3} and list(cases) == list(CASES)
    assert all(cell_of(picks, 0) for picks in picture.picks.values())


def test_covered_shows_no_answer(trace_of):
    trace = trace_of(8, 2, 38)
    open_, covered = draw(trace, case="causal")[0], draw(trace, case="causal", covered=True)[0]
    assert not [text for text in texts(covered) if text.startswith(("largest", "float64"))]
    assert texts(covered).count("?") == 6
    painted, _ = rows_of(covered, 524, 714, 8)
    assert not painted.any()
    painted, _ = rows_of(open_, 524, 714, 8)
    assert painted.all()


def test_only_a_map_that_followed_is_called_so(trace_of):
    trace = trace_of(8, 2, 16)
    named = [text for text in texts(draw(trace)[0]) if text.startswith("A′")]
    assert named == ["A′<sub>1</sub> = P A<sub>1</sub> P<sup>T</sup>"]
    assert [text for text in texts(draw(trace, case="causal")[0]) if text.startswith("A′")] == ["A′<sub>1</sub>"]


def test_a_map_without_a_preference_says_so(trace_of):
    trace = trace_of(8, 2, 16)
    picture, cases = draw(trace)
    assert "1/8" not in texts(picture)
    even = tuple(torch.full_like(weights, 1 / 8) for weights in cases["none"].weights)
    assert texts(order(trace, tokens(8), {"none": replace(cases["none"], weights=even)})).count("1/8") == 2


def test_places_are_written_where_they_take_part(trace_of):
    trace = trace_of(8, 2, 16)
    for case, times in (("none", 0), ("positions", 2), ("causal", 0)):
        written = [text for text in texts(draw(trace, case=case)[0]) if re.fullmatch(r"p<sub>\d</sub>", text)]
        assert sorted(written) == sorted([f"p<sub>{i}</sub>" for i in range(1, 9)] * times)


def test_every_word_is_used(trace_of):
    assert all(isinstance(word, str) and word for word in ORDER_WORDS.values())
    long = {key: f"«{key}»" for key in ORDER_WORDS}
    picture, _ = draw(trace_of(100, 2, 100, mask=masks.padding([4], 100)), case="causal", words=long)
    said = str(picture.to_dict())
    assert not [key for key in long if f"«{key}»" not in said]
