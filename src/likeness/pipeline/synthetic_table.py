"""Synthetic tables: drawn from generators, and as bytes of Parquet and CSV."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from likeness.config.params import AUTO, Sample
from likeness.core.paths import HISTORIES, ONE_TABLE
from likeness.data.schema.schema import Schema
from likeness.pipeline.where import allowed_values, named

if TYPE_CHECKING:
    from pandas import DataFrame

    from likeness.data.histories.schema import HistorySchema
    from likeness.methods.base import Context
    from likeness.methods.saved_generator import SavedGenerator
    from likeness.release.records import Records
    from likeness.release.released import Released

Dtypes = Mapping[str, Mapping[str, str]] | None
LINEAGE = b"likeness.lineage"  # key in the Parquet file's metadata


class Request(NamedTuple):
    """Section ``sample`` with its number of rows."""

    rows: int
    seed: int
    where: Mapping[str, Any]


def numbered(sample: Sample, context: "Context", auxiliary: "Mapping[str, Released]") -> Request:
    """The request with a number of rows: in the place of ``auto`` the noisy number of training rows.

    Args:
        sample: the request.
        context: public facts; under ``replace_one`` the number is one of them.
        auxiliary: released answers by the name of their query.
    """
    from likeness.methods.base import CLASS_COUNTS, number_of_records

    auto = sample.rows == AUTO
    rows = round(number_of_records(context, auxiliary[CLASS_COUNTS])) if auto else int(sample.rows)
    return Request(rows, sample.seed, sample.where)


def typed_rows(saved: "SavedGenerator", schema: Schema, rows: int, seed: int, where: Mapping[str, Any]) -> "DataFrame":
    """Rows of a generator as a typed table."""
    from likeness.pipeline.drawn_rows import DrawnRows

    return DrawnRows(saved, schema).under(rows, seed, allowed_values(where, schema))


def draw(
    saved: "SavedGenerator",
    schema: Schema,
    rows: int,
    seed: int,
    where: Mapping[str, Any],
    dtypes: Mapping[str, str] | None = None,
) -> "DataFrame":
    """Rows of a generator in their dtypes, for the stage, ``likeness sample`` and a logged model.

    Args:
        saved: the generator.
        schema: of the table, with the dtypes of its columns.
        rows: number of rows.
        seed: public.
        where: see :func:`likeness.pipeline.where.conditions`.
        dtypes: words by column, which go before those of the schema.
    """
    from likeness.data.encoding.dtypes import in_dtypes

    return in_dtypes(typed_rows(saved, schema, rows, seed, where), schema, dtypes)


def read_synthetic(path: Path, schema: Schema) -> "DataFrame":
    """A synthetic table as typed rows, from its Parquet file.

    Raises:
        DataError: a value is none of its column.
    """
    import pandas as pd

    from likeness.data.encoding.dtypes import typed_again

    return typed_again(pd.read_parquet(path), schema)


def as_released(
    schema: "HistorySchema", tables: "Mapping[str, DataFrame]", most: int
) -> "dict[str, Iterable[Records]]":
    """Synthetic people with histories as a release counts them, by the prefix of their queries.

    Args:
        schema: public.
        tables: typed people and events, by name.
        most: people that count; the first ones.
    """
    from likeness.data.histories.rows import rows_of_tables
    from likeness.pipeline.private_rows import encoded_chunks
    from likeness.release.records import EachPerson

    people, events = tables["people"].head(most), tables["events"]
    rows = rows_of_tables(schema, people, events[events[schema.person].isin(people[schema.person])])
    first, following = schema.row_sets
    chunks = encoded_chunks(rows.transitions, schema.next_rows, rows.numbers)
    return {first: encoded_chunks(rows.people, schema.first_rows), following: EachPerson().stream(chunks)}


def drawn_tables(
    generators: Path, schema: Schema, histories: "HistorySchema | None", sample: Request, dtypes: Dtypes = None
) -> "dict[str, DataFrame]":
    """The tables of a run by name, in their dtypes.

    Args:
        generators: folder of the generator, or of both of histories.
        schema: of the table, or of a row a person.
        histories: of people with histories.
        sample: the request.
        dtypes: words by column, for each table; they go before those of the schema.
    """
    return tables_of(saved_generators(generators, histories), schema, histories, sample, dtypes)


def saved_generators(folder: Path, histories: "HistorySchema | None") -> "list[SavedGenerator]":
    """The generator in a folder, or both of histories."""
    from likeness.methods.saved_generator import SavedGenerator

    names = [""] if histories is None else [Path(name).name for name in HISTORIES.generators]
    return [SavedGenerator.load(folder / name) for name in names]


def tables_of(
    generators: "Sequence[SavedGenerator]",
    schema: Schema,
    histories: "HistorySchema | None",
    sample: Request,
    dtypes: Dtypes = None,
) -> "dict[str, DataFrame]":
    """As :func:`drawn_tables`, from generators in memory."""
    if histories is None:
        words = (dtypes or {}).get(ONE_TABLE.tables[0])
        return {ONE_TABLE.tables[0]: draw(generators[0], schema, *sample, words)}
    from likeness.pipeline.histories import HistoryGenerator

    return HistoryGenerator(generators[0], generators[1], histories).tables(*sample, dtypes)


def csv_bytes(table: "DataFrame") -> bytes:
    """A synthetic table as CSV. The same table gives the same bytes."""
    return table.to_csv(index=False, lineterminator="\n").encode()


def parquet_bytes(table: "DataFrame", files: Mapping[str, str], request: Mapping[str, Any]) -> bytes:
    """A synthetic table as Parquet, with its lineage. The same table gives the same bytes with the same pyarrow.

    Args:
        table: typed.
        files: SHA-256 of the CSV and of the files of the generator, by path.
        request: see :func:`sample_request`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = pa.Table.from_pandas(table, preserve_index=False)
    lineage = json.dumps({"files": files, "sample": request}, sort_keys=True).encode()
    content = content.replace_schema_metadata({**content.schema.metadata, LINEAGE: lineage})
    sink = pa.BufferOutputStream()
    pq.write_table(content, sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def sample_request(sample: Sample | Request) -> dict[str, Any]:
    """The request for a table as JSON."""
    given = {name: _plain(value) for name, value in named(sample.where).items()}
    return {"rows": sample.rows, "seed": sample.seed, "where": given}


def _plain(value: Any) -> Any:
    """A condition as JSON: texts, null, or a list of these."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if value is None else str(value)
