"""How saturated a softmax is: closed forms against autograd, random draws against theory and LESSONS.md's table."""

import math

import numpy as np
import pytest
import torch
from torch.autograd.functional import jacobian

from mha_core import MultiHeadAttention
from mha_core.masks import causal
from mha_core.random_queries import D_KS, SHARES, draw, draws_for, sweep
from mha_core.saturation import DEAD, head_saturation, jacobian_norm, query_gradient_norm, saturation


def seeded(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.fixture(scope="module")
def swept():
    return sweep(16)


@pytest.mark.parametrize("sharpness", [0.1, 1.0, 8.0, 30.0])
def test_the_norm_of_the_jacobian_is_autograds(sharpness):
    scores = sharpness * seeded(16, dtype=torch.float64)
    right = jacobian(lambda s: s.softmax(-1), scores).norm().item()
    assert jacobian_norm(scores.softmax(-1)).item() == pytest.approx(
        right, rel=1e-6, abs=1e-7
    )  # it is a root of 1 − 2 + 1


@pytest.mark.parametrize("scale", [1.0, 0.125, 1 / 64])
def test_the_gradient_by_the_query_is_autograds(scale):
    q, K = seeded(64, dtype=torch.float64), seeded(16, 64, seed=1, dtype=torch.float64)
    right = jacobian(lambda q: (K @ q * scale).softmax(-1), q).norm().item()
    weights = (K @ q * scale).softmax(-1)
    assert query_gradient_norm(weights.unsqueeze(0), K, scale).item() == pytest.approx(right, rel=1e-9)


def test_close_to_one_hot_float32_scores_keep_their_digits():
    """A favourite ahead by 10 lets 9·10⁻⁵ through; 1 − 2 + 1 in float32 is off by 3·10⁻⁴."""
    measured = saturation(torch.tensor([[10.0, 0.0]]), torch.eye(2), 1.0)
    small = math.exp(-10)
    assert measured.jacobian[0] == pytest.approx(2 * small / (1 + small) ** 2, rel=1e-4)


def test_two_equal_keys_have_the_largest_norm_and_one_key_none():
    assert jacobian_norm(torch.tensor([0.5, 0.5, 0.0])).item() == pytest.approx(0.5)
    assert jacobian_norm(torch.tensor([1.0])).item() == 0
    rows = seeded(10_000, 6, dtype=torch.float64).mul(3).softmax(-1)
    assert jacobian_norm(rows).max() <= 0.5


# LESSONS.md, 1: d_k, then mean largest weight, mean entropy, median ‖J‖ (each un/scaled), share of ‖J‖ < .01 unscaled
LESSONS = [
    (4, (0.43, 0.24), (1.75, 2.37), (0.33, 0.30), 0.00),
    (16, (0.69, 0.24), (0.90, 2.36), (0.33, 0.30), 0.04),
    (64, (0.84, 0.25), (0.42, 2.36), (0.12, 0.30), 0.25),
    (128, (0.89, 0.25), (0.28, 2.36), (0.034, 0.30), 0.40),
    (256, (0.92, 0.24), (0.20, 2.37), (0.007, 0.30), 0.52),
    (512, (0.95, 0.25), (0.13, 2.35), (0.0004, 0.31), 0.67),
]


def shown_digits(value):
    """Half a unit of the last digit that is shown."""
    text = f"{value:g}"
    return 0.5 * 10 ** -max(2, len(text.partition(".")[2]))


@pytest.mark.parametrize(("d_k", "largest", "entropy", "jacobian", "dead"), LESSONS, ids=[str(r[0]) for r in LESSONS])
def test_the_table_within_sampling_error(swept, d_k, largest, entropy, jacobian, dead):
    """Within 4 standard errors of the difference of two independent samples of 4000, and the digits shown.

    The standard error of a mean is the sample's σ/√4000, of a share √(p(1−p)/4000); that of a median is
    √(¼/4000) in rank, so that the other median must lie between our quantiles at ½ ∓ 4·√2·.0079.
    """
    draws = swept.at[d_k].by_divisor
    for index, divisor in enumerate(("one", "sqrt")):
        for quantity, expected in (("largest", largest[index]), ("entropy", entropy[index])):
            values = draws[divisor].of(quantity)
            error = float(math.sqrt(2) * values.std() / math.sqrt(len(values)))
            assert values.mean() == pytest.approx(expected, abs=4 * error + shown_digits(expected))
        around = 4 * math.sqrt(2 * 0.25 / 4000)
        low, high = draws[divisor].quantiles("jacobian", [0.5 - around, 0.5 + around])
        digit = shown_digits(jacobian[index])
        assert low - digit <= jacobian[index] <= high + digit
    error = math.sqrt(2 * max(dead, 0.001) / 4000)
    assert draws["one"].dead == pytest.approx(dead, abs=4 * error + 0.005)
    assert draws["sqrt"].dead == 0


def test_the_variance_of_a_product_is_d_k(swept):
    """Var(q·k) = d_k: of 64,000 products, 16 a query. The error is that of |q|², which they share."""
    for d_k in D_KS:
        raw = swept.at[d_k].raw_scores.astype(float)
        error = math.sqrt((2 / d_k) / len(raw) + (2 + 12 / d_k) / raw.size)  # relative
        assert raw.var() == pytest.approx(d_k, rel=4 * error)
        assert swept.at[d_k].by_divisor["sqrt"].spread == pytest.approx(1, rel=3 * error)


def test_dividing_by_d_k_drives_the_entropy_to_that_of_equal_weights(swept):
    gaps = math.log(16) - swept.curves["d_k"].mean["entropy"]
    assert np.all(np.diff(gaps) < 0)
    assert gaps[-1] == pytest.approx(1 / 2 / 512, rel=0.25)  # half the scores' variance, 1/d_k
    assert swept.curves["d_k"].median("largest")[-1] == pytest.approx(1 / 16, rel=0.15)


def test_below_eight_features_no_harm_is_done(swept):
    for d_k in (1, 2, 4, 8):
        draws = swept.at[d_k].by_divisor
        assert draws["one"].dead < 0.02
        assert draws["one"].median("jacobian") >= 0.95 * draws["sqrt"].median("jacobian")


def test_the_mean_gradient_of_the_query_rises_while_its_median_dies(swept):
    """LESSONS.md: mean ‖J‖ .32 → .07, mean ‖∂p/∂q‖ .59 → 1.53, scaled .29 → .31, median to .01."""
    small, large = swept.at[4].by_divisor, swept.at[512].by_divisor

    def error(values):
        return float(4 * math.sqrt(2) * values.std() / math.sqrt(len(values))) + 0.005

    for draws, quantity, expected in (
        (small["one"], "jacobian", 0.32), (large["one"], "jacobian", 0.07),
        (small["one"], "gradient", 0.59), (large["one"], "gradient", 1.53),
        (small["sqrt"], "gradient", 0.29), (large["sqrt"], "gradient", 0.31),
    ):  # fmt: skip
        assert draws.mean(quantity) == pytest.approx(expected, abs=error(draws.of(quantity)))
    assert large["one"].median("gradient") == pytest.approx(0.01, abs=0.006)


def test_a_curve_holds_the_quantiles_of_its_draws(swept):
    for column, d_k in enumerate(D_KS):
        for divisor, curve in swept.curves.items():
            draws = swept.at[d_k].by_divisor[divisor]
            assert curve.quantiles["jacobian"][:, column] == pytest.approx(np.quantile(draws.jacobian, SHARES))
            assert curve.dead[column] == np.mean(draws.jacobian < DEAD)
            assert curve.mean["gradient"][column] == pytest.approx(draws.gradient.mean(dtype=float))


def test_every_d_k_looks_at_the_first_features_of_the_same_draws():
    several, alone = draw(4, [3, 37, 512], count=50), draw(4, [37], count=50)
    assert np.array_equal(several[37].raw_scores, alone[37].raw_scores)
    assert several[3].raw_scores.shape == (50, 4)
    wide = draw(16, [128, 256])
    added = wide[256].raw_scores - wide[128].raw_scores  # 128 more products, independent of the first
    assert added.var() == pytest.approx(128, rel=0.05)
    assert abs(np.corrcoef(added.ravel(), wide[128].raw_scores.ravel())[0, 1]) < 0.02
    other = draw(4, [37], count=50, seed=1)
    assert not np.allclose(other[37].raw_scores, alone[37].raw_scores)


def test_the_typical_query_is_the_median_one(swept):
    draws = swept.at[64]
    largest = draws.by_divisor["one"].largest
    assert draws.weights("one", draws.typical).max() == pytest.approx(largest[draws.typical], abs=1e-6)
    assert largest[draws.typical] == pytest.approx(np.median(largest), abs=0.002)
    assert draws.weights("sqrt", draws.typical).sum() == pytest.approx(1)
    assert draws.scores("sqrt")[5] == pytest.approx(draws.raw_scores[5] / 8)


def test_drawing_asks_no_global_generator():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    draw(4, [2], count=10)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("n", "d_ks", "count"), [(0, [4], 10), (4, [0], 10), (4, [513], 10), (4, [4], 0)])
def test_what_cannot_be_drawn_is_named(n, d_ks, count):
    with pytest.raises(ValueError, match="from 1 to 512"):
        draw(n, d_ks, count=count)


