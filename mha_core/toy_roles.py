"""Where the heads of a trained toy model look: on which place, whether alike, whether it depends on the input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter

import torch
from torch import Tensor

from mha_core.metrics import divergence, entropy, mass_on
from mha_core.toy_model import ToyModel
from mha_core.toy_tasks import Batch
from mha_core.toy_training import Array, read_only

__all__ = ["Role", "Roles", "leading", "mass_on_places", "movement", "roles"]

_AT_ONCE = 2**20
"""Numbers of one chunk of the divergence, so that many heads do not fill the memory."""


@dataclass(frozen=True)
class Role:
    """The place that a head looks at most, and the share of its attention there."""

    place: str
    mass: float


@dataclass(frozen=True, eq=False)
class Roles:
    """What the heads look at, in the mean over sequences and over the queries that count.

    Attributes:
        places: names, of ``ToyTask.places``.
        mass: the share of attention on each place, (layer, head, place).
        divergence: Jensen–Shannon, in nats, between each two heads of a layer, (layer, head, head).
        movement: how much the map depends on the sequence, in nats, (layer, head): see :func:`movement`.
    """

    places: tuple[str, ...]
    mass: Array
    divergence: Array
    movement: Array

    def of(self, layer: int, head: int) -> Role:
        """The head's role. Two heads may have the same one, and a small mass is hardly one."""
        place = int(self.mass[layer, head].argmax())
        return Role(self.places[place], float(self.mass[layer, head, place]))


def roles(model: ToyModel, batch: Batch) -> Roles:
    """Measure every head on these sequences.

    >>> from mha_core.toy_tasks import Size, stream, task_named
    >>> task = task_named("recall")
    >>> measured = roles(ToyModel(task, Size(2, 1, 64), seed=0), task.draw(stream(0, "curve"), 64))
    >>> measured.places, measured.mass.shape, measured.divergence.shape, measured.movement.shape
    (('match', 'slot'), (1, 2, 2), (1, 2, 2), (1, 2))
    """
    maps = model.maps(batch.tokens)  # (batch, layers, h, n, n)
    places = model.task.places(batch.tokens)
    rows = torch.stack([cells.any(-1).any(0) for cells in places.values()]).any(0)  # (n,)
    counted = maps[..., rows, :]  # (batch, layers, h, rows, n)
    pieces = min(len(maps), 1 + counted.numel() * model.size.h // _AT_ONCE)
    apart = torch.cat([divergence(part) for part in counted.tensor_split(pieces)]).mean(0)  # (layers, h, h)
    mass = torch.stack(list(mass_on_places(maps, places).values()), -1)  # (layers, h, places)
    return Roles(tuple(places), read_only(mass), read_only(apart), read_only(movement(counted)))


def mass_on_places(maps: Tensor, places: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The share of attention on each place: from maps (batch, layers, h, n, n), (layers, h) each.

    The mean over all rows of all sequences that have a marked cell.
    """
    n = maps.size(-1)
    rows = maps.movedim(0, -3).reshape(*maps.shape[1:3], -1, n)  # (layers, h, batch·n, n)
    return {name: mass_on(rows, cells.reshape(-1, n)) for name, cells in places.items()}


def leading(masses: Mapping[str, Tensor]) -> list[Role]:
    """The place with the largest share for each head, layer by layer: from (layers, h) for each place.

    >>> leading({"back1": torch.tensor([[0.9, 0.1]]), "ahead1": torch.tensor([[0.0, 0.5]])})
    [Role(place='back1', mass=0.8999999761581421), Role(place='ahead1', mass=0.5)]
    """
    shares = torch.stack(list(masses.values()), -1).flatten(0, 1).tolist()  # (layers·h, places)
    heads = (zip(masses, row, strict=True) for row in shares)
    return [Role(*max(head, key=itemgetter(1))) for head in heads]


def movement(maps: Tensor) -> Tensor:
    """How far the sequence decides where a head looks: (batch, …, n_q, n_k) → (…), in nats.

    For each query the entropy of its mean weights over the sequences, less the mean of their
    entropies: what one learns about the key looked at by being told the sequence. 0 for a head that
    looks the same way whatever is written; the mean over the queries.

    >>> fixed, moving = torch.eye(2).expand(2, 2, 2), torch.stack([torch.eye(2), torch.eye(2).flip(0)])
    >>> movement(fixed), movement(moving)
    (tensor(0.), tensor(0.6931))
    """
    return (entropy(maps.mean(0)) - entropy(maps).mean(0)).mean(-1)
