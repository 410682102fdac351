"""Pictures of the experiments: what is painted and written is what was computed."""

import re

import numpy as np
import pytest

from mha_core import masks
from mha_core.figures import THEMES, WORDS
from mha_core.figures.project_lab import LAB_WORDS, Panel, moved_heads, panels, token_sources
from mha_core.figures.raster import signed_levels, weight_levels
from mha_core.figures.theme import signed_limit
from mha_core.splits import view_without_transpose
from mha_core.what_if import nudged
from tests.figures.test_overview import decoded, hovers, middles, texts, tokens
from tests.figures.test_project import painted


@pytest.mark.parametrize("mask", [None, masks.causal(9)])
def test_maps_are_painted_as_given_and_answer_the_pointer(trace_of, mask):
    trace = trace_of(9, 2, 8, mask=mask)
    scores, weights = (trace[step].sel(batch=0, head=1).numpy() for step in ("scores", "weights"))
    picture = panels(trace, tokens(9), [Panel("a", "1", scores, "scores"), Panel("b", "2", weights)])
    dots = painted(picture)
    seen = hovers(picture)
    assert len(seen) == 2
    for hover, matrix, levels in zip(
        seen, (scores, weights), (signed_levels(scores, signed_limit(scores)), weight_levels(weights)), strict=True
    ):
        np.testing.assert_array_equal(decoded(hover["z"]), matrix)
        x, y = middles(hover, "x"), middles(hover, "y")
        np.testing.assert_array_equal(dots[y.astype(int)[:, None], (2 * x).astype(int)], levels)


def test_equal_maps_are_painted_equal(trace_of):
    trace = trace_of(12, 2, 8)
    weights = trace["weights"].sel(batch=0, head=0).numpy()
    picture = panels(trace, tokens(12), [Panel("", "", weights)] * 3)
    dots = painted(picture)
    first, *others = (
        dots[middles(hover, "y").astype(int)[:, None], (2 * middles(hover, "x")).astype(int)]
        for hover in hovers(picture)
    )
    for other in others:
        np.testing.assert_array_equal(first, other)


def test_heads_that_do_not_move_are_written_0(trace_of):
    found = nudged(trace_of(6, 8, 64), feature=63)
    written = [text for text in texts(moved_heads(found)) if re.fullmatch(r"\d+|<1|∞", text)]
    assert len(written) == 2 * (24 + 8)
    left, right = written[:24], written[32:56]
    assert "0" not in left
    assert right.count("0") == 21
    assert [right[row * 8 + 7] != "0" for row in range(3)] == [True] * 3


@pytest.mark.parametrize(("n", "h", "d_model"), [(6, 4, 16), (10, 4, 64), (3, 2, 4)])
def test_cells_have_the_number_of_their_token(trace_of, n, h, d_model):
    """LESSONS 4: n = 6, d = 16, h = 4: tokens 1–6 against 1, 1, 1, 1, 2, 2."""
    trace = trace_of(n, h, d_model)
    split = view_without_transpose(trace)
    picture = token_sources(trace, split, tokens(n))
    written = [text for text in texts(picture) if text.isdigit()]
    right, wrong = written[: n * h], written[n * h :]
    assert right == [str(i + 1) for i in range(n)] * h
    assert wrong == [str(row // h + 1) for row in range(n * h)]
    if (n, h) == (6, 4):
        assert wrong[:6] == ["1", "1", "1", "1", "2", "2"]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("n", "h", "d_model"), [(1, 1, 4), (3, 2, 4), (40, 16, 512), (256, 8, 64), (7, 7, 7)])
def test_every_setting_gives_figures_that_plotly_accepts(trace_of, n, h, d_model, theme):
    trace = trace_of(n, h, d_model)
    moved_heads(nudged(trace, d_model - 1), theme=theme).figure()
    token_sources(trace, view_without_transpose(trace), tokens(n), theme=theme).figure()
    weights = trace["weights"].sel(batch=0, head=0).numpy()
    panels(trace, tokens(n), [Panel("a", "b", weights)] * 4, theme=theme).figure()


def test_no_english_that_is_not_in_words(trace_of):
    chinese = {key: re.sub(r"[A-Za-z]+(?![^{<]*[}>])", "字", text) for key, text in {**WORDS, **LAB_WORDS}.items()}
    trace = trace_of(6, 2, 8)
    pictures = (
        moved_heads(nudged(trace, 0), words=chinese),
        token_sources(trace, view_without_transpose(trace), ["猫"] * 6, words=chinese),
    )
    seen = [re.sub("<[^>]*>", "", text) for picture in pictures for text in texts(picture)]
    assert {word for text in seen for word in re.findall("[A-Za-z]+", text)} <= {"Q", "K", "V"}
