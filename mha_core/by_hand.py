"""One head's cell written down for paper and pencil: the digits to show, and whether they suffice.

What is printed is rounded; a reader who computes with the printed numbers must know whether the
printed result will come out. So everything here is decided on the printed digits, in decimal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from mha_core.explain import Explanation, Term
from mha_core.masks import EMPTY
from mha_core.trace import AttentionTrace

__all__ = ["Worksheet", "digits", "score_sheet", "score_to_weight", "value_sheet", "worksheet"]

MOST_COLUMNS = 16
MOST_SPELLED = 4
"""Exponentials of a row that are written out one by one."""


@dataclass(frozen=True, eq=False)
class Worksheet:
    """A sum of products in columns.

    Attributes:
        terms: the columns, in the order of the sum: all, or the largest products.
        rest: the sum of the products that have no column, and how many they are.
        total: the sum.
        decimals: of the factors, of the products and the rest, and of the total.
        exact: the printed factors give the printed products, and these the printed total, to the last digit.
    """

    terms: tuple[Term, ...]
    rest: tuple[float, int] | None
    total: float
    decimals: tuple[int, int, int]
    exact: bool

    def factor_text(self, value: float) -> str:
        """A factor as it is printed."""
        return digits(value, self.decimals[0])

    def product_text(self, value: float) -> str:
        """A product, or the rest, as it is printed."""
        return digits(value, self.decimals[1])

    @property
    def total_text(self) -> str:
        """The total as it is printed."""
        return digits(self.total, self.decimals[2])


def worksheet(explanation: Explanation, decimals: int = 2, more: int = 0) -> Worksheet:
    """Lay a sum of products out in at most 16 columns.

    Args:
        decimals: of factors, products and the total; 0 where all of them are whole numbers.
        more: how many further decimals factors and products may take where the printed total would
            otherwise not come out of them; the fewest that do, the factors one more than the products if need be.

    >>> from mha_core import MultiHeadAttention
    >>> import torch
    >>> trace = MultiHeadAttention(64, 2).trace(torch.randn(1, 3, 64))
    >>> sheet = worksheet(trace.explain("raw_scores", head=0, query=0, key=1))
    >>> len(sheet.terms), sheet.rest[1]
    (15, 17)
    """
    terms = explanation.terms
    numbers = [*(factor for term in terms for factor in term.factors), explanation.value]
    if all(number == round(number) for number in numbers):
        decimals, more = 0, 0
    rest = None
    if len(terms) > MOST_COLUMNS:
        largest = sorted(terms, key=lambda term: -abs(term.product))[: MOST_COLUMNS - 1]
        kept = {term.index for term in largest}
        left_out = [term.product for term in terms if term.index not in kept]
        terms = tuple(sorted(largest, key=lambda term: term.index))
        rest = math.fsum(left_out), len(left_out)
    tries = [
        _sheet(terms, rest, explanation.value, (decimals + extra + finer, decimals + extra, decimals))
        for extra in range(more + 1)
        for finer in ((0, 1) if more else (0,))
    ]
    return next((sheet for sheet in tries if sheet.exact), tries[0])


def score_sheet(trace: AttentionTrace, head: int, query: int, key: int) -> Worksheet:
    """A query's features times a key's: the raw score."""
    return worksheet(trace.explain("raw_scores", head=head, query=query, key=key), 2, more=1)


def value_sheet(trace: AttentionTrace, head: int, query: int, feature: int) -> Worksheet:
    """A query's weights times one feature of the values: that feature of the head's output."""
    return worksheet(trace.explain("head_outputs", head=head, query=query, feature=feature), 3, more=2)


def _sheet(
    terms: tuple[Term, ...], rest: tuple[float, int] | None, total: float, decimals: tuple[int, int, int]
) -> Worksheet:
    factors, products, sums = decimals

    def rounded(value: float, places: int) -> Decimal:
        return Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN)

    def off(value: Decimal, places: int) -> bool:  # more than half a unit of the last printed digit
        return abs(value) > Decimal("0.5").scaleb(-places)

    exact, added = True, rounded(rest[0], products) if rest else Decimal(0)
    for term in terms:
        product = Decimal(1)
        for factor in term.factors:
            product *= rounded(factor, factors)
        exact = exact and not off(product - rounded(term.product, products), products)
        added += rounded(term.product, products)
    exact = exact and not off(added - rounded(total, sums), sums)
    return Worksheet(terms, rest, total, decimals, exact)


def digits(value: float, decimals: int) -> str:
    """A number with so many decimals, a real minus, no 0 before the point.

    >>> [digits(value, 2) for value in (-0.125, 56.0, -0.001, -math.inf)]
    ['−.12', '56.00', '.00', '−∞']
    """
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    text = f"{value:.{decimals}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    sign, bare = ("−", text[1:]) if text.startswith("-") else ("", text)
    return sign + (bare[1:] if bare.startswith("0.") else bare)


def score_to_weight(
    trace: AttentionTrace, head: int, query: int, key: int, *, divisor: str = "sqrt", temperature: float = 1.0
) -> list[str]:
    """From the raw score to the weight: LaTeX, a formula for the scaling, one for the mask, one for the softmax.

    The printed numbers give the printed results: where two decimals would not, there are more. Rows of up
    to four keys have every exponential written out.

    Args:
        divisor: what the trace's scores were divided by, a name of :data:`mha_core.experiments.DIVISORS`.
        temperature: and by what else.
    """
    cell = {"head": head, "query": query, "key": key}
    row: list[float] = trace["masked_scores"].sel(batch=0, head=head, query=query).value.detach().double().tolist()
    explained = trace.explain("weights", **cell)
    raw, score = (trace[name].sel(batch=0, **cell).value.item() for name in ("raw_scores", "scores"))
    return [
        _scaling(raw, score, trace.sizes["d_k"], divisor, temperature),
        *([_masking(score, row[key])] if trace.mask is not None else []),
        _softmax(row, key, explained),
    ]


def _scaling(raw: float, score: float, d_k: int, divisor: str, temperature: float) -> str:
    below = {"sqrt": rf"\sqrt{{{d_k}}}", "one": "1", "d_k": str(d_k)}[divisor]
    by = {"sqrt": math.sqrt(d_k), "one": 1.0, "d_k": float(d_k)}[divisor] * temperature
    if temperature != 1:
        below += rf"\cdot {temperature:g}"
    for decimals in _decimals(raw):
        if _plain(float(_plain(raw, decimals)) / by, 2) == _plain(score, 2):
            break
    return rf"\frac{{{_plain(raw, decimals)}}}{{{below}}} = {_plain(score, 2)}"


def _masking(score: float, masked: float) -> str:
    added = masked - score if math.isfinite(masked) else masked
    sign = r"\infty" if added == EMPTY else _plain(abs(added), 2 if added else 0)
    return f"{_plain(score, 2)} {'-' if added < 0 else '+'} {sign} = {_plain(masked, 2)}"


def _softmax(row: list[float], key: int, explained: Explanation) -> str:
    assert explained.softmax is not None  # weights always have one
    top, denominator = explained.softmax
    if top == EMPTY:
        return r"\text{softmax}(-\infty, \dots, -\infty) := 0"
    spelled = len(row) <= MOST_SPELLED

    def power(value: float, decimals: int) -> str:
        if value == EMPTY:
            return r"e^{-\infty}"
        minus = f" + {_plain(-top, decimals)}" if top < 0 else f" - {_plain(top, decimals)}"
        return f"e^{{{_plain(value, decimals)}{minus}}}"

    def exponential(value: float, decimals: int) -> float:  # of what is printed
        if value == EMPTY:
            return 0.0
        return math.exp(float(_plain(value, decimals)) - float(_plain(top, decimals)))

    result = _plain(explained.value, 3)
    for decimals, places in ((2, 3), (3, 3), (3, 4), (4, 4), (5, 5), (2, 3)):  # the last where none of them does
        powers = [exponential(value, decimals) for value in row]
        printed = [_plain(value, places) for value in powers]
        sums = _plain(math.fsum(map(float, printed)) if spelled else denominator, places)
        shares = powers[key] / (math.fsum(powers) if spelled else denominator), float(printed[key]) / float(sums)
        if all(_plain(share, 3) == result for share in shares):
            break
    if spelled:
        over = " + ".join(power(value, decimals) for value in row)
        middle = rf"\frac{{{printed[key]}}}{{{' + '.join(printed)}}}"
    else:
        over = rf"\sum_k e^{{s_k - {_bracketed(_plain(top, decimals))}}}"
        middle = rf"\frac{{{printed[key]}}}{{{sums}}}"
    return rf"\frac{{{power(row[key], decimals)}}}{{{over}}} = {middle} = \mathbf{{{result}}}"


def _decimals(value: float) -> Iterator[int]:
    yield from (0, 2, 3, 4) if value == round(value) else (2, 3, 4)


def _plain(value: float, decimals: int) -> str:
    if math.isinf(value):
        return r"-\infty" if value < 0 else r"\infty"
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _bracketed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number
