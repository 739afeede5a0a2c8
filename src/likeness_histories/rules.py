r"""Rules that hold among the events of a person, and the values that they speak of.

A rule names columns of people, ``number of events``, and columns of the ``first`` event. It names columns of two events
that follow each other (``last`` and ``next``), and the ``gap`` between these. ``since first`` is the distance of the
next event from the first. Somebody without events has a missing (null) first event. Synthetic histories keep all rules.
A rule about the columns of one row set holds there too: its impossible cells are empty, and a private row that
breaks it counts as the nearest row that keeps it.

``equal`` computes a number of the next event, as ``next age`` from ``last age`` and ``gap``.

Privacy. That map is :meth:`likeness.data.schema.rules.ConstrainedTable.forward_transform`: fixed by the schema, each
row by itself. So a person's rows remain that person's, as many as before, and each person adds as much to a sum as
without rules.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from likeness.core.errors import SchemaError
from likeness.data.schema.column import Column
from likeness.data.schema.computed import Equal
from likeness.data.schema.row_sets import GAP
from likeness.data.schema.rule import IfThen, Never, Order, Rule
from likeness.data.schema.rules import rules_from

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from likeness.data.schema.rule import Values

KINDS = (IfThen, Never, Order, Equal)
SINCE = "since first"


@dataclass(frozen=True)
class NextEqual(Equal):
    """A number of the next event follows from other numbers. It stays among what a method sees.

    A private row that breaks the rule gets the computed number, within its bounds.
    """

    @property
    def computes(self) -> tuple[str, ...]:
        """None: events follow each other by columns that are modeled."""
        return ()

    @property
    def column(self) -> Column:
        """The column of the next event."""
        return next(iter(self.columns.values()))

    def project_on_rule(self, values: "Values") -> "Values":
        """The computed number within its bounds, in every row; the lower bound where it may not be missing."""
        (cells,) = self.compute(values).values()
        return {self.column.name: self.column.clip_to_bounds(cells)}


def rules_among(spec: Any, columns: Iterable[Column], order: Column | None, gap: Column | None) -> tuple[Rule, ...]:
    """The rules of a schema of histories, about columns of both row sets.

    Raises:
        SchemaError: naming the rule, or two that contradict each other.
    """
    named = {column.name: column for column in columns}
    if order is not None and gap is not None:
        named |= {f"{word} {order.name}": replace(order, name=f"{word} {order.name}") for word in ("last", "next")}
        named[SINCE] = replace(gap, name=SINCE)
    rules = rules_from(spec, {}, named.values(), None)
    for rule in rules:
        if not isinstance(rule, KINDS):
            raise SchemaError(f"{rule}: histories take the rules {', '.join(kind.kind for kind in KINDS)} alone.")
    return tuple(_step_rule(rule, order) if isinstance(rule, Equal) else rule for rule in rules)


def _step_rule(rule: Equal, order: Column | None) -> NextEqual:
    """``equal`` about the next event.

    Raises:
        SchemaError: the rule computes another column.
    """
    name = next(iter(rule.columns))
    if not name.startswith("next ") or (order is not None and name == f"next {order.name}"):
        raise SchemaError(f"{rule}: equal computes a number of the next event, as 'next age', and not its order.")
    return NextEqual(rule.spec, rule.number, rule.columns, rule.operation, rule.parts)


def rules_about(rules: Iterable[Rule], columns: Iterable[Column]) -> tuple[Rule, ...]:
    """Rules that name none but these columns."""
    names = {column.name for column in columns}
    return tuple(rule for rule in rules if set(rule.columns) <= names)


def step_values(
    first: "Values", last: "Values", following: "Values", persons: "NDArray[np.int64]", order: str | None
) -> "Values":
    """Give the values of rules for two events that follow each other: ``first`` by person, ``persons`` of each pair."""
    values = {name: cells[persons] for name, cells in first.items()}
    for word, cells_of in (("last", last), ("next", following)):
        values |= {f"{word} {name}": cells for name, cells in cells_of.items()}
    if order is not None:
        values[GAP] = values[f"next {order}"] - values[f"last {order}"]
        values[SINCE] = values[f"next {order}"] - values[f"first {order}"]
    return values


def any_violation(rules: Iterable[Rule], values: "Values") -> "NDArray[np.bool_]":
    """Tell which pairs of events break one of some rules, by :func:`step_values`."""
    rows: NDArray[np.bool_] = np.logical_or.reduce([rule.violations(values) for rule in rules])
    return rows
