"""What attention costs: parameters, multiplications, softmax cells, bytes. Exact integers, from sizes alone.

COST_STEPS says for each step which product of sizes counts what; numbers and formulas both come from
it. Conventions: a product (m, k) · (k, n) is 2·m·k·n FLOPs, a multiplication and an addition each, as
``torch.utils.flop_counter`` counts; only matrix products are counted, no bias, scale, mask or softmax.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from mha_core.sizes import Sizes

__all__ = [
    "COST_STEPS", "CostStep", "activation_bytes", "cache_bytes", "crossing", "flops", "formula", "measure",
    "parameters", "softmax_cells",
]  # fmt: skip

Factors = tuple[str, ...]


@dataclass(frozen=True)
class CostStep:
    """A row of COST_STEPS: every entry a product of sizes, empty where there is nothing to count.

    Attributes:
        name: as in STEPS.
        weights, biases: the step's parameters.
        flops: of its matrix product.
        cells: what its softmax normalises.
        held: the numbers of the tensor that a trace keeps of it, where that has memory of its own. The
            heads' Q, K and V are views of Q, K and V and hold nothing more, nor does Concat with one head.
        full_precision: whether it is at least float32: half precision computes scores in float32.
    """

    name: str
    weights: Factors = ()
    biases: Factors = ()
    flops: Factors = ()
    cells: Factors = ()
    held: Factors = ()
    full_precision: bool = False


def _step(
    name: str, *, weights: str = "", biases: str = "", flops: str = "", cells: str = "", held: str = "",
    full_precision: bool = False,
) -> CostStep:  # fmt: skip
    w, b, f, c, k = (tuple(text.split()) for text in (weights, biases, flops, cells, held))
    return CostStep(name, w, b, f, c, k, full_precision)


_PAIRS = "batch h n_q n_k"

COST_STEPS: tuple[CostStep, ...] = (
    _step("X", held="batch n_q d_model"),
    _step("context", held="cross batch n_k d_context"),
    _step("Q", weights="d_model h d_k", biases="h d_k", flops="2 batch n_q d_model h d_k", held="batch n_q h d_k"),
    _step(
        "K", weights="d_context h_kv d_k", biases="h_kv d_k", flops="2 batch n_k d_context h_kv d_k",
        held="batch n_k h_kv d_k",
    ),
    _step(
        "V", weights="d_context h_kv d_v", biases="h_kv d_v", flops="2 batch n_k d_context h_kv d_v",
        held="batch n_k h_kv d_v",
    ),
    _step("raw_scores", flops=f"2 {_PAIRS} d_k", held=_PAIRS, full_precision=True),
    _step("scores", held=_PAIRS, full_precision=True),
    _step("masked_scores", held=f"masked {_PAIRS}", full_precision=True),
    _step("weights", cells=_PAIRS, held=_PAIRS, full_precision=True),
    _step("head_outputs", flops=f"2 {_PAIRS} d_v", held="batch h n_q d_v"),
    _step("concat", held="copied batch n_q h d_v"),
    _step(
        "output", weights="h d_v d_model", biases="d_model", flops="2 batch n_q h d_v d_model", held="batch n_q d_model"
    ),
)  # fmt: skip
"""The steps that cost something, in the order of STEPS."""


def measure(factors: Factors, sizes: Sizes) -> int:
    """The product of sizes; 0 for none.

    >>> measure(("2", "h", "d_k"), Sizes.standard(512, 8, 10)), measure((), Sizes.standard(512, 8, 10))
    (1024, 0)
    """
    return prod(int(f) if f.isdigit() else int(getattr(sizes, f)) for f in factors) if factors else 0


_SYMBOLS = {
    "d_model": r"d_{\mathrm{model}}", "d_context": r"d_{\mathrm{model}}", "h_kv": r"h_{kv}", "n_q": "n", "n_k": "n",
    "n²": "n^2", "batch": "b",
}  # fmt: skip


def formula(factors: Factors, *, batch: bool = False) -> str:
    """The product as LaTeX for self-attention: n_q = n_k = n, d_context = d_model. The batch only if asked for.

    >>> formula(("2", "batch", "h", "n_q", "n_k", "d_k"))
    '2\\\\,h\\\\,n^2\\\\,d_k'
    """
    text = " ".join(f for f in factors if f not in ("masked", "cross", "copied") and (batch or f != "batch"))
    symbols = [_SYMBOLS.get(f, f) for f in text.replace("n_q n_k", "n²").split()]
    return r"\,".join(symbols)


def parameters(sizes: Sizes) -> int:
    """Weights and biases of all layers.

    >>> parameters(Sizes.standard(512, 8, 10))
    1050624
    """
    one = sum(measure(s.weights, sizes) + sizes.bias * measure(s.biases, sizes) for s in COST_STEPS)
    return sizes.layers * one


def flops(sizes: Sizes) -> int:
    """FLOPs of all matrix products of all layers; a mask saves none.

    >>> flops(Sizes.standard(512, 1, 64)) == flops(Sizes.standard(512, 8, 64))
    True
    """
    return sizes.layers * sum(measure(step.flops, sizes) for step in COST_STEPS)


def softmax_cells(sizes: Sizes) -> int:
    """Scores that a softmax turns into weights, in all layers."""
    return sizes.layers * sum(measure(step.cells, sizes) for step in COST_STEPS)


def activation_bytes(sizes: Sizes, step: CostStep | None = None) -> int:
    """Bytes of what a trace keeps of one layer: of a step, or of all; views count once.

    >>> activation_bytes(Sizes.standard(8, 2, 3))
    888
    """
    if step is None:
        return sum(activation_bytes(sizes, each) for each in COST_STEPS)
    each = max(4, sizes.bytes_a_number) if step.full_precision else sizes.bytes_a_number
    return each * measure(step.held, sizes)


def cache_bytes(sizes: Sizes, tokens: int = 1) -> int:
    """Bytes of the keys and values of so many tokens in all layers: what a decoder keeps of what it has read.

    Source: Shazeer 2019, "Fast Transformer Decoding", section 3.

    >>> llama = Sizes.standard(8192, 64, 4096, h_kv=8, layers=80, dtype="float16", bias=False)
    >>> cache_bytes(llama)
    327680
    """
    return sizes.layers * tokens * sizes.h_kv * (sizes.d_k + sizes.d_v) * sizes.bytes_a_number


def crossing(sizes: Sizes) -> Fraction:
    """The n from which Q Kᵀ and A V cost more than the four projections: n·(…) against n²·(…).

    In self-attention n = d_model · (1 + h_kv / h), whatever d_k and d_v are; 2·d_model where no keys are shared.

    >>> crossing(Sizes.standard(512, 8, 10)), crossing(Sizes.standard(512, 8, 10, h_kv=1))
    (Fraction(1024, 1), Fraction(576, 1))
    """
    one = replace(sizes, n_q=1, n_k=1)
    pairs = sum(measure(step.flops, one) for step in COST_STEPS if {"n_q", "n_k"} <= set(step.flops))
    return Fraction(sum(measure(step.flops, one) for step in COST_STEPS) - pairs, pairs)
