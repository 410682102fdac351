"""Random weights by their statistics, designed weights by what the heads then look at."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from mha_core import AttentionTrace, MultiHeadAttention
from mha_core.inputs import PRESETS, Preset, embed, random_input, tokenize
from mha_core.masks import causal
from mha_core.weights import ROLES, HeadReport, Role, design, randomize, report

ROLE = {role.key: role for role in ROLES}
DEFAULTS = 64, 8
ALL_ROLES = 128, 16

# d_model even, odd and in between; h divides it, d_k ≥ 8
SIZES = [
    (8, 1), (9, 1), (10, 1), (11, 1), (16, 1), (16, 2), (17, 1), (18, 2), (24, 3), (27, 3), (30, 3), (32, 4), (33, 3),
    (36, 4), (45, 5), (50, 5), (51, 3), (63, 7), (64, 1), (64, 4), (64, 8), (66, 6), (72, 8), (81, 9), (99, 11),
    (100, 10), (110, 10), (127, 1), (128, 16), (130, 13), (144, 16), (150, 15), (192, 16), (256, 8), (257, 1),
    (333, 9), (384, 16), (510, 15), (511, 7), (512, 1), (512, 16),
]  # fmt: skip


def sentences() -> list[list[str]]:
    """Of 2 to 40 tokens drawn from 20 words; then of all equal, all different and two alternating words."""
    rng = random.Random(0)
    vocabulary = tokenize("the cat sat on mat dog saw it was tired , . 猫坐 river old man keys found lost")
    drawn = [rng.choices(vocabulary, k=n) for n in (2, 3, 4, 5, 7, 10, 14, 20, 27, 33, 39, 40)]
    return [*drawn, ["a"] * 40, [f"w{i}" for i in range(40)], ["a", "b"] * 10]


def designed(d_model: int, h: int) -> tuple[MultiHeadAttention, tuple[Role, ...]]:
    module = MultiHeadAttention(d_model, h)
    return module, design(module, seed=0)


def masses(trace: AttentionTrace, tokens: list[str], roles: tuple[Role, ...]) -> Iterator[tuple[str, Tensor]]:
    """A head's role, and its attention on the target in each row that has one."""
    for i, role in enumerate(roles):
        if role.target is not None:
            A, cells = trace["weights"].sel(batch=0, head=i).value.detach(), role.target(tokens)
            yield role.key, torch.tensor([row[c].sum() for row, c in zip(A, cells, strict=True) if c.any()])


def reports(
    tokens: list[str], d_model: int, h: int, *, mask: Tensor | None = None, with_positions: bool = True
) -> dict[str, HeadReport]:
    module, roles = designed(d_model, h)
    trace = module.trace(embed(tokens, d_model, with_positions=with_positions), mask=mask)
    return {head.role: head for head in report(trace, tokens, roles)}


def linears(module: MultiHeadAttention) -> dict[str, torch.nn.Linear]:
    return {name: getattr(module, name) for name in ("W_Q", "W_K", "W_V", "W_O")}


# Random


@pytest.mark.parametrize("name", ["W_Q", "W_K", "W_V", "W_O"])
def test_random_weights_are_normal_with_variance_1_over_in_features(name: str) -> None:
    module = randomize(MultiHeadAttention(64, 4, d_k=40, d_v=100, d_context=256), seed=5, with_bias=True)
    linear = linears(module)[name]
    scaled = linear.weight.detach() * linear.in_features**0.5
    assert abs(scaled.mean().item()) < 4 / scaled.numel() ** 0.5
    assert abs(scaled.std().item() - 1) < 4 / (2 * scaled.numel()) ** 0.5
    assert abs((scaled.abs() < 1).double().mean().item() - math.erf(0.5**0.5)) < 0.02
    assert 0.6 < linear.bias.std().item() * linear.in_features**0.5 < 1.4


