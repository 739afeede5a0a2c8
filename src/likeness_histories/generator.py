"""A generator of people with histories: of a row a person, and of the event that follows another."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core import rng
from likeness.core.errors import ParamsError
from likeness.core.typed import require
from likeness.data.encoding.dtypes import to_dtypes
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.allowed import Allowed
from likeness.data.schema.column import Column
from likeness.data.schema.constrained_tables import values_of
from likeness.data.schema.row_sets import GAP, GAP_BEFORE, LENGTH, NUMBER, STEP, USUAL_GAP
from likeness.data.schema.schema import Schema
from likeness.data.table_columns import with_columns
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.drawn_rows import DrawnRows
from likeness.pipeline.where import allowed_values, conditions_by_name
from likeness_histories.exchange import Faults, exchange_events
from likeness_histories.row_sets import classes, is_end, order_numbers, violating_people
from likeness_histories.rules import NextEqual, any_violation, step_values
from likeness_histories.schema import HistorySchema

if TYPE_CHECKING:
    from likeness.data.schema.rule import Values
    from likeness.generators.base import DrawsRest

_REDRAWS, _WITHIN = 20, 10  # of a next event that breaks a rule: in all, and the first ones within its cells
_WORSE = 2  # a broken rule beside an event as late as any
_BESIDE, _ATTEMPTS = 10, 60  # draws of a history that breaks a rule: beside its first row, and in all


@dataclass(frozen=True)
class HistoryGenerator:
    """A generator of people with histories.

    Attributes:
        people: draws one row a person.
        following: a mixture over transitions.
        schema: of both tables.
    """

    people: SavedGenerator
    following: SavedGenerator
    schema: HistorySchema

    def tables(
        self, count: int, seed: int, where: Mapping[str, Any], dtypes: Mapping[str, Mapping[str, str]] | None = None
    ) -> dict[str, pd.DataFrame]:
        """Both tables of :meth:`draw` by name, in the dtypes of the schema or in others."""
        drawn, written = self.draw(count, seed, where), self.schema.table_schemas
        return {name: to_dtypes(drawn[name], written[name], (dtypes or {}).get(name)) for name in written}

    def draw(self, count: int, seed: int, where: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
        """Typed tables of synthetic people and their events by name, with the numbers from 1 on as keys.

        People come with the number of events and the first event. Each further event is drawn given the person, the
        class of the length, whether it is the second, and the last event. A history that leads beyond the order's
        upper bound is pressed together. An event that ends a history is the last one.

        Args:
            count: number of people.
            seed: public.
            where: conditions on columns of people.

        Raises:
            ParamsError: ``where`` names another column, or the model makes no such person.
        """
        names = [column.name for column in self.schema.person_columns]
        where = conditions_by_name(where)
        for name in where:
            require(name in names, "where", name, f"a column of people: {', '.join(names) or 'there is none'}")
        first, events = self._draw_keeping_rules(count, seed, where)
        key = self.schema.person
        for name in self.schema.fixed:
            events[name] = first[name].array.take(events[key].to_numpy())
        events = with_columns(events[[key, *self.schema.events.names]], {key: events[key] + 1})
        people = first[names].copy()
        people.insert(0, key, np.arange(1, count + 1))
        return {"people": people, "events": events}

    def _draw_keeping_rules(self, count: int, seed: int, where: Mapping[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """First rows and events of people, all of whom keep the rules of the schema.

        The history of somebody who breaks one is drawn again, at first beside the first row, then with it.

        Raises:
            ParamsError: some people break a rule in every draw.
        """
        first, key = self._draw_first_rows(count, seed, where), self.schema.person
        events = self._events(first, rng.public(seed, "sample.histories"))
        if not self.schema.rules:
            return first, events
        for attempt in range(_ATTEMPTS):
            lengths = np.bincount(events[key], minlength=count)
            first[NUMBER] = self.schema.first_rows.column(NUMBER).to_typed(lengths - self.schema.least).array
            broken = violating_people(self.schema, first, events, events[key].to_numpy())
            who = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *broken.values()]))
            if not len(who):
                return first, events
            again = first.iloc[who].reset_index(drop=True)
            if attempt >= _BESIDE:
                again = self._draw_first_rows(len(who), rng.public_seed(seed, f"sample.rules.{attempt}"), where)
            redrawn = self._events(again, rng.public(seed, f"sample.histories.{attempt}"))
            first = pd.concat([first[~first.index.isin(who)], again.set_axis(who)]).sort_index()
            redrawn[key] = who[redrawn[key].to_numpy()]
            events = pd.concat([events[~np.isin(events[key], who)], redrawn])
            events = events.sort_values(key, kind="stable", ignore_index=True)
        worst = max(broken, key=lambda rule: len(broken[rule]))
        raise ParamsError(f"sample: some histories break {worst} in {_ATTEMPTS} draws. Correct the rule.")

    def _draw_first_rows(self, count: int, seed: int, where: Mapping[str, Any]) -> pd.DataFrame:
        """One row a person. Somebody with events has a first one, and somebody with two a usual gap."""
        schema = self.schema.first_rows
        drawn = DrawnRows(self.people, schema)
        allowed = allowed_values(where, schema)
        table = drawn.draw_where(count, seed, allowed)
        names = [f"first {column.name}" for column in self.schema.time_varying if not column.nullable]
        names += [f"usual {column.name}" for column in self.schema.states if self.schema.usual and not column.nullable]
        gap = [column.name for column in self.schema.usual if column.name == USUAL_GAP]
        for word, least, needed in (("first", 1, names), ("usual", 2, [*names, *gap] if gap else [])):
            enough = table[NUMBER].cat.codes.to_numpy() + self.schema.least >= least
            bad = table[needed].isna().any(axis=1).to_numpy(dtype=bool) & enough
            if bad.any():
                numbers = range(least - self.schema.least, self.schema.most_events + 1 - self.schema.least)
                present = {name: Allowed(missing=True).complement(schema.column(name)) for name in needed}
                wanted = {**allowed, NUMBER: Allowed(frozenset(numbers)), **present}
                seed_of = rng.public_seed(seed, f"sample.{word}")
                again = drawn.draw_where(int(bad.sum()), seed_of, wanted)
                again.index = table.index[bad]
                table = pd.concat([table[~bad], again]).sort_index()
        return table

    def _events(self, first: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
        """All events of people with these first rows, in order of people."""
        schema, encoder = self.schema, Encoder(self.schema.next_rows)
        lengths = first[NUMBER].cat.codes.to_numpy().astype(np.int64) + schema.least
        state = _State(schema, encoder)
        x = state.from_first_rows(first)
        rows_of_step = first[lengths > 0][[f"first {column.name}" for column in schema.time_varying]]
        rows_of_step = rows_of_step.set_axis([column.name for column in schema.time_varying], axis=1)
        active = np.flatnonzero(lengths > 0)
        rows_of_step = _plain(schema, rows_of_step)
        at = np.zeros(len(first))
        at[active] = order_numbers(schema, rows_of_step)
        pieces, times = [with_columns(rows_of_step, {schema.person: active})], [at[active]]
        conditional = state.conditional(self.following)
        of_first = values_of(first, schema.first_rows.columns) if schema.rules_of_steps else {}
        last = {column.name: of_first[f"first {column.name}"].copy() for column in schema.time_varying if of_first}
        ended = is_end(schema, rows_of_step)
        for step in range(1, schema.most_events):
            active = active[~ended]
            active = active[lengths[active] > step]
            if not len(active):
                break
            state.set_class(x, active, LENGTH, classes(lengths[active], schema.length_starts))
            state.set_class(x, active, STEP, classes(np.full(len(active), step), schema.step_starts))
            new = state.draw_next(conditional, x[active], random)
            rows = encoder.decode(new, np.zeros(len(new), dtype=np.int64))
            before = {name: cells[active] for name, cells in last.items()}
            following = _Following(state, of_first, before, at[active], active)
            if schema.order is not None:
                order = exchange_events(conditional.alike(x[active]), following.faults(rows), random)
                new, rows = new[order], rows.iloc[order].reset_index(drop=True)
            for attempt in range(_REDRAWS if schema.rules_of_steps else 0):
                following.compute(new, rows)
                bad = following.violates_rules(rows)
                if not bad.any():
                    break
                within = attempt < _WITHIN
                new[bad] = (
                    conditional.draw_within(new[bad], random)
                    if within
                    else state.draw_next(conditional, x[active[bad]], random)
                )
                rows = encoder.decode(new, np.zeros(len(new), dtype=np.int64))
            following.compute(new, rows)
            rows_of_step = state.event(rows)
            for name, cells in state.values(rows, at[active]).items() if schema.rules_of_steps else ():
                last[name][active] = cells
            at[active] += state.gaps(rows)
            state.advance(x, active, new)
            pieces.append(with_columns(rows_of_step, {schema.person: active}))
            times.append(at[active])
            ended = is_end(schema, rows_of_step)
        events = pd.concat(pieces, ignore_index=True)
        if schema.order is not None:
            column = schema.events.column(schema.order)
            numbers = _press_times(np.concatenate(times), events[schema.person].to_numpy(), column)
            events[schema.order] = column.to_typed(numbers)
        return events.sort_values(schema.person, kind="stable", ignore_index=True)


class _State:
    """The dense encoded rows of transitions, on which the next event of each person depends.

    Attributes:
        schema: of both tables.
        slices: where each column stands in a dense row.
    """

    def __init__(self, schema: HistorySchema, encoder: Encoder) -> None:
        self.schema = schema
        blocks: dict[str, list[Any]] = {}
        for block in encoder.layout.blocks:
            blocks.setdefault(block.column, []).append(block)
        self.slices = {name: slice(of[0].start, of[-1].stop) for name, of in blocks.items()}
        self._width = encoder.layout.width
        before = {f"last {column.name}": f"before {column.name}" for column in schema.states} | {GAP: GAP_BEFORE}
        self._before = {name: earlier for name, earlier in before.items() if earlier in self.slices}

    def conditional(self, saved: SavedGenerator) -> "DrawsRest":
        """The distribution of the next event and the gap."""
        drawn = {GAP, *(f"next {column.name}" for column in self.schema.states)}
        drawn |= {f"same {column.name}" for column in self.schema.repeatable_columns}
        names = enumerate(self.schema.next_rows.names)
        return saved.network.conditional([index for index, name in names if name not in drawn])

    def draw_next(
        self, conditional: "DrawsRest", x: NDArray[np.float64], random: np.random.Generator
    ) -> NDArray[np.float64]:
        """Next events as dense rows (n, width), given rows (n, width) that hold what they depend on.

        Where the same category is to come again, it is that of the last event. Where another is to come, a category
        that is that of the last event is drawn again, alone.
        """
        new = conditional.draw(x, random)
        for column in self.schema.repeatable_columns:
            last, following = (self.slices[f"{word} {column.name}"] for word in ("last", "next"))
            again = new[:, self.slices[f"same {column.name}"].stop - 1] == 1
            new[again, following] = x[again, last]
            for _ in range(_REDRAWS):
                wrong = np.flatnonzero(~again & (new[:, following] == x[:, last]).all(axis=1))
                if not len(wrong):
                    break
                new[wrong, following] = conditional.draw(x[wrong], random)[:, following]
        return new

    def from_first_rows(self, first: pd.DataFrame) -> NDArray[np.float64]:
        """Rows that hold the person, and the first event as the last one. Nothing is before it."""
        x = np.zeros((len(first), self._width))
        for column in self.schema.static:
            self._put(x, column.name, _dense(self.schema.first_rows.select([column.name]), first))
        for column in self.schema.states:
            name = f"first {column.name}"
            dense = _dense(self.schema.first_rows.select([name]), first)
            span = self.slices[f"last {column.name}"]
            x[:, span] = dense[:, : span.stop - span.start]  # a place for missing that only first events have
            if "first" in self.schema.memory:
                x[:, self.slices[name]] = x[:, span]
        for name in self._before.values():
            x[:, self.slices[name].stop - 1] = 1  # missing
        return x

    def _put(self, x: NDArray[np.float64], name: str, dense: NDArray[np.float64]) -> None:
        x[:, self.slices[name]] = dense

    def set_class(self, x: NDArray[np.float64], rows: NDArray[np.int64], name: str, values: NDArray[np.int64]) -> None:
        """Set a class of lengths or steps."""
        span = self.slices[name]
        x[rows, span] = 0
        x[rows, span.start + values] = 1

    def event(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The next events, typed as the schema of events says; without their order."""
        return pd.DataFrame(
            {column.name: rows[f"next {column.name}"] for column in self.schema.states}, index=rows.index
        )

    def gaps(self, rows: pd.DataFrame) -> NDArray[np.float64]:
        """The distance of each next event from the last one; zeros without an order."""
        if self.schema.order is None:
            return np.zeros(len(rows))
        gap = self.schema.next_rows.column(GAP)
        return gap.numbers(rows[GAP])

    def values(self, rows: pd.DataFrame, at: NDArray[np.float64]) -> "Values":
        """The next events as rules see them; ``at`` is where the last ones stand."""
        states = values_of(self.event(rows), self.schema.states)
        return states if self.schema.order is None else {**states, self.schema.order: at + self.gaps(rows)}

    def advance(self, x: NDArray[np.float64], rows: NDArray[np.int64], new: NDArray[np.float64]) -> None:
        """Make the next event the last one, and the last one that before it."""
        for name, earlier in self._before.items():
            span, source = self.slices[earlier], self.slices[name]
            x[rows, span] = 0
            values = new[:, source] if name == GAP else x[rows, source]
            x[rows, span.start : span.start + values.shape[1]] = values
        for column in self.schema.states:
            x[rows, self.slices[f"last {column.name}"]] = new[:, self.slices[f"next {column.name}"]]


