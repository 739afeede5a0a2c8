"""Rows that stay in their database: when they may, where they are, and how they are recognized.

The typed and the encoded table then hold no row. Their manifest says so, and has the keyed digest of the training rows,
which the database summed up. It is that of :class:`likeness.data.source.row_digests.TypedDigest`: the ledger recognizes
the rows wherever they come from.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from likeness.config.params import NONE
from likeness.data.schema.schema import Schema

if TYPE_CHECKING:
    from likeness.config.params import Params
    from likeness.data.histories.schema import HistorySchema
    from likeness.data.warehouse.rows import RowsThere, Sums
    from likeness.pipeline.sources import Sources

COUNTED = "counted"
"""The key of a manifest whose rows stay in their database."""


def reasons_to_come(schema: "Schema | HistorySchema", params: "Params") -> list[str]:
    """Why rows have to come to be ingested, by schema and settings alone; empty where they may stay.

    Args:
        schema: as it is written.
        params: the settings.
    """
    if not isinstance(schema, Schema):
        return ["people with histories are counted here"]
    conditions = {
        "privacy.series chooses people for each night": params.privacy.series != NONE,
        "the schema is one of images": schema.image is not None,
    }
    return [reason for reason, holds in conditions.items() if holds]


def later_reasons_to_come(params: "Params", maps: Iterable[type]) -> list[str]:
    """Why rows have to come for a later stage.

    Args:
        params: the settings.
        maps: that the method may ask.
    """
    conditions = {
        "tracking.internal_metrics asks for comparisons with real rows": params.tracking.internal_metrics,
        "a quality card looks at rows": params.evaluate.card is not None,
        f"method {params.method} asks for more than counts of cells": not all(map(_is_counted, maps)),
    }
    return [reason for reason, holds in conditions.items() if holds]


def _is_counted(feature: type) -> bool:
    return hasattr(feature, "counted_tables") or hasattr(feature, "axes")


def rows_there(sources: "Sources", schema: Schema, complete: Schema | None = None) -> "RowsThere":
    """The rows of sources that are a database. Nothing is asked yet.

    Args:
        sources: with their settings.
        schema: as it is written.
        complete: with released categories; None: before they are.
    """
    from likeness.data.warehouse.rows import RowsThere
    from likeness.data.warehouse.statements import People, Split

    database, split, unit = sources.database, sources.ingest.split, sources.ingest.unit
    assert database is not None
    column = "" if split.column is None else split.column
    fraction = 0.0 if column else split.test_fraction
    people = None if unit is None else People(unit.column, unit.max_rows)
    return RowsThere(
        database, schema, Split(fraction, split.seed, "", column, split.train, split.test), people, complete
    )


def digest_of_sums(schema: Schema, key: bytes, *sums: "Sums") -> str:
    """The keyed digest of rows, from the sums of their hashes: a database has no order of rows."""
    from likeness.data.source.row_digests import TypedDigest

    digest = TypedDigest(schema, ordered=False)
    for some in sums:
        digest.put(some.total, some.count)
    return digest.digest(key)
