"""The two row sets of people with histories, each made from the rows of one person alone.

What a person adds to either set depends on the rows of that person, on the schema, and on nothing else. So a person
who comes or goes changes only the rows that have that person's number.
"""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.data.schema.column import Column
from likeness.data.schema.constrained_tables import forward_transform, values_of
from likeness.data.schema.row_sets import GAP, GAP_BEFORE, LENGTH, NUMBER, STEP, USUAL_GAP
from likeness.data.source.contribution_bounding import bound_contributions
from likeness.data.source.row_digests import leading, row_hashes
from likeness_histories.rules import step_values
from likeness_histories.schema import HistorySchema


class HistoryRows(NamedTuple):
    """Both row sets. Private.

    Attributes:
        people: typed with ``first_rows`` of the schema; row i is the person of number i.
        transitions: typed with ``next_rows``, in the order of people.
        numbers: the person of each transition, shape (n,), ascending.
    """

    people: pd.DataFrame
    transitions: pd.DataFrame
    numbers: NDArray[np.int64]


def history_rows(
    schema: HistorySchema,
    events: pd.DataFrame,
    names: "pd.Series[str]",
    people: pd.DataFrame | None = None,
    people_names: "pd.Series[str] | None" = None,
) -> HistoryRows:
    """Make both row sets.

    Events of somebody who is not among the people are left out. Of several rows of a person among the people, that with
    the smallest public hash counts.

    Args:
        schema: public.
        events: typed with ``schema.events``.
        names: the person of each event.
        people: typed with ``schema.people``, where the schema has people.
        people_names: the person of each of these rows.
    """
    if people is not None and people_names is not None and schema.people is not None:
        order = np.argsort(leading(row_hashes(people, schema.people)), kind="stable")
        keep = np.sort(order[~people_names.iloc[order].duplicated().to_numpy()])
        people, people_names = people.iloc[keep], people_names.iloc[keep]
        numbers = pd.Index(people_names).get_indexer(pd.Index(names)).astype(np.int64)
        count = len(people)
    else:
        numbers, listed = pd.factorize(names)
        count = len(listed)
    events, numbers = _counted_events(schema, events, names, np.asarray(numbers, dtype=np.int64))
    lengths = np.bincount(numbers, minlength=count)
    table = _first_rows(schema, events, numbers, lengths, people)
    transitions, persons = _transitions(schema, events, numbers, lengths, table)
    return HistoryRows(
        forward_transform(table, schema.first_rows), forward_transform(transitions, schema.next_rows), persons
    )


def rows_of_tables(schema: HistorySchema, people: pd.DataFrame, events: pd.DataFrame) -> HistoryRows:
    """Both row sets of written tables, typed with ``schema.written``. Somebody without events counts too."""
    persons, owners = (table[schema.person].astype(str) for table in (people, events))
    arguments = () if schema.people is None else (people[list(schema.people.names)], persons)
    return history_rows(schema, events[list(schema.events.names)], owners, *arguments)


def _first_rows(
    schema: HistorySchema,
    events: pd.DataFrame,
    numbers: NDArray[np.int64],
    lengths: NDArray[np.int64],
    people: pd.DataFrame | None,
) -> pd.DataFrame:
    """One row a person, from their events in order."""
    starts = np.cumsum(lengths) - lengths
    firsts = np.where(lengths > 0, starts, -1)
    columns = {}
    for column in schema.person_columns:
        columns[column.name] = (
            _take_cells(events[column.name], column, firsts)
            if people is None
            else people[column.name].reset_index(drop=True)
        )
    if schema.usual:
        columns |= _usual(schema, events, numbers, len(lengths))
    labels = schema.first_rows.column(NUMBER)
    columns[NUMBER] = labels.to_typed(lengths - schema.least)
    for column in schema.time_varying:
        name = f"first {column.name}"
        columns[name] = _take_cells(events[column.name], schema.first_rows.column(name), firsts)
    return pd.DataFrame(columns)


