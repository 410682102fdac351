"""Uploaded files: what is read, what is refused and with which words."""

from __future__ import annotations

import io
import os
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mha_core.arrays import MAX_BYTES, UploadedInput, read_array

TABLE = np.array([[1, -2.5, 3e2, 0], [0.125, 6, -7, 8]])
ROWS = "1|-2.5|3e2|0\n0.125|6|-7|8"


def npy(array: Any, version: tuple[int, int] | None = None) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), version=version)
    return file.getvalue()


def npy_with(header: str, data: bytes = b"", version: int = 1) -> bytes:
    """An NPY file whose header may say anything."""
    length = len(header).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode("latin1") + data


def header(shape: str, descr: str = "'<f4'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"


def refusal(data: bytes) -> str:
    with pytest.raises(ValueError, match=r"^x\.dat") as caught:
        read_array(data, "x.dat")
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


# CSV


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (ROWS, ("x1", "x2")),
        (ROWS + "\n", ("x1", "x2")),
        (f"a|b|c|d\n{ROWS}", ("x1", "x2")),
        ("the|1|-2.5|3e2|0\n cat |0.125|6|-7|8", ("the", "cat")),
        ("token|a|b|c|d\nthe|1|-2.5|3e2|0\ncat|0.125|6|-7|8", ("the", "cat")),
        ("|a|b|c|d\nthe|1|-2.5|3e2|0\ncat|0.125|6|-7|8", ("the", "cat")),
        ('"Well, ""so"""|"1"|-2.5|"3e2"|0\n","|0.125|6|-7|8', ('Well, "so"', ",")),
        ("猫|1|-2.5|3e2|0\n坐|0.125|6|-7|8", ("猫", "坐")),
        ("\n\n1|-2.5|3e2|0\n \n|||\n0.125|6|-7|8\n\n", ("x1", "x2")),
        (" 1 | -2.5| 3e2|0 \n0.125|6|-7|8", ("x1", "x2")),
    ],
)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_csv_is_read_with_or_without_headings_and_tokens(
    text: str, tokens: tuple[str, ...], separator: str, line_end: str, bom: bytes
) -> None:
    read = read_array(bom + text.replace("|", separator).replace("\n", line_end).encode(), "x.csv")
    assert read.tokens == tokens
    assert read.X.dtype == torch.float32
    np.testing.assert_array_equal(read.X.numpy(), TABLE[None].astype(np.float32))


@pytest.mark.parametrize("bad", ["nan", "NaN", "inf", "-Infinity", "1e39", "-1e400", "abc", "1,5", "0x10"])
@pytest.mark.parametrize(
    ("before", "row", "column"),
    [
        ("1,2,3,4\n5,6,{},8", 2, 3),
        ("a,b,c,d\n1,2,3,4\n5,{},7,8", 3, 2),
        ("the,1,2,3,4\ncat,5,6,7,{}", 2, 5),
        ("token,a,b,c,d\nthe,1,2,{},4", 2, 4),
        ("\n1,2,3,4\n\n\n{},6,7,8", 5, 1),
    ],
)
def test_a_cell_that_is_no_finite_number_is_named_by_its_place_in_the_file(
    before: str, row: int, column: int, bad: str
) -> None:
    cell = f'"{bad}"'
    message = refusal(before.format(cell).encode())
    assert f"row {row}, column {column} holds {bad!r}; every cell must be a finite number" in message


def test_a_blank_cell_is_named_by_its_place() -> None:
    assert "row 2, column 3 holds ''; every cell" in refusal(b"1,2,3,4\n5,6,,8")
    assert "row 1, column 1 holds ' '; every cell" in refusal(b" ,2,3,4\n5,6,7,8")


def test_a_blank_first_cell_is_no_token() -> None:
    assert "row 1, column 1 holds ''; every cell" in refusal(b",1,2,3,4")
    refusal(b"the,1,2,3,4\n,5,6,7,8")


