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
    from likeness.data.warehouse.statements import Split

COUNTED = "counted"
"""The key of a manifest whose rows stay in their database."""


def reasons_to_come(schema: Schema, params: "Params") -> list[str]:
    """Why rows have to come to be ingested, by schema and settings alone; empty where they may stay.

    Args:
        schema: of a row a record, as it is written.
        params: the settings.
    """
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
    counted = all(hasattr(one, "counted_tables") or hasattr(one, "axes") for one in maps)
    conditions = {
        "tracking.internal_metrics asks for comparisons with real rows": params.tracking.internal_metrics,
        f"method {params.method} asks for more than counts of cells": not counted,
    }
    return [reason for reason, holds in conditions.items() if holds]


def split_there(params: "Params") -> "Split":
    """The split of the settings, as a database makes it."""
    from likeness.data.warehouse.statements import Split

    split = params.ingest.split
    if split.column is None:
        return Split(split.test_fraction, split.seed)
    return Split(0.0, split.seed, "", split.column, split.train, split.test)
