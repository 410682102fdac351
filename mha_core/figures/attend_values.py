"""A head's values, and what one query gets of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mha_core.figures.blocks import Blocks, blocks
from mha_core.figures.geometry import Array, Cells, spans
from mha_core.figures.labels import escape, fit
from mha_core.figures.pick import Pick
from mha_core.figures.scene import Scene, snap
from mha_core.figures.theme import signed_limit

__all__ = ["SIDE", "Chosen", "draw_values"]

SIDE = 196  # px, of the maps
_MAPS = 969  # px, where they end
_V = (1022, 1124)  # px, left and right
_MOST_ROWS = 98
_MOST_VALUES = 640  # cells of V that can be clicked


@dataclass(frozen=True)
class Chosen:
    """The cell that is looked at, from 0."""

    query: int
    key: int
    feature: int


def draw_values(scene: Scene, chosen: Chosen, mode: str, top: float, bottom: float) -> None:
    """V beside the maps, whose top and side it shares, and the query's output below it, down to ``bottom``."""
    canvas, theme, head = scene.canvas, scene.theme, scene.head
    V, z = scene.step("V_heads", head=head), scene.step("head_outputs", head=head, query=chosen.query)
    drawn = blocks(V, (_MOST_ROWS, 51))
    n_k, d_v = drawn.values.shape
    left, right = _V
    cells = Cells(spans(left, right, d_v), spans(top, top + snap(SIDE, n_k), n_k))
    canvas.raster.frame(cells.box, theme.V, 2)
    canvas.signed(drawn.values, cells, signed_limit(V))
    canvas.text(left - 2, 14, f"V<sub>{scene.kv_head + 1}</sub>", size=20, colour=theme.V, bold=True)
    shape = f"{V.shape[0]}×{V.shape[1]}"
    canvas.text(right, 15, shape, size=14, colour=theme.soft, anchor="right", mono=True)
    if drawn.size != (1, 1):
        note = scene.words["largest"].format(rows=drawn.size[0], columns=drawn.size[1])
        canvas.text(right, top - 12, note, size=13, colour=theme.soft, anchor="right")
    y = round(cells.box.y)
    canvas.arrow((_MAPS + 9, y), (left - 9, y), colour=theme.V, width=3)
    canvas.text((_MAPS + left) / 2, y - 19, "× V", size=17, colour=theme.V, bold=True, anchor="center")

    strip = blocks(z[None], (1, 51))
    below = Cells(spans(left, right, d_v), spans(bottom - 40, bottom - 4, 1))
    canvas.raster.frame(below.box, theme.weights, 2)
    canvas.signed(strip.values, below, signed_limit(V))
    query = escape(fit(scene.queries[chosen.query], 52, 13))
    canvas.text(left - 2, below.box.top - 17, f"z<sub>{query}</sub>", size=19, colour=theme.weights, bold=True)
    canvas.text(right, below.box.top - 16, f"1×{len(z)}", size=14, colour=theme.soft, anchor="right", mono=True)
    _value_answers(scene, cells, below, drawn, V, z)

    column = int(np.searchsorted(drawn.column_starts, chosen.feature, "right")) - 1
    row = cells.rows(int(np.searchsorted(drawn.row_starts, chosen.key, "right")) - 1, n_k)
    across = cells.columns(column, d_v)
    if mode == "score":
        canvas.outline(row, theme.ink, 4)
    else:
        canvas.outline(across, theme.ink, 2)
        canvas.outline(row._replace(left=across.left, right=across.right), theme.ink, 4)
        canvas.outline(below.columns(column, d_v), theme.ink, 4)


def _value_answers(scene: Scene, cells: Cells, below: Cells, drawn: Blocks, V: Array, z: Array) -> None:
    words = scene.words
    names = [f"V<br>{words['key']} {name}" for name in scene.row_names(scene.keys, drawn.row_starts)]
    if drawn.size == (1, 1) and V.size <= _MOST_VALUES:
        features = [words["feature"].format(feature=c + 1) for c in range(V.shape[1])]
        template = "%{y}, %{x}<br><b>%{customdata:.4g}</b>"
        scene.canvas.pick(V, cells, template, Pick("key", "feature"), rows=names, columns=features)
        scene.canvas.pick(z[None], below, template, Pick("", "feature"), rows=["z"], columns=features)
    else:
        template = f"%{{y}}, {words['feature'].format(feature='%{customdata}')}<br><b>%{{z:.4g}}</b>"
        scene.canvas.hover(drawn.values, cells, template, rows=names, numbers=drawn.columns + 1)
