"""Values on paper: the components that NumPy finds, true distances in two features, mixes inside the polygon."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mha_core.plane import values_in_2d
from tests.seeds import trace_of


def mixes(n: int, d_v: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Values, (n, d_v), rows of weights, (5, n), and the outputs, (5, d_v)."""
    generator = torch.Generator().manual_seed(seed)
    V = torch.randn(n, d_v, generator=generator)
    A = (2 * torch.randn(5, n, generator=generator)).softmax(-1)
    return V, A, A @ V


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(1, 12), st.integers(1, 9), st.integers(0, 2**16))
def test_an_output_is_the_same_mix_of_the_points_and_so_inside_their_polygon(n: int, d_v: int, seed: int) -> None:
    V, A, z = mixes(n, d_v, seed)
    plane = values_in_2d(V, z)
    np.testing.assert_allclose(plane.outputs.numpy(), (A.double() @ plane.values).numpy(), atol=1e-5)
    angles = torch.linspace(0, 2 * torch.pi, 361, dtype=torch.float64)
    directions = torch.stack([angles.cos(), angles.sin()])  # a point is inside iff it is in no direction outermost
    assert ((plane.outputs @ directions).amax(0) <= (plane.values @ directions).amax(0) + 1e-5).all()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(1, 12), st.integers(1, 9), st.integers(0, 2**16))
def test_the_plane_is_that_of_the_two_largest_variances(n: int, d_v: int, seed: int) -> None:
    V, _, z = mixes(n, d_v, seed)
    plane = values_in_2d(V, z)
    centred = V.double().numpy() - V.double().numpy().mean(0)
    variances = np.linalg.eigvalsh(centred.T @ centred)[::-1]
    shown = (plane.values.numpy() ** 2).sum(0)
    np.testing.assert_allclose(shown, [*variances[:2], 0][:2], atol=1e-8)
    assert plane.share == pytest.approx(1 if n == 1 else variances[:2].sum() / variances.sum())
    assert plane.values.shape == (n, 2) and plane.outputs.shape == (5, 2)


@pytest.mark.parametrize(("n", "d_v"), [(6, 1), (6, 2), (3, 8), (2, 8), (1, 8)])
def test_distances_are_true_where_two_coordinates_are_enough(n: int, d_v: int) -> None:
    V, _, z = mixes(n, d_v, 0)
    plane = values_in_2d(V, z)
    true, drawn = torch.cat([V, z]).double(), torch.cat([plane.values, plane.outputs])
    np.testing.assert_allclose(torch.cdist(drawn, drawn).numpy(), torch.cdist(true, true).numpy(), atol=1e-6)
    assert plane.share == pytest.approx(1)


def test_the_plane_is_the_same_whichever_way_the_decomposition_turns_its_axes() -> None:
    V, _, z = mixes(7, 5, 0)
    turned = values_in_2d(V.flip(0), z)
    torch.testing.assert_close(turned.values.flip(0), values_in_2d(V, z).values)


def test_equal_values_are_one_point() -> None:
    plane = values_in_2d(torch.ones(4, 3), torch.ones(3))
    assert plane.values.abs().max() == plane.outputs.abs().max() == 0
    assert plane.share == 1


def test_a_head_of_a_trace_can_be_given_as_it_is() -> None:
    trace = trace_of(6, 64, 4, 0)
    V = trace["V_heads"].sel(batch=0, head=1).value
    plane = values_in_2d(V, trace["head_outputs"].sel(batch=0, head=1, query=2).value)
    A = trace["weights"].sel(batch=0, head=1, query=2).value.double()
    assert plane.outputs.shape == (2,)
    torch.testing.assert_close(plane.outputs, A @ plane.values, atol=1e-5, rtol=0)
    assert 0.4 < plane.share < 1
