"""Wrong ways to split into heads: the rows of MISTAKES that go wrong before there is any score."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from mha_core.attention import MultiHeadAttention, split_heads
from mha_core.comparison import Comparison, detached, pair
from mha_core.trace import AttentionTrace, Intermediate

__all__ = ["slice_then_project", "sliced", "view_without_transpose"]


def slice_then_project(trace: AttentionTrace, feature: int = 0, by: float = 2.0) -> Comparison:
    """Head i gets columns i·d_k … of X and a (d_k, d_k) matrix, instead of all of X and W_i^Q.

    No error: h slices of d_model / h features, projected, have the shape of Q_heads.
    The invariant is the share of (feature, head) pairs that no weight connects: 0, against 1 − 1/h.
    A weight may be zero; one that does not exist can never learn otherwise. Evidence: "moved" is
    ‖ΔQ_i‖ of each head when the feature of every token is nudged; "parameters" counts the weights
    of Q, K and V: 3d² against 3d²/h.

    Source: Vaswani et al. 2017, section 3.2.2: W_i^Q is (d_model, d_k).

    >>> trace = MultiHeadAttention(64, 8).trace(torch.randn(1, 3, 64))
    >>> moved = slice_then_project(trace, feature=63).evidence["moved"]
    >>> [int(on_each.value.count_nonzero()) for on_each in moved]
    [8, 1]
    """
    module, h = trace.module, trace.sizes["h"]
    X, Q_heads = trace["X"].value.detach(), trace["Q_heads"]  # (batch, n_q, d_model), (batch, h, n_q, d_k)
    nudged = X.clone()
    nudged[..., feature] += by
    with torch.no_grad():
        before, after = ([split_heads(m.W_Q(x), h) for m in (module, sliced(module))] for x in (X, nudged))
    changes = ((b - a).double() for a, b in zip(before, after, strict=True))
    moved = [torch.linalg.vector_norm(change, dim=(0, 2, 3)) for change in changes]  # (h,) each
    own = [_own_band(linear, heads) for linear, heads in _projections(module)]
    counts = [torch.tensor(sum(band.numel() for band in own)), torch.tensor(sum(int(band.sum()) for band in own))]
    return Comparison(
        detached(Q_heads),
        Intermediate("Q_heads", Q_heads.axes, before[1]),
        0.0,
        1 - own[0].double().mean().item(),
        0.0,
        {"moved": pair("moved", ("head",), *moved), "parameters": pair("parameters", (), *counts)},
    )


def sliced(module: MultiHeadAttention) -> MultiHeadAttention:
    """A copy that slices then projects: of W_Q, W_K and W_V, each head keeps the weights of its own band of X.

    All others are zero, which computes what h small matrices would. Where h does not divide
    d_model the bands differ by one feature.

    >>> sliced(MultiHeadAttention(4, 2)).W_Q.weight.ne(0).int()
    tensor([[1, 1, 0, 0],
            [1, 1, 0, 0],
            [0, 0, 1, 1],
            [0, 0, 1, 1]], dtype=torch.int32)
    """
    module = copy.deepcopy(module)
    with torch.no_grad():
        for linear, heads in _projections(module):
            linear.weight.masked_fill_(~_own_band(linear, heads), 0)
    return module


def view_without_transpose(trace: AttentionTrace) -> Comparison:
    """``view(batch, h, n, d_k)`` instead of ``view(batch, n, h, d_k).transpose(1, 2)``.

    No error: a view only renames places in memory, and both have n·h·d_k of them and the same shape.
    The invariant is the share of a head's cells that do not come from their row's token. Each
    wrong row is one token's still: h consecutive rows of a head are one token's bands. Evidence:
    each cell's "token" and "feature" in Q, from 0.

    Source: ``torch.Tensor.view``'s documentation; Vaswani et al. 2017, section 3.2.2.

    >>> trace = MultiHeadAttention(16, 4).trace(torch.randn(1, 6, 16))
    >>> for tokens in view_without_transpose(trace).evidence["token"]:
    ...     print(tokens.sel(head=0, feature=0).value.tolist())
    [0, 1, 2, 3, 4, 5]
    [0, 0, 0, 0, 1, 1]
    """
    Q, Q_heads, h = trace["Q"].value.detach(), trace["Q_heads"], trace.sizes["h"]
    n, features = Q.shape[1:]
    row, place = torch.arange(n).unsqueeze(1), torch.arange(features)
    sources = {"token": row.expand(n, features), "feature": place.expand(n, features)}  # (n_q, h·d_k) each
    pairs = {name: _split_both_ways(source.unsqueeze(0), h) for name, source in sources.items()}
    astray, astray_wrong = ((token != row).double().mean().item() for token in pairs["token"])
    evidence = {name: pair(name, Q_heads.axes[1:], *(each[0] for each in both)) for name, both in pairs.items()}
    wrong = Intermediate("Q_heads", Q_heads.axes, _split_both_ways(Q, h)[1])
    return Comparison(detached(Q_heads), wrong, astray, astray_wrong, 0.0, evidence)


def _split_both_ways(projected: Tensor, h: int) -> tuple[Tensor, Tensor]:
    batch, n, features = projected.shape
    return split_heads(projected.contiguous(), h), projected.contiguous().view(batch, h, n, features // h)


def _projections(module: MultiHeadAttention) -> tuple[tuple[nn.Linear, int], ...]:
    return (module.W_Q, module.h), (module.W_K, module.h_kv), (module.W_V, module.h_kv)


def _own_band(linear: nn.Linear, heads: int) -> Tensor:
    """Which weights, (out, in), lead from a head's own band of X to the head."""
    features, width = linear.in_features, linear.out_features // heads
    own = torch.zeros(linear.weight.shape, dtype=torch.bool)
    for i in range(heads):
        own[i * width : (i + 1) * width, i * features // heads : (i + 1) * features // heads] = True
    return own
