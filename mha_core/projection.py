"""What a head owns of a projection: its columns of the weight matrix, and with them its part of Q, K or V."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from mha_core.attention import MultiHeadAttention
from mha_core.trace import AttentionTrace

__all__ = ["Alone", "Ledger", "bias_moves", "head_alone", "ledger", "weights_with_bias"]


@dataclass(frozen=True, eq=False)
class Alone:
    """One head's projection, computed from its own columns alone.

    Attributes:
        weight: W_i, (d_model, d_k).
        result: X W_i + b_i, (n, d_k).
        difference: the largest |difference| from the head's band of X W.
    """

    weight: Tensor
    result: Tensor
    difference: float


def head_alone(trace: AttentionTrace, letter: str, head: int, batch: int = 0) -> Alone:
    """X · W_i of one head, by a matrix product of its own, beside its band of the whole product.

    Args:
        letter: "Q", "K" or "V".
        head: from 0; of keys and values the one that this query head reads.

    Source: Vaswani et al. 2017, section 3.2.2: head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    >>> trace = MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8))
    >>> alone = head_alone(trace, "Q", head=1)
    >>> tuple(alone.weight.shape), tuple(alone.result.shape), alone.difference < 1e-5
    ((8, 4), (3, 4), True)
    """
    source = trace["X" if letter == "Q" else "context"].sel(batch=batch).value.detach()  # (n, d_model)
    band = trace[f"{letter}_heads"].sel(batch=batch, head=head).value.detach()  # (n, d_k)
    matrix, bias = trace.parameter(f"W_{letter}"), trace.parameter(f"b_{letter}")
    assert matrix is not None  # only a bias may be missing
    width = band.size(-1)
    first = head * trace.sizes["h" if letter == "Q" else "h_kv"] // trace.sizes["h"] * width
    own = slice(first, first + width)
    weight = matrix.value.detach()[:, own].contiguous()  # (d_model, d_k)
    result = source @ weight  # (n, d_k)
    if bias is not None:
        result = result + bias.value.detach()[own]
    return Alone(weight, result, (result - band).abs().max().item())


@dataclass(frozen=True)
class Ledger:
    """What a number of heads costs.

    Attributes:
        h, d_k: heads, and features of each.
        weights: parameters of W_Q, W_K, W_V and W_O, by name.
        biases: of all four together.
        scores: score cells, h·n².
    """

    h: int
    d_k: int
    weights: Mapping[str, int]
    biases: int
    scores: int

    @property
    def total(self) -> int:
        """All parameters."""
        return sum(self.weights.values()) + self.biases


def ledger(d_model: int, h: int, n: int) -> Ledger:
    """Count the parameters of a module, and the score cells of n tokens.

    >>> [ledger(512, h, 10).total for h in (1, 8, 16)]
    [1050624, 1050624, 1050624]
    >>> [ledger(512, h, 10).scores for h in (1, 8, 16)]
    [100, 800, 1600]
    """
    with torch.device("meta"):  # counted, not filled
        module = MultiHeadAttention(d_model, h)
    linears = {name: getattr(module, name) for name in ("W_Q", "W_K", "W_V", "W_O")}
    weights = {name: linear.weight.numel() for name, linear in linears.items()}
    return Ledger(h, module.d_k, weights, sum(linear.bias.numel() for linear in linears.values()), h * n * n)


def weights_with_bias(trace: AttentionTrace, letter: str, seed: int = 0) -> Tensor:
    """The weights (batch, h, n_q, n_k) with one bias, b_Q, b_K, b_V or b_O, drawn from N(0, 1) instead of its own.

    b_K adds q_i · b_K to every score of a query alike, which softmax takes out again; b_V and b_O
    come after the weights. Only b_Q moves them.

    >>> trace = MultiHeadAttention(8, 2).trace(torch.randn(1, 5, 8))
    >>> moved = {a: (weights_with_bias(trace, a) - trace["weights"].value).abs().max().item() for a in "QKVO"}
    >>> {letter: change > 1e-5 for letter, change in moved.items()}
    {'Q': True, 'K': False, 'V': False, 'O': False}
    """
    module = copy.deepcopy(trace.module)
    linear: torch.nn.Linear = getattr(module, f"W_{letter}")
    with torch.no_grad():
        linear.bias.normal_(generator=torch.Generator().manual_seed(seed))
        context = trace["context"].value if trace.cross else None
        changed = module.trace(trace["X"].value, context, trace.mask, scale=trace.scale, keep=("weights",))
    return changed["weights"].value


def bias_moves(trace: AttentionTrace) -> dict[str, float]:
    """By letter, Q, K, V, O: the largest |change| of a weight when that bias is drawn anew.

    >>> moved = bias_moves(MultiHeadAttention(8, 2).trace(torch.randn(1, 5, 8)))
    >>> [letter for letter, change in moved.items() if change > 1e-5]
    ['Q']
    """
    before = trace["weights"].value.detach()
    return {letter: (weights_with_bias(trace, letter) - before).abs().max().item() for letter in "QKVO"}
