"""Where heads look: measured on maps whose answer is known, then on trained heads."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from mha_core import toy_roles
from mha_core.metrics import divergence
from mha_core.toy_model import ToyModel
from mha_core.toy_roles import mass_on_places, movement, roles
from mha_core.toy_tasks import Size, stream, task_named
from tests.trained import SEEDS, reported, some


def test_mass_is_the_mean_over_rows_with_a_marked_cell() -> None:
    task, batch = some("recall", 5)
    places = task.places(batch.tokens)
    maps = torch.rand(5, 1, 2, 12, 12, generator=torch.Generator().manual_seed(0)).softmax(-1)
    for name, mass in mass_on_places(maps, places).items():
        for head in range(2):
            found = [
                maps[b, 0, head, i, j].item() for b in range(5) for i in range(6, 12) for j in range(12)
                if places[name][b, i, j]
            ]  # fmt: skip
            assert len(found) == 30
            assert mass[0, head].item() == pytest.approx(np.mean(found), rel=1e-5)


def test_movement_is_what_the_sequence_tells_about_the_key() -> None:
    n = 6
    fixed = torch.eye(n).expand(24, n, n)
    random = torch.eye(n)[torch.stack([torch.randperm(n, generator=stream(s, "data")) for s in range(4000)])]
    spread = torch.full((10, n, n), 1 / n)
    assert movement(fixed).item() == 0 and movement(spread).item() == pytest.approx(0, abs=1e-6)
    assert movement(random).item() == pytest.approx(math.log(n), abs=0.01)


def test_roles_are_those_of_the_maps() -> None:
    task, batch = some("copy", 30)
    model = ToyModel(task, Size(8, 1, 64), seed=0)
    found, maps = roles(model, batch), model.maps(batch.tokens)
    assert found.places == ("back1", "back2", "back3", "ahead1")
    np.testing.assert_allclose(found.divergence[0], divergence(maps[:, 0]).mean(0), atol=1e-6)
    for place, offset in enumerate((1, 2, 3, -1)):
        diagonal = torch.stack([maps[..., i, (i - offset) % 12] for i in range(12)]).mean((0, 1))
        np.testing.assert_allclose(found.mass[..., place], diagonal, atol=1e-6)
    best = found.of(0, 3)
    assert best.mass == found.mass[0, 3].max() and found.places.index(best.place) == found.mass[0, 3].argmax()


def test_many_heads_are_measured_in_pieces() -> None:
    task, batch = some("copy", 30)
    model = ToyModel(task, Size(32, 1, 64), seed=0)
    assert 2 * toy_roles._AT_ONCE < 30 * 32 * 12 * 12 * 32
    apart = roles(model, batch).divergence[0]
    np.testing.assert_allclose(apart, divergence(model.maps(batch.tokens)[:, 0]).mean(0), atol=1e-6)


@pytest.mark.trains
@pytest.mark.parametrize("seed", SEEDS)
def test_four_heads_take_the_four_offsets(seed: int) -> None:
    found = reported("copy", 4, seed).roles
    taken = [found.of(0, head) for head in range(4)]
    assert {role.place for role in taken} == {"back1", "back2", "back3", "ahead1"}
    assert all(role.mass > 0.9 for role in taken)
    assert found.movement.max() < 0.1  # offsets don't depend on what is written
    assert found.divergence[0][~np.eye(4, dtype=bool)].min() > 0.5  # ln 2 = .69: heads that share nothing


@pytest.mark.trains
@pytest.mark.parametrize("seed", SEEDS)
def test_one_head_of_recall_moves_with_the_input_and_the_other_does_not(seed: int) -> None:
    found = reported("recall", 2, seed).roles
    by_place = {found.of(0, head).place: head for head in range(2)}
    assert by_place.keys() == {"match", "slot"}
    assert found.of(0, by_place["match"]).mass > 0.9 and found.of(0, by_place["slot"]).mass > 0.9
    assert found.movement[0, by_place["match"]] > 1.5  # of ln 6 = 1.79
    assert found.movement[0, by_place["slot"]] < 0.1


@pytest.mark.trains
@pytest.mark.parametrize("seed", SEEDS)
def test_in_the_control_all_heads_learn_the_same(seed: int) -> None:
    found = reported("control", 4, seed).roles
    assert {found.of(0, head).place for head in range(4)} == {"back1"}
    assert found.mass.min() > 0.5  # uniform would be 1/12
    others = ~np.eye(4, dtype=bool)
    assert found.divergence[0][others].max() < reported("copy", 4, seed).roles.divergence[0][others].min()


@pytest.mark.trains
@pytest.mark.parametrize("seed", SEEDS)
def test_the_second_layer_of_induction_looks_after_the_earlier_occurrence(seed: int) -> None:
    found = reported("induction", 1, seed, layers=2).roles
    assert task_named("induction").sizes[0].layers == 2
    assert found.of(1, 0).place == "after" and found.of(1, 0).mass > 0.9
    assert found.of(0, 0).place == "previous"
