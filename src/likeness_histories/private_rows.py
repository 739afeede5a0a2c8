"""The private rows of people with histories: two row sets, of files or frames, and their digest.

The unit of privacy is a person with all rows of both tables. The method is asked twice: about one row a
person, and about one row a pair of events that follow each other. Both releases count people
(:class:`likeness.release.records.EachPerson`), so the noise does not grow with the number of events.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.config.params import Params
from likeness.core.errors import DataError
from likeness.core.paths import ProjectPaths, row_set_file
from likeness.data.private_tables import read_private, write_private
from likeness.data.source.row_digests import SourceDigest, TypedDigest, digest_of_sets, row_hashes, typed_digest
from likeness.data.source.split import halves, split_by_person
from likeness.data.table_columns import with_columns
from likeness.pipeline.ingest import PERSON, SPLIT, manifest_of, read_place
from likeness.pipeline.sources import Sources
from likeness_histories.row_sets import HistoryRows, history_rows
from likeness_histories.schema import NEXT, HistorySchema

if TYPE_CHECKING:
    from likeness.ledger.ledger import Ledger

STRANGERS = "strangers"  # key of the manifest of a private table of histories

MOST_STRANGERS = 0.05
"""Largest share of events that may name nobody among the people. Fewer are left out."""

_Tables = list[
    tuple[pd.DataFrame, "pd.Series[str]"]
]  # events and, where there is one, people; with the person of each row


def write_histories(
    schema: HistorySchema, inputs: Sources, params: Params, ledger: "Ledger", paths: ProjectPaths
) -> None:
    """Write both row sets of the source, each row with its person and with the part of that person.

    Args:
        schema: public.
        inputs: the sources.
        params: the settings, with the unit of privacy.
        ledger: whose key makes the digests.
        paths: where they are written.

    Raises:
        DataError: a source does not fit the schema, a part of the split has no person, or as :func:`strangers`.
    """
    ingest = params.ingest
    tables: _Tables = []
    sources = []
    for location, columns in zip(inputs.tables, (schema.events, schema.people), strict=True):
        if location is not None and columns is not None:
            sources.append(SourceDigest())
            table, _, names = read_place(location, columns, None, schema.person, sources[-1], ingest.format)
            assert names is not None
            tables.append((table, names))
    unknown, parts = strangers(tables, schema.person), {}
    sides = [split_by_person(names, ingest.split.test_fraction, ingest.split.seed) for _, names in tables]
    for part in ("train", "test"):
        chosen = zip(tables, sides, strict=True)
        parts[part] = _rows(schema, [(table[of == part], names[of == part]) for (table, names), of in chosen])
    train, held_out = (len(rows.people) for rows in parts.values())
    digest = digest_of_histories(schema, parts["train"], ledger.key)
    digests = [*(source.digest(ledger.key) for source in sources), *_typed_digests(schema, tables, ledger.key)]
    manifest = manifest_of(params, ledger.id, digest, train, digests, held_out) | {STRANGERS: unknown}
    ledger.check_owner(manifest["identity"], digest, manifest["rows_digests"])  # the door does it too, but later
    people = [_mark_rows(rows.people, part, np.arange(len(rows.people))) for part, rows in parts.items()]
    following = [_mark_rows(rows.transitions, part, rows.numbers) for part, rows in parts.items()]
    write_private(pd.concat(people, ignore_index=True), paths.table, manifest)
    write_private(pd.concat(following, ignore_index=True), row_set_file(paths.table, NEXT), manifest)


def _typed_digests(schema: HistorySchema, tables: _Tables, key: bytes) -> list[str]:
    """The digest of all typed rows of each table, which a database makes too; empty without rows."""
    schemas = (schema.events, schema.people)[: len(tables)]
    return [
        typed_digest(table, columns, key, ordered=False) if len(table) and columns is not None else ""
        for (table, _), columns in zip(tables, schemas, strict=True)
    ]


def _rows(schema: HistorySchema, tables: _Tables) -> HistoryRows:
    arguments: list[Any] = [part for pair in tables for part in pair]
    return history_rows(schema, *arguments)


def strangers(tables: _Tables, person: str) -> int:
    """Number of events that name nobody among the people. They are left out.

    Args:
        tables: events and, where there is one, people; with the person of each row.
        person: the column that names people.

    Raises:
        DataError: they are more than :data:`MOST_STRANGERS` of the events. Keys of two spellings link no event, and
            the release of people without histories would cost as much.
    """
    if len(tables) == 1:
        return 0
    (_, owners), (_, people) = tables
    unknown = int((~owners.isin(people)).sum())
    check_strangers(unknown, len(owners), person)
    return unknown


def check_strangers(unknown: int, events: int, person: str) -> None:
    """Refuse too many events that name nobody among the people.

    Args:
        unknown: their number.
        events: the number of all events.
        person: the column that names people.

    Raises:
        DataError: as :func:`strangers`.
    """
    if unknown > MOST_STRANGERS * events:
        raise DataError(
            f"the tables of events and people: more than {MOST_STRANGERS:.0%} of the events name nobody among the "
            f"people. Nothing was spent. Write '{person}' alike in both tables, or leave such events out."
        )


def _mark_rows(table: pd.DataFrame, part: str, people: NDArray[np.int64]) -> pd.DataFrame:
    """Rows with their part, and with the number of each person."""
    return with_columns(table, {SPLIT: part, PERSON: people})


def written_histories(paths: ProjectPaths, seed: int, halved: bool) -> dict[str, HistoryRows]:
    """Read what :func:`write_histories` wrote, by part; ``halved``: by halves of the people if nobody is held out."""
    people, following = (read_private(row_set_file(paths.table, prefix)) for prefix in ("", NEXT))
    if halved:
        sides = halves(len(people), seed)
        people = with_columns(people, {SPLIT: sides})
        following = with_columns(following, {SPLIT: sides[following[PERSON].to_numpy()]})

    def rows(table: pd.DataFrame, part: str) -> pd.DataFrame:
        return table[table[SPLIT] == part].drop(columns=[SPLIT, PERSON]).reset_index(drop=True)

    def numbers(part: str) -> NDArray[np.int64]:
        of_people, of_rows = (table[PERSON][table[SPLIT] == part].to_numpy() for table in (people, following))
        return np.searchsorted(of_people, of_rows).astype(np.int64)

    return {part: HistoryRows(rows(people, part), rows(following, part), numbers(part)) for part in ("train", "test")}


def digest_of_histories(schema: HistorySchema, rows: HistoryRows, key: bytes) -> str:
    """Keyed digest of both row sets; people in any order. Of a transition it is part how many its person has."""
    shared = np.bincount(rows.numbers, minlength=len(rows.people))[rows.numbers]
    people = TypedDigest(schema.first_rows, ordered=False)
    people.add(row_hashes(rows.people, schema.first_rows))
    hashes, pairs = row_hashes(rows.transitions, schema.next_rows), dict[int, TypedDigest]()
    for share in np.unique(shared).tolist():
        pairs[share] = following = TypedDigest(schema.next_rows, ordered=False)
        following.add(hashes[shared == share])
    return digest_of_sets(people, pairs, key)
