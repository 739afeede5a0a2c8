"""The marginals to release: pairs of columns, the budget of each, and named tables. Fixed before any row is read."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

from likeness.config.typed import Section, require, setting
from likeness.core import rng
from likeness.core.bounds import lattice_bits
from likeness.core.errors import PlanError
from likeness.data.schema.schema import Schema
from likeness.features.cells import Cells
from likeness.methods.marginals.pair_contrasts import PairContrasts
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.settings import coordinates

MOST_BINS = 10_000  # of one numeric column: edges are made before the pairs are counted
MOST_SWAP_ROUNDS = 100  # of drawn rows
_KEY = "marginals.privatize.workload"
_FEWEST_STEPS = 64  # of a contribution to contrasts: at most 1.6 % of a count is cut off
_LARGEST_WEIGHT = 100  # beside a pair with ten thousand times the budget, others are noise
_TABLES_LEAST, _TABLES_MOST = 0.1, 0.9  # of the embedding's budget, for all tables of three columns or more together
_PARTNERS = 10  # of each column, at most, where not all pairs fit
_Pairs = tuple[tuple[int, int], ...]
_Weights = Mapping[tuple[int, ...], int]


@dataclass(frozen=True)
class Workload(Section):
    """Section ``marginals.privatize``: public knowledge only, since a choice by the rows would be a release."""

    bins: int = setting(16, "cells of a numeric column, on public edges of equal width", least=2, most=MOST_BINS)
    workload: tuple[Mapping[str, Any], ...] = setting(
        (), "what matters beside all pairs at weight 1: [{columns: [age, sex], weight: 3}]"
    )
    basis: str = setting(
        "pairs",
        "pairs; contrasts: columns once, and what pairs add; auto: contrasts for few cells",
        options=("pairs", "contrasts", "auto"),
    )
    first_share: float = setting(
        0.0,
        "of this budget, for a first look: strong pairs get more of the rest; 0: even budgets",
        least=0,
        most=0.9,
    )
    max_coordinates: int = coordinates(20_000_000, ", at 130 bytes each; where all pairs are more, some are drawn")

    by_row_set: ClassVar[bool] = False  # whether an entry counts only where all its columns are

    def __post_init__(self) -> None:
        """Check ranges."""
        super().__post_init__()
        seen: set[frozenset[str]] = set()
        for place, entry in enumerate(self.workload):
            where, columns, weight = f"{_KEY}[{place}]", entry.get("columns"), entry.get("weight", 1)
            listed = isinstance(columns, list | tuple) and all(isinstance(name, str) for name in columns)
            require(listed and set(entry) <= {"columns", "weight"}, where, entry, "columns, a list, and weight")
            assert columns is not None
            require(len({*columns}) == len(columns) > 0, where, columns, "different columns")
            require(frozenset(columns) not in seen, where, columns, "named once in the list")
            seen.add(frozenset(columns))
            whole = type(weight) is int and 1 <= weight <= _LARGEST_WEIGHT
            require(whole, f"{where}.weight", weight, f"a whole number from 1 to {_LARGEST_WEIGHT}")

    def pairs(self, sizes: Sequence[int], classes: int, schema: Schema) -> _Pairs:
        """Places of the columns of each pair: all, or those of the workload and drawn ones where all do not fit.

        Each column then has as many partners as ``max_coordinates`` allows, at most ten and at least two.

        Args:
            sizes: cells of each feature column, by public facts alone.
            classes: of the label.
            schema: public.

        Raises:
            PlanError: the workload names what is no feature column.
        """
        sets = self._sets(schema)
        contrasts = 0 if self.basis == "pairs" else sum(sizes) + 1
        tables = sum(math.prod(sizes[place] for place in table) for table in sets if len(table) > 2)
        room = self.max_coordinates // classes - contrasts - tables
        if (sum(sizes) ** 2 - sum(size * size for size in sizes)) // 2 <= room:
            return tuple(combinations(range(len(sizes)), 2))
        named = {(places[0], places[1]) for places in sets if len(places) == 2}
        for partners in range(_PARTNERS, 1, -1):
            pairs = tuple(sorted({*drawn_pairs(len(sizes), partners), *named}))
            if sum(sizes[i] * sizes[j] for i, j in pairs) <= room:
                break
        return pairs

    def first(self, columns: tuple[Cells, ...], schema: Schema, pairs: _Pairs) -> PairMarginals | None:
        """The map of the first look: the pairs alone, with even budgets; None without such a look.

        Two columns make one pair, and weights by name are a choice already.
        """
        if not self.first_share or len(pairs) < 2 or len({*_products(self._sets(schema), pairs)}) > 1:
            return None
        return PairMarginals(columns, pairs=pairs)

    def hints(self, schema: Schema) -> list[str]:
        """A first look that the settings ask for, where other settings say the budgets of pairs."""
        every = tuple(combinations(range(len(schema.feature_columns)), 2))
        if not self.first_share or len({*_products(self._sets(schema), every)}) == 1:
            return []
        return [f"marginals.privatize.first_share has no effect: {_KEY} says the budgets of pairs. Set it to 0"]

    def feature(
        self,
        columns: tuple[Cells, ...],
        schema: Schema,
        pairs: _Pairs,
        squared_weights: tuple[int, ...] = (),
        signed: bool = True,
    ) -> PairMarginals:
        """The map of these settings, over the cells of each feature column.

        Args:
            columns: cells of each feature column.
            schema: public.
            pairs: of :meth:`pairs`.
            squared_weights: of each pair, after a first look; empty: those of the settings.
            signed: whether a feature may have signs for free: where a record is added or removed.

        Raises:
            PlanError: the workload names what is no feature column, or contrasts cannot be.
        """
        sets = self._sets(schema)
        products = _products(sets, pairs)
        # Only ratios matter: one question in other words would have another key and be paid for again.
        divisor = math.gcd(*products)
        weights = squared_weights or (tuple(product // divisor for product in products) if len({*products}) > 1 else ())
        tables = {places: weight for places, weight in sets.items() if len(places) > 2}
        feature: PairMarginals = _with_tables(PairMarginals(columns, weights, pairs=pairs), tables, sum(products))
        if self.basis == "pairs":
            return feature
        if min(column.size for column in columns) > 1:
            bare = PairContrasts(columns, weights, pairs=pairs)
            apart = _with_tables(bare, tables, sum(products))
            if _fewest_steps(apart) >= _FEWEST_STEPS:
                gains = signed and bare.pays and not self.first_share
                return apart if self.basis == "contrasts" or gains else feature
        if self.basis == "contrasts":
            raise PlanError(
                "marginals.privatize.basis: contrasts need two cells or more of each column, and pairs of not "
                "too many cells. Set auto or pairs."
            )
        return feature

    def _counts(self, columns: Iterable[str], names: Iterable[str]) -> bool:
        """Whether an entry is about rows with these names."""
        return not self.by_row_set or {*columns} <= {*names}

    def _sets(self, schema: Schema) -> _Weights:
        """Weights of named sets of columns, by their places."""
        names = [column.name for column in schema.feature_columns]
        sets = {}
        for entry in self.workload:
            if self._counts(entry["columns"], names):
                for name in entry["columns"]:
                    if name not in names:
                        fault = "the label: every table is by class" if name == schema.label else "not a column"
                        raise PlanError(f"{_KEY}: '{name}' is {fault}. Columns: {', '.join(names)}.")
                sets[tuple(sorted(names.index(name) for name in entry["columns"]))] = entry.get("weight", 1)
        return sets


class HistoryWorkload(Workload):
    """That of people with histories, whose tables and weights stand in one of two row sets each."""

    by_row_set: ClassVar[bool] = True

    def check_columns(self, row_sets: Iterable[Iterable[str]]) -> None:
        """Refuse an entry whose columns are in no row set.

        Raises:
            PlanError: naming it.
        """
        columns = [[*names] for names in row_sets]
        for place, entry in enumerate(self.workload):
            if not any(self._counts(entry["columns"], names) for names in columns):
                raise PlanError(
                    f"{_KEY}[{place}]: {', '.join(entry['columns'])} must be columns of one row set. Name others. "
                    f"Columns of people: {', '.join(columns[0])}. Columns of transitions: {', '.join(columns[1])}."
                )


def _products(sets: _Weights, pairs: _Pairs) -> list[int]:
    """Squared weight of each pair: its own, times those of its columns."""
    return [sets.get((i, j), 1) * sets.get((i,), 1) * sets.get((j,), 1) for i, j in pairs]


def _with_tables(feature: PairMarginals, tables: _Weights, pairs: int) -> PairMarginals:
    """The map with tables, whose squared norms are those of pairs of their weights, within the bounds of their share.

    ``pairs`` is the sum of the weights of all pairs. The squared norm of each pair stays.
    """
    if not tables:
        return feature
    ordered, divisor = tuple(sorted(tables)), math.gcd(*tables.values())  # only ratios matter, as of pairs
    weights, whole = tuple(tables[table] // divisor for table in ordered), sum(tables.values())
    share = min(_TABLES_MOST, max(_TABLES_LEAST, whole / (pairs + whole)))
    norm = float(sum(part.norm_bound_squared for part in feature.parts))
    weight = share / (1 - share) * norm / sum(weights)
    return replace(feature, tables=ordered, squared_table_weight=weight, table_weights=weights)


def _fewest_steps(feature: PairMarginals) -> int:
    """Lattice steps of a contribution to the part of contrasts that has the fewest."""
    bits = lattice_bits(feature.parts)
    return min(part.steps(bits) for part in feature.parts if part.contrasts)


def drawn_pairs(columns: int, partners: int) -> _Pairs:
    """Ascending pairs of columns, each column with at least 2 ``partners``; all pairs where there are no more.

    Columns stand on a circle in a public random order. Each is paired with those at distance 1 and at a few drawn
    distances. So all columns are connected, most over few pairs (circulant graphs). Each has one partner fewer where
    both numbers are odd.
    """
    if partners >= columns - 1:
        return tuple(combinations(range(columns), 2))
    generator = rng.public(0, "marginals.pairs")
    order, half = generator.permutation(columns).tolist(), (columns - 1) // 2
    distances = [1, *(2 + generator.choice(half - 1, partners // 2 - 1, replace=False)).tolist()]
    if partners % 2 and columns % 2 == 0:
        distances.append(columns // 2)  # one partner, where every other distance gives two
    pairs = {(order[place], order[(place + step) % columns]) for place in range(columns) for step in distances}
    return tuple(sorted({(min(pair), max(pair)) for pair in pairs}))
