"""What a head owns: its own product equals its band; what heads cost; a sum laid out by hand."""

import math

import pytest
import torch

from mha_core import MultiHeadAttention
from mha_core.projection import head_alone, ledger, weights_with_bias
from mha_core.worksheet import worksheet
from tests.seeds import trace_of


@pytest.mark.parametrize("letter", "QKV")
@pytest.mark.parametrize("h", [1, 4, 16])
def test_a_head_alone_is_its_band(letter, h):
    trace = trace_of(7, 64, h, seed=3)
    for head in range(h):
        alone = head_alone(trace, letter, head)
        width = 64 // h
        band = trace[letter].sel(batch=0).value[:, head * width : (head + 1) * width]
        torch.testing.assert_close(alone.result, band, rtol=0, atol=1e-5)
        assert alone.difference == (alone.result - band).abs().max().item()
        assert torch.equal(alone.weight, trace.parameter(f"W_{letter}").value[:, head * width : (head + 1) * width])


def test_a_head_alone_has_its_bias_and_its_key_head():
    generator = torch.Generator().manual_seed(0)
    module = MultiHeadAttention(8, 4, h_kv=2)
    trace = module.trace(torch.randn(1, 5, 8, generator=generator))
    for head in range(4):
        assert head_alone(trace, "K", head).difference < 1e-5
    assert torch.equal(head_alone(trace, "K", 0).result, head_alone(trace, "K", 1).result)
    assert head_alone(trace, "Q", 1).difference < 1e-5


def test_more_heads_cost_no_parameters():
    """LESSONS: 4d² + 4d = 1,050,624 for every h at d_model = 512; the score cells grow."""
    costs = [ledger(512, h, 40) for h in (1, 2, 4, 8, 16)]
    assert {cost.total for cost in costs} == {1_050_624}
    assert [cost.scores for cost in costs] == [h * 1600 for h in (1, 2, 4, 8, 16)]
    assert [cost.d_k for cost in costs] == [512, 256, 128, 64, 32]


def test_only_the_query_bias_moves_the_weights():
    trace = trace_of(10, 64, 4, seed=0)
    before = trace["weights"].value
    moved = {letter: (weights_with_bias(trace, letter) - before).abs().max().item() for letter in "QKVO"}
    assert moved["Q"] > 0.05
    assert moved["K"] < 1e-5
    assert moved["V"] == moved["O"] == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_worksheet_adds_up_as_written(seed):
    trace = trace_of(4, 64, 4, seed=seed)
    sheet = worksheet(trace.explain("V", key=1, feature=9))
    assert len(sheet.index) == 15 and sheet.more == 49
    assert math.isclose(sum(sheet.products) + sheet.rest, sheet.total, abs_tol=1e-5)
    if sheet.exact:
        written = [round(part, sheet.decimals) for part in (*sheet.products, sheet.rest)]
        assert round(sum(written), sheet.decimals) == round(sheet.total, sheet.decimals)
    assert min(abs(product) for product in sheet.products) >= sheet.rest / sheet.more


def test_a_worksheet_keeps_the_bias_apart():
    module = MultiHeadAttention(4, 2)
    trace = module.trace(torch.ones(1, 2, 4))
    sheet = worksheet(trace.explain("Q", query=0, feature=1))
    assert sheet.index == (0, 1, 2, 3)
    assert sheet.bias == module.W_Q.bias[1].item()
    torch.nn.init.zeros_(module.W_Q.bias)
    assert worksheet(module.trace(torch.ones(1, 2, 4)).explain("Q", query=0, feature=1)).bias is None


def test_products_that_are_0_are_not_written_where_there_is_no_room():
    module = MultiHeadAttention(64, 4)
    with torch.no_grad():
        module.W_Q.weight.zero_()
        module.W_Q.weight[5, [3, 60]] = 2.0
    trace = module.trace(torch.ones(1, 2, 64))
    sheet = worksheet(trace.explain("Q", query=0, feature=5))
    assert sheet.index == (3, 60) and sheet.more == 62 and sheet.rest == 0
    assert len(worksheet(trace.explain("Q", query=0, feature=6)).index) == 15
