"""Take heads of a trained toy model away, any of them, and see which answers go with them."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mha_core.toy_model import ToyModel
from mha_core.toy_tasks import Batch, Size
from mha_core.toy_training import Accuracy, accuracy, accuracy_of

__all__ = [
    "ENOUGH",
    "MAX_HEADS",
    "Ablations",
    "Head",
    "Redundancy",
    "ablations",
    "heads_of",
    "redundancy",
    "subsets",
    "without",
]

ENOUGH = 0.99
"""The joint accuracy that counts as solved."""
MAX_HEADS = 8
"""Heads in all layers together of which every subset is tried: 256."""

Head = tuple[int, int]
"""A layer and a head of it, from 0."""


def without(model: ToyModel, off: Collection[Head]) -> ToyModel:
    """A copy in which these heads' outputs are zeros.

    Their rows of W_O are zeros instead, which comes to the same; b_O stays.

    Raises:
        IndexError: there is no such head.
    """
    model = copy.deepcopy(model)
    with torch.no_grad():
        for layer, head in off:
            if not (0 <= layer < model.size.layers and 0 <= head < model.size.h):
                raise IndexError(
                    f"there is no head {head} in layer {layer}; layers are 0 … {model.size.layers - 1} "
                    f"and heads 0 … {model.size.h - 1}"
                )
            attention = model.attentions[layer]
            attention.W_O.weight[:, head * attention.d_v : (head + 1) * attention.d_v] = 0
    return model


@dataclass(frozen=True, eq=False)
class Ablations:
    """The accuracy of every subset of heads.

    Attributes:
        heads: all of them, layer by layer.
        accuracies: by the heads that are left.
    """

    heads: tuple[Head, ...]
    accuracies: dict[frozenset[Head], Accuracy]

    def without(self, *off: Head) -> Accuracy:
        """With these heads' outputs set to zero."""
        return self.accuracies[frozenset(self.heads).difference(off)]


def ablations(model: ToyModel, batch: Batch) -> Ablations:
    """Try every subset of heads on these sequences.

    With one layer the logits are a sum over heads, so that a subset costs one addition and no
    attention.

    Raises:
        ValueError: more than MAX_HEADS heads.

    Source: Michel et al. 2019, section 3.

    >>> from mha_core.toy_tasks import Size, stream, task_named
    >>> task = task_named("copy")
    >>> tried = ablations(ToyModel(task, Size(4, 1, 64), seed=0), task.draw(stream(0, "curve"), 64))
    >>> len(tried.accuracies), len(tried.without((0, 1)).targets)
    (16, 4)
    """
    heads = heads_of(model.size)
    if len(heads) > MAX_HEADS:
        raise ValueError(f"{len(heads)} heads have 2^{len(heads)} subsets; at most {MAX_HEADS} heads are tried")
    kept = subsets(heads)
    if model.size.layers > 1:
        found = [accuracy(without(model, set(heads) - some), batch) for some in kept]
    else:
        parts, rest = _logits_by_head(model, batch)
        left = (torch.tensor([float(head in some) for head in heads]) for some in kept)  # (h,) each
        found = [accuracy_of(rest + torch.tensordot(indicator, parts, 1), batch.answers) for indicator in left]
    return Ablations(heads, dict(zip(kept, found, strict=True)))


def heads_of(size: Size) -> tuple[Head, ...]:
    """All heads, layer by layer."""
    return tuple((layer, head) for layer in range(size.layers) for head in range(size.h))


def subsets(heads: Sequence[Head]) -> list[frozenset[Head]]:
    """Every subset, small ones first."""
    sizes = range(len(heads) + 1)
    return [frozenset(some) for size in sizes for some in itertools.combinations(heads, size)]


def _logits_by_head(model: ToyModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """What each head adds to the logits, (h, classes, batch, counted, targets), and the rest of them."""
    (trace,) = model.traces(batch.tokens, keep=["head_contributions"])
    heads = trace["head_contributions"].value.movedim(1, 0)[:, :, batch.where]  # (h, batch, counted, d_model)
    with torch.no_grad():
        rest = model.attentions[0].W_O.bias.expand(heads.shape[1:])  # (batch, counted, d_model)
        if model.task.layered:
            rest = rest + model.embed(batch.tokens)[:, batch.where]
        added = model.read(heads) - model.read(torch.zeros(model.size.d_model))  # without the readouts' biases
        return added.movedim(-1, 1).contiguous(), model.read(rest).movedim(-1, 0).contiguous()


@dataclass(frozen=True)
class Redundancy:
    """How many heads can be taken away while the joint accuracy stays at ``enough`` or above.

    Attributes:
        enough: the joint accuracy asked for.
        alone: the heads that can go if all others stay.
        together: how many can go at once if they are well chosen (exact); −1 where even all heads fall short.
        kept: the heads that are left then, of the best choice.
        best: the highest joint accuracy with 0, 1, … heads taken away, over all choices.
        order: the order in which heads go if each time the one goes that is missed least.
        greedy: the joint accuracy along that order, from no head taken away on.
    """

    enough: float
    alone: tuple[Head, ...]
    together: int
    kept: tuple[Head, ...]
    best: tuple[float, ...]
    order: tuple[Head, ...]
    greedy: tuple[float, ...]


def redundancy(tried: Ablations, *, enough: float = ENOUGH) -> Redundancy:
    """Which heads are one too many, read off all subsets.

    Source: Michel et al. 2019, section 3 for one at a time, section 4 for one after the other (there in the order
    of a score from gradients, here of what is missed least).
    """
    alone = tuple(head for head in tried.heads if tried.without(head).joint >= enough)
    choices = [_best_choice(tried, gone) for gone in range(len(tried.heads) + 1)]
    best = tuple(tried.without(*off).joint for off in choices)
    together = max((gone for gone, joint in enumerate(best) if joint >= enough), default=-1)
    kept = tuple(head for head in tried.heads if head not in choices[max(together, 0)])
    order: tuple[Head, ...] = ()
    while len(order) < len(tried.heads):
        order = (*order, _least_missed(tried, order))
    greedy = tuple(tried.without(*order[:gone]).joint for gone in range(len(order) + 1))
    return Redundancy(enough, alone, together, kept, best, order, greedy)


def _best_choice(tried: Ablations, gone: int) -> tuple[Head, ...]:
    return max(itertools.combinations(tried.heads, gone), key=lambda off: tried.without(*off).joint)


def _least_missed(tried: Ablations, off: tuple[Head, ...]) -> Head:
    left = [head for head in tried.heads if head not in off]
    return max(left, key=lambda head: tried.without(*off, head).joint)