def test_ragged_rows_are_named() -> None:
    assert "row 3 has 3 cells and row 2 has 4; level them" in refusal(b"a,b,c,d\n1,2,3,4\n5,6,7")
    assert "row 4 has 5 cells and row 2 has 4; level them" in refusal(b"\n1,2,3,4\n\n1,2,3,4,5")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty; give at least one row of numbers"),
        (b"\n , ,\n\n", "is empty; give at least one row of numbers"),
        (b"a,b,c,d\n", "has n=0 rows"),
        (b"1,2,3", "d_model=3 columns of numbers; n must be 1 … 256 and d_model 4 … 512: cut the table to size"),
        (b"the,1,2,3", "d_model=3 columns"),
        (b"1," * 512 + b"1", "d_model=513 columns"),
        (b"1,2,3,4\n" * 257, "has n=257 rows"),
        (b"a,b,c,d\n" + b"1,2,3,4\n" * 258, "has more than n=256 rows; cut the table to size"),
        (b"\xff\xfe1\x00,\x002\x00", "is neither NPY nor UTF-8 text; save it as CSV or with numpy.save"),
        (b'"' + b"a" * 200_000, "cannot be read as CSV (field larger than field limit (131072)); save it again"),
        (b"1," * (MAX_BYTES // 2) + b"1", f"has {MAX_BYTES + 1} bytes; at most {MAX_BYTES} are read: keep fewer rows"),
    ],
    ids=range(11),
)
def test_a_table_that_is_no_X_is_refused(data: bytes, words: str) -> None:
    assert words in refusal(data)


@pytest.mark.parametrize("data", [b"1,2,3,4\n" * 256, b"a,b,c,d\n" + b"1,2,3,4\n" * 256, b"t" + b",1" * 512])
def test_a_table_of_the_largest_size_is_read(data: bytes) -> None:
    assert read_array(data, "x.csv").X.numel() in (256 * 4, 512)


def test_millions_of_rows_are_not_built_up() -> None:
    tracemalloc.start()
    refusal(b"1\n" * (MAX_BYTES // 2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * MAX_BYTES  # the text, and not a list a row


# NPY


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8", ">f8", "i1", "<i8", ">i2", "u1", "<u4", "?"])
@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_any_real_dtype_order_and_version_is_read(dtype: str, version: tuple[int, int], order: Any) -> None:
    array = np.array(np.arange(12).reshape(3, 4) % 5, dtype=dtype, order=order)
    read = read_array(npy(array, version), "x.npy")
    assert read.tokens == ("x1", "x2", "x3")
    assert read.X.dtype == torch.float32
    np.testing.assert_array_equal(read.X.numpy()[0], array.astype(np.float64))


@pytest.mark.parametrize("shape", [(1, 4), (256, 512)])
def test_npy_of_the_smallest_and_the_largest_size_is_read(shape: tuple[int, int]) -> None:
    assert read_array(npy(np.ones(shape)), "x.npy").X.shape == (1, *shape)


def test_an_empty_name_or_a_wrong_ending_does_not_matter() -> None:
    assert (
        read_array(npy(TABLE), "x.csv").X.shape == read_array(ROWS.replace("|", ",").encode(), "").X.shape == (1, 2, 4)
    )


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.ones(4), "an array of shape (4,); X has two axes, (n, d_model)"),
        (np.ones((1, 2, 4)), "an array of shape (1, 2, 4); X has two axes"),
        (np.float64(1), "an array of shape (); X has two axes"),
        (np.ones((0, 4)), "n=0 rows"),
        (np.ones((257, 4)), "n=257 rows"),
        (np.ones((2, 3)), "d_model=3 columns"),
        (np.ones((2, 513)), "d_model=513 columns"),
        (np.ones((2, 4), complex), "dtype complex128; X holds real numbers: convert with"),
        (np.full((2, 4), "a"), "dtype <U1; X holds real numbers"),
        (np.zeros((2, 4), "M8[s]"), "dtype datetime64[s]; X holds real numbers"),
        (np.zeros((2, 4), [("a", "f4"), ("b", "i4")]), "X holds real numbers"),
        (np.full((2, 4), np.nan), "row 1, column 1 holds nan; every cell must be a finite number"),
    ],
    ids=range(12),
)
def test_an_npy_that_is_no_X_is_refused(array: Any, words: str) -> None:
    assert words in refusal(npy(array))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39, -1e300])
def test_an_npy_cell_that_float32_cannot_hold_is_named_by_its_place(bad: float) -> None:
    array = np.ones((3, 5))
    array[1, 3] = bad
    assert f"row 2, column 4 holds {bad}; every cell must be a finite number" in refusal(npy(array))


def test_the_largest_float32_is_read_from_both_kinds_of_file() -> None:
    largest = float(np.finfo(np.float32).max)
    for data in (npy(np.full((1, 4), largest)), f"{largest},1,1,1".encode()):
        assert read_array(data, "x").X.max().item() == largest


