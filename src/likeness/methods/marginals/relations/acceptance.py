"""Relations that the release finds: what is asked, which relations are accepted, and how each is used.

Everything follows from the public schema and released values: it is post-processing, and a verifier computes it again.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likeness.core import rng
from likeness.data.encoding.bins import values_of
from likeness.features.base import blocks_of
from likeness.methods.base import CLASS_COUNTS, Context, together
from likeness.methods.marginals.relations.listing import Listing
from likeness.methods.marginals.relations.tables import (
    AT_LEAST,
    AT_MOST,
    DIFFERENCE,
    FUNCTION,
    MIDDLE,
    NEAR,
    RATIO,
    TOGETHER,
    Operand,
    Relation,
    RelationCandidates,
    RelationCells,
    RelationUse,
)
from likeness.release.choices import ChoiceQuery, scores_of
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released

if TYPE_CHECKING:
    from likeness.methods.marginals.columns import Single

CHOICES, RELATIONS, KEPT = "choices", "relations", "kept"
SHARES = {CHOICES: 0.02, RELATIONS: 0.04, KEPT: 0.02}
"""Of ρ. Where the noise is too large for choices, the three queries ask for products again."""
_SHARE_OF_COUNTS = 0.03  # of the number of records, by class
_EACH, _FEWEST, _MOST = 250, 4, 24  # records a choice, and choices
_COUNTED = 200_000  # records on which candidates are counted, about
_SIMULATED = (1_000, 20_000)  # rows of independent columns
_TOO_NOISY = 0.25  # of the records: from here on a choice is as good as a guess
_CLEAR, _NOISE = 4.0, 3.5  # standard deviations of a cell that a group is sure of, and of a second one that is none
_PURE = 0.5  # second cell of such a group, as a part of the first
_SEEN = 3.0  # standard deviations of an outer cell of what keeps a relation
_ASKED = 0.7  # part of rows with an answer that is no surplus
_ORDER = 0.97  # share up to which an order says more than a constant difference
_LEAST, _SURE, _ABOVE, _HALF = 0.93, 0.95, 0.05, 0.5
_BY_CHANCE = 0.15  # share that keeps a ratio where columns are independent
_PRECISE = 0.05  # deviation of a share up to which it is taken as it is
_POINT = 1e-4  # of the bounds: width of a single value
_DIGITS = 9


class RelationState:
    """The answers so far about relations, and the next question about them."""

    def __init__(
        self,
        context: Context,
        released: Mapping[str, Released],
        records: float,
        singles: "Sequence[Single]",
    ) -> None:
        """Take the answers, which may come later, in the order of the questions.

        Args:
            context: public facts.
            released: answers by the names of their queries.
            records: their released number.
            singles: what is known of each feature column.
        """
        self._context, self._released, self._records = context, released, records
        self._singles, self._columns = singles, context.schema.feature_columns

    @cached_property
    def rounds(self) -> int:
        """Number of choices, by the released number of records."""
        return int(min(max(self._records // _EACH, _FEWEST), _MOST))

    @cached_property
    def is_asked(self) -> bool:
        """Tell whether choices see relations at this noise and number of records, and there are candidates."""
        if CLASS_COUNTS not in self._released or not self._released[CLASS_COUNTS].noise_std:
            return CLASS_COUNTS in self._released and bool(self._listing.offers)
        # The noise of a sum at the price of choices.
        use = self._released[CLASS_COUNTS].noise_std * math.sqrt(_SHARE_OF_COUNTS / SHARES[CHOICES])
        scale = use * math.sqrt(math.pi / 8 * self.rounds)
        many = len(self._listing.offers)
        return many > 0 and scale * math.log(many + 1) <= _TOO_NOISY * self._records

    @cached_property
    def operands(self) -> tuple[Operand, ...]:
        """All feature columns."""
        every = []
        for column, single in zip(self._columns, self._singles, strict=True):
            bounds = (0.0, 0.0) if column.is_categorical else column.bounds
            log = not column.is_categorical and column.transform != "none"
            every.append(Operand(single.cells, *bounds, single.step or 0.0, log))
        return tuple(every)

    @cached_property
    def _listing(self) -> Listing:
        return Listing(self._context.schema, self.operands, self._records)

    def queries(self) -> Iterator[Query]:
        """Choices, one table for each, and how many rows keep what the tables say."""
        terms = together(self._context)
        yield ChoiceQuery(CHOICES, "auxiliary", self._candidates(), contributions=terms, rounds=self.rounds)
        if not self.tables:
            return
        yield Query(RELATIONS, "auxiliary", RelationCells(self.operands, self.tables), contributions=terms)
        yield Query(KEPT, "auxiliary", self.kept_map, contributions=terms)

    @cached_property
    def _independent(self) -> NDArray[np.float64]:
        """Dense encoded rows whose columns are independent, as many as there are records but for limits."""
        count, random = (
            int(min(max(self._records, _SIMULATED[0]), _SIMULATED[1])),
            rng.public(0, "relations.independent"),
        )
        x, rows = np.zeros((count, self._context.layout.width)), np.arange(count)
        for single in self._singles:
            below, start = np.cumsum(single.counts), single.cells.start
            cells = np.searchsorted(below, random.random(count) * below[-1], side="right").clip(max=len(below) - 1)
            if single.grid is None:
                x[rows, start + cells] = 1
                continue
            answered = cells < single.grid.size
            lows, highs = (np.array(units)[cells[answered]] for units in (single.grid.lows, single.grid.highs))
            x[answered, start] = lows + random.random(len(lows)) * (highs - lows)
            if single.cells.missing:
                x[~answered, start + 1] = 1
        return x

    def _candidates(self) -> RelationCandidates:
        """The candidates with what independent columns would give."""
        x, listing, records = self._independent, self._listing, self._records
        part = min(1.0, _COUNTED / records)
        tables = tuple(listing.relations), tuple(listing.offers)
        free = RelationCandidates(self.operands, *tables, (0,) * len(listing.offers), 0, 2**32 - 1)
        scores, count = scores_of(ChoiceQuery("null", "", free), [Records(x, np.zeros(len(x), np.int64))])
        # What fewer rows keep is not accepted, and need not be chosen.
        answered = [_ASKED * np.count_nonzero(cells_of_rows >= 0) for cells_of_rows in free.cells_of_rows(x)]
        keepers = [max(score, answered[table]) for score, (table, _) in zip(scores, listing.offers, strict=False)]
        offsets = tuple(math.floor(part * records * rows / count) for rows in keepers)
        least = math.floor(part * records * _ABOVE)
        return RelationCandidates(self.operands, *tables, offsets, least, int(part * (2**32 - 1)))

    @cached_property
    def choices_made(self) -> list[tuple[int, str]]:
        """Table and offer of each choice."""
        numbers = self._released[CHOICES].lattice.ravel().tolist()
        return [self._listing.offers[number] for number in numbers if 0 <= number < len(self._listing.offers)]

    @cached_property
    def tables(self) -> tuple[Relation, ...]:
        """The relations whose tables are asked, each once."""
        return tuple(self._listing.relations[table] for table in dict.fromkeys(table for table, _ in self.choices_made))

    @cached_property
    def _readings(self) -> list[tuple[str, tuple[int, ...], tuple[float, ...]]]:
        """The reading of each table: an offer, what keeps it, and weights of cells."""
        answer = self._released[RELATIONS]
        feature = RelationCells(self.operands, self.tables)
        readings = []
        for relation, (part, values) in zip(self.tables, blocks_of(feature.bounded_parts, answer.values), strict=True):
            counts, noise = values[0, 1:] / part.unit, answer.noise_std / part.unit
            answered = self._records - float(values[0, 0]) / part.unit
            readings.append(self._read(relation, counts.reshape(relation.size(self.operands)), noise, answered))
        return readings

    def _read(
        self, relation: Relation, counts: NDArray[np.float64], noise: float, answered: float
    ) -> tuple[str, tuple[int, ...], tuple[float, ...]]:
        if relation.kind == FUNCTION:
            ranked = np.sort(counts, axis=1)
            second = np.maximum(_PURE * ranked[:, -1], _NOISE * noise)
            clear = (ranked[:, -1] > _CLEAR * noise) & (ranked[:, -2] < second)
            return NEAR, tuple(np.where(clear, counts.argmax(axis=1), -1).tolist()), ()
        if relation.kind == TOGETHER:
            return NEAR, (1, 2), ()
        cells, width = counts[0], relation.width(self.operands)
        sums = np.convolve(cells[1:-1], np.ones(width), "valid")  # the outer cells hold what is far away
        first = 1 + int(sums.argmax())
        near = float(sums[first - 1])
        if relation.kind == DIFFERENCE and (first <= MIDDLE < first + width or near < _ORDER * answered - noise):
            return AT_MOST, (), ()  # an order: noise of half of all cells is more than that of the next question
        end = first + width
        if relation.kind != RATIO:  # a window of few cells may be wider than what keeps it
            seen = np.flatnonzero(cells[first:end] > _SEEN * noise)
            if not len(seen):
                return NEAR, (first, end), (round(1 / width, _DIGITS),) * width
            first, end = first + int(seen[0]), first + int(seen[-1]) + 1
        weights = np.maximum(cells[first:end] - noise, 0.0) + 1e-9
        return NEAR, (first, end), tuple(round(float(weight), _DIGITS) for weight in weights / weights.sum())

    @property
    def kept_map(self) -> RelationCells:
        """The map that counts which rows keep what the tables say."""
        return RelationCells(self.operands, self.tables, tuple(keepers for _, keepers, _ in self._readings))

    def uses(self) -> list[RelationUse]:
        """The accepted relations, each with the column that is computed, in the order in which they are repaired."""
        if not self.tables:
            return []
        answer, feature = self._released[KEPT], self.kept_map
        cells = feature.cell_indices(self._independent)
        accepted = []
        blocks = blocks_of(feature.bounded_parts, answer.values)
        for number, ((_, values), (offer, keepers, weights)) in enumerate(zip(blocks, self._readings, strict=True)):
            relation, counts, simulated = (
                self.tables[number],
                values[0],
                np.bincount(cells[:, number], minlength=4),
            )
            answered = float(counts[1:].sum())
            if answered < max(0.05 * self._records, 10 * answer.noise_std):
                continue
            equal, deviation = min(max(float(counts[3]) / answered, 0.0), 1.0), answer.noise_std / answered
            columns_kept = [2, 3]
            if not keepers:  # both columns of an order, in the direction of most rows
                offer = AT_MOST if counts[2] >= counts[1] else AT_LEAST
                columns_kept = [2 if offer == AT_MOST else 1, 3]
                if equal >= _ORDER:
                    offer, keepers, weights, columns_kept = NEAR, (MIDDLE, MIDDLE + 1), (1.0,), [3]
            null = float(simulated[columns_kept].sum() / max(simulated[1:].sum(), 1))
            share = float(counts[columns_kept].sum()) / answered
            right = share >= _SURE if relation.kind == FUNCTION else share + 2 * deviation >= _LEAST
            is_wide = relation.kind == RATIO and null > _BY_CHANCE  # nearly constant columns say nothing
            if is_wide or not (right and share - 3 * deviation > max(_HALF, null + _ABOVE)):
                continue
            target = min(share if deviation <= _PRECISE else share - 2 * deviation, 1.0)
            target, null, deviation, equal = (round(number, _DIGITS) for number in (target, null, deviation, equal))
            accepted.append(RelationUse(relation, offer, target, null, deviation, equal, keepers, weights))
        return self._with_dependents(accepted)

    def _with_dependents(self, accepted: Sequence[RelationUse]) -> list[RelationUse]:
        """Give each relation that computes a column that column: of arithmetic the one with most entropy.

        No column is computed twice, and none from itself. What says most is first.
        """
        sources: dict[int, set[int]] = {}

        def reaches(first: int, second: int) -> bool:
            return first == second or any(reaches(source, second) for source in sources.get(first, ()))

        placed: list[RelationUse] = []
        for uses in sorted(accepted, key=lambda use: use.null - use.share):
            relation = uses.relation
            if relation.kind == TOGETHER or uses.offer in (AT_MOST, AT_LEAST):
                placed.append(uses)
                continue
            if relation.kind == FUNCTION:
                options = [relation.events[0][1] if relation.events else relation.columns[-1]]
            else:
                options = sorted(relation.columns, key=lambda column: -self._entropy(column, relation.kind == RATIO))
            column_set = relation.column_set
            for column in options:
                others = column_set - {column}
                if column not in sources and not any(reaches(other, column) for other in others):
                    sources[column] = set(others)
                    placed.append(replace(uses, dependent=column))
                    break
        depth: dict[int, int] = {}

        def level(column: int) -> int:
            if column not in depth:
                depth[column] = 1 + max((level(source) for source in sources.get(column, ())), default=-1)
            return depth[column]

        return sorted(placed, key=lambda use: -1 if use.dependent < 0 else level(use.dependent))

    def _entropy(self, column: int, of_logarithm: bool) -> float:
        """Differential entropy of a number or of its logarithm: what is computed from others has most."""
        single, name = self._singles[column], self._columns[column]
        assert single.grid is not None
        ends = (values_of(name, units) for units in (single.grid.lows, single.grid.highs))
        least, entropy = (name.bounds[1] - name.bounds[0]) * _POINT, 0.0
        total = math.fsum(single.counts[: single.grid.size]) or 1.0
        for low, high, count in zip(*ends, single.counts, strict=False):
            high = max(high + (single.step or 0.0), low + least)
            width = high - low if not of_logarithm else math.log(high / low) if low > 0 else 0.0
            if count > 0 and width > 0:
                entropy -= count / total * math.log(count / total / width)
        return round(entropy, 6)
