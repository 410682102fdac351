"""Wrong attention that runs without an error, beside the right one: MISTAKES.

Each takes a trace and changes one line of attention.py. Nothing raises, every shape is right; what
tells the two apart is an invariant, which is measured on both. Here alone attention is computed
other than by :func:`mha_core.attention.attend`. Wrong splits into heads: :mod:`mha_core.splits`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mha_core.attention import merge_heads, safe_softmax
from mha_core.comparison import Comparison, detached, pair, relative_distance
from mha_core.masks import EMPTY, add_mask
from mha_core.metrics import entropy
from mha_core.splits import slice_then_project, view_without_transpose
from mha_core.trace import AttentionTrace, Intermediate

__all__ = ["MISTAKES", "Mistake", "output_with", "zero_after", "zero_before"]


@dataclass(frozen=True)
class Mistake:
    """A row of MISTAKES.

    Attributes:
        key: its name.
        invariant: what is true of the right variant and not of the wrong one.
        run: from a trace to both variants. Its docstring says what is wrong, why no error is
            raised, and the source. The trace is left as it is.
    """

    key: str
    invariant: str
    run: Callable[[AttentionTrace], Comparison]


def softmax_over_queries(trace: AttentionTrace) -> Comparison:
    """``softmax(-2)`` instead of ``softmax(-1)``: over the queries of a key.

    No error: any axis can be normalised, and the shape stays.
    The invariant is how far a row's weights are from summing to 1 (rows that may attend to
    nothing left out). Evidence: "row_sums" and "column_sums".

    Source: Vaswani et al. 2017, equation 1.

    >>> from mha_core import MultiHeadAttention
    >>> trace = MultiHeadAttention(8, 2).trace(torch.randn(1, 5, 8))
    >>> _, wrong = softmax_over_queries(trace).evidence["column_sums"]
    >>> bool(torch.allclose(wrong.value, torch.ones(1, 2, 5)))
    True
    """
    return _of_weights(trace, safe_softmax(trace["masked_scores"].value.detach(), -2), _rows_sum_to_1)


def mask_zero_before(trace: AttentionTrace) -> Comparison:
    """A forbidden score is set to 0, instead of −∞.

    No error: 0 is a score like any other, and e⁰ = 1 takes its share of the row.
    The invariant is the largest share of a row that lies on forbidden keys. Evidence: "leak",
    that share for every row, "row_sums" and "column_sums".

    Source: Vaswani et al. 2017, section 3.2.3: "setting to −∞".

    >>> from mha_core import MultiHeadAttention
    >>> trace = MultiHeadAttention(8, 2, bias=False).trace(torch.zeros(1, 6, 8), mask=torch.ones(6, 6).tril().bool())
    >>> round(mask_zero_before(trace).invariant_wrong, 3)  # five of six keys, and all scores are 0
    0.833
    """
    return _of_weights(trace, zero_before(trace), _no_leak)


def mask_zero_after(trace: AttentionTrace) -> Comparison:
    """A forbidden weight is set to 0 after the softmax, instead of its score to −∞ before.

    No error: nothing forbidden is read, so that the weights look masked.
    The invariant is how far a row is from summing to 1; and what is hidden still counts in the
    softmax's denominator (:func:`mha_core.leak.leak`). Evidence: as for mask_zero_before.

    Source: Vaswani et al. 2017, section 3.2.3: "in the input of the softmax".

    >>> from mha_core import MultiHeadAttention
    >>> trace = MultiHeadAttention(8, 2, bias=False).trace(torch.zeros(1, 6, 8), mask=torch.ones(6, 6).tril().bool())
    >>> _, wrong = mask_zero_after(trace).evidence["row_sums"]
    >>> round(wrong.sel(batch=0, head=0, query=0).value.item(), 3)
    0.167
    """
    return _of_weights(trace, zero_after(trace), _rows_sum_to_1)


def averaged_heads(trace: AttentionTrace) -> Comparison:
    """One map, the mean of the heads' weights, used by every head.

    No error: the mean has the shape of each head's weights, and its rows sum to 1.
    The invariant is the distance of the output from Σ_i A_i V_i W_i^O + b^O, as a share of it.
    Evidence: "weights".

    Source: Vaswani et al. 2017, section 3.2.2: "With a single attention head, averaging inhibits this."

    >>> from mha_core import MultiHeadAttention
    >>> averaged_heads(MultiHeadAttention(8, 1).trace(torch.randn(1, 5, 8))).broken  # nothing to average
    False
    """
    weights, contributions = trace["weights"], trace["head_contributions"].value.detach()  # (batch, h, n_q, d_model)
    averaged = weights.value.detach().mean(1, keepdim=True).expand(weights.shape)  # (batch, h, n_q, n_k)
    right, wrong = trace["output"], output_with(trace, averaged)  # (batch, n_q, d_model)
    bias = trace.parameter("b_O")
    added = contributions.sum(1) + (0 if bias is None else bias.value.detach())
    apart, apart_wrong = (relative_distance(output, added).item() for output in (right.value, wrong))
    lengths = torch.linalg.vector_norm(contributions.double(), dim=(0, 2, 3))  # (h,)
    cancelled = (lengths.sum() / added.double().norm().clamp(min=1e-300)).item()  # what is left of more rounds coarsely
    bound = 32 * torch.finfo(wrong.dtype).eps * max(1.0, cancelled)
    evidence = {"weights": pair("weights", weights.axes, weights.value.detach(), averaged)}
    return Comparison(detached(right), Intermediate("output", right.axes, wrong), apart, apart_wrong, bound, evidence)


def no_scale(trace: AttentionTrace) -> Comparison:
    """Scores that are not divided at all.

    No error: softmax takes any size; it only becomes one-hot, and its gradient goes to zero.
    The invariant is how far the standard deviation of a score is from 1 where queries and keys
    have unit variance, |scale · √d_k − 1|: √d_k − 1 here. Evidence: "scores", and "entropy" (nats)
    and "largest_weight" of every row.

    Source: Vaswani et al. 2017, section 3.2.1 and its footnote 4.

    >>> from mha_core import MultiHeadAttention
    >>> no_scale(MultiHeadAttention(64, 4).trace(torch.randn(1, 3, 64))).invariant_wrong
    3.0
    """
    return _with_scale(trace, 1.0)


def scale_by_d_k(trace: AttentionTrace) -> Comparison:
    """Scores divided by d_k, instead of √d_k.

    No error: softmax takes any size; it only becomes uniform, and the heads look everywhere.
    The invariant and the evidence are :func:`no_scale`'s: 1 − 1/√d_k.

    Source: as :func:`no_scale`.

    >>> from mha_core import MultiHeadAttention
    >>> scale_by_d_k(MultiHeadAttention(64, 4).trace(torch.randn(1, 3, 64))).invariant_wrong
    0.75
    """
    return _with_scale(trace, 1 / trace.sizes["d_k"])


def zero_before(trace: AttentionTrace) -> Tensor:
    """The weights with 0 for every forbidden score: (batch, h, n_q, n_k)."""
    masked_scores = trace["masked_scores"].value.detach()
    return masked_scores.masked_fill(masked_scores == EMPTY, 0).softmax(-1)


def zero_after(trace: AttentionTrace) -> Tensor:
    """The weights of all keys, with 0 put over every forbidden one: (batch, h, n_q, n_k)."""
    masked_scores = trace["masked_scores"].value.detach()
    forbidden = masked_scores == EMPTY
    return masked_scores.where(~forbidden, trace["scores"].value.detach()).softmax(-1).masked_fill(forbidden, 0)


def output_with(trace: AttentionTrace, weights: Tensor) -> Tensor:
    """The output, (batch, n_q, d_model), had the heads had these weights, (batch, h, n_q, n_k)."""
    V_heads = trace["V_heads"].value.detach().repeat_interleave(trace["V_heads"].group, 1)  # (batch, h, n_k, d_v)
    head_outputs = (weights @ V_heads.to(weights.dtype)).to(V_heads.dtype)  # (batch, h, n_q, d_v)
    with torch.no_grad():
        output: Tensor = trace.module.W_O(merge_heads(head_outputs))
    return output


def _rows_sum_to_1(weights: Tensor, forbidden: Tensor) -> float:
    """The largest deviation of a row that may attend to something."""
    apart = (weights.sum(-1) - 1).abs()
    return apart.masked_fill(forbidden.all(-1), 0).max().item()


def _no_leak(weights: Tensor, forbidden: Tensor) -> float:
    """The largest share of a row on forbidden keys."""
    return (weights * forbidden).sum(-1).max().item()


def _of_weights(trace: AttentionTrace, wrong: Tensor, invariant: Callable[[Tensor, Tensor], float]) -> Comparison:
    weights, forbidden = trace["weights"], trace["masked_scores"].value.detach() == EMPTY
    both = weights.value.detach(), wrong
    row, column = ("batch", "head", "query"), ("batch", "head", "key")
    bound = 0.0 if invariant is _no_leak else 8 * torch.finfo(wrong.dtype).eps
    return Comparison(
        detached(weights),
        Intermediate("weights", weights.axes, wrong),
        invariant(both[0], forbidden),
        invariant(wrong, forbidden),
        bound,
        {
            "row_sums": pair("row_sums", row, *(A.sum(-1) for A in both)),
            "column_sums": pair("column_sums", column, *(A.sum(-2) for A in both)),
            "leak": pair("leak", row, *((A * forbidden).sum(-1) for A in both)),
        },
    )


def _with_scale(trace: AttentionTrace, scale: float) -> Comparison:
    weights, scores, root = trace["weights"], trace["scores"], math.sqrt(trace.sizes["d_k"])
    wrong_scores = trace["raw_scores"].value.detach().to(scores.value.dtype) * scale
    both = weights.value.detach(), safe_softmax(add_mask(wrong_scores, trace.mask))
    row = ("batch", "head", "query")
    return Comparison(
        detached(weights),
        Intermediate("weights", weights.axes, both[1]),
        abs(trace.scale * root - 1),
        abs(scale * root - 1),
        1e-12,
        {
            "scores": pair("scores", scores.axes, scores.value.detach(), wrong_scores),
            "entropy": pair("entropy", row, *(entropy(A) for A in both)),
            "largest_weight": pair("largest_weight", row, *(A.amax(-1) for A in both)),
        },
    )


MISTAKES: tuple[Mistake, ...] = (
    Mistake("slice_then_project", "every head reads every feature of X", slice_then_project),
    Mistake("view_without_transpose", "row j of every head comes from token j", view_without_transpose),
    Mistake("softmax_over_queries", "every row of weights sums to 1", softmax_over_queries),
    Mistake("mask_zero_before", "no weight lies on a forbidden key", mask_zero_before),
    Mistake("mask_zero_after", "every row of weights sums to 1", mask_zero_after),
    Mistake("averaged_heads", "the output is the sum of what each head brings by its own weights", averaged_heads),
    Mistake("no_scale", "unit-variance queries and keys give unit-variance scores", no_scale),
    Mistake("scale_by_d_k", "unit-variance queries and keys give unit-variance scores", scale_by_d_k),
)
"""One or two for each step: projection, split, softmax, mask, heads, scale."""
