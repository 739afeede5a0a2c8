"""Groups of images by cluster, and images measured from their class: how far neighboring tables lie apart."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeness.core.errors import ReleaseError
from likeness.features.base import FeatureMap
from likeness.features.column_marginals import Constant
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.records import AllRecords, EachCluster, EachRecord, Records, WithClass
from likeness.release.sums.lattice_sum import lattice_sum
from likeness.testing.maps import check_neighbors, distance_squared
from likeness_images.moments.clusters_map import ClassHalves
from likeness_images.moments.cosine_map import CosineMoments, CosineNorms, cosine_basis
from likeness_images.moments.levels_map import CosineLevels

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE

# Two classes of images of 2 x 3 pixels: the first splits by brightness and by left against right, the second once.
HALVES = ClassHalves((2, 3), 3, 1.0, 2, (127, 0, 0, 0, 0, 127, 127, 0, 0, 0, 0, 0), (60.0, 10.0, 90.0, 0.0))
CLUSTERS = EachCluster(HALVES)


def images(count: int, seed: int) -> Records:
    """Bright and dark ones, of classes 0 and 1 and of a class that no group holds."""
    random = np.random.default_rng(seed)
    return Records(random.random((count, 6)) * random.random((count, 1)), random.integers(-1, 3, count))


@pytest.mark.parametrize("feature", [Constant(), CosineMoments((2, 3), 3, 1.0, 0.3), CosineLevels((2, 3), 3, 2, 0.3)])
@given(n=st.integers(2, 30), seed=st.integers(0, 10**6), data=st.data())
def test_neighbors_by_cluster_are_as_near_as_by_class(
    feature: FeatureMap, n: int, seed: int, data: st.DataObject
) -> None:
    query = Query("q", "privatize", feature, CLUSTERS.num_groups, CLUSTERS)
    check_neighbors(query, images, n, seed, data.draw(st.integers(0, n - 1)))
    assert query.sensitivity_squared(ADD) == Query("q", "privatize", feature, 2).sensitivity_squared(ADD)


def test_an_image_that_moves_to_another_cluster_reaches_the_bound() -> None:
    """White and black images of one class, the same brightness otherwise: two groups change."""
    query = Query("q", "privatize", Constant(), CLUSTERS.num_groups, CLUSTERS)
    black, white = (Records(np.full((1, 6), shade), np.zeros(1, dtype=np.int64)) for shade in (0.0, 1.0))
    first, second = (lattice_sum(query, [one]) for one in (black, white))
    assert distance_squared(first, second) == query.sensitivity_squared(REPLACE)


def test_every_record_is_in_one_group_of_its_class_in_chunks_of_any_size() -> None:
    query = Query("q", "privatize", Constant(), CLUSTERS.num_groups, CLUSTERS)
    whole = images(200, 1)
    total = lattice_sum(query, [whole]) >> query.lattice_bits
    for label in (0, 1):
        assert total[4 * label : 4 * label + 4].sum() == (whole.labels == label).sum()
    assert (total[:4] > 0).all() and (total[4:, 0] > 0).tolist() == [True, True, False, False]
    parts = [whole[start : start + 7] for start in range(0, 200, 7)]
    assert np.array_equal(lattice_sum(query, parts), total << query.lattice_bits)


def test_a_map_that_lies_about_places_moves_no_record_to_another_class() -> None:
    class Wild(ClassHalves):
        def cell_indices(self, x: np.ndarray) -> np.ndarray:
            return np.full((len(x), 2), 9) * np.array([[-1, 1]])

    (found,) = (part.labels for part in EachCluster(Wild(**vars(HALVES))).stream([images(50, 2)]))
    assert found.tolist() == [{0: 0, 1: 7}.get(label, -1) for label in images(50, 2).labels.tolist()]


def test_clusters_need_as_many_cells_in_each_class() -> None:
    @dataclasses.dataclass(frozen=True)
    class Uneven(ClassHalves):
        @property
        def bounded_parts(self):  # type: ignore[no-untyped-def]
            first, second = super().bounded_parts
            return first, dataclasses.replace(second, width=3)

    with pytest.raises(ReleaseError, match="as many cells in each"):
        EachCluster(Uneven(**vars(HALVES)))


CENTERS = (64, -20, 0, 10, 30, 5)  # of two classes, three coefficients each


@pytest.mark.parametrize(
    ("feature", "terms", "groups"),
    [
        (CosineMoments((2, 3), 3, 1.0, 0.3, centers=CENTERS), EachRecord(), 2),
        (CosineMoments((2, 3), 3, 0.2, 0.3, centers=CENTERS), CLUSTERS, CLUSTERS.num_groups),
        (CosineNorms((2, 3), 3, 8, centers=CENTERS), AllRecords(), 1),
    ],
)
@given(n=st.integers(2, 30), seed=st.integers(0, 10**6), data=st.data())
def test_neighbors_measured_from_their_class_are_as_near_as_others(
    feature: FeatureMap, terms: EachRecord, groups: int, n: int, seed: int, data: st.DataObject
) -> None:
    query = Query("q", "privatize", feature, groups, WithClass(2, terms))
    check_neighbors(query, images, n, seed, data.draw(st.integers(0, n - 1)))
    for adjacency in (ADD, REPLACE):
        plain = Query("q", "privatize", feature, groups, terms)
        assert query.sensitivity_squared(adjacency) == plain.sensitivity_squared(adjacency)


def test_an_image_is_measured_from_its_class_in_chunks_of_any_size() -> None:
    """By hand: the sums of each class are those of a map without centers, of images moved by the center."""
    whole, bound = images(200, 1), 4.0  # nothing is shortened
    feature = CosineMoments((2, 3), 3, bound, 0.3, centers=CENTERS)
    query = Query("q", "privatize", feature, 2, WithClass(2))
    total = lattice_sum(query, [whole]) * 2.0**-query.lattice_bits
    parts = [whole[start : start + 7] for start in range(0, 200, 7)]
    assert np.array_equal(lattice_sum(query, parts) * 2.0**-query.lattice_bits, total)
    for label in (0, 1):
        members = whole.x[whole.labels == label]
        u = (members @ cosine_basis((2, 3), 3).T - np.array(CENTERS).reshape(2, 3)[label] / 64) / bound
        expected = u.T @ np.hstack([np.full((len(u), 1), 0.3**0.5), 0.7**0.5 * u])
        assert total[label] == pytest.approx(expected.ravel(), abs=2e-3)  # factors lie on a lattice


def test_clusters_are_those_of_the_image_itself() -> None:
    whole = images(50, 3)
    (plain,), (own,) = CLUSTERS.stream([whole]), WithClass(2, CLUSTERS).stream([whole])
    assert np.array_equal(plain.labels, own.labels) and np.array_equal(own.x[:, :6], whole.x)
    assert own.x[:, 6:].tolist() == [[float(label == 0), float(label == 1)] for label in whole.labels]