def test_more_keys_mean_fewer_queries():
    assert [draws_for(n) for n in (2, 16, 32, 256)] == [4000, 4000, 2000, 250]


def test_a_head_is_measured_by_its_own_scores():
    module, X = MultiHeadAttention(8, 2), seeded(1, 5, 8)
    trace = module.trace(X, mask=causal(5))
    for head, measured in enumerate(head_saturation(trace, "sqrt")):
        weights = trace["weights"].value[0, head].detach().double()
        assert measured.largest == pytest.approx(weights.amax(-1).numpy(), abs=1e-6)
        assert measured.jacobian == pytest.approx(jacobian_norm(weights).numpy(), abs=1e-6)
        assert measured.jacobian[0] == 0  # the first token sees itself alone
    unscaled = head_saturation(trace, "one")
    other = module.trace(X, mask=causal(5), scale=1.0)["weights"].value
    for head in range(2):
        assert unscaled[head].largest == pytest.approx(other[0, head].detach().amax(-1).numpy(), abs=1e-6)


def test_a_query_that_may_attend_to_nothing_is_left_out():
    mask = torch.ones(3, 3, dtype=torch.bool)
    mask[1] = False
    (measured,) = head_saturation(MultiHeadAttention(4, 1).trace(seeded(1, 3, 4), mask=mask), "sqrt")
    assert measured.largest.shape == (2,) and np.isfinite(measured.gradient).all()
    nothing = head_saturation(MultiHeadAttention(4, 1).trace(seeded(1, 3, 4), mask=mask & False), "one")[0]
    assert math.isnan(nothing.median("jacobian")) and math.isnan(nothing.dead) and math.isnan(nothing.spread)


def test_grouped_heads_read_their_own_keys():
    module = MultiHeadAttention(8, 4, h_kv=2)
    trace = module.trace(seeded(1, 5, 8))
    scale = trace.scale
    for head, measured in enumerate(head_saturation(trace, "sqrt")):
        q, K = trace["Q_heads"].value[0, head].detach(), trace["K_heads"].value[0, head // 2].detach()
        right = [jacobian(lambda one, K=K: (K @ one * scale).softmax(-1), row).norm().item() for row in q]
        assert measured.gradient == pytest.approx(right, rel=1e-4)
