"""Repair of synthetic rows, so that they keep found relations as often as real rows do, by released values alone."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeness.core.typed import build
from likeness.methods.marginals.relations.tables import (
    AT_LEAST,
    AT_MOST,
    FUNCTION,
    MIDDLE,
    RATIO,
    RATIO_EDGES,
    TOGETHER,
    Event,
    Operand,
    RelationCells,
    RelationUse,
    Rows,
    read_operands,
)

_ATTEMPTS, _NEAREST = 60, 8  # exchanges of a row, and rows among which it finds the first partner
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Repair:
    """Synthetic rows while they are repaired: computed columns, events together, then orders by exchange.

    Attributes:
        x: dense encoded rows, shape (n, width), which change.
    """

    def __init__(
        self,
        x: Floats,
        operands: Sequence[Operand],
        columns: Sequence[Any],
        random: np.random.Generator,
        fixed: Collection[int] = (),
        labels: Integers | None = None,
    ) -> None:
        """Take the rows.

        Args:
            x: dense encoded rows, shape (n, width).
            operands: all columns.
            columns: how a value is drawn from its cell, as the mixture has them.
            random: public.
            fixed: columns that stay, because a condition asks for their values.
            labels: class of each row, shape (n,); rows of one class exchange values.
        """
        self._labels = np.zeros(len(x), np.int64) if labels is None else labels
        self.x, self._operands, self._columns, self._random, self._fixed = x, operands, columns, random, fixed
        self._pinned = np.zeros((len(x), len(operands)), bool)

    def run(self, uses: Sequence[RelationUse]) -> Floats:
        """Repair all relations; ``found`` has them in order."""
        computed = {use.dependent for use in uses if use.dependent >= 0}
        for use in uses:
            if use.dependent >= 0 and use.dependent not in self._fixed:
                self._determine(use) if use.relation.kind == FUNCTION else self._compute(use)
        self._join([use for use in uses if use.relation.kind == TOGETHER], uses)
        orders = [use for use in uses if use.offer in (AT_MOST, AT_LEAST)]
        self._order(orders, computed)
        return self.x

    @property
    def _rows(self) -> Rows:
        return Rows(self.x, self._operands)

    def _cells(self, use: RelationUse) -> Integers:
        """0: no answer, 1: broken, 2 and 3: kept."""
        cells = RelationCells(tuple(self._operands), (use.relation,), (use.keepers,)).cell_indices(self.x)[:, 0]
        return np.array([0, 2, 1, 3])[cells] if use.offer == AT_LEAST else cells

    def _missing_rows(self, use: RelationUse, nearest: Floats | None = None) -> Integers:
        """The rows that are to keep a relation and do not, the nearest ones or any, up to the share."""
        cells = self._cells(use)
        answered, broken = int((cells > 0).sum()), np.flatnonzero(cells == 1)
        need = max(0, round(use.share * answered) - int((cells > 1).sum()))
        if nearest is None:
            return self._random.permutation(broken)[:need]
        return broken[np.argsort(nearest[broken], kind="stable")][:need]

    def _determine(self, use: RelationUse) -> None:
        """Give rows the value or event that their group has."""
        relation = use.relation
        rows, size = self._missing_rows(use), relation.size(self._operands)[1]
        wanted = np.array(use.keepers, np.int64)[self._rows.cell_of(relation)[rows] // size]
        if relation.events:
            self._set_event(relation.events[0], rows[wanted == 1], rows[wanted == 0])
            return
        for cell in np.unique(wanted):
            self._set_cell(relation.columns[-1], rows[wanted == cell], int(cell))

    def _compute(self, use: RelationUse) -> None:
        """Compute a column back from the others and a released residual."""
        relation, first = use.relation, use.keepers[0]
        middle = first - MIDDLE + (len(use.weights) - 1) / 2
        rows = self._missing_rows(use, np.abs(self._rows.residual(relation) - middle))
        if relation.kind == RATIO:  # a wide window: those that keep it by chance lie anywhere in it
            rows = np.concatenate([rows, np.flatnonzero(self._cells(use) > 1)])
        cell = first - MIDDLE + self._random.choice(len(use.weights), len(rows), p=_normal(use.weights))
        numbers = [self._rows.number(column)[rows] for column in relation.columns]
        at = relation.columns.index(use.dependent)
        if relation.kind == RATIO:
            edges = np.concatenate([[RATIO_EDGES[0] / 1.02], RATIO_EDGES])
            low = edges[(cell + MIDDLE).clip(0, len(edges) - 1)]
            ratio = low * (1 + 0.02 * self._random.random(len(rows)))
            product = numbers[1] * (numbers[2] if len(numbers) > 2 else 1.0)
            values = ratio * product if at == 0 else numbers[0] * numbers[at] / (ratio * product)
        else:
            step = relation.step(self._operands)
            whole = all(self._operands[column].step for column in relation.columns)
            width = 0.0 if whole or use.relation.width(self._operands) == 1 else 1.0
            residual = (cell + width * (self._random.random(len(rows)) - 0.5)) * step
            signs = (-1.0, 1.0) if relation.kind == "difference" else (1.0, -relation.factor, -1.0)
            others = sum(sign * number for sign, number in zip(signs, numbers, strict=True)) - signs[at] * numbers[at]
            values = (residual - others) / signs[at]
        self._set_number(use.dependent, rows, values)

    def _join(self, pairs: Sequence[RelationUse], uses: Sequence[RelationUse]) -> None:
        """Make events true together: each component follows one leader, that which a function determines if any."""
        determined = {use.relation.events[0] for use in uses if use.relation.kind == FUNCTION and use.relation.events}
        component: dict[Event, set[Event]] = {}
        for use in pairs:
            first, second = use.relation.events
            joined = component.get(first, {first}) | component.get(second, {second})
            component |= dict.fromkeys(joined, joined)
        done = set[Event]()
        for event in component:
            members = sorted(component[event])
            if event in done:
                continue
            done |= component[event]
            leader = next((member for member in members if member in determined), members[0])
            true, shares = self._rows.event(leader), [use.share for use in pairs if use.relation.events[0] in members]
            wrong = np.logical_or.reduce([self._rows.event(member) != true for member in members])
            exceptions = round((1 - sum(shares) / len(shares)) * len(true))  # the same rows in all of them
            wrong[self._random.permutation(np.flatnonzero(wrong))[:exceptions]] = False
            for member in members:
                if member != leader and member[1] not in self._fixed:
                    rows = np.flatnonzero(wrong & (self._rows.event(member) != true))
                    self._set_event(member, rows[true[rows]], rows[~true[rows]])

    def _order(self, orders: Sequence[RelationUse], computed: Collection[int]) -> None:
        """Rows that break an order exchange a value with a near row where both then break fewer orders."""
        orders = _from_the_top(orders)
        pairs = [_ascending(use) for use in orders]
        fixed = {*self._fixed, *computed}
        for use, (low, high) in zip(orders, pairs, strict=True):
            self._equalize(use, low, high, fixed)
        for attempt in range(_ATTEMPTS):
            for use, pair in zip(orders, pairs, strict=True):
                side = attempt % 2
                if pair[side] not in fixed:
                    self._exchange(use, pair, side, pairs, _NEAREST << (attempt // 4))
        for use, (low, high) in zip(orders, pairs, strict=True):
            rows = self._missing_rows(use)
            changed, other = (low, high) if low not in fixed else (high, low)
            if changed not in fixed:
                self._set_number(changed, rows, self._rows.number(other)[rows])

    def _equalize(self, use: RelationUse, low: int, high: int, fixed: Collection[int]) -> None:
        """Set the nearest values equal, up to the released share of equality."""
        rows = self._rows
        cells = self._cells(use)
        answered, equal = cells > 0, cells == 3
        need = round((use.equal - 2 * use.deviation) * int(answered.sum())) - int((equal & answered).sum())
        changed, other = (low, high) if low not in fixed else (high, low)
        free = np.flatnonzero(answered & ~equal & ~self._pinned[:, changed])
        if need > 0 and changed not in fixed and use.equal > 3 * use.deviation:
            # Ranks among all values of both: where values are rare, a wide gap is a narrow one.
            both = np.sort(np.concatenate([rows.number(column)[answered] for column in (low, high)]))
            gap = np.abs(np.subtract(*(np.searchsorted(both, rows.number(column)[free]) for column in (low, high))))
            near = free[np.argsort(gap, kind="stable")][:need]
            self._set_number(changed, near, rows.number(other)[near])
            self._pinned[near, low] = self._pinned[near, high] = True

    def _exchange(
        self, use: RelationUse, pair: tuple[int, int], side: int, pairs: Sequence[tuple[int, int]], span: int
    ) -> None:
        """One attempt for each row that breaks an order, with a partner whose other value is near."""
        rows, moved = self._rows, pair[side]
        mine, other = rows.number(moved), rows.number(pair[1 - side])
        answered = ~np.isnan(mine) & ~np.isnan(other)
        need = self._missing_rows(use)
        broken = need[~self._pinned[need, moved]]
        allowed = np.flatnonzero(answered & ~self._pinned[:, moved])
        if not len(broken) or len(allowed) < 2:
            return
        order = allowed[np.lexsort((other[allowed], self._labels[allowed]))]
        at = np.zeros(len(broken), np.int64)
        for label in np.unique(self._labels[broken]):
            start, end = np.searchsorted(self._labels[order], [label, label + 1])
            mask, sorted_values = self._labels[broken] == label, other[order[start:end]]
            at[mask] = start + np.searchsorted(sorted_values, mine[broken[mask]], side="left" if side == 0 else "right")
        away = self._random.integers(0, span, len(broken))
        partner = order[(at + away if side == 0 else at - 1 - away).clip(0, len(order) - 1)]
        _, firsts = np.unique(partner, return_index=True)
        keep = np.zeros(len(broken), bool)
        keep[firsts] = True
        keep &= ~np.isin(partner, broken) & (self._labels[partner] == self._labels[broken])
        a, b = broken[keep], partner[keep]
        before = self._broken_orders(moved, mine, a, a, pairs) + self._broken_orders(moved, mine, b, b, pairs)
        after = self._broken_orders(moved, mine, a, b, pairs) + self._broken_orders(moved, mine, b, a, pairs)
        a, b = a[after < before], b[after < before]
        block = slice(self._operands[moved].cells.start, self._operands[moved].cells.stop)
        self.x[a, block], self.x[b, block] = self.x[b, block], self.x[a, block]

    def _broken_orders(
        self, moved: int, values: Floats, rows: Integers, sources: Integers, pairs: Sequence[tuple[int, int]]
    ) -> Integers:
        """Number of orders that rows break if a column has the values of other rows."""
        broken = np.zeros(len(rows), np.int64)
        reader = self._rows
        with np.errstate(invalid="ignore"):
            for low, high in pairs:
                if moved in (low, high):
                    first = values[sources] if low == moved else reader.number(low)[rows]
                    second = values[sources] if high == moved else reader.number(high)[rows]
                    broken += first > second
        return broken

    def _set_event(self, event: Event, true: Integers, false: Integers) -> None:
        """Make an event true in some rows and false in others; these get the value of other rows where it is false."""
        name, column, value = event
        operand = self._operands[column]
        block = slice(operand.cells.start, operand.cells.stop)
        others = np.flatnonzero(~self._rows.event(event))
        if name == "is":
            self._set_cell(column, true, value)
        elif name == "missing":
            self.x[true, block] = 0, 1
        else:
            self._set_number(column, true, np.zeros(len(true)))
        if len(others):
            self.x[false, block] = self.x[self._random.choice(others, len(false)), block]

    def _set_cell(self, column: int, rows: Integers, cell: int) -> None:
        """Give rows a value from a cell of a column."""
        cells = self._operands[column].cells
        if cells.edges is None:
            self.x[rows, cells.start : cells.stop] = 0
            self.x[rows, cells.start + cell] = 1
            return
        if cells.missing and cell == cells.size - 1:
            self.x[rows, cells.start : cells.stop] = 0, 1
            return
        edges, drawn = np.array([-np.inf, *cells.edges, np.inf]), self._columns[column]
        lows, highs = np.array(drawn.lows), np.array(drawn.highs)
        middle = (lows + highs) / 2
        inside = np.flatnonzero((edges[cell] <= middle) & (middle < edges[cell + 1]))
        if len(inside):
            shares = np.array(drawn.shares or [1.0] * len(lows))[inside] + 1e-9
            piece = inside[self._random.choice(len(inside), len(rows), p=shares / shares.sum())]
            units = lows[piece] + self._random.random(len(rows)) * (highs - lows)[piece]
            self._set_number(column, rows, self._values_of(column, units))

    def _values_of(self, column: int, units: Floats) -> Floats:
        operand = self._operands[column]
        width = operand.upper - operand.lower
        return operand.lower + (np.expm1(units * np.log1p(width)) if operand.is_log else units * width)

    def _set_number(self, column: int, rows: Integers, values: Floats) -> None:
        """Give rows a number within the bounds, a multiple of the step."""
        operand = self._operands[column]
        if operand.step:
            values = np.rint(values / operand.step) * operand.step
        answered, values = ~np.isnan(values), np.clip(np.nan_to_num(values), operand.lower, operand.upper)
        width = operand.upper - operand.lower
        units = (
            np.log1p(values - operand.lower) / np.log1p(width) if operand.is_log else (values - operand.lower) / width
        )
        start = operand.cells.start
        self.x[rows[answered], start] = units[answered]
        if operand.cells.missing:
            self.x[rows[answered], start + 1] = 0


def read_uses(relations: Mapping[str, Any]) -> dict[str, Any]:
    """The operands and found relations of a generator, from their JSON form."""
    uses = [build(RelationUse, use, "uses") for use in relations["uses"]]
    return {"operands": read_operands(relations["operands"], "relations"), "uses": uses}


def _ascending(use: RelationUse) -> tuple[int, int]:
    """The smaller column and the larger one of an order."""
    first, second = use.relation.columns
    return (first, second) if use.offer == AT_MOST else (second, first)


def _from_the_top(orders: Sequence[RelationUse]) -> list[RelationUse]:
    """Orders of larger columns first: what is set equal to a column comes after it."""
    above = [_ascending(use) for use in orders]

    def height(column: int, left: int) -> int:
        return left and max((1 + height(high, left - 1) for low, high in above if low == column), default=0)

    return sorted(orders, key=lambda use: height(_ascending(use)[0], len(orders)))


def _normal(weights: Sequence[float]) -> Floats:
    values = np.array(weights)
    return values / values.sum()  # type: ignore[no-any-return]
