"""The same costs, counted on a real module that has shapes and no memory (PyTorch's device "meta")."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from mha_core.attention import MultiHeadAttention
from mha_core.sizes import Sizes

__all__ = ["Counted", "count"]


@dataclass(frozen=True)
class Counted:
    """Of one layer: parameters of the module, and the FLOPs of its forward as torch counts them."""

    parameters: int
    flops: int


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]  # it has no types
    """Sums torch's own formulas over what a thread computes.

    ``FlopCounterMode`` sums the same, and hooks every module of the process meanwhile, other sessions' as well.
    """

    flops = 0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        formula: Callable[..., int] | None = flop_registry.get(func._overloadpacket)
        if formula is not None:
            self.flops += formula(*args, **(kwargs or {}), out_val=out)
        return out


def count(sizes: Sizes) -> Counted:
    """Build the module, run it on a batch of nothing but shapes, and count.

    >>> counted = count(Sizes.standard(12288, 96, 2048))  # GPT-3's, in some milliseconds
    >>> f"{counted.parameters:,}"
    '604,028,928'
    """
    with torch.device("meta"):
        module = MultiHeadAttention(
            sizes.d_model, sizes.h, d_k=sizes.d_k, d_v=sizes.d_v, h_kv=sizes.h_kv, d_context=sizes.d_context,
            bias=sizes.bias,
        )  # fmt: skip
        X = torch.empty(sizes.batch, sizes.n_q, sizes.d_model)
        context = torch.empty(sizes.batch, sizes.n_k, sizes.d_context) if sizes.cross else None
        with _Counter() as counter, torch.no_grad():  # type: ignore[no-untyped-call]
            module(X, context)
    return Counted(sum(parameter.numel() for parameter in module.parameters()), counter.flops)
