"""Candidates for relations from the public schema, in the published order: the most likely and cheapest first."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.methods.marginals.relations.tables import (
    AT_LEAST,
    AT_MOST,
    CLOCK,
    DIFFERENCE,
    FUNCTION,
    NEAR,
    RATIO,
    SUM,
    TOGETHER,
    Event,
    Operand,
    Relation,
)

MOST_CANDIDATES = 2_500
_SAYS_NONE = re.compile(r"^(no|not|none|never|without|n/a)\b.{3,}", re.IGNORECASE)
_FACTORS = (100, 60, 24, 12, 10, 7)  # of clocks and units
_NARROW = 3  # values of a number that is as good as a class
_SCALE = 10  # width of a scale of answers
_KEYS = 60  # most cells of a column that determines another one by itself
_EACH = 20  # rows of a group, on average
_MOST_CELLS = 1 << 16  # of a function
_MANY_VALUES = 12  # a number that two classes may determine
_ALIKE, _RANGES = 0.15, 8  # common part of the bounds of two columns, and factor between their widths


class Listing:
    """The candidates of a schema.

    Attributes:
        relations: one table each.
        offers: number of the table and what may hold, of each candidate.
        left_out: number of candidates that were not tried.
    """

    def __init__(self, schema: Schema, operands: Sequence[Operand], records: float) -> None:
        """List them.

        Args:
            schema: public.
            operands: its feature columns.
            records: their released number.
        """
        self._columns, self._operands, self._records = schema.feature_columns, operands, records
        column_set = {column.name: index for index, column in enumerate(self._columns)}
        self._ruled = [frozenset(column_set.get(name, -1) for name in rule.columns) for rule in schema.rules]
        self._numbers = [
            index
            for index, column in enumerate(self._columns)
            if not column.is_categorical and not (column.transform != "none" and not column.is_integral)
        ]
        tiers: dict[int, list[Relation]] = {1: [], 2: [], 3: []}
        for tier, relation in self._tiered_relations():
            if not any(relation.column_set <= rule for rule in self._ruled):
                tiers[tier].append(relation)
        self.relations: list[Relation] = []
        self.offers: list[tuple[int, str]] = []
        self.left_out = 0
        for relation in (relation for tier in sorted(tiers) for relation in tiers[tier]):
            offers = (AT_MOST, AT_LEAST, NEAR) if relation.kind == DIFFERENCE else (NEAR,)
            if len(self.offers) + len(offers) > MOST_CANDIDATES:
                self.left_out += len(offers)
                continue
            self.offers += [(len(self.relations), offer) for offer in offers]
            self.relations.append(relation)

    def _tiered_relations(self) -> Iterator[tuple[int, Relation]]:
        wide = [number for number in self._numbers if self._span(number) > _NARROW]
        alike = [pair for pair in combinations(wide, 2) if self._are_alike(*pair)]
        yield from ((1, Relation(DIFFERENCE, pair)) for pair in alike)
        yield from self._together()
        yield from self._functions()
        plain = [number for number in wide if self._column(number).type.numeric_source]
        yield from ((1, clock) for clock in self._clocks(plain))
        yield from self._arithmetic(plain)

    def _column(self, index: int) -> Column:
        return self._columns[index]

    def _span(self, index: int) -> float:
        """Width of the bounds, in steps where there are some."""
        operand = self._operands[index]
        return (operand.upper - operand.lower) / (operand.step or (operand.upper - operand.lower) / 1_000)

    def _width(self, index: int) -> float:
        return self._operands[index].upper - self._operands[index].lower

    def _overlap(self, index: int, lower: float, upper: float) -> float:
        mine = self._operands[index]
        both = min(mine.upper, upper) - max(mine.lower, lower)
        return max(0.0, both) / (max(mine.upper, upper) - min(mine.lower, lower))

    def _are_alike(self, first: int, second: int) -> bool:
        other, ratio = self._operands[second], self._width(first) / self._width(second)
        same = self._column(first).kind == self._column(second).kind or (
            self._column(first).type.numeric_source and self._column(second).type.numeric_source
        )
        return same and 1 / _RANGES <= ratio <= _RANGES and self._overlap(first, other.lower, other.upper) >= _ALIKE

    def _events(self) -> Iterator[Event]:
        """Missing, zero, and categories that say that there is none."""
        for index, column in enumerate(self._columns):
            if column.is_categorical:
                if len(column.categories) > 2:
                    codes = (code for code, text in enumerate(column.categories) if _SAYS_NONE.match(text))
                    yield from (("is", index, code) for code in codes)
                if column.nullable:
                    yield "is", index, len(column.categories)
                continue
            if column.nullable:
                yield "missing", index, 0
            if column.bounds[0] == 0 and index in self._numbers and self._span(index) > _NARROW:
                yield "zero", index, 0

    def _together(self) -> Iterator[tuple[int, Relation]]:
        for first, second in combinations(self._events(), 2):
            if first[1] != second[1] and (first[0] == second[0] or "zero" not in (first[0], second[0])):
                yield 1, Relation(TOGETHER, events=(first, second))

    def _functions(self) -> Iterator[tuple[int, Relation]]:
        """A class that determines an event or a class; two that determine a class or a number."""
        sizes = [operand.cells.size for operand in self._operands]
        classes = [i for i, column in enumerate(self._columns) if column.is_categorical]
        few = [i for i in self._numbers if self._column(i).is_integral and sizes[i] <= _KEYS and self._span(i) <= _KEYS]
        keys = [index for index in classes if sizes[index] * _EACH <= self._records]
        events = list(self._events())
        for key in [*keys, *few]:
            tier = 1 if key in classes else 3
            yield from ((tier, Relation(FUNCTION, (key,), events=(event,))) for event in events if event[1] != key)
            for other in [*classes, *few]:
                if other != key and sizes[key] >= sizes[other]:
                    yield (1 if sizes[key] > 4 else 2), Relation(FUNCTION, (key, other))
        many = [i for i in self._numbers if self._span(i) > _MANY_VALUES] + [i for i in classes if sizes[i] >= 8]
        for first, second in combinations([key for key in keys if sizes[key] >= _NARROW], 2):
            groups = sizes[first] * sizes[second]
            if groups * _EACH <= self._records:
                for other in many:
                    if other not in (first, second) and groups * sizes[other] <= _MOST_CELLS:
                        yield 3, Relation(FUNCTION, (first, second, other))

    def _clocks(self, wide: Sequence[int]) -> Iterator[Relation]:
        whole = [index for index in wide if self._operands[index].step]
        for factor, (coarse, fine) in ((factor, pair) for factor in _FACTORS for pair in permutations(whole, 2)):
            a, b = self._operands[coarse], self._operands[fine]
            if b.lower >= 0 and factor * 0.5 <= b.upper <= factor and a.upper > 0:
                for both in whole:
                    if both not in (coarse, fine) and 0.8 <= self._operands[both].upper / (factor * a.upper) <= 1.25:
                        yield Relation(CLOCK, (both, coarse, fine), float(factor))

    def _arithmetic(self, wide: Sequence[int]) -> Iterator[tuple[int, Relation]]:
        """Sums and products of two, by bounds."""
        for a, b in combinations(wide, 2):
            first, second = self._operands[a], self._operands[b]
            for c in wide:
                whole = self._operands[c]
                if c in (a, b) or max(self._width(a), self._width(b), self._width(c)) <= _SCALE:
                    continue
                added = self._overlap(c, first.lower + second.lower, first.upper + second.upper)
                if min(self._width(a), self._width(b)) >= 0.04 * self._width(c) and added >= 0.25:
                    yield 2, Relation(SUM, (c, a, b))
                near = min(first.lower, second.lower, whole.lower) >= 0 and max(first.lower, second.lower) < 20
                near &= min(self._spread(a), self._spread(b)) >= 1 and self._width(c) >= 100 * bool(whole.step == 1)
                if near and whole.upper not in (first.upper, second.upper):
                    yield 2, Relation(RATIO, (c, a, b))

    def _spread(self, index: int) -> float:
        """Width of the bounds, over the least with which a factor matters."""
        return self._width(index) / (8 if self._operands[index].step == 1 else 0.5)
