"""A sum of products laid out for checking by hand: which terms are written down, and with how many decimals."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mha_core.contributions import decimals_that_add_up
from mha_core.explain import Explanation

__all__ = ["Worksheet", "worksheet"]

USUAL = 3
"""Decimals where no number of them makes the sum come out exactly."""


@dataclass(frozen=True)
class Worksheet:
    """A dot product as columns of two factors and their product.

    Attributes:
        index: each written term's place in the sum, from 0.
        left, right, products: of each written term.
        more: how many terms are not written, and ``rest`` their sum.
        bias: what is added at the end; None where there is none, or 0.
        total: the number that comes out.
        decimals: with how many the products, the rest, the bias and the total are written; 0 for integers.
        exact: the written numbers add up to the written total, to the last digit.
        zeros: how many of all products are 0.
    """

    index: tuple[int, ...]
    left: tuple[float, ...]
    right: tuple[float, ...]
    products: tuple[float, ...]
    more: int
    rest: float
    bias: float | None
    total: float
    decimals: int
    exact: bool
    zeros: int

    @property
    def integers(self) -> bool:
        """Whether nothing had to be rounded: every factor is an integer."""
        return all(factor == round(factor) for factor in (*self.left, *self.right, self.bias or 0.0))


def worksheet(explanation: Explanation, most: int = 16) -> Worksheet:
    """Of an explained dot product, all terms where they fit, else the ``most`` − 1 largest and the rest as one.

    What is not written first are products that are 0.

    >>> import torch
    >>> from mha_core import MultiHeadAttention
    >>> trace = MultiHeadAttention(64, 4).trace(torch.randn(1, 3, 64))
    >>> sheet = worksheet(trace.explain("Q", query=0, feature=5))
    >>> len(sheet.index), sheet.more
    (15, 49)
    """
    pairs = [term for term in explanation.terms if len(term.factors) == 2]
    added = [term.product for term in explanation.terms if len(term.factors) == 1]
    bias = added[0] if added and added[0] else None
    kept = pairs
    if len(pairs) > most:
        largest = sorted(pairs, key=lambda term: -abs(term.product))[: most - 1]
        largest = [term for term in largest if term.product] or largest
        kept = sorted(largest, key=lambda term: term.index)
    written = {term.index for term in kept}
    rest = math.fsum(term.product for term in pairs if term.index not in written)
    products = tuple(term.product for term in kept)
    parts = [*products, *([rest] if len(kept) < len(pairs) else []), *([] if bias is None else [bias])]
    decimals: int | None
    if all(part == round(part) for part in (*parts, explanation.value)):
        decimals = 0
    else:
        decimals = decimals_that_add_up(parts, explanation.value, least=2, most=4)
    return Worksheet(
        tuple(term.index for term in kept),
        tuple(term.factors[0] for term in kept),
        tuple(term.factors[1] for term in kept),
        products,
        len(pairs) - len(kept),
        rest,
        bias,
        explanation.value,
        USUAL if decimals is None else decimals,
        decimals is not None,
        sum(term.product == 0 for term in pairs),
    )
