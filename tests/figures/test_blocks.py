import numpy as np
import pytest

from mha_core.figures.blocks import block_size, blocks

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("rows", "columns", "band"), [(3, 64, 16), (300, 512, 32), (256, 96, 32), (7, 65, 5), (100, 70, 7)]
)
def test_each_block_keeps_its_largest_entry_and_says_where_it_was(rows, columns, band):
    matrix = RANDOM.normal(size=(rows, columns))
    reduced = blocks(matrix, (81, 64), band=band)
    assert reduced.values.shape[0] <= 81
    assert reduced.values.shape[1] <= max(64, columns // band)
    np.testing.assert_array_equal(matrix[reduced.rows, reduced.columns], reduced.values)
    for i, (top, bottom) in enumerate(zip(reduced.row_starts, reduced.row_starts[1:], strict=False)):
        for j, (left, right) in enumerate(zip(reduced.column_starts, reduced.column_starts[1:], strict=False)):
            assert abs(reduced.values[i, j]) == np.abs(matrix[top:bottom, left:right]).max()
            assert left // band == (right - 1) // band  # no block straddles two heads


def test_small_matrices_are_left_alone():
    matrix = RANDOM.normal(size=(5, 64))
    reduced = blocks(matrix, (81, 64), band=16)
    assert reduced.size == (1, 1)
    assert reduced.values is matrix


def test_masked_scores_lose_against_every_number():
    matrix = np.array([[-np.inf, 0.5, -np.inf, -np.inf]])
    assert blocks(matrix, 2).values.tolist() == [[0.5, -np.inf]]


def test_a_block_size_divides_the_band_where_it_can():
    assert block_size(512, 64, 64) == 8
    assert block_size(60, 40, 30) == 2
    assert block_size(62, 40, 31) == 2  # 31 is prime: the last block of a band is smaller
