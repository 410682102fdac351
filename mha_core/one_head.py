"""What one head cannot do at all, however wide: bring two things and keep them apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mha_core.attention import MultiHeadAttention
from mha_core.trace import AttentionTrace

__all__ = ["FetchTwo", "one_head_averages"]


@dataclass(frozen=True, eq=False)
class FetchTwo:
    """A query that must fetch what stands at two places, with one head and with two.

    Attributes:
        a, b: the two contents, (2,) each.
        one, two: traces with h = 1 and h = 2, of a at the first place and b at the second.
        one_swapped, two_swapped: the same, with a and b swapped.
    """

    a: Tensor
    b: Tensor
    one: AttentionTrace
    one_swapped: AttentionTrace
    two: AttentionTrace
    two_swapped: AttentionTrace


def one_head_averages() -> FetchTwo:
    """One head averages a and b; two heads, with the very same matrices, keep them apart.

    Both modules have d_model = 4 and the same W_Q, W_K, W_V, W_O, set by hand; only h differs. The
    context's features are (first place, second place, content). W_Q asks for the first place in
    features 0–1 and for the second in features 2–3. Cut into two heads, each finds its own: the
    output is (a, b), or (b, a) once swapped. As one head both questions are one score, equal for
    the two places: the output is (½a + ½b, ½a + ½b), before and after. Exact in float64.

    One head may weigh a and b unequally, but its output is a mix of the two, α a + (1 − α) b.

    Source: Vaswani et al. 2017, section 3.2.2: "With a single attention head, averaging inhibits this."

    >>> found = one_head_averages()
    >>> for trace in (found.one, found.one_swapped, found.two, found.two_swapped):
    ...     print(trace["output"].sel(batch=0, query=0).value.tolist())
    [1.0, 2.0, 1.0, 2.0]
    [1.0, 2.0, 1.0, 2.0]
    [4.0, 0.0, -2.0, 4.0]
    [-2.0, 4.0, 4.0, 0.0]
    """
    a, b = torch.tensor([[4.0, 0.0], [-2.0, 4.0]], dtype=torch.float64)
    places = torch.eye(2, dtype=torch.float64)
    context = torch.cat([places, torch.stack([a, b])], -1).unsqueeze(0)  # (1, 2, 4)
    swapped = torch.cat([places, torch.stack([b, a])], -1).unsqueeze(0)  # (1, 2, 4)
    X = torch.tensor([[[1.0, 0, 0, 0]]], dtype=torch.float64)  # (1, 1, 4): the one query
    one, two = (_module(h) for h in (1, 2))
    with torch.no_grad():
        traces = [module.trace(X, C) for module in (one, two) for C in (context, swapped)]
    return FetchTwo(a, b, *traces)


def _module(h: int) -> MultiHeadAttention:
    module = MultiHeadAttention(4, h, bias=False).double()
    sharp = 2000.0  # e^(−2000/√2) is 0 in float64: two heads give weights of exactly 1 and 0
    twice = torch.eye(2).repeat(1, 2)  # (2, 4): the same two features for each head
    nothing = torch.zeros(2, 4)
    W_Q = torch.zeros(4, 4)
    W_Q[0] = torch.tensor([sharp, 0, 0, sharp])  # features 0–1: first place; features 2–3: second
    matrices = W_Q, torch.cat([twice, nothing]), torch.cat([nothing, twice]), torch.eye(4)
    with torch.no_grad():
        for linear, matrix in zip((module.W_Q, module.W_K, module.W_V, module.W_O), matrices, strict=True):
            linear.weight.copy_(matrix.mT)
    return module
