"""The pictures of "cost": what is drawn and written is what was counted or measured."""

import re

import numpy as np
import pytest

from mha_core import masks
from mha_core.cost import activation_bytes, cache_bytes, crossing, flops, parameters, softmax_cells
from mha_core.figures.cost import COST_WORDS, cost
from mha_core.figures.cost_race import RACE_WORDS, race_lines
from mha_core.figures.cost_sharing import SHARING_WORDS, Shared, sharing
from mha_core.figures.quantity import bytes_text, count_text
from mha_core.figures.theme import THEMES, rgb
from mha_core.grouped import share_keys
from mha_core.model_sizes import MODEL_SIZES, model_sizes
from mha_core.race import METHODS, SWEEPS, Cell, Times, cells_of
from mha_core.sizes import Sizes, head_counts, with_heads
from tests.figures.test_combine import texts
from tests.figures.test_overview import decoded, image, tokens

SIZES = [
    Sizes.standard(64, 4, 10),
    Sizes.standard(4, 2, 3),
    Sizes.standard(509, 1, 1),
    Sizes.standard(7, 7, 256),
    Sizes.standard(512, 16, 131_072, layers=7, batch=3),
    Sizes.standard(12288, 96, 131_072, layers=200, batch=1024),  # FLOPs beyond 64 bits
    *(row.sizes for row in MODEL_SIZES),
]


def lines(picture):
    """Every curve: its data, as the pointer is told them."""
    traces = picture.to_dict()["data"]
    return [decoded(trace["customdata"]) for trace in traces if trace.get("mode", "").startswith("lines")]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: f"{sizes.d_model}-{sizes.h}-{sizes.n_q}")
@pytest.mark.parametrize("told", [True, False])
def test_every_size_is_a_valid_figure_with_its_totals(sizes, told, theme):
    picture = cost(sizes, told=told, theme=theme)
    picture.figure()
    shown = texts(picture)
    for total in (count_text(parameters(sizes)), count_text(flops(sizes)), count_text(softmax_cells(sizes)),
                  bytes_text(activation_bytes(sizes)), bytes_text(cache_bytes(sizes))):  # fmt: skip
        assert total in shown


@pytest.mark.parametrize("sizes", SIZES[:2] + SIZES[-2:], ids=lambda sizes: f"{sizes.d_model}-{sizes.h}")
def test_the_curves_over_h_are_ratios_of_counts(sizes):
    cells, of_parameters, of_flops, d_k, *_ = lines(cost(sizes))
    one = with_heads(sizes, 1)
    for h, ratio in cells:
        assert ratio == softmax_cells(with_heads(sizes, int(h))) / softmax_cells(one) == h
    assert (of_parameters[:, 1] == 1).all() and (of_flops[:, 1] == 1).all()
    assert np.allclose(d_k[:, 1] * d_k[:, 0], 1)
    assert sizes.h in cells[:, 0] and set(cells[:, 0]) <= set(head_counts(sizes))


def test_before_the_guess_only_d_k_is_there():
    told, covered = cost(SIZES[0]), cost(SIZES[0], told=False)
    assert len(lines(told)) - len(lines(covered)) == 3
    assert not any(re.search(r"cells ×\d", text) for text in texts(covered))
    assert f"{COST_WORDS['cells']} ×64" in texts(told)


@pytest.mark.parametrize("sizes", SIZES[:2] + SIZES[-1:], ids=lambda sizes: f"{sizes.d_model}-{sizes.h}")
def test_the_curves_over_n_cross_where_it_is_said(sizes):
    picture = cost(sizes)
    projections, pairs = lines(picture)[-2:]
    even = float(crossing(sizes))
    for (n, straight), (_, squared) in zip(projections, pairs, strict=True):
        assert straight + squared == flops(Sizes(**{**vars(sizes), "n_q": int(n), "n_k": int(n)}))
        assert (squared > straight) == (n > even)
    assert COST_WORDS["equal"].format(n=f"{even:,.0f}") in texts(picture)


@pytest.mark.parametrize("sizes", SIZES)
def test_all_numbers_at_the_axis_of_flops_are_powers_of_ten(sizes):
    powers = [text for text in texts(cost(sizes)) if text.startswith("10<sup>")]
    assert 3 <= len(powers) <= 6 and len(set(powers)) == len(powers)


