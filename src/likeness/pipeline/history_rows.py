"""The private rows of people with histories: two row sets, and a door to each.

The unit of privacy is a person with all rows of both tables. The method is asked twice: about one row a
person, and about one row a pair of events that follow each other. Both releases count people
(:class:`likeness.release.records.EachPerson`), so the noise does not grow with the number of events.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from likeness.core.errors import DataError
from likeness.core.hashing import sha256_json
from likeness.data.histories.rows import HistoryRows, history_rows
from likeness.data.histories.schema import HistorySchema
from likeness.data.source.files import read_frame_people
from likeness.data.source.row_digests import SourceDigest, unordered_digest
from likeness.pipeline.private_rows import encoded_chunks
from likeness.pipeline.project import Project
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released, from_bytes
from likeness.release.request import Dataset

if TYPE_CHECKING:
    from likeness.methods.row_set import RowSet


def read_histories(
    schema: HistorySchema, events: pd.DataFrame, people: pd.DataFrame | None, source: SourceDigest
) -> HistoryRows:
    """Both row sets of two frames.

    Raises:
        DataError: a frame does not fit the schema, or there is no person.
    """
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


def history_doors(project: Project, schema: HistorySchema, rows: HistoryRows, rows_digest: str) -> "list[Door]":
    """A door to each row set of a project."""
    ledger, params = project.ledger_to_spend, project.params
    digest = _digest(schema, rows, ledger.key)
    people = np.arange(len(rows.people), dtype=np.int64)
    doors = []
    tables = (rows.people, people), (rows.transitions, rows.numbers)
    for row_set, (table, numbers) in zip(project.row_sets, tables, strict=True):
        dataset = Dataset(
            population=params.privacy.population,
            digest=digest,
            attempt=params.ledger.attempt,
            encoding=row_set.encoding,
            unit=params.ingest.unit,
            rows_digest=rows_digest,
        )
        read: Callable[[], Iterator[Records]] = partial(encoded_chunks, table, row_set.context.schema, numbers)
        doors.append(Door(project.plan, ledger, dataset, read, project.provenance))
    return doors


def _digest(schema: HistorySchema, rows: HistoryRows, key: bytes) -> str:
    """Keyed digest of both row sets, with the number of rows that share a contribution; people in any order."""
    shared = np.bincount(rows.numbers, minlength=len(rows.people))[rows.numbers]
    parts = [unordered_digest([rows.people], schema.first_rows, key)]
    for share in range(1, schema.most):
        parts.append(unordered_digest([rows.transitions[shared == share]], schema.next_rows, key))
    return sha256_json(parts)


def release_histories(project: Project, doors: "list[Door]") -> dict[str, Released]:
    """Release all that the method asks about both row sets; all checks come before the ledger."""
    released: dict[str, Released] = {}
    for rows, door in zip(project.row_sets, doors, strict=True):

        def answer(query: Query, rows: "RowSet" = rows, door: Door = door) -> Released:
            asked = rows.named(query)
            released[asked.name] = from_bytes(door.release(asked), asked.name)
            return released[asked.name]

        auxiliary = project.method.ask(rows.context, answer)
        answer(project.method.embedding_query(rows.context, auxiliary))
    return released
