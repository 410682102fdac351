"""How one number of a trace came about: its operands, and LaTeX with symbols and with numbers.

One function a row of STEPS. Each gathers the operands of a cell from the trace's own tensors; the
sum over them, in float64, is compared with the tensor's cell, and the residual is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import Tensor

from mha_core.masks import EMPTY

if TYPE_CHECKING:
    from mha_core.trace import AttentionTrace

__all__ = ["Explanation", "Term"]

MOST_TERMS = 16
"""A longer sum is written with its largest terms and the rest as one number."""
LARGEST = 8


@dataclass(frozen=True)
class Term:
    """A product that is one summand: ``index`` is its place in the sum, from 0."""

    index: int
    factors: tuple[float, ...]

    @property
    def product(self) -> float:
        """The factors multiplied, in float64."""
        return math.prod(self.factors)


@dataclass(frozen=True, eq=False)
class Explanation:
    """One cell and its arithmetic.

    Attributes:
        step: the name in STEPS.
        cell: the index on each axis, from 0.
        value: the tensor's cell.
        terms: the summands.
        total: the same number from the operands, in float64; −∞ for a masked cell.
        symbols: LaTeX, with symbols.
        softmax: for weights, the maximum that is subtracted and the sum of the exponentials.
        masked: the mask forbids this cell (or, for weights, the whole row).
    """

    step: str
    cell: dict[str, int]
    value: float
    terms: tuple[Term, ...]
    total: float
    symbols: str
    softmax: tuple[float, float] | None = None
    masked: bool = False
    _numbers: Callable[[Explanation, int], str] = field(default=lambda e, d: _sum_of_products(e, d), repr=False)

    @property
    def residual(self) -> float:
        """The tensor's cell minus the total: rounding, and nothing else. 0 for −∞ from −∞."""
        return 0.0 if self.value == self.total else self.value - self.total

    @property
    def shown(self) -> tuple[tuple[Term, ...], float | None]:
        """The terms to write down and the sum of the rest: all and None up to 16, else the eight largest."""
        if len(self.terms) <= MOST_TERMS:
            return self.terms, None
        largest = sorted(self.terms, key=lambda term: -abs(term.product))[:LARGEST]
        kept = {term.index for term in largest}
        rest = math.fsum(term.product for term in self.terms if term.index not in kept)
        return tuple(sorted(largest, key=lambda term: term.index)), rest

    def numbers(self, decimals: int = 3) -> str:
        """LaTeX with the numbers put in, rounded to so many decimals."""
        return self._numbers(self, decimals)


def given(letter: str) -> Callable[..., Explanation]:
    """X and the context: given, not computed."""

    def explain(trace: AttentionTrace, cell: dict[str, int]) -> Explanation:
        step = "X" if letter == "X" else "context"
        return _sum(trace, step, cell, [(_at(trace, step, cell),)], letter + r"_{ic}")

    return explain


def projection(source: str, letter: str) -> Callable[..., Explanation]:
    """Q, K or V: a row of X times a column of the weight matrix, and the bias."""

    def explain(trace: AttentionTrace, cell: dict[str, int]) -> Explanation:
        left = "C" if source == "context" and trace.cross else "X"
        axis = "query" if source == "X" else "key"
        row = trace[source].sel(batch=cell["batch"], **{axis: cell[axis]}).value
        factors, bias = _pairs(row, _column(trace, f"W_{letter}", cell["feature"])), ""
        if (b := trace.parameter(f"b_{letter}")) is not None:
            factors.append((b.value[cell["feature"]].item(),))
            bias = f" + b^{letter}_c"
        return _sum(trace, letter, cell, factors, rf"{letter}_{{ic}} = \sum_m {left}_{{im}} W^{letter}_{{mc}}{bias}")

    return explain


def band(letter: str) -> Callable[..., Explanation]:
    """Q_heads, K_heads, V_heads: a feature of the head's own band, copied."""

    def explain(trace: AttentionTrace, cell: dict[str, int]) -> Explanation:
        width = trace[f"{letter}_heads"].value.size(-1)
        head, axis = ("head", "query") if letter == "Q" else ("kv_head", "key")
        source = {"batch": cell["batch"], axis: cell[axis], "feature": cell[head] * width + cell["feature"]}
        operand = _at(trace, letter, source)
        return _sum(trace, f"{letter}_heads", cell, [(operand,)], rf"({letter}_i)_{{jc}} = {letter}_{{j,\,(i-1)d + c}}")

    return explain