def _usual(
    schema: HistorySchema, events: pd.DataFrame, numbers: NDArray[np.int64], count: int
) -> dict[str, "pd.Series"]:
    """The most frequent category and the middle number of each person's events, and the middle gap.

    Of equally frequent categories the first in the schema counts, of two middle numbers the smaller one.
    """
    columns = {}
    for column in schema.states:
        name, values = f"usual {column.name}", events[column.name]
        if column.is_categorical:
            cells = values.cat.codes.to_numpy().astype(np.int64)
            size = len(column.categories)
            pairs, times = np.unique((numbers * size + cells)[cells >= 0], return_counts=True)
            order = np.lexsort((-times, pairs // size))
            persons, firsts = np.unique(pairs[order] // size, return_index=True)
            most = np.full(count, -1)
            most[persons] = pairs[order][firsts] % size
            columns[name] = column.to_typed(np.where(most < 0, np.nan, most))
        else:
            middle = _middle(column.numbers(values), numbers, count)
            columns[name] = schema.first_rows.column(name).to_typed(middle)
    if schema.order is not None:
        at, gap = order_numbers(schema, events), schema.first_rows.column(USUAL_GAP)
        again = numbers[1:] == numbers[:-1]
        columns[USUAL_GAP] = gap.to_typed(_middle(np.diff(at)[again], numbers[1:][again], count))
    return columns


def _middle(values: NDArray[np.float64], numbers: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """The smaller middle of each person's values (count,); missing where there is none."""
    middle = pd.Series(values).groupby(numbers).quantile(0.5, interpolation="lower")
    return np.asarray(middle.reindex(range(count)), np.float64)


def order_numbers(schema: HistorySchema, events: pd.DataFrame) -> NDArray[np.float64]:
    """Return the order of each event as a number within the public bounds; zeros without an order."""
    if schema.order is None:
        return np.zeros(len(events))
    column = schema.events.column(schema.order)
    return np.clip(column.numbers(events[schema.order]), *column.bounds)


def is_end(schema: HistorySchema, events: pd.DataFrame, prefix: str = "") -> NDArray[np.bool_]:
    """Tell for each event whether no other may follow it."""
    ends = np.zeros(len(events), dtype=bool)
    for name, categories in schema.ends.items():
        ends |= events[f"{prefix}{name}"].isin(categories).to_numpy(dtype=bool)
    return ends


def classes(numbers: NDArray[np.int64], starts: tuple[int, ...]) -> NDArray[np.int64]:
    """The class of each number, by the first number of each class."""
    return np.searchsorted(np.array(starts), numbers, side="right").astype(np.int64) - 1


def steps_of(persons: NDArray[np.int64]) -> NDArray[np.int64]:
    """The step of each transition, from 1 on, by its person; the persons ascend."""
    return np.arange(len(persons)) - np.searchsorted(persons, persons, side="left") + 1


def link_violations(schema: HistorySchema, people: pd.DataFrame, events: pd.DataFrame) -> dict[str, int]:
    """Count the rows of written tables that break what histories promise, by the promise."""
    keys, persons = people[schema.person].to_numpy(), events[schema.person].to_numpy()
    again = persons[1:] == persons[:-1]
    links = {
        "people have the keys from 1 on": int((keys != np.arange(1, len(keys) + 1)).sum()),
        "each event has a person": int((~np.isin(persons, keys)).sum()),
        "events are in the order of people": int((np.diff(persons) < 0).sum()),
        "events of a person are in order": int((again & (np.diff(order_numbers(schema, events)) < 0)).sum()),
        f"a person has at most {schema.most_events} events": int(
            (np.unique(persons, return_counts=True)[1] > schema.most_events).sum()
        ),
        "no event follows an end": int((again & is_end(schema, events)[:-1]).sum()),
    }
    if not schema.rules or any(links.values()):
        return links
    lengths = np.bincount(persons - 1, minlength=len(keys))
    first = _first_rows(schema, events, persons - 1, lengths, people)
    return links | {rule: len(who) for rule, who in violating_people(schema, first, events, persons - 1).items()}


def _counted_events(
    schema: HistorySchema, events: pd.DataFrame, names: "pd.Series[str]", numbers: NDArray[np.int64]
) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """The events that count, in order of people and of their histories, and the person of each."""
    keep, hashes = numbers >= 0, row_hashes(events, schema.events)
    if schema.which_events == "hash":
        keep &= bound_contributions(hashes, names, np.full(len(events), "train"), schema.most_events)
    counted = np.flatnonzero(keep)
    events, numbers = events.iloc[counted], numbers[counted]
    order = np.lexsort((leading(hashes[counted]), order_numbers(schema, events), numbers))
    events, numbers = events.iloc[order].reset_index(drop=True), numbers[order]
    begins = np.searchsorted(numbers, numbers, side="left")
    ended = np.concatenate([[0], np.cumsum(is_end(schema, events))])
    keep = (np.arange(len(numbers)) - begins < schema.most_events) & (ended[:-1] == ended[begins])
    return events[keep].reset_index(drop=True), numbers[keep]


def _transitions(
    schema: HistorySchema,
    events: pd.DataFrame,
    numbers: NDArray[np.int64],
    lengths: NDArray[np.int64],
    people: pd.DataFrame,
) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """One row a pair of events that follow each other, and its person."""
    table = schema.next_rows
    lasts = np.flatnonzero(numbers[:-1] == numbers[1:]) if len(numbers) else np.zeros(0, dtype=np.int64)
    persons = numbers[lasts]
    columns = {column.name: _take_cells(people[column.name], column, persons) for column in schema.static}
    for name, of_each, starts in (
        (LENGTH, lengths[persons], schema.length_starts),
        (STEP, steps_of(persons), schema.step_starts),
    ):
        columns[name] = table.column(name).to_typed(classes(of_each, starts))
    for column in schema.states:
        columns[f"last {column.name}"] = _take_cells(events[column.name], column, lasts)
        columns[f"next {column.name}"] = _take_cells(events[column.name], column, lasts + 1)
    for column in schema.repeatable_columns:
        codes = events[column.name].cat.codes.to_numpy()
        columns[f"same {column.name}"] = table.column(f"same {column.name}").to_typed(codes[lasts] == codes[lasts + 1])
    begins = np.searchsorted(numbers, numbers, side="left")[lasts]
    earlier = np.where(lasts > begins, lasts - 1, -1)
    for word, indices in (("first", begins), ("before", earlier)):
        for column in schema.states if word in schema.memory else ():
            name = f"{word} {column.name}"
            columns[name] = _take_cells(events[column.name], table.column(name), indices)
    if schema.order is not None:
        at, gap = order_numbers(schema, events), table.column(GAP)
        columns[GAP] = gap.to_typed(at[lasts + 1] - at[lasts])
        if "gap" in schema.memory:
            before = np.where(earlier < 0, math.nan, at[lasts] - at[earlier])
            columns[GAP_BEFORE] = table.column(GAP_BEFORE).to_typed(before)
    return pd.DataFrame({name: columns[name] for name in table.names}), persons


def _take_cells(values: "pd.Series", column: Column, indices: NDArray[np.int64]) -> "pd.Series":
    """The cells at some indices, typed as the column says; missing at an index below 0."""
    if column.is_categorical:
        return pd.Series(values.array.take(indices, allow_fill=True))
    numbers = column.numbers(values)
    taken = numbers[indices] if len(numbers) else np.full(len(indices), math.nan)
    return column.to_typed(np.where(indices < 0, math.nan, taken))


def violating_people(
    schema: HistorySchema, first: pd.DataFrame, events: pd.DataFrame, persons: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """The persons whose histories break each rule, by its words. Events are in order of persons and histories."""
    of_first, moving = values_of(first, schema.first_rows.columns), values_of(events, schema.time_varying)
    without = np.bincount(persons, minlength=len(first)) == 0
    of_first |= {name: np.where(without, np.nan, of_first[name]) for name in (f"first {column}" for column in moving)}
    at = np.flatnonzero(persons[:-1] == persons[1:])
    last, following = ({name: cells[at + more] for name, cells in moving.items()} for more in (0, 1))
    of_steps = step_values(of_first, last, following, persons[at], schema.order)
    broken = {str(rule): np.flatnonzero(rule.violations(of_first)) for rule in schema.first_rows.rules}
    return broken | {str(rule): np.unique(persons[at][rule.violations(of_steps)]) for rule in schema.rules_of_steps}
