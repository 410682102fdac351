"""A calculation small enough prints its numbers."""

import re

import pytest

from mha_core import MultiHeadAttention, figures
from mha_core.inputs import POCKET
from mha_core.weights import set_pocket


def texts(picture):
    return [text for trace in picture.to_dict()["data"] if trace.get("mode") == "text" for text in trace["text"]]


def test_the_pocket_prints_every_matrix():
    trace = set_pocket(MultiHeadAttention(POCKET.d_model, POCKET.h)).trace(POCKET.input())
    shown = [text for text in texts(figures.overview(trace, POCKET.tokens)) if re.fullmatch(r"−?\d*\.?\d+", text)]
    cells = 3 * 4 + 4 * 16 + 3 * 12 + 9 + 9 + 2 * 9 + 12 + 12  # X, W, Q K V, scores, weights, all heads, Concat, output
    band_numbers = 2 * 4  # 1 and 2 under Q, K, V and Concat
    assert len(shown) >= cells
    assert len(shown) <= cells + band_numbers + 2
    # by hand: q_C·k_A = (0, −1)·(−1, −4) = 4, divided by √2
    assert "2.83" in shown


@pytest.mark.parametrize(("n", "h", "d_model"), [(5, 2, 8), (10, 4, 64)])
def test_a_larger_one_does_not(trace_of, n, h, d_model):
    shown = [text for text in texts(figures.overview(trace_of(n, h, d_model), ["w"] * n)) if "." in text]
    assert not [text for text in shown if re.fullmatch(r"−?\d*\.\d\d", text)]
