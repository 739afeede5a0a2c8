"""The contract of a feature map: its bound holds, its specification rebuilds it, and each record is alone.

That a map treats each record by itself is the one thing that the door takes on trust (PRIVACY.md, "The door").
"""

import json
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from likeness.features.base import FeatureMap, evaluate, width
from likeness.methods import DEFAULT
from likeness.methods.maps import from_spec
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.lattice_sum import _evaluate, block_rows, lattice_sum

BIT = (
    "A feature's last bits depend on the other rows of the block, or on the row's place in it: then one record more or "
    "less moves the sums of others, and the sensitivity is not proved. If only places differ, it is the matrix product "
    "of this machine (MKL's AVX2 kernels treat rows 942, 943, 1022 and 1023 of 1024 otherwise)."
)
_ROWS = 37


def check_map(feature: FeatureMap, x: NDArray[np.float64], method: str = DEFAULT) -> None:
    """All rules of a map.

    Args:
        feature: the map.
        x: inputs as the door sees them, shape (n, d).
        method: to which it belongs.

    Raises:
        AssertionError: saying which rule it breaks.
    """
    check_bound(feature, x)
    check_specification(feature, x, method)
    check_numbers(feature, x.shape[1])
    check_rows_independent(feature, x.shape[1])
    check_bits_independent(feature, x.shape[1])


def features_of(feature: FeatureMap, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Features of rows, shape (n, width)."""
    features: NDArray[np.float64] = evaluate(feature, feature, x)
    return features


def check_bound(feature: FeatureMap, x: NDArray[np.float64]) -> None:
    """No row is longer than a part's declared bound, and none is negative where none may be."""
    features, start = features_of(feature, x), 0
    assert features.shape == (len(x), width(feature)), "the map returns another width than it declares"
    for part in feature.bounded_parts:
        block = features[:, start : start + part.width]
        longest = np.linalg.norm(block, axis=1).max()
        bound = math.sqrt(part.norm_bound_squared)
        assert longest <= bound * (1 + 1e-12), f"a row has norm {longest:.6g}, above the declared bound {bound:.6g}"
        assert not part.nonnegative or block.min() >= 0, "a part that is declared non-negative is negative"
        start += part.width


def check_specification(feature: FeatureMap, x: NDArray[np.float64], method: str = DEFAULT) -> None:
    """The public specification, as JSON, gives the same map."""
    rebuilt = from_spec(json.loads(json.dumps(feature.spec())), method)
    assert rebuilt.spec() == feature.spec(), "the specification does not rebuild itself"
    assert np.array_equal(features_of(rebuilt, x), features_of(feature, x)), "the rebuilt map has other features"


def cube(count: int, inputs: int, seed: int) -> NDArray[np.float64]:
    """Rows of the unit cube, corners and center among them."""
    x: NDArray[np.float64] = np.random.default_rng(seed).random((count, inputs))
    x[:3] = np.array([[0.0], [1.0], [0.5]])[:count]
    return x


def check_numbers(feature: FeatureMap, inputs: int) -> None:
    """Every feature of every row of the unit cube is a number, also of no row."""
    for count in (0, 1, _ROWS):
        features = features_of(feature, cube(count, inputs, 5))
        assert features.shape == (count, width(feature)) and features.dtype == np.float64
        assert np.isfinite(features).all(), "a feature is no finite number"


def check_rows_independent(feature: FeatureMap, inputs: int) -> None:
    """Batches of any shape give equal features, up to rounding, which matrix products leave to the shape."""
    x, others = cube(_ROWS, inputs, 6), cube(64, inputs, 7)
    together = features_of(feature, x)
    order = np.random.default_rng(8).permutation(_ROWS)
    for other_way in (
        np.concatenate([features_of(feature, row[None]) for row in x]),
        features_of(feature, x[order])[order.argsort()],
        features_of(feature, np.concatenate([others, x, 1 - others]))[64 : 64 + _ROWS],
    ):
        np.testing.assert_allclose(other_way, together, rtol=0, atol=1e-12)


def check_bits_independent(feature: FeatureMap, inputs: int) -> None:
    """Check that in the block of the door a row does not depend on the others by a bit."""
    query = Query("q", "privatize", feature)
    rows = block_rows(query)
    assert rows >= _ROWS
    x, others = cube(_ROWS, inputs, 6), cube(rows, inputs, 7)
    together = _evaluate(query, x)
    order = np.random.default_rng(8).permutation(_ROWS)
    indices = np.random.default_rng(9).permutation(rows)[:_ROWS]
    others[indices] = x
    assert np.array_equal(np.concatenate([_evaluate(query, row[None]) for row in x[:9]]), together[:9]), BIT  # alone
    assert np.array_equal(_evaluate(query, x[order]), together[order]), BIT  # in another order
    assert np.array_equal(_evaluate(query, others)[indices], together), BIT  # in a full block of others
    same = _evaluate(query, np.tile(x[-1], (rows, 1)))
    assert np.array_equal(same, np.broadcast_to(together[-1], same.shape)), BIT  # at every place of the block


def distance_squared(first: np.ndarray, second: np.ndarray) -> int:
    """Give the squared distance in exact integers."""
    return sum(int(value) ** 2 for value in (first - second).ravel())


def check_neighbors(query: Query, table: Callable[[int, int], Records], n: int, seed: int, index: int) -> None:
    """Check that the sum moves no farther than the query says, without one of n records or with another in its place.

    Args:
        query: about single records.
        table: records by their number and a seed.
        n: their number.
        seed: of the table.
        index: of the record.

    Raises:
        AssertionError: it moves farther.
    """
    records = table(n, seed)
    whole = lattice_sum(query, [records])
    removed = Records(np.delete(records.x, index, axis=0), np.delete(records.labels, index))
    moved = distance_squared(whole, lattice_sum(query, [removed]))
    assert moved <= query.sensitivity_squared(Adjacency.ADD_REMOVE_ONE)
    other = table(1, seed + 1)
    x, labels = np.array(records.x), records.labels.copy()
    x[index], labels[index] = other.x[0], other.labels[0]
    moved = distance_squared(whole, lattice_sum(query, [Records(x, labels)]))
    assert moved <= query.sensitivity_squared(Adjacency.REPLACE_ONE)