def test_a_seed_gives_the_same_weights_and_another_seed_others() -> None:
    a, b, c = (randomize(MultiHeadAttention(16, 2), seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(a[name], b[name]) for name in a)
    for name in ("W_Q", "W_K", "W_V", "W_O"):
        assert (a[f"{name}.weight"] != c[f"{name}.weight"]).all()


def test_no_two_matrices_or_biases_of_neighbouring_seeds_share_numbers() -> None:
    drawn = [randomize(MultiHeadAttention(16, 2), seed=seed, with_bias=True).state_dict() for seed in range(4)]
    first = {tensor.flatten()[0].item() for state in drawn for tensor in state.values()}
    assert len(first) == 4 * 8


def test_biases_and_h_change_no_weight() -> None:
    plain = randomize(MultiHeadAttention(16, 2), seed=3)
    for other in (
        randomize(MultiHeadAttention(16, 2, bias=False), seed=3),
        randomize(MultiHeadAttention(16, 2), seed=3, with_bias=True),
        randomize(MultiHeadAttention(16, 8), seed=3),
    ):
        for name, linear in linears(other).items():
            assert torch.equal(linear.weight, linears(plain)[name].weight)


@pytest.mark.parametrize("seed", range(20))
def test_random_x_and_random_weights_have_nothing_in_common(seed: int) -> None:
    module = randomize(MultiHeadAttention(64, 1), seed=seed)
    X = random_input(64, 64, seed)[0].flatten()
    for linear in linears(module).values():
        together = torch.stack([X, linear.weight.detach().flatten()])
        assert torch.corrcoef(together)[0, 1].abs() < 0.08  # five standard errors of 4096 pairs


def test_biases_are_zero_unless_asked_for() -> None:
    for linear in linears(randomize(MultiHeadAttention(16, 2), seed=3)).values():
        assert not linear.bias.any()
    for linear in linears(randomize(MultiHeadAttention(16, 2), seed=3, with_bias=True)).values():
        assert linear.bias.all()


def test_torch_s_own_stream_is_left_alone() -> None:
    module, state = MultiHeadAttention(16, 2), torch.get_rng_state()
    design(randomize(module, seed=3), seed=4)
    assert torch.equal(torch.get_rng_state(), state)


# Designed


@pytest.mark.parametrize(("d_model", "h"), SIZES)
def test_designed_heads_keep_their_promise(d_model: int, h: int) -> None:
    module, roles = designed(d_model, h)
    for tokens in sentences():
        trace = module.trace(embed(tokens, d_model), keep=["weights"])
        for key, mass in masses(trace, tokens, roles):
            if key in ("previous", "next", "first"):
                assert mass.min() >= 0.9, (key, len(tokens))
            if key == "same":
                assert mass.mean() >= 0.9, (key, len(tokens))


@pytest.mark.parametrize("n", range(2, 41))
def test_designed_heads_keep_their_promise_at_every_length(n: int) -> None:
    tokens = [f"w{i % 30}" for i in range(n)]
    module, roles = designed(*ALL_ROLES)
    found = dict(masses(module.trace(embed(tokens, 128)), tokens, roles))
    assert min(found[key].min() for key in ("previous", "next", "first")) >= 0.9
    assert min(found[key].mean() for key in ("same", "other")) >= 0.9
    if n >= 8:
        assert min(found[key].mean() for key in ("near", "far")) >= 0.9


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.key)
def test_with_the_defaults_every_role_holds_on_every_preset(preset: Preset) -> None:
    found = reports(list(tokenize(preset.text)), *ALL_ROLES)
    assert list(found) == [role.key for role in ROLES]
    assert all(head.holds and head.mass >= 0.9 for head in found.values()), found


def test_all_sixteen_roles_hold_where_there_is_room() -> None:
    found = reports([f"w{i}" for i in range(40)], 256, 16)
    assert [key for key, head in found.items() if not head.holds] == []


@pytest.mark.parametrize(("d_model", "h"), [*SIZES, (4, 1), (4, 4), (5, 5), (6, 3), (7, 7), (7, 1), (16, 16)])
def test_scores_stay_small_and_the_gain_is_split_evenly(d_model: int, h: int) -> None:
    module, _ = designed(d_model, h)
    for n in (1, 40, 256):
        scores = module.trace(embed([f"w{i % 50}" for i in range(n)], d_model), keep=["scores"])["scores"].value
        assert scores.abs().max() < 1e4
    W_Q, W_K = (linear.weight.detach().view(h, -1).norm(dim=-1) for linear in (module.W_Q, module.W_K))
    torch.testing.assert_close(W_Q, W_K, rtol=1e-5, atol=0)


def test_positions_and_words_are_read_from_their_own_half() -> None:
    module, roles = designed(*ALL_ROLES)
    for i, role in enumerate(roles):
        for linear in (module.W_Q, module.W_K):
            words, places = linear.weight.detach()[i * 8 : (i + 1) * 8].split(64, dim=1)
            assert bool(words.any()) == (role.key in ("same", "other"))
            assert bool(places.any()) == (role.key not in ("same", "other", "even"))


