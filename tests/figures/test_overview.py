import base64
import io
import re

import numpy as np
import plotly.io as pio
import pytest
import torch
from PIL import Image

from mha_core import masks
from mha_core.figures import THEMES, WORDS, overview
from mha_core.figures.canvas import Canvas
from mha_core.figures.geometry import Cells, spans
from mha_core.figures.raster import SIGNED_LEVELS, WEIGHT_LEVELS, signed_levels, weight_levels
from mha_core.figures.theme import LIGHT, rgb, signed_limit


def image(picture):
    source = next(trace for trace in picture.to_dict()["data"] if trace["type"] == "image")["source"]
    return Image.open(io.BytesIO(base64.b64decode(source.split(",")[1])))


def decoded(spec):
    array = np.frombuffer(base64.b64decode(spec["bdata"]), "<" + spec["dtype"])
    return array.reshape([int(size) for size in spec["shape"].split(",")])


def hovers(picture):
    return [trace for trace in picture.to_dict()["data"] if trace["type"] == "heatmap"]


def middles(hover, axis):
    edges = decoded(hover[axis])
    return (edges[:-1] + edges[1:]) / 2


def tokens(n):
    return [f"w{i}" for i in range(n)]


def names(picture, axis, at):
    """The tick texts at positions, found as Plotly finds them."""
    layout = picture.to_dict()["layout"][axis]
    tolerance = abs(layout["range"][1] - layout["range"][0]) / 1e4
    values = decoded(layout["tickvals"])
    return [layout["ticktext"][np.flatnonzero(np.abs(values - position) < tolerance)[0]] for position in at]


def test_painted_cells_are_the_matrix():
    """Through the PNG's bytes and its palette, cell by cell."""
    matrix = np.random.default_rng(1).normal(size=(7, 30))
    weights = np.random.default_rng(2).uniform(size=(9, 9))
    limit = signed_limit(matrix)
    canvas = Canvas(400, 300, LIGHT)
    cells = Cells(spans(20, 150, 30, 5, 4.0), spans(10, 90, 7))
    map_cells = Cells(spans(200, 300, 9), spans(100, 200, 9))
    canvas.signed(matrix, cells, limit)
    canvas.weights(weights, map_cells, gap=1)
    png = image(canvas.picture())
    assert png.mode == "P"
    dots = np.array(png)
    for values, where, levels in (
        (matrix, cells, signed_levels(matrix, limit)),
        (weights, map_cells, weight_levels(weights)),
    ):
        for i, y in enumerate(where.y.middles):
            for j, x in enumerate(where.x.middles):
                assert dots[int(y), int(2 * x)] == levels[i, j], values[i, j]
    rgba = np.array(png.convert("RGBA"))
    assert rgba[0, 0, 3] == 0  # nothing painted: transparent
    largest = np.unravel_index(np.abs(matrix).argmax(), matrix.shape)
    colour = rgba[int(cells.y.middles[largest[0]]), int(2 * cells.x.middles[largest[1]]), :3]
    stop = LIGHT.signed[4 if matrix[largest] > 0 else 0]
    assert np.abs(colour.astype(int) - rgb(stop)).max() < 25


