"""Choices: the exponential mechanism, its domination, its sensitivity, and a release like any other."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
from counting import DATASET, forbidden
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtri
from scipy.stats import chisquare
from toys import ledger_of_people, plan_with

from likeness.bundle.verdict import Wrong
from likeness.core.bounds import Part, PrivacyUnit
from likeness.core.errors import DataError, ReleaseError
from likeness.features.base import Candidate, Map
from likeness.ledger.ledger import Ledger
from likeness.privacy.accountant import compose
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.noise import choose
from likeness.privacy.plan import QueryShare
from likeness.privacy.receipt import CHOICE
from likeness.release import door
from likeness.release.choices import ChoiceQuery, draw_choices, scores_of
from likeness.release.door import Door
from likeness.release.records import Records
from likeness.release.released import from_bytes
from likeness.release.request import check_answer, request_of
from likeness.verify.receipts import check_claim

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE
FALSE_ALARM = 1e-6


@dataclass(frozen=True)
class Toy(Map):
    """Candidate c sees the place in column c of a row, times ten; those of one pair follow from each other."""

    name: ClassVar[str] = "toy_candidates"
    bounded_parts: ClassVar[tuple[Part, ...]] = ()
    sizes: tuple[tuple[int, int], ...] = ((1, 4), (2, 2), (3, 1), (1, 9))
    windows: tuple[tuple[int, int], ...] = ((0, 1), (1, 3), (0, 4))
    offset: int = 2

    @property
    def candidates(self) -> list[Candidate]:
        fitting = [tuple(window for window in self.windows if window[1] <= cells) for _, cells in self.sizes]
        return [Candidate(table, windows, self.offset) for table, windows in enumerate(fitting)]

    @property
    def tables(self) -> tuple[tuple[int, int], ...]:
        return self.sizes

    def cells_of_rows(self, x: Any) -> Iterator[np.ndarray]:
        return ((10 * x[:, column]).astype(np.int64) - 1 for column in range(len(self.sizes)))

    def remaining(self, chosen: Sequence[int]) -> list[int]:
        return [candidate for candidate in range(len(self.sizes)) if candidate // 2 not in {one // 2 for one in chosen}]


def asked(rounds: int = 2, **more: Any) -> ChoiceQuery:
    return ChoiceQuery("choices", "auxiliary", Toy(**more), rounds=rounds)


def rows(count: int = 300) -> Iterator[Records]:
    yield Records(np.random.default_rng(1).random((count, 4)), np.zeros(count, np.int64))


def scores(values: Any) -> np.ndarray:
    x = np.asarray(values, float).reshape(-1, 4)
    return np.array(scores_of(asked(), [Records(x, np.zeros(len(x), np.int64))])[0])


def test_a_choice_has_the_frequencies_of_the_exponential_mechanism() -> None:
    """By chi-square with a false alarm of 1e-6. Permute and flip would choose the best one in .72 of draws."""
    values, scale, draws = [3, 5, 1, 0], 2.0, 5_000
    counts = np.bincount([choose(values, scale) for _ in range(draws)], minlength=4)
    expected = np.exp(np.array(values) / scale)
    assert chisquare(counts, draws * expected / expected.sum()).pvalue > FALSE_ALARM
    chosen = [draw_choices(asked(), values, partial(choose, scale=scale))[0].tolist() for _ in range(draws)]
    first = np.bincount([one for one, _ in chosen], minlength=4)
    assert chisquare(first, draws * expected / expected.sum()).pvalue > FALSE_ALARM
    after = [other for one, other in chosen if one < 2]  # of the pair that is left
    assert {*after} <= {2, 3}
    likely = len(after) * expected[2:] / expected[2:].sum()
    assert chisquare(np.bincount(after, minlength=4)[2:], likely).pvalue > FALSE_ALARM
    assert draw_choices(asked(rounds=3), values, np.argmax).tolist() == [[1, 2, -1]]  # type: ignore[arg-type]


def normal(logits: np.ndarray) -> np.ndarray:
    """The normal quantile of a logistic probability, without loss near 1."""
    return -np.sign(logits) * ndtri(expit(-abs(logits)))


def test_every_choice_of_a_range_is_dominated_by_the_gaussian_that_is_charged() -> None:
    """Two points whose likelihood ratios are e^t and e^(t - range), for all ranges and t."""
    for length in np.geomspace(1e-4, 60, 60):
        logits = np.linspace(-60 - length, 60, 2_001)
        worst = (normal(logits + length) - normal(logits)).max()
        assert worst <= length * math.sqrt(math.pi / 8) * (1 + 1e-9)
        if length < 0.1:
            assert worst >= length * math.sqrt(math.pi / 8) * 0.999  # and no smaller Gaussian would do


cells = st.tuples(*[st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.95])] * 4)


@settings(deadline=None, max_examples=200)
@given(st.lists(cells, max_size=12), st.lists(cells, min_size=1, max_size=4), cells)
def test_neighbors_move_scores_by_no_more_than_the_range(table: list[Any], own: list[Any], other: Any) -> None:
    """A person of k rows comes or goes: all scores move the same way. A row is replaced: up and down."""
    moved = scores([*table, *own]) - scores(table)
    assert (moved >= 0).all() and (moved <= len(own)).all()
    replaced = scores([*table, other]) - scores([*table, own[0]])
    assert replaced.max() - replaced.min() <= 2 and abs(replaced).max() <= 1


def test_the_ranges_are_reached_with_both_signs() -> None:
    up, down = [0.1, 0, 0, 0], [0, 0, 0.1, 0]
    assert (scores([down]) - scores([up])).tolist() == [-1, 0, 1, 0] and (scores([up] * 3) - scores([]))[0] == 3
    one, unit = asked(rounds=1), PrivacyUnit("pid", 3)
    ranges = [one.sensitivity_squared(*facts) for facts in ((ADD,), (REPLACE,), (ADD, unit))]
    assert ranges == pytest.approx([factor * math.pi / 8 * 4**20 for factor in (1, 4, 9)])


@pytest.fixture
def ledger() -> Ledger:
    return ledger_of_people()


PLAN = plan_with([QueryShare("choices", "auxiliary", 1.0)])


def test_choices_are_one_release_for_ever(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry, crash after the draw, and the same request give the same indices and cost nothing more."""
    commit = Ledger.commit
    monkeypatch.setattr(Ledger, "commit", lambda *_: (_ for _ in ()).throw(OSError("died")))
    with pytest.raises(OSError, match="died"):
        Door(PLAN, ledger, DATASET, rows).release(asked())
    monkeypatch.setattr(Ledger, "commit", commit)
    first = Door(PLAN, ledger, DATASET, forbidden).release(asked())  # the draw was staged
    assert Door(PLAN, ledger, DATASET, forbidden).release(asked()) == first
    released, budget = from_bytes(first, "choices"), ledger.budget("people")
    receipt = released.receipt
    assert budget is not None and budget.spent_rho == receipt.rho == pytest.approx(PLAN.rho, rel=1e-9)
    length = receipt.noise_scale * 2.0**-20
    assert receipt.mechanism == CHOICE and receipt.rho == pytest.approx(2 * math.pi / 16 / length**2)
    assert compose([receipt], 1e-5).epsilon == pytest.approx(1, abs=1e-6) and asked().allows(released.lattice)
    check_answer(asked(), "", released, "choices")
    for lie in ([0, 1], [0, 4], [0, -1], [-1, 2]):
        with pytest.raises(ReleaseError, match="choice that"):
            check_answer(asked(), "", replace(released, lattice=np.array([lie])), "choices")
    with pytest.raises(ReleaseError, match="another question"):  # of other candidates
        check_answer(asked(offset=3), "", released, "choices")


