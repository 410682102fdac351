"""X from a file: a table of numbers as CSV or NPY, a row a token.

The size is checked before anything is read into memory, and nothing in the file is ever run
(``allow_pickle=False``).
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mha_core.inputs import D_MODEL_RANGE, MAX_TOKENS

__all__ = ["MAX_BYTES", "UploadedInput", "read_array"]

MAX_BYTES = 4 * 2**20
"""256 tokens of 512 features take 1 MiB as float64 NPY and about 2.5 MiB as CSV."""


@dataclass(frozen=True, eq=False)
class UploadedInput:
    """X, (1, n, d_model) float32, and a name a row."""

    X: Tensor
    tokens: tuple[str, ...]


def read_array(data: bytes, name: str) -> UploadedInput:
    """Read X from the bytes of a CSV or NPY file; which of the two, its first bytes say.

    A CSV may begin with a row of headings and each of its rows with the token's text; separators
    are commas, semicolons or tabs. An NPY holds a 2-D array of real numbers.

    Args:
        data: the file's bytes.
        name: its name, for messages.

    Raises:
        ValueError: too large; not 2-D; rows of different lengths; a cell that is no finite number
            (named by row and column, counted from 1); n or d_model out of bounds.

    >>> read_array(b"the,1,2,3,4\\ncat,5,6,7,8", "x.csv").tokens
    ('the', 'cat')
    """
    if len(data) > MAX_BYTES:
        raise ValueError(f"{name} has {len(data)} bytes; at most {MAX_BYTES} are read: keep fewer rows or columns")
    if data.startswith(b"\x93NUMPY"):
        array, tokens = _read_npy(data, name), None
    else:
        array, tokens = _read_csv(data, name)
    _check_shape(array.shape, name)
    with np.errstate(over="ignore"):
        X = array.astype(np.float32)
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise ValueError(
            f"{name}: row {row + 1}, column {column + 1} holds {array[row, column]}; "
            "every cell must be a finite number that float32 can hold: correct it"
        )
    return UploadedInput(torch.from_numpy(X).unsqueeze(0), tokens or tuple(f"x{row + 1}" for row in range(len(array))))


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    low, high = D_MODEL_RANGE
    if len(shape) != 2:
        raise ValueError(f"{name} holds an array of shape {shape}; X has two axes, (n, d_model)")
    n, d_model = shape
    if not 1 <= n <= MAX_TOKENS or not low <= d_model <= high:
        raise ValueError(
            f"{name} has n={n} rows and d_model={d_model} columns of numbers; "
            f"n must be 1 … {MAX_TOKENS} and d_model {low} … {high}: cut the table to size"
        )


def _read_npy(data: bytes, name: str) -> np.ndarray[Any, Any]:
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = read_header[version](file)
    except (ValueError, KeyError) as error:
        raise ValueError(f"{name} is not an NPY file that can be read; save it with numpy.save") from error
    _check_shape(shape, name)
    if dtype.kind not in "fiub":
        raise ValueError(f"{name} holds dtype {dtype}; X holds real numbers: convert with array.astype('float32')")
    try:
        return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except ValueError as error:
        raise ValueError(f"{name} ends too early for its shape {shape}; save it again") from error


def _read_csv(data: bytes, name: str) -> tuple[np.ndarray[Any, Any], tuple[str, ...] | None]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is neither NPY nor UTF-8 text; save it as CSV or with numpy.save") from error
    separator = max(",;\t", key=text.partition("\n")[0].count)
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise ValueError(f"{name} cannot be read as CSV ({error}); save it again as plain CSV") from error
    if not rows:
        raise ValueError(f"{name} is empty; give at least one row of numbers")
    first = 1 if not any(_is_number(cell) for cell in rows[0]) else 0
    body = rows[first:]
    has_tokens = bool(body) and not any(_is_number(row[0]) or not row[0].strip() for row in body)
    width = len(body[0]) if body else 0
    _check_shape((len(body), width - has_tokens), name)
    array = np.empty((len(body), width - has_tokens))
    for i, row in enumerate(body):
        if len(row) != width:
            raise ValueError(
                f"{name}: row {i + first + 1} has {len(row)} cells and row {first + 1} has {width}; level them"
            )
        for j, cell in enumerate(row[has_tokens:]):
            if not _is_number(cell):
                raise ValueError(
                    f"{name}: row {i + first + 1}, column {j + has_tokens + 1} holds {cell[:20]!r}; "
                    "every cell must be a finite number: correct it"
                )
            array[i, j] = float(cell)
    return array, tuple(row[0].strip() for row in body) if has_tokens else None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
