"""The middle of the overview: one head's scores and weights large, all heads' weights below."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mha_core.figures.blocks import blocks
from mha_core.figures.geometry import Box, Cells, Spans, spans
from mha_core.figures.labels import escape, fit, text_width
from mha_core.figures.scene import Scene, printed_names, snap
from mha_core.figures.theme import limit_text, signed_limit

__all__ = ["MOST_CELLS", "all_heads", "focus_panel", "key_names", "room_for_keys", "score_limit"]

Array = np.ndarray[Any, Any]

_MAP = 200  # px, the side of the two large maps
MOST_CELLS = 128  # a side
_NAMES = 76  # px for the keys' names above the maps
_SMALLEST_HOVER = 4  # px a cell


def score_limit(masked_scores: Array, head: int) -> float:
    """The limit of a head's colours: its own largest score, but at least a fifth of the largest of all heads.

    So that a head whose scores are all nearly 0 looks pale beside its sharp neighbours.

    Args:
        masked_scores: (h, n_q, n_k).
    """
    return max(signed_limit(masked_scores[head]), signed_limit(masked_scores / 5))


def focus_panel(scene: Scene, left: float, right: float, top: float) -> Box:
    """The focus head's scores and weights side by side in a tinted panel; where the panel is."""
    canvas, theme, words, head = scene.canvas, scene.theme, scene.words, scene.head
    all_scores = scene.step("masked_scores")  # (h, n_q, n_k)
    scores = blocks(all_scores[head], (MOST_CELLS, MOST_CELLS))
    weights = blocks(scene.step("weights", head=head), (MOST_CELLS, MOST_CELLS))
    n_q, n_k = scores.values.shape
    masked = np.isneginf(scores.values)
    limit = score_limit(all_scores, head)

    width, height = snap(_MAP, n_k), snap(_MAP, n_q)
    map_top = top + 62 + room_for_keys(scene, width)
    panel = Box(left, top, right, map_top + height + 11)
    canvas.raster.fill(panel, theme.tint)
    canvas.raster.frame(panel, theme.ink, 2)
    canvas.text(left + 9, top + 19, scene.head_name(head), size=21, bold=True)
    if max(scores.size) > 1:
        note = words["largest_square"].format(rows=scores.size[0], columns=scores.size[1])
        canvas.text(right - 8, top + 20, note, size=14, colour=theme.soft, anchor="right")

    maps = [
        Cells(spans(x, x + width, n_k), spans(map_top, map_top + height, n_q))
        for x in (left + 72, right - 8 - width)
    ]  # fmt: skip
    gap = 1.0 if min(width / n_k, height / n_q) >= 8 else 0.0
    for cells, line, colour in zip(maps, (1.0, 2.5), (theme.soft, theme.weights), strict=True):
        canvas.raster.fill(cells.box, theme.grid)
        canvas.raster.frame(cells.box, colour, line)
        key_names(scene, cells)
    canvas.signed(scores.values, maps[0], limit, gap)
    canvas.weights(weights.values, maps[1], gap)
    for cells in maps:
        canvas.masked(masked, cells)
    scene.row_labels(maps[0].box.left - 5, maps[0], scene.queries, 64)

    index = f"<sub>{head + 1}</sub>"
    product = f"Q{index}K<sub>{scene.kv_head + 1}</sub><sup>T</sup>{_scale(scene)}"
    titles = ((f"{words['scores']}  {product}", theme.ink), (f"{words['weights']} A{index}", theme.weights))
    notes = (limit_text(limit), f"{len(scene.queries)}×{len(scene.keys)}")
    for cells, (title, colour), note in zip(maps, titles, notes, strict=True):
        canvas.text(cells.box.left - 1, top + 48, title, size=18, colour=colour, bold=True)
        canvas.text(cells.box.right, top + 49, note, size=14, colour=theme.soft, anchor="right", mono=True)
    corner = maps[0].box.left - 9
    canvas.text(corner, map_top - 27, f"{words['key']} →", size=14, colour=theme.K, anchor="right")
    canvas.text(corner, map_top - 9, f"{words['query']} ↓", size=14, colour=theme.Q, anchor="right")
    between = (maps[0].box.right + maps[1].box.left) / 2
    canvas.text(between, maps[0].box.y - 17, words["softmax"], size=15, anchor="center")
    canvas.arrow((maps[0].box.right + 5, maps[0].box.y), (maps[1].box.left - 5, maps[0].box.y), colour=theme.ink)

    rows, columns = scene.row_names(scene.queries, scores.row_starts), scene.row_names(scene.keys, scores.column_starts)
    at = f"{words['query']} %{{y}} → {words['key']} %{{x}}<br>"
    finite = np.where(masked, np.nan, scores.values)
    canvas.hover(finite, maps[0], f"{at}{words['score']} <b>%{{z:.4g}}</b>", rows=rows, columns=columns)
    canvas.hover(weights.values, maps[1], f"{at}{words['weight']} <b>%{{z:.4f}}</b>", rows=rows, columns=columns)
    return panel


