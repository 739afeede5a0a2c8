"""The same query on the same rows must give the sum that earlier releases were made of.

If one of these numbers changes, raise ``MECHANISM_VERSION`` in ``release/request.py`` (and put the new numbers here):
else a stored release would be returned for a request that now means something else.
"""

from collections.abc import Callable
from itertools import count

import numpy as np
import pytest

from likeness.features.base import FeatureMap
from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals
from likeness.features.constant import Constant
from likeness.methods.hp.hermite_map import HermiteFeatures
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.merf.fourier_map import MixedFourierFeatures
from likeness.methods.moments.cosine_map import CosineMoments, CosineNorms
from likeness.methods.moments.levels_map import CosineLevels, LevelCounts
from likeness.methods.pearl.characteristic_map import CharacteristicFunction
from likeness.methods.pearl.modal_map import Modal
from likeness.methods.pearl.mode import Modes
from likeness.methods.pearl.mode_statistics_map import ModeStatistics
from likeness.methods.pearl.pair_distance_map import PairDistance
from likeness.release.query import Query
from likeness.release.records import BucketPairs, Contributions, EachRecord, PositionPairs, Records
from likeness.release.request import MECHANISM_VERSION
from likeness.release.sums.lattice_sum import lattice_sum

CHANGED = (
    "The same query on the same rows gives another sum than in earlier releases. If that is meant, raise "
    "MECHANISM_VERSION in src/likeness/release/request.py and put the new numbers here."
)
X = np.arange(24, dtype=np.float64).reshape(6, 4) / 23
LABELS = np.array([0, 1, 0, 1, 1, 0])
ENCODED = np.concatenate([X[:, :2], np.eye(2)[[0, 1, 0, 0, 1, 1]]], axis=1)  # the last two: a category
LEVEL_CELLS = (2, 5, 7, 10, 13, 15)
COSINE_CELLS = (0, 3, 7, 9, 12, 14)  # of both classes, side by side
VERSION_3: dict[str, tuple[FeatureMap, list[int]]] = {
    "characteristic": (
        CharacteristicFunction(2, 4, 1.0, seed=0),
        [163862497, 597609992, 139932694, -989459024, -573234740, 538421546, 709664674, -1329785804],
    ),
    "hermite": (
        HermiteFeatures((0,), (), ((2, 4),), (0.7,), (6.0,), 1, 1, ((0, 1),), 0.5),
        [
            *(437812589, -256410335, 1073741824, 536870912, 524757645, 94402857, -610299271, 247680298),
            *(893112219, 233620081, 536870912, 1073741824, 709911454, 553139959, 109562394, 220826293),
        ],
    ),
    "mixed_fourier_scales": (
        MixedFourierFeatures(2, (0.5, 2.0), 0, (0, 1), (2, 3), 1, "", (1.0, 3.0)),
        [
            *(193788241, 1329095125, 418146876, -323518477, 460470688, 505409095),
            *(132591524, 1334284468, 654626474, -370914341, 591193845, 638709459),
        ],
    ),
    "mixed_fourier": (
        MixedFourierFeatures(1, 0.5, 0, (0, 1), (2, 3), 1),
        [387576483, 836293752, 460470688, 505409095, 265183049, 1309252949, 591193845, 638709459],
    ),
    "cosine_levels": (
        CosineLevels((2, 2), 3, 2, 0.5),
        [2638298316, -268435456, -268435456, 759250124, 0, 0, 2592242072, 0, 0, 1518500248, 0, 0],
    ),
    "cosine_moments": (
        CosineMoments((2, 2), 3, 1.0, 0.3),
        [
            *(1149792502, 1524201487, -58141341, -116346748, -64770723, -58174786, 3875964, 7755537),
            *(-129577340, -116375794, 7754310, 15515840, 1454209516, 1992356372, -77218858, -154518744),
            *(-64016949, -77255668, 3647737, 7299041, -128051845, -154524447, 7296665, 14600465),
        ],
    ),
    "level_counts": (LevelCounts((2, 2), 3, 8), [1 << 30 if place in LEVEL_CELLS else 0 for place in range(16)]),
    "cosine_norms": (CosineNorms((2, 2), 3, 8), [1 << 30 if place in COSINE_CELLS else 0 for place in range(16)]),
}


@pytest.mark.parametrize("name", VERSION_3)
def test_sums_of_version_3(name: str) -> None:
    feature, expected = VERSION_3[name]
    query = Query("q", "privatize", feature, num_groups=2)
    assert MECHANISM_VERSION == 3 and query.lattice_bits == (
        30 if name.startswith(("hermite", "cosine", "level")) else 29
    )
    # A last bit of a cosine may differ between machines; a lattice step or two is not another mechanism. A step of a
    # factor of an outer product is 2**15 of the whole; the products of hermite were not made of factors at first.
    near = np.full(query.width, 6)
    near[{"cosine_moments": 0, "hermite": 4}.get(name, query.width) :] <<= 15
    found = lattice_sum(query, [Records(ENCODED if name == "hermite" else X, LABELS)])
    assert (np.abs(found - np.reshape(expected, found.shape)) <= near).all(), CHANGED


