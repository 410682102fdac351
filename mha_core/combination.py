"""From the heads' outputs to one output: with heads switched off, with one map for all, and by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import torch
from torch import Tensor

from mha_core.attention import merge_heads
from mha_core.comparison import relative_distance
from mha_core.contributions import contribution_sizes, decimals_that_add_up
from mha_core.explain import Explanation, Term
from mha_core.trace import AttentionTrace, Intermediate

__all__ = ["OneLess", "OutputByHand", "extremes", "move", "one_less", "output_by_hand", "recombine", "row"]


def recombine(trace: AttentionTrace, kept: Sequence[bool] | None = None, *, average: bool = False) -> AttentionTrace:
    """The same calculation with some heads switched off, or with one map, the mean, for all heads.

    From the weights on, everything is computed anew, so that ``explain`` tells the arithmetic of the
    changed output. A head that is off brings zeros; b_O stays.

    Args:
        kept: for every head, whether it stays; all when None.
        average: every head uses the mean of the heads' weights instead of its own.

    Returns:
        The trace itself where nothing changes; else a trace that shares all steps before.

    Raises:
        ValueError: ``kept`` has not as many entries as there are heads.

    Source: switching off: Michel et al. 2019, section 3.1. Averaging: what Vaswani et al. 2017, section 3.2.2,
    say that multiple heads avoid.

    >>> from mha_core import MultiHeadAttention
    >>> trace = MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8))
    >>> recombine(trace, [True, False])["head_contributions"].sel(head=1).value.abs().max().item()
    0.0
    """
    h = trace.sizes["h"]
    kept = [True] * h if kept is None else list(kept)
    if len(kept) != h:
        raise ValueError(f"kept has {len(kept)} entries; give one for each of the h={h} heads")
    if all(kept) and not average:
        return trace
    tensors = {name: trace[name].value for name in trace if name != "head_contributions"}
    with torch.no_grad():
        if average:
            weights, V = tensors["weights"], trace["V_heads"]
            tensors["weights"] = weights.mean(1, keepdim=True).expand(weights.shape)  # (batch, h, n_q, n_k)
            values = V.value.repeat_interleave(V.group, 1)  # (batch, h, n_k, d_v)
            tensors["head_outputs"] = tensors["weights"].to(values.dtype) @ values  # (batch, h, n_q, d_v)
        off = torch.tensor(kept).logical_not().view(1, h, 1, 1)
        tensors["head_outputs"] = tensors["head_outputs"].masked_fill(off, 0)  # (batch, h, n_q, d_v)
        tensors["concat"] = merge_heads(tensors["head_outputs"])  # (batch, n_q, h·d_v)
        tensors["output"] = trace.module.W_O(tensors["concat"])  # (batch, n_q, d_model)
    return replace(trace, _tensors=tensors)


def move(trace: AttentionTrace, kept: Sequence[bool] | None = None, *, average: bool = False) -> float:
    """How far that moves the output, as a share of its size: ‖Y' − Y‖ / ‖Y‖.

    >>> from mha_core import MultiHeadAttention
    >>> move(MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8)))
    0.0
    """
    changed = recombine(trace, kept, average=average)
    return relative_distance(changed["output"].value, trace["output"].value).item()


MOST_COLUMNS = 16
"""Products that are written one by one."""


@dataclass(frozen=True)
class OneLess:
    """The output without one head.

    Attributes:
        moved: how far it moves, as a share of its size.
        equal: 1/h, what one of h equal slices would be.
        square: 1/√h, what one of h parts of equal length at right angles to each other moves their sum by.
    """

    moved: float
    equal: float
    square: float


def one_less(trace: AttentionTrace, head: int) -> OneLess:
    """Take one head away.

    >>> from mha_core import MultiHeadAttention
    >>> one_less(MultiHeadAttention(8, 4).trace(torch.randn(1, 3, 8)), 0).square
    0.5
    """
    h = trace.sizes["h"]
    return OneLess(move(trace, [i != head for i in range(h)]), 1 / h, 1 / math.sqrt(h))


@dataclass(frozen=True, eq=False)
class OutputByHand:
    """One number of the output, to be followed on paper.

    Attributes:
        output: the sum over heads, and b_O.
        head: one head's own part of it, a sum of d_v products.
        decimals: how many to write.
        exact: written so, the operands give the products, the products the head's part, and the parts the output,
            to the last digit. Else products are rounded where they are written.
        adds_up: the written parts add up to the written output.
    """

    output: Explanation
    head: Explanation
    decimals: int
    exact: bool
    adds_up: bool

    @property
    def has_bias(self) -> bool:
        """Whether b_O takes part: it is there, and not 0."""
        return len(self.output.terms) > self.output_heads and self.output.terms[-1].product != 0

    @property
    def output_heads(self) -> int:
        """How many summands are heads."""
        return len(self.output.terms) - ("b^O" in self.output.symbols)

    @property
    def parts(self) -> tuple[float, ...]:
        """What each head brings."""
        return tuple(term.product for term in self.output.terms[: self.output_heads])

    @property
    def part(self) -> str:
        """The head's part as it is written."""
        return written(self.head.value, self.decimals)

    @property
    def columns(self) -> tuple[tuple[Term, ...], float | None, int]:
        """The products of the head's part that are written one by one: all, or the largest.

        And the sum of the others, None where there are none, and how many they are.
        """
        return _columns(self.head)

    @property
    def products_add_up(self) -> bool:
        """Whether the products, as they are written, add up to the head's part, as it is written."""
        return _products_give_it(self.head, self.decimals)

    def numbers(self) -> str:
        """LaTeX: every head's part, b_O where it is not 0, and their sum."""
        parts = [written(part, self.decimals) for part in self.parts]
        if self.has_bias:
            parts.append(written(self.output.terms[-1].product, self.decimals))
        text = parts[0]
        for part in parts[1:]:
            text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
        equals = "=" if self.adds_up else r"\approx"
        return f"{text} {equals} {written(self.output.value, self.decimals)}"