LIES: list[Callable[[Any], dict[str, Any]]] = [
    lambda r: {"rho": r.rho * 2 / math.pi},  # as OpenDP's map says
    lambda r: {"rho": r.rho / 2},
    lambda r: {"noise_multiplier": r.noise_multiplier * 2},
    lambda r: {"noise_scale": r.noise_scale * 2},
    lambda r: {"sensitivity": r.sensitivity / 2},
    lambda r: {"dimension": 1},
    lambda r: {"lattice_bits": 19},
    lambda r: {"num_groups": 2},
    lambda r: {"adjacency": "replace_one"},
    lambda r: {"adjacency": "other"},
    lambda r: {"change": "one_replaced"},
    lambda r: {"delta_keys": 1e-9},
    lambda r: {"mechanism": "discrete_gaussian"},
    lambda r: {"unit": PrivacyUnit("pid", 2)},
    lambda r: {"feature": {**r.feature, "rounds": 1}},
    lambda r: {"feature": {**r.feature, "rounds": True}},
    lambda r: {"feature": {**r.feature, "number": 0}},
    lambda r: {"feature": {**r.feature, "score": "distance"}},
    lambda r: {"feature": {**r.feature, "candidates": "any"}},
    lambda r: {"feature": {**r.feature, "terms": "each_person"}},
    lambda r: {"feature": {**r.feature, "more": 1}},
]


@pytest.mark.parametrize("lie", LIES)
def test_lies_about_choices_are_refused(ledger: Ledger, lie: Callable[[Any], dict[str, Any]]) -> None:
    receipt = from_bytes(Door(PLAN, ledger, DATASET, rows).release(asked()), "choices").receipt
    assert check_claim("choices", receipt) is None
    with pytest.raises(Wrong):
        check_claim("choices", replace(receipt, **lie(receipt)))


def test_people_and_public_numbers_are_counted_as_for_sums() -> None:
    unit = PrivacyUnit("pid", 2)
    plan = plan_with([QueryShare("choices", "auxiliary", 1.0)], unit=unit)
    with pytest.raises(ReleaseError, match="number of its person"):
        door._draw(asked(), plan, 1.0, rows, None)  # type: ignore[arg-type]
    replaced = plan_with([QueryShare("choices", "auxiliary", 1.0)], adjacency=REPLACE, rows=299)
    with pytest.raises(DataError, match="num_records is 299"):
        door._draw(asked(), replaced, 1.0, rows, None)  # type: ignore[arg-type]
    assert request_of(asked(), "replace_one", 5.0, DATASET)["mechanism"] == CHOICE