class Intruder:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("kind", ["object array", "object header", "number header", "bare pickle"])
def test_a_pickle_is_never_run(kind: str, tmp_path: Path) -> None:
    intruder = Intruder(tmp_path / "intruder")
    cells = np.full((2, 4), None, dtype=object)
    cells[0, 0] = intruder
    data = {
        "object array": lambda: npy(cells),
        "object header": lambda: npy_with(header("(2, 4)", "'|O'"), pickle.dumps(intruder)),
        "number header": lambda: npy_with(header("(2, 4)"), pickle.dumps(intruder)[:31]),
        "bare pickle": lambda: pickle.dumps(intruder),
    }[kind]()
    refusal(data)
    assert not intruder.path.exists()
    if kind == "object array":  # the trap itself is sound
        np.load(io.BytesIO(data), allow_pickle=True)
        assert intruder.path.exists()


@pytest.mark.parametrize("shape", ["(2, 1000000000)", "(1000000000000, 512)", "(10000000000, 10000000000, 4)"])
@pytest.mark.parametrize("descr", ["'<f8'", "'|O'", "('<f4', (1000000000,))"])
def test_a_header_that_claims_a_huge_array_takes_no_memory(shape: str, descr: str) -> None:
    tracemalloc.start()
    refusal(npy_with(header(shape, descr), b"\0" * 32))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize(
    "text",
    [
        "", "1", "(" * 900, "-" * 900 + "1", "-" * 9000 + "1", "{[]: 1}", "{'a': (", "'''", "  {\n }", "{1: 2, 'a': 3}",
        "\0", "__import__('os').abort()", header("(2, 4)") + " " * 20_000, header("(True, 8)"), header("(-2, -4)"),
        header("(2.0, 4)"), header("None"), header("(2, 4)", "'?4'"), header("(2, 4)", "[]"), header("(2, 4)", "None"),
    ],
    ids=range(20),
)  # fmt: skip
@pytest.mark.parametrize("version", [1, 2])
def test_a_garbled_header_is_refused(text: str, version: int) -> None:
    refusal(npy_with(text, b"\0" * 32, version))


@pytest.mark.parametrize("version", [0, 3, 9])
def test_an_npy_version_of_which_numpy_saves_no_numbers_is_refused(version: int) -> None:
    assert "not an NPY file that can be read; save it with numpy.save" in refusal(
        npy_with(header("(2, 4)"), b"\0" * 32, version)
    )


def test_a_truncated_npy_is_refused_wherever_it_ends() -> None:
    data = npy(TABLE.astype(np.float32))
    for length in range(6, len(data)):
        refusal(data[:length])
    assert "ends too early for its shape (2, 4); save it again" in refusal(data[:-1])


# Anything


def is_one_or_the_other(data: bytes) -> None:
    try:
        read = read_array(data, "x.dat")
    except ValueError as error:
        assert str(error).startswith("x.dat")  # noqa: PT017
        return
    assert isinstance(read, UploadedInput)
    batch, n, d_model = read.X.shape
    assert (batch, len(read.tokens)) == (1, n)
    assert 1 <= n <= 256
    assert 4 <= d_model <= 512
    assert read.X.dtype == torch.float32
    assert read.X.isfinite().all()
    assert all(isinstance(token, str) and token for token in read.tokens)


cell = st.sampled_from(["1", "-2.5", "nan", "", " ", "the", '"', '"a,b"', "1e99", "猫", "\0", "1_0", "\u2028", "'"])
table = st.lists(st.lists(cell, min_size=3, max_size=6), max_size=4)


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda data: b"\x93NUMPY\x01\x00" + data))
def test_any_bytes_give_an_X_or_a_value_error(data: bytes) -> None:
    is_one_or_the_other(data)


@given(table, st.sampled_from([",", ";", "\t"]), st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_table_of_cells_gives_an_X_or_a_value_error(rows: list[list[str]], separator: str, line_end: str) -> None:
    is_one_or_the_other(line_end.join(separator.join(row) for row in rows).encode())


@given(st.text(st.sampled_from("{}()[]'\":,-<>=f48iO|descrshapefortran_orderTrueFalse 0123456789\n\\"), max_size=120))
def test_any_header_gives_an_X_or_a_value_error(text: str) -> None:
    is_one_or_the_other(npy_with(text, b"\0" * 64))


@given(st.data())
def test_an_npy_with_a_byte_changed_gives_an_X_or_a_value_error(data: st.DataObject) -> None:
    damaged = bytearray(npy(TABLE))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    is_one_or_the_other(bytes(damaged))