def test_the_bar_is_cut_in_proportion():
    sizes, light = model_sizes("llama2").sizes, THEMES["light"]
    row = np.array(image(cost(sizes)).convert("RGB"))[108].astype(int)
    of_Q = (np.abs(row - rgb(light.Q)).sum(-1) == 0).sum() / len(row)
    maps = (np.abs(row - rgb(light.weights)).sum(-1) == 0).sum() / len(row)
    n, d = sizes.n_q, sizes.d_model
    one = {"Q": 2 * n * d * d, "KV": 2 * 2 * n * d * 1024, "maps": 2 * 2 * n * n * d, "O": 2 * n * d * d}
    total = sum(one.values())
    assert total == flops(sizes) / sizes.layers
    assert of_Q == pytest.approx(one["Q"] / total, abs=0.006)
    assert maps == pytest.approx(one["maps"] / total, abs=0.008)


def columns_of(trace, counts):
    return [Shared(share_keys(trace, h_kv), f"{h_kv} B", h_kv / counts[0], "5 %") for h_kv in counts]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("n", "h", "d_model", "counts"),
    [
        (10, 4, 64, (4, 2, 1)),
        (1, 2, 4, (2, 1)),
        (6, 7, 7, (7, 1)),
        (40, 16, 512, (16, 4, 1)),
        (256, 12, 24, (12, 4, 1)),
    ],
)
def test_sharing_draws_every_head_of_every_column(trace_of, n, h, d_model, counts, theme):
    trace = trace_of(n, h, d_model, mask=masks.causal(n) if n > 1 else None)
    picture = sharing(columns_of(trace, counts), tokens(n), theme=theme)
    picture.figure()
    shown = texts(picture)
    for head in range(h):  # of few tokens, the weights stand in their cells and may be "1" as well
        assert shown.count(str(head + 1)) == len(counts) or n < 5
    assert {SHARING_WORDS["keys"].format(h_kv=h_kv) for h_kv in counts} <= set(shown)
    assert {"MHA", "MQA"} <= set(shown) and ("GQA" in shown) == (len(counts) == 3)


def test_hover_tells_the_weights_of_the_head_under_it(trace_of):
    trace = trace_of(5, 2, 8)
    columns = columns_of(trace, (2, 1))
    found = []
    for drawn in sharing(columns, tokens(5)).to_dict()["data"]:
        if drawn["type"] == "heatmap":
            found.append(decoded(drawn["z"]))
    seen = np.concatenate([np.ravel(values) for values in found])
    for column in columns:
        for value in column.trace["weights"].value.ravel().tolist():
            assert np.isclose(seen, value, atol=1e-6).any()


def test_the_bars_of_the_cache_are_as_long_as_their_shares(trace_of):
    picture = sharing(columns_of(trace_of(5, 4, 8), (4, 2, 1)), tokens(5))
    row = np.array(image(picture).convert("RGB")).astype(int)[-86]
    of_keys = np.abs(row - rgb(THEMES["light"].K)).sum(-1) == 0
    lengths = [of_keys[2 * left : 2 * (left + 354)].sum() for left in (0, 388, 776)]
    assert lengths[1] / lengths[0] == pytest.approx(0.5, abs=0.01)
    assert lengths[2] / lengths[0] == pytest.approx(0.25, abs=0.01)


def test_wrong_numbers_of_tokens_are_refused(trace_of):
    with pytest.raises(ValueError, match="4 tokens for n=5"):
        sharing(columns_of(trace_of(5, 2, 8), (2, 1)), tokens(4))


def times(cell: Cell, base: float) -> Times:
    median = {name: base * (index + 1) for index, name in enumerate(METHODS)}
    low, high = ({name: value * by for name, value in median.items()} for by in (0.9, 1.2))
    return Times(cell, median, low, high, 5, dict.fromkeys(METHODS, 1), 1e-7)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("devices", [("cpu",), ("cpu", "cuda")])
@pytest.mark.parametrize("done", [0, 1, 5, 99])
def test_the_race_shows_what_is_measured_so_far(devices, done, theme):
    points = [times(cell, 1e-4 * (1 + index)) for index, cell in enumerate(cells_of(where=devices))][:done]
    picture = race_lines(points, devices, theme=theme)
    picture.figure()
    panels = [(device, sweep) for device in devices for sweep in SWEEPS]
    expected = []
    for device, sweep in panels:
        mine = [p for p in points if p.cell.device == device and sweep.key in p.cell.sweeps]
        mine.sort(key=lambda point: getattr(point.cell, sweep.key))
        expected += [[(getattr(p.cell, sweep.key), 1e3 * p.median[name]) for p in mine] for name in METHODS if mine]
    assert [[tuple(point) for point in line] for line in lines(picture)] == expected
    assert texts(picture).count(RACE_WORDS["none"]) == len(panels) - len(expected) // len(METHODS)
