"""What moves when a sentence gets another order, and what stays: tokens into new places, contents and places of X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from mha_core.inputs import content_size, positions

__all__ = ["REORDERS", "Parts", "Way", "parts", "reorder"]

Way = Literal["shuffle", "swap", "reverse"]
REORDERS: tuple[Way, ...] = ("shuffle", "swap", "reverse")


def reorder(way: Way, n: int, *, seed: int = 0, token: int = 0) -> tuple[int, ...]:
    """Which token stands at each place afterwards, from 0.

    Args:
        way: "shuffle" (by the seed, so that none stays at its place), "swap" (the token and its
            neighbour, the one after it where there is one), or "reverse".
        n: how many tokens; a single one stays where it is.

    Raises:
        IndexError: there is no such token.
        KeyError: there is no such way.

    >>> reorder("reverse", 3), reorder("swap", 3, token=0), reorder("swap", 3, token=2)
    ((2, 1, 0), (1, 0, 2), (0, 2, 1))
    """
    if not 0 <= token < n:
        raise IndexError(f"token={token} is out of range; choose 0 … {n - 1}")
    if way not in REORDERS:
        raise KeyError(f"there is no way {way!r}; choose from {', '.join(REORDERS)}")
    order = list(range(n))
    if n == 1:
        return (0,)
    if way == "reverse":
        return tuple(order[::-1])
    if way == "swap":
        other = token + 1 if token + 1 < n else token - 1
        order[token], order[other] = other, token
        return tuple(order)
    generator = torch.Generator().manual_seed(seed)
    while any(place == there for place, there in enumerate(order)):
        order = torch.randperm(n, generator=generator).tolist()
    return tuple(order)


@dataclass(frozen=True, eq=False)
class Parts:
    """X = content + places: what moves with a token, and what belongs to its place.

    Attributes:
        content, places: (1, n, d_model) each.
        own: whether ``content + places`` is how this app embeds words: in halves of X of their own. Else
            X came without positions, and the places are the paper's, to be added to all of X.
    """

    content: Tensor
    places: Tensor
    own: bool


def parts(X: Tensor, *, embedded: bool) -> Parts:
    """Split X, (1, n, d_model), into contents and places.

    Args:
        embedded: whether X comes from ``inputs.embed``, with or without positions; else nothing in it is known to be
            a position.

    Source: Vaswani et al. 2017, section 3.5.

    >>> from mha_core.inputs import embed
    >>> X = embed(("a", "b"), 8)
    >>> split = parts(X, embedded=True)
    >>> torch.equal(split.content + split.places, X), split.content[0, :, 4:].abs().max().item()
    (True, 0.0)
    """
    n, d_model = X.shape[1:]
    if not embedded:
        return Parts(X.detach(), positions(n, d_model).to(X.dtype).unsqueeze(0), own=False)
    size = content_size(d_model)
    content, places = X.detach().clone(), torch.zeros_like(X)
    content[..., size:] = 0
    places[..., size:] = positions(n, d_model - size)
    return Parts(content, places, own=True)
