"""Contribution bounding: whose row each is, and which rows of a person are used.

The choice of a row depends on the rows of that person and on public numbers. It does not depend on other people, or on
the place of a row. So one person who is added or removed with all rows changes at most ``max_rows`` used rows, and no
row of another person (:func:`likeness.privacy.adjacency.lattice_sensitivity_squared`).
"""

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core.errors import DataError
from likeness.core.text import normal_text
from likeness.data.source.python_cells import text_of
from likeness.data.source.row_digests import Hashes, hashes_of, leading, mix_bits
from likeness.data.source.split import Parts
from likeness.data.table_columns import TEXT

_DIGITS = re.compile(r"[-+]?\d+", re.ASCII)
# pandas writes so where a cell of the column is missing. Three zeros may be a mark of thousands, and from 16 digits on
# float64 does not tell people apart.
_POINT_ZERO = re.compile(r"([-+]?\d{1,15})[.,]0{0,2}", re.ASCII)
_DECIMALS = re.compile(r"[-+]?(?:\d*[.,]\d+|\d+(?:[.,]\d*)?e[-+]\d+)", re.ASCII | re.IGNORECASE)


def people_of(values: "pd.Series[Any]", where: str) -> "pd.Series[str]":
    """The person of each row, as text: one text for all spellings of a key, in each source and each table.

    A whole number is its digits, so ``1``, ``1.0`` and the texts ``1``, ``1.0`` and ``1,0`` are one person. Other texts
    are in their normal form. ``00001`` and ``1`` are two people.

    Args:
        values: raw cells of the column that names people.
        where: name of the source in messages.

    Raises:
        DataError: a row names nobody, or a name is neither a text nor a whole number.
    """
    cells = values.astype("object")
    kinds = {*map(type, cells)}
    codes, distinct = pd.factorize(cells)
    names = [None if kinds & {bool, np.bool_} else name_of(cell) for cell in distinct]
    if None in names:
        raise DataError(
            f"{where}: column '{values.name}' of ingest.unit must hold texts or whole numbers. A number with decimals "
            "names nobody. Correct the source."
        )
    if (codes < 0).any() or "" in names:
        raise DataError(
            f"{where}: column '{values.name}' of ingest.unit has an empty cell. Give each row an id, or leave "
            "such rows out."
        )
    return pd.Series(pd.array(names, TEXT).take(codes), values.index, name=values.name)


def name_of(cell: Any) -> str | None:
    """The text of a key; None where it is neither a text nor a whole number."""
    try:
        name = normal_text(text_of(cell) or "")
    except (TypeError, ValueError, OverflowError):
        return None
    name = _POINT_ZERO.sub(r"\1", name) if _POINT_ZERO.fullmatch(name) else name
    right = not _DECIMALS.fullmatch(name) if isinstance(cell, str) else _DIGITS.fullmatch(name)
    return name if right else None


def bound_contributions(
    hashes: Hashes, people: "pd.Series[str]", parts: Parts | NDArray[Any], max_rows: int
) -> NDArray[np.bool_]:
    """Choose at most ``max_rows`` rows of each person in each part of the split.

    Of more rows, those with the smallest numbers are used. A number is mixed from the first 64 bits of the hashes of
    row and person, and the copy. Equal rows of a person are copies 0, 1, ... of each other. This is a draw without
    replacement within each person: order of rows and other people do not matter. A public split column may put a person
    into both parts; each part is then bounded. Only training rows reach the door.

    Args:
        hashes: of the typed rows.
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
    digests = hashes[many]
    rows = owners.iloc[many].assign(content=leading(digests), rest=leading(digests[:, 8:]))
    rows["copy"] = rows.groupby(["person", "train", "content", "rest"]).cumcount()
    codes, names = pd.factorize(people.iloc[many])
    persons = leading(hashes_of(f"likeness rows of {name}".encode() for name in names))
    rows["number"] = mix_bits(leading(digests) + persons[codes] + rows["copy"].to_numpy("uint64"))
    ranked = rows.sort_values(["person", "train", "number", "content", "rest", "copy"])
    rank = ranked.groupby(["person", "train"]).cumcount()
    keep[many] = (rank < max_rows).reindex(rows.index).to_numpy()
    return keep


def person_numbers(people: "pd.Series[str]") -> NDArray[np.int64]:
    """Numbers from 0 in place of names, in the order of first rows. Private tables hold the numbers only."""
    return pd.factorize(people)[0].astype(np.int64)
