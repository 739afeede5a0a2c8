"""Sums of a table of a real size are those that earlier releases were made of.

``tests/contracts/test_golden_integers.py`` has the integers of every method on few rows.
"""

import numpy as np
import pytest

from likeness.core.format import RECIPE
from likeness.features.base import FeatureMap
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.lattice_sum import lattice_sum
from likeness_papers.hp.hermite_map import HermiteFeatures
from likeness_papers.merf.fourier_map import MixedFourierFeatures
from likeness_papers.pearl.characteristic_map import CharacteristicFunction

CHANGED = (
    "The same query on the same rows gives another sum than in earlier releases. If that is meant, raise "
    "RECIPE in src/likeness/core/format.py and put the new numbers here."
)
ROWS, PLACES = 3_000, 40  # one-hot coordinates
NUMBERS, ONE_HOT = tuple(range(60)), tuple(range(60, 100))
HERMITE = HermiteFeatures(
    *(NUMBERS, (), tuple((start, start + 4) for start in range(60, 100, 4)), (0.7,) * 60, (6.0,) * 60),
    *(100, 9, ((0, 1), (2, 69), (62, 63)), 0.5),
)
# Feature, lattice bits, and by class the sum of all coordinates, each times its number counted from 1.
LARGE: dict[str, tuple[FeatureMap, int, list[int]]] = {
    "characteristic": (CharacteristicFunction(1_000, 100, 0.25, seed=0), 25, [10311863433224597, 5736983084866701]),
    "hermite": (HERMITE, 30, [23786226606020077, 13130920653983010]),
    "mixed_fourier_scales": (
        MixedFourierFeatures(1_000, (0.5, 2.0, 8.0), 0, NUMBERS, ONE_HOT, 10),
        *(29, [11700838080403053, 6418136152635358]),
    ),
    "mixed_fourier": (
        MixedFourierFeatures(1_000, 2.0, 0, NUMBERS, ONE_HOT, 10),
        *(29, [5264301846370854, 2873335808864672]),
    ),
}


def table(places: int) -> Records:
    """Rows by integer arithmetic: the same on every machine. The last ``places`` coordinates are blocks of four."""
    row, column = np.arange(ROWS)[:, None], np.arange(100)[None, :]
    mixed = (row * row * 7_919 + row * (column + 1) * 104_729 + column * column * 1_299_709) % 2_003
    x = mixed / 2_002
    for start in range(100 - places, 100, 4):
        x[:, start : start + 4] = np.arange(4) == mixed[:, start : start + 1] % 4
    return Records(x, (mixed[:, 0] % 3 == 0).astype(np.int64))


@pytest.mark.long
@pytest.mark.parametrize("name", LARGE)
def test_sums_of_a_real_size_of_version_3(name: str) -> None:
    """Matrix products of this size take other paths through the linear algebra than those of six rows.

    A product of 100 terms may differ by 1e-14 between machines, which moves about one of 10^7 truncated features by a
    step: 50 in all at the last coordinate are far from chance and from any other mechanism.
    """
    feature, bits, weighted = LARGE[name]
    query = Query("q", "privatize", feature, num_groups=2)
    assert RECIPE == 1 and query.lattice_bits == bits, CHANGED
    total = lattice_sum(query, [table(0 if name == "characteristic" else PLACES)]) @ np.arange(1, query.width + 1)
    assert total == pytest.approx(np.array(weighted), abs=50 * query.width), CHANGED
