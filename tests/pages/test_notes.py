"""What a page says must be true for the calculation it shows."""

from dataclasses import replace

import numpy as np
import pytest

from mha_core.metrics import METRICS
from pages._ui import notes, tables
from pages._ui.calculation import calculate
from pages._ui.settings import Settings
from pages._ui.text import words

T = words("en")


def test_the_caption_stands_only_where_every_head_does_what_its_name_says():
    assert notes.caption(T, calculate(Settings())) == "Same X, 4 heads, 4 ways of looking"
    assert notes.caption(T, calculate(Settings(mask="causal"))) is None
    assert notes.caption(T, calculate(Settings(weights="random"))) is None
    assert notes.caption(T, calculate(Settings(h=1))) is None


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_the_count_of_heads_that_keep_to_their_names_is_measured(mask):
    calculation = calculate(Settings(mask=mask))
    kept = sum(report.mass >= 0.9 for report in calculation.reports)
    said = notes.what_to_notice(T, calculation, 0)
    assert f"{kept} of 4 heads spend at least 90 %" in said
    assert ("question mark" in said) == (kept < 4)


def test_the_spread_of_random_weights_is_measured():
    calculation = calculate(Settings(weights="random"))
    weights = calculation.trace["weights"].numpy()[0].astype(float)
    ratio = -(weights * np.log(weights)).sum(-1).mean() / np.log(10)
    assert f"on average a row is {ratio:.0%} as spread out" in notes.what_to_notice(T, calculation, 0)


def test_the_pocket_sum_is_the_one_of_paper_and_pencil():
    # q_A = (−2, 1) and k_B = (0, 2): −2·0 + 1·2 = 2; 2/√2 = 1.41; e^0 / (1 + 2 e^−2.83) = .89
    said = notes.what_to_notice(T, calculate(Settings(input="pocket").consistent()[0]), 0)
    assert "query `A`, key `B`" in said
    assert r"$q \cdot k = -2 \cdot 0 + 1 \cdot 2 = 2$" in said
    assert r"\frac{2.00}{\sqrt{2}} = 1.41" in said
    assert r"\frac{1.00}{1.12} = 0.89" in said


def test_the_table_has_a_row_a_head_and_every_metric_of_a_head():
    calculation = calculate(Settings(h=8, mask="causal"))
    table = tables.heads(T, calculation)
    assert list(table.index) == [str(head) for head in range(1, 9)]
    per_head = [metric for metric in METRICS if metric.axes == ("batch", "head")]
    assert len(table.columns) == len(per_head) + 2
    expected = calculation.trace["weights"].numpy()[0].max(-1).mean(-1)
    assert list(table["Largest weight"]) == [f"{value:.2f}" for value in expected]
    assert "nan" not in table.to_string()


def test_the_table_of_random_weights_names_no_target():
    calculation = calculate(replace(Settings(), weights="random"))
    assert "Designed to look at" not in tables.heads(T, calculation).columns