def test_W_V_W_O_and_biases_are_the_random_ones() -> None:
    module, random_ = MultiHeadAttention(16, 2), randomize(MultiHeadAttention(16, 2), seed=6, with_bias=True)
    design(module, seed=6, with_bias=True)
    ours, theirs = module.state_dict(), random_.state_dict()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == ["W_Q.weight", "W_K.weight"]


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (MultiHeadAttention(34, 17), "h=17, h_kv=17, d_context=34: weights are designed for up to 16 heads"),
        (MultiHeadAttention(16, 4, h_kv=2), "h=4, h_kv=2, d_context=16: weights are designed"),
        (MultiHeadAttention(16, 4, d_context=8), "h=4, h_kv=4, d_context=8: weights are designed"),
    ],
)
def test_what_cannot_be_designed_is_refused_and_left_as_it_was(module: MultiHeadAttention, words: str) -> None:
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    with pytest.raises(ValueError, match=words + r".*; use random weights instead"):
        design(module, seed=0)
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())


# Roles and reports


def test_roles_have_their_own_keys() -> None:
    assert len(ROLE) == len(ROLES) == 16


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.key)
def test_a_role_builds_two_matrices_of_any_size(role: Role) -> None:
    for d_model in (4, 5, 6, 7, 8, 15, 64, 99, 512):
        for d_k in {1, 2, 3, 4, 7, 8, 9, d_model // 2, d_model}:
            for matrix in role.build(d_model, d_k):
                assert matrix.shape == (d_model, d_k)
                assert matrix.dtype == torch.float32
                assert matrix.isfinite().all()


@pytest.mark.parametrize("role", [role for role in ROLES if role.target], ids=lambda role: role.key)
@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_a_role_s_target_is_a_boolean_square(role: Role, n: int) -> None:
    assert role.target is not None
    cells = role.target([f"w{i % 4}" for i in range(n)])
    assert cells.shape == (n, n)
    assert cells.dtype == torch.bool


@pytest.mark.parametrize(
    ("key", "places"),
    [
        ("previous", [1]), ("next", [3]), ("first", [0]), ("same", [2, 4]), ("other", [0, 1, 3]), ("far", []),
        ("near", [0, 1, 2, 3, 4]), ("back2", [0]), ("ahead2", [4]), ("self", [2]), ("back3", []), ("ahead4", []),
    ],
)  # fmt: skip
def test_what_a_role_wants_of_the_third_of_five_tokens(key: str, places: list[int]) -> None:
    target = ROLE[key].target
    assert target is not None
    assert target(["a", "b", "c", "d", "C"])[2].nonzero().flatten().tolist() == places


def test_far_is_half_the_sentence_away() -> None:
    target = ROLE["far"].target
    assert target is not None
    assert target(["a"] * 4).int().tolist() == [[0, 0, 1, 1], [0, 0, 0, 1], [1, 0, 0, 0], [1, 1, 0, 0]]


def test_under_a_causal_mask_next_has_no_attention_and_previous_still_holds() -> None:
    found = reports([f"w{i}" for i in range(10)], *DEFAULTS, mask=causal(10))
    assert found["next"] == HeadReport("next", 0.0, False)
    assert found["previous"].holds
    assert found["first"].holds
    assert found["even"].mass == pytest.approx(1)  # even over what is allowed


def test_without_positions_only_the_heads_that_read_words_hold() -> None:
    found = reports([f"w{i}" for i in range(20)], *ALL_ROLES, with_positions=False)
    assert {key for key, head in found.items() if head.holds} == {"same", "even", "other"}
    assert found["previous"].mass == pytest.approx(1 / 20)  # all scores are equal


def test_a_report_is_the_mean_over_the_rows_that_have_a_target() -> None:
    tokens = ["a", "b", "a", "c", "d"]
    module, roles = designed(*DEFAULTS)
    trace = module.trace(embed(tokens, 64))
    found = {head.role: head.mass for head in report(trace, tokens, roles)}
    for key, mass in masses(trace, tokens, roles):
        assert found[key] == pytest.approx(mass.mean().item())


def test_a_role_without_a_target_in_the_text_reports_nan_and_does_not_hold() -> None:
    found = reports(["a"], *ALL_ROLES)
    for key in ("previous", "next", "even", "other"):
        assert math.isnan(found[key].mass)
        assert not found[key].holds
    assert found["first"].mass == found["same"].mass == 1


def test_random_weights_hold_no_offset() -> None:
    tokens, module = [f"w{i}" for i in range(20)], randomize(MultiHeadAttention(*DEFAULTS), seed=0)
    found = report(module.trace(embed(tokens, 64)), tokens, ROLES[:4])
    assert not any(head.holds for head in found)
