"""Trainings side by side, and the heads of one of them: what is drawn is what was measured."""

import numpy as np
import pytest

from mha_core.figures.ablation import ablation
from mha_core.figures.heads_sweep import Swept, heads_sweep
from mha_core.figures.theme import THEMES
from mha_core.figures.training import Learner, floor_share, training
from tests.figures.test_chart import of_mode, texts, untyped

TARGETS = ["1 back", "1 ahead"]


def learner(h=2, layers=1, n=6, joint=(0.0, 0.25, 0.5), seed=0):
    maps = np.random.default_rng(seed).random((layers, h, n, n), np.float32)
    maps /= maps.sum(-1, keepdims=True)
    steps = [10 * index for index in range(len(joint))]
    names = [f"role {head}" for head in range(layers * h)]
    return Learner(f"h = {h}", 8, steps, joint, joint[-1], [0.5, 0.995], maps, names)


def heatmaps(picture):
    return [untyped(trace["z"]) for trace in picture.to_dict()["data"] if trace["type"] == "heatmap"]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("sizes", [[1], [1, 2, 4, 8], [3, 16], [1, 1, 1]])
def test_plotly_accepts_every_comparison(sizes, theme):
    learners = [learner(h, layers=2 if h == 3 else 1) for h in sizes]
    picture = training(learners, TARGETS, list("abcdef"), steps=300, theme=theme)
    assert picture.figure().layout.height > 300
    assert len(of_mode(picture, "lines")) == len(sizes)


def test_the_curve_is_the_joint_accuracy_in_room_for_all_steps():
    picture = training([learner(joint=(0.0, 0.25, 1.0))], TARGETS, list("abcdef"), steps=40)
    (line,) = of_mode(picture, "lines")
    assert line.customdata.tolist() == [[0, 0], [10, 0.25], [20, 1]]
    assert np.ptp(line.x) == pytest.approx((1030 - 60) / 2)  # step 20 of 40: half of the axis
    assert np.ptp(line.y) == pytest.approx(158 - 40)


def test_every_weight_of_every_head_answers_the_pointer():
    one = learner(h=4)
    drawn = heatmaps(training([one], TARGETS, list("abcdef"), steps=300))
    values = np.concatenate([z[np.isfinite(z)] for z in drawn])
    assert np.allclose(np.sort(values), np.sort(one.maps.ravel()))


def test_shares_are_printed_and_never_rounded_up_to_all():
    at = texts(training([learner(joint=(0.0, 0.9999))], TARGETS, list("abcdef"), steps=300))
    assert ".99" in at and ".50" in at and "1.00" not in at
    assert [floor_share(share) for share in (1.0, 0.995, 0.29, 0.0)] == ["1.00", ".99", ".29", ".00"]


def draw_ablation(off=(), theme="light", h=4):
    maps = learner(h=h, n=5).maps[0]
    return maps, ablation(
        maps, [f"role {head}" for head in range(h)], off, ["1 back", "all right"], [1.0, 1.0], [0.1, 0.1],
        list("aabcd"), theme=theme,
    )  # fmt: skip


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("h", [1, 4, 8])
def test_plotly_accepts_the_heads_of_a_model(theme, h):
    draw_ablation(theme=theme, h=h)[1].figure()


def test_a_head_that_is_off_shows_no_weights_and_says_so():
    maps, picture = draw_ablation(off=[1])
    values = np.concatenate([z[np.isfinite(z)] for z in heatmaps(picture)])
    assert np.allclose(np.sort(values), np.sort(maps[[0, 2, 3]].ravel()))
    at = texts(picture)
    assert "head 2 · off" in at and "head 1 · role 0" in at
    assert ".10" in at and "← 1.00" in at


def test_the_sweep_draws_the_median_over_seeds():
    swept = Swept("copy", [1, 2, 4], 64, [[0, 0.1, 0.2], [0.4, 0.9, 0.5], [1, 1, 1]])
    picture = heads_sweep([swept])
    (line,) = of_mode(picture, "lines+markers")
    assert line.customdata.tolist() == [[1, 0.1], [2, 0.5], [4, 1]]
    at = texts(picture)
    assert {"1", "2", "4"} <= set(at) and {"64", "32", "16"} <= set(at)  # h, and below it d_k
    picture.figure()
