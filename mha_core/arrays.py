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

from mha_core.errors import InputError
from mha_core.inputs import D_MODEL_RANGE, MAX_TOKENS

__all__ = ["MAX_BYTES", "UploadedInput", "read_array"]

MAX_BYTES = 4 * 2**20
"""256 tokens of 512 features take 1 MiB as float64 NPY and about 2.5 MiB as CSV."""
MAX_HEADER = 1000
"""An NPY file of numbers has 118 bytes of header; a long one could nest deeper than the parser's stack."""
_LARGEST = float(np.finfo(np.float32).max)


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
            (named by row and column of the file, counted from 1); n or d_model out of bounds.

    >>> read_array(b"the,1,2,3,4\\ncat,5,6,7,8", "x.csv").tokens
    ('the', 'cat')
    """
    if len(data) > MAX_BYTES:
        raise InputError("file_size", file=name, size=len(data), most=MAX_BYTES)
    if data.startswith(b"\x93NUMPY"):
        array, tokens = _read_npy(data, name), None
    else:
        array, tokens = _read_csv(data, name)
    _check_shape(array.shape, name)
    with np.errstate(over="ignore", invalid="ignore"):
        X = array.astype(np.float32)
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise InputError("file_cell", file=name, row=row + 1, column=column + 1, value=array[row, column])
    return UploadedInput(torch.from_numpy(X).unsqueeze(0), tokens or tuple(f"x{row + 1}" for row in range(len(array))))


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    low, high = D_MODEL_RANGE
    if len(shape) != 2:
        raise InputError("file_axes", file=name, shape=shape)
    n, d_model = shape
    if not 1 <= n <= MAX_TOKENS or not low <= d_model <= high:
        raise InputError("file_shape", file=name, n=n, d_model=d_model, most=MAX_TOKENS, low=low, high=high)


def _read_npy(data: bytes, name: str) -> np.ndarray[Any, Any]:
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = read_header[version](file, max_header_size=MAX_HEADER)
    except Exception as error:  # NumPy's own ValueError, and whatever Python's parser makes of a garbled header
        raise InputError("file_npy", file=name) from error
    _check_shape(shape, name)
    if dtype.kind not in "fiub":
        raise InputError("file_dtype", file=name, dtype=dtype)
    try:
        return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False, max_header_size=MAX_HEADER)
    except (ValueError, TypeError) as error:
        raise InputError("file_short", file=name, shape=shape) from error


def _read_csv(data: bytes, name: str) -> tuple[np.ndarray[Any, Any], tuple[str, ...] | None]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("file_text", file=name) from error
    separator = max(",;\t", key=text.lstrip("\r\n").partition("\n")[0].count)
    rows: list[tuple[int, list[str]]] = []  # each with its number in the file, where rows may be blank
    try:
        for number, row in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=separator), 1):
            if any(cell.strip() for cell in row):
                rows.append((number, row))
            if len(rows) > MAX_TOKENS + 1:  # headings and one row too many: do not build up millions
                raise InputError("file_rows", file=name, most=MAX_TOKENS)
    except csv.Error as error:
        raise InputError("file_csv", file=name, reason=error) from error
    if not rows:
        raise InputError("file_empty", file=name)
    body = rows if any(_is_number(cell) for cell in rows[0][1]) else rows[1:]
    has_tokens = bool(body) and not any(_is_number(row[0]) or not row[0].strip() for _, row in body)
    width = len(body[0][1]) if body else 0
    _check_shape((len(body), width - has_tokens), name)
    array = np.empty((len(body), width - has_tokens))
    for i, (number, row) in enumerate(body):
        if len(row) != width:
            raise InputError("file_ragged", file=name, row=number, cells=len(row), first=body[0][0], width=width)
        for j, cell in enumerate(row[has_tokens:]):
            if not _is_number(cell) or not abs(float(cell)) <= _LARGEST:
                raise InputError("file_cell", file=name, row=number, column=j + has_tokens + 1, value=repr(cell[:20]))
            array[i, j] = float(cell)
    return array, tuple(row[0].strip() for _, row in body) if has_tokens else None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
