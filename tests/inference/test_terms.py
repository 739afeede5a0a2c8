"""The terms against generalized least squares with one unknown a cell of the joint table."""

from itertools import product

import numpy as np
import pytest

from likeness.inference.terms import Floats, Histogram, Table, Terms

SIZES = {"y": 2, "a": 3, "b": 4, "d": 2}
TABLES = [(("y",), 2.0), (("y", "a", "b"), 3.0), (("y", "a", "d"), 1.5), (("y", "b", "d"), 1.0), (("a", "b"), 4.0)]
FIRSTS, FINE, FINE_VARIANCE = np.array([0, 2, 3, 5]), 7, 1.21
CELLS = int(np.prod(list(SIZES.values())))


def adding(columns: tuple[str, ...]) -> Floats:
    """The matrix that makes the table of some columns of all joint cells."""
    unit = np.eye(CELLS).reshape(CELLS, *SIZES.values())
    others = tuple(place + 1 for place, name in enumerate(SIZES) if name not in columns)
    matrix: Floats = unit.sum(axis=others).reshape(CELLS, -1).T
    return matrix


def spreading() -> tuple[Floats, Floats]:
    """Fine cells from the sums of coarse ones, and a basis of what only the fine cells know."""
    even = np.zeros((FINE, len(FIRSTS)))
    for place, (first, last) in enumerate(zip(FIRSTS, [*FIRSTS[1:], FINE], strict=True)):
        even[first:last, place] = 1 / (last - first)
    within = np.linalg.svd(np.eye(FINE) - even @ np.linalg.pinv(even))[0][:, : FINE - len(FIRSTS)]
    return even, within


def released(total: bool) -> tuple[Terms, Floats, Floats]:
    """Terms of random tables, and the estimate and covariance of all unknowns by least squares."""
    generator = np.random.default_rng(0)
    counts = generator.integers(0, 50, CELLS).astype(float)
    even, within = spreading()
    unknown = np.r_[counts, generator.normal(size=within.shape[1])]
    matrices = [adding(columns) for columns, _ in TABLES]
    design = [np.c_[one, np.zeros((len(one), within.shape[1]))] for one in matrices]
    design.append(np.c_[even @ adding(("b",)), within])
    variances = [variance for _, variance in TABLES] + [FINE_VARIANCE]
    noisy = [m @ unknown + v**0.5 * generator.normal(size=len(m)) for m, v in zip(design, variances, strict=True)]
    spread = np.concatenate([np.full(len(m), v) for m, v in zip(design, variances, strict=True)])
    matrix, values = np.vstack(design), np.concatenate(noisy)
    weighted = matrix / spread[:, None]
    information, right = matrix.T @ weighted, weighted.T @ values
    if total:  # one linear constraint, exactly: Lagrange's multiplier
        row = np.r_[np.ones(CELLS), np.zeros(within.shape[1])]
        bordered = np.block([[information, row[:, None]], [row[None, :], np.zeros((1, 1))]])
        inverse = np.linalg.pinv(bordered, rcond=1e-12)
        estimate, covariance = (inverse @ np.r_[right, counts.sum()])[:-1], inverse[:-1, :-1]
    else:
        covariance = np.linalg.pinv(information, rcond=1e-12)
        estimate = covariance @ right
    tables = [
        Table(columns, part.reshape([SIZES[name] for name in columns]), variance)
        for (columns, variance), part in zip(TABLES, noisy[:-1], strict=True)
    ]
    histogram = Histogram(FIRSTS, noisy[-1], FINE_VARIANCE)
    return Terms(SIZES, tables, {"b": histogram}, counts.sum() if total else None), estimate, covariance


QUESTIONS = [(), ("y",), ("b",), ("a", "b"), ("y", "b"), ("y", "a", "b"), ("y", "b", "d")]


@pytest.mark.parametrize(("total", "columns"), list(product([False, True], QUESTIONS)))
def test_terms_are_least_squares(total: bool, columns: tuple[str, ...]) -> None:
    terms, estimate, covariance = released(total)
    generator = np.random.default_rng(1)
    left, right = ({name: generator.normal(size=(3, SIZES[name])) for name in columns} for _ in range(2))

    def joint(forms: dict[str, Floats]) -> Floats:
        matrix = np.ones((1, 1))
        for name in columns:
            matrix = np.kron(matrix, forms[name])
        within = covariance.shape[0] - CELLS
        return np.c_[matrix @ adding(columns), np.zeros((len(matrix), within))]

    assert terms.linear(left).reshape(-1) == pytest.approx(joint(left) @ estimate, rel=1e-8, abs=1e-7)
    expected = np.diag(joint(left) @ covariance @ joint(right).T)
    assert np.asarray(terms.covariance(left, right)).reshape(-1) == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("total", [False, True])
def test_fine_cells_are_least_squares(total: bool) -> None:
    terms, estimate, covariance = released(total)
    even, within = spreading()
    left, right = np.random.default_rng(2).normal(size=(2, 5, FINE))
    fine = np.c_[even @ adding(("b",)), within]
    assert terms.fine("b", left) == pytest.approx(left @ fine @ estimate, rel=1e-8, abs=1e-7)
    expected = np.diag(left @ fine @ covariance @ fine.T @ right.T)
    assert terms.fine_covariance("b", left, right) == pytest.approx(expected, rel=1e-7, abs=1e-9)


def test_what_no_table_holds_is_not_measured() -> None:
    terms, _, _ = released(False)
    assert terms.is_measured(("a", "d")) and terms.is_measured(()) and not terms.is_measured(("a", "b", "d"))
