import base64

import numpy as np
import pytest

from mha_core import masks
from mha_core.figures import THEMES, scores_and_weights, weights


def decoded(spec):
    array = np.frombuffer(base64.b64decode(spec["bdata"]), "<" + spec["dtype"])
    return array.reshape([int(size) for size in spec["shape"].split(",")])


def tokens(n):
    return [str(2020 + i) for i in range(n)]


@pytest.mark.parametrize("h", [1, 3, 4, 5, 16])
def test_each_head_is_at_its_place(trace_of, h):
    trace = trace_of(6, h, 15 if h in (3, 5) else 16)
    drawn = weights(trace, tokens(6)).to_dict()["data"][0]
    z, heads = decoded(drawn["z"]), decoded(drawn["customdata"])
    down, across = 7, 7
    for head in range(h):
        row, column = divmod(head, min(h, 4))
        place = (slice(row * down, row * down + 6), slice(column * across, column * across + 6))
        np.testing.assert_array_equal(z[place], trace["weights"].sel(batch=0, head=head).numpy())
        assert (heads[place] == head + 1).all()
    assert np.isfinite(z).sum() == h * 36


def test_masked_cells_are_grey_and_not_numbers(trace_of):
    trace = trace_of(6, 2, 8, mask=masks.causal(6))
    for picture in (weights(trace, tokens(6)), scores_and_weights(trace, tokens(6), head=1)):
        data = picture.to_dict()["data"]
        maps = [trace for trace in data if trace["type"] == "heatmap" and trace.get("showscale") is not False]
        grey = [trace for trace in data if trace.get("showscale") is False]
        assert all(np.isnan(decoded(drawn["z"])[0, 1]) for drawn in maps)
        assert all(decoded(drawn["z"])[0, 1] == 1 and np.isnan(decoded(drawn["z"])[0, 0]) for drawn in grey)
        assert grey


def test_axes_are_numeric_named_and_run_down(trace_of):
    for picture, suffixes in (
        (weights(trace_of(), tokens(6)), ("",)),
        (scores_and_weights(trace_of(), tokens(6)), ("", "2")),
    ):
        layout = picture.to_dict()["layout"]
        for suffix in suffixes:
            x, y = layout[f"xaxis{suffix}"], layout[f"yaxis{suffix}"]
            assert y["range"][0] > y["range"][1]  # row 0 at the top
            assert y["ticktext"][:6] == tokens(6)
            assert decoded(y["tickvals"])[:6].tolist() == list(range(6))
            assert "key" in x["title"]["text"]
            assert "query" in y["title"]["text"]


def test_weights_have_one_scale_and_scores_their_own_limit(trace_of):
    trace = trace_of()
    scores, shown = scores_and_weights(trace, tokens(6)).to_dict()["data"][:2]
    assert (shown["zmin"], shown["zmax"]) == (0.0, 1.0)
    assert scores["zmin"] == -scores["zmax"]
    np.testing.assert_array_equal(decoded(scores["z"]), trace["masked_scores"].sel(batch=0, head=0).numpy())


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("n", "h", "n_k"), [(1, 1, None), (10, 4, None), (3, 2, 8), (100, 5, None)])
def test_plotly_accepts_them(trace_of, n, h, n_k, theme):
    context = None if n_k is None else tokens(n_k)
    trace = trace_of(n, h, 20, n_k=n_k, mask=masks.causal(n, n_k))
    weights(trace, tokens(n), context_tokens=context, labels=["<i>"] * h, theme=theme).figure()
    scores_and_weights(trace, tokens(n), context_tokens=context, theme=theme).figure()


def test_wrong_arguments_are_named(trace_of):
    with pytest.raises(ValueError, match="tokens"):
        weights(trace_of(), ["a"])
    with pytest.raises(ValueError, match="head=9"):
        scores_and_weights(trace_of(), tokens(6), head=9)
