"""What a head's weights are like, in numbers: METRICS.

Every metric is a mean over a head's queries. A row that may attend to nothing has no
distribution and is left out; so is a query without the thing looked for (row 0 has no previous
token). A mean over no rows at all is NaN, and says so by that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mha_core.trace import AttentionTrace

__all__ = ["METRICS", "TARGETS", "Metric", "divergence", "effective_rank", "entropy", "favourites", "mass_on", "target"]


@dataclass(frozen=True)
class Metric:
    """A row of METRICS.

    Attributes:
        key: its name.
        unit: what its numbers are: "nats", "share" (0 … 1), "tokens", "rank".
        axes: the axes of its result: (batch, head), or (batch, head, head) between two heads.
        compute: from a trace and its tokens.
    """

    key: str
    unit: str
    axes: tuple[str, ...]
    compute: Callable[[AttentionTrace, Sequence[str]], Tensor]


def entropy(weights: Tensor) -> Tensor:
    """Entropy of each row of weights, in nats: (…, n_k) → (…). 0 log 0 is 0.

    >>> entropy(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    tensor([0.0000, 0.6931])
    """
    terms: Tensor = torch.special.entr(weights)
    return terms.sum(-1)


def target(name: str, tokens: Sequence[str]) -> Tensor:
    """Which cells are the previous token, the same word …: boolean, (n, n); names in TARGETS.

    >>> target("previous", ["a", "b", "c"]).int()
    tensor([[0, 0, 0],
            [1, 0, 0],
            [0, 1, 0]], dtype=torch.int32)
    """
    if name not in TARGETS:
        raise KeyError(f"there is no target {name!r}; there are {', '.join(TARGETS)}")
    return TARGETS[name](tokens)


def at_offset(offset: int) -> Callable[[Sequence[str]], Tensor]:
    """The target "the token ``offset`` further on" (before, where negative)."""
    return lambda tokens: torch.eye(len(tokens)).roll(offset, 1).bool() & _within(len(tokens), offset)


def _within(n: int, offset: int) -> Tensor:
    keys = torch.arange(n) + offset
    return ((keys >= 0) & (keys < n)).unsqueeze(1).expand(n, n)


def same_word(tokens: Sequence[str]) -> Tensor:
    """The same word, here or elsewhere; case is folded, as in ``inputs.embed``."""
    folded = [token.casefold() for token in tokens]
    return torch.tensor([[a == b for b in folded] for a in folded])


def first_token(tokens: Sequence[str]) -> Tensor:
    """The first token, for every query."""
    cells = torch.zeros(len(tokens), len(tokens), dtype=torch.bool)
    cells[:, 0] = True
    return cells


TARGETS: dict[str, Callable[[Sequence[str]], Tensor]] = {
    "previous": at_offset(-1),
    "next": at_offset(1),
    "self": at_offset(0),
    "first": first_token,
    "same": same_word,
}
"""The cells whose attention mass METRICS measures."""


def mass_on(weights: Tensor, cells: Tensor) -> Tensor:
    """How much of its attention a head spends on the marked cells: (…, n_q, n_k) → (…).

    The mean over the queries that have a marked cell and may attend to anything.

    Raises:
        ValueError: the cells are not (n_q, n_k), as where a target of X's tokens meets a context.

    >>> mass_on(torch.eye(3), target("self", ["a", "b", "c"]))
    tensor(1.)
    """
    if weights.shape[-2:] != cells.shape:
        raise ValueError(
            f"the marked cells are {tuple(cells.shape)} and the weights (n_q, n_k) = {tuple(weights.shape[-2:])}; "
            "mark cells of that shape"
        )
    rows = cells.any(-1) & (weights.sum(-1) > 0)
    return _mean_over((weights * cells).sum(-1), rows)


def divergence(weights: Tensor) -> Tensor:
    """Jensen–Shannon divergence between each two heads, in nats: (…, h, n_q, n_k) → (…, h, h).

    0 for heads that look the same way, ln 2 for heads that never look at the same token; the mean
    over the queries. Source: Lin 1991; between heads: Clark et al. 2019, section 6.

    >>> divergence(torch.stack([torch.eye(2), torch.eye(2).flip(0)]))
    tensor([[0.0000, 0.6931],
            [0.6931, 0.0000]])
    """
    a, b = weights.unsqueeze(-4), weights.unsqueeze(-3)  # (…, 1, h, n_q, n_k), (…, h, 1, n_q, n_k)
    rows = (a.sum(-1) > 0) & (b.sum(-1) > 0)
    js = entropy((a + b) / 2) - (entropy(a) + entropy(b)) / 2  # (…, h, h, n_q)
    return _mean_over(js.clamp(min=0), rows)


def favourites(weights: Tensor) -> Tensor:
    """How many different tokens the heads of a query favour: (…, h, n_q, n_k) → (…), the mean over queries.

    A head's favourite is the token with its largest weight, the first of several. One head has
    one; h heads have up to h. A query whose heads may attend to nothing is left out.

    >>> favourites(torch.stack([torch.eye(3), torch.eye(3).roll(1, 1), torch.eye(3)]))
    tensor(2.)
    """
    chosen = nn.functional.one_hot(weights.argmax(-1), weights.size(-1)).bool()  # (…, h, n_q, n_k)
    alive = weights.sum(-1) > 0  # (…, h, n_q)
    different = (chosen & alive.unsqueeze(-1)).any(-3).sum(-1)  # (…, n_q)
    return _mean_over(different, alive.any(-2))


def effective_rank(scores: Tensor) -> Tensor:
    """How many directions a head's scores use: (…, n_q, n_k) → (…).

    e to the entropy of the singular values taken as shares: 1 for an outer product, at most
    min(n, d_k). All-zero scores have rank 0. Source: Roy & Vetterli 2007.

    >>> effective_rank(torch.eye(3))
    tensor(3.)
    """
    values: Tensor = torch.linalg.svdvals(scores.float())
    total = values.sum(-1, keepdim=True)
    shares = values / total.clamp(min=1e-30)
    return entropy(shares).exp() * (total.squeeze(-1) > 0)


def _mean_over(values: Tensor, rows: Tensor) -> Tensor:
    rows = rows.expand(values.shape)
    return (values * rows).sum(-1) / rows.sum(-1)


def _weights(trace: AttentionTrace) -> Tensor:
    return trace["weights"].value.detach()


def _every_row(measure: Callable[[Tensor], Tensor]) -> Callable[[AttentionTrace, Sequence[str]], Tensor]:
    def compute(trace: AttentionTrace, tokens: Sequence[str]) -> Tensor:
        weights = _weights(trace)
        return _mean_over(measure(weights), weights.sum(-1) > 0)

    return compute


def _distance(weights: Tensor) -> Tensor:
    n_q, n_k = weights.shape[-2:]
    apart = (torch.arange(n_q).unsqueeze(1) - torch.arange(n_k)).abs()
    return (weights * apart).sum(-1)


def _entropy_ratio(weights: Tensor) -> Tensor:
    n_k = weights.size(-1)
    return entropy(weights) / math.log(n_k) if n_k > 1 else torch.zeros(weights.shape[:-1])


def _mass(name: str) -> Callable[[AttentionTrace, Sequence[str]], Tensor]:
    return lambda trace, tokens: mass_on(_weights(trace), target(name, tokens))


_HEAD, _HEADS = ("batch", "head"), ("batch", "head", "head")

METRICS: tuple[Metric, ...] = (
    Metric("entropy", "nats", _HEAD, _every_row(entropy)),
    Metric("entropy_ratio", "share", _HEAD, _every_row(_entropy_ratio)),  # of ln n, the entropy of uniform weights
    Metric("largest_weight", "share", _HEAD, _every_row(lambda weights: weights.amax(-1))),
    Metric("mean_distance", "tokens", _HEAD, _every_row(_distance)),
    *(Metric(f"mass_{name}", "share", _HEAD, _mass(name)) for name in TARGETS),
    Metric("divergence", "nats", _HEADS, lambda trace, tokens: divergence(_weights(trace))),
    Metric("effective_rank", "rank", _HEAD, lambda trace, tokens: effective_rank(trace["scores"].value.detach())),
)
