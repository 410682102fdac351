"""The whole calculation on one canvas, from X to the output, with one head in the middle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mha_core.figures.canvas import Canvas
from mha_core.figures.focus import all_heads, focus_panel
from mha_core.figures.geometry import Box, Cells, spans
from mha_core.figures.labels import plain_labels
from mha_core.figures.picture import Picture
from mha_core.figures.raster import SIGNED_LEVELS, WEIGHT_LEVELS
from mha_core.figures.scene import Scene
from mha_core.figures.theme import theme_named
from mha_core.figures.words import WORDS
from mha_core.trace import AttentionTrace

__all__ = ["HEIGHT", "WIDTH", "overview"]

WIDTH, HEIGHT = 1130, 668
_TOPS, _ROOM = (34, 255, 476), 163  # px: where the three rows of matrices begin, and the most they take
_X, _W, _QKV, _OUT = (64, 148), (170, 234), (252, 384), (992, 1124)  # px: left and right
_LEFT, _RIGHT = 416, 956  # of the middle
_STEM = 158


def overview(
    trace: AttentionTrace,
    tokens: Sequence[str],
    *,
    head: int = 0,
    context_tokens: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    caption: str | None = None,
    feature_hover: bool = True,
    words: Mapping[str, str] = WORDS,
    theme: str = "light",
) -> Picture:
    """Every matrix of one calculation at its place, and one head's scores and weights large.

    Args:
        trace: all steps of one sequence (the first of the batch is drawn).
        tokens: n_q of them, as given by a user.
        head: the head in the middle, from 0.
        context_tokens: n_k of them; ``tokens`` when None.
        labels: a short name for each head; None for heads that deserve none.
        caption: one line under the heads; say only what is true of this trace.
        feature_hover: whether X, Q, K, V, Concat and Output answer the pointer as well (about 45 kB and 20 ms
            in the browser for 16 tokens with 64 features); scores and weights always do.
        words: see :data:`mha_core.figures.words.WORDS`.
        theme: "light" or "dark".

    Returns:
        A picture for a chart 1130 px wide (it stretches) and 668 px high.

    Raises:
        ValueError: as many tokens or labels as there are not; a head that there is not.
        KeyError: a theme that there is not; a step that the trace did not keep.
    """
    sizes = trace.sizes
    context = tokens if context_tokens is None else context_tokens
    _check_count("tokens", tokens, "n_q", sizes["n_q"])
    _check_count("context_tokens", context, "n_k", sizes["n_k"])
    if labels is not None:
        _check_count("labels", labels, "h", sizes["h"])
    if not 0 <= head < sizes["h"]:
        raise ValueError(f"head={head} is out of range; choose 0 … {sizes['h'] - 1}")

    queries = plain_labels(tokens)
    keys = queries if context is tokens else plain_labels(context)
    names = None if labels is None else tuple(labels)
    canvas = Canvas(WIDTH, HEIGHT, theme_named(theme))
    scene = Scene(canvas, trace, head, queries, keys, names, words, feature_hover)
    panel = focus_panel(scene, _LEFT, _RIGHT, 2)
    _inputs(scene)
    _projections(scene, panel)
    _results(scene, panel)
    _heads(scene, panel, caption)
    _legend(scene)
    return scene.canvas.picture()


def _check_count(name: str, given: Sequence[str], axis: str, size: int) -> None:
    if len(given) != size:
        raise ValueError(f"{len(given)} {name} for {axis}={size}; give one for each")


def _inputs(scene: Scene) -> None:
    """X at the left, and the context below it when there is one."""
    canvas, theme, cross = scene.canvas, scene.theme, scene.trace.cross
    given = [("X", "X", scene.queries, 0 if cross else 1)] + ([("context", "C", scene.keys, 1)] if cross else [])
    for step, title, tokens, slot in given:
        matrix = scene.step(step)
        cells = scene.matrix(matrix, *_X, _TOPS[slot], _ROOM, tokens=tokens, title=title, colour=theme.X)
        scene.row_labels(_X[0] - 6, cells, tokens, _X[0] - 8)
        below = cells.box.bottom + 13
        canvas.text(_X[1], below, f"{scene.words['features']} →", size=14, colour=theme.soft, anchor="right")
        scene.limit(_X[0] - 6, below, matrix)


def _projections(scene: Scene, panel: Box) -> None:
    """W and Q, K, V, the stem that leads to them, and their ways into the panel."""
    canvas, theme, sizes = scene.canvas, scene.theme, scene.trace.sizes
    middles = []
    given = zip("QKV", (theme.Q, theme.K, theme.V), _TOPS, strict=True)
    for letter, colour, top in given:
        bands, focus = (sizes["h"], scene.head) if letter == "Q" else (sizes["h_kv"], scene.kv_head)
        tokens = scene.queries if letter == "Q" else scene.keys
        source = "C" if scene.trace.cross and letter != "Q" else "X"
        title = f"{letter} = {source} W<sub>{letter}</sub>"
        matrix = scene.step(letter)
        cells = scene.matrix(
            matrix, *_QKV, top, _ROOM, tokens=tokens, title=title, colour=colour, bands=bands, focus=focus
        )
        y = round(cells.box.y)
        middles.append(y)
        if cells.box.height > 140:  # beside it, or below it where W is in the way
            scene.limit(_QKV[0] - 7, cells.box.bottom - 7, matrix)
        else:
            scene.limit(_QKV[1], cells.box.bottom + 31, matrix)
        half = min(32, y - 26)
        around = Box(_W[0], y - half, _W[1], y + half)
        scene.parameter(letter, around, colour, bands=bands, focus=focus)
        canvas.text(
            around.x, around.top - 15, f"W<sub>{letter}</sub>", size=18, colour=colour, bold=True, anchor="center"
        )
        scene.limit(around.x, around.bottom + 13, scene.weight_matrix(letter), "center")
        canvas.arrow((_STEM, y), (_W[0] - 2, y), colour=theme.soft)
        canvas.arrow((_W[1] + 2, y), (_QKV[0] - 3, y), colour=theme.soft)

    q, k, v = middles
    if scene.trace.cross:
        canvas.arrow((_X[1] + 2, q), (_STEM, q), colour=theme.soft, head=False)
    canvas.arrow((_X[1] + 2, k), (_STEM, k), colour=theme.soft, head=False)
    canvas.arrow((_STEM, k if scene.trace.cross else q), (_STEM, v), colour=theme.soft, head=False)
    start, end = _QKV[1] + 4, panel.left - 3
    canvas.arrow((start, q), (end, q), colour=theme.Q, width=3)
    canvas.arrow((start, k), (start + 7, k), (start + 7, q + 24), (end, q + 24), colour=theme.K, width=3)
    channel, joint = panel.bottom + 13, (_RIGHT + _OUT[0]) // 2
    way = ((start, v), (start + 17, v), (start + 17, channel), (joint, channel), (joint, q + 3))
    canvas.arrow(*way, colour=theme.V, width=3)


def _results(scene: Scene, panel: Box) -> None:
    """Concat, W_O and the output, downwards at the right."""
    canvas, theme, words, h = scene.canvas, scene.theme, scene.words, scene.trace.sizes["h"]
    joint = (_RIGHT + _OUT[0]) // 2
    concat, output = scene.step("concat"), scene.step("output")
    cells = scene.matrix(
        concat, *_OUT, _TOPS[0], _ROOM,
        tokens=scene.queries, title=words["concat"], colour=theme.weights, bands=h, focus=scene.head,
    )  # fmt: skip
    y = round(cells.box.y)
    canvas.arrow((panel.right + 3, y), (_OUT[0] - 4, y), colour=theme.weights, width=3)
    canvas.text(
        joint - 1, y - 18, f"×V<sub>{scene.kv_head + 1}</sub>", size=16, colour=theme.V, bold=True, anchor="center"
    )
    scene.limit(_OUT[1], cells.box.bottom + 31, concat)

    x, bottom = round(cells.box.x), cells.box.bottom
    around = Box(_OUT[0], 271, _OUT[1], 399)
    canvas.arrow((x, bottom + 24), (x, around.top - 4), colour=theme.soft)
    canvas.text(around.left - 2, around.top - 16, "W<sub>O</sub>", size=20, colour=theme.output, bold=True)
    matrix = scene.weight_matrix("O")
    shape = f"{matrix.shape[0]}×{matrix.shape[1]}"
    canvas.text(around.right, around.top - 14, shape, size=14, colour=theme.soft, anchor="right", mono=True)
    scene.parameter("O", around, theme.output, bands=h, focus=scene.head, by_rows=True)
    scene.limit(_OUT[1], around.bottom + 13, matrix)
    canvas.arrow((x, around.bottom + 5), (x, _TOPS[2] - 28), colour=theme.soft)
    cells = scene.matrix(
        output, *_OUT, _TOPS[2], _ROOM, tokens=scene.queries, title=words["output"], colour=theme.output
    )
    scene.limit(_OUT[1], cells.box.bottom + 14, output)


def _heads(scene: Scene, panel: Box, caption: str | None) -> None:
    """All heads' weights under the panel, and the caption under them."""
    canvas, theme, sizes = scene.canvas, scene.theme, scene.trace.sizes
    top, bottom = panel.bottom + 50, HEIGHT - (44 if caption else 12)
    canvas.text(_LEFT - 1, top - 14, scene.words["all_heads"], size=20, colour=theme.weights, bold=True)
    shape = f"{sizes['h']}×{sizes['n_q']}×{sizes['n_k']}"
    canvas.text(_RIGHT, top - 13, shape, size=14, colour=theme.soft, anchor="right", mono=True)
    box, (rows, columns) = all_heads(scene, _LEFT, _RIGHT, top, bottom)
    if rows * columns > 1:
        note = scene.words["largest_square"].format(rows=rows, columns=columns)
        canvas.text(_RIGHT - 110, top - 13, note, size=14, colour=theme.soft, anchor="right")
    if caption:
        y = (box.bottom + HEIGHT) / 2
        canvas.text((_LEFT + _RIGHT) / 2, y, caption, size=20, bold=True, anchor="center")


