"""One head averages, two keep apart: exact."""

from __future__ import annotations

import numpy as np
import torch

from mha_core.one_head import one_head_averages
from tests.reference import attention_by_loops


def test_one_head_brings_the_average_whatever_the_order() -> None:
    found = one_head_averages()
    average = (found.a + found.b) / 2
    for trace in (found.one, found.one_swapped):
        assert trace["weights"].value.flatten().tolist() == [0.5, 0.5]
        assert torch.equal(trace["output"].value[0, 0], torch.cat([average, average]))


def test_two_heads_keep_a_and_b_apart() -> None:
    found = one_head_averages()
    assert found.two["weights"].value[0, :, 0].tolist() == [[1, 0], [0, 1]]
    assert torch.equal(found.two["output"].value[0, 0], torch.cat([found.a, found.b]))
    assert torch.equal(found.two_swapped["output"].value[0, 0], torch.cat([found.b, found.a]))


def test_only_the_number_of_heads_differs() -> None:
    found = one_head_averages()
    one, two = found.one.module.state_dict(), found.two.module.state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert (found.one.sizes["h"], found.two.sizes["h"]) == (1, 2)
    assert not torch.equal(found.a, found.b)


def test_swapped_means_the_contents_at_the_same_places() -> None:
    found = one_head_averages()
    for trace, swapped in ((found.one, found.one_swapped), (found.two, found.two_swapped)):
        C, S = trace["context"].value[0], swapped["context"].value[0]
        assert torch.equal(C[:, :2], S[:, :2])
        assert torch.equal(C[:, 2:], torch.stack([found.a, found.b]))
        assert torch.equal(S[:, 2:], torch.stack([found.b, found.a]))


def test_loops_in_numpy_give_the_same() -> None:
    found = one_head_averages()
    for trace in (found.one, found.one_swapped, found.two, found.two_swapped):
        loops = attention_by_loops(trace.module, trace["X"].value, trace["context"].value)
        np.testing.assert_array_equal(trace["output"].value.numpy(), loops["output"])