def all_heads(scene: Scene, left: float, right: float, top: float, bottom: float) -> tuple[Box, tuple[int, int]]:
    """Every head's weights as a small map in the largest squares that fit; the box they fill, and the block size."""
    canvas, theme = scene.canvas, scene.theme
    h, n_q, n_k = (scene.trace.sizes[size] for size in ("h", "n_q", "n_k"))
    side, columns = _largest_squares(h, right - left, bottom - top)
    width, height = snap(side, n_k), snap(side, n_q)
    pitch = min((right - left - width) / max(1, columns - 1), width + 60)
    most = int(side / 1.5)
    all_scores, all_weights = scene.step("masked_scores"), scene.step("weights")
    small = n_q <= most and n_k <= most
    hovered = np.full((-(-h // columns), n_q + 1, columns, n_k + 1), np.nan) if small else None
    box = Box(left, top, left, top)
    for head in range(h):
        row, column = divmod(head, columns)
        x, y = left + column * pitch, top + _NAME + row * (height + _NAME + _BETWEEN)
        shown = blocks(all_weights[head], (most, most))
        masked = np.isneginf(blocks(all_scores[head], (most, most)).values)
        cells = Cells(spans(x, x + width, masked.shape[1]), spans(y, y + height, masked.shape[0]))
        canvas.raster.frame(cells.box, theme.weights, 1.5)
        canvas.weights(shown.values, cells)
        canvas.masked(masked, cells)
        _small_title(scene, head, x - 1, y - 11, pitch - 4 if columns > 1 else right - left)
        if head == scene.head:
            canvas.outline(cells.box, theme.ink, 3.5)
        box = Box(left, top, max(box.right, cells.box.right), cells.box.bottom)
        if hovered is not None:
            hovered[row, :n_q, column, :n_k] = all_weights[head]
    if hovered is not None and min(width / n_k, height / n_q) >= _SMALLEST_HOVER:
        _hover(
            scene, hovered, Box(left, top + _NAME, left + width, top + _NAME + height), pitch, height + _NAME + _BETWEEN
        )
    return box, shown.size


_NAME, _BETWEEN = 22, 4  # px: a small map's name above it, and the space below it


def _largest_squares(h: int, width: float, height: float) -> tuple[float, int]:
    """The side of h squares with a name each that fit, and how many stand in a row."""
    best = (0.0, 1)
    for columns in range(1, h + 1):
        rows = math.ceil(h / columns)
        side = min((width - 14 * (columns - 1)) / columns, (height - _BETWEEN * (rows - 1)) / rows - _NAME, _MAP)
        best = max(best, (side, columns), key=lambda choice: choice[0])
    return best


def _small_title(scene: Scene, head: int, x: float, y: float, room: float) -> None:
    """ "2 same word" where that fits, else "2"."""
    label = scene.labels[head] if scene.labels else ""
    text = f"{head + 1} {label}" if label and text_width(f"{head + 1} {label}", 15) <= room else str(head + 1)
    scene.canvas.text(x, y, escape(text), size=15, bold=head == scene.head)


def _hover(scene: Scene, values: Array, first: Box, pitch_x: float, pitch_y: float) -> None:
    """One answering heatmap for all small maps: NaN in the gaps, each cell's head as customdata."""
    rows, n_q, columns, n_k = values.shape

    def along(start: float, size: float, pitch: float, count: int, cells: int) -> Spans:
        one = np.append(spans(start, start + size, cells - 1).starts, [start + size, start + pitch])
        every = np.arange(count)[:, None] * pitch
        return Spans((one[:-1] + every).ravel()[:-1], (one[1:] + every).ravel()[:-1])  # no gap after the last

    across = along(first.left, first.width, pitch_x, columns, n_k)
    down = along(first.top, first.height, pitch_y, rows, n_q)
    words = scene.words
    heads = np.broadcast_to(np.arange(rows * columns).reshape(rows, 1, columns, 1) + 1, values.shape)
    template = (
        f"{words['head'].format(head='%{customdata}')}<br>{words['query']} %{{y}} → {words['key']} %{{x}}<br>"
        f"{words['weight']} <b>%{{z:.4f}}</b>"
    )
    flat, flat_heads = (array.reshape(rows * n_q, columns * n_k)[:-1, :-1] for array in (values, heads))
    queries = ([*map(escape, scene.queries), ""] * rows)[:-1]
    keys = ([*map(escape, scene.keys), ""] * columns)[:-1]
    scene.canvas.hover(flat, Cells(across, down), template, rows=queries, columns=keys, numbers=flat_heads)


def key_names(scene: Scene, cells: Cells, chosen: int | None = None) -> None:
    """The keys' names above a map, upright where they are too wide for their column, every k-th where it is narrow."""
    pitch = cells.box.width / len(scene.keys)
    size, flat = _key_size(scene, cells.box.width)
    every = 1 if pitch >= 9 else math.ceil(11 / pitch)
    for j in printed_names(len(scene.keys), every, chosen):
        x, bold = cells.box.left + (j + 0.5) * pitch, j == chosen
        if flat:
            scene.canvas.text(x, cells.box.top - 12, escape(scene.keys[j]), size=size, anchor="center", bold=bold)
        else:
            name = escape(fit(scene.keys[j], _NAMES, size))
            scene.canvas.rotated(x, cells.box.top - 4, name, size=size, bold=bold)


def _key_size(scene: Scene, width: float) -> tuple[float, bool]:
    """The size of the keys' names over a map so wide, and whether they lie flat."""
    pitch = width / len(scene.keys)
    size = min(15.0, max(11.0, 0.92 * pitch))
    return size, all(text_width(name, size) <= pitch - 1 for name in scene.keys)


def room_for_keys(scene: Scene, width: float) -> float:
    """How high the keys' names over a map stand."""
    size, flat = _key_size(scene, width)
    return 20.0 if flat else min(_NAMES, max(text_width(name, size) for name in scene.keys)) + 4


def _scale(scene: Scene) -> str:
    """ "÷√16", or whatever the scores were multiplied by; "+ M" when numbers were added as a mask."""
    scale, d_k = scene.trace.scale, scene.trace.sizes["d_k"]
    if math.isclose(scale, d_k**-0.5, rel_tol=1e-6):
        text = f"÷√{d_k}"
    elif scale == 1:
        text = ""
    else:
        text = f"÷{1 / scale:.4g}" if 0 < scale < 1 else f"×{scale:.4g}"
    mask = scene.trace.mask
    return text + (" + M" if mask is not None and mask.is_floating_point() else "")
