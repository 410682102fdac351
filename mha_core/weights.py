"""Weights without training: random ones by seed, and ones designed so that heads do something.

Designed heads read one half of X each (see :mod:`mha_core.inputs`). Where every pair of features
is a point on the unit circle, q·k = Σ cos(difference of angles): largest where the angles agree.
So "same word" compares the words' angles, and "previous token" the positions' angles after
turning the query's back by one step. W_V and W_O are random in both: they decide what is carried,
not where a head looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mha_core import metrics
from mha_core.attention import MultiHeadAttention
from mha_core.inputs import POCKET, Pocket, content_size, frequencies
from mha_core.trace import AttentionTrace

__all__ = ["ROLES", "HeadReport", "Role", "design", "randomize", "report", "set_pocket"]

REACH = 40
"""Designed heads keep their promise up to so many tokens."""
LEAK = 0.06
"""What a designed position head may spend on all other tokens together."""
STRONGEST = 400.0
ENOUGH = 0.9
"""The share of its attention that a head must spend on its target to deserve the label."""


def randomize(module: MultiHeadAttention, seed: int, *, with_bias: bool = False) -> MultiHeadAttention:
    """Fill the weights from N(0, 1/in_features), in place; biases are zero, or as the weights.

    Each matrix has its own stream, so that asking for biases, or another h, changes no weight.

    >>> a, b = (randomize(MultiHeadAttention(8, h), seed=1) for h in (2, 4))
    >>> torch.equal(a.W_Q.weight, b.W_Q.weight)
    True
    """
    with torch.no_grad():
        for stream, linear in enumerate((module.W_Q, module.W_K, module.W_V, module.W_O)):
            generator = torch.Generator().manual_seed(8 * seed + stream)
            linear.weight.normal_(0, linear.in_features**-0.5, generator=generator)
            if linear.bias is not None:
                linear.bias.zero_()
                if with_bias:
                    generator = torch.Generator().manual_seed(8 * seed + 4 + stream)
                    linear.bias.normal_(0, linear.in_features**-0.5, generator=generator)
    return module


def design(module: MultiHeadAttention, seed: int, *, with_bias: bool = False) -> tuple[Role, ...]:
    """Give the heads the roles of ROLES, in order, in place; W_V and W_O as :func:`randomize` does.

    The gain is split evenly over W_Q and W_K. Up to 40 tokens, with positions, without mask or
    bias and with d_k = d_model / h ≥ 8, "previous", "next" and "first" spend at least .9 on their target in
    every row that has one, "same word" in the mean. :func:`report` measures what came of it.

    Returns:
        The role of each head.

    Raises:
        ValueError: h above len(ROLES), h_kv < h, or a context of another width than X.
    """
    if module.h > len(ROLES) or module.h_kv != module.h or module.d_context != module.d_model:
        raise ValueError(
            f"h={module.h}, h_kv={module.h_kv}, d_context={module.d_context}: weights are designed for up to "
            f"{len(ROLES)} heads with keys of their own and a context as wide as X; use random weights instead"
        )
    randomize(module, seed, with_bias=with_bias)
    roles = ROLES[: module.h]
    with torch.no_grad():
        for i, role in enumerate(roles):
            W_Q, W_K = role.build(module.d_model, module.d_k)  # (d_model, d_k) each
            band = slice(i * module.d_k, (i + 1) * module.d_k)
            module.W_Q.weight[band] = W_Q.mT
            module.W_K.weight[band] = W_K.mT
    return roles


@dataclass(frozen=True)
class Role:
    """A row of ROLES: what a designed head looks for.

    Attributes:
        key: its name.
        build: from (d_model, d_k) to the head's W_Q and W_K, (d_model, d_k) each.
        target: the cells it should look at, boolean (n, n); None for evenly spread weights.
    """

    key: str
    build: Callable[[int, int], tuple[Tensor, Tensor]]
    target: Callable[[Sequence[str]], Tensor] | None


@dataclass(frozen=True)
class HeadReport:
    """What became of a head's role: the share of attention on its target, and whether it is enough.

    For "even" the share is the entropy over that of uniform weights on the allowed keys. NaN
    where no query has a target (one token has no previous one).
    """

    role: str
    mass: float
    holds: bool


def report(trace: AttentionTrace, tokens: Sequence[str], roles: Sequence[Role]) -> tuple[HeadReport, ...]:
    """Measure each head against its role on this very trace (batch 0)."""
    reports = []
    for i, role in enumerate(roles):
        weights = trace["weights"].sel(batch=0, head=i).value.detach()  # (n_q, n_k)
        if role.target is None:
            allowed = (trace["masked_scores"].sel(batch=0, head=i).value > -math.inf).sum(-1)
            several = allowed > 1
            mass = (metrics.entropy(weights)[several] / allowed[several].log()).mean().item()
        else:
            mass = metrics.mass_on(weights, role.target(tokens)).item()
        reports.append(HeadReport(role.key, mass, mass >= ENOUGH))
    return tuple(reports)


def set_pocket(module: MultiHeadAttention, pocket: Pocket = POCKET) -> MultiHeadAttention:
    """Put the pocket's integer matrices into a module of its size, in place; biases are zero.

    >>> module = set_pocket(MultiHeadAttention(POCKET.d_model, POCKET.h))
    >>> module.trace(POCKET.input())["raw_scores"].sel(batch=0, head=0).numpy().astype(int)
    array([[-2,  2, -2],
           [-2,  0,  2],
           [ 4, -2,  0]])
    """
    matrices = pocket.W_Q, pocket.W_K, pocket.W_V, pocket.W_O
    with torch.no_grad():
        for linear, matrix in zip((module.W_Q, module.W_K, module.W_V, module.W_O), matrices, strict=True):
            linear.weight.copy_(torch.tensor(matrix).mT)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
    return module


def _offset(offset: int, near: int = 0) -> Callable[[int, int], tuple[Tensor, Tensor]]:
    """Look ``offset`` tokens on: turn the query's position by ``offset`` steps, then compare."""

    def build(d_model: int, d_k: int) -> tuple[Tensor, Tensor]:
        start, omega = _position_half(d_model)
        pairs = _pick(omega, max(1, d_k // 2))  # whole pairs: half a one tells no angle
        apart = torch.arange(-REACH + 1, REACH)
        gain = _gain(_gaps(omega[pairs], apart), apart.abs() <= near)
        W_Q, W_K = torch.zeros(d_model, 2 * len(pairs)), torch.zeros(d_model, 2 * len(pairs))
        for column, pair in enumerate(pairs):
            sin, cos, turn = start + 2 * pair, start + 2 * pair + 1, omega[pair].item() * offset
            W_K[sin, 2 * column] = W_K[cos, 2 * column + 1] = 1
            W_Q[sin, 2 * column] = W_Q[cos, 2 * column + 1] = math.cos(turn)
            W_Q[cos, 2 * column], W_Q[sin, 2 * column + 1] = math.sin(turn), -math.sin(turn)
        return _finish(W_Q, W_K, gain, d_k)

    return build


def _first(d_model: int, d_k: int) -> tuple[Tensor, Tensor]:
    """Look at position 0, where every cosine is 1; the query is the slowest cosine, about constant."""
    start, omega = _position_half(d_model)
    pairs = _pick(omega, d_k)
    gaps = _gaps(omega[pairs], torch.arange(REACH))
    slowest = math.cos(omega[-1].item() * (REACH - 1)) if omega[-1] < 0.03 else 1.0
    gain = _gain(gaps, torch.arange(REACH) == 0) / slowest
    W_Q, W_K = torch.zeros(d_model, len(pairs)), torch.zeros(d_model, len(pairs))
    for column, pair in enumerate(pairs):
        W_K[start + 2 * pair + 1, column] = 1
        W_Q[start + 2 * len(omega) - 1, column] = 1
    return _finish(W_Q, W_K, gain, d_k)


def _far(d_model: int, d_k: int) -> tuple[Tensor, Tensor]:
    """Avoid what is near: minus slow cosines of the distance, which fall all the way to REACH.

    Those of about the same speed share the gain; slower ones would only add to every score alike.
    """
    start, omega = _position_half(d_model)
    slow = [pair for pair in range(len(omega)) if omega[pair] * REACH <= math.pi] or [len(omega) - 1]
    pairs = [pair for pair in slow if omega[pair] >= 0.6 * omega[slow[0]]][: max(1, d_k // 2)]
    W = torch.zeros(d_model, 2 * len(pairs))
    for column, pair in enumerate(pairs):
        W[start + 2 * pair, 2 * column] = W[start + 2 * pair + 1, 2 * column + 1] = 1
    curvature = (omega[pairs] ** 2).sum().item() / 2  # the score grows by gain · curvature · distance²
    return _finish(-W, W, min(STRONGEST, 0.3 / curvature), d_k)


def _word(sign: int) -> Callable[[int, int], tuple[Tensor, Tensor]]:
    """Look at the same word (sign 1) or away from it (−1): compare the words' angles."""

    def build(d_model: int, d_k: int) -> tuple[Tensor, Tensor]:
        pairs = min(max(1, d_k // 2), content_size(d_model) // 2)
        W = torch.zeros(d_model, 2 * pairs)
        W[: 2 * pairs] = torch.eye(2 * pairs)
        return _finish(sign * W, W, _word_gain(pairs) if sign > 0 else 1.0, d_k)

    return build


def _even(d_model: int, d_k: int) -> tuple[Tensor, Tensor]:
    """All scores 0, all weights equal."""
    return torch.zeros(d_model, d_k), torch.zeros(d_model, d_k)


def _position_half(d_model: int) -> tuple[int, Tensor]:
    start = content_size(d_model)
    size = d_model - start
    return start, frequencies(size)[: size // 2]


def _pick(omega: Tensor, most: int) -> list[int]:
    """Which pairs to read where a head is too narrow for all: the stride that keeps offsets furthest apart."""
    if most >= len(omega):
        return list(range(len(omega)))
    apart = torch.arange(1, REACH)
    choices = [list(range(0, most * stride, stride)) for stride in range(1, len(omega) // most + 1)]
    return max(choices, key=lambda pairs: _gaps(omega[pairs], apart).min().item())


def _gaps(omega: Tensor, apart: Tensor) -> Tensor:
    """How far Σ cos falls short of its maximum at each distance: (len(apart),)."""
    return (1 - (apart.unsqueeze(1) * omega).cos()).sum(-1)


def _gain(gaps: Tensor, wanted: Tensor) -> float:
    """The smallest gain at which softmax(−gain · gaps) spends 1 − LEAK on the wanted distances."""

    def leak(gain: float) -> float:
        return (-gain * gaps).softmax(-1)[~wanted].sum().item()

    return _bisect(leak, LEAK)


def _word_gain(pairs: int) -> float:
    """The gain at which 39 other words, at random angles, together weigh .02 of the right one.

    E[exp(g cos θ)] = I₀(g), so each pair dampens a random word by I₀(g) e^(−g).
    """
    return _bisect(lambda g: (REACH - 1) * torch.special.i0e(torch.tensor(g)).item() ** pairs, 0.02)


def _bisect(falling: Callable[[float], float], wanted: float) -> float:
    low, high = 0.0, STRONGEST
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > wanted else (low, middle)
    return high


def _finish(W_Q: Tensor, W_K: Tensor, gain: float, d_k: int) -> tuple[Tensor, Tensor]:
    """Split the gain, undo the division by √d_k to come, and cut or pad to d_k columns."""
    share = math.sqrt(gain * math.sqrt(d_k))
    padded = (nn.functional.pad(W[:, :d_k] * share, (0, max(0, d_k - W.size(1)))) for W in (W_Q, W_K))
    left, right = padded
    return left, right


def _near(tokens: Sequence[str]) -> Tensor:
    return _apart(tokens) <= 2


def _at_far_end(tokens: Sequence[str]) -> Tensor:
    return _apart(tokens) >= len(tokens) / 2


def _apart(tokens: Sequence[str]) -> Tensor:
    places = torch.arange(len(tokens))
    return (places.unsqueeze(1) - places).abs()


ROLES: tuple[Role, ...] = (
    Role("previous", _offset(-1), metrics.at_offset(-1)),
    Role("same", _word(1), metrics.same_word),
    Role("next", _offset(1), metrics.at_offset(1)),
    Role("first", _first, metrics.first_token),
    Role("near", _offset(0, near=2), _near),
    Role("even", _even, None),
    Role("back2", _offset(-2), metrics.at_offset(-2)),
    Role("ahead2", _offset(2), metrics.at_offset(2)),
    Role("other", _word(-1), lambda tokens: ~metrics.same_word(tokens)),
    Role("back3", _offset(-3), metrics.at_offset(-3)),
    Role("ahead3", _offset(3), metrics.at_offset(3)),
    Role("self", _offset(0), metrics.at_offset(0)),
    Role("back4", _offset(-4), metrics.at_offset(-4)),
    Role("ahead4", _offset(4), metrics.at_offset(4)),
    Role("back5", _offset(-5), metrics.at_offset(-5)),
    Role("far", _far, _at_far_end),
)
"""The roles of designed heads, in the order in which heads get them."""