def test_levels_hold_every_value_within_half_a_step():
    values = np.linspace(-2, 2, 999)
    back = (signed_levels(values, 2.0).astype(float) - 1 - SIGNED_LEVELS // 2) / (SIGNED_LEVELS // 2) * 2
    assert np.abs(back - values).max() <= 2 / (SIGNED_LEVELS - 1) + 1e-9
    values = np.linspace(0, 1, 999)
    back = (weight_levels(values).astype(float) - 1 - SIGNED_LEVELS) / (WEIGHT_LEVELS - 1)
    assert np.abs(back - values).max() <= 0.5 / (WEIGHT_LEVELS - 1) + 1e-9


@pytest.mark.parametrize("mask", [None, masks.causal(10)])
@pytest.mark.parametrize("h", [1, 2, 4, 8, 16])
def test_what_is_painted_is_what_was_computed(trace_of, h, mask):
    """Each hover's cells lie on the painted cells: their levels at the middle of each cell must agree."""
    trace = trace_of(10, h, 32, mask=mask)
    picture = overview(trace, tokens(10), head=h - 1)
    dots = np.array(image(picture))
    weights_seen = 0
    for hover in hovers(picture):
        x, y, z = middles(hover, "x"), middles(hover, "y"), decoded(hover["z"])
        template = hover["hovertemplate"]
        inside = np.isfinite(z)
        painted = dots[y.astype(int)[:, None], (2 * x).astype(int)]
        if WORDS["weight"] in template:
            # a masked weight is a 0 that answers the pointer and is not painted as a number
            expected = weight_levels(np.nan_to_num(z))
            assert (painted[inside] != 0).any()
            clear = inside & (painted == 0)
            assert (z[clear] == 0).all()
            assert (painted[inside & ~clear] == expected[inside & ~clear]).all()
            weights_seen += int((inside & ~clear).sum())
            assert clear.any() == (mask is not None)
        elif WORDS["score"] in template:
            focus = trace["masked_scores"].sel(batch=0, head=h - 1).numpy()
            np.testing.assert_array_equal(inside, np.isfinite(focus))
            np.testing.assert_array_equal(z[inside], focus[inside])
            assert (painted[~inside] == 0).all()  # the hatch below the image
            assert len(set(painted[inside].tolist())) > 5
    allowed = 100 if mask is None else 55
    assert weights_seen == (h + 1) * allowed


def test_hovered_matrices_are_the_trace_and_their_cells_the_painted_ones(trace_of):
    trace = trace_of(6, 2, 12)
    picture = overview(trace, tokens(6), head=1)
    dots = np.array(image(picture))
    found = set()
    for hover in hovers(picture):
        if WORDS["feature"] not in hover["hovertemplate"]:
            continue
        x, y = middles(hover, "x"), middles(hover, "y")
        z, columns = decoded(hover["z"]), decoded(hover["customdata"])
        for top in range(0, len(y), 7):  # an empty row between the matrices above each other
            rows = slice(top, top + 6)
            title = names(picture, "yaxis", y[rows])[0].split("<br>")[0]
            step = {"Concat": "concat", "Output": "output"}.get(title, title[0])
            own = slice(None) if step in ("X", "output") else slice(6, 12)  # else the focus head's band
            expected = trace[step].sel(batch=0).numpy()
            limit, expected = signed_limit(expected), expected[:, own]
            np.testing.assert_array_equal(z[rows], expected)
            np.testing.assert_array_equal(columns[rows], np.tile(np.arange(1, 13)[own], (6, 1)))
            painted = dots[y[rows].astype(int)[:, None], (2 * x).astype(int)]
            np.testing.assert_array_equal(painted, signed_levels(expected, limit))
            assert [name.split("<br>")[1] for name in names(picture, "yaxis", y[rows])] == tokens(6)
            found.add(step)
    assert found == {"X", "Q", "K", "V", "concat", "output"}


@pytest.mark.parametrize(("n", "h"), [(1, 1), (7, 5), (16, 8), (24, 12), (40, 4), (40, 16), (256, 8)])
def test_the_pointer_is_told_the_true_token(trace_of, n, h):
    """No two names meet on an axis: Plotly would take the first it finds."""
    picture = overview(trace_of(n, h, 60 if h in (5, 12) else 16), tokens(n))
    answered = 0
    for hover in hovers(picture):
        if WORDS["query"] not in hover["hovertemplate"]:
            continue
        for axis, coordinates in (("xaxis", middles(hover, "x")), ("yaxis", middles(hover, "y"))):
            count = decoded(hover["z"]).shape[axis == "xaxis"]
            each = count if "%{customdata}" not in hover["hovertemplate"] else n + 1
            for start in range(0, count, each):
                some = coordinates[start : start + min(each, n)]
                seen = names(picture, axis, some)
                first = [name.split(" … ")[0] for name in seen]
                assert first == tokens(n)[:: -(-n // len(seen))], axis
                answered += 1
    assert answered >= 4


GRID = [
    (1, 1, 4, {}), (2, 2, 4, {}), (3, 4, 4, {}), (10, 3, 12, {}), (10, 5, 60, {}), (10, 12, 96, {}), (16, 8, 64, {}),
    (10, 16, 512, {}), (40, 16, 64, {}), (256, 1, 8, {}), (100, 2, 130, {}), (6, 3, 10, {"d_k": 7, "d_v": 2}),
    (6, 4, 16, {"h_kv": 2}), (6, 4, 16, {"h_kv": 1}), (5, 2, 8, {"n_k": 9}), (9, 2, 8, {"n_k": 2}), (7, 13, 26, {}),
]  # fmt: skip


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("n", "h", "d_model", "more"), GRID)
def test_every_setting_gives_a_figure_that_plotly_accepts(trace_of, n, h, d_model, more, theme):
    n_k = more.get("n_k", n)
    context = tokens(n_k) if "n_k" in more else None
    for mask in (None, masks.causal(n, n_k), torch.zeros(n, n_k, dtype=torch.bool), torch.randn(n, n_k)):
        trace = trace_of(n, h, d_model, mask=mask, **more)
        picture = overview(
            trace, tokens(n), head=h - 1, context_tokens=context, labels=[f"role {i}" for i in range(h)],
            caption="all looking", theme=theme,
        )  # fmt: skip
        picture.figure()
        assert image(picture).size == (2260, 668)


def test_zeros_and_rows_that_attend_to_nothing(trace_of):
    mask = masks.causal(4)
    mask[2] = False
    picture = overview(trace_of(4, 2, 8, zero=True, mask=mask), tokens(4))
    picture.figure()
    assert "±1" in texts(picture)


def texts(picture):
    return [text for trace in picture.to_dict()["data"] if "text" in trace for text in trace["text"]]


def test_limits_are_printed_and_masked_scores_do_not_raise_them(trace_of):
    trace = trace_of(6, 1, 8, mask=masks.causal(6))
    scores = trace["masked_scores"].sel(batch=0, head=0).numpy()
    limit = signed_limit(scores[np.isfinite(scores)])
    assert f"±{limit:g}".replace("0.", ".") in texts(overview(trace, tokens(6)))


def test_the_hatch_appears_only_with_a_mask(trace_of):
    def hatch(picture):
        return [trace for trace in picture.to_dict()["data"] if "fillpattern" in trace]

    assert not hatch(overview(trace_of(6), tokens(6)))
    masked = overview(trace_of(6, mask=masks.causal(6)), tokens(6))
    assert len(hatch(masked)) == 1
    assert WORDS["masked"] in texts(masked)


def test_no_english_that_is_not_in_words(trace_of):
    """With every word replaced, nothing readable is left but symbols and tokens."""
    chinese = {key: re.sub(r"[A-Za-z…=]+(?![^{]*})", "字", text) for key, text in WORDS.items()}
    picture = overview(
        trace_of(100, 4, 128, mask=masks.causal(100)), ["猫"] * 100, labels=["前"] * 4, caption="看", words=chinese
    )
    seen = texts(picture) + [hover["hovertemplate"] for hover in hovers(picture)]
    seen += picture.to_dict()["layout"]["yaxis"]["ticktext"] + picture.to_dict()["layout"]["xaxis"]["ticktext"]
    allowed = {
        "X",
        "W",
        "Q",
        "K",
        "V",
        "O",
        "A",
        "T",
        "sub",
        "sup",
        "br",
        "b",
        "extra",
        "x",
        "y",
        "z",
        "f",
        "g",
        "customdata",
    }
    assert {word for text in seen for word in re.findall("[A-Za-z]+", text)} <= allowed


def test_tokens_of_a_user_cannot_draw(trace_of):
    nasty = ["<b>x</b>", "$\\alpha$", "", "%{z}", "a" * 99, "&amp;", "\u202eevil", "\ud800", "2020-01-01", "$"]
    picture = overview(trace_of(10, 2, 8), nasty)
    picture.figure()
    pio.to_json(picture, validate=False)
    everything = texts(picture) + picture.to_dict()["layout"]["xaxis"]["ticktext"]
    assert not any("$" in text or "<b>" in text for text in everything)
    for hover in hovers(picture):
        assert "evil" not in hover["hovertemplate"]
        assert hover["hovertemplate"].count("%{z") == 1


def test_row_0_is_at_the_top(trace_of):
    layout = overview(trace_of(), tokens(6)).to_dict()["layout"]
    assert layout["yaxis"]["range"] == [668, 0]
    assert layout["yaxis"]["scaleanchor"] is False


def test_light_and_dark_paint_the_same_levels_in_other_colours(trace_of):
    trace = trace_of(6, 4, 16)
    light, dark = (image(overview(trace, tokens(6), theme=theme)) for theme in ("light", "dark"))
    scales = 1 + SIGNED_LEVELS + WEIGHT_LEVELS
    a, b = np.array(light), np.array(dark)
    matrices = (a > 0) & (a < scales)
    assert (a[matrices] == b[matrices]).all()
    assert light.getpalette() != dark.getpalette()


def test_it_stays_small(trace_of):
    """Random weights are the worst case: noise does not compress."""

    def size(n, h, d_model, **more):
        return len(pio.to_json(overview(trace_of(n, h, d_model), tokens(n), **more), validate=False))

    assert size(10, 4, 64) < 120_000
    assert size(16, 8, 64) < 160_000
    assert size(16, 8, 64, feature_hover=False) < 115_000
    assert size(40, 16, 512) < 330_000
    assert len(overview(trace_of(16, 8, 64), tokens(16)).to_dict()["data"]) <= 13


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"head": 2}, "head=2"), ({"labels": ["a"]}, "labels"), ({"tokens": ["a"]}, "tokens")],
)
def test_wrong_arguments_are_named(trace_of, arguments, message):
    given = {"tokens": tokens(6), **arguments}
    with pytest.raises(ValueError, match=message):
        overview(trace_of(), **given)
    with pytest.raises(KeyError, match="themes are light, dark"):
        overview(trace_of(), tokens(6), theme="sepia")


@pytest.mark.parametrize("h", [8, 12, 16])
@pytest.mark.parametrize("n", [8, 16, 20, 32, 40, 64, 128, 256])
def test_a_mask_is_cleared_without_a_hole_at_any_size(trace_of, n, h):
    picture = overview(trace_of(n, h, 48, mask=torch.ones(n, n).tril().bool()), tokens(n))
    assert np.array(image(picture)).shape == (668, 2260)
