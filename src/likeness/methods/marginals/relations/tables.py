"""Relations between columns of a row, and where a row stands in the table of each: by that row and public numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part
from likeness.core.errors import ParamsError, ReleaseError
from likeness.core.typed import build
from likeness.features.base import Candidate, Map, OneHotMap
from likeness.features.cells import Cells, Inputs, number_of

DIFFERENCE, SUM, CLOCK, RATIO, TOGETHER, FUNCTION = "difference", "sum", "clock", "ratio", "together", "function"
NEAR, AT_MOST, AT_LEAST = "near", "at_most", "at_least"
MIDDLE = 500
"""Steps of a difference to both sides of 0. What is farther away lies in the last cells."""
_FINE = 400  # steps of the widest column where values have none
RATIO_STEP = 0.02
"""Logarithm of the factor between the edges of a ratio's cells."""
# Powers by multiplication alone: machines differ in the last digits of a logarithm.
RATIO_EDGES = np.round(np.cumprod(np.full(2 * MIDDLE, 1.02)) / 1.02**MIDDLE, 12)
_WIDTHS = {DIFFERENCE: 1, SUM: 3, CLOCK: 1, RATIO: 11}  # cells of a residual that keep a relation
_EQUAL = 1e-6  # of a step: values of two columns may differ by rounding
_COARSE = 3  # of a difference where values have no step
_MIXERS = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9], dtype=np.uint64)
Event = tuple[str, int, int]
"""What may be true of a row: ``missing`` or ``zero`` of a column, or ``is`` of a category; the column; its code."""
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Operand:
    """A column as relations see it.

    Attributes:
        cells: of its block in the dense row; those of a number come from a release.
        lower: of a number.
        upper: of a number.
        step: distance of neighboring values; 0: there is none.
        is_log: whether its unit scale is a logarithm.
    """

    cells: Cells
    lower: float = 0.0
    upper: float = 0.0
    step: float = 0.0
    is_log: bool = False


