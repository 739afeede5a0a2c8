"""Exchanges between rows: every one-way count stays, pairs come nearer to the model, and rounding decides nothing."""

import dataclasses
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likeness.data.encoding.condition import Condition
from likeness.features.cells import Cells
from likeness.generators.sampling import systematic
from likeness.methods.marginals import pair_swapping as exchanges
from likeness.methods.marginals.mixture import MixtureColumn, ProductMixture
from likeness.methods.marginals.pair_swapping import swap_pairs

SIZES = (3, 5, 2, 4)


@dataclasses.dataclass(frozen=True)
class Drawn:
    """Rows of a random model, and the model."""

    chosen: np.ndarray
    labels: np.ndarray
    components: np.ndarray
    probabilities: tuple[np.ndarray, ...]
    weights: np.ndarray

    def exchanged(self, rounds: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
        parts = tuple(own * scale for own in self.probabilities)
        return swap_pairs(self.chosen, self.labels, self.components, parts, self.weights, rounds, seeded(seed))

    def excess(self, chosen: np.ndarray) -> exchanges._Excess:
        return exchanges._Excess(chosen, self.labels, self.probabilities, self.weights)

    def distance(self, chosen: np.ndarray) -> float:
        """Squared distance of all pair counts by class from their expectation, by a loop."""
        total = 0.0
        for y, own in enumerate(self.weights):
            rows = chosen[self.labels == y]
            for i, j in combinations(range(len(SIZES)), 2):
                counts = np.zeros((SIZES[i], SIZES[j]))
                np.add.at(counts, (rows[:, i], rows[:, j]), 1)
                left, right = (self.probabilities[column] for column in (i, j))
                total += np.square(counts - len(rows) * np.einsum("k,ka,kb->ab", own, left, right)).sum()
        return total


def seeded(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def softmax(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits)
    return shares / shares.sum(axis=-1, keepdims=True)


def drawn(seed: int, n: int, classes: int = 2, components: int = 4) -> Drawn:
    generator = seeded(seed)
    parts = tuple(softmax(2 * generator.standard_normal((components, size))) for size in SIZES)
    weights = softmax(generator.standard_normal((classes, components)))
    labels = generator.integers(classes, size=n)
    rows = systematic(weights, labels, generator)
    chosen = np.stack([systematic(part, rows, generator) for part in parts], axis=1)
    return Drawn(chosen, labels, rows, parts, weights)


@pytest.mark.long
@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 400), rounds=st.integers(0, 3))
def test_every_value_stays_in_its_column_and_component_and_pairs_are_never_farther(
    seed: int, n: int, rounds: int
) -> None:
    one = drawn(seed, n)
    before = one.chosen.copy()
    after = one.exchanged(rounds)
    assert np.array_equal(one.chosen, before), "the rows that were given have changed"
    for column, size in enumerate(SIZES):
        place = one.components * size
        assert np.array_equal(np.bincount(place + after[:, column]), np.bincount(place + before[:, column]))
    assert one.excess(after).distance() <= one.excess(before).distance()
    if rounds == 0:
        assert np.array_equal(after, before)


def test_the_excess_is_what_a_loop_says_after_every_exchange() -> None:
    one = drawn(2, 700)
    excess = one.excess(one.chosen)
    chosen = one.chosen.copy()
    for column in range(len(SIZES)):
        excess.swap(chosen, one.labels, column, exchanges._pairs(one.components, seeded(column)))
        assert np.array_equal(excess._values, one.excess(chosen)._values)
    assert not np.array_equal(chosen, one.chosen), "nothing was exchanged"
    assert excess.distance() / 256 == pytest.approx(one.distance(chosen), rel=0.02)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), n=st.integers(0, 300))
