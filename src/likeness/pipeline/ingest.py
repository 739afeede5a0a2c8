"""From the source to the private tables, in chunks: memory does not grow with the number of rows."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.config.params import NONE, FileFormat, Params
from likeness.core.engine import LOCAL, Engine
from likeness.core.errors import DataError
from likeness.core.extras import pc
from likeness.core.hashing import json_value, sha256_json
from likeness.data.encoding.encoder import Encoder
from likeness.data.private_tables import as_written, private_chunks
from likeness.data.schema.column import PERSON_COLUMN, SPLIT_COLUMN
from likeness.data.schema.constrained_tables import forward_transform
from likeness.data.schema.schema import Schema
from likeness.data.source.cells import apply_released
from likeness.data.source.contribution_bounding import bound_contributions, person_numbers
from likeness.data.source.files import parquet_rows, raw_chunks, read_frame, read_frame_people, read_source, typed_chunk
from likeness.data.source.row_digests import ColumnsOfSource, SourceDigest, TypedDigest, row_hashes
from likeness.data.source.split import SplitByContent, SplitByPosition, split_by_column, split_by_person
from likeness.data.table_columns import with_columns
from likeness.pipeline.sources import Frame, Location, Sources, check_number
from likeness.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from pandas import DataFrame, Series
    from pyarrow import Table

    from likeness.data.source.row_digests import Hashes
    from likeness.data.source.split import Parts
    from likeness.ledger.first_nights import CohortNight
    from likeness.ledger.ledger import Ledger

SPLIT, PERSON = SPLIT_COLUMN, PERSON_COLUMN
_ENCODED_ROWS, _ENCODED_CELLS = 1 << 18, 1 << 22  # encoded at once


def manifest_of(
    params: Params,
    ledger_id: str,
    digest: str,
    count: int,
    rows_digests: Sequence[str] = (),
    held_out: int | None = None,
    cohort_night: "CohortNight | None" = None,
) -> dict[str, Any]:
    """The manifest of an ingested table; it holds the number of training rows only where that is public.

    Two nights without a row would have one digest of rows, and show it. So the digest of a cohort is about its nights.
    Tables without rows have no digest, and the number of digests would show it. So a night has others in their place.

    Args:
        params: the settings.
        ledger_id: of the ledger whose key made the digests.
        digest: of the training rows.
        count: number of training rows.
        rows_digests: of the rows of each table of the source, and of its typed rows.
        held_out: number of test rows; None: there is no split.
        cohort_night: whom a night of a series asks about; None: everybody.

    Raises:
        DataError: the public number of rows is not that of the settings (the door insists on it too). Or there is no
            training row: noise on nothing would cost as much as noise on rows. Or a split leaves no test row. A night
            of a series may have no row: a refusal would show that nobody came.
    """
    wanted = held_out if params.ingest.split.holds_out else None
    for part, rows in (("training", count), ("test", wanted)):
        if rows == 0 and params.privacy.series == NONE:
            raise DataError(
                f"ingest.source has no {part} rows. Nothing was spent. Give a source with more rows, or change "
                "ingest.split."
            )
    public = params.privacy.adjacency == Adjacency.REPLACE_ONE
    check_number(params, count if public else None)
    return {
        "identity": params.privacy.population,
        "adjacency": params.privacy.adjacency,
        "series": params.privacy.series,
        "ledger": ledger_id,
        "digest": digest,
        "rows_digests": [digest for digest in rows_digests if digest],
        "num_records": count if public else None,
        "unit": json_value(params.ingest.unit),
        **({} if cohort_night is None else _night_manifest(params, cohort_night, digest, rows_digests)),
    }


def _night_manifest(
    params: Params, cohort_night: "CohortNight", digest: str, rows_digests: Sequence[str]
) -> dict[str, Any]:
    about = {"group": cohort_night.group, "first_nights": cohort_night.first_nights, "day": cohort_night.day}
    night = [params.privacy.population, cohort_night.group, params.ledger.attempt]
    digests = [rows_digest or sha256_json(["no rows", index, *night]) for index, rows_digest in enumerate(rows_digests)]
    return {**about, "digest": sha256_json([digest, *night[1:]]), "rows_digests": digests}


def read_place(
    location: Location,
    schema: Schema,
    split: str | None,
    person: str | None,
    source: "SourceDigest | None",
    layout: FileFormat,
) -> "tuple[DataFrame, Series[str] | None, Series[str] | None]":
    """The typed rows of a file, a folder, a query or a frame, and the columns of split and person.

    Raises:
        DataError: the source is missing or does not fit the schema.
    """
    if isinstance(location, Frame):
        if person is None:
            return read_frame(location.rows, schema, location.name, source), None, None
        typed, people = read_frame_people(location.rows, schema, person, location.name, source)
        return typed, None, people
    from likeness.data.source.databases import Database  # here: it loads SQLAlchemy

    if isinstance(location, Database):
        return location.read(schema, split, person, source)
    return read_source(location, schema, split, person, source, layout)


def used_rows(
    params: Params,
    schema: Schema,
    table: "DataFrame",
    column: "Series[str] | None",
    persons: "Series[str] | None" = None,
) -> "tuple[DataFrame, Hashes]":
    """The typed rows that are used, each with its part and, under ``ingest.unit``, the number of its person.

    The second value are their hashes.

    Args:
        params: the settings.
        schema: the written schema.
        table: the typed rows of the source.
        column: the public split column, if there is one.
        persons: whose row each is, under ``ingest.unit``.
    """
    hashes, unit, split = row_hashes(table, schema), params.ingest.unit, params.ingest.split
    if persons is not None and column is None:
        parts = split_by_person(persons, split.test_fraction, split.seed)
    else:
        parts = split_of(params, len(table))(hashes, column)
    if persons is None or unit is None:
        return with_columns(table, {SPLIT: parts}), hashes
    keep = bound_contributions(hashes, persons, parts, unit.max_rows)
    used = with_columns(table[keep], {SPLIT: parts[keep], PERSON: person_numbers(persons[keep])})
    return used.reset_index(drop=True), hashes[keep]


def find_cohort(params: Params, ledger: "Ledger | None", persons: "Series[str] | None") -> "CohortNight | None":
    """Find the people whom a night of a series asks about; None without a series: everybody.

    Args:
        params: the settings.
        ledger: of the series.
        persons: whose row each is, of all rows of the source.

    Raises:
        LedgerError: the first nights of people are not those of the ledger's newest night.
    """
    if params.privacy.series == NONE:
        return None
    from likeness.ledger.first_nights import cohort_members  # here: to encode rows needs no ledger

    assert ledger is not None and persons is not None
    return cohort_members(ledger.chain, params.privacy.population, params.ledger.attempt, persons.unique())


def cohort_rows(
    cohort_night: "CohortNight | None", table: "DataFrame", column: "Series[str] | None", persons: "Series[str] | None"
) -> "tuple[DataFrame, Series[str] | None, Series[str] | None]":
    """The rows of the people whom the night asks about, with split column and people; all without a series."""
    if cohort_night is None or persons is None:
        return table, column, persons
    rows = persons.isin(cohort_night.members).to_numpy()
    left = None if column is None else column[rows].reset_index(drop=True)
    return table[rows].reset_index(drop=True), left, persons[rows].reset_index(drop=True)


def split_of(params: Params, count: int) -> "Callable[[Hashes, Series[str] | None], Parts]":
    """The rule that fits the adjacency: from hashes and split column of each chunk in order to its parts.

    Args:
        params: the settings; a row is a person.
        count: number of rows of all chunks. It counts under ``replace_one`` without a split column only.
    """
    split = params.ingest.split
    if split.column is not None:
        return lambda _, column: split_by_column(column, split.train, split.test)  # type: ignore[arg-type]
    if params.privacy.adjacency == Adjacency.REPLACE_ONE:
        by_position = SplitByPosition(count, split.test_fraction, split.seed)
        return lambda hashes, _: by_position.assign_parts(hashes)
    by_content = SplitByContent(split.test_fraction, split.seed)
    return lambda hashes, _: by_content.assign_parts(hashes)


def typed_rows(sources: Sources, schema: Schema, rows: "IngestedRows", engine: Engine = LOCAL) -> "Iterator[DataFrame]":
    """The used rows of the source, typed, with their split and person: at least one chunk, in order.

    A split by content needs 16 bytes a row, and 64 for moments; nothing if no row is held out. One by position needs 9,
    and the number of rows in advance. A CSV or .npz file does not have it, so memory then holds the rows.

    Args:
        sources: the sources, with their settings.
        schema: as it is written.
        rows: takes up digests and numbers.
        engine: where rows are typed and hashed. This thread reads and splits them.

    Raises:
        DataError: the source is missing or damaged, or a value breaks the schema's rule for its column.
    """
    for table, hashes in _used_rows(sources, schema, rows, engine):
        is_train = (table[SPLIT] == "train").to_numpy()
        rows.training.add(hashes if is_train.all() else hashes[is_train])
        rows.typed.add(hashes)
        rows.held_out += int((~is_train).sum())
        yield table


class IngestedRows:
    """The sums and digests of the rows of a source, while they pass.

    Attributes:
        source: takes up all rows of the source, also those that are not used.
        training: takes up the typed training rows.
        typed: takes up the typed rows of both parts, so it does not depend on the split of rows.
        held_out: number of test rows.
        cohort_night: whom a night of a series asks about; None: everybody.
        ledger: of the series.
    """

    def __init__(self, params: Params, schema: Schema, ledger: "Ledger | None" = None) -> None:
        """Start without rows. A series needs a ledger."""
        # Places of rows fix their pairs under ``replace_one``. Else rows in any order are one request.
        is_ordered = params.privacy.adjacency == Adjacency.REPLACE_ONE
        self.source, self.training, self.held_out = SourceDigest(), TypedDigest(schema, ordered=is_ordered), 0
        self.typed = TypedDigest(schema, ordered=False)
        self.cohort_night: CohortNight | None = None
        self.ledger = ledger

    def manifest(self, params: Params, ledger_id: str, key: bytes) -> dict[str, Any]:
        """The manifest of these rows, as :func:`manifest_of`.

        Args:
            params: the settings.
            ledger_id: of the ledger.
            key: its secret.
        """
        digest, typed = self.training.digest(key), self.typed.digest(key) if self.typed.count else ""
        others = [self.source.digest(key), typed]  # a digest of no row would show that there is none
        return manifest_of(params, ledger_id, digest, self.training.count, others, self.held_out, self.cohort_night)


def source_rows(
    sources: Sources, schema: Schema, source: "SourceDigest | None" = None
) -> "tuple[DataFrame, Series[str] | None, Series[str] | None]":
    """The typed rows of the source; also its split column and its people, if params.yaml names such columns.

    Args:
        sources: the sources, with their settings.
        schema: as it is written.
        source: takes up the rows with all columns of the source.

    Raises:
        DataError: the source is missing or does not fit the schema.
    """
    ingest, (location, _) = sources.ingest, sources.tables
    columns = ingest.split.column, None if ingest.unit is None else ingest.unit.column
    return read_place(location, schema, *columns, source, ingest.format)


def _used_rows(
    sources: Sources, schema: Schema, rows: IngestedRows, engine: Engine
) -> "Iterator[tuple[DataFrame, Hashes]]":
    """The used rows with their hashes, in chunks."""
    params, split, source = sources.params, sources.ingest.split, rows.source
    if params.ingest.unit is not None or params.ingest.from_database or sources.frames is not None:
        # All at once: a person's rows may lie anywhere, and a database gives them in no order.
        loaded = source_rows(sources, schema, source)
        rows.cohort_night = find_cohort(params, rows.ledger, loaded[2])
        yield used_rows(params, schema, *cohort_rows(rows.cohort_night, *loaded))
        return
    path, column, layout = sources.file, split.column, sources.ingest.format

    columns_of_source = ColumnsOfSource()

    def piece_of(item: "tuple[DataFrame, list[Any]]") -> "Iterator[tuple[DataFrame, Series[str] | None, Hashes, int]]":
        table, parts, _ = typed_chunk(item[0], path.name, schema, column, None, layout)
        digest = SourceDigest()
        for names, columns in item[1]:
            digest.add(names, columns)
        yield table, parts, row_hashes(table, schema), digest.total

    count, chosen = parquet_rows(path), [] if column is None else [column]
    raw = raw_chunks(path, schema, chosen, columns_of_source, layout)
    pieces = engine.stream(piece_of, ((cells, columns_of_source.take_columns()) for cells in raw))
    if count is None and column is None and params.privacy.adjacency == Adjacency.REPLACE_ONE:
        every = list(pieces)
        pieces, count = iter(every), sum(len(table) for table, *_ in every)
    parts_of = split_of(params, count or 0)
    for table, parts, hashes, total in pieces:
        source.put(total)
        yield with_columns(table, {SPLIT: parts_of(hashes, parts)}), hashes


def encoded_rows(
    table: Path, written: Schema, schema: Schema, ingested: dict[str, Any], engine: Engine = LOCAL
) -> "Iterator[DataFrame | Table]":
    """The codes of the training rows, with their person. Test rows end here: the door cannot read them.

    Args:
        table: the ingested table.
        written: its schema.
        schema: completed with released categories.
        ingested: the manifest of the table that is meant.
        engine: where rows are encoded. This thread reads them.

    Raises:
        ArtifactError: the table has another manifest.
    """
    encoder = Encoder(schema.model_schema)

    def encode_chunk(rows: "Table") -> "Iterator[DataFrame | Table]":
        trains = pc.equal(rows.column(SPLIT).cast("string"), "train")
        rows = rows if pc.all(trains).as_py() else rows.filter(trains)
        if schema.image is None and not (written.open_columns or schema.rules):
            codes = encoder.encode_stored(rows)
            yield codes.append_column(PERSON, rows.column(PERSON)) if PERSON in rows.column_names else codes
            return
        chunk = as_written(rows)
        beside = {PERSON: chunk[PERSON].to_numpy()} if PERSON in chunk else {}
        typed = forward_transform(apply_released(chunk, written, schema), schema)
        yield with_columns(encoder.encode(typed, compact=True), beside)

    count = max(1, min(_ENCODED_ROWS, _ENCODED_CELLS // len(schema.names)))
    return engine.stream(encode_chunk, private_chunks(table, None, count, manifest=ingested))
