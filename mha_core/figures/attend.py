"""One head from scores to what it brings back: four maps, the chosen query's row as bars, one cell by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mha_core.figures.attend_bars import Bars, bars
from mha_core.figures.attend_hand import hand_height, hand_score, hand_value
from mha_core.figures.attend_values import SIDE, Chosen, draw_values
from mha_core.figures.blocks import Blocks, blocks
from mha_core.figures.canvas import Canvas
from mha_core.figures.focus import key_names, room_for_keys, score_limit
from mha_core.figures.geometry import Box, Cells, spans
from mha_core.figures.labels import escape, fit, plain_labels
from mha_core.figures.pick import Pick
from mha_core.figures.picture import Picture
from mha_core.figures.scene import Scene, snap
from mha_core.figures.theme import limit_text, theme_named
from mha_core.trace import AttentionTrace

__all__ = ["ATTEND_WORDS", "attend"]

ATTEND_WORDS: Mapping[str, str] = {
    "key": "key", "query": "query", "row": "row of", "feature": "feature {feature}", "scale": "÷ √{d_k}",
    "mask": "+ mask", "no_mask": "+ mask: none", "softmax": "softmax", "largest": "largest of {rows}×{columns}",
    "hand_score": "By hand: query {query}, key {key}", "hand_value": "By hand: what {query} gets, feature {feature}",
    "more": "+{count} more", "range": "{first} … {last}",
}  # fmt: skip
"""English; numbers count from 1."""

WIDTH = 1130
_LEFTS = (68, 303, 538, 773)  # px
_BARS = 78  # px, the height of the bars and their labels
MOST_CELLS = 98  # a side: 2 px a cell
MOST_PICKED = 2400  # cells of all maps that can be clicked: each costs the browser time


def attend(
    trace: AttentionTrace,
    tokens: Sequence[str],
    *,
    head: int = 0,
    query: int = 0,
    key: int = 0,
    feature: int = 0,
    context_tokens: Sequence[str] | None = None,
    mode: str = "score",
    words: Mapping[str, str] = ATTEND_WORDS,
    theme: str = "light",
) -> Picture:
    """A head's raw scores, scores, masked scores, weights and values, and how one number of them arises.

    Args:
        trace: of one sequence, or with a context.
        tokens: n_q of them, as given by a user.
        head, query, key, feature: the chosen cell, from 0; the feature is one of the head's d_v.
        context_tokens: n_k of them; ``tokens`` when None.
        mode: "score" writes out the query times the key, "value" the weights times one feature of the values.
        words: see :data:`ATTEND_WORDS`.
        theme: "light" or "dark".

    Raises:
        ValueError: as many tokens as there are not; another mode.
        IndexError: a cell that there is not.
    """
    sizes = trace.sizes
    context = tokens if context_tokens is None else context_tokens
    if (len(tokens), len(context)) != (sizes["n_q"], sizes["n_k"]):
        given = f"{len(tokens)} and {len(context)} tokens"
        raise ValueError(f"{given} for n_q={sizes['n_q']}, n_k={sizes['n_k']}; give one for each")
    if mode not in ("score", "value"):
        raise ValueError(f"mode={mode!r}; choose 'score' or 'value'")
    for name, index, axis in (("head", head, "h"), ("query", query, "n_q"), ("key", key, "n_k"),
                              ("feature", feature, "d_v")):  # fmt: skip
        if not 0 <= index < sizes[axis]:
            raise IndexError(f"{name}={index} is out of range; choose 0 … {sizes[axis] - 1}")

    colours = theme_named(theme)
    queries = plain_labels(tokens)
    keys = queries if context is tokens else plain_labels(context)
    probe = Scene(Canvas(1, 1, colours), trace, head, queries, keys, None, words)
    top = 30 + round(room_for_keys(probe, snap(SIDE, min(sizes["n_k"], MOST_CELLS))))
    bars_top = top + SIDE + 12
    hand_top = bars_top + _BARS + 14
    canvas = Canvas(WIDTH, round(hand_top + hand_height()), colours)
    scene = Scene(canvas, trace, head, queries, keys, None, words)
    chosen = Chosen(query, key, feature)
    maps = _maps(scene, chosen, top)
    _bars(scene, chosen, maps, bars_top)
    draw_values(scene, chosen, mode, top, bars_top + _BARS)
    hand = hand_score if mode == "score" else hand_value
    hand(scene, query, key, feature, hand_top)
    return canvas.picture()


def _maps(scene: Scene, chosen: Chosen, top: float) -> list[Cells]:
    """The four squares."""
    canvas, theme, words, head = scene.canvas, scene.theme, scene.words, scene.head
    steps = ("raw_scores", "scores", "masked_scores", "weights")
    drawn = [blocks(scene.step(step, head=head), (MOST_CELLS, MOST_CELLS)) for step in steps]
    masked = np.isneginf(drawn[2].values)
    limits = [score_limit(scene.step(step), head) for step in steps[:2]]
    limits = [limits[0], limits[1], limits[1]]
    n_q, n_k = drawn[0].values.shape
    width, height = snap(SIDE, n_k), snap(SIDE, n_q)
    every = [Cells(spans(x, x + width, n_k), spans(top, top + height, n_q)) for x in _LEFTS]
    index, kv = f"<sub>{head + 1}</sub>", f"<sub>{scene.kv_head + 1}</sub>"
    titles = [
        (f"Q{index}K{kv}<sup>T</sup>", theme.ink),
        (words["scale"].format(d_k=scene.trace.sizes["d_k"]), theme.ink),
        (words["mask"] if scene.trace.mask is not None else words["no_mask"], theme.ink),
        (f"{words['softmax']} = A{index}", theme.weights),
    ]
    notes = [limit_text(limit) for limit in limits] + [f"{len(scene.queries)}×{len(scene.keys)}"]
    gap = 1.0 if min(width / n_k, height / n_q) >= 8 else 0.0
    for place, cells in enumerate(every):
        weights = place == 3
        canvas.raster.fill(cells.box, theme.grid)
        canvas.raster.frame(cells.box, theme.weights if weights else theme.soft, 2.0 if weights else 1.0)
        if weights:
            canvas.weights(drawn[3].values, cells, gap)
        else:
            canvas.signed(drawn[place].values, cells, limits[place], gap)
        if place >= 2:
            canvas.masked(masked, cells)
        key_names(scene, cells, chosen.key)
        canvas.text(cells.box.left - 2, 14, str(place + 1), size=20, colour=theme.soft, bold=True)
        canvas.text(cells.box.left + 16, 14, titles[place][0], size=20, colour=titles[place][1], bold=True)
        canvas.text(cells.box.right, 15, notes[place], size=14, colour=theme.soft, anchor="right", mono=True)
        if place:
            y = round(cells.box.y)
            canvas.arrow((_LEFTS[place - 1] + width + 7, y), (cells.box.left - 7, y), colour=theme.soft)
    scene.row_labels(_LEFTS[0] - 6, every[0], scene.queries, _LEFTS[0] - 8, chosen=chosen.query)
    corner = _LEFTS[0] - 9
    canvas.text(corner, top - 27, f"{words['key']} →", size=14, colour=theme.K, anchor="right")
    canvas.text(corner, top - 9, f"{words['query']} ↓", size=14, colour=theme.Q, anchor="right")
    if drawn[0].size != (1, 1):
        note = words["largest"].format(rows=drawn[0].size[0], columns=drawn[0].size[1])
        canvas.text(_LEFTS[0], top + height + 9, note, size=13, colour=theme.soft)
    _answers(scene, every, drawn)
    for cells in every:
        row, cell = _outlines(cells, drawn[0], chosen)
        canvas.outline(row, theme.ink, 2)
        canvas.outline(cell, theme.ink, 4)
    return every


def _outlines(cells: Cells, drawn: Blocks, chosen: Chosen) -> tuple[Box, Box]:
    """Around the query's row, and around its cell."""
    i = int(np.searchsorted(drawn.row_starts, chosen.query, "right")) - 1
    j = int(np.searchsorted(drawn.column_starts, chosen.key, "right")) - 1
    row = cells.rows(i, len(cells.y.starts))
    return row, row._replace(left=float(cells.x.starts[j]), right=float(cells.x.stops[j]))


