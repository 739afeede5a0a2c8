import numpy as np
import pytest

from likeness.evaluation.marginals import cramers_v


def test_a_column_and_its_copy_have_one_and_strangers_none() -> None:
    draw = np.random.default_rng(0)
    a, b = draw.integers(0, 5, 5000), draw.integers(0, 30, 5000)
    matrix = cramers_v(np.stack([a, (a + 2) % 5, b], axis=1), [5, 5, 30])
    assert matrix[0, 1] == pytest.approx(1, abs=1e-3)
    assert matrix[0, 2] < 0.06  # uncorrected it would be about sqrt(29 / 5000) = .076 on average
    assert np.array_equal(matrix, matrix.T) and np.array_equal(np.diag(matrix), np.ones(3))


def test_two_by_two_by_hand() -> None:
    # 40 30 / 10 20: chi² = n (ad - bc)² / (70 · 30 · 50 · 50) = 4.7619; V² = (chi²/n - 1/99) / (2 - 1/99 - 1)
    codes = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [40, 30, 10, 20], axis=0)
    assert cramers_v(codes, [2, 2])[0, 1] == pytest.approx(((0.047619 - 1 / 99) / (1 - 1 / 99)) ** 0.5, rel=1e-4)


def test_constant_columns_and_single_rows_have_none() -> None:
    codes = np.stack([np.zeros(50, int), np.arange(50) % 2], axis=1)
    assert cramers_v(codes, [3, 2])[0, 1] == 0
    assert cramers_v(codes[:1], [3, 2])[0, 1] == 0
