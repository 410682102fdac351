"""Change one thing and see what moves: the experiments of the walk from X to the output.

Every function leaves what it is given as it is: a changed module is a copy.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from mha_core.attention import MultiHeadAttention
from mha_core.comparison import relative_distance
from mha_core.metrics import mass_on
from mha_core.trace import Intermediate

__all__ = ["DIVISORS", "asymmetry", "nudge", "rescale", "scale_for", "self_weight", "tie"]

NUDGED = "Q_heads", "K_heads", "V_heads", "head_outputs"


def nudge(
    module: MultiHeadAttention,
    X: Tensor,
    feature: int,
    by: float,
    *,
    token: int | None = None,
    context: Tensor | None = None,
    mask: Tensor | None = None,
    scale: float | None = None,
) -> Mapping[str, Intermediate]:
    """Add to one feature of X; how far does each head's Q, K, V and output move?

    For a head that gets a slice of X, give ``splits.sliced(module)``: all heads but one stay
    where they are, exactly.

    Args:
        module: whose heads.
        X: (batch, n_q, d_model).
        feature: which feature of X, from 0.
        by: what is added.
        token: to which row of X, from 0; to every row when None.
        context, mask, scale: as in ``MultiHeadAttention.forward``; the context is not nudged.

    Returns:
        "Q_heads", "K_heads", "V_heads", "head_outputs": a number a head (kv_head for K and V), the
        change as a share of the head's size, both as norms over the batch, tokens and features.
        0 exactly where nothing moved; ∞ for a head that was all zeros.

    Raises:
        IndexError: there is no such feature or token.

    Source: Vaswani et al. 2017, section 3.2.2: each head projects all of X.

    >>> from mha_core.splits import sliced
    >>> module, X = MultiHeadAttention(64, 8), torch.randn(1, 6, 64)
    >>> for each in (module, sliced(module)):  # feature 64 of 64, by 2
    ...     print((nudge(each, X, 63, 2.0)["Q_heads"].value > 0).tolist())
    [True, True, True, True, True, True, True, True]
    [False, False, False, False, False, False, False, True]
    """
    _check_index("feature", feature, X.size(-1))
    rows = slice(None) if token is None else slice(token, token + 1)
    if token is not None:
        _check_index("token", token, X.size(1))
    nudged = X.detach().clone()
    nudged[:, rows, feature] += by
    with torch.no_grad():
        before, after = (module.trace(x, context, mask, scale=scale, keep=NUDGED) for x in (X, nudged))
    changes = {}
    for name in NUDGED:
        change = relative_distance(after[name].value, before[name].value, (0, 2, 3))  # (h,) or (h_kv,)
        changes[name] = Intermediate(name, (before[name].axes[1],), change, before[name].group)
    return changes


def rescale(module: MultiHeadAttention, letter: str, factor: float) -> MultiHeadAttention:
    """A copy with W_Q, W_K, W_V or W_O times a factor; biases stay.

    ×k on W_V leaves every weight as it is and, without biases, makes the output ×k; ×k on W_K
    (or W_Q) multiplies the scores instead and sharpens the weights.

    Args:
        letter: "Q", "K", "V" or "O".

    Raises:
        KeyError: another letter.

    Source: Vaswani et al. 2017, equation 1: linear in V, not in Q or K.

    >>> module, X = MultiHeadAttention(8, 2, bias=False), torch.randn(1, 3, 8)
    >>> torch.equal(rescale(module, "V", 2)(X), 2 * module(X))
    True
    """
    if letter not in ("Q", "K", "V", "O"):
        raise KeyError(f"there is no W_{letter}; choose Q, K, V or O")
    module = copy.deepcopy(module)
    linear: nn.Linear = getattr(module, f"W_{letter}")
    with torch.no_grad():
        linear.weight.mul_(factor)
    return module


def tie(module: MultiHeadAttention) -> MultiHeadAttention:
    """A copy whose W_K (and b_K) is its W_Q (and b_Q).

    Then q_i·k_j = q_j·k_i: scores of self-attention are symmetric, and a token's score with itself
    is |q_i|², above all others among queries of one length. The weights are not symmetric: each row
    has its own denominator.

    Raises:
        ValueError: W_Q and W_K differ in shape.

    >>> module = tie(MultiHeadAttention(8, 2))
    >>> trace = module.trace(torch.randn(1, 5, 8))
    >>> (asymmetry(trace["scores"].value) < 1e-6).tolist(), (asymmetry(trace["weights"].value) < 1e-6).tolist()
    ([[True, True]], [[False, False]])
    """
    if module.W_Q.weight.shape != module.W_K.weight.shape:
        raise ValueError(
            f"W_Q is (in, out) = {tuple(module.W_Q.weight.mT.shape)} and W_K {tuple(module.W_K.weight.mT.shape)}; "
            "to be tied they must be alike: h_kv = h, and d_context = d_model"
        )
    module = copy.deepcopy(module)
    module.W_K.load_state_dict(module.W_Q.state_dict())
    return module


def asymmetry(matrices: Tensor) -> Tensor:
    """‖S − Sᵀ‖ / 2‖S‖ of scores or weights: (…, n, n) → (…). 0 for symmetric, 1 for antisymmetric ones.

    Independent entries of mean 0 give about 1/√2; all zeros give 0.

    >>> asymmetry(torch.tensor([[[1.0, 2.0], [2.0, 1.0]], [[0.0, 1.0], [-1.0, 0.0]]])).tolist()
    [0.0, 1.0]
    """
    matrices = matrices.detach().double()
    halves: Tensor = torch.linalg.matrix_norm((matrices - matrices.mT) / 2)
    size: Tensor = torch.linalg.matrix_norm(matrices)
    return (halves / size).masked_fill(halves == 0, 0)


def self_weight(weights: Tensor) -> Tensor:
    """The weight of a token on itself, the mean over queries: (…, n, n) → (…).

    Rows that may attend to nothing are left out; NaN where there is no other.

    >>> self_weight(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    tensor(0.2500)
    """
    return mass_on(weights.detach(), torch.eye(weights.size(-1), dtype=torch.bool))


DIVISORS: Mapping[str, Callable[[int], float]] = {"sqrt": math.sqrt, "one": lambda d_k: 1.0, "d_k": float}
"""What scores are divided by, from d_k: right, and two that are wrong."""


def scale_for(divisor: str, d_k: int, temperature: float = 1.0) -> float:
    """The ``scale`` of ``forward`` and ``trace`` for a divisor of DIVISORS and a temperature T: 1 / (divisor · T).

    T → 0 makes the weights one-hot, T → ∞ uniform.

    Raises:
        KeyError: no such divisor.
        ValueError: a temperature that is not above 0.

    Source: Vaswani et al. 2017, section 3.2.1; temperature: Hinton et al. 2015, section 2.

    >>> [scale_for(divisor, 16, temperature=2) for divisor in DIVISORS]
    [0.125, 0.5, 0.03125]
    """
    if divisor not in DIVISORS:
        raise KeyError(f"there is no divisor {divisor!r}; choose from {', '.join(DIVISORS)}")
    if not temperature > 0:
        raise ValueError(
            f"temperature={temperature} is not above 0; choose a small one, such as 0.01, for one-hot weights"
        )
    return 1 / (DIVISORS[divisor](d_k) * temperature)


def _check_index(name: str, index: int, size: int) -> None:
    if not 0 <= index < size:
        raise IndexError(f"{name}={index} is out of range for X; choose 0 … {size - 1}")
