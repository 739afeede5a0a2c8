"""People with several rows: whose row each is, on which side of the split they are, and which of their rows are used.

What is decided about a row here depends on the rows of the same person and on public numbers, and on nothing else of
the table: not on other people, nor on where a row stands. So one person who is added or removed with all rows changes
at most so many used rows, and no other person's (:func:`likeness.privacy.adjacency.lattice_sensitivity_squared`).
"""

import hashlib
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core.errors import DataError
from likeness.data.schema.column import PERSON_COLUMN
from likeness.data.schema.schema import Schema
from likeness.data.source.row_digests import row_hashes

__all__ = ["PERSON_COLUMN", "bounded", "numbered", "people_of", "split_by_person"]


def people_of(values: "pd.Series[Any]", where: str) -> "pd.Series[str]":
    """Who each row is of, as text.

    Args:
        values: the cells of the column as they were read. where: what messages call the source.

    Raises:
        DataError: a row names nobody, or the names are neither texts nor whole numbers.
    """
    values = values.astype("object")
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if kind not in ("string", "integer", "empty"):
        raise DataError(
            f"{where}: column '{values.name}' of ingest.unit must hold texts or whole numbers, one spelling a person."
        )
    texts = values.where(values.notna(), "").astype("str").str.strip()
    if (texts == "").any():
        raise DataError(
            f"{where}: column '{values.name}' of ingest.unit has an empty cell. Every row must say whose it is: give "
            "such rows an id, or leave them out."
        )
    return texts


def split_by_person(people: "pd.Series[str]", test_fraction: float, seed: int) -> NDArray[np.str_]:
    """All rows of a person on one side, chosen by a public hash of the person's own name.

    Returns:
        ``train`` or ``test``, shape (n,).
    """
    codes, names = pd.factorize(people)
    start = hashlib.sha256(f"likeness person {seed}".encode())
    uniform = np.frombuffer(b"".join(_hashed(start, name.encode()) for name in names), dtype="<u8") / 2.0**64
    return np.where(uniform < test_fraction, "test", "train")[codes]


def bounded(
    table: pd.DataFrame, schema: Schema, people: "pd.Series[str]", parts: NDArray[np.str_], max_rows: int
) -> NDArray[np.bool_]:
    """Which rows are used: at most ``max_rows`` of each person in each part of the split.

    Of more, those with the smallest hashes of person, content and copy, where a person's equal rows are copies 0, 1,
    ... of each other. It is a draw without replacement that every person's rows make for themselves: their order does
    not matter, nor who else is in the table. A person whom a public split column has put into both parts is bounded in
    each of them; what counts for privacy are the training rows, for nothing else ever reaches the door.

    Args:
        table: typed with ``schema``. people: see :func:`people_of`. parts: ``train`` or ``test`` for each row.

    Returns:
        a mask of rows, shape (n,).
    """
    owners = pd.DataFrame({"person": pd.factorize(people)[0], "train": parts == "train"})
    keep = (owners.groupby(["person", "train"])["person"].transform("size") <= max_rows).to_numpy(dtype=bool, copy=True)
    many = np.flatnonzero(~keep)
    if not len(many):
        return keep
    own = owners.iloc[many].assign(content=row_hashes(table.iloc[many], schema, 0))
    own["copy"] = own.groupby(["person", "train", "content"]).cumcount()
    names = people.iloc[many].tolist()
    start = hashlib.sha256(b"likeness row of a person")
    hashes = [
        _hashed(start, f"{content} {copy} {name}".encode())
        for content, copy, name in zip(own["content"].tolist(), own["copy"].tolist(), names, strict=True)
    ]
    own["hash"] = np.frombuffer(b"".join(hashes), dtype="<u8")
    ranked = own.sort_values(["person", "train", "hash", "content", "copy"])
    rank = ranked.groupby(["person", "train"]).cumcount()
    keep[many] = (rank < max_rows).reindex(own.index).to_numpy()
    return keep


def numbered(people: "pd.Series[str]") -> NDArray[np.int64]:
    """Numbers from 0 on instead of names, in the order of first rows: all that private tables keep of the names."""
    return pd.factorize(people)[0].astype(np.int64)


def _hashed(start: Any, name: bytes) -> bytes:
    own = start.copy()
    own.update(name)
    digest: bytes = own.digest()[:8]
    return digest
