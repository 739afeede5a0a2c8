"""The marginals to release: pairs of columns, the budget of each, and named tables. Fixed before any row is read."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, combinations
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
_FEWEST_STEPS = 64  # of a contribution to contrasts: at most 1.6 % of a count is cut off
_LARGEST_WEIGHT = 100  # of a column: beside a pair with ten thousand times the budget, others are noise
_MOST_TABLES = 30_000  # triples of 57 columns: they are listed before their cells are counted
_Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Workload(Section):
    """Section ``marginals.privatize``: public knowledge only, since a choice by the rows would be a release."""

    bins: int = setting(16, "cells of a numeric column, on public edges of equal width", least=2, most=MOST_BINS)
    pairs: str | tuple[tuple[str, ...], ...] = setting(
        "all",
        "all; a list that has every column, [[age, sex]]; or drawn: each with a few partners",
    )
    partners: int = setting(10, "of drawn pairs; an odd number of columns makes it even", least=2)
    seed: int = setting(0, "draws them; public")
    weights: Mapping[str, Any] = setting(
        dict, "columns whose pairs must be right, {age: 3}: three times the budget of others"
    )
    tables: str | tuple[tuple[str, ...], ...] = setting(
        "none",
        "joint counts beside the pairs: a list, [[age, education, sex]]; or triples: of all",
    )
    workload: tuple[Mapping[str, Any], ...] = setting(
        (), "joint counts with weights, [{columns: [age, sex], weight: 3}]: two columns or more"
    )
    # Far beyond these a bound would be less than a step of the lattice, which the door would refuse too late.
    tables_share: float = setting(
        0.1, "of the embedding's part of the budget, for all these tables together", least=0.001, most=0.999
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
    max_coordinates: int = coordinates(20_000_000, ": about 130 bytes of memory each")

    by_row_set: ClassVar[bool] = False  # whether tables and weights count only where all their columns are
    PAIRS: ClassVar = ("all", "drawn")
    TABLES: ClassVar = ("none", "triples")

    def __post_init__(self) -> None:
        """Check ranges."""
        super().__post_init__()
        key = "marginals.privatize"
        _require_sets(f"{key}.pairs", self.pairs, self.PAIRS, "two different columns", range(2, 3))
        _require_sets(f"{key}.tables", self.tables, self.TABLES, "three different columns or more", range(3, 10**6))
        weights = {f"weights.{name}": weight for name, weight in self.weights.items()}
        for place, entry in enumerate(self.workload):
            where, columns = f"{key}.workload[{place}]", entry.get("columns")
            listed = isinstance(columns, list | tuple) and all(isinstance(name, str) for name in columns)
            require(listed and set(entry) <= {"columns", "weight"}, where, entry, "columns, a list, and weight")
            weights[f"workload[{place}].weight"] = entry.get("weight", 1)
        for name, weight in weights.items():
            whole = type(weight) is int and 1 <= weight <= _LARGEST_WEIGHT
            require(whole, f"{key}.{name}", weight, f"a whole number from 1 to {_LARGEST_WEIGHT}")
        if self.workload:
            sets = tuple(tuple(entry["columns"]) for entry in self.workload)
            sets += () if isinstance(self.tables, str) else self.tables
            _require_sets(f"{key}.workload", sets, (), "two different columns or more", range(2, 10**6))

    def first(self, columns: tuple[Cells, ...], schema: Schema) -> PairMarginals | None:
        """The map of the first look: the pairs alone, with even budgets; None without such a look.

        Two columns make one pair, and weights by name are a choice already.
        """
        if not self.first_share:
            return None
        names = [column.name for column in schema.feature_columns]
        pairs = self._pairs(names, schema.label)
        if len(pairs) < 2 or self._squared_weights(names, schema.label, pairs):
            return None
        return PairMarginals(columns, pairs=pairs)

    def hints(self, schema: Schema) -> list[str]:
        """A first look that the settings ask for, where other settings say the budgets of pairs."""
        names = [column.name for column in schema.feature_columns]
        if not self.first_share or not self._squared_weights(names, schema.label, self._pairs(names, schema.label)):
            return []
        return [
            "marginals.privatize.first_share has no effect: weights or workload say the budgets of pairs. Set it to 0, "
            "or leave them out"
        ]

    def feature(
        self, columns: tuple[Cells, ...], schema: Schema, squared_weights: tuple[int, ...] = (), signed: bool = True
    ) -> PairMarginals:
        """The map of these settings, over the cells of each feature column.

        Args:
            columns: cells of each feature column.
            schema: public.
            squared_weights: of each pair, after a first look; empty: those of the settings.
            signed: whether a feature may have signs for free: where a record is added or removed.

        Raises:
            PlanError: a name is no feature column's, a column is in no pair, or there are too many tables.
        """
        names, label = [column.name for column in schema.feature_columns], schema.label
        pairs = self._pairs(names, label)
        named = {places: weight for places, weight in self._workload(names, label).items() if len(places) > 2}
        tables = {table: 1 for table in self._tables(names, label)} | named
        weights = squared_weights or self._squared_weights(names, label, pairs)
        feature: PairMarginals = self._with_tables(PairMarginals(columns, weights, pairs=pairs), tables)
        if self.basis == "pairs":
            return feature
        if min(column.size for column in columns) > 1:
            bare = PairContrasts(columns, weights, pairs=pairs)
            apart = self._with_tables(bare, tables)
            if _fewest_steps(apart) >= _FEWEST_STEPS:
                gains = signed and bare.pays and not self.first_share
                return apart if self.basis == "contrasts" or gains else feature
        if self.basis == "contrasts":
            raise PlanError(
                "marginals.privatize.basis: contrasts need two cells or more of each column, and pairs of not "
                "too many cells. Set auto or pairs."
            )
        return feature

    def _with_tables(self, feature: PairMarginals, tables: Mapping[tuple[int, ...], int]) -> PairMarginals:
        """The map with tables, which together have their share of the squared norm; that of each pair stays."""
        if not tables:
            return feature
        ordered, divisor = tuple(sorted(tables)), math.gcd(*tables.values())  # only ratios matter, as of pairs
        weights = tuple(tables[table] // divisor for table in ordered)
        share, norm = self.tables_share, float(sum(part.norm_bound_squared for part in feature.parts))
        weight = share / (1 - share) * norm / sum(weights)
        return replace(feature, tables=ordered, squared_table_weight=weight, table_weights=weights)

    def remedies(self, feature: PairMarginals) -> str:
        """What makes the map of these settings smaller."""
        drawn = self.pairs == "drawn"
        fewer = "lower marginals.privatize.partners" if drawn else "name fewer marginals.privatize.pairs"
        if not feature.pairs:
            fewer = "set marginals.privatize.pairs: drawn with fewer partners"
        pairs = [fewer] if len(feature.columns) > 3 else []  # of three columns any pairs that join them are nearly all
        named = ["name fewer marginals.privatize.tables"] if feature.tables else []
        return ", ".join(["Lower marginals.privatize.bins", *named, *pairs, "merge categories in the schema"])

    def _pairs(self, names: list[str], label: str | None) -> _Pairs:
        """Places of the columns of each pair."""
        key, wanted = "marginals.privatize.pairs", self.pairs
        if wanted == "drawn":
            return drawn_pairs(len(names), self.partners, self.seed)
        if isinstance(wanted, str):
            return tuple(combinations(range(len(names)), 2))
        _require_columns(key, chain(*wanted), names, label, "every pair is released by class")
        named = {*chain(*wanted)}
        left = [name for name in names if name not in named]
        if left:
            raise PlanError(f"{key}: no pair has '{left[0]}'. Name at least one pair of each column.")
        return tuple(sorted((first, second) for first, second in _places(wanted, names)))

    def _squared_weights(self, names: list[str], label: str | None, pairs: _Pairs) -> tuple[int, ...]:
        """Of each pair; none where no column has a weight."""
        wanted = {str(name): weight for name, weight in self.weights.items() if self._counts([name], names)}
        _require_columns("marginals.privatize.weights", wanted, names, label, "every pair is by class")
        named = {places: weight for places, weight in self._workload(names, label).items() if len(places) == 2}
        if left := sorted({*named} - {*pairs}):
            missing = ", ".join(names[place] for place in left[0])
            raise PlanError(
                f"marginals.privatize.workload: {missing} is no pair of marginals.privatize.pairs. Name it."
            )
        if not wanted and not named:
            return ()
        products = [wanted.get(names[i], 1) * wanted.get(names[j], 1) * named.get((i, j), 1) for i, j in pairs]
        # Only ratios matter: one question in other words would have another key and be paid for again.
        divisor = math.gcd(*products)
        smallest = tuple(product // divisor for product in products)
        return smallest if max(smallest) > 1 else ()

    def _counts(self, columns: Iterable[str], names: Iterable[str]) -> bool:
        """Whether a table or a weight is about rows with these names."""
        return not self.by_row_set or {*columns} <= {*names}

    def _workload(self, names: list[str], label: str | None) -> dict[tuple[int, ...], int]:
        """Weights of named sets of columns, by their places."""
        entries = [entry for entry in self.workload if self._counts(entry["columns"], names)]
        sets = [entry["columns"] for entry in entries]
        _require_columns("marginals.privatize.workload", chain(*sets), names, label, "every table is released by class")
        weights = [entry.get("weight", 1) for entry in entries]
        return dict(zip(_places(sets, names), weights, strict=True))

    def _tables(self, names: list[str], label: str | None) -> tuple[tuple[int, ...], ...]:
        """Places of the columns of each table beside the pairs."""
        key, wanted = "marginals.privatize.tables", self.tables
        if not isinstance(wanted, str):
            wanted = tuple(table for table in wanted if self._counts(table, names))
        if isinstance(wanted, str):
            count = math.comb(len(names), 3) if wanted == "triples" else 0
            if wanted == "triples" and not count:
                raise PlanError(f"{key} is triples, but the table has two feature columns. Set none.")
            if count > _MOST_TABLES:
                raise PlanError(
                    f"{key} is triples: {len(names)} columns make {count:,} tables, more than {_MOST_TABLES:,}. "
                    "Name those that matter."
                )
            return tuple(combinations(range(len(names)), 3)) if count else ()
        _require_columns(key, chain(*wanted), names, label, "every table is released by class")
        return tuple(sorted(_places(wanted, names)))


class HistoryWorkload(Workload):
    """That of people with histories, whose tables and weights stand in one of two row sets each."""

    by_row_set: ClassVar[bool] = True

    def check_columns(self, row_sets: Iterable[Iterable[str]]) -> None:
        """Refuse a table or a weight whose columns are in no row set.

        Raises:
            PlanError: naming it.
        """
        columns = [[*names] for names in row_sets]
        tables = () if isinstance(self.tables, str) else self.tables
        sets = {f"tables[{place}]": table for place, table in enumerate(tables)}
        sets |= {f"workload[{place}]": entry["columns"] for place, entry in enumerate(self.workload)}
        sets |= {f"weights.{name}": (name,) for name in self.weights}
        for key, table in sets.items():
            if not any(self._counts(table, names) for names in columns):
                raise PlanError(
                    f"marginals.privatize.{key}: {', '.join(table)} must be columns of one row set. Name others. "
                    f"Columns of people: {', '.join(columns[0])}. Columns of transitions: {', '.join(columns[1])}."
                )


def _fewest_steps(feature: PairMarginals) -> int:
    """Lattice steps of a contribution to the part of contrasts that has the fewest."""
    bits = lattice_bits(feature.parts)
    return min(part.steps(bits) for part in feature.parts if part.contrasts)


def drawn_pairs(columns: int, partners: int, seed: int) -> _Pairs:
    """Ascending pairs of columns, each column with at least 2 ``partners``; all pairs where there are no more.

    Columns stand on a circle in a public random order. Each is paired with those at distance 1 and at a few drawn
    distances. So all columns are connected, most over few pairs (circulant graphs). Each has one partner fewer where
    both numbers are odd.
    """
    if partners >= columns - 1:
        return tuple(combinations(range(columns), 2))
    generator = rng.public(seed, "marginals.pairs")
    order, half = generator.permutation(columns).tolist(), (columns - 1) // 2
    distances = [1, *(2 + generator.choice(half - 1, partners // 2 - 1, replace=False)).tolist()]
    if partners % 2 and columns % 2 == 0:
        distances.append(columns // 2)  # one partner, where every other distance gives two
    pairs = {(order[place], order[(place + step) % columns]) for place in range(columns) for step in distances}
    return tuple(sorted({(min(pair), max(pair)) for pair in pairs}))


def _require_sets(key: str, value: Any, names: tuple[str, ...], columns: str, sizes: range) -> None:
    """A name, or a list of sets of columns, none of them twice."""
    rule = f"{', '.join(names)}, or a list of lists of {columns}"
    if not isinstance(value, tuple) or not value:
        require(value in names, key, list(value) if isinstance(value, tuple) else value, rule)
        return
    seen: set[frozenset[str]] = set()
    for place, members in enumerate(value):
        require(len({*members}) == len(members) in sizes, f"{key}[{place}]", list(members), columns)
        require(frozenset(members) not in seen, f"{key}[{place}]", list(members), "named once in the list")
        seen.add(frozenset(members))


def _require_columns(key: str, wanted: Iterable[str], names: list[str], label: str | None, by_class: str) -> None:
    columns = {*names}
    for name in wanted:
        if name not in columns:
            fault = f"the label: {by_class}" if name == label else "not a column"
            raise PlanError(f"{key}: '{name}' is {fault}. Columns: {', '.join(names)}.")


def _places(tables: Iterable[Iterable[str]], names: list[str]) -> Iterator[tuple[int, ...]]:
    places = {name: place for place, name in enumerate(names)}
    return (tuple(sorted(places[name] for name in table)) for table in tables)
