"""A query's favourite key, and how far it is ahead of the next."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mha_core.masks import EMPTY
from mha_core.trace import AttentionTrace

__all__ = ["Gap", "favourite_gap"]


@dataclass(frozen=True)
class Gap:
    """How far a query's favourite is ahead.

    Attributes:
        first, second: keys, from 0; None where the query may not attend to so many.
        score: the favourite's score.
        ahead: by how much it exceeds the second's.
        weight: the favourite's weight.
    """

    first: int | None
    second: int | None
    score: float
    ahead: float
    weight: float

    @property
    def times(self) -> float:
        """How many times the second's weight the favourite has: e^ahead."""
        return math.exp(min(self.ahead, 700.0))

    @property
    def times_text(self) -> str:
        """The same for a sentence.

        >>> [Gap(0, 1, 0.0, ahead, 0.9).times_text for ahead in (0.0, 1.5, 3.01, 20.0)]
        ['1.00', '4.48', '20', '5·10⁸']
        """
        if self.times < 1000:
            return f"{self.times:.2f}" if self.times < 10 else f"{self.times:.0f}"
        digit, _, power = f"{self.times:.0e}".partition("e")
        return f"{digit}·10" + str(int(power)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def favourite_gap(trace: AttentionTrace, head: int, query: int) -> Gap:
    """A query's two favourite keys: softmax turns a difference of scores into a ratio of weights.

    >>> from mha_core import MultiHeadAttention
    >>> import torch
    >>> gap = favourite_gap(MultiHeadAttention(8, 2).trace(torch.randn(1, 1, 8)), 0, 0)
    >>> gap.first, gap.second, gap.weight
    (0, None, 1.0)
    """
    scores = trace["masked_scores"].sel(batch=0, head=head, query=query).value.detach().double().tolist()
    weights = trace["weights"].sel(batch=0, head=head, query=query).value
    order = sorted((key for key, score in enumerate(scores) if score != EMPTY), key=lambda key: -scores[key])
    if not order:
        return Gap(None, None, EMPTY, 0.0, 0.0)
    first, second = order[0], order[1] if len(order) > 1 else None
    ahead = 0.0 if second is None else scores[first] - scores[second]
    return Gap(first, second, scores[first], ahead, weights[first].item())
