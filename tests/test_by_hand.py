"""What is printed for paper and pencil can be computed with paper and pencil."""

import math
import re

import pytest
import torch

from mha_core import MultiHeadAttention, masks
from mha_core.by_hand import score_sheet, score_to_weight, value_sheet, worksheet
from mha_core.experiments import DIVISORS, scale_for
from mha_core.favourite import favourite_gap
from mha_core.inputs import POCKET
from mha_core.variants import again, flip
from mha_core.weights import set_pocket

CELLS = [(head, query, key) for head in range(2) for query in range(3) for key in range(3)]


@pytest.fixture(scope="module")
def pocket():
    with torch.no_grad():
        return set_pocket(MultiHeadAttention(4, 2)).trace(POCKET.input())


@pytest.fixture(scope="module")
def large():
    torch.manual_seed(0)
    return MultiHeadAttention(64, 2).trace(3 * torch.randn(1, 20, 64))


def printed(text):
    return float(text.replace("−", "-"))


def value_of(latex):
    """What a reader's calculator makes of a formula."""
    text = latex.replace(r"\mathbf", "").replace(r"\cdot", "*").replace("\\sqrt", "S").replace("-\\infty", "-INF")
    text = re.sub(r"S\{(\d+)\}", r"math.sqrt(\1)", text)
    while r"\frac" in text:
        text = re.sub(r"\\frac\{((?:[^{}]|\{[^{}]*\})*)\}\{((?:[^{}]|\{[^{}]*\})*)\}", r"((\1)/(\2))", text)
    text = (
        re.sub(r"e\^\{([^{}]*)\}", r"math.exp(\1)", text).replace("INF", "math.inf").replace("{", "").replace("}", "")
    )
    return eval(text, {"math": math})


@pytest.mark.parametrize(("head", "query", "key"), CELLS)
def test_the_pocket_comes_out_exactly(pocket, head, query, key):
    sheet = score_sheet(pocket, head, query, key)
    assert sheet.exact
    assert all(re.fullmatch(r"−?\d+", sheet.factor_text(factor)) for term in sheet.terms for factor in term.factors)
    products = [
        printed(sheet.factor_text(a)) * printed(sheet.factor_text(b)) for a, b in (term.factors for term in sheet.terms)
    ]
    assert sum(products) == printed(sheet.total_text) == pocket["raw_scores"].value[0, head, query, key]
    for formula in score_to_weight(pocket, head, query, key):
        *steps, result = formula.split(" = ")
        for step in steps:
            assert value_of(step) == pytest.approx(
                value_of(result), abs=0.5000001 * 10 ** -len(result.split(".")[-1].strip("}"))
            )
    assert printed(result.strip(r"\mathbf{}")) == round(pocket["weights"].value[0, head, query, key].item(), 3)


@pytest.mark.parametrize(
    ("head", "query", "feature"), [(h, q, c) for h in range(2) for q in range(3) for c in range(2)]
)
def test_the_pockets_values_come_out_exactly(pocket, head, query, feature):
    sheet = value_sheet(pocket, head, query, feature)
    assert sheet.exact
    total = sum(printed(sheet.product_text(term.product)) for term in sheet.terms)
    assert total == pytest.approx(printed(sheet.total_text), abs=0.00051)
    for term in sheet.terms:
        product = math.prod(printed(sheet.factor_text(factor)) for factor in term.factors)
        assert product == pytest.approx(printed(sheet.product_text(term.product)), abs=0.501 * 10 ** -sheet.decimals[1])
    assert printed(sheet.total_text) == round(pocket["head_outputs"].value[0, head, query, feature].item(), 3)


def test_a_long_sum_shows_its_largest_products_and_the_rest(large):
    explanation = large.explain("raw_scores", head=1, query=4, key=7)
    sheet = worksheet(explanation)
    shown, (rest, count) = sheet.terms, sheet.rest
    assert (len(shown), count) == (15, 17)
    assert sum(term.product for term in shown) + rest == pytest.approx(explanation.value, rel=1e-4)
    smallest = min(abs(term.product) for term in shown)
    assert all(abs(term.product) <= smallest for term in explanation.terms if term not in shown)
    assert [term.index for term in shown] == sorted(term.index for term in shown)


@pytest.mark.parametrize("divisor", DIVISORS)
@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_scaling_is_that_of_the_trace(large, divisor, temperature):
    trace = again(large, scale=scale_for(divisor, 32, temperature))
    first, last = score_to_weight(trace, 0, 2, 3, divisor=divisor, temperature=temperature)
    left, right = first.split(" = ")
    assert value_of(left) == pytest.approx(value_of(right), abs=0.006)
    assert printed(right) == pytest.approx(trace["scores"].value[0, 0, 2, 3].item(), abs=0.006)
    assert printed(last.split(r"\mathbf{")[1][:-1]) == round(trace["weights"].value[0, 0, 2, 3].item(), 3)


def test_a_masked_cell_and_an_empty_row(pocket):
    mask = masks.causal(3)
    hidden = score_to_weight(again(pocket, mask=mask), 0, 0, 2)
    assert hidden[1].endswith(r"- \infty = -\infty")
    assert hidden[2].endswith(r"\mathbf{0.000}")
    mask[0] = False
    empty = again(pocket, mask=mask)
    assert ":= 0" in score_to_weight(empty, 0, 0, 0)[2]
    assert favourite_gap(empty, 0, 0).first is None


def test_the_gap_is_the_ratio_of_the_weights(large):
    gap = favourite_gap(large, 0, 5)
    weights = large["weights"].value[0, 0, 5]
    order = weights.argsort(descending=True)
    assert [gap.first, gap.second] == order[:2].tolist()
    assert gap.times == pytest.approx((weights[order[0]] / weights[order[1]]).item(), rel=1e-4)


def test_flipping_changes_these_cells_and_no_other(large):
    trace = again(large, mask=masks.causal(20))
    cells = frozenset({(0, 3), (5, 2), (200, 0)})
    changed = flip(trace, cells) != masks.causal(20)
    assert {tuple(cell) for cell in changed.nonzero().tolist()} == {(0, 3), (5, 2)}
    assert flip(large, frozenset()) is None
    assert trace["masked_scores"].value[0, 0, 0, 3] == -math.inf  # the trace is left as it is


def test_another_context_leaves_the_queries_and_drops_the_mask(large):
    trace = again(again(large, mask=masks.causal(20)), context=torch.randn(1, 7, 64))
    assert (trace.sizes["n_q"], trace.sizes["n_k"], trace.mask) == (20, 7, None)
    assert torch.equal(trace["Q"].value, large["Q"].value)
    assert again(trace, scale=1.0)["context"].value is not None
