"""To and from nn.MultiheadAttention: the same numbers, or a refusal with its reason."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mha_core import MultiHeadAttention
from mha_core.masks import causal

CONTEXT = {"kdim": 6, "vdim": 6}


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def mha(**options: Any) -> nn.MultiheadAttention:
    """PyTorch's module in float64, with biases that are not zero."""
    module = nn.MultiheadAttention(12, 3, dtype=torch.float64, **options)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module


def assert_same(
    theirs: nn.MultiheadAttention, ours: MultiHeadAttention, mask: Tensor | None, opposite: Tensor | None
) -> None:
    X, context = torch.randn(2, 5, 12).double(), torch.randn(2, 7, ours.d_context).double()
    X_, C_ = (X, context) if theirs.batch_first else (X.transpose(0, 1), context.transpose(0, 1))
    output, weights = theirs(X_, C_, C_, attn_mask=opposite, average_attn_weights=False)
    trace = ours.trace(X, context, mask)
    for actual, expected in (
        (trace["output"].value, output if theirs.batch_first else output.transpose(0, 1)),
        (trace["weights"].value, weights),
    ):
        assert (actual - expected).abs().max() <= 1e-12


def masks() -> list[tuple[Tensor | None, Tensor | None]]:
    """Ours and theirs: none; boolean, where their True forbids; float, the same on both sides."""
    allowed, added = causal(5, 7), torch.linspace(-1, 1, 35, dtype=torch.float64).view(5, 7)
    return [(None, None), (allowed, ~allowed), (added, added)]


@pytest.mark.parametrize("mask", masks(), ids=["no mask", "boolean", "float"])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("batch_first", [True, False], ids=["batch first", "sequence first"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("widths", [{}, CONTEXT], ids=["packed", "separate"])
def test_from_torch_and_back_give_the_same_numbers(
    widths: dict[str, int], bias: bool, batch_first: bool, training: bool, mask: tuple[Tensor | None, Tensor | None]
) -> None:
    theirs = mha(bias=bias, batch_first=batch_first, **widths).train(training)
    ours = MultiHeadAttention.from_torch(theirs)
    assert_same(theirs, ours, *mask)
    assert_same(ours.to_torch(), ours, *mask)
    assert ours.training == ours.to_torch().training == training


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("d_context", [None, 6])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_the_round_trip_is_exact(bias: bool, d_context: int | None, dtype: torch.dtype) -> None:
    module = MultiHeadAttention(12, 3, d_context=d_context, bias=bias).to(dtype)
    back = MultiHeadAttention.from_torch(module.to_torch())
    assert repr(back) == repr(module)
    for (name, there), (name_back, here) in zip(module.state_dict().items(), back.state_dict().items(), strict=True):
        assert name == name_back
        assert there.dtype == here.dtype == dtype
        assert torch.equal(there, here)


def test_the_converted_module_is_a_copy() -> None:
    theirs = mha()
    ours = MultiHeadAttention.from_torch(theirs)
    before = ours.W_Q.weight.clone()
    nn.init.zeros_(theirs.in_proj_weight)
    assert torch.equal(ours.W_Q.weight, before)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"add_bias_kv": True}, "add_bias_kv=True appends a learned key and value"),
        ({"add_zero_attn": True}, "add_zero_attn=True appends a zero key and value"),
        ({"kdim": 6, "vdim": 7}, "kdim=6 and vdim=7 differ; .* from one context, so they must be equal"),
        ({"dropout": 0.1}, r"dropout=0.1 is random while training; call eval\(\)"),
    ],
)
def test_from_torch_refuses_what_we_cannot_hold(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        MultiHeadAttention.from_torch(mha(**options))


def test_dropout_is_no_obstacle_in_eval() -> None:
    theirs = mha(dropout=0.1, batch_first=True).eval()
    assert_same(theirs, MultiHeadAttention.from_torch(theirs), None, None)


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ({"h_kv": 1}, "h_kv=1 is below h=3; .* as many key heads as query heads"),
        ({"d_k": 5}, "d_k=5 and d_v=4; .* only d_k = d_v = d_model / h = 4"),
        ({"d_v": 5}, "d_k=4 and d_v=5; .* only d_k = d_v = d_model / h = 4"),
    ],
)
def test_to_torch_refuses_what_pytorch_cannot_hold(sizes: dict[str, int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        MultiHeadAttention(12, 3, **sizes).to_torch()