def _legend(scene: Scene) -> None:
    """The scales, at the bottom left; of the hatch and of reduced matrices only when there are such."""
    canvas, theme, words = scene.canvas, scene.theme, scene.words
    bars = [
        ("− 0 +", np.arange(SIGNED_LEVELS)[None] + 1),
        ("0 … 1", np.arange(WEIGHT_LEVELS)[None] + 1 + SIGNED_LEVELS),
    ]
    masked = bool(np.isneginf(scene.step("masked_scores")).any())
    y = HEIGHT - 12.0
    for axis, word in ((0, "largest_rows"), (1, "largest_of")):
        sizes = sorted({size[axis] for size in scene.stripes} - {1})
        if sizes:
            k = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]}–{sizes[-1]}"
            canvas.text(0, y, words[word].format(k=k), size=14, colour=theme.soft)
            y -= 19
    y -= 4
    if masked:
        cells = Cells(spans(2, 86, 1), spans(y - 6, y + 7, 1))
        canvas.masked(np.ones((1, 1), bool), cells)
        canvas.raster.frame(cells.box, theme.hatch, 1)
        canvas.text(94, y, words["masked"], size=14, colour=theme.soft)
        y -= 26
    for text, levels in reversed(bars):
        cells = Cells(spans(2, 86, levels.shape[1]), spans(y - 6, y + 7, 1))
        canvas.raster.frame(cells.box, theme.hatch, 1)
        canvas.raster.cells(levels.astype(np.uint8), cells)
        canvas.text(94, y, text, size=14, colour=theme.soft)
        y -= 26
