"""The experiments' pictures: what is drawn is the trace."""

import numpy as np
import pytest
import torch

from mha_core import masks
from mha_core.figures.attend_lines import LEAST, attend_lines
from mha_core.figures.attend_plane import attend_plane, plane_of
from mha_core.figures.attend_sums import SumPanel, attend_sums
from mha_core.hull import convex_hull, inside_hull
from tests.figures.test_attend import pick_values, texts, tokens
from tests.figures.test_overview import decoded

CASES = [
    {"n": 1, "h": 1, "d_model": 4},
    {"n": 2, "h": 2, "d_model": 2},
    {"n": 3, "h": 2},
    {"n": 40, "h": 2},
    {"n": 256, "h": 1, "d_model": 32},
    {"n": 9, "h": 2, "n_k": 5},
    {"n": 6, "h": 2, "zero": True},
]


def weights_of(trace, head=0):
    return trace["weights"].sel(batch=0, head=head).numpy()


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_they_are_figures(trace_of, case, theme):
    trace = trace_of(**case)
    n_q, n_k = trace.sizes["n_q"], trace.sizes["n_k"]
    context = tokens(n_k) if trace.cross else None
    for figure in (attend_lines, attend_plane):
        figure(trace, tokens(n_q), query=n_q - 1, context_tokens=context, theme=theme).figure()
    weights = weights_of(trace)
    panels = [SumPanel("a", note, weights, weights > 0.5, weights < 0.5, columns=True) for note in ("", "b", "")]
    attend_sums(panels, tokens(n_q), context_tokens=context, query=0, theme=theme).figure()


def test_a_line_for_every_weight_that_counts(trace_of):
    trace = trace_of(8, 2, 16, mask=masks.causal(8))
    spec = attend_lines(trace, tokens(8), head=1, query=5).to_dict()
    paths = "".join(shape["path"] for shape in spec["layout"]["shapes"])
    weights = weights_of(trace, 1)
    assert paths.count("C") == (weights >= LEAST).sum() + (weights[5] >= LEAST).sum()
    widths = [shape["line"]["width"] for shape in spec["layout"]["shapes"]]
    assert widths == sorted(widths) or len(set(widths)) == len(widths)
    assert {f"{weight:.2f}".removeprefix("0") for weight in weights[5, :6]} <= set(
        texts(attend_lines(trace, tokens(8), head=1, query=5))
    )


def test_the_output_is_drawn_inside_the_polygon_of_the_values(trace_of):
    trace = trace_of(9, 2, 16)
    picture = attend_plane(trace, tokens(9), head=1, query=4).to_dict()
    (dots,) = [t for t in picture["data"] if t.get("mode") == "markers"]
    at = torch.tensor(np.stack([decoded(dots["x"]), decoded(dots["y"])], 1))
    assert dots["marker"]["symbol"][-1] == "diamond"
    assert len(at) == 9 + 2
    assert inside_hull(at[:9], at[-1], slack=1e-4)
    mean = weights_of(trace, 1)[4].argsort()  # drawn from light to heavy
    expected = (torch.tensor(weights_of(trace, 1)[4][mean])[:, None] * at[:9]).sum(0)
    torch.testing.assert_close(at[-1], expected, atol=0.05, rtol=0)


def test_a_row_that_attends_to_nothing_has_an_output_all_the_same(trace_of):
    trace = trace_of(5, 1, 8, mask=torch.zeros(5, 5, dtype=torch.bool))
    attend_plane(trace, tokens(5)).figure()
    attend_lines(trace, tokens(5)).figure()
    assert not plane_of(trace, 0, 0).outputs.isnan().any()


@pytest.mark.parametrize("seed", range(20))
def test_the_hull_holds_every_point_and_no_mix_leaves_it(seed):
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(12, 2, generator=generator)
    corners = convex_hull(points)
    assert all(inside_hull(points, point) for point in points)
    mix = torch.rand(12, generator=generator)
    assert inside_hull(points, (mix / mix.sum()) @ points)
    for corner in corners:
        outward = points[corner] - points.mean(0)
        assert not inside_hull(points, points[corner] + 0.1 * outward)


def test_a_hull_of_points_in_a_row_or_in_one_place():
    line = torch.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    assert inside_hull(line, torch.tensor([1.5, 1.5]))
    assert not inside_hull(line, torch.tensor([1.5, 1.0]))
    assert not inside_hull(line, torch.tensor([3.0, 3.0]))
    assert inside_hull(torch.zeros(3, 2), torch.zeros(2))
    assert not inside_hull(torch.zeros(3, 2), torch.ones(2))


def test_sums_are_those_of_the_map(trace_of):
    weights = 2 * weights_of(trace_of(4, 1, 8))
    weights[1] = 0
    picture = attend_sums([SumPanel("t", "", weights, weights < 0, columns=True)], tokens(4))
    shown = texts(picture)
    assert shown.count("2.00") == 3 and "0" in shown
    assert all(f"{total:.1f}".removeprefix("0") in shown for total in weights.sum(0))
    ((pick, values),) = pick_values(picture)
    assert (pick.rows, pick.columns) == ("query", "key")
    np.testing.assert_array_equal(values, weights)
