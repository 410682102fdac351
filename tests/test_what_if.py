"""LESSONS 3, 4 and 5: what a nudge, a factor, a tie and a bias change, and what they do not."""

import pytest
import torch

from mha_core import MultiHeadAttention
from mha_core.inputs import POCKET
from mha_core.weights import randomize, set_pocket
from mha_core.what_if import nudged, scaled, tied
from tests.seeds import SEEDS, trace_of


@pytest.mark.parametrize("h", [2, 8])
@pytest.mark.parametrize("feature", [0, 31, 63])
def test_every_head_reads_a_feature_and_one_slice_holds_it(h, feature):
    found = nudged(trace_of(6, 64, h, seed=1), feature)
    assert found.owner == feature * h // 64
    for letter in "QKV":
        assert found.moving(found.projected, letter) == h
        moved = found.sliced[f"{letter}_heads"].value
        assert moved[found.owner] > 0
        assert moved.count_nonzero() == 1  # the others by 0, exactly


def test_owner_where_h_does_not_divide_d_model():
    module = randomize(MultiHeadAttention(10, 3, d_k=4, d_v=4), 0)
    trace = module.trace(torch.randn(1, 4, 10, generator=torch.Generator().manual_seed(0)))
    for feature in range(10):
        found = nudged(trace, feature)
        moved = found.sliced["V_heads"].value
        assert moved[found.owner] > 0 and moved.count_nonzero() == 1


@pytest.mark.parametrize("factor", [0.33, 3.0])
def test_w_v_scales_the_output_and_no_weight(factor):
    found = scaled(trace_of(10, 64, 4, seed=2), "V", factor)
    assert found.moved == 0
    assert abs(found.output - factor) < 1e-5
    assert found.apart < 1e-6


def test_w_k_sharpens():
    for seed in SEEDS[:20]:
        found = scaled(trace_of(10, 64, 4, seed=seed), "K", 3.0)
        before, after = found.entropy
        assert (after < before).all()
        assert found.moved > 0.05


def test_with_biases_the_output_is_not_a_multiple():
    module = randomize(MultiHeadAttention(16, 2), 0, with_bias=True)
    trace = module.trace(torch.randn(1, 5, 16, generator=torch.Generator().manual_seed(0)))
    found = scaled(trace, "V", 3.0)
    assert found.moved == 0 and found.apart > 0.01


def test_tied_scores_are_symmetric_and_weights_not():
    rises = 0
    for seed in SEEDS[:20]:
        found = tied(trace_of(10, 64, 4, seed=seed))
        assert (found.scores[1] < 1e-6).all() and (found.scores[0] > 0.3).all()
        assert (found.weights[1] > 1e-3).all()
        rises += int((found.self_weight[1] > found.self_weight[0]).sum())
    assert rises == 80


def test_the_module_stays_as_it_is():
    module = set_pocket(MultiHeadAttention(4, 2))
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    trace = module.trace(POCKET.input())
    nudged(trace, 0), scaled(trace, "V", 3), tied(trace)
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, before[name])
