"""X × W = Q (or K, or V), the split into heads below it, and one number by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from mha_core.figures.canvas import Canvas
from mha_core.figures.geometry import Cells, spans
from mha_core.figures.labels import plain_labels
from mha_core.figures.pick import Pick
from mha_core.figures.picture import Picture
from mha_core.figures.placed import Chosen, Placed, band_numbers, bands_of, colour_of, features, frames, headline, paint
from mha_core.figures.project_split import ALONE_TOP, alone, apart, by_hand
from mha_core.figures.scene import Scene, band_gap
from mha_core.figures.theme import signed_limit, theme_named
from mha_core.figures.words import WORDS
from mha_core.trace import AttentionTrace

__all__ = ["PROJECT_WORDS", "project"]

WIDTH, HEIGHT = 1130, 668
_X, _W, _OUT = (66, 296), (352, 606), (672, 1126)  # px: left and right
_TOP, _ROOM = 32, 254
_MOST_MARKERS = 2600  # cells that can be clicked; each costs the browser some microseconds

PROJECT_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "place": "head {head}, feature {feature}",
        "by_hand": "By hand: {letter} of {token}, {place}",
        "alone": "Head {head} alone: all of X, its own {d_k} columns of W",
        "same": "= its band above",
        "difference": "largest difference {value}",
        "cut": "The same numbers as (h, n, d<sub>k</sub>)",
        "choose_head": "choose head %{{customdata}}",
        "more": "+{count} more",
    }
)
"""English; {head}, {feature} count from 1, {token} is a user's text, {value} a number."""


def project(
    trace: AttentionTrace,
    tokens: Sequence[str],
    *,
    which: str = "Q",
    head: int = 0,
    query: int = 0,
    feature: int = 0,
    words: Mapping[str, str] = WORDS,
    theme: str = "light",
) -> Picture:
    """One projection of X, what a head owns of it, and the arithmetic of one of its numbers.

    Args:
        trace: all steps of one sequence of self-attention (the first of the batch is drawn).
        tokens: n of them, as given by a user.
        which: "Q", "K" or "V".
        head, query, feature: the chosen cell, from 0; the feature counts within the head.
        words: overrides of :data:`mha_core.figures.words.WORDS` and :data:`PROJECT_WORDS`.
        theme: "light" or "dark".

    Returns:
        A picture for a chart 1130 px wide (it stretches) and 668 px high. A click on Q chooses head, token and
        feature, one on X the token, one on W head and feature, one on a head below that head.

    Raises:
        KeyError: another letter; a theme that there is not.
        IndexError: a cell that there is not.
    """
    if which not in ("Q", "K", "V"):
        raise KeyError(f"there is no projection {which!r}; choose Q, K or V")
    canvas = Canvas(WIDTH, HEIGHT, theme_named(theme))
    names = plain_labels(tokens)
    scene = Scene(canvas, trace, head, names, names, None, {**WORDS, **PROJECT_WORDS, **words})
    cell = Chosen(which, head, query, feature)
    trace[f"{which}_heads"].sel(batch=0, head=head, feature=feature)  # names an index out of range
    _product(scene, cell)
    x = round((_OUT[0] + _OUT[1]) / 2)  # from Q to the heads below it
    canvas.arrow((x, _TOP + _ROOM + 22), (x, ALONE_TOP - 27), colour=canvas.theme.soft)
    alone(scene, cell)
    apart(scene, cell)
    by_hand(scene, cell)
    return canvas.picture()