def output_by_hand(
    trace: AttentionTrace, head: int, query: int, feature: int, *, least: int = 2, most: int = 5
) -> OutputByHand:
    """One output number as a sum over heads, and one head's part as a sum over its own d_v features.

    The decimals are the fewest with which both sums are right as written; of these two the sum over
    heads comes first where both cannot be had.

    Raises:
        IndexError: there is no such head, query or feature.

    >>> from mha_core import MultiHeadAttention
    >>> found = output_by_hand(MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8)), head=1, query=2, feature=5)
    >>> len(found.head.terms), len(found.parts)
    (4, 2)
    """
    output = trace.explain("output", query=query, feature=feature)
    part = trace.explain("head_contributions", head=head, query=query, feature=feature)
    parts = [term.product for term in output.terms]
    fitting = [d for d in range(least, most + 1) if decimals_that_add_up(parts, output.value, d, d) is not None]
    for check in (_operands_give_it, _products_give_it):
        if found := next((d for d in fitting if check(part, d)), None):
            return OutputByHand(output, part, found, check is _operands_give_it, True)
    return OutputByHand(output, part, fitting[0] if fitting else 3, False, bool(fitting))


def extremes(trace: AttentionTrace, query: int, kept: Sequence[bool]) -> tuple[int, float, int, float]:
    """Which of the kept heads adds most to a token, how much, and which least: ‖head_i W_i^O‖.

    >>> from mha_core import MultiHeadAttention
    >>> extremes(MultiHeadAttention(8, 2).trace(torch.zeros(1, 3, 8)), 0, [False, True])[0]
    1
    """
    sizes = contribution_sizes(trace)[:, query].tolist()
    among = [head for head, on in enumerate(kept) if on] or list(range(len(sizes)))
    most, least = max(among, key=sizes.__getitem__), min(among, key=sizes.__getitem__)
    return most, sizes[most], least, sizes[least]


def row(numbers: Tensor | Intermediate) -> str:
    """A row of numbers as it is written, as short as is exact.

    >>> row(torch.tensor([0.5, -2.0]))
    '(0.5, −2)'
    """
    values = numbers.value if isinstance(numbers, Intermediate) else numbers
    return f"({', '.join(f'{value:g}' for value in values.tolist())})".replace("-", "−")


def written(value: float, decimals: int) -> str:
    """A number as it is written, without a minus before 0.

    >>> written(-0.001, 2), written(2.0, 2)
    ('0.00', '2.00')
    """
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _columns(part: Explanation) -> tuple[tuple[Term, ...], float | None, int]:
    terms = part.terms
    if len(terms) <= MOST_COLUMNS:
        return terms, None, 0
    largest = sorted(terms, key=lambda term: -abs(term.product))[: MOST_COLUMNS - 1]
    kept = {term.index for term in largest}
    rest = math.fsum(term.product for term in terms if term.index not in kept)
    return tuple(sorted(largest, key=lambda term: term.index)), rest, len(terms) - len(largest)


def _operands_give_it(part: Explanation, decimals: int) -> bool:
    factors = [(written(a, decimals), written(b, decimals)) for a, b in (term.factors for term in part.terms)]
    products = [Decimal(a) * Decimal(b) for a, b in factors]
    as_written = [Decimal(written(term.product, decimals)) for term in part.terms]
    return products == as_written and sum(products) == Decimal(written(part.value, decimals))


def _products_give_it(part: Explanation, decimals: int) -> bool:
    terms, rest, _ = _columns(part)
    summands = [term.product for term in terms] + ([] if rest is None else [rest])
    return decimals_that_add_up(summands, part.value, decimals, decimals) is not None
