"""MultiHeadAttention and attend against other implementations, and against what must hold of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from torch import Tensor, nn

from mha_core import MultiHeadAttention, attend
from mha_core.attention import merge_heads, split_heads
from mha_core.masks import causal
from tests.reference import Case, TextbookAttention, array, attention_by_loops, cases

INF = math.inf
PRECISIONS = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
thorough = settings(max_examples=100, deadline=None, derandomize=True)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def assert_same(actual: Tensor, expected: Tensor | np.ndarray, largest_score: float = 1.0) -> None:
    """Equal to 1e-12 in float64, and in float32 to 4e-6 times the scores' and the expected numbers' size."""
    reference = torch.as_tensor(expected).double()
    size = max(1.0, reference.abs().max().item())
    bound = {torch.float64: 1e-12, torch.float32: 4e-6 * max(1.0, largest_score)}[actual.dtype] * size
    assert (actual.double() - reference).abs().max().item() <= bound


def mask_of(kind: str, n: int) -> Tensor | None:
    if kind == "float":
        return torch.randn(n, n, dtype=torch.float64).masked_fill(~causal(n), -INF)
    return causal(n) if kind == "boolean" else None


@PRECISIONS
@pytest.mark.parametrize("masked", [False, True])
def test_equals_the_textbook_class_and_loads_its_state_dict(dtype: torch.dtype, masked: bool) -> None:
    textbook = TextbookAttention(12, 3).to(dtype)
    ours = MultiHeadAttention(12, 3).to(dtype)
    ours.load_state_dict(textbook.state_dict())
    assert list(ours.state_dict()) == list(textbook.state_dict())
    X, mask = torch.randn(2, 7, 12, dtype=dtype), causal(7) if masked else None
    assert_same(ours(X, mask=mask), textbook.double()(X.double(), mask))


@PRECISIONS
@pytest.mark.parametrize("kind", ["none", "boolean", "float"])
def test_equals_nn_multihead_attention(dtype: torch.dtype, kind: str) -> None:
    theirs = nn.MultiheadAttention(12, 3, batch_first=True).to(dtype)
    ours, X, mask = MultiHeadAttention.from_torch(theirs), torch.randn(2, 7, 12, dtype=dtype), mask_of(kind, 7)
    opposite = ~mask if kind == "boolean" else mask  # their True forbids
    X_ = X.double()
    output, weights = theirs.double()(X_, X_, X_, attn_mask=opposite, need_weights=True, average_attn_weights=False)
    trace = ours.trace(X, mask=mask)
    assert_same(trace["weights"].value, weights)
    assert_same(trace["output"].value, output)


@PRECISIONS
@pytest.mark.parametrize("kind", ["none", "boolean", "float"])
@pytest.mark.parametrize("scale", [None, 0.7])
@pytest.mark.parametrize("h_kv", [6, 2, 1])
def test_attend_equals_scaled_dot_product_attention(
    dtype: torch.dtype, kind: str, scale: float | None, h_kv: int
) -> None:
    Q, K, V = (torch.randn(2, h, 7, d, dtype=dtype) for h, d in [(6, 4), (h_kv, 4), (h_kv, 5)])
    mask = mask_of(kind, 7)
    theirs = F.scaled_dot_product_attention(
        Q.double(), K.double(), V.double(), attn_mask=mask, scale=scale, enable_gqa=True
    )
    score = (Q.abs().amax() * K.abs().amax()).item() * 4 * (scale or 0.5)
    assert_same(attend(Q, K, V, mask, scale=scale), theirs, score)


@thorough
@given(cases())
def test_any_sizes_and_masks_equal_loops_over_heads_and_queries(case: Case) -> None:
    trace, largest = case.trace(), np.abs(case.loops["scores"]).max()
    for step, expected in case.loops.items():
        assert_same(trace[step].value, expected, largest)


@thorough
@given(cases(dtypes=(torch.float16, torch.bfloat16)))
def test_half_precision_is_as_exact_as_its_digits(case: Case) -> None:
    # To first order, u = eps / 2. Q and K each round twice (product, bias): a score moves by 4u·s, where s bounds
    # Σ|q||k|·scale and its own rounding in float32 is nothing; a weight by twice that, relatively. V rounds twice,
    # the head's output once, the output twice. Together (5 + 8 s) u ≤ 4 eps (1 + s), of the sum of absolute values.
    s, size = magnitudes(case)
    error = np.abs(array(case.forward()) - case.loops["output"]).max()
    assert error <= 4 * torch.finfo(case.X.dtype).eps * (1 + s) * size


def magnitudes(case: Case) -> tuple[float, float]:
    """The largest Σ|q||k|·scale and the largest Σ|z||w| + |b|, with |q| taken as Σ|x||w| + |b| and so on."""
    m, X = case.module, np.abs(array(case.X))
    C = X if case.context is None else np.abs(array(case.context))
    W = {name: np.abs(array(parameter)) for name, parameter in m.state_dict().items()}

    def linear(letter: str, x: np.ndarray) -> np.ndarray:
        return x @ W[f"W_{letter}.weight"].T + W.get(f"W_{letter}.bias", 0)

    q = linear("Q", X).reshape(-1, m.h, m.d_k).max((0, 1))
    k = linear("K", C).reshape(-1, m.h_kv, m.d_k).max((0, 1))
    v = np.tile(linear("V", C).reshape(-1, m.h_kv, m.d_v).max((0, 1)), m.h)
    return float(q @ k) * (case.scale or m.d_k**-0.5), float(linear("O", v).max())


def test_half_precision_computes_scores_in_float32() -> None:
    Q = torch.full((1, 1, 1, 4), 400.0).half()  # q · k = 640000 and 639600, beyond float16's 65504
    K = torch.tensor([[400.0, 400.0, 400.0, 400.0], [400.0, 400.0, 400.0, 399.0]]).view(1, 1, 2, 4).half()
    share = 1 / (1 + math.exp(-4))  # scaled by 0.01 they differ by 4
    output = attend(Q, K, torch.eye(2).view(1, 1, 2, 2).half(), scale=0.01)
    assert output.dtype == torch.float16
    assert output.flatten().tolist() == pytest.approx([share, 1 - share], abs=torch.finfo(torch.float16).eps)


@thorough
@given(cases(dtypes=(torch.float16, torch.bfloat16, torch.float32, torch.float64)))
def test_forward_is_the_traced_output_to_the_last_bit(case: Case) -> None:
    assert torch.equal(case.forward(), case.trace()["output"].value)


def test_project_then_split_equals_each_head_alone() -> None:
    module = MultiHeadAttention(12, 3).double()
    X = torch.randn(2, 5, 12, dtype=torch.float64)
    Q_heads = module.trace(X)["Q_heads"].value
    for i in range(3):
        own = slice(4 * i, 4 * i + 4)
        assert_same(Q_heads[:, i], X @ module.W_Q.weight[own].T + module.W_Q.bias[own])


def test_split_heads_keeps_tokens_apart() -> None:
    token_and_feature = torch.arange(3).view(1, 3, 1) * 100 + torch.arange(8)  # token 2, feature 5: 205
    heads = split_heads(token_and_feature, 2)
    assert heads[0, 1, 2].tolist() == [204, 205, 206, 207]
    assert torch.equal(merge_heads(heads), token_and_feature)


def test_query_heads_that_share_a_key_head_are_neighbours() -> None:
    Q, V = torch.randn(1, 4, 3, 2), torch.tensor([0.0, 1.0]).view(1, 2, 1, 1).expand(1, 2, 3, 1)
    assert attend(Q, torch.randn(1, 2, 3, 2), V)[0, :, 0, 0].round().tolist() == [0, 0, 1, 1]


def test_the_batch_s_sequences_do_not_mix() -> None:
    module, X = MultiHeadAttention(12, 3).double(), torch.randn(3, 5, 12, dtype=torch.float64)
    output = module(X)
    for b in range(3):
        assert_same(output[b], module(X[b : b + 1])[0])
    X[1:] = torch.randn(2, 5, 12)
    assert torch.equal(module(X)[0], output[0])


def test_shuffled_tokens_give_shuffled_outputs() -> None:
    module, X = MultiHeadAttention(12, 3).double(), torch.randn(1, 5, 12, dtype=torch.float64)
    order = torch.randperm(5)
    assert_same(module(X[:, order]), module(X)[:, order])


def test_the_causal_mask_hides_the_future() -> None:
    module, X = MultiHeadAttention(12, 3), torch.randn(1, 5, 12)
    before = module(X, mask=causal(5))
    X[:, 3:] = torch.randn(1, 2, 12)
    assert torch.equal(module(X, mask=causal(5))[:, :3], before[:, :3])


def test_the_bias_of_the_keys_changes_no_weight() -> None:
    module, X = MultiHeadAttention(12, 3).double(), torch.randn(1, 5, 12, dtype=torch.float64)
    before = module.trace(X)["weights"].value
    nn.init.normal_(module.W_K.bias)
    assert_same(module.trace(X)["weights"].value, before)


@pytest.mark.parametrize("masked", [False, True])
def test_gradients_equal_the_textbook_s(masked: bool) -> None:
    textbook, ours = TextbookAttention(12, 3).double(), MultiHeadAttention(12, 3).double()
    ours.load_state_dict(textbook.state_dict())
    mask, direction = causal(7) if masked else None, torch.randn(2, 7, 12, dtype=torch.float64)
    X = torch.randn(2, 7, 12, dtype=torch.float64, requires_grad=True)
    wanted = torch.autograd.grad((textbook(X, mask) * direction).sum(), [X, *textbook.parameters()])
    for output in (ours(X, mask=mask), ours.trace(X, mask=mask)["output"].value):
        for gradient, expected in zip(
            torch.autograd.grad((output * direction).sum(), [X, *ours.parameters()]), wanted, strict=True
        ):
            assert_same(gradient, expected)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(cases(dtypes=(torch.float64,)))
def test_gradients_equal_finite_differences_for_any_sizes_and_masks(case: Case) -> None:
    inputs = [t.requires_grad_() for t in (case.X, case.context) if t is not None]

    def forward(*_: Tensor) -> Tensor:
        return case.forward()

    assert torch.autograd.gradcheck(forward, [*inputs, *case.module.parameters()], fast_mode=True)


def nothing_for_query_1(kind: str) -> Tensor:
    allowed = torch.ones(3, 3, dtype=torch.bool)
    allowed[1] = False
    return allowed if kind == "boolean" else torch.zeros(3, 3).masked_fill(~allowed, -INF)


@pytest.mark.parametrize("kind", ["boolean", "float"])
def test_an_empty_row_gives_zeros_and_the_output_s_bias(kind: str) -> None:
    module, X = MultiHeadAttention(8, 2), torch.randn(2, 3, 8)
    nn.init.normal_(module.W_O.bias)
    trace = module.trace(X, mask=nothing_for_query_1(kind))
    assert not trace["weights"].sel(query=1).value.any()
    assert not trace["head_outputs"].sel(query=1).value.any()
    assert torch.equal(trace["output"].sel(query=1).value, module.W_O.bias.expand(2, 8))
    assert torch.equal(module(X, mask=nothing_for_query_1(kind)), trace["output"].value)
    assert trace.empty_rows == ((0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 1))


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("kind", ["boolean", "float"])
@pytest.mark.parametrize("everything", [False, True])
def test_an_empty_row_has_finite_gradients(kind: str, everything: bool) -> None:
    module, X = MultiHeadAttention(8, 2), torch.randn(1, 3, 8, requires_grad=True)
    mask = nothing_for_query_1(kind)
    mask = mask[1:2].expand(3, 3) if everything else mask
    with torch.autograd.detect_anomaly(check_nan=True):
        module(X, mask=mask).square().sum().backward()
    assert X.grad is not None
    assert all(bool(p.grad.isfinite().all()) for p in [X, *module.parameters()] if p.grad is not None)
    if everything:  # nothing was read, so X moves nothing
        assert not X.grad.any()


def test_a_row_may_be_empty_in_one_head_only() -> None:
    module, X = MultiHeadAttention(8, 2).double(), torch.randn(1, 3, 8, dtype=torch.float64)
    mask = torch.zeros(1, 2, 3, 3, dtype=torch.float64)
    mask[0, 1, 2] = -INF
    trace = module.trace(X, mask=mask)
    assert trace.empty_rows == ((0, 1, 2),)
    assert_same(trace["weights"].value, attention_by_loops(module, X, mask=mask)["weights"])


def test_a_trace_without_a_mask_has_no_empty_rows() -> None:
    assert MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8)).empty_rows == ()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"d_model": 16, "h": 3}, r"d_model=16 is not divisible by h=3; choose h from 1, 2, 4, 8, 16, or give both"),
        ({"d_model": 16, "h": 3, "d_k": 5}, r"d_model=16 is not divisible by h=3"),
        ({"d_model": 16, "h": 4, "h_kv": 3}, r"h=4 is not divisible by h_kv=3; each key head serves"),
        *(
            ({"d_model": 16, "h": 4, name: size}, rf"{name}={size} is too small; {name} must be at least 1")
            for name in ("d_model", "h", "h_kv", "d_k", "d_v", "d_context")
            for size in (0, -1)
        ),
    ],
)
def test_impossible_sizes_are_refused(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(**sizes)


@pytest.mark.parametrize("call", ["forward", "trace"])
@pytest.mark.parametrize(
    ("X", "context", "mask", "message"),
    [
        ((3, 8), None, None, r"X has shape \(3, 8\); expected \(batch, n, d_model=8\); add .* unsqueeze\(0\)"),
        ((1, 3, 7), None, None, r"X has shape \(1, 3, 7\); expected \(batch, n, d_model=8\)"),
        ((1, 3, 8), (1, 4, 8), None, r"context has shape \(1, 4, 8\); expected \(batch, n, d_context=6\)"),
        ((1, 3, 8), (2, 4, 6), None, r"context has batch 2 and X has batch 1; they must be equal: repeat .* expand"),
        ((1, 3, 8), (4, 6), None, r"context has shape \(4, 6\); expected .* unsqueeze\(0\)"),
        ((1, 3, 8), (1, 4, 6), torch.ones(2, 3, 4).bool(), r"mask is 3-D .*mask.unsqueeze\(1\).*mask.unsqueeze\(0\)"),
        (
            (1, 3, 8),
            (1, 4, 6),
            torch.ones(3, 4).int(),
            r"mask has dtype torch.int32; give a boolean mask .* or a float",
        ),
        ((1, 3, 8), (1, 4, 6), torch.ones(4, 3).bool(), r"mask has shape \(4, 3\); expected \(n_q, n_k\) = \(3, 4\)"),
        ((1, 3, 8), (1, 4, 6), torch.ones(2, 2, 3, 4).bool(), r"or 4-D broadcastable to .* = \(1, 2, 3, 4\)"),
        ((1, 3, 8), (1, 4, 6), torch.ones(4).bool(), r"mask has shape \(4,\); expected"),
        ((1, 3, 8), (1, 4, 6), torch.full((3, 4), math.nan), r"mask holds NaN or \+inf; .* use 0 to allow, -inf"),
        ((1, 3, 8), (1, 4, 6), torch.full((3, 4), INF), r"mask holds NaN or \+inf"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(
    call: str, X: tuple[int, ...], context: tuple[int, ...] | None, mask: Tensor | None, message: str
) -> None:
    module = MultiHeadAttention(8, 2, d_context=6 if context else None)
    with pytest.raises(ValueError, match=message):
        getattr(module, call)(torch.randn(X), torch.randn(context) if context else None, mask)


@pytest.mark.parametrize("bad", [math.nan, INF, -INF])
@pytest.mark.parametrize("mask", [None, torch.tensor([[True, False], [True, False]])])
def test_trace_names_the_row_and_column_of_a_number_that_is_none(bad: float, mask: Tensor | None) -> None:
    X = torch.randn(2, 2, 8)
    X[1, 1, 5] = bad
    with pytest.raises(ValueError, match=rf"X\[1\] holds {bad} at row 1, column 5 .* correct or drop it"):
        MultiHeadAttention(8, 2).trace(X, mask=mask)
    with pytest.raises(ValueError, match=rf"context holds {bad} at row 1, column 5 "):
        MultiHeadAttention(8, 2).trace(torch.randn(1, 2, 8), X[1:], mask)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("mask", [None, torch.ones(3, 3, dtype=torch.bool)])
@pytest.mark.parametrize(("size", "scale"), [(1e30, None), (1e15, 1e30)])
def test_scores_that_overflow_are_refused_in_either_direction(
    sign: int, mask: Tensor | None, size: float, scale: float | None
) -> None:
    module = MultiHeadAttention(8, 2, bias=False)
    with torch.no_grad():
        module.W_K.weight.copy_(sign * module.W_Q.weight)
    X = torch.randn(1, 1, 8).expand(1, 3, 8) * size  # all tokens alike: q·k is ±|q|², the same sign everywhere
    with pytest.raises(ValueError, match=r"overflows torch.float32: the largest \|X\| is .* divide X"):
        module.trace(X, mask=mask, scale=scale)


def test_half_precision_that_overflows_names_its_own_limit() -> None:
    module = MultiHeadAttention(8, 2).half()
    nn.init.ones_(module.W_Q.weight)  # Q is 8 · 60000, beyond float16's 65504
    with pytest.raises(ValueError, match=r"scores overflows torch.float16: .* stay below 6.55e\+04"):
        module.trace(torch.full((1, 3, 8), 6e4).half())


def test_large_numbers_that_do_not_overflow_are_computed() -> None:
    module = MultiHeadAttention(8, 2)
    trace = module.trace(torch.randn(1, 3, 8) * 1e15)
    assert bool(trace["output"].value.isfinite().all())


def test_keep_refuses_a_name_that_is_no_step() -> None:
    with pytest.raises(KeyError, match="keep names 'attention'; the steps are X, context, Q"):
        MultiHeadAttention(8, 2).trace(torch.randn(1, 3, 8), keep=["attention"])
