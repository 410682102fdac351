"""One head against several."""

import pytest
import torch

from mha_core import MultiHeadAttention, figures
from mha_core.inputs import embed
from mha_core.masks import causal
from mha_core.weights import design

TOKENS = ("the", "cat", "saw", "the", "dog")


def traced(h, mask=None):
    module = MultiHeadAttention(32, h)
    design(module, seed=0)
    with torch.no_grad():
        return module.trace(embed(TOKENS, 32), mask=mask)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("mask", [None, causal(5)])
@pytest.mark.parametrize("h", [2, 4, 16])
def test_plotly_accepts_it(h, mask, theme):
    figures.versus(traced(1, mask), traced(h, mask), TOKENS, captions=("a", "b"), theme=theme).figure()


def test_both_sides_must_be_about_the_same_tokens():
    with pytest.raises(ValueError, match=r"'h'\] is 2; .* must have h=1"):
        figures.versus(traced(2), traced(4), TOKENS)
    with pytest.raises(ValueError, match="4 tokens for traces of n="):
        figures.versus(traced(1), traced(4), TOKENS[:4])
