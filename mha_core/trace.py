"""Every intermediate of one attention calculation, by name and with named axes.

STEPS says what there is. A :class:`Recorder` is what ``MultiHeadAttention.trace`` hands to the
calculation: it keeps each tensor as it is (nothing is copied) and holds it against its row of
STEPS, so that the shapes written there are checked each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from mha_core import explain as _explain
from mha_core.errors import InputError
from mha_core.explain import Explanation
from mha_core.masks import EMPTY, broadcastable

if TYPE_CHECKING:
    from mha_core.attention import MultiHeadAttention

__all__ = ["STEPS", "AttentionTrace", "Intermediate", "Recorder", "Step"]


@dataclass(frozen=True)
class Step:
    """A row of STEPS.

    Attributes:
        name: the key in a trace.
        formula: LaTeX.
        axes: the names of the axes, for ``Intermediate.sel``.
        shape: the size of each axis, in the notation of attention.py.
        explain: how one cell comes about; see :mod:`mha_core.explain`.
    """

    name: str
    formula: str
    axes: tuple[str, ...]
    shape: tuple[str, ...]
    explain: Callable[[AttentionTrace, dict[str, int]], Explanation]


def _step(name: str, formula: str, axes: str, shape: str, explain: Callable[..., Explanation]) -> Step:
    return Step(name, formula, tuple(axes.split()), tuple(shape.split()), explain)


_PAIRS = "batch head query key", "batch h n_q n_k"

STEPS: tuple[Step, ...] = (
    _step("X", r"X", "batch query feature", "batch n_q d_model", _explain.given("X")),
    _step("context", r"C", "batch key feature", "batch n_k d_context", _explain.given("C")),
    _step("Q", r"Q = X W^Q", "batch query feature", "batch n_q h·d_k", _explain.projection("X", "Q")),
    _step("K", r"K = C W^K", "batch key feature", "batch n_k h_kv·d_k", _explain.projection("context", "K")),
    _step("V", r"V = C W^V", "batch key feature", "batch n_k h_kv·d_v", _explain.projection("context", "V")),
    _step("Q_heads", r"Q_i", "batch head query feature", "batch h n_q d_k", _explain.band("Q")),
    _step("K_heads", r"K_i", "batch kv_head key feature", "batch h_kv n_k d_k", _explain.band("K")),
    _step("V_heads", r"V_i", "batch kv_head key feature", "batch h_kv n_k d_v", _explain.band("V")),
    _step("raw_scores", r"Q_i K_i^\top", *_PAIRS, _explain.raw_scores),
    _step("scores", r"S_i = \frac{Q_i K_i^\top}{\sqrt{d_k}}", *_PAIRS, _explain.scores),
    _step("masked_scores", r"S_i + M", *_PAIRS, _explain.masked_scores),
    _step("weights", r"A_i = \mathrm{softmax}(S_i + M)", *_PAIRS, _explain.weights),
    _step("head_outputs", r"Z_i = A_i V_i", "batch head query feature", "batch h n_q d_v", _explain.head_outputs),
    _step("concat", r"Z = [Z_1 \dots Z_h]", "batch query feature", "batch n_q h·d_v", _explain.concat),
    _step(
        "head_contributions",
        r"Z_i W_i^O",
        "batch head query feature",
        "batch h n_q d_model",
        _explain.head_contributions,
    ),
    _step("output", r"\sum_i Z_i W_i^O + b^O", "batch query feature", "batch n_q d_model", _explain.output),
)
"""Every step from X to the output, in order. ``head_contributions`` is computed when asked for."""

_BY_NAME: Mapping[str, Step] = {step.name: step for step in STEPS}


@dataclass(frozen=True, eq=False, repr=False)
class Intermediate:
    """A tensor with a name and named axes.

    >>> weights = Intermediate("weights", ("head", "query", "key"), torch.eye(3).expand(2, 3, 3))
    >>> weights.sel(head=0, query=2).numpy()
    array([0., 0., 1.], dtype=float32)
    """

    name: str
    axes: tuple[str, ...]
    value: Tensor
    group: int = 1
    """How many query heads share a key head (h / h_kv), for ``sel(head=…)`` on a kv_head axis."""

    def sel(self, **index: int) -> Intermediate:
        """Fix some axes at an index (from 0); the result keeps the others.

        On the keys' and values' ``kv_head`` axis, ``head=i`` selects the one that query head i reads.

        Raises:
            KeyError: there is no such axis.
            IndexError: the index is out of range.
        """
        asked = dict(index)
        if "head" in asked and "head" not in self.axes and "kv_head" in self.axes:
            asked["kv_head"] = asked.pop("head") // self.group
        if unknown := [axis for axis in asked if axis not in self.axes]:
            raise KeyError(f"{self.name} has no axis {unknown[0]!r}; its axes are {', '.join(self.axes)}")
        value = self.value
        for position in reversed(range(len(self.axes))):
            axis, size = self.axes[position], value.size(position)
            if axis not in asked:
                continue
            if not 0 <= asked[axis] < size:
                raise IndexError(f"{axis}={asked[axis]} is out of range for {self.name}; choose 0 … {size - 1}")
            value = value.select(position, asked[axis])
        return Intermediate(self.name, tuple(a for a in self.axes if a not in asked), value, self.group)

    def numpy(self) -> np.ndarray[Any, Any]:
        """A read-only NumPy array that shares the tensor's memory (bfloat16 becomes float32)."""
        value = self.value.detach().cpu()
        array: np.ndarray[Any, Any] = (value.float() if value.dtype == torch.bfloat16 else value).numpy().view()
        array.setflags(write=False)
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """For NumPy's own functions, ``np.allclose(trace["weights"], mine)``: a copy, and so writable."""
        return np.array(self.numpy(), dtype=dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        return tuple(self.value.shape)

    def __repr__(self) -> str:
        return f"{self.name}: " + ", ".join(f"{axis} {size}" for axis, size in zip(self.axes, self.shape, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class AttentionTrace:
    """One calculation from X to the output: ``trace["weights"]``, ``trace.explain(…)``.

    Attributes:
        module: the module that computed it. Its parameters are not copied: a trace of a module
            that is trained further no longer explains itself.
        sizes: batch, n_q, n_k, d_model, d_context, h, h_kv, d_k, d_v, by name.
        scale: what the raw scores were multiplied by.
        mask: 4-D boolean or float, or None.
        cross: whether a context was given (cross-attention).
    """

    module: MultiHeadAttention
    sizes: Mapping[str, int]
    scale: float
    mask: Tensor | None
    cross: bool
    _tensors: dict[str, Tensor]

    def __getitem__(self, name: str) -> Intermediate:
        if name not in _BY_NAME:
            raise KeyError(f"there is no step {name!r}; the steps are {', '.join(_BY_NAME)}")
        if name == "head_contributions" and name not in self._tensors:
            self._tensors[name] = self._head_contributions()
        if name not in self._tensors:
            raise KeyError(f"{name} was not kept; it can be had with trace(keep=[…, {name!r}])")
        return Intermediate(name, _BY_NAME[name].axes, self._tensors[name], self.sizes["h"] // self.sizes["h_kv"])

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def __repr__(self) -> str:
        return "AttentionTrace\n" + "\n".join(f"  {self[name]!r}" for name in self._tensors)

    def parameter(self, name: str) -> Intermediate | None:
        """W_Q, W_K, W_V, W_O as (in, out), or b_Q … b_O as (out); None for a bias that there is not.

        The weights come in the formula's orientation, the transpose of what ``nn.Linear`` stores.

        >>> from mha_core import MultiHeadAttention
        >>> MultiHeadAttention(8, 2, d_v=3).trace(torch.randn(1, 3, 8)).parameter("W_O")
        W_O: in 6, out 8
        """
        kind, _, letter = name.partition("_")
        if kind not in ("W", "b") or letter not in ("Q", "K", "V", "O"):
            raise KeyError(f"there is no parameter {name!r}; there are W_Q, W_K, W_V, W_O and b_Q, b_K, b_V, b_O")
        linear: nn.Linear = getattr(self.module, f"W_{letter}")
        if kind == "W":
            return Intermediate(name, ("in", "out"), linear.weight.mT)
        return None if linear.bias is None else Intermediate(name, ("out",), linear.bias)

    def explain(self, step: str, **cell: int) -> Explanation:
        """How one number came about: its operands, and LaTeX with symbols and with numbers.

        Args:
            step: a name of STEPS.
            cell: an index (from 0) for every axis of the step but batch, which is 0 if left out.

        Raises:
            KeyError: no such step or axis, an axis left out, or an operand that was not kept.
            IndexError: an index out of range.

        >>> from mha_core import MultiHeadAttention
        >>> trace = MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8))
        >>> weight = trace.explain("weights", head=1, query=2, key=0)
        >>> abs(weight.residual) < 1e-6, len(weight.terms)
        (True, 3)
        """
        if step not in _BY_NAME:
            raise KeyError(f"there is no step {step!r}; the steps are {', '.join(_BY_NAME)}")
        row = _BY_NAME[step]
        cell = {"batch": 0, **cell}
        if "kv_head" in row.axes and "head" in cell:
            cell["kv_head"] = cell.pop("head") // self[step].group
        if missing := [axis for axis in row.axes if axis not in cell]:
            raise KeyError(f"{step} needs {', '.join(missing)} as well; its axes are {', '.join(row.axes)}")
        self[step].sel(**cell)  # names an unknown axis, an index out of range
        return row.explain(self, cell)

    @property
    def empty_rows(self) -> tuple[tuple[int, int, int], ...]:
        """The (batch, head, query) of every row that may attend to nothing; its weights are zeros."""
        if self.mask is None:
            return ()
        empty = (self["masked_scores"].value == EMPTY).all(-1)
        return tuple((b, i, q) for b, i, q in empty.nonzero().tolist())

    def _head_contributions(self) -> Tensor:
        heads = self["head_outputs"].value  # (batch, h, n_q, d_v)
        W_O = self.module.W_O.weight.mT.reshape(self.sizes["h"], self.sizes["d_v"], -1)  # (h, d_v, d_model)
        return heads @ W_O  # (batch, h, n_q, d_model)


class Recorder:
    """Called with each intermediate as it arises; :meth:`trace` hands out what was kept."""

    def __init__(
        self,
        module: MultiHeadAttention,
        X: Tensor,
        context: Tensor | None,
        mask: Tensor | None,
        scale: float | None,
        keep: Iterable[str] | None,
    ) -> None:
        self.module, self.X, self.context, self.mask = module, X, context, mask
        self.scale = module.d_k**-0.5 if scale is None else scale
        self.keep = frozenset(_BY_NAME if keep is None else keep)
        if unknown := sorted(self.keep - _BY_NAME.keys()):
            raise KeyError(f"keep names {unknown[0]!r}; the steps are {', '.join(_BY_NAME)}")
        if "head_contributions" in self.keep:
            self.keep |= {"head_outputs"}  # what they are computed from when asked for
        self.tensors: dict[str, Tensor] = {}
        self.sizes: dict[str, int] = {}

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        if name == "X":
            self.sizes = self._measure()
        sizes, shape = self.sizes, _BY_NAME[name].shape
        if tensor.shape != tuple([sizes[size] for size in shape]):
            raise AssertionError(f"{name} has shape {tuple(tensor.shape)}; STEPS says {', '.join(shape)} of {sizes}")
        if name in ("scores", "output"):
            self._check_finite(name, tensor)
        if name in self.keep:
            self.tensors[name] = tensor
        return tensor

    def trace(self) -> AttentionTrace:
        """What was recorded."""
        sizes = {name: size for name, size in self.sizes.items() if "·" not in name}
        shape = tuple(sizes[size] for size in _BY_NAME["scores"].shape)
        mask = None if self.mask is None else broadcastable(self.mask, shape)
        return AttentionTrace(self.module, sizes, self.scale, mask, self.context is not None, self.tensors)

    def _measure(self) -> dict[str, int]:
        m, keys = self.module, self.X if self.context is None else self.context
        return {
            "batch": self.X.size(0), "n_q": self.X.size(1), "n_k": keys.size(1),
            "d_model": m.d_model, "d_context": m.d_context, "h": m.h, "h_kv": m.h_kv, "d_k": m.d_k, "d_v": m.d_v,
            "h·d_k": m.h * m.d_k, "h_kv·d_k": m.h_kv * m.d_k, "h_kv·d_v": m.h_kv * m.d_v, "h·d_v": m.h * m.d_v,
        }  # fmt: skip

    def _check_finite(self, name: str, tensor: Tensor) -> None:
        # A finite sum is enough: ∞ or NaN anywhere makes it ∞ or NaN. A sum that overflows by itself is told
        # apart by looking at each entry. NaN or ∞ in X or the context always reaches the scores.
        if math.isfinite(tensor.detach().sum().item()) or bool(tensor.isfinite().all()):
            return
        for given, tokens in (("X", self.X), ("context", self.context)):
            if tokens is not None and not bool(tokens.isfinite().all()):
                batch, row, column = (~tokens.isfinite()).nonzero()[0].tolist()
                place = f"{given}[{batch}]" if tokens.size(0) > 1 else given
                value = tokens[batch, row, column].item()
                raise InputError("not_finite", name=place, value=value, row=row, column=column)
        raise InputError(
            "overflow",
            name=name,
            dtype=self.X.dtype,
            largest=f"{self.X.abs().max().item():.3g}",
            limit=f"{torch.finfo(self.X.dtype).max:.3g}",
        )
