"""People with histories: one release of people, one of transitions, and a generator of both tables.

The unit of privacy is a person with all rows of both tables. The method is asked twice: about one row a
person, and about one row a pair of events that follow each other. Both releases count people
(:class:`likeness.release.records.EachPerson`), so the noise does not grow with the number of events.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.config.typed import require
from likeness.core import rng
from likeness.core.errors import DataError
from likeness.core.hashing import sha256_json
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import encoding_digest
from likeness.data.histories.rows import HistoryRows, classes, history_rows, is_end, order_numbers
from likeness.data.histories.schema import GAP, LENGTH, NUMBER, STEP, HistorySchema
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_frame_people
from likeness.data.source.row_digests import SourceDigest, unordered_digest
from likeness.methods.base import CLASS_COUNTS, Context, Method, number_of_records
from likeness.methods.fit import with_provenance
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.drawn_rows import DrawnRows
from likeness.pipeline.private_rows import encoded_chunks
from likeness.pipeline.project import Project
from likeness.pipeline.where import allowed_values
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import Plan, make_plan
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import EachPerson, Records
from likeness.release.released import Released, from_bytes
from likeness.release.request import Dataset

if TYPE_CHECKING:
    from likeness.generators.base import Compute, DrawsRest

NEXT = "next_"  # begins the names of queries about transitions
_PEOPLE_SHARE = 0.4  # of the budget, for the rows of people; transitions have the rest


class Histories(NamedTuple):
    """Two linked tables.

    Attributes:
        people: one row a person, with its key.
        events: one row an event, with the key of its person; in order within a person.
    """

    people: Any
    events: Any


@dataclass(frozen=True)
class HistoryProject:
    """Settings and schema of histories, and what follows from them.

    Attributes:
        project: its schema is that of one row a person.
        schema: of both tables.
    """

    project: Project
    schema: HistorySchema

    @property
    def recipe(self) -> Method:
        """The method.

        Raises:
            ParamsError: the method of the settings makes no histories.
        """
        return self.project.method.for_histories()

    @property
    def contexts(self) -> dict[str, Context]:
        """Public facts of both row sets, by the beginning of the names of their queries."""
        schemas = {"": self.schema.first_rows, NEXT: self.schema.next_rows}
        return {prefix: self.project.context_of(schema) for prefix, schema in schemas.items()}

    def plan(self) -> Plan:
        """The budget of every query, from public settings alone."""
        privacy, recipe = self.project.params.privacy, self.recipe
        shares = []
        for (prefix, context), part in zip(self.contexts.items(), (_PEOPLE_SHARE, 1 - _PEOPLE_SHARE), strict=True):
            recipe.check(context)
            shares += [
                replace(share, query=f"{prefix}{share.query}", share=part * share.share)
                for share in recipe.shares(context)
            ]
        return make_plan(
            method=recipe.name,
            identity=privacy.population,
            shares=shares,
            epsilon=privacy.epsilon,
            delta=privacy.delta,
            adjacency=Adjacency(privacy.adjacency),
            num_records=privacy.num_records,
            unit=self.project.params.ingest.unit,
        )

    def read(self, events: pd.DataFrame, people: pd.DataFrame | None, source: SourceDigest) -> HistoryRows:
        """Both row sets of two frames.

        Raises:
            DataError: a frame does not fit the schema, or there is no person.
        """
        schema = self.schema
        table, names = read_frame_people(events, schema.events, schema.person, "events", source)
        if schema.people is None:
            rows = history_rows(schema, table, names)
        else:
            assert people is not None
            rows = history_rows(
                schema, table, names, *read_frame_people(people, schema.people, schema.person, "people", source)
            )
        if rows.people.empty:
            raise DataError("the frames hold no person. Nothing was spent. Give training rows.")
        return rows

    def doors(self, rows: HistoryRows, plan: Plan, source: SourceDigest) -> dict[str, Door]:
        """A door to each row set, by the beginning of the names of its queries."""
        project, ledger = self.project, self.project.ledger_to_spend
        digest = self._digest(rows, ledger.key)
        people = np.arange(len(rows.people), dtype=np.int64)
        doors = {}
        for prefix, table, numbers, schema in (
            ("", rows.people, people, self.schema.first_rows),
            (NEXT, rows.transitions, rows.numbers, self.schema.next_rows),
        ):
            dataset = Dataset(
                population=plan.identity,
                digest=digest,
                attempt=project.params.ledger.attempt,
                encoding=sha256_json([encoding_digest(schema), self.schema.to_dict()]),
                unit=plan.unit,
                rows_digest=source.digest(),
            )
            read: Callable[[], Iterator[Records]] = partial(encoded_chunks, table, schema, numbers)
            doors[prefix] = Door(plan, ledger, dataset, read, project.provenance)
        return doors

    def _digest(self, rows: HistoryRows, key: bytes) -> str:
        """Keyed digest of both row sets, with the number of rows that share a contribution; people in any order."""
        shared = np.bincount(rows.numbers, minlength=len(rows.people))[rows.numbers]
        parts = [unordered_digest([rows.people], self.schema.first_rows, key)]
        for share in range(1, self.schema.most):
            parts.append(unordered_digest([rows.transitions[shared == share]], self.schema.next_rows, key))
        return sha256_json(parts)


class Fitted(NamedTuple):
    """What a fit gives.

    Attributes:
        generator: of both tables.
        released: noisy statistics by the name of their query.
        losses: of both fits, one after the other.
        notes: for the statement.
    """

    generator: "HistoryGenerator"
    released: dict[str, Released]
    losses: list[tuple[int, float]]
    notes: list[str]


def fit_histories(
    given: HistoryProject, events: pd.DataFrame, people: pd.DataFrame | None, plan: Plan, compute: "Compute"
) -> Fitted:
    """Release both row sets, and fit a mixture to each. All checks come before the ledger."""
    recipe, source = given.recipe, SourceDigest(SourceDigest.key_of(given.project.ledger.key))
    doors = given.doors(given.read(events, people, source), plan, source)
    released: dict[str, Released] = {}
    answers: dict[str, tuple[dict[str, Released], Released]] = {}
    notes: list[str] = []
    for prefix, context in given.contexts.items():
        door = doors[prefix]

        def answer(query: Query, door: Door = door, prefix: str = prefix) -> Released:
            asked = replace(query, name=f"{prefix}{query.name}", contributions=EachPerson())
            released[asked.name] = from_bytes(door.release(asked), asked.name)
            return released[asked.name]

        auxiliary = recipe.ask(context, answer)
        answers[prefix] = auxiliary, answer(recipe.embedding_query(context, auxiliary))
        notes += recipe.notes(context, auxiliary)
    receipts = [one.receipt for one in released.values()]
    generators, losses = [], []
    for prefix, context in given.contexts.items():
        auxiliary, embedding = answers[prefix]
        generator, environment, curve = recipe.fit_generator(context, auxiliary, embedding, compute)
        generators.append(with_provenance(generator, recipe, auxiliary, receipts, environment))
        losses += curve
    count = round(number_of_records(given.contexts[""], answers[""][0][CLASS_COUNTS]))
    return Fitted(HistoryGenerator(generators[0], generators[1], given.schema, count), released, losses, notes)


@dataclass(frozen=True)
class HistoryGenerator:
    """A generator of people with histories.

    Attributes:
        people: draws one row a person.
        following: a mixture over transitions.
        schema: of both tables.
        count: noisy number of training people.
    """

    people: SavedGenerator
    following: SavedGenerator
    schema: HistorySchema
    count: int

    def save(self, folder: Path) -> None:
        """Write both generators into two folders."""
        self.people.save(folder / "people")
        self.following.save(folder / "following")

    def draw(self, count: int, seed: int, where: Mapping[str, Any]) -> Histories:
        """Typed tables of synthetic people, with the numbers from 1 on as keys.

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
        for name in where:
            require(name in names, "where", name, f"a column of people: {', '.join(names) or 'there is none'}")
        first = self._first(count, seed, where)
        events = self._events(first, rng.public(seed, "sample.histories"))
        key = self.schema.person
        for column in self.schema.person_columns if self.schema.people is None else ():
            events[column.name] = first[column.name].array.take(events[key].to_numpy())
        events = events[[key, *self.schema.events.names]].assign(**{key: events[key] + 1})
        people = first[names].copy()
        people.insert(0, key, np.arange(1, count + 1))
        return Histories(people, events)

    def _first(self, count: int, seed: int, where: Mapping[str, Any]) -> pd.DataFrame:
        """One row a person. Somebody with events has a first one."""
        schema = self.schema.first_rows
        drawn = DrawnRows(self.people, schema)
        table = drawn.under(count, seed, allowed_values(where, schema))
        if self.schema.least:
            return table
        firsts = [column for column in self.schema.moving if not column.nullable]
        bad = np.zeros(count, dtype=bool)
        for column in firsts:
            bad |= table[f"first {column.name}"].isna().to_numpy(dtype=bool)
        bad &= table[NUMBER].cat.codes.to_numpy() > 0
        if bad.any():
            wanted: dict[str, Any] = {**where, NUMBER: [str(number) for number in range(1, self.schema.most + 1)]}
            for column in firsts:
                name = f"first {column.name}"
                whole = list(column.categories) if column.is_categorical else _range(schema, name)
                wanted[name] = whole
            again = drawn.under(int(bad.sum()), rng.public_seed(seed, "sample.first"), allowed_values(wanted, schema))
            again.index = table.index[bad]
            table = pd.concat([table[~bad], again]).sort_index()
        return table

    def _events(self, first: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
        """All events of people with these first rows, in order of people."""
        schema, encoder = self.schema, Encoder(self.schema.next_rows)
        lengths = first[NUMBER].cat.codes.to_numpy().astype(np.int64) + schema.least
        state = _State(schema, encoder)
        x = state.of_first(first)
        made = first[lengths > 0][[f"first {column.name}" for column in schema.moving]]
        made = made.set_axis([column.name for column in schema.moving], axis=1)
        active = np.flatnonzero(lengths > 0)
        made = _plain(schema, made)
        at = np.zeros(len(first))
        at[active] = order_numbers(schema, made)
        pieces, times = [made.assign(**{schema.person: active})], [at[active]]
        conditional = state.conditional(self.following)
        ended = is_end(schema, made)
        for step in range(1, schema.most):
            active = active[~ended]
            active = active[lengths[active] > step]
            if not len(active):
                break
            state.set_class(x, active, LENGTH, classes(lengths[active], schema.length_starts))
            state.set_class(x, active, STEP, classes(np.full(len(active), step), schema.step_starts))
            new = conditional.draw(x[active], random)
            rows = encoder.decode(new, np.zeros(len(new), dtype=np.int64))
            made = state.event(rows)
            at[active] += state.gaps(rows)
            state.move_on(x, active, new)
            pieces.append(made.assign(**{schema.person: active}))
            times.append(at[active])
            ended = is_end(schema, made)
        events = pd.concat(pieces, ignore_index=True)
        if schema.order is not None:
            column = schema.events.column(schema.order)
            numbers = _within(np.concatenate(times), events[schema.person].to_numpy(), column)
            events[schema.order] = column.number.typed(numbers, column)
        return events.sort_values(schema.person, kind="stable", ignore_index=True)


class _State:
    """What the next event of each person depends on, as dense encoded rows of transitions."""

    def __init__(self, schema: HistorySchema, encoder: Encoder) -> None:
        self.schema = schema
        blocks: dict[str, list[Any]] = {}
        for block in encoder.layout.blocks:
            blocks.setdefault(block.column, []).append(block)
        self._slices = {name: slice(of[0].start, of[-1].stop) for name, of in blocks.items()}
        self._width = encoder.layout.width

    def conditional(self, saved: SavedGenerator) -> "DrawsRest":
        """The distribution of the next event and the gap."""
        people = {column.name for column in self.schema.person_columns}
        names = enumerate(self.schema.next_rows.names)
        return saved.network.conditional(
            [place for place, name in names if name in people or not (name.startswith("next ") or name == GAP)]
        )

    def of_first(self, first: pd.DataFrame) -> NDArray[np.float64]:
        """Rows that hold the person, and the first event as the last one."""
        x = np.zeros((len(first), self._width))
        for column in self.schema.person_columns:
            self._put(x, column.name, _dense(self.schema.first_rows.part([column.name]), first))
        for column in self.schema.states:
            name = f"first {column.name}"
            dense = _dense(self.schema.first_rows.part([name]), first)
            place = self._slices[f"last {column.name}"]
            x[:, place] = dense[:, : place.stop - place.start]  # a place for missing that only first events have
        return x

    def _put(self, x: NDArray[np.float64], name: str, dense: NDArray[np.float64]) -> None:
        x[:, self._slices[name]] = dense

    def set_class(self, x: NDArray[np.float64], rows: NDArray[np.int64], name: str, values: NDArray[np.int64]) -> None:
        """Set a class of lengths or steps."""
        place = self._slices[name]
        x[rows, place] = 0
        x[rows, place.start + values] = 1

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
        return gap.number.numbers(rows[GAP], gap)

    def move_on(self, x: NDArray[np.float64], rows: NDArray[np.int64], new: NDArray[np.float64]) -> None:
        """Make the next event the last one."""
        for column in self.schema.states:
            x[rows, self._slices[f"last {column.name}"]] = new[:, self._slices[f"next {column.name}"]]


def _within(times: NDArray[np.float64], persons: NDArray[np.int64], column: Column) -> NDArray[np.float64]:
    """Where events stand in their histories, each pressed together evenly as far as the order's upper bound asks.

    A gap that the bound cut off would end at the bound, and those after it would be 0. Evenly pressed, the gaps of a
    history keep their ratios.

    Args:
        times: of events, ascending within a person.
        persons: of each event; the first event of each person comes before all later ones.
        column: the order.
    """
    _, firsts, places = np.unique(persons, return_index=True, return_inverse=True)
    start, end = times[firsts], times[firsts].copy()
    np.maximum.at(end, places, times)
    late, room = end > column.bounds[1], np.ones(len(start))
    room[late] = (column.bounds[1] - start[late]) / (end - start)[late]
    numbers = start[places] + (times - start[places]) * room[places]
    return np.clip(numbers if column.decimals is None else np.round(numbers, column.decimals), *column.bounds)


def _dense(schema: Schema, table: pd.DataFrame) -> NDArray[np.float64]:
    """Dense encoded rows of the columns of a schema."""
    encoder = Encoder(schema)
    return encoder.expand(encoder.encode(table))


def _plain(schema: HistorySchema, events: pd.DataFrame) -> pd.DataFrame:
    """First events typed as events: a number that may be missing among first events has another type."""
    found = {}
    for column in schema.moving:
        values = events[column.name].reset_index(drop=True)
        if not column.is_categorical:
            values = column.number.typed(column.number.numbers(values, column), column)
        found[column.name] = values
    return pd.DataFrame(found)


def _range(schema: Schema, name: str) -> tuple[Any, Any]:
    column = schema.column(name)
    lower, upper = column.bounds
    return column.text(lower), column.text(upper)


__all__ = ["Fitted", "Histories", "HistoryGenerator", "HistoryProject", "fit_histories"]
