"""Matrices with more rows or columns than can be seen, reduced so that nothing large is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Blocks", "block_size", "blocks"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Blocks:
    """A matrix reduced block by block.

    Attributes:
        values: of each block, the entry of largest magnitude, with its sign.
        rows, columns: where in the matrix that entry stands, shaped like ``values``.
        row_starts, column_starts: the first row or column of each block, then the matrix' size.
        size: rows and columns that a full block covers; (1, 1) when nothing was reduced.
    """

    values: Array
    rows: Array
    columns: Array
    row_starts: Array
    column_starts: Array
    size: tuple[int, int]


def block_size(count: int, limit: int, band: int | None = None) -> int:
    """How many columns a block must cover for at most ``limit`` blocks, none of which straddles a band.

    A size that divides the band is preferred, up to twice the smallest that would do.

    >>> block_size(512, 64, 64), block_size(60, 64), block_size(96, 64, 32)
    (8, 1, 2)
    """
    band = band or count
    bands = -(-count // band)
    per_band = max(1, limit // bands)
    least = -(-band // per_band)
    return next((k for k in range(least, 2 * least) if band % k == 0), least)


def starts(count: int, size: int, band: int | None = None) -> Array:
    """The first index of every block, then ``count``.

    >>> starts(10, 2, band=5).tolist()
    [0, 2, 4, 5, 7, 9, 10]
    """
    band = band or count
    each = (np.arange(0, count, band)[:, None] + np.arange(0, band, size)).ravel()
    return np.append(each[each < count], count)


def blocks(matrix: Array, limit: int | tuple[int, int], band: int | None = None, row_band: int | None = None) -> Blocks:
    """The matrix with at most ``limit`` columns, or ``(rows, columns)``.

    Args:
        matrix: (rows, columns); entries of −∞ (masked) count as the smallest.
        limit: the most columns to keep, or the most rows and columns.
        band: columns of one head, which no block straddles; more bands than columns that may be kept
            leave one block a band.
        row_band: the same for rows (W_O).

    >>> reduced = blocks(np.array([[1.0, -3.0, 2.0, 0.0]]), 2)
    >>> reduced.values.tolist(), reduced.columns.tolist()
    ([[-3.0, 2.0]], [[1, 2]])
    """
    most_rows, most_columns = limit if isinstance(limit, tuple) else (matrix.shape[0], limit)
    height = block_size(matrix.shape[0], most_rows, row_band)
    width = block_size(matrix.shape[1], most_columns, band)
    row_starts, column_starts = starts(matrix.shape[0], height, row_band), starts(matrix.shape[1], width, band)
    if (height, width) == (1, 1):
        rows = np.broadcast_to(np.arange(matrix.shape[0])[:, None], matrix.shape)
        columns = np.broadcast_to(np.arange(matrix.shape[1]), matrix.shape)
        return Blocks(matrix, rows, columns, row_starts, column_starts, (1, 1))

    row_at, column_at = _members(row_starts, height), _members(column_starts, width)  # (blocks, height or width)
    down, across = len(row_at), len(column_at)
    if matrix.shape == (down * height, across * width):  # all blocks full: a view of the matrix does
        tiles = matrix.reshape(down, height, across, width).swapaxes(1, 2)
    else:
        tiles = matrix[row_at[:, None, :, None], column_at[None, :, None, :]]
    flat = tiles.reshape(down, across, -1)
    size = np.abs(flat)
    size[np.isinf(size)] = -1.0
    winner = size.argmax(-1)
    rows = row_at[np.arange(down)[:, None], winner // width]
    columns = column_at[np.arange(across), winner % width]
    return Blocks(matrix[rows, columns], rows, columns, row_starts, column_starts, (height, width))


def _members(starts: Array, size: int) -> Array:
    """The indices of each block, the last repeated where a block is not full: (blocks, size)."""
    members = starts[:-1, None] + np.arange(size)
    inside: Array = np.minimum(members, starts[1:, None] - 1)
    return inside