class _Following:
    """The fit of next events to some people.

    Attributes:
        persons: the people.
    """

    def __init__(
        self, state: _State, first: "Values", last: "Values", at: NDArray[np.float64], persons: NDArray[np.int64]
    ) -> None:
        """Take over what is fixed.

        Args:
            state: of all people.
            first: values of first rows; none without rules about steps.
            last: values of the last events; none without rules about steps.
            at: where the last events stand in the order.
            persons: places of the people among all.
        """
        self.state, self.schema, self.persons = state, state.schema, persons
        self._first, self._last, self._at = first, last, at

    def violates_rules(self, rows: pd.DataFrame) -> NDArray[np.bool_]:
        """Tell which events break a rule; row i is drawn for person i. There are rules."""
        everybody = np.arange(len(rows))
        return self._find_violations(
            values_of(self.state.event(rows), self.schema.states), self.state.gaps(rows), everybody
        )

    def compute(self, new: NDArray[np.float64], rows: pd.DataFrame) -> None:
        """Set what rules compute of each event, in its dense row and in its cells; row i is drawn for person i."""
        for rule in self.schema.parsed_rules:
            if isinstance(rule, NextEqual):
                name, events = rule.column.name, values_of(self.state.event(rows), self.schema.states)
                values = self._values(events, self.state.gaps(rows), np.arange(len(rows)))
                rows[name] = rule.column.to_typed(rule.project_on_rule(values)[name]).array
                new[:, self.state.slices[name]] = _dense(self.schema.next_rows.select([name]), rows)

    def faults(self, rows: pd.DataFrame) -> Faults:
        """Measure how far events lie beyond the order's upper bound; more if they break a rule. There is an order."""
        column, gaps = self.schema.events.column(cast("str", self.schema.order)), self.state.gaps(rows)
        lower, upper = column.bounds
        states = values_of(self.state.event(rows), self.schema.states) if self.schema.rules_of_steps else {}

        def faults(people: NDArray[np.int64], events: NDArray[np.int64]) -> NDArray[np.float64]:
            late: NDArray[np.float64] = np.maximum(self._at[people] + gaps[events] - upper, 0)
            if not self.schema.rules_of_steps:
                return late
            cells = {name: values[events] for name, values in states.items()}
            return late + _WORSE * (upper - lower) * self._find_violations(cells, gaps[events], people)

        return faults

    def _find_violations(
        self, events: "Values", gaps: NDArray[np.float64], people: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        return any_violation(self.schema.rules_of_steps, self._values(events, gaps, people))

    def _values(self, events: "Values", gaps: NDArray[np.float64], people: NDArray[np.int64]) -> "Values":
        """Give the values that rules about steps speak of, for an event beside each of some people."""
        following = dict(events)
        if self.schema.order is not None:
            following[self.schema.order] = self._at[people] + gaps
        last = {name: cells[people] for name, cells in self._last.items()}
        return step_values(self._first, last, following, self.persons[people], self.schema.order)


def _press_times(times: NDArray[np.float64], persons: NDArray[np.int64], column: Column) -> NDArray[np.float64]:
    """Press the events of each history together evenly, as far as the order's upper bound asks.

    A gap that the bound cut off would end at the bound, and those after it would be 0. Evenly pressed, the gaps of a
    history keep their ratios.

    Args:
        times: of events, ascending within a person.
        persons: of each event; the first event of each person comes before all later ones.
        column: the order.
    """
    _, firsts, owners = np.unique(persons, return_index=True, return_inverse=True)
    start, end = times[firsts], times[firsts].copy()
    np.maximum.at(end, owners, times)
    late, room = end > column.bounds[1], np.ones(len(start))
    room[late] = (column.bounds[1] - start[late]) / (end - start)[late]
    numbers = start[owners] + (times - start[owners]) * room[owners]
    return np.clip(numbers if column.decimals is None else np.round(numbers, column.decimals), *column.bounds)


def _dense(schema: Schema, table: pd.DataFrame) -> NDArray[np.float64]:
    """Dense encoded rows of the columns of a schema."""
    encoder = Encoder(schema)
    return encoder.expand(encoder.encode(table))


def _plain(schema: HistorySchema, events: pd.DataFrame) -> pd.DataFrame:
    """First events typed as events: a number that may be missing among first events has another type."""
    columns = {}
    for column in schema.time_varying:
        values = events[column.name].reset_index(drop=True)
        if not column.is_categorical:
            values = column.to_typed(column.numbers(values))
        columns[column.name] = values
    return pd.DataFrame(columns)