def table(rows: int, columns: int, places: int = 0) -> Records:
    """Rows of a real table's size, by integer arithmetic: the same on every machine, without a random stream.

    The last ``places`` coordinates are one-hot blocks of four.
    """
    row, column = np.arange(rows)[:, None], np.arange(columns)[None, :]
    mixed = (row * row * 7_919 + row * (column + 1) * 104_729 + column * column * 1_299_709) % 2_003
    x = mixed / 2_002
    for start in range(columns - places, columns, 4):
        x[:, start : start + 4] = np.arange(4) == mixed[:, start : start + 1] % 4
    return Records(x, (mixed[:, 0] % 3 == 0).astype(np.int64))


def bucket_pairs() -> BucketPairs:
    """Pairs with public dice in place of the secret ones: multiples of an odd number, all different."""
    thrown = count(1)

    def dice(many: int) -> np.ndarray:
        return np.array([next(thrown) for _ in range(many)], dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)

    return BucketPairs(1_024, dice)


ROWS = 3_000
# Cells of three pairs of columns by class, and the lattice steps of one record: √1, √2 and √3 at 28 bits, rounded down.
PAIRS = (
    [
        *(136, 123, 227, 376, 363, 713),
        *(110, 126, 128, 122, 363, 387, 362, 340),
        *(134, 133, 137, 108, 107, 126, 124, 129, 232, 254, 229, 225),
    ],
    [
        *(69, 50, 148, 191, 201, 403),
        *(66, 68, 66, 67, 191, 187, 215, 202),
        *(78, 61, 69, 52, 49, 63, 73, 66, 130, 131, 139, 151),
    ],
)
# Cells of all three columns together, by class; a step is √0.7 at 28 bits, rounded down.
TRIPLE = (
    [
        *(46, 12, 63, 15, 36, 13, 44, 30, 28, 101, 21, 77),
        *(88, 121, 74, 93, 71, 113, 80, 99, 204, 153, 208, 148),
    ],
    [
        *(29, 10, 25, 5, 13, 3, 21, 13, 24, 55, 20, 49),
        *(49, 51, 44, 47, 36, 60, 52, 53, 106, 76, 119, 102),
    ],
)
# Each column's own cells, by class: sums of the above over the cells of the other column.
COLUMNS = [486, 1452, 512, 486, 940, 473, 513, 490, 462, 267, 795, 260, 251, 551, 257, 255, 281, 269]
STEPS = [268435456] * 6 + [379625062] * 8 + [464943848] * 12
MODES = (
    Modes(0, False, (0.5, 0.5), (0.3, 0.8), (0.1, 0.2)),
    Modes(98, True, (0.7, 0.2, 0.1), (0.2, 0.5, 0.9), (0.05, 0.1, 0.01)),
)
THREE = (Cells(0, 2, (0.25,)), Cells(1, 3, (0.5,), missing=True), Cells(96, 4))
# Feature, terms, classes, lattice bits, sums, and by how many steps they may differ.
SMALL_2: dict[str, tuple[FeatureMap, Callable[[], Contributions], int, int, list[int], int]] = {
    # Counts are exact on every machine.
    "constant": (Constant(), EachRecord, 2, 30, [1938 << 30, 1062 << 30], 0),
    "column_marginals": (ColumnMarginals(THREE), EachRecord, 2, 29, [cells << 29 for cells in COLUMNS], 0),
    "pair_marginals": (
        PairMarginals(THREE, (1, 2, 3)),
        EachRecord,
        2,
        28,
        [cells * step for counts in PAIRS for cells, step in zip(counts, STEPS, strict=True)],
        0,
    ),
    "pair_marginals of some pairs": (
        PairMarginals(THREE, pairs=((0, 1), (1, 2))),
        EachRecord,
        2,
        29,
        [cells << 29 for counts in PAIRS for cells in (*counts[:6], *counts[14:])],
        0,
    ),
    "pair_marginals with a table": (
        PairMarginals(THREE, (1, 2, 3), ((0, 1, 2),), 0.7),
        EachRecord,
        2,
        28,
        [
            cells * step
            for pairs, triple in zip(PAIRS, TRIPLE, strict=True)
            for cells, step in [*zip(pairs, STEPS, strict=True), *((cells, 224589215) for cells in triple)]
        ],
        0,
    ),
    # The sum of squares under a root may differ by its last bit, so that a distance may lie a lattice step off.
    "pair_distance by position": (
        PairDistance(100),
        lambda: PositionPairs(256, seed=0),
        1,
        29,
        [314477834791, 1438 << 29],
        6,
    ),
    "pair_distance by bucket": (PairDistance(100), bucket_pairs, 1, 29, [225062501810, 1_024 << 29], 6),
    # Exponentials may differ by their last bit.
    "mode_statistics": (
        ModeStatistics(MODES),
        EachRecord,
        1,
        29,
        [
            *(216395917748, 245961204623, 281488233139, 296610468302, 297157713409, 365895490603),
            *(80213869888, 193064116403, 21406844297),
            *(112043345995, 101769165521, 23004859308, 102140681765, 147013341011, 17603689887),
        ],
        6,
    ),
    "modal by position": (
        Modal(100, MODES, PairDistance(105)),
        lambda: PositionPairs(256, seed=0),
        1,
        29,
        [324036526594, 772020371456],
        6,
    ),
}