def raw_scores(trace: AttentionTrace, cell: dict[str, int]) -> Explanation:
    """A query's features times a key's, summed."""
    b, i = cell["batch"], cell["head"]
    q = trace["Q_heads"].sel(batch=b, head=i, query=cell["query"]).value
    k = trace["K_heads"].sel(batch=b, head=i, key=cell["key"]).value
    return _sum(trace, "raw_scores", cell, _pairs(q, k), r"q_i \cdot k_j = \sum_{c=1}^{d_k} q_{ic}\, k_{jc}")


def scores(trace: AttentionTrace, cell: dict[str, int]) -> Explanation:
    """The raw score times the scale."""
    d_k, factors = trace.sizes["d_k"], [(_at(trace, "raw_scores", cell), trace.scale)]
    if not math.isclose(trace.scale, d_k**-0.5):
        return _sum(trace, "scores", cell, factors, r"s_{ij} = (q_i \cdot k_j) \cdot \mathrm{scale}")

    def numbers(e: Explanation, decimals: int) -> str:
        raw = _number(e.terms[0].factors[0], decimals)
        return rf"\frac{{{raw}}}{{\sqrt{{{d_k}}}}} = {_number(e.value, decimals)}"

    return _sum(trace, "scores", cell, factors, r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}}", numbers)


def masked_scores(trace: AttentionTrace, cell: dict[str, int]) -> Explanation:
    """The score plus the mask: −∞ where the mask forbids, whatever the score was."""
    if trace.mask is None:
        added = 0.0
    else:
        all_scores = trace["scores"].value
        entry = trace.mask.expand(all_scores.shape)[cell["batch"], cell["head"], cell["query"], cell["key"]]
        if trace.mask.is_floating_point():
            added = entry.to(all_scores.dtype).item()  # as it was added: −1e300 is −∞ in float32
        else:
            added = 0.0 if entry else EMPTY
    return _sum(trace, "masked_scores", cell, [(_at(trace, "scores", cell),), (added,)], r"s_{ij} + m_{ij}")


def weights(trace: AttentionTrace, cell: dict[str, int]) -> Explanation:
    """A row's exponentials, the maximum subtracted, and the share of one of them."""
    row = trace["masked_scores"].sel(batch=cell["batch"], head=cell["head"], query=cell["query"])
    values: list[float] = row.value.detach().double().tolist()
    maximum = max(values)
    if maximum == EMPTY:
        symbols = r"a_{ij} = 0 \quad (\text{all of row } i \text{ is masked})"
        return _sum(trace, "weights", cell, [(0.0,)], symbols, softmax=(EMPTY, 0.0), masked=True)
    exponentials = [math.exp(value - maximum) for value in values]
    denominator = math.fsum(exponentials)
    j = cell["key"]

    def numbers(e: Explanation, decimals: int) -> str:
        top, score = _number(maximum, decimals), _number(values[j], decimals)
        share = rf"\frac{{{_number(exponentials[j], decimals)}}}{{{_number(denominator, decimals)}}}"
        first = rf"\frac{{e^{{{score} - {_bracket(top)}}}}}{{\sum_k e^{{s_k - {_bracket(top)}}}}}"
        return f"{first} = {share} = {_number(e.value, decimals)}"

    return Explanation(
        "weights",
        cell,
        _at(trace, "weights", cell),
        tuple(Term(k, (e,)) for k, e in enumerate(exponentials)),
        exponentials[j] / denominator,
        r"a_{ij} = \frac{e^{s_{ij} - \max_k s_{ik}}}{\sum_k e^{s_{ik} - \max_k s_{ik}}}",
        (maximum, denominator),
        values[j] == EMPTY,
        numbers,
    )


def head_outputs(trace: AttentionTrace, cell: dict[str, int]) -> Explanation:
    """The query's weights times one feature of every value, summed."""
    b, i = cell["batch"], cell["head"]
    a = trace["weights"].sel(batch=b, head=i, query=cell["query"]).value
    v = trace["V_heads"].sel(batch=b, head=i, feature=cell["feature"]).value
    return _sum(trace, "head_outputs", cell, _pairs(a, v), r"z_{ic} = \sum_j a_{ij}\, v_{jc}")


