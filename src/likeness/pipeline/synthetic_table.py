"""Synthetic tables: drawn from generators, and as bytes of Parquet and CSV."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from likeness.config.params import AUTO, FileFormat, Sample
from likeness.core.extras import pa, pd, pq
from likeness.data.schema.column import Column
from likeness.data.schema.kinds.categories import escape_formula, formulas_in
from likeness.data.schema.schema import Schema
from likeness.pipeline.where import conditions_by_name

if TYPE_CHECKING:
    from pandas import DataFrame, Series

    from likeness.methods.base import Context
    from likeness.release.released import Released

_PLAIN = FileFormat()
LINEAGE = b"likeness.lineage"  # key in the Parquet file's metadata


class Request(NamedTuple):
    """Section ``sample`` with its number of rows."""

    rows: int
    seed: int
    where: Mapping[str, Any]


def row_request(sample: Sample, context: "Context", auxiliary: "Mapping[str, Released]") -> Request:
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


def read_synthetic(path: Path, schema: Schema) -> "DataFrame":
    """A synthetic table as typed rows, from its Parquet file.

    Raises:
        DataError: a value is none of its column.
    """
    from likeness.data.encoding.dtypes import typed_again

    return typed_again(pd.read_parquet(path), schema)


def csv_bytes(table: "DataFrame", schema: Schema, layout: FileFormat = _PLAIN) -> bytes:
    """A synthetic table as CSV in UTF-8, written as its source is. The same arguments give the same bytes.

    Args:
        table: in its dtypes. A column with ``format`` has its dates in it, one with ``decimals`` as many digits.
        schema: of the table.
        layout: separator, mark of decimals and quote of the source. Without a separator it is the comma, or the
            semicolon where the comma marks decimals.
    """
    from likeness.data.table_columns import with_columns

    columns = [column for column in schema.columns if column.name in table]
    texts = {column.name: _texts(table[column.name], column, layout.decimal) for column in columns}
    separator = layout.separator or (";" if layout.decimal == "," else ",")
    written: str = with_columns(table, {name: text for name, text in texts.items() if text is not None}).to_csv(
        index=False, lineterminator="\n", sep=separator, decimal=layout.decimal, quotechar=layout.quote or '"'
    )
    return written.encode()


def _texts(values: "Series[Any]", column: Column, decimal: str) -> "Series[Any] | None":
    """A column as its source writes it, where the schema says more than its dtype does; None: as its dtype does.

    A category that a spreadsheet would run is escaped.
    """
    if formulas_in(column):
        return values.map(lambda text: escape_formula(text) if isinstance(text, str) else text, na_action="ignore")
    if column.format is not None and isinstance(values.dtype, pd.ArrowDtype):  # typed, and no texts of a frame
        from likeness.data.encoding.dtypes import source_texts

        return source_texts(values, column)
    if column.decimals is not None and pd.api.types.is_float_dtype(values):
        return values.map(lambda number: f"{number:.{column.decimals}f}".replace(".", decimal), na_action="ignore")
    return None


def parquet_bytes(table: "DataFrame", files: Mapping[str, str], request: Mapping[str, Any]) -> bytes:
    """A synthetic table as Parquet, with its lineage. The same table gives the same bytes with the same pyarrow.

    Args:
        table: typed.
        files: SHA-256 of the CSV and of the files of the generator, by path.
        request: see :func:`sample_request`.
    """
    content = pa.Table.from_pandas(table, preserve_index=False)
    lineage = json.dumps({"files": files, "sample": request}, sort_keys=True).encode()
    content = content.replace_schema_metadata({**content.schema.metadata, LINEAGE: lineage})
    sink = pa.BufferOutputStream()
    pq.write_table(content, sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def sample_request(sample: Sample | Request) -> dict[str, Any]:
    """The request for a table as JSON."""
    conditions = {name: _plain(value) for name, value in conditions_by_name(sample.where).items()}
    return {"rows": sample.rows, "seed": sample.seed, "where": conditions}


def _plain(value: Any) -> Any:
    """A condition as JSON: texts, null, or a list of these."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if value is None else str(value)
