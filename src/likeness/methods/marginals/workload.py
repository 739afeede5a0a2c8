"""Section ``privatize``: bins of numbers, and the pairs and tables that matter, for the map of :mod:`.pair_map`."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations
from typing import Any, ClassVar

import numpy as np

from likeness.core.errors import PlanError
from likeness.core.typed import Section, require, setting
from likeness.data.schema.rules import learned_pairs
from likeness.data.schema.schema import Schema
from likeness.features.cells import Cells
from likeness.methods.base import Measured
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.settings import coordinates

MOST_BINS = 10_000  # of one numeric column: edges are made before the pairs are counted
_WEIGHT = 1000  # squared weights sum to this times the number of all pairs: the sensitivity is public from the start
_KEY = "marginals.privatize.workload"
_LARGEST_WEIGHT = 100  # beside a pair with ten thousand times the budget, others are noise
_TABLES_LEAST, _TABLES_MOST = 0.1, 0.9  # of the embedding's budget, for all tables of three columns or more together
_GAIN = 0.1  # of the noise of all cells of a pair, which its strength must exceed
_UNSEEN = 0.1  # what a pair may hold that its products do not show
_CLEAR = 3  # budget that clear pairs share among themselves, over what all pairs share
_Weights = Mapping[tuple[int, ...], int]


@dataclass(frozen=True)
class Workload(Section):
    """Section ``marginals.privatize``: public knowledge only, since a choice by the rows would be a release."""

    bins: int = setting(16, "most cells of a number in pairs; edges follow a noisy histogram", least=2, most=MOST_BINS)
    workload: tuple[Mapping[str, Any], ...] = setting(
        (), "what matters beside the pairs that are chosen: [{columns: [age, sex], weight: 3}]"
    )
    max_coordinates: int = coordinates(20_000_000, ", at 130 bytes each; or choose fewer pairs")

    by_row_set: ClassVar[bool] = False  # whether an entry counts only where all its columns are

    def __post_init__(self) -> None:
        """Check ranges."""
        super().__post_init__()
        seen: set[frozenset[str]] = set()
        for index, entry in enumerate(self.workload):
            where, columns, weight = f"{_KEY}[{index}]", entry.get("columns"), entry.get("weight", 1)
            listed = isinstance(columns, list | tuple) and all(isinstance(name, str) for name in columns)
            require(listed and set(entry) <= {"columns", "weight"}, where, entry, "columns, a list, and weight")
            assert columns is not None
            require(len({*columns}) == len(columns) > 0, where, columns, "different columns")
            require(frozenset(columns) not in seen, where, columns, "named once in the list")
            seen.add(frozenset(columns))
            whole = type(weight) is int and 1 <= weight <= _LARGEST_WEIGHT
            require(whole, f"{where}.weight", weight, f"a whole number from 1 to {_LARGEST_WEIGHT}")

    def feature(
        self, columns: tuple[Cells, ...], schema: Schema, classes: int, shown: tuple[Sequence[float], bool, float]
    ) -> PairMarginals:
        """The map of the embedding: cells of pairs, tables, and single columns by class.

        Named pairs, and those of functions without a table, come first. The stronger another pair, the earlier it is
        taken. As many are taken as make the sum of what they show and may hold, beyond a tenth of the noise of all
        their cells, largest. So little noise takes all. Budgets of pairs go with their weights in the settings. Pairs
        that come first or show something share three quarters of it beside what all pairs share. A single column by
        class has that of a mean pair. Where noise hides the cells of pairs, one is taken.

        *The largest number of coordinates* is ``max_coordinates``, a public setting, whatever is released. Taken are
        the named pairs, and of the others none, the first, or as many as fit beside named ones, tables and single
        columns. Before anything is released, the widest pairs stand for those that will be taken, after the named ones,
        and what is taken later has no more cells than these. If these and one more do not fit, this first map has too
        many coordinates, and the plan is refused. Otherwise every choice fits, for none begins with a wider pair. The
        choice itself follows from released numbers.

        Args:
            columns: cells of each feature column.
            schema: public.
            classes: of the label.
            shown: strengths of all pairs, infinite before they are measured; whether noise hides cells of pairs; and
                the noise of a share in a cell, if one pair had the whole budget.

        Raises:
            PlanError: the workload names what is no feature column.
        """
        sets, every = self._sets(schema), [*combinations(range(len(columns)), 2)]
        strengths, hidden, noise_of_cell = shown
        weights = [sets.get((i, j), 1) * sets.get((i,), 1) * sets.get((j,), 1) for i, j in every]
        cells = [columns[i].size * columns[j].size * classes for i, j in every]
        tables = {indices: weight for indices, weight in sets.items() if len(indices) > 2}
        room = self.max_coordinates - classes * sum(
            math.prod(columns[at].size for at in table) for table in (*tables, *((at,) for at in range(len(columns))))
        )
        named, unmeasured = {at for at, pair in enumerate(every) if pair in sets}, math.isinf(min(strengths))
        ranks = (
            cells if unmeasured else [strength * weight for strength, weight in zip(strengths, weights, strict=True)]
        )
        widest = sorted(range(len(every)), key=lambda at: (at not in named, -cells[at], at))
        planned = max((held for held in accumulate(cells[at] for at in widest) if held <= room), default=0)
        order = sorted(range(len(every)), key=lambda at: (at not in named, -ranks[at], at))
        fits = sum(held <= planned for held in accumulate(cells[at] for at in order))
        best, most = len(named) or 1, 0.0
        if unmeasured:  # nothing chooses among the pairs of histories
            best = len(every) if self.by_row_set else max(best, fits)
        gains, sizes = np.array([strengths[at] for at in order]) + _UNSEEN, np.array([cells[at] for at in order])
        for count in [] if hidden or unmeasured else _counts(best, fits):
            spread = _GAIN * noise_of_cell * math.sqrt(count)
            gain = math.fsum(np.maximum(0.0, gains[:count] - spread * sizes[:count]).tolist())
            if gain > most:
                best, most = count, gain
        chosen, total, whole = sorted(order[:best]), _WEIGHT * len(every), sum(tables.values())
        share = min(_TABLES_MOST, max(_TABLES_LEAST, whole / (len(every) + whole))) if tables else 0.0
        of_tables = round(share * total)
        of_singles = round((total - of_tables) * len(columns) / (len(columns) + best))
        singles: list[tuple[int, ...]] = [(at,) for at in range(len(columns))]
        shared = _whole_weights([*tables.values()], of_tables) + _whole_weights([1] * len(singles), of_singles)
        parts = dict(sorted(zip([*tables, *singles], shared, strict=True)))
        clear = {at for at in chosen if strengths[at] > 0 or at in named}
        every_weight, clear_weight = (sum(weights[at] for at in group) for group in (chosen, clear))
        budgets = [weights[at] * (clear_weight + _CLEAR * every_weight * (at in clear)) for at in chosen]
        return PairMarginals(
            columns,
            _whole_weights(budgets if clear else [weights[at] for at in chosen], total - of_tables - of_singles),
            tables=tuple(parts),
            pairs=tuple(every[at] for at in chosen),
            table_weights=tuple(parts.values()),
        )

    def _counts(self, columns: Iterable[str], names: Iterable[str]) -> bool:
        """Tell whether an entry is about rows with these names."""
        return not self.by_row_set or {*columns} <= {*names}

    def _sets(self, schema: Schema) -> _Weights:
        """Weights of named sets of columns, by their indices."""
        names = [column.name for column in schema.feature_columns]
        sets = {}
        for entry in self.workload:
            if self._counts(entry["columns"], names):
                for name in entry["columns"]:
                    if name not in names:
                        fault = "the label: every table is by class" if name == schema.label else "not a column"
                        raise PlanError(f"{_KEY}: '{name}' is {fault}. Columns: {', '.join(names)}.")
                sets[tuple(sorted(names.index(name) for name in entry["columns"]))] = entry.get("weight", 1)
        for pair in learned_pairs(schema.rules):  # a function is read off the cells of its pair
            sets.setdefault(tuple(sorted(map(names.index, pair))), 1)
        return sets


class HistoryWorkload(Workload):
    """The workload of people with histories, whose tables and weights stand in one of two row sets each."""

    by_row_set: ClassVar[bool] = True

    def check_columns(self, row_sets: Iterable[Iterable[str]]) -> None:
        """Refuse an entry whose columns are in no row set.

        Raises:
            PlanError: naming it.
        """
        columns = [[*names] for names in row_sets]
        for index, entry in enumerate(self.workload):
            if not any(self._counts(entry["columns"], names) for names in columns):
                raise PlanError(
                    f"{_KEY}[{index}]: {', '.join(entry['columns'])} must be columns of one row set. Name others. "
                    f"Columns of people: {', '.join(columns[0])}. Columns of transitions: {', '.join(columns[1])}."
                )


def _counts(least: int, most: int) -> list[int]:
    """Whole numbers from one to another: all at first, then about 5 % apart."""
    counts = [least]
    while counts[-1] < most:
        counts.append(min(most, counts[-1] + max(1, counts[-1] // 20)))
    return counts


def _whole_weights(weights: Sequence[int], total: int) -> tuple[int, ...]:
    """Whole numbers in about these proportions, at least 1, whose sum is the total."""
    if not weights:
        return ()
    together = sum(weights)
    whole = [max(1, weight * total // together) for weight in weights]
    left = total - sum(whole)
    whole[whole.index(max(whole))] += min(left, 0)
    return tuple(weight + int(index < left) for index, weight in enumerate(whole))


def measures_of_cells(feature: PairMarginals, sigma: float, classes: int) -> Iterator[Measured]:
    """A cell of a pair, of a table and of a single column, if all pairs were chosen.

    The rule does not apply to cells of pairs: the generator is fitted to all of them at once.
    """
    by_class = ", by class" if classes > 1 else ""
    cells = sum(a * b for a, b in feature.sizes) / len(feature.sizes)
    chosen = f"{len(feature.pairs):,}" if feature.pairs else "all"
    of = f"share in a cell of a pair of columns{by_class}, if {chosen} pairs were chosen"
    yield Measured(of, sigma / min(feature.weights) ** 0.5, 1 / (classes * cells), False)
    parts = zip(feature.tables, feature.table_parts, feature.squared_table_weights, strict=True)
    for several, kind in ((True, "a named table"), (False, "a single column")):
        sizes = [(part.width, weight) for columns, part, weight in parts if (len(columns) > 1) is several]
        if sizes:
            width = sum(size for size, _ in sizes) / len(sizes)
            noise = sigma / min(weight for _, weight in sizes) ** 0.5
            yield Measured(f"share in a cell of {kind}{by_class}", noise, 1 / (classes * width), False)
        parts = zip(feature.tables, feature.table_parts, feature.squared_table_weights, strict=True)