def _product(scene: Scene, cell: Chosen) -> None:
    """The upper half: X × W = Q, with what takes part in the chosen cell outlined."""
    canvas, theme, words, which = scene.canvas, scene.theme, scene.words, cell.which
    colour = colour_of(scene, which)
    X, W, out = scene.step("X"), scene.weight_matrix(which), scene.step(which)
    d_k, bands = scene.trace[f"{which}_heads"].shape[-1], scene.trace[f"{which}_heads"].shape[1]
    band = cell.head * bands // scene.trace.sizes["h"]
    column = band * d_k + cell.feature
    gap = band_gap(bands)

    left = paint(scene, X, *_X, _TOP, _ROOM)
    weight = paint(scene, W, *_W, _TOP, _ROOM, bands=bands, gap=min(gap, 4), square=True)
    result = paint(scene, out, *_OUT, _TOP, _ROOM, bands=bands, gap=gap)
    frames(scene, left.cells, theme.X, 1)
    frames(scene, weight.cells, colour, bands)
    frames(scene, result.cells, colour, bands)
    name = f"{which} = X W<sub>{which}</sub>"
    for placed, text, ink, matrix in (
        (left, "X", theme.X, X), (weight, f"W<sub>{which}</sub>", colour, W), (result, name, colour, out),
    ):  # fmt: skip
        headline(scene, placed.cells.box, text, ink, matrix.shape, signed_limit(matrix))
    y = left.cells.box.y
    canvas.text((_X[1] + _W[0]) / 2, y, "×", size=30, bold=True, anchor="center")
    canvas.text((_W[1] + _OUT[0]) / 2, y, "=", size=30, bold=True, anchor="center")
    scene.row_labels(_X[0] - 6, left.cells, scene.queries, _X[0] - 8, chosen=cell.query)
    below = weight.cells.box.bottom + 14
    band_numbers(scene, weight.cells, bands, band, below)
    band_numbers(scene, result.cells, bands, band, result.cells.box.bottom + 14)
    canvas.text(left.cells.box.left, left.cells.box.bottom + 14, f"{words['features']} →", size=14, colour=theme.soft)
    _reduced(scene, left, result)

    if bands > 1:
        canvas.outline(weight.cells.columns(band, bands), theme.ink, 2)
        canvas.outline(result.cells.columns(band, bands), theme.ink, 2)
    canvas.outline(left.row(cell.query), theme.ink, 2)
    canvas.outline(weight.column(column), theme.ink, 2)
    canvas.outline(result.row(cell.query), theme.soft, 1)
    canvas.outline(result.cell(cell.query, column), theme.ink, 4)
    _clicks(scene, cell, left, weight, result, bands)


def _reduced(scene: Scene, left: Placed, result: Placed) -> None:
    """What a cell of a reduced matrix is: of its columns under X, of its rows under Q."""
    rows, columns = (max(left.drawn.size[axis], result.drawn.size[axis]) for axis in (0, 1))
    soft, y = scene.theme.soft, left.cells.box.bottom + 31
    if columns > 1:
        scene.canvas.text(_X[0], y, scene.words["largest_of"].format(k=columns), size=13, colour=soft)
    if rows > 1:
        text = scene.words["largest_rows"].format(k=rows)
        scene.canvas.text(_OUT[1], y, text, size=13, colour=soft, anchor="right")


def _clicks(scene: Scene, cell: Chosen, left: Placed, weight: Placed, result: Placed, bands: int) -> None:
    """What can be clicked, and answers the pointer. A block means the number that it shows."""
    words, which, group = scene.words, cell.which, scene.trace.sizes["h"] // bands
    rows = scene.row_names(scene.queries, left.drawn.row_starts)
    if result.drawn.values.size <= _MOST_MARKERS:
        template = f"X, %{{y}}, {words['feature']} %{{x}}<br><b>%{{customdata:.4g}}</b>"
        meaning = Pick("query", "", at=(left.drawn.rows, left.drawn.columns))
        columns = features(scene, left.drawn.column_starts)
        scene.canvas.pick(left.drawn.values, left.cells, template, meaning, rows=rows, columns=columns)
        template = f"{which}, %{{y}}, %{{x}}<br><b>%{{customdata:.4g}}</b>"
        for band in bands_of(scene, result, bands):
            meaning = Pick("query", "feature", (("head", band.index * group),), at=(band.rows, band.features))
            scene.canvas.pick(band.values, band.cells, template, meaning, rows=rows, columns=band.names)
    template = f"W<sub>{which}</sub>, %{{x}}"
    for band in bands_of(scene, weight, bands):
        # a marker for every cell would be thousands: a few in each column choose the same
        box, few = band.cells.box, min(8, len(band.values))
        cells = Cells(band.cells.x, spans(box.top, box.bottom, few))
        meaning = Pick("", "feature", (("head", band.index * group),), at=(band.rows, band.starts))
        scene.canvas.pick(band.values[:few], cells, template, meaning, columns=band.names)
