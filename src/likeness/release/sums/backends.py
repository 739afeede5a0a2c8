r"""Exact sums from counts of cells: rows that stay where they are need not come.

A map of cells puts a record into one cell of each part. There the door adds :math:`S_p = \lfloor \sqrt{L_p} \rfloor`
lattice steps, L_p the part's bound (:func:`likeness.release.sums.lattice_sum.cell_sum`). So the coordinate of a cell in
the sum is :math:`S_p` times the number of records in it, and nothing else about the rows enters.

Where m rows of a person share a contribution (:class:`likeness.release.records.EachPerson`), each adds
:math:`\lfloor S_p / m \rfloor` steps. So counts come by m, and the coordinate is the sum of these steps times the
counts.

A map of products (:class:`likeness.features.base.ProductsMap`) follows from counts of pairs of cells
(:func:`likeness.release.sums.products.products_of_cells`).

Both are equal to the sum of :func:`~likeness.release.sums.lattice_sum.lattice_sum` to the last bit, so bounds,
sensitivity and noise are those of every release. A backend that counts wrong releases another table's sum. It has to
count each record once, in one cell of each table, by that record alone: as a map does.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from likeness.core.errors import DataError, ReleaseError
from likeness.features.base import CellMap, ProductsMap
from likeness.release.partition_selection import PartitionQuery
from likeness.release.query import MAX_SUMMED, Query
from likeness.release.records import AllRecords, EachRecord
from likeness.release.sums.products import products_of_cells


@runtime_checkable
class CountReader(Protocol):
    """Rows that are counted where they are."""

    @property
    def max_rows(self) -> int:
        """The most rows of a person that are counted; 0: a row is a person."""

    @property
    def is_per_person(self) -> bool:
        """Tell whether the rows of a person share one contribution, so that groups are numbers of rows of a person."""

    def counts(
        self, tables: Sequence[Sequence[Any]], num_groups: int, by_class: bool
    ) -> tuple[list[NDArray[np.int64]], int]:
        """The number of records in each cell of some tables, and the number of all records.

        Args:
            tables: of each table its axes, as :class:`likeness.features.cells.Cells`.
            num_groups: number of groups; records of others count nowhere.
            by_class: whether groups are counted apart; else all records are in the first group. Groups are classes, or
                with :attr:`is_per_person` the number m of rows of the person, which the same rows say.

        Returns:
            for each table an array of shape (num_groups, cells), where the cells of its last axis are side by side.
        """

    def texts(self, column: str) -> tuple[dict[str, int], int]:
        """The number of records with each text of a column, by SHA-256 of the text, and the number of all records."""

    def texts_of(self, column: str, hashes: Sequence[str]) -> dict[str, str]:
        """The texts of some hashes, by these: of those that are released."""

    def check(self, query: Query | PartitionQuery) -> None:
        """Refuse rows that are not those on record, before their cost is. What it counts may wait in memory.

        Raises:
            DataError: they changed.
        """

    def backend(self, tables: Sequence[Sequence[Any]], by_class: bool) -> str:
        """Name the counter of records for the receipt: one of :data:`likeness.core.format.BACKENDS`, and a digest."""

    def backend_of_texts(self, column: str) -> str:
        """The same for the texts of a column."""


def counted_tables(query: Query) -> tuple[Sequence[Sequence[Any]], bool]:
    """The tables whose counts give the sum of a query, and whether groups are counted apart.

    Groups are classes. Where the rows of a person share a contribution, they are the numbers of rows of a person.

    Raises:
        ReleaseError: the sum does not follow from counts.
    """
    terms = type(query.contributions)
    feature: Any = query.feature
    tables = getattr(feature, "counted_tables", None) or getattr(feature, "axes", None)
    if tables is not None and isinstance(feature, CellMap | ProductsMap):
        if terms in (EachRecord, AllRecords):
            return tables, terms is EachRecord and query.num_groups > 1
        if query.is_per_person and isinstance(feature, CellMap) and query.num_groups == 1:
            return tables, True
    raise ReleaseError(f"{query.name}: counts of cells do not give this sum. Read the rows from a file.")


def question_of(query: Query, rows: CountReader) -> tuple[Sequence[Sequence[Any]], int, bool]:
    """The arguments of :meth:`CountReader.counts` that give the sum of a query."""
    tables, apart = counted_tables(query)
    if query.is_per_person is not rows.is_per_person:
        raise ReleaseError(f"{query.name}: rows of people do not share a contribution there as the query says")
    return tables, rows.max_rows + 1 if query.is_per_person else query.num_groups, apart


def counted_sum(query: Query, rows: CountReader) -> tuple[NDArray[np.int64], int]:
    """The lattice sum of a query from counts, int64, shape (num_groups, width), and the number of records.

    Raises:
        DataError: more than 2**32 records, where the sum might not fit 64 bits.
        ReleaseError: the sum does not follow from counts, or the counts have other shapes.
    """
    tables, groups, apart = question_of(query, rows)
    counts, records = rows.counts(tables, groups, apart)
    if records > MAX_SUMMED:
        raise DataError(f"{query.name}: over {MAX_SUMMED} contributions overflow a 64-bit sum. Split the table.")
    if len(counts) != len(query.bounded_parts) or any((table < 0).any() or table.sum() > records for table in counts):
        raise ReleaseError(f"{query.name}: a table of counts holds more records than there are")
    widths = [part.width for part in query.bounded_parts]
    if isinstance(query.feature, ProductsMap):
        total = products_of_cells(query, query.feature, counts)
    else:
        steps = [part.steps(query.lattice_bits) for part in query.bounded_parts]
        weighted = _shared_steps if query.is_per_person else np.multiply
        total = np.concatenate([weighted(table, step) for table, step in zip(counts, steps, strict=True)], axis=1)
        widths = [table.shape[1] for table in counts]
    if widths != [part.width for part in query.bounded_parts] or total.shape != (query.num_groups, query.width):
        raise ReleaseError(f"{query.name}: counts have another shape than the parts of the map")
    return total, records


def _shared_steps(table: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """The steps of people in each cell, which the m rows of a person share: row m of the table is about them.

    As :class:`likeness.release.records.EachPerson`. Nobody has no row.
    """
    each = np.array([0, *(step // rows for rows in range(1, len(table)))], np.int64)
    if table[0].any():
        raise ReleaseError("a row belongs to a person without rows")
    return each[None] @ table
