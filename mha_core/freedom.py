"""How free a head is: in how many directions its weights can move while its output stays."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mha_core.inputs import MAX_HEADS
from mha_core.masks import EMPTY
from mha_core.trace import AttentionTrace

__all__ = ["Freedom", "freedom", "freedom_by_h", "freedom_of_heads"]


@dataclass(frozen=True)
class Freedom:
    """Of one query in one head.

    Attributes:
        keys: how many keys it may attend to.
        d_v: features of the values.
        rank: of [V 1] for these keys, (keys, d_v + 1).
        tolerance: singular values up to this one count as 0.
    """

    keys: int
    d_v: int
    rank: int
    tolerance: float

    @property
    def directions(self) -> int:
        """keys − rank[V 1]: the weights can move so many ways, each with the sum 1, and the output stays."""
        return self.keys - self.rank

    @property
    def sure(self) -> int:
        """What any values of this size leave free: keys − d_v − 1, or 0."""
        return max(0, self.keys - self.d_v - 1)


def freedom(values: Tensor) -> Freedom:
    """The freedom that values, (keys, d_v), leave.

    The rank counts singular values (computed in float64) above σ_max · max(keys, d_v + 1) · ε, with ε the spacing of
    the values' own dtype at 1: what they are less than is rounding.

    Source: Brunner et al. 2020, section 3; the tolerance is the one of ``numpy.linalg.matrix_rank``.

    >>> freedom(torch.eye(5)[:, :2]).directions, freedom(torch.ones(5, 2)).directions, freedom(torch.eye(3)).directions
    (2, 4, 0)
    """
    keys, d_v = values.shape
    if not keys:
        return Freedom(0, d_v, 0, 0.0)
    with_ones = torch.cat([values.detach().double(), torch.ones(keys, 1, dtype=torch.float64)], 1)  # (keys, d_v + 1)
    singular = torch.linalg.svdvals(with_ones)
    tolerance = singular[0].item() * max(with_ones.shape) * torch.finfo(values.dtype).eps
    return Freedom(keys, d_v, int((singular > tolerance).sum()), tolerance)


def freedom_of_heads(trace: AttentionTrace, query: int, batch: int = 0) -> tuple[Freedom, ...]:
    """Every head's freedom for one query: of the keys that its mask allows.

    Raises:
        IndexError: query or batch out of range.

    >>> from mha_core import MultiHeadAttention
    >>> trace = MultiHeadAttention(16, 4).trace(torch.randn(1, 9, 16))  # 9 keys, d_v = 4
    >>> [each.directions for each in freedom_of_heads(trace, 0)]
    [4, 4, 4, 4]
    """
    found = []
    for head in range(trace.sizes["h"]):
        allowed = trace["masked_scores"].sel(batch=batch, head=head, query=query).value != EMPTY
        found.append(freedom(trace["V_heads"].sel(batch=batch, head=head).value[allowed]))
    return tuple(found)


def freedom_by_h(trace: AttentionTrace, batch: int = 0) -> dict[int, Freedom]:
    """The first head's freedom if the very same V were cut into h heads, for every h up to 16 that divides its columns.

    Every key counts, as without a mask.

    >>> from mha_core import MultiHeadAttention
    >>> trace = MultiHeadAttention(16, 4).trace(torch.randn(1, 9, 16))
    >>> {h: each.directions for h, each in freedom_by_h(trace).items()}
    {1: 0, 2: 0, 4: 4, 8: 6, 16: 7}
    """
    V = trace["V"].sel(batch=batch).value  # (n_k, h_kv·d_v)
    columns = V.size(1)
    return {h: freedom(V[:, : columns // h]) for h in range(1, MAX_HEADS + 1) if columns % h == 0}
