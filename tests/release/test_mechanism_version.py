"""The same query on the same rows must give the sum that earlier releases were made of.

If one of these numbers changes, raise ``MECHANISM_VERSION`` in ``release/door.py`` (and put the new numbers here): else
a stored release would be returned for a request that now means something else.
"""

import numpy as np
import pytest

from likeness.features import CharacteristicFunction, FeatureMap, MixedFourierFeatures
from likeness.release.door import MECHANISM_VERSION
from likeness.release.lattice_sum import lattice_sum
from likeness.release.query import Query
from likeness.release.terms import Records

X = np.arange(24, dtype=np.float64).reshape(6, 4) / 23
LABELS = np.array([0, 1, 0, 1, 1, 0])
VERSION_1: dict[str, tuple[FeatureMap, list[int]]] = {
    "characteristic": (
        CharacteristicFunction(2, 4, 1.0, seed=0),
        [163862421, 597609816, 139932847, -989458990, -573234621, 538421277, 709664899, -1329785849],
    ),
    "mixed_fourier": (
        MixedFourierFeatures(1, 0.5, 0, (0, 1), (2, 3), 1),
        [387576695, 836293866, 460470688, 505409084, 265183346, 1309252959, 591193852, 638709456],
    ),
}


@pytest.mark.parametrize("name", VERSION_1)
def test_sums_of_version_1(name: str) -> None:
    feature, expected = VERSION_1[name]
    query = Query("q", "privatize", feature, num_groups=2)
    assert MECHANISM_VERSION == 1 and query.lattice_bits == 29
    # A last bit of a cosine may differ between machines; a lattice step or two is not another mechanism.
    assert lattice_sum(query, [Records(X, LABELS)]).ravel() == pytest.approx(np.array(expected), abs=6)
