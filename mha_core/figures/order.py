"""The same tokens in another order: two sentences, their outputs, and what is left once each output is put back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from mha_core.figures.blocks import Blocks, blocks
from mha_core.figures.canvas import Canvas
from mha_core.figures.deviation import deviation_text
from mha_core.figures.geometry import Array, Box, Cells, spans
from mha_core.figures.labels import escape, fit, plain_labels
from mha_core.figures.order_cases import all_cases, both_maps, nought, ways
from mha_core.figures.output_cell import row_of
from mha_core.figures.pick import Pick
from mha_core.figures.picture import Picture
from mha_core.figures.scene import Scene, printed_names, row_height
from mha_core.figures.theme import limit_text, signed_limit, theme_named
from mha_core.order import Reordered
from mha_core.trace import AttentionTrace

__all__ = ["ORDER_WORDS", "order"]

WIDTH, HEIGHT = 1130, 492

ORDER_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "before": "in the first order",
        "after": "in another order",
        "back": "put back, minus the first",
        "largest": "largest difference {size}",
        "single": "float64; in float32 {size}",
        "none": "no positions, no mask",
        "positions": "positions",
        "causal": "causal mask alone",
        "yours": "as in the sidebar",
        "head": "head {head}",
        "query": "query",
        "key": "key",
        "weight": "weight",
        "largest_here": "the largest here:",
        "range": "{first} … {last}",
        "one_scale": "all three in one scale, {limit}",
    }
)
"""English; {head} counts from 1, {size} and {limit} are numbers."""

_TOP, _ROOM = 58, 250  # px: where the outputs begin, and how high they may be
_BEFORE, _AFTER, _BACK = (98, 288), (524, 714), (846, 1036)  # px: left and right of the three matrices
_TALLEST = 66.0  # px a row
_NAME = 14  # px from a matrix to the names beside it
_FORMULAS = {"before": "Y = MHA(X)", "after": "Y′ = MHA(P X)", "back": "P<sup>T</sup> Y′ − Y"}


@dataclass(frozen=True)
class _Rows:
    """Outputs on the canvas, a token a row."""

    cells: Cells
    drawn: Blocks

    @property
    def box(self) -> Box:
        return self.cells.box

    def row(self, index: int) -> Box:
        """Around the row of a token, or of a place."""
        return row_of(self.cells, self.drawn, index)


def order(
    trace: AttentionTrace,
    tokens: Sequence[str],
    cases: Mapping[str, Reordered],
    *,
    case: str = "none",
    head: int = 0,
    token: int = 0,
    covered: bool = False,
    words: Mapping[str, str] = ORDER_WORDS,
    theme: str = "light",
) -> Picture:
    """Two sentences of the same tokens, their outputs, and the difference once each output is back with its token.

    Args:
        trace: the calculation.
        tokens: n of them, as given by a user.
        cases: of :func:`mha_core.order.order_cases`.
        case: the one that is drawn large; the others stand below it, small.
        head: whose weights the cases have; they are drawn before and after.
        token: the one that is outlined, and whose way is a thick line.
        covered: whether the new sentence's outputs are hidden, for those who have yet to guess.
        words: see :data:`ORDER_WORDS`.
        theme: "light" or "dark".

    Returns:
        A picture for a chart 1130 px wide (it stretches).

    Raises:
        ValueError: as many tokens as there are not.
        KeyError: a case that there is not.
    """
    if len(tokens) != trace.sizes["n_q"]:
        raise ValueError(f"{len(tokens)} tokens for n={trace.sizes['n_q']}; give one for each")
    if case not in cases:
        raise KeyError(f"there is no case {case!r}; there are {', '.join(cases)}")
    names, shown = plain_labels(tokens), cases[case]
    canvas = Canvas(WIDTH, HEIGHT, theme_named(theme))
    scene = Scene(canvas, trace, head, names, names, None, words, feature_hover=False)
    limit = signed_limit(shown.before.numpy())
    moved, places = tuple(names[i] for i in shown.order), np.array(shown.order)
    here = np.arange(len(names))

    before = _outputs(scene, shown.before.numpy(), _BEFORE, limit, names, here)
    after = _outputs(scene, None if covered else shown.after.numpy(), _AFTER, limit, moved, places, like=before)
    left = None if covered else shown.difference.numpy()
    back = _outputs(scene, left, _BACK, limit, names, here, like=before, nothing=shown.follows)
    for rows, key in ((before, "before"), (after, "after"), (back, "back")):
        _title(scene, rows.box, _FORMULAS[key], words[key])
    ways(scene, shown, (before.box, after.box, back.box), token)
    scene.row_labels(_BEFORE[0] - _NAME, before.cells, names, 76, chosen=token)
    scene.row_labels(_AFTER[0] - _NAME, after.cells, moved, 76, chosen=shown.place[token])
    _names_at_right(scene, back.box, names, token)
    if shown.placed:
        _places(scene, before.box, len(names))
    for rows, row in ((before, token), (after, shown.place[token]), (back, token)):
        canvas.outline(rows.row(row), canvas.theme.ink, 2)

    foot = before.box.bottom
    note = words["one_scale"].format(limit=limit_text(limit))
    canvas.text(_BEFORE[0], foot + 15, note, size=13, colour=canvas.theme.soft)
    if not covered:
        text = words["largest"].format(size=f"<b>{deviation_text(shown.largest)}</b>")
        canvas.text(_BACK[1] + 1, foot + 18, text, size=18, anchor="right")
        single = words["single"].format(size=deviation_text(shown.single))
        canvas.text(_BACK[1] + 1, foot + 38, single, size=13, colour=canvas.theme.soft, anchor="right")
    both_maps(scene, shown, covered)
    all_cases(scene, cases, case, covered)
    return canvas.picture()


def _outputs(
    scene: Scene, matrix: Array | None, x: tuple[int, int], limit: float, names: Sequence[str], meant: Array,
    *, like: _Rows | None = None, nothing: bool = False,
) -> _Rows:  # fmt: skip
    """Outputs, a row a token, each row choosing the token that ``meant`` says; None: hidden, as large as ``like``.

    ``nothing`` is for numbers that are rounding errors of 0.
    """
    canvas, theme = scene.canvas, scene.theme
    if matrix is None:
        assert like is not None
        y = like.cells.y
        hidden = Cells(spans(x[0], x[1], 1), y)
        canvas.masked(np.ones((len(y.starts), 1), bool), hidden)
        canvas.raster.frame(hidden.box, theme.output, 2)
        canvas.text(hidden.box.x, hidden.box.y, "?", size=64, bold=True, anchor="center")
        return _Rows(hidden, like.drawn)
    drawn = blocks(matrix, (64, 64))
    rows, columns = drawn.values.shape
    height = min(_TALLEST, row_height(rows, _ROOM) if rows > 6 else _ROOM // rows)
    cells = Cells(spans(x[0], x[1], columns), spans(_TOP, _TOP + rows * height, rows))
    canvas.raster.frame(cells.box, theme.output, 2)
    if nothing:
        nought(scene, cells.box, 44)
    else:
        canvas.signed(drawn.values, cells, limit)
    _choices(scene, matrix, cells.box, names, meant)
    return _Rows(cells, drawn)


def _choices(scene: Scene, matrix: Array, box: Box, names: Sequence[str], meant: Array) -> None:
    """A click on a row chooses its token. Few markers a row will do: each costs the browser time."""
    rows = min(len(matrix), 60)
    coarse = blocks(matrix, (rows, max(1, 240 // rows)))
    down, across = coarse.values.shape
    cells = Cells(spans(box.left, box.right, across), spans(box.top, box.bottom, down))
    meaning = Pick("query", "", at=(meant[coarse.rows], coarse.columns))
    largest = "" if coarse.size == (1, 1) else f"{scene.words['largest_here']} "
    template = f"%{{y}}<br>{largest}<b>%{{customdata:.4g}}</b>"
    scene.canvas.pick(coarse.values, cells, template, meaning, rows=scene.row_names(names, coarse.row_starts))


def _title(scene: Scene, box: Box, formula: str, label: str) -> None:
    scene.canvas.text(box.left - 2, 14, label, size=16, colour=scene.theme.soft)
    scene.canvas.text(box.left - 2, 38, formula, size=20, colour=scene.theme.output, bold=True)


def _names_at_right(scene: Scene, box: Box, names: Sequence[str], token: int) -> None:
    pitch = box.height / len(names)
    size = min(15.0, max(11.0, 0.92 * pitch))
    for i in printed_names(len(names), 1 if pitch >= 9 else int(-(-11 // pitch)), token):
        y = box.top + (i + 0.5) * pitch
        scene.canvas.text(box.right + _NAME, y, escape(fit(names[i], 76, size)), size=size, bold=i == token)


def _places(scene: Scene, box: Box, n: int) -> None:
    """The places, which stay where they are, at the left of both sentences."""
    pitch = box.height / n
    for i in printed_names(n, 1 if pitch >= 14 else int(-(-15 // pitch))):
        for x in (2, _AFTER[0] - 104):
            text = f"p<sub>{i + 1}</sub>"
            scene.canvas.text(x, box.top + (i + 0.5) * pitch, text, size=13, colour=scene.theme.X, bold=True)