@dataclass(frozen=True)
class Relation:
    """A relation that may hold in a row.

    Attributes:
        kind: of the relation.
        columns: indices of columns. A difference is (a, b): b - a. A sum is (c, a, b): c - a - b. A clock is the same
            with factor * a, a ratio c / (a b) or c / a. A function has the columns that determine, then the determined
            one, unless an event is determined.
        factor: of a clock.
        events: both that are true together, or the one that is determined.
    """

    kind: str
    columns: tuple[int, ...] = ()
    factor: float = 1.0
    events: tuple[Event, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        events = tuple((str(name), int(column), int(value)) for name, column, value in self.events)
        object.__setattr__(self, "events", events)

    @property
    def keys(self) -> tuple[int, ...]:
        """The columns that determine another one."""
        return self.columns if self.events else self.columns[:-1]

    @property
    def column_set(self) -> frozenset[int]:
        """All columns that it is about."""
        return frozenset({*self.columns, *(column for _, column, _ in self.events)})

    def size(self, operands: Sequence[Operand]) -> tuple[int, int]:
        """Groups of its table, and cells of each."""
        if self.kind == TOGETHER:
            return 1, 2
        if self.kind == FUNCTION:
            groups = int(np.prod([operands[key].cells.size for key in self.keys], dtype=np.int64))
            return groups, 2 if self.events else operands[self.columns[-1]].cells.size
        return 1, 2 * MIDDLE + 1

    def step(self, operands: Sequence[Operand]) -> float:
        """Width of a cell of a difference: the step of its columns, or a part of the widest one."""
        mine = [operands[column] for column in self.columns]
        if all(operand.step for operand in mine):
            return min(operand.step for operand in mine)
        return max(operand.upper - operand.lower for operand in mine) / _FINE

    def width(self, operands: Sequence[Operand]) -> int:
        """Number of neighboring cells that keep it."""
        coarse = self.kind == DIFFERENCE and not all(operands[column].step for column in self.columns)
        return _COARSE if coarse else _WIDTHS.get(self.kind, 1)

    def windows(self, offer: str, operands: Sequence[Operand]) -> tuple[tuple[int, int], ...]:
        """First cell and one past the last of each set of cells that may keep it."""
        if offer == AT_MOST:
            return ((MIDDLE, 2 * MIDDLE + 1),)
        if offer == AT_LEAST:
            return ((0, MIDDLE + 1),)
        if self.kind == TOGETHER:
            return ((1, 2),)
        return _windows(self.size(operands)[1], self.width(operands), int(self.kind != FUNCTION))


@dataclass(frozen=True)
class RelationUse:
    """A relation that is used.

    Attributes:
        relation: what may hold.
        offer: what holds.
        share: of synthetic rows that are to keep it, of those with an answer.
        null: share where columns are independent.
        deviation: of the released share.
        equal: share of rows with equality; of an order.
        keepers: as in :class:`RelationCells`.
        weights: of the cells between the first and the last of ``keepers``.
        dependent: index of the column that is computed; -1: none.
    """

    relation: Relation
    offer: str
    share: float
    null: float
    deviation: float
    equal: float
    keepers: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    dependent: int = -1


@lru_cache(maxsize=512)
def _windows(cells: int, width: int, margin: int) -> tuple[tuple[int, int], ...]:
    """All windows; the outer cells of a residual hold what is far away, and are in none."""
    return tuple((start, start + width) for start in range(margin, cells - margin - width + 1))


class Rows:
    """Rows as relations see them. Each column is read once; everything follows from the row and public numbers.

    The arithmetic is that of float64 by row, so a block of any size gives the same.
    """

    def __init__(self, x: Inputs, operands: Sequence[Operand]) -> None:
        """Take the rows, shape (n, d), and the columns."""
        self._x, self._operands = x, operands
        self._numbers, self._codes = dict[int, Floats](), dict[int, Integers]()

    def number(self, column: int) -> Floats:
        """A number, a multiple of its step, shape (n,); NaN where it is missing."""
        if column not in self._numbers:
            operand = self._operands[column]
            units, missing = number_of(self._x, operand.cells.start, operand.cells.missing)
            width = operand.upper - operand.lower
            values = operand.lower + (np.expm1(units * np.log1p(width)) if operand.is_log else units * width)
            if operand.step:
                values = np.rint(values / operand.step) * operand.step
            self._numbers[column] = values if missing is None else np.where(missing, np.nan, values)
        return self._numbers[column]

    def code(self, column: int) -> Integers:
        """The cell of a column, shape (n,)."""
        if column not in self._codes:
            self._codes[column] = self._operands[column].cells.cell_indices(self._x)
        return self._codes[column]

    def event(self, event: Event) -> Bools:
        """Tell whether an event is true, shape (n,)."""
        name, column, value = event
        if name == "is":
            true: Bools = self.code(column) == value
        else:
            number = self.number(column)
            true = np.isnan(number) if name == "missing" else number == 0
        return true

    def residual(self, relation: Relation) -> Floats:
        """Measure how far a row is from a relation, in cells from the middle one, shape (n,); NaN: no answer."""
        numbers = [self.number(column) for column in relation.columns]
        with np.errstate(all="ignore"):
            if relation.kind == RATIO:
                product = numbers[1] * (numbers[2] if len(numbers) > 2 else 1.0)
                answered = (numbers[0] > 0) & (product > 0)
                ratio = np.where(answered, numbers[0] / np.where(answered, product, 1.0), 1.0)
                cell = np.searchsorted(RATIO_EDGES, ratio, side="right").astype(np.float64) - MIDDLE
                return np.where(answered, cell, np.nan)
            if relation.kind == DIFFERENCE:
                value = numbers[1] - numbers[0]
            else:
                value = numbers[0] - relation.factor * numbers[1] - numbers[2]
            return value / relation.step(self._operands)

    def cell_of(self, relation: Relation) -> Integers:
        """The cell of each row in the table of a relation, groups side by side, shape (n,); -1 where it has none."""
        if relation.kind == TOGETHER:
            first, second = map(self.event, relation.events)
            return np.asarray(first == second, np.int64)
        if relation.kind == FUNCTION:
            return self._place_of_function(relation)
        residual = self.residual(relation)
        answered = ~np.isnan(residual)
        residual = np.where(answered, residual, 0.0)
        cells = np.clip(np.rint(residual), -MIDDLE, MIDDLE).astype(np.int64)
        if relation.kind == DIFFERENCE:  # the middle cell is for equal values alone
            cells = np.where((cells == 0) & (np.abs(residual) > _EQUAL), np.sign(residual).astype(np.int64), cells)
        return np.where(answered, cells + MIDDLE, -1)

    def _place_of_function(self, relation: Relation) -> Integers:
        cell_of = np.zeros(len(self._x), np.int64)
        for key in relation.keys:
            cell_of = cell_of * self._operands[key].cells.size + self.code(key)
        value = relation.events[0] if relation.events else relation.columns[-1]
        size = relation.size(self._operands)[1]
        return cell_of * size + (self.code(value) if isinstance(value, int) else self.event(value).astype(np.int64))


def read_operands(values: Sequence[Operand | Mapping[str, Any]], name: str) -> tuple[Operand, ...]:
    """Columns, given as such or as JSON; ``name`` is the map's, for the error."""
    read: tuple[Operand, ...] = _read(Operand, values, name)
    return read


def read_relations(values: Sequence[Relation | Mapping[str, Any]], name: str) -> tuple[Relation, ...]:
    """Relations, given as such or as JSON."""
    read: tuple[Relation, ...] = _read(Relation, values, name)
    return read


def _read(kind: Any, values: Sequence[Any], name: str) -> Any:
    try:
        return tuple(value if isinstance(value, kind) else build(kind, value, name) for value in values)
    except (ParamsError, TypeError, ValueError) as error:
        raise ReleaseError(f"{name}: a column or relation is none ({error})") from None


@dataclass(frozen=True)
class RelationCandidates(Map):
    """Public candidates for choices: relations and what may hold of each, in the published order.

    A row counts if its own hash is below a public number. So adding a row adds it or nothing to each table.

    Attributes:
        operands: all columns.
        relations: one table each.
        offers: number of the table and what may hold, of each candidate.
        offsets: rows that keep each candidate where columns are independent.
        least: surplus of rows below which the choices are to end.
        most_hash: rows whose hash, a whole number below 2**32, is at most this are counted.
    """

    name: ClassVar[str] = "relation_candidates"
    takes_tensors: ClassVar[bool] = False
    bounded_parts: ClassVar[tuple[Part, ...]] = ()
    operands: tuple[Operand, ...]
    relations: tuple[Relation, ...]
    offers: tuple[tuple[int, str], ...]
    offsets: tuple[int, ...]
    least: int
    most_hash: int

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The score of each; that of the last one, which ends the choices, is public."""
        every = [
            Candidate(table, self.relations[table].windows(offer, self.operands), offset)
            for (table, offer), offset in zip(self.offers, self.offsets, strict=True)
        ]
        return (*every, Candidate(0, ((0, 0),), -self.least))

    def __call__(self, x: Inputs) -> NDArray[np.float64]:
        """No features: candidates have scores alone."""
        return np.zeros((len(x), 0))

    @property
    def tables(self) -> list[tuple[int, int]]:
        """Groups and cells of each relation."""
        return [relation.size(self.operands) for relation in self.relations]

    def cells_of_rows(self, x: Inputs) -> Iterator[Integers]:
        """The cell of each row in each table."""
        counted = hashes_of(x) <= self.most_hash if self.most_hash < 2**32 - 1 else np.ones(len(x), bool)
        rows = Rows(x, self.operands)
        for relation in self.relations:
            yield np.where(counted, rows.cell_of(relation), -1)

    def remaining(self, choices_made: Sequence[int]) -> list[int]:
        """The candidates that do not follow from those that are chosen, and the one that ends the choices."""
        if len(self.offers) in choices_made:
            return []
        offers = [self.offers[use] for use in choices_made]
        done = _Consequences([self.relations[table] for table, _ in offers], [offer for _, offer in offers])
        tables = [done.follows(relation) for relation in self.relations]
        return [*(number for number, (table, _) in enumerate(self.offers) if not tables[table]), len(self.offers)]


def hashes_of(x: Inputs) -> Integers:
    """A whole number below 2**32 for each row, shape (n,), from the bits of its own dense form."""
    bits = np.ascontiguousarray(np.asarray(x, np.float64)).view(np.uint64)
    mixed = np.zeros(len(x), np.uint64)
    with np.errstate(over="ignore"):
        for column in bits.T:
            mixed = (mixed ^ column) * _MIXERS[0]
            mixed ^= mixed >> np.uint64(29)
            mixed *= _MIXERS[1]
        mixed ^= mixed >> np.uint64(32)
    return (mixed & np.uint64(2**32 - 1)).astype(np.int64)


class _Consequences:
    """The consequences of chosen relations: copies of columns, events together, and functions of keys."""

    def __init__(self, choices_made: Sequence[Relation], offers: Sequence[str]) -> None:
        self._of: dict[Any, Any] = {}
        self._chosen = set(choices_made)
        self._orders = set[tuple[Any, Any]]()
        for relation, offer in zip(choices_made, offers, strict=True):
            if relation.kind == DIFFERENCE and offer == NEAR:
                self._join(*relation.columns)
            if relation.kind == TOGETHER:
                self._join(*relation.events)
        for relation, offer in zip(choices_made, offers, strict=True):
            if relation.kind == DIFFERENCE and offer != NEAR:
                first, second = map(self._root, relation.columns)
                self._orders.add((first, second) if offer == AT_MOST else (second, first))
        self._forms = {self._form(relation) for relation in choices_made}
        functions = [relation for relation in choices_made if relation.kind == FUNCTION]
        self._targets = {(frozenset(map(self._root, use.keys)), self._target(use)) for use in functions}

    def follows(self, relation: Relation) -> bool:
        """Tell whether a relation is chosen or follows."""
        if relation in self._chosen or self._form(relation) in self._forms:
            return True
        if relation.kind == DIFFERENCE:
            first, second = map(self._root, relation.columns)
            return first == second or self._reaches(first, second) or self._reaches(second, first)
        if relation.kind == TOGETHER:
            first, second = map(self._root, relation.events)
            keys = [{key for key, target in self._targets if target == event} for event in (first, second)]
            return first == second or bool(keys[0] & keys[1])
        if relation.kind == FUNCTION:
            target = self._target(relation)
            return any(other == target for _, other in self._targets)
        return False

    def _reaches(self, first: Any, second: Any) -> bool:
        ahead, seen = [first], {first}
        while ahead:
            at = ahead.pop()
            for low, high in self._orders:
                if low == at and high not in seen:
                    seen.add(high)
                    ahead.append(high)
        return second in seen and first != second

    def _target(self, relation: Relation) -> Any:
        return self._root(relation.events[0] if relation.events else relation.columns[-1])

    def _form(self, relation: Relation) -> Any:
        """Arithmetic of the same columns in another order says the same."""
        if relation.kind in (SUM, CLOCK, RATIO):
            return relation.kind, frozenset(map(self._root, relation.columns))
        return relation

    def _root(self, item: Any) -> Any:
        while item in self._of:
            item = self._of[item]
        return item

    def _join(self, first: Any, second: Any) -> None:
        first, second = self._root(first), self._root(second)
        if first != second:
            self._of[second] = first


@dataclass(frozen=True)
class RelationCells(OneHotMap):
    r"""The cell of a row in the table of each of m relations, or in the cell for rows that have none.

    With ``keepers`` a table has four cells: no answer, a row that breaks the relation, and one that keeps it. Of an
    order they are: no answer, the second column is smaller, it is larger, both are equal.

    Bound: a record lies in exactly one cell of each table. Which one depends on that record and public numbers alone.
    So the part of a function of two columns has norm 3 and every other one norm 1, and nothing is negative. Reached by
    every record.
    Replacing a record moves it from one cell to another in each table, a factor of √2, reached where all change.

    Attributes:
        operands: all columns.
        relations: one table each, at least one.
        keepers: of each relation the first cell and one past the last that keep it, or of each group of a function the
            cell that keeps it, -1: none; of an order nothing. Empty: tables of all cells.
    """

    name: ClassVar[str] = "relation_cells"
    takes_codes: ClassVar[bool] = True
    operands: tuple[Operand, ...]
    relations: tuple[Relation, ...]
    keepers: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "operands", read_operands(self.operands, self.name))
        object.__setattr__(self, "relations", read_relations(self.relations, self.name))
        object.__setattr__(self, "keepers", tuple(tuple(map(int, cells)) for cells in self.keepers))
        if not self.relations or (self.keepers and len(self.keepers) != len(self.relations)):
            raise ReleaseError(f"{self.name} needs at least one relation, and what keeps each or none")

    @cached_property
    def bounded_parts(self) -> tuple[Part, ...]:
        """One part a relation; functions of two columns have many groups, and nine times the budget of others."""
        if self.keepers:
            return tuple(Part(4, 1, nonnegative=True) for _ in self.relations)
        sizes = [int(np.prod(relation.size(self.operands))) + 1 for relation in self.relations]
        bounds = [9 if relation.kind == FUNCTION and len(relation.keys) > 1 else 1 for relation in self.relations]
        return tuple(Part(size, bound, nonnegative=True) for size, bound in zip(sizes, bounds, strict=True))

    def cell_indices(self, x: Inputs) -> Integers:
        """The cell of each table that a row stands in, shape (n, parts)."""
        rows = Rows(x, self.operands)
        if not self.keepers:
            return np.stack([rows.cell_of(relation) + 1 for relation in self.relations], axis=1)
        return np.stack([self._keeping(rows, *pair) for pair in zip(self.relations, self.keepers, strict=True)], axis=1)

    def _keeping(self, rows: Rows, relation: Relation, keepers: tuple[int, ...]) -> Integers:
        cell_of = rows.cell_of(relation)
        if relation.kind == FUNCTION:
            group, cell = np.divmod(cell_of, relation.size(self.operands)[1])
            wanted = np.array(keepers, np.int64)[group]
            return np.where(wanted < 0, 0, 1 + (cell == wanted))
        if not keepers:
            return np.where(cell_of < 0, 0, np.where(cell_of == MIDDLE, 3, 1 + (cell_of > MIDDLE)))
        return np.where(cell_of < 0, 0, 1 + ((cell_of >= keepers[0]) & (cell_of < keepers[1])))
