"""Cells that can be chosen: invisible markers, one a cell, and what choosing each of them means."""

from __future__ import annotations

from typing import Any, NamedTuple

from mha_core.figures.geometry import Array
from mha_core.figures.picture import typed

__all__ = ["Pick", "Pickable", "cell_of", "pick_trace"]


class Pick(NamedTuple):
    """What the cells of a matrix stand for.

    Attributes:
        rows, columns: the index that a cell's row and column choose: "query", "key", "feature"; "" for none.
        fixed: what else a cell of this matrix chooses, such as (("head", 2),).
        first_column: the column's index counts from here (a head's band begins at h·d_k).
        at: where the matrix is drawn in blocks, the row and the column that each cell means, (rows, columns) each,
            as in :class:`mha_core.figures.blocks.Blocks`.
    """

    rows: str
    columns: str
    fixed: tuple[tuple[str, int], ...] = ()
    first_column: int = 0
    at: tuple[Array, Array] | None = None


class Pickable(NamedTuple):
    """A pick, and how many rows and columns its matrix has: the markers of a trace are counted row by row."""

    pick: Pick
    shape: tuple[int, int]


def cell_of(pickables: tuple[Pickable, ...], point: int) -> dict[str, int]:
    """What the marker with this index chooses.

    >>> cell_of((Pickable(Pick("query", "key", (("head", 1),)), (2, 3)),), 4)
    {'head': 1, 'query': 1, 'key': 1}
    """
    for pick, (rows, columns) in pickables:
        if point < rows * columns:
            row, column = divmod(point, columns)
            if pick.at is not None:
                row, column = (int(index[row, column]) for index in pick.at)
            chosen = {**dict(pick.fixed), pick.rows: row, pick.columns: column + pick.first_column}
            chosen.pop("", None)
            return chosen
        point -= rows * columns
    raise IndexError(f"there is no marker {point} more than there are cells")


def pick_trace(template: str, x: Array, y: Array, values: Array) -> dict[str, Any]:
    """One scatter of invisible markers; the whole cell answers, because the nearest marker does within hoverdistance.

    Args:
        template: Plotly's hovertemplate; %{customdata} is the value.
        x, y, values: the cells' middles and values, flat.
    """
    unseen = {"marker": {"opacity": 0}}
    return {
        "type": "scatter", "mode": "markers", "x": typed(x), "y": typed(y), "customdata": typed(values),
        "marker": {"symbol": "square", "size": 4, "opacity": 0}, "selected": unseen, "unselected": unseen,
        "hovertemplate": template + "<extra></extra>", "cliponaxis": False,
    }  # fmt: skip
