"""Contract of every registered feature map: its bound holds, its spec rebuilds it, its parts add up, each row is alone.

That a map treats each row by itself is the one thing that the door takes on trust (PRIVACY.md, "The door").
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from method_examples import EXAMPLES, LARGE, MORE, OUTER
from torch.utils._python_dispatch import TorchDispatchMode

from likeness.features.base import CellMap, FeatureMap, Map, MeanMap, OuterMap
from likeness.methods.maps import MAPS
from likeness.release.query import Query
from likeness.release.sums.lattice_sum import _evaluate
from likeness.release.sums.products import _factors
from likeness.testing.maps import (
    BIT,
    check_bits_independent,
    check_bound,
    check_numbers,
    check_rows_independent,
    check_specification,
    cube,
    features_of,
)

SIZED = [("small", EXAMPLES), ("large", LARGE)]
BOTH = pytest.mark.parametrize(
    ("feature", "inputs"),
    [
        *(pytest.param(*maps[name], id=f"{name}-{size}") for size, maps in SIZED for name in maps),
        *(pytest.param(*each, id=f"{each[0].name}-more-{number}") for number, each in enumerate(MORE)),
    ],
)


def records(count: int, inputs: int, seed: int, name: str) -> np.ndarray:
    """Encoded rows: units anywhere in the cube; for maps of mixed tables the last three columns are one-hot."""
    x = np.random.default_rng(seed).random((count, inputs)).round(1)
    if name in ("hermite", "mixed_fourier"):
        x[:, -3:] = np.eye(3)[(x[:, -3] * 2.9).astype(int)]
    return x


class Unconverted(TorchDispatchMode):
    """Refuses every conversion from double precision."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default and args[0].dtype == torch.float64:
            assert result.dtype == torch.float64, "public numbers are converted in every step"
        return result


EXAMPLE = pytest.mark.parametrize(
    ("feature", "inputs", "name"),
    [*(pytest.param(*EXAMPLES[name], name, id=name) for name in EXAMPLES), *((*each, "") for each in MORE)],
)


def test_every_registered_map_has_an_example() -> None:
    assert set(EXAMPLES) == set(LARGE) == {name for name, kind in MAPS.items() if not hasattr(kind, "candidates")}


@pytest.mark.long
@EXAMPLE
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_bound_and_sign_hold(feature: FeatureMap, inputs: int, name: str, seed: int) -> None:
    check_bound(feature, records(64, inputs, seed, name))


@EXAMPLE
def test_spec_rebuilds_the_map(feature: FeatureMap, inputs: int, name: str) -> None:
    check_specification(feature, records(16, inputs, 3, name))


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in EXAMPLES if MAPS[name].takes_tensors])
def test_one_map_for_door_and_generator(name: str) -> None:
    """Single precision agrees with double, gradients flow, and no step after the first converts public numbers."""
    feature, inputs = EXAMPLES[name]
    x = torch.from_numpy(records(16, inputs, 4, name))
    single = x.float().requires_grad_()
    features = feature(single)
    assert torch.allclose(features.double(), feature(x), atol=1e-5)
    with Unconverted():
        features = feature(single)
    features.sum().backward()
    assert single.grad is not None and bool(torch.isfinite(single.grad).all())


@BOTH
def test_every_feature_is_a_number(feature: FeatureMap, inputs: int) -> None:
    check_numbers(feature, inputs)
    if isinstance(feature, Map) and feature.takes_tensors:
        assert feature(torch.from_numpy(cube(37, inputs, 5)).float()).dtype == torch.float32


@pytest.mark.long
@BOTH
def test_a_row_does_not_depend_on_the_others(feature: FeatureMap, inputs: int) -> None:
    check_rows_independent(feature, inputs)
    check_bits_independent(feature, inputs)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in EXAMPLES if isinstance(EXAMPLES[name][0], MeanMap)])
def test_means_are_those_of_the_features(name: str) -> None:
    """A map's own way to its mean is its mean, group by group, and has the same gradient."""
    feature, inputs = EXAMPLES[name]
    assert isinstance(feature, MeanMap)
    x = torch.from_numpy(records(37, inputs, 6, name)).requires_grad_()
    counts = [20, 17]
    found = feature.means(x, counts)
    features = feature(x)
    expected = torch.stack([features[:20].mean(dim=0), features[20:].mean(dim=0)])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)
    some = torch.rand(found.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    own = torch.autograd.grad((some * found).sum(), x)[0]
    torch.testing.assert_close(own, torch.autograd.grad((some * expected).sum(), x)[0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", [name for name in EXAMPLES if isinstance(EXAMPLES[name][0], CellMap)])
def test_places_are_those_of_the_features_and_each_row_s_own(name: str) -> None:
    feature, inputs = EXAMPLES[name]
    assert isinstance(feature, CellMap)
    x = cube(37, inputs, 6)
    places = feature.cell_indices(x)
    assert np.array_equal(np.concatenate([feature.cell_indices(row[None]) for row in x]), places)
    assert np.array_equal(feature.cell_indices(x[::-1])[::-1], places)
    dense, start = features_of(feature, x), 0
    for part, place in zip(feature.bounded_parts, places.T, strict=True):
        found = dense[:, start : start + part.width]
        assert np.array_equal(found.argmax(axis=1), place) and ((found != 0).sum(axis=1) == 1).all()
        start += part.width


@pytest.mark.long
@pytest.mark.parametrize(
    "feature", OUTER, ids=lambda feature: f"{getattr(feature, 'architecture', feature.name)}-{len(feature.shape)}d"
)
def test_factors_are_those_of_the_features_and_each_row_s_own_by_a_bit(feature: FeatureMap) -> None:
    assert isinstance(feature, OuterMap)
    query, rows = Query("q", "privatize", feature), 1024

    def joined(x: np.ndarray) -> np.ndarray:
        return np.concatenate([f for pair in _factors(query, feature, x, rows) for f in pair], axis=1)

    x, others = cube(37, 100, 6), cube(rows, 100, 7)
    together = joined(x)
    order = np.random.default_rng(8).permutation(37)
    places = np.random.default_rng(9).permutation(rows)[:37]
    others[places] = x
    assert np.array_equal(np.concatenate([joined(row[None]) for row in x[:9]]), together[:9]), BIT  # alone
    assert np.array_equal(joined(x[order]), together[order]), BIT  # in another order
    assert np.array_equal(joined(others)[places], together), BIT  # in a full block of others
    same = joined(np.tile(x[-1], (rows, 1)))
    assert np.array_equal(same, np.broadcast_to(together[-1], same.shape)), BIT  # at every place of the block
    pairs = [f for pair in _factors(query, feature, x, rows) for f in pair]
    products = [a[:, :, None] * b[:, None, :] for a, b in zip(pairs[::2], pairs[1::2], strict=True)]
    assert np.array_equal(np.concatenate([p.reshape(37, -1) for p in products], axis=1), _evaluate(query, x))
    squares = sum(np.square(p).sum(axis=(1, 2)) for p in products)
    assert np.abs(squares[1:] - 1).max() < 1e-9 and squares[0] < 1 + 1e-9  # a black image has no moments
    assert all(np.square(b).sum(axis=1).max() < 1 + 1e-9 for b in pairs[1::2])
