"""TOY_TASKS: small tasks that one head fails at and several solve, and one that one head solves.

Each trains in a second or two (:mod:`mha_core.toy_training`), on a model that is little more than
its attention (:mod:`mha_core.toy_model`). A sequence is symbols, a position holds one or two of
them; what has to be said at a position are one or several targets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

__all__ = ["MAX_SEED", "TOY_TASKS", "Batch", "Size", "ToyTask", "stream", "task_named"]

MAX_SEED = 9999
_PURPOSES = "weights", "data", "curve", "evaluation"
_OWN_STREAMS = 2 * 10**8

Cells = Mapping[str, Tensor]


def stream(seed: int, purpose: str) -> Generator:
    """A generator of its own for each seed and purpose: "weights", "data", "curve" or "evaluation".

    So models of one seed, whatever their h, start alike and see the same sequences.
    """
    return torch.Generator().manual_seed(_OWN_STREAMS + len(_PURPOSES) * seed + _PURPOSES.index(purpose))


@dataclass(frozen=True, eq=False)
class Batch:
    """Fresh sequences.

    Attributes:
        tokens: symbols, (batch, n, parts).
        targets: the right answers, 0 … classes − 1, (batch, n, targets).
        where: the positions that count, boolean, (n,).
    """

    tokens: Tensor
    targets: Tensor
    where: Tensor

    @property
    def answers(self) -> Tensor:
        """The targets at the positions that count, (batch, counted, targets)."""
        return self.targets[:, self.where]


@dataclass(frozen=True)
class Size:
    """How large a model is: heads in each layer, layers, and features of a token."""

    h: int
    layers: int
    d_model: int


@dataclass(frozen=True)
class ToyTask:
    """A row of TOY_TASKS.

    Attributes:
        key: its name.
        n: tokens of a sequence.
        symbols: how many different ones there are.
        classes: how many answers each target has.
        targets: their names, in the order of ``Batch.targets``.
        d_model, steps: of the recipe.
        sizes: the models of the recipe, to be compared.
        layered: causal, and each layer adds to what it got (residual); else one layer, no mask.
        draw: from a generator and a number, so many fresh sequences.
        places: from tokens, (batch, n, parts), the cells that a head could be looking for, by name:
            boolean, (batch, n, n). A row without such cells says nothing about a head.
        label: how the symbols at one position are written.
    """

    key: str
    n: int
    symbols: int
    classes: int
    targets: tuple[str, ...]
    d_model: int
    steps: int
    sizes: tuple[Size, ...]
    layered: bool
    draw: Callable[[Generator, int], Batch]
    places: Callable[[Tensor], Cells]
    label: Callable[[tuple[int, ...]], str]


def task_named(key: str) -> ToyTask:
    """The row of TOY_TASKS with this key.

    Raises:
        KeyError: there is none; the message lists them.

    >>> task_named("recall").targets
    ('match', 'slot')
    """
    for task in TOY_TASKS:
        if task.key == key:
            return task
    raise KeyError(f"there is no task {key!r}; the tasks are {', '.join(task.key for task in TOY_TASKS)}")


def _copy(key: str, offsets: Mapping[str, int], heads: tuple[int, ...]) -> ToyTask:
    """Say what stands ``offset`` tokens before (after, where negative), around the end as in a ring."""
    n, V = 12, 10

    def draw(generator: Generator, size: int) -> Batch:
        tokens = torch.randint(V, (size, n), generator=generator)  # (batch, n)
        targets = torch.stack([tokens.roll(offset, 1) for offset in offsets.values()], -1)  # (batch, n, targets)
        return Batch(tokens.unsqueeze(-1), targets, torch.ones(n, dtype=torch.bool))

    def places(tokens: Tensor) -> Cells:
        itself = torch.eye(n, dtype=torch.bool).expand(len(tokens), n, n)
        return {name: itself.roll(-offset, 2) for name, offset in offsets.items()}

    sizes = tuple(Size(h, 1, 64) for h in heads)
    return ToyTask(key, n, V, V, tuple(offsets), 64, 300, sizes, False, draw, places, lambda at: str(at[0]))


def _recall() -> ToyTask:
    """Pairs of (key, value), then the keys again in another order: say the key's value, and the slot's.

    Symbols are 12 keys, 12 values and a blank; a position holds a key and a value or the blank.
    """
    V, m = 12, 6
    blank = 2 * V
    where = torch.arange(2 * m) >= m

    def draw(generator: Generator, size: int) -> Batch:
        keys = torch.rand(size, V, generator=generator).argsort(1)[:, :m]  # (batch, m), distinct
        values = torch.randint(V, (size, m), generator=generator)  # (batch, m)
        order = torch.rand(size, m, generator=generator).argsort(1)  # (batch, m): which pair each query asks for
        pairs = torch.stack([keys, V + values], -1)  # (batch, m, 2)
        asked = torch.stack([keys.gather(1, order), torch.full_like(order, blank)], -1)  # (batch, m, 2)
        answers = torch.stack([values.gather(1, order), values], -1)  # (batch, m, 2): match, slot
        return Batch(torch.cat([pairs, asked], 1), torch.cat([torch.zeros_like(answers), answers], 1), where)

    def places(tokens: Tensor) -> Cells:
        key = tokens[..., 0]  # (batch, n)
        earlier = where.unsqueeze(1) & ~where  # (n, n): from the second half to the first
        slot = torch.eye(2 * m, dtype=torch.bool).roll(-m, 1) & earlier
        return {"match": (key.unsqueeze(2) == key.unsqueeze(1)) & earlier, "slot": slot.expand(len(tokens), -1, -1)}

    def label(at: tuple[int, ...]) -> str:
        return f"{chr(ord('a') + at[0])}{'?' if at[1] == blank else at[1] - V}"

    sizes = tuple(Size(h, 1, 64) for h in (1, 2, 4, 8))
    return ToyTask("recall", 2 * m, 2 * V + 1, V, ("match", "slot"), 64, 400, sizes, False, draw, places, label)


def _induction() -> ToyTask:
    """A random stretch of 5 … 10 distinct tokens, again and again: say the next token, in the second half."""
    n, V, shortest, longest = 20, 16, 5, 10
    where = torch.arange(n) >= n // 2

    def draw(generator: Generator, size: int) -> Batch:
        stretch = torch.rand(size, V, generator=generator).argsort(1)  # (batch, V), distinct
        period = torch.randint(shortest, longest + 1, (size, 1), generator=generator)
        tokens = stretch.gather(1, torch.arange(n + 1) % period)  # (batch, n + 1)
        return Batch(tokens[:, :-1].unsqueeze(-1), tokens[:, 1:].unsqueeze(-1), where)

    def places(tokens: Tensor) -> Cells:
        token = tokens[..., 0]  # (batch, n)
        same = (token.unsqueeze(2) == token.unsqueeze(1)).tril(-1) & where.unsqueeze(1)  # an earlier occurrence
        before = torch.eye(n, dtype=torch.bool).roll(-1, 1).tril(-1).expand(len(tokens), -1, -1)
        after = torch.cat([torch.zeros_like(same[..., :1]), same[..., :-1]], -1)  # the token after one
        return {"previous": before, "same": same, "after": after}

    sizes = Size(1, 2, 64), Size(4, 1, 88), Size(1, 1, 88)  # about as many parameters in each
    return ToyTask(
        "induction", n, V, V, ("next",), 64, 250, sizes, True, draw, places, lambda at: chr(ord("A") + at[0])
    )


_OFFSETS = {"back1": 1, "back2": 2, "back3": 3, "ahead1": -1}

TOY_TASKS: tuple[ToyTask, ...] = (
    _copy("copy", _OFFSETS, (1, 2, 4, 8)),
    _recall(),
    _induction(),
    _copy("control", {"back1": 1}, (1, 4)),
)
"""Several offsets at once; content and position at once; a stretch that recurs; and the control: one offset."""
