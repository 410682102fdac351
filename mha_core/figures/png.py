"""A PNG of palette indices, small and fast for images made of rectangles."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from mha_core.figures.geometry import Array

__all__ = ["palette_png"]


def palette_png(dots: Array, palette: Array) -> bytes:
    """The file's bytes; index 0 is transparent.

    Args:
        dots: (height, width) of uint8.
        palette: (colours, 3) of uint8, at most 256.

    Source: PNG specification (W3C, third edition), sections 9.2 and 11.2.
    """
    header = struct.pack(">IIBBBBB", dots.shape[1], dots.shape[0], 8, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", header), (b"PLTE", palette.tobytes()), (b"tRNS", b"\0"), (b"IDAT", _compress(dots)), (b"IEND", b""),
    )  # fmt: skip
    return b"\x89PNG\r\n\x1a\n" + b"".join([_chunk(kind, data) for kind, data in chunks])


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _compress(dots: Array) -> bytes:
    """PNG's image data: (height, width) bytes filtered and deflated.

    Most lines equal the one above: filter 2, "up", makes them zeros. In the others each cell is some equal
    dots wide, and filter 4, Paeth's guess from left, above and above left, makes zeros of all but the
    first. Runs of zeros are all that there is to find, which zlib's run-length strategy does fast.
    """
    lines = np.zeros((dots.shape[0], dots.shape[1] + 1), np.uint8)  # each line begins with its filter
    lines[:, 0], lines[0, 1:] = 2, dots[0]
    np.subtract(dots[1:], dots[:-1], out=lines[1:, 1:])
    new = np.flatnonzero(lines[1:, 1:].any(1)) + 1
    here, above = dots[new], dots[new - 1]
    left, corner = np.zeros_like(here), np.zeros_like(above)
    left[:, 1:], corner[:, 1:] = here[:, :-1], above[:, :-1]
    guess = np.where(above == corner, left, above)
    open_ = np.flatnonzero((above != corner) & (left != corner))  # the few places that need the whole formula
    a, b, c = (array.ravel()[open_].astype(np.int16) for array in (left, above, corner))
    to_a, to_b, to_c = np.abs(b - c), np.abs(a - c), np.abs(a + b - 2 * c)
    guess.ravel()[open_] = np.where((to_a <= to_b) & (to_a <= to_c), a, np.where(to_b <= to_c, b, c))
    lines[new, 0], lines[new, 1:] = 4, here - guess
    deflate = zlib.compressobj(9, strategy=zlib.Z_RLE)
    return deflate.compress(lines.tobytes()) + deflate.flush()
