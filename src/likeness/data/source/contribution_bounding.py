"""Contribution bounding: whose row each is, and which rows of a person are used.

The choice of a row depends on the rows of that person and on public numbers. It does not depend on other people, or on
the place of a row. So one person who is added or removed with all rows changes at most ``max_rows`` used rows, and no
row of another person (:func:`likeness.privacy.adjacency.lattice_sensitivity_squared`).
"""

import hashlib
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core.errors import DataError
from likeness.data.schema.column import PERSON_COLUMN
from likeness.data.schema.schema import Schema
from likeness.data.source.python_cells import TEXT
from likeness.data.source.row_digests import hash_words, row_hashes

__all__ = ["PERSON_COLUMN", "bound_contributions", "numbered", "people_of"]


def people_of(values: "pd.Series[Any]", where: str) -> "pd.Series[str]":
    """The person of each row, as text.

    Args:
        values: raw cells of the column that names people.
        where: name of the source in messages.

    Raises:
        DataError: a row names nobody, or a name is neither a text nor a whole number.
    """
    values = values.astype("object")
    types = set(map(type, values[values.notna()]))
    if not all(issubclass(each, str | int | np.integer) and each is not bool for each in types):
        raise DataError(
            f"{where}: column '{values.name}' of ingest.unit must hold texts or whole numbers, one spelling a person. "
            "Correct the source."
        )
    texts = values.where(values.notna(), "").astype(TEXT).str.strip()
    if (texts == "").any():
        raise DataError(
            f"{where}: column '{values.name}' of ingest.unit has an empty cell. Give each row an id, or leave "
            "such rows out."
        )
    return texts


def bound_contributions(
    table: pd.DataFrame, schema: Schema, people: "pd.Series[str]", parts: NDArray[np.str_], max_rows: int
) -> NDArray[np.bool_]:
    """Choose at most ``max_rows`` rows of each person in each part of the split.

    Of more rows, those with the smallest hashes of person, content and copy are used. Equal rows of a person are copies
    0, 1, ... of each other. This is a draw without replacement within each person: order of rows and other people do
    not matter. A public split column may put a person into both parts; each part is then bounded. Only training rows
    reach the door.

    Args:
        table: typed with ``schema``.
        schema: public schema.
        people: person of each row; see :func:`people_of`.
        parts: ``train`` or ``test`` for each row.
        max_rows: k, the most rows of a person.

    Returns:
        Mask of the used rows, shape (n,).
    """
    owners = pd.DataFrame({"person": pd.factorize(people)[0], "train": parts == "train"})
    keep = (owners.groupby(["person", "train"])["person"].transform("size") <= max_rows).to_numpy(dtype=bool, copy=True)
    many = np.flatnonzero(~keep)
    if not len(many):
        return keep
    rows = owners.iloc[many].assign(content=row_hashes(table.iloc[many], schema, 0))
    rows["copy"] = rows.groupby(["person", "train", "content"]).cumcount()
    names = people.iloc[many].tolist()
    start = hashlib.sha256(b"likeness row of a person")
    texts = zip(rows["content"].tolist(), rows["copy"].tolist(), names, strict=True)
    rows["hash"] = hash_words(start, (f"{content} {copy} {name}".encode() for content, copy, name in texts))
    ranked = rows.sort_values(["person", "train", "hash", "content", "copy"])
    rank = ranked.groupby(["person", "train"]).cumcount()
    keep[many] = (rank < max_rows).reindex(rows.index).to_numpy()
    return keep


def numbered(people: "pd.Series[str]") -> NDArray[np.int64]:
    """Numbers from 0 in place of names, in the order of first rows. Private tables hold the numbers only."""
    return pd.factorize(people)[0].astype(np.int64)
