"""Drawn rows exchange values: nearer to the mixture in pairs, and the same in single columns."""

from itertools import combinations

import numpy as np
import pytest

from likeness.methods.marginals import exchange

SIZES = (3, 4, 2, 3)


def rows(count: int = 800) -> tuple[np.ndarray, ...]:
    """Cells, classes and components of rows drawn one by one, and the mixture of five components that drew them."""
    random = np.random.default_rng(0)
    parts = [random.dirichlet(np.ones(size), 5) for size in SIZES]
    weights, labels = random.dirichlet(np.ones(5), 2), random.integers(0, 2, count)
    components = np.array([random.choice(5, p=weights[label]) for label in labels])
    cells = np.stack([[random.choice(len(part[k]), p=part[k]) for k in components] for part in parts], axis=1)
    return cells, labels, components, parts, weights


def distance(cells: np.ndarray, labels: np.ndarray, parts: list[np.ndarray], weights: np.ndarray) -> float:
    """Squared distance of all pairs by class from what the mixture expects."""
    total = 0.0
    for (i, j), label in ((pair, label) for pair in combinations(range(len(SIZES)), 2) for label in (0, 1)):
        counts = np.zeros((SIZES[i], SIZES[j]))
        np.add.at(counts, tuple(cells[labels == label][:, [i, j]].T), 1)
        expected = (labels == label).sum() * (parts[i] * weights[label][:, None]).T @ parts[j]
        total += float(np.square(counts - expected).sum())
    return total


def test_pairs_come_nearer_to_the_mixture_and_every_component_keeps_its_single_columns() -> None:
    cells, labels, components, parts, weights = rows()
    found = exchange.exchange_cells(cells, labels, components, parts, weights, np.random.default_rng(1))
    assert distance(found, labels, parts, weights) < 0.6 * distance(cells, labels, parts, weights)
    again = exchange.exchange_cells(cells, labels, components, parts, weights, np.random.default_rng(1))
    assert (again == found).all()
    for count in (*range(20, 40), 800):  # few rows, so that many have their neighbor in another component
        cells, labels, components, *rest = rows(count)
        found = exchange.exchange_cells(cells, labels, components, *rest, np.random.default_rng(1))
        for k in range(5):
            assert (np.sort(found[components == k], axis=0) == np.sort(cells[components == k], axis=0)).all()


@pytest.mark.parametrize("limit", ["_MOST_WORK", "_MOST_CELLS"])
def test_rows_stay_where_exchanges_would_take_too_long_or_too_much(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = rows(50)
    assert (exchange.exchange_cells(*given, np.random.default_rng(1)) != given[0]).any()
    monkeypatch.setattr(exchange, limit, 10)
    assert exchange.exchange_cells(*given, np.random.default_rng(1)) is given[0]


@pytest.mark.parametrize("count", [0, 1])
def test_one_row_has_no_partner(count: int) -> None:
    given = rows(count) if count else tuple(part[:0] if at < 3 else part for at, part in enumerate(rows(1)))
    assert (exchange.exchange_cells(*given, np.random.default_rng(1)) == given[0]).all()
