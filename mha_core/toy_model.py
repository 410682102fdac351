"""The model of the toy tasks: embedding + learned positions, attention, one linear readout a target.

No feed-forward network, no normalisation, so that what is learnt is learnt by the attention.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Generator, Tensor, nn

from mha_core.attention import MultiHeadAttention
from mha_core.masks import causal
from mha_core.toy_tasks import Size, ToyTask, stream
from mha_core.trace import AttentionTrace

__all__ = ["ToyModel"]


class ToyModel(nn.Module):
    """Tokens to logits, through ``size.layers`` layers of multi-head attention with biases.

    Weights start as PyTorch's own: N(0, 1) for the embedding (and the positions), uniform within
    ±1/√in_features for every ``nn.Linear``. All of them come from the seed, never from the global
    generator; models of one seed that differ in h alone start from the very same numbers.

    Args:
        task: a row of TOY_TASKS.
        size: heads, layers, features.
        seed: of the weights.
        scale: what the scores are multiplied by; 1/√d_k when None.

    Raises:
        ValueError: h does not divide d_model; more than one layer in a task without residual.

    >>> from mha_core.toy_tasks import task_named
    >>> task = task_named("copy")
    >>> [ToyModel(task, size, seed=0).parameter_count for size in task.sizes]
    [20648, 20648, 20648, 20648]
    """

    def __init__(self, task: ToyTask, size: Size, seed: int, *, scale: float | None = None) -> None:
        super().__init__()
        if size.layers < 1 or (size.layers > 1 and not task.layered):
            raise ValueError(f"layers={size.layers}: the task {task.key!r} has 1 layer")
        self.task, self.size, self.scale = task, size, scale
        with torch.device("meta"):  # PyTorch's own initialisation, of the global generator, is not run
            table = torch.empty(task.symbols, size.d_model)  # nn.Embedding's own fill would load 90 MB of compiler
            self.symbols: nn.Embedding = nn.Embedding.from_pretrained(table, freeze=False)  # type: ignore[no-untyped-call]
            self.positions = nn.Parameter(torch.empty(task.n, size.d_model))
            self.layers = nn.ModuleList(MultiHeadAttention(size.d_model, size.h) for _ in range(size.layers))
            self.readout = nn.Linear(size.d_model, len(task.targets) * task.classes)  # a linear readout each
        self.to_empty(device="cpu")
        self._initialise(stream(seed, "weights"))
        self.mask = causal(task.n) if task.layered else None

    def _initialise(self, generator: Generator) -> None:
        with torch.no_grad():
            for numbers in (self.symbols.weight, self.positions):
                numbers.normal_(generator=generator)
            for linear in self.modules():
                if isinstance(linear, nn.Linear):
                    bound = linear.in_features**-0.5
                    for numbers in linear.parameters():
                        numbers.uniform_(-bound, bound, generator=generator)

    @property
    def parameter_count(self) -> int:
        """How many numbers are learnt."""
        return sum(numbers.numel() for numbers in self.parameters())

    @property
    def attentions(self) -> tuple[MultiHeadAttention, ...]:
        """The layers, first to last."""
        return tuple(layer for layer in self.layers if isinstance(layer, MultiHeadAttention))

    def embed(self, tokens: Tensor) -> Tensor:
        """X: the symbols' embeddings and the position's, added; (batch, n, parts) → (batch, n, d_model)."""
        X: Tensor = self.symbols(tokens).sum(-2) + self.positions  # (batch, n, d_model)
        return X

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits: (batch, n, parts) → (batch, n, targets, classes)."""
        X = self.embed(tokens)  # (batch, n, d_model)
        for attention in self.attentions:
            output = attention(X, mask=self.mask, scale=self.scale)  # (batch, n, d_model)
            X = X + output if self.task.layered else output  # (batch, n, d_model)
        return self.read(X)

    def read(self, X: Tensor) -> Tensor:
        """The readouts: (…, d_model) → (…, targets, classes)."""
        logits: Tensor = self.readout(X)  # (…, targets·classes)
        return logits.view(*X.shape[:-1], len(self.task.targets), self.task.classes)

    def traces(self, tokens: Tensor, *, keep: Iterable[str] | None = None) -> tuple[AttentionTrace, ...]:
        """The calculation of each layer, step by step; ``keep`` as in ``MultiHeadAttention.trace``."""
        kept = None if keep is None else {*keep, "output"}
        traces: list[AttentionTrace] = []
        with torch.no_grad():
            X = self.embed(tokens)  # (batch, n, d_model)
            for attention in self.attentions:
                traces.append(attention.trace(X, mask=self.mask, scale=self.scale, keep=kept))
                output = traces[-1]["output"].value
                X = X + output if self.task.layered else output  # (batch, n, d_model)
        return tuple(traces)

    def maps(self, tokens: Tensor) -> Tensor:
        """The weights of every layer and head: (batch, n, parts) → (batch, layers, h, n, n)."""
        traces = self.traces(tokens, keep=["weights"])
        return torch.stack([trace["weights"].value for trace in traces], 1)
