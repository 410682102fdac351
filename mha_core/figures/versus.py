"""One head against several on the same tokens: why there is more than one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mha_core.figures.blocks import blocks
from mha_core.figures.canvas import Canvas
from mha_core.figures.focus import MOST_CELLS, all_heads, key_names
from mha_core.figures.geometry import Cells, spans
from mha_core.figures.labels import plain_labels
from mha_core.figures.picture import Picture
from mha_core.figures.scene import Scene, snap
from mha_core.figures.theme import theme_named
from mha_core.figures.words import WORDS
from mha_core.trace import AttentionTrace

__all__ = ["versus"]

WIDTH, HEIGHT = 1130, 560
_MAP, _TOP = 360, 130  # px: the side of the one head's map, and where it begins
_LEFT, _RIGHT = 78, 520  # px: where the one head's map begins, and the several heads' maps


def versus(
    one: AttentionTrace,
    many: AttentionTrace,
    tokens: Sequence[str],
    *,
    labels: Sequence[str] | None = None,
    captions: tuple[str, str] | None = None,
    words: Mapping[str, str] = WORDS,
    theme: str = "light",
) -> Picture:
    """The weights of a single wide head, large, beside those of several narrow ones.

    Args:
        one: a trace with h = 1.
        many: a trace of the same tokens and d_model with more heads.
        tokens: n of them.
        labels: a short name for each of the several heads.
        captions: a line under either side; say only what is true of these traces.
        words: see :data:`mha_core.figures.words.WORDS`.
        theme: "light" or "dark".

    Raises:
        ValueError: ``one`` has more than one head; the traces differ in n.
    """
    if one.sizes["h"] != 1:
        raise ValueError(f"one.sizes['h'] is {one.sizes['h']}; the single head's trace must have h=1")
    if not one.sizes["n_k"] == many.sizes["n_k"] == len(tokens):
        sizes = one.sizes["n_k"], many.sizes["n_k"]
        raise ValueError(f"{len(tokens)} tokens for traces of n={sizes}; give two traces of the same tokens")
    names = plain_labels(tokens)
    canvas = Canvas(WIDTH, HEIGHT, theme_named(theme))
    single = Scene(canvas, one, 0, names, names, None, words)
    several = Scene(canvas, many, -1, names, names, None if labels is None else tuple(labels), words)

    _title(single, _LEFT, _LEFT + _MAP)
    bottom = _one_map(single)
    _title(several, _RIGHT, WIDTH - 2)
    all_heads(several, _RIGHT, WIDTH - 2, 44, bottom)
    if captions is not None:
        for x, caption in zip((_LEFT, _RIGHT), captions, strict=True):
            canvas.text(x, HEIGHT - 34, caption, size=20, bold=True)
    return canvas.picture()


def _title(scene: Scene, left: float, right: float) -> None:
    """ "4 heads" and the shape of one."""
    canvas, sizes, words = scene.canvas, scene.trace.sizes, scene.words
    title = words["one_head"] if sizes["h"] == 1 else words["several_heads"].format(h=sizes["h"])
    canvas.text(left - 1, 18, title, size=21, bold=True, colour=scene.theme.weights)
    note = f"d_k = {sizes['d_model']} ÷ {sizes['h']} = {sizes['d_k']}"
    canvas.text(right, 18, note, size=15, colour=scene.theme.soft, anchor="right", mono=True)


def _one_map(scene: Scene) -> float:
    """The single head's weights with the tokens on both axes; where it ends."""
    canvas, theme, words = scene.canvas, scene.theme, scene.words
    drawn = blocks(scene.step("weights", head=0), (MOST_CELLS, MOST_CELLS))
    masked = np.isneginf(blocks(scene.step("masked_scores", head=0), (MOST_CELLS, MOST_CELLS)).values)
    n_q, n_k = drawn.values.shape
    width, height = snap(_MAP, n_k), snap(_MAP, n_q)
    cells = Cells(spans(_LEFT, _LEFT + width, n_k), spans(_TOP, _TOP + height, n_q))
    canvas.raster.fill(cells.box, theme.grid)
    canvas.raster.frame(cells.box, theme.weights, 2.5)
    canvas.weights(drawn.values, cells, 1.0 if width / n_k >= 8 else 0.0)
    canvas.masked(masked, cells)
    key_names(scene, cells)
    scene.row_labels(_LEFT - 6, cells, scene.queries, _LEFT - 8)
    corner = _LEFT - 9
    canvas.text(corner, _TOP - 27, f"{words['key']} →", size=14, colour=theme.K, anchor="right")
    canvas.text(corner, _TOP - 9, f"{words['query']} ↓", size=14, colour=theme.Q, anchor="right")
    rows, columns = scene.row_names(scene.queries, drawn.row_starts), scene.row_names(scene.keys, drawn.column_starts)
    template = f"{words['query']} %{{y}} → {words['key']} %{{x}}<br>{words['weight']} <b>%{{z:.4f}}</b>"
    canvas.hover(drawn.values, cells, template, rows=rows, columns=columns)
    return cells.box.bottom