@pytest.mark.parametrize("name", SMALL_2)
def test_counts_and_distances_of_version_3(name: str) -> None:
    feature, terms, classes, bits, expected, steps = SMALL_2[name]
    query = Query("q", "auxiliary", feature, classes, terms())
    records = table(ROWS, 100)
    chunks = [Records(records.x[at : at + 700], records.labels[at : at + 700]) for at in range(0, ROWS, 700)]
    assert MECHANISM_VERSION == 3 and query.lattice_bits == bits, CHANGED
    assert lattice_sum(query, chunks).ravel() == pytest.approx(np.array(expected), abs=steps), CHANGED


# Feature, one-hot coordinates of the table, lattice bits, sums by class at some coordinates, and the sums by class of
# all coordinates, each times its number counted from 1.
LARGE_2: dict[str, tuple[FeatureMap, int, int, dict[int, list[int]], list[int]]] = {
    "characteristic": (
        CharacteristicFunction(1_000, 100, 0.25, seed=0),
        0,
        25,
        {
            **{0: [6728309624, 5049693318], 499: [47133551750, 25740040337], 999: [45951537919, 24655662139]},
            **{
                1_000: [-47053788152, -25672677133],
                1_500: [-52257683307, -28323560883],
                1_999: [-21091178111, -11206529153],
            },
        },
        [10311863433224597, 5736983084866701],
    ),
    "hermite": (
        HermiteFeatures(
            *(tuple(range(60)), (), tuple((s, s + 4) for s in range(60, 100, 4)), (0.7,) * 60, (6.0,) * 60),
            *(100, 9, ((0, 1), (2, 69), (62, 63)), 0.5),
        ),
        40,
        30,
        {
            **{0: [69452673074, 37899295864], 59: [69012154118, 38487893615], 60: [3341044084, -1796180591]},
            **{3_000: [526363, 424473], 6_059: [0, 0], 6_060: [43831161801, 22505441256]},
            **{6_100: [133214127597, 76444693601], 6_199: [-27916735, -33839213], 6_200: [86771594609, 41209488942]},
            **{6_239: [3108466789, -118756448], 6_240: [56109217792, 31123081744]},
        },
        [23786226606020077, 13130920653983010],
    ),
    "mixed_fourier_scales": (
        MixedFourierFeatures(1_000, (0.5, 2.0, 8.0), 0, tuple(range(60)), tuple(range(60, 100)), 10),
        40,
        29,
        {
            **{0: [-851633207, -1323053330], 333: [26134838, 32830764], 334: [11114299161, 7005576946]},
            **{999: [31254647608, 17164945520], 1_000: [455336856, 361113775], 2_039: [38114148056, 22070553440]},
        },
        [11700838080403053, 6418136152635358],
    ),
    "mixed_fourier": (
        MixedFourierFeatures(1_000, 2.0, 0, tuple(range(60)), tuple(range(60, 100)), 10),
        40,
        29,
        {
            **{0: [19049637666, 9675869187], 499: [19366261375, 10861394769], 999: [14168640017, 8096162936]},
            **{1_000: [-1461101565, -536076844], 1_500: [5894546667, 3299082679], 2_039: [38114148056, 22070553440]},
        },
        [5264301846370854, 2873335808864672],
    ),
}


@pytest.mark.parametrize("name", LARGE_2)
def test_sums_of_a_real_size_of_version_3(name: str) -> None:
    """Matrix products of this size take other paths through the linear algebra than those of six rows.

    A product of 100 terms may differ by 1e-14 between machines, which moves about one of 10^7 truncated features by a
    step: 6 steps at a coordinate, and 50 in all at the last one, are far from chance and from any other mechanism.
    """
    feature, places, bits, at, weighted = LARGE_2[name]
    query = Query("q", "privatize", feature, num_groups=2)
    assert MECHANISM_VERSION == 3 and query.lattice_bits == bits, CHANGED
    found = lattice_sum(query, [table(ROWS, 100, places)])
    assert found.shape == (2, query.width)
    for place, expected in at.items():
        assert found[:, place] == pytest.approx(np.array(expected), abs=6), f"coordinate {place}: {CHANGED}"
    total = found @ np.arange(1, query.width + 1)
    assert total == pytest.approx(np.array(weighted), abs=50 * query.width), CHANGED
