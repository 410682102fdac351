"""The pictures "slide" and "believed": bars as high as their numbers, digits that are the output's."""

import re

import numpy as np
import pytest

from mha_core import masks
from mha_core.faithfulness import slide
from mha_core.figures.believed import BELIEVED_WORDS, believed
from mha_core.figures.slide import SLIDE_WORDS, slide_picture
from mha_core.figures.theme import LIGHT, THEMES, rgb
from mha_core.freedom import freedom_by_h
from mha_core.importance import head_ranking, weighed
from tests.figures.test_combine import markers, texts
from tests.figures.test_overview import image, tokens


def here(trace, head=0, query=0, **more):
    n, parts = trace.sizes["n_q"], weighed(trace, head, query)
    return believed(freedom_by_h(trace), parts, head_ranking(trace), tokens(n), head=head, query=query, **more)


def painted(picture, colour, top, bottom, left, right):
    """Where a colour is, a row a pixel and a column half a pixel."""
    dots = np.array(image(picture).convert("RGB"))[top:bottom, 2 * left : 2 * right]
    return (dots == rgb(colour)).all(-1)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("part", [0, 0.01, 0.5, 1])
def test_the_slide_is_a_valid_figure(part, theme):
    for seed in range(3):
        slide_picture(slide(seed), part, theme=theme).figure()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("part", [0, 0.37, 1])
def test_bars_are_as_high_as_the_weights(seed, part):
    case = slide(seed)
    picture, weights, pitch = slide_picture(case, part), case.at(part), 596 / 12
    scale = 170 / max(case.weights.max(), case.other.max())
    for key in range(12):
        colour = LIGHT.weights if key == case.top(part) else LIGHT.weight[1]
        middle = int(44 + (key + 0.5) * pitch)
        high = painted(picture, colour, 56, 226, middle - 2, middle + 2).any(1).sum()
        assert high == pytest.approx(weights[key] * scale, abs=1)


@pytest.mark.parametrize("part", [0, 0.37, 1])
def test_the_digits_are_the_outputs_and_the_same_in_both_columns(part):
    case = slide(2)
    numbers = [text for text in texts(slide_picture(case, part)) if re.fullmatch(r"−?\d\.\d{12}", text)]
    assert [float(text.replace("−", "-")) for text in numbers[::2]] == pytest.approx(case.output(0), abs=6e-13)
    assert [float(text.replace("−", "-")) for text in numbers[1::2]] == pytest.approx(case.output(part), abs=6e-13)
    assert numbers[::2] == numbers[1::2] and len(numbers) == 6


def test_who_is_on_top_is_written():
    case = slide(0)
    first, last = case.top(0) + 1, case.top(1) + 1
    assert f"top key: <b>{first}</b>" in texts(slide_picture(case, 0))
    assert f"top key: <b>{first}</b> → <b>{last}</b>" in texts(slide_picture(case, 1))


SIZES = [(1, 1, 4), (3, 2, 4), (10, 4, 64), (7, 7, 7), (40, 16, 512), (256, 2, 16), (12, 8, 48)]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES)
def test_every_size_is_a_valid_figure(trace_of, size, theme):
    n, h, _ = size
    here(trace_of(*size), h - 1, n - 1, theme=theme).figure()
    here(trace_of(*size, mask=masks.padding([0], n)), theme=theme).figure()


def test_columns_are_pinned_and_free_as_counted(trace_of):
    trace = trace_of(10, 4, 64)
    picture, pitch = here(trace), 288 / 5
    for place, found in enumerate(freedom_by_h(trace).values()):
        middle = int(34 + (place + 0.5) * pitch)
        for colour, keys in ((LIGHT.V, found.rank), (LIGHT.weights, found.directions)):
            high = painted(picture, colour, 84, 246, middle - 1, middle + 1).any(1).sum()
            assert high == pytest.approx(keys * 16.2, abs=keys + 1)  # a line of 1 px between two keys
        assert str(found.directions) in texts(picture)


def test_a_query_has_two_bars_a_key(trace_of):
    trace = trace_of(10, 4, 64)
    picture, found, pitch = here(trace, 2, 5), weighed(trace, 2, 5), 36
    scale = 162 / max(found.weights.max(), found.parts.max()).item()
    for key in range(10):
        middle = 384 + (key + 0.5) * pitch
        for x, colour, values in ((middle - 7, LIGHT.weights, found.weights), (middle + 7, LIGHT.output, found.parts)):
            high = painted(picture, colour, 84, 246, int(x) - 1, int(x) + 1).any(1).sum()
            assert high == pytest.approx(values[key].item() * scale, abs=1)


def test_of_many_keys_the_largest_are_drawn_and_the_others_counted(trace_of):
    picture = here(trace_of(40, 2, 16), 1, 3)
    assert BELIEVED_WORDS["more"].format(count=24) in texts(picture)


def test_a_row_that_may_attend_to_nothing_says_so(trace_of):
    assert BELIEVED_WORDS["nothing"] in texts(here(trace_of(4, 2, 8, mask=masks.padding([0], 4))))


def test_heads_have_their_bars_and_a_click_chooses_them(trace_of):
    trace = trace_of(10, 4, 64)
    picture, ranking = here(trace), head_ranking(trace)
    scale, pitch = 162 / max(1, *ranking.effect), 322 / 4
    for head in range(4):
        middle = 806 + (head + 0.5) * pitch
        for x, colour, values in (
            (middle - 13, LIGHT.weights, ranking.sharpness), (middle + 13, LIGHT.output, ranking.effect)
        ):  # fmt: skip
            high = painted(picture, colour, 84, 246, int(x) - 2, int(x) + 2).any(1).sum()
            assert high == pytest.approx(values[head] * scale, abs=1)
    chosen = {(cell["head"], round(x)) for cell, x, _, value in markers(picture)}
    assert chosen == {(head, round(806 + (head + 0.5) * pitch)) for head in range(4)}


def test_wrong_counts_are_named(trace_of):
    trace = trace_of(4, 2, 8)
    with pytest.raises(ValueError, match="3 tokens for n=4"):
        believed(freedom_by_h(trace), weighed(trace, 0, 0), head_ranking(trace), tokens(3), head=0, query=0)


def test_every_word_is_used(trace_of):
    own = {key: f"«{key}»" for key in (*SLIDE_WORDS, *BELIEVED_WORDS)}
    trace = trace_of(40, 2, 16)
    pictures = [slide_picture(slide(0), part, words=own) for part in (0, 1)]
    pictures += [here(trace, words=own), here(trace_of(4, 2, 8, mask=masks.padding([0], 4)), words=own)]
    said = "".join(str(picture.to_dict()) for picture in pictures)
    assert not [key for key in own if f"«{key}»" not in said]
