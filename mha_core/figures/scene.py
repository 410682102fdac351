"""What the parts of a canvas picture share: the calculation, its names, and a matrix with all its trimmings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mha_core.figures.blocks import blocks
from mha_core.figures.canvas import Anchor, Canvas
from mha_core.figures.geometry import Box, Cells, Spans, spans
from mha_core.figures.labels import escape, fit
from mha_core.figures.theme import Theme, limit_text, signed_limit
from mha_core.trace import AttentionTrace

__all__ = ["Scene", "band_gap", "printed_names", "snap"]

Array = np.ndarray[Any, Any]

_MOST_COLUMNS, _MOST_ROWS = 64, 81  # stripes of 1 px and more, rows of 2 px and more


@dataclass
class Scene:
    """A canvas and what is drawn on it.

    Attributes:
        head: the head in focus, from 0.
        queries, keys: a plain label for each token, to be escaped when printed.
        labels: a plain name for each head, or None.
        words: see :data:`mha_core.figures.words.WORDS`.
        feature_hover: whether the matrices of :meth:`matrix` answer the pointer.
        stripes: the block sizes (rows, columns) of the matrices drawn so far, for the legend.
    """

    canvas: Canvas
    trace: AttentionTrace
    head: int
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    labels: tuple[str, ...] | None
    words: Mapping[str, str]
    feature_hover: bool = True
    stripes: set[tuple[int, int]] = field(default_factory=set)

    @property
    def theme(self) -> Theme:
        """The canvas' colours."""
        return self.canvas.theme

    @property
    def kv_head(self) -> int:
        """The head of keys and values that the focus head reads."""
        return self.head * self.trace.sizes["h_kv"] // self.trace.sizes["h"]

    def step(self, name: str, **index: int) -> Array:
        """A step of the first sequence."""
        return self.trace[name].sel(batch=0, **index).numpy()

    def weight_matrix(self, letter: str) -> Array:
        """W_Q, W_K, W_V or W_O in the formula's orientation."""
        parameter = self.trace.parameter(f"W_{letter}")
        assert parameter is not None  # only a bias may be missing
        return parameter.numpy()

    def head_name(self, head: int) -> str:
        """ "head 2: same word", safe to print; "head 2" without labels."""
        if self.labels is None or not self.labels[head]:
            return self.words["head"].format(head=head + 1)
        return self.words["head_named"].format(head=head + 1, label=escape(fit(self.labels[head], 400, 21)))

    def row_names(self, tokens: Sequence[str], starts: Array) -> list[str]:
        """The tokens that blocks of rows (or of keys) stand for, safe to print."""
        names = []
        for first, after in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            one = escape(tokens[first])
            last = escape(tokens[after - 1])
            names.append(one if after == first + 1 else self.words["range"].format(first=one, last=last))
        return names

    def matrix(
        self,
        matrix: Array,
        left: float,
        right: float,
        top: float,
        room: float,
        *,
        tokens: Sequence[str],
        title: str,
        colour: str,
        bands: int = 1,
        focus: int | None = None,
    ) -> Cells:
        """A signed matrix with a token a row: title, shape, limit, frames, the focus band, hover.

        Args:
            room: the most height it may take, in pixels; a row takes 40 px at most.
            bands: how many heads its columns belong to.
            focus: the band to outline.
        """
        canvas, theme = self.canvas, self.theme
        drawn = blocks(matrix, (_MOST_ROWS, _MOST_COLUMNS), band=matrix.shape[1] // bands)
        self.stripes.add(drawn.size)
        rows, columns = drawn.values.shape
        gap = band_gap(bands)
        cells = Cells(spans(left, right, columns, bands, gap), spans(top, top + rows * row_height(rows, room), rows))
        box, limit = cells.box, signed_limit(matrix)
        frames = bands if bands <= 8 else 1
        for band in range(frames):
            canvas.raster.frame(cells.columns(band, frames) if frames > 1 else box, colour, 1.5 if frames > 4 else 2.0)
        canvas.signed(drawn.values, cells, limit)

        canvas.text(left - 2, top - 17, title, size=20, colour=colour, bold=True)
        canvas.text(
            right, top - 15, "×".join(map(str, matrix.shape)), size=14, colour=theme.soft, anchor="right", mono=True
        )
        if focus is not None:
            canvas.outline(cells.columns(focus, bands), theme.ink, 3.5)
            for band in range(bands) if bands <= 4 else (focus,):
                ink = theme.ink if band == focus else theme.soft
                canvas.text(
                    cells.columns(band, bands).x, box.bottom + 13, str(band + 1),
                    size=15, bold=band == focus, colour=ink, anchor="center",
                )  # fmt: skip
        if not self.feature_hover:
            return cells
        names = [f"{title}<br>{name}" for name in self.row_names(tokens, drawn.row_starts)]
        template = f"%{{y}}, {self.words['feature']} %{{customdata}}<br><b>%{{z:.4g}}</b>"
        own = slice(None)
        if focus is not None:  # all bands would cost more bytes than everything else; any head can be the focus
            each = columns // bands
            own = slice(focus * each, (focus + 1) * each)
        answering = Cells(Spans(cells.x.starts[own], cells.x.stops[own]), cells.y)
        canvas.hover(drawn.values[:, own], answering, template, rows=names, numbers=drawn.columns[:, own] + 1)
        return cells

    def limit(self, x: float, y: float, matrix: Array, anchor: Anchor = "right") -> None:
        """The limit of a matrix' colours, in small print."""
        text = limit_text(signed_limit(matrix))
        self.canvas.text(x, y, text, size=13, colour=self.theme.soft, anchor=anchor, mono=True)

    def parameter(self, letter: str, box: Box, colour: str, *, bands: int, focus: int, by_rows: bool = False) -> None:
        """A weight matrix in a box, at most 64 × 64 cells, the focus head's columns (or rows) outlined."""
        matrix = self.weight_matrix(letter)
        band = matrix.shape[0 if by_rows else 1] // bands
        drawn = blocks(matrix, (64, 64), band=None if by_rows else band, row_band=band if by_rows else None)
        self.stripes.add((1, drawn.size[1]))
        rows, columns = drawn.values.shape
        gap = 2.0 if bands <= 4 else 1.0 if bands <= 8 else 0.0
        across, down = (1, bands) if by_rows else (bands, 1)
        cells = Cells(spans(box.left, box.right, columns, across, gap), spans(box.top, box.bottom, rows, down, gap))
        self.canvas.raster.frame(box, colour, 1.5)
        self.canvas.signed(drawn.values, cells, signed_limit(matrix))
        if bands > 1:
            self.canvas.outline(cells.rows(focus, bands) if by_rows else cells.columns(focus, bands), self.theme.ink, 2)

    def row_labels(
        self, x: float, cells: Cells, names: Sequence[str], width: float, *, most: float = 15, chosen: int | None = None
    ) -> None:
        """Token names at the left of a matrix, every k-th where rows are low; the chosen one bold."""
        pitch = cells.box.height / len(names)
        size = min(most, max(11.0, 0.92 * pitch))
        every = 1 if pitch >= 9 else int(-(-11 // pitch))
        for i in printed_names(len(names), every, chosen):
            y = cells.box.top + (i + 0.5) * pitch
            name = escape(fit(names[i], width, size))
            self.canvas.text(x, y, name, size=size, anchor="right", bold=i == chosen)


def printed_names(count: int, every: int, chosen: int | None = None) -> list[int]:
    """Every k-th index, and the chosen one in place of those too near to it.

    >>> printed_names(9, 3), printed_names(9, 3, 4), printed_names(3, 1, 1)
    ([0, 3, 6], [0, 4], [0, 1, 2])
    """
    regular = range(0, count, every)
    if chosen is None or chosen in regular:
        return list(regular)
    return sorted([*(i for i in regular if abs(i - chosen) >= every), chosen])


def band_gap(bands: int) -> float:
    """Pixels between the columns of two heads."""
    return 6.0 if bands <= 4 else 4.0 if bands <= 8 else 2.0 if bands <= 16 else 0.0


def row_height(rows: int, room: float) -> float:
    """Of rows that fit the room, 40 px at most, whole pixels where that costs little."""
    height = min(40.0, room / rows)
    return float(int(height)) if height >= 4 else height


def snap(size: float, count: int) -> float:
    """A size of whole pixels a cell, where that costs less than a fourteenth.

    >>> snap(204, 10), snap(204, 30)
    (200.0, 204)
    """
    whole = size // count * count
    return float(whole) if whole > size * 13 / 14 else size