def test_pairs_are_two_different_rows_of_a_group_and_no_row_is_in_two(seed: int, n: int) -> None:
    groups = seeded(seed).integers(7, size=n)
    pairs = exchanges._pairs(groups, seeded(seed + 1))
    assert len(np.unique(pairs)) == pairs.size
    assert np.array_equal(groups[pairs[:, 0]], groups[pairs[:, 1]])
    assert len(pairs) == sum(int(count) // 2 for count in np.bincount(groups, minlength=7))


def test_a_round_that_is_of_no_use_is_taken_back_and_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    one, seen = drawn(3, 400), []

    def shuffle(self: object, chosen: np.ndarray, labels: np.ndarray, column: int, pairs: np.ndarray) -> None:
        seen.append(column)
        chosen[:, column] = np.roll(chosen[:, column], 1)

    monkeypatch.setattr(exchanges._Excess, "swap", shuffle)
    assert np.array_equal(one.exchanged(50), one.chosen)
    assert len(seen) <= 10 * len(SIZES), "it went on after a round of no use"


@pytest.mark.long
def test_a_processor_that_rounds_otherwise_makes_the_same_exchanges() -> None:
    one = drawn(4, 20_000)
    assert np.array_equal(one.exchanged(3), one.exchanged(3, scale=1 + 1e-14))
    assert not np.array_equal(one.exchanged(3), one.exchanged(3, seed=1))


@pytest.mark.long
@settings(max_examples=200)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 60), column=st.integers(0, 3))
def test_a_pair_exchanges_if_and_only_if_that_alone_brings_the_counts_nearer(seed: int, n: int, column: int) -> None:
    one = drawn(seed, n, components=1)
    pair = seeded(seed).permutation(n)[None, :2]
    exchanged = one.chosen.copy()
    exchanged[pair[0], column] = exchanged[pair[0][::-1], column]
    nearer = one.excess(exchanged).distance() < one.excess(one.chosen).distance()
    found = one.chosen.copy()
    one.excess(one.chosen).swap(found, one.labels, column, pair)
    assert np.array_equal(found, exchanged if nearer else one.chosen)


def test_one_column_has_no_pairs() -> None:
    one = drawn(6, 100)
    alone = swap_pairs(one.chosen[:, :1], one.labels, one.components, one.probabilities[:1], one.weights, 3, seeded(0))
    assert np.array_equal(alone, one.chosen[:, :1])


def test_rows_without_a_partner_stay_and_take_the_randomness_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the values that are drawn next do not depend on the shortcut."""
    one, streams = drawn(6, 3), [seeded(1), seeded(1)]
    for stream in streams:
        rows = swap_pairs(one.chosen, one.labels, np.arange(3), one.probabilities, one.weights, 3, stream)
        assert np.array_equal(rows, one.chosen)
        monkeypatch.setattr(exchanges.np, "unique", lambda _: ())  # the second time without the shortcut
    assert streams[0].random() == streams[1].random()


def test_work_and_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    one = drawn(5, 400)
    monkeypatch.setattr(exchanges, "_MOST_CELLS", one.excess(one.chosen)._values.size - 1)
    assert np.array_equal(one.exchanged(3), one.chosen)
    monkeypatch.setattr(exchanges, "_MOST_CELLS", one.excess(one.chosen)._values.size)
    monkeypatch.setattr(exchanges, "_MOST_LOOKUPS", 2 * 400 * 4 * 3 - 1)
    assert np.array_equal(one.exchanged(3), one.chosen)
    monkeypatch.setattr(exchanges, "_MOST_LOOKUPS", 2 * 400 * 4 * 3)
    assert not np.array_equal(one.exchanged(3), one.chosen)


def mixture(rounds: int) -> ProductMixture:
    columns = [MixtureColumn(Cells(start, size)) for start, size in zip((0, 3, 8, 10), SIZES, strict=True)]
    model = ProductMixture(columns, num_classes=2, num_components=6, width=14, swap_rounds=rounds)
    model.start_from(np.ones(14), seeded(0))
    return model


def test_drawn_rows_are_nearer_to_the_model_also_where_a_category_is_given() -> None:
    labels = np.arange(4_000) % 2
    for cells in ({}, {1: 2}, {0: 0, 3: 1}):
        off = {}
        for rounds in (0, 3):
            model = mixture(rounds)
            rows = model.draw(labels, seeded(1), {place: Condition((cell,)) for place, cell in cells.items()})
            parts, weights = model.exact()
            likelihood = np.prod([np.ones(6), *(parts[place][:, cell] for place, cell in cells.items())], axis=0)
            posterior = weights * likelihood / (weights @ likelihood)[:, None]
            starts = (0, 3, 8, 10)
            for place, cell in cells.items():
                assert (rows[:, starts[place] + cell] == 1).all()
            free = [place for place in range(4) if place not in cells]
            off[rounds] = 0.0
            for y in range(2):
                own = rows[labels == y]
                for i, j in combinations(free, 2):
                    a, b = (own[:, starts[c] : starts[c] + SIZES[c]] for c in (i, j))
                    expected = 2_000 * np.einsum("k,ka,kb->ab", posterior[y], parts[i], parts[j])
                    off[rounds] += np.square(a.T @ b - expected).sum()
        assert off[3] < 0.3 * off[0]


def test_a_hostile_number_of_rounds_is_refused() -> None:
    spec = mixture(3).spec()
    assert ProductMixture.from_spec(spec).swap_rounds == 3
    for rounds in (-1, 101, 2.5, "3", None, True):
        with pytest.raises(ValueError, match="rounds"):
            ProductMixture.from_spec({**spec, "swap_rounds": rounds})