def _answers(scene: Scene, every: list[Cells], drawn: list[Blocks]) -> None:
    """Clicks on as many of the maps as have not too many cells, the weights first; hover on all."""
    canvas, words = scene.canvas, scene.words
    at = f"{words['query']} %{{y}} → {words['key']} %{{x}}<br>"
    rows = scene.row_names(scene.queries, drawn[0].row_starts)
    columns = scene.row_names(scene.keys, drawn[0].column_starts)
    many = MOST_PICKED // drawn[0].values.size if drawn[0].size == (1, 1) else 0
    pickable = (3, 0, 2, 1)[:many]
    meaning = Pick("query", "key", (("head", scene.head),))
    for place, cells in enumerate(every):
        form = "%{customdata:.4f}" if place == 3 else "%{customdata:.4g}"
        values = drawn[place].values
        if place in pickable:
            canvas.pick(values, cells, f"{at}<b>{form}</b>", meaning, rows=rows, columns=columns)
        else:
            finite = np.where(np.isneginf(values), np.nan, values)
            template = f"{at}<b>{form.replace('customdata', 'z')}</b>"
            canvas.hover(finite, cells, template, rows=rows, columns=columns)


def _bars(scene: Scene, chosen: Chosen, maps: list[Cells], top: float) -> None:
    """The query's row under each square, on one scale before the softmax."""
    theme, words, canvas = scene.theme, scene.words, scene.canvas
    rows = [
        scene.step(step, head=scene.head, query=chosen.query)
        for step in ("raw_scores", "scores", "masked_scores", "weights")
    ]
    finite = np.concatenate([rows[0], rows[1], [0.0]])
    shared = Bars(float(finite.min()), float(finite.max()), top, top + _BARS)
    name = escape(fit(scene.queries[chosen.query], _LEFTS[0] - 8, 15))
    canvas.text(_LEFTS[0] - 6, shared.zero - 27, words["row"], size=13, colour=theme.soft, anchor="right")
    canvas.text(_LEFTS[0] - 6, shared.zero - 9, name, size=15, bold=True, anchor="right")
    masked = np.isneginf(rows[2])
    for place, (row, cells) in enumerate(zip(rows, maps, strict=True)):
        scale = shared if place < 3 else Bars(0.0, 1.0, top, shared.zero)
        hidden = masked if place >= 2 else np.zeros_like(masked)
        bars(scene, row, hidden, cells.box, scale, chosen.key, weights=place == 3)