def concat(trace: AttentionTrace, cell: dict[str, int]) -> Explanation:
    """A feature of one head's output, copied."""
    head, feature = divmod(cell["feature"], trace.sizes["d_v"])
    source = {"batch": cell["batch"], "head": head, "query": cell["query"], "feature": feature}
    operand = _at(trace, "head_outputs", source)
    return _sum(trace, "concat", cell, [(operand,)], r"Z_{j,\,(i-1)d_v + c} = (Z_i)_{jc}")


def head_contributions(trace: AttentionTrace, cell: dict[str, int]) -> Explanation:
    """A head's output times its own d_v rows of W^O."""
    i, d_v = cell["head"], trace.sizes["d_v"]
    z = trace["head_outputs"].sel(batch=cell["batch"], head=i, query=cell["query"]).value
    column = _column(trace, "W_O", cell["feature"])[i * d_v : (i + 1) * d_v]
    symbols = r"(Z_i W_i^O)_{jm} = \sum_{c=1}^{d_v} z_{jc}\, W^O_{(i-1)d_v + c,\,m}"
    return _sum(trace, "head_contributions", cell, _pairs(z, column), symbols)


def output(trace: AttentionTrace, cell: dict[str, int]) -> Explanation:
    """What every head contributes, and the bias."""
    index = {"batch": cell["batch"], "query": cell["query"], "feature": cell["feature"]}
    parts = trace["head_contributions"].sel(**index).value
    factors: list[tuple[float, ...]] = [(part,) for part in parts.detach().double().tolist()]
    bias = ""
    if (b := trace.parameter("b_O")) is not None:
        factors.append((b.value[cell["feature"]].item(),))
        bias = r" + b^O_m"
    return _sum(trace, "output", cell, factors, rf"y_{{jm}} = \sum_{{i=1}}^{{h}} (Z_i W_i^O)_{{jm}}{bias}")


def _sum(
    trace: AttentionTrace,
    step: str,
    cell: dict[str, int],
    factors: Sequence[tuple[float, ...]],
    symbols: str,
    numbers: Callable[[Explanation, int], str] | None = None,
    *,
    softmax: tuple[float, float] | None = None,
    masked: bool = False,
) -> Explanation:
    terms = tuple(Term(index, term) for index, term in enumerate(factors))
    forbidden = any(EMPTY in term for term in factors)
    total = EMPTY if forbidden else math.fsum(term.product for term in terms)
    value = _at(trace, step, cell)
    return Explanation(
        step, cell, value, terms, total, symbols, softmax, masked or forbidden, numbers or _sum_of_products
    )


def _sum_of_products(e: Explanation, decimals: int) -> str:
    terms, rest = e.shown
    written = [
        r" \cdot ".join(_bracket(_number(factor, decimals)) if place else _number(factor, decimals)
                        for place, factor in enumerate(term.factors))
        for term in terms
    ]  # fmt: skip
    if rest is not None:
        written.append(_number(rest, decimals))
    text = written[0]
    for part in written[1:]:
        text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
    return text if len(terms) == 1 and len(terms[0].factors) == 1 else f"{text} = {_number(e.value, decimals)}"


def _pairs(left: Tensor, right: Tensor) -> list[tuple[float, ...]]:
    return list(zip(left.detach().double().tolist(), right.detach().double().tolist(), strict=True))


def _column(trace: AttentionTrace, name: str, feature: int) -> Tensor:
    matrix = trace.parameter(name)
    assert matrix is not None  # W_Q … W_O are always there
    return matrix.sel(out=feature).value


def _at(trace: AttentionTrace, step: str, cell: dict[str, int]) -> float:
    return float(trace[step].sel(**cell).value.item())


def _number(value: float, decimals: int) -> str:
    if math.isinf(value):
        return r"-\infty" if value < 0 else r"\infty"
    text = f"{value:.{decimals}f}"
    return text[1:] if float(text) == 0 and text.startswith("-") else text


def _bracket(number: str) -> str:
    return f"({number})" if number.startswith("-") else number
