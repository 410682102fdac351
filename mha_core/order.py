"""Does attention know the order of its tokens? The same tokens in another order, and what each one gets then.

Without positions and without a mask attention treats its tokens as a set: with P a permutation,
MHA(P X) = P MHA(X), since A becomes P A Pᵀ and V becomes P V. What ends this is whatever belongs
to a *place* and stays there while the tokens move: positions added to X, or a mask.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mha_core.attention import MultiHeadAttention
from mha_core.masks import EMPTY, causal
from mha_core.reorder import Parts, parts
from mha_core.trace import AttentionTrace

__all__ = ["CASES", "Reordered", "compare", "order_cases"]

CASES = ("none", "positions", "causal", "yours")
"""No positions and no mask; positions alone; a causal mask alone; the calculation's own, where that is another."""


@dataclass(frozen=True, eq=False)
class Reordered:
    """The outputs of a sentence and of the same tokens in another order, in float64.

    Attributes:
        order: which token stands at each place of the new sentence, from 0.
        before: the outputs of the sentence as it was, (n, d_model).
        after: the outputs of the new sentence, a row a *place*: (n, d_model).
        weights: of one head before and after, (n, n) each.
        placed: whether positions took part.
        forbidden: which pairs of places the mask forbids in this head, (n, n); the same before and after.
        single: the largest difference between a token's two outputs in float32.
    """

    order: tuple[int, ...]
    before: Tensor
    after: Tensor
    weights: tuple[Tensor, Tensor]
    placed: bool
    forbidden: Tensor
    single: float

    @property
    def place(self) -> tuple[int, ...]:
        """Where each token stands in the new sentence, from 0: the inverse of ``order``."""
        return tuple(sorted(range(len(self.order)), key=self.order.__getitem__))

    @property
    def aligned(self) -> Tensor:
        """The new sentence's outputs, each put back into the row of its token: Pᵀ MHA(P X), (n, d_model)."""
        return self.after[list(self.place)]

    @property
    def difference(self) -> Tensor:
        """What the new order changed for each token, (n, d_model)."""
        return self.aligned - self.before

    @property
    def largest(self) -> float:
        """The largest |difference|: rounding, about 1e-15, where the outputs follow their tokens exactly."""
        return self.difference.abs().max().item()

    @property
    def follows(self) -> bool:
        """Whether every output went with its token, but for rounding: 1e-12 of the largest output."""
        return self.largest <= 1e-12 * max(1.0, self.before.abs().max().item())

    @property
    def map_follows(self) -> bool:
        """Whether the new map is P A Pᵀ: the old one, its rows and its columns in the new order."""
        before, after = self.weights
        moved = before[list(self.order)][:, list(self.order)]
        return bool((after - moved).abs().max() <= 1e-12)

    def widest(self, token: int, most: int) -> list[int]:
        """The features of a token's output that differ most, in their order."""
        size = self.difference[token].abs()
        features: list[int] = size.topk(min(most, len(size))).indices.sort().values.tolist()
        return features

    def of(self, token: int) -> float:
        """The largest |difference| of one token's output."""
        return self.difference[token].abs().max().item()


def compare(
    trace: AttentionTrace,
    order: Sequence[int],
    X: Parts,
    *,
    places: bool = False,
    mask: Tensor | None = None,
    head: int = 0,
) -> Reordered:
    """Compute the outputs of a sentence and of its tokens in another order, with a calculation's module and scale.

    Args:
        order: which token stands at each place of the new sentence.
        X: contents, which move, and places, which don't.
        places: whether the places take part.
        mask: of places: it does not move either.
        head: whose weights to keep.

    Raises:
        ValueError: ``order`` is no permutation.

    Source: attention on sets, Lee et al. 2019; that positions must be put in, Vaswani et al. 2017, section 3.5.

    >>> from mha_core import MultiHeadAttention
    >>> trace = MultiHeadAttention(8, 2).trace(torch.randn(1, 4, 8))
    >>> X = parts(trace["X"].value, embedded=False)
    >>> [compare(trace, (3, 1, 0, 2), X, places=places).follows for places in (False, True)]
    [True, False]
    """
    return _compare(trace, _in_float64(trace.module), order, X, places, mask, head)


def _in_float64(module: MultiHeadAttention) -> MultiHeadAttention:
    return copy.deepcopy(module).double()


def _compare(
    trace: AttentionTrace,
    exact: MultiHeadAttention,
    order: Sequence[int],
    X: Parts,
    places: bool,
    mask: Tensor | None,
    head: int,
) -> Reordered:
    n, to = X.content.size(1), list(order)
    if sorted(to) != list(range(n)):
        raise ValueError(f"order={tuple(order)} is no permutation of 0 … {n - 1}; give each place one token")
    kept = X.places if places else torch.zeros_like(X.places)
    both = torch.cat([X.content + kept, X.content[:, to] + kept])  # (2, n, d_model): before and after
    with torch.no_grad():
        found = exact.trace(both.double(), mask=mask, scale=trace.scale, keep=("masked_scores", "weights", "output"))
        one, other = trace.module(both, mask=mask, scale=trace.scale)  # (n, d_model) each, in float32
    before, after = found["output"].value
    old, new = found["weights"].sel(head=head).value.clone()  # without the other heads'
    forbidden = found["masked_scores"].sel(batch=0, head=head).value == EMPTY
    single = (other - one[to]).abs().max().item()
    return Reordered(tuple(to), before, after, (old, new), places, forbidden, single)


def order_cases(trace: AttentionTrace, order: Sequence[int], *, embedded: bool, head: int = 0) -> dict[str, Reordered]:
    """The same new order in each of CASES; "yours" is left out where it is one of the other three.

    Args:
        embedded: as in :func:`mha_core.reorder.parts`.
        head: whose weights to keep.

    >>> from mha_core import MultiHeadAttention
    >>> trace = MultiHeadAttention(8, 2).trace(torch.randn(1, 4, 8))
    >>> {case: found.follows for case, found in order_cases(trace, (3, 1, 0, 2), embedded=False).items()}
    {'none': True, 'positions': False, 'causal': False}
    """
    X, n = parts(trace["X"].value, embedded=embedded), trace.sizes["n_q"]
    mask, down = trace.mask, causal(n)
    exact = _in_float64(trace.module)
    found = {
        "none": _compare(trace, exact, order, X, False, None, head),
        "positions": _compare(trace, exact, order, X, True, None, head),
        "causal": _compare(trace, exact, order, X, False, down, head),
    }
    placed = embedded and not torch.equal(trace["X"].value, X.content)
    known = mask is None or (not placed and mask.dtype == torch.bool and mask.shape[:2] == (1, 1)
                             and torch.equal(mask[0, 0].expand(n, n), down))  # fmt: skip
    if not known:
        found["yours"] = _compare(trace, exact, order, X, placed, mask, head)
    return found
