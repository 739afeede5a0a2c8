"""Private rows that a Python caller holds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from likeness.config.params import Params
from likeness.data.encoding.layout import encoding_digest
from likeness.data.schema.constrained_tables import forward_transform
from likeness.data.schema.schema import Schema
from likeness.data.source.cells import apply_released_categories
from likeness.data.source.contribution_bounding import bound_contributions, person_numbers
from likeness.data.source.row_digests import TypedDigest, row_hashes
from likeness.data.table_columns import with_columns
from likeness.pipeline.ingest import cohort_rows, find_cohort, manifest_of, training_digest
from likeness.pipeline.private_rows import PERSON, _texts, dataset_from, encoded_chunks
from likeness.release.door import Door
from likeness.release.released import from_bytes
from likeness.release.request import Dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame, Series

    from likeness.ledger.first_nights import CohortNight
    from likeness.ledger.ledger import Ledger
    from likeness.methods.base import Method
    from likeness.methods.row_set import RowSet
    from likeness.release.partition_selection import Partitions
    from likeness.release.query import Query
    from likeness.release.records import Records
    from likeness.release.released import Released


@dataclass(frozen=True)
class RowsInMemory:
    """Typed training rows in memory, at most ``ingest.unit.max_rows`` of a person.

    Attributes:
        tables: of each row set, by its prefix: rows typed with ``written``, and the number of each row's person, if a
            person may have several rows.
        written: the schemas of the row sets; may have open columns.
        dataset: whose rows; its encoding is that of the first row set as it is written.
    """

    tables: "Mapping[str, tuple[DataFrame, NDArray[np.int64] | None]]"
    written: Mapping[str, Schema]
    dataset: Dataset

    def partitions(self, column: str) -> "Callable[[], Iterator[Partitions]]":
        """The function that opens an open column."""
        table, persons = self.tables[""]

        def read() -> "Iterator[Partitions]":
            texts = table[[column]]
            yield _texts(texts if persons is None else with_columns(texts, {PERSON: persons}), column)

        return read

    def records(
        self, encoded: Mapping[str, tuple[Schema, str]]
    ) -> "Iterator[tuple[Dataset, Callable[[], Iterator[Records]]]]":
        """The rows of each row set as feature maps see them, and whose they are.

        Args:
            encoded: schema and digest of the encoding of each row set, with the released categories of open columns.
        """
        encodings = tuple(encoding for _, encoding in encoded.values())
        for prefix, (schema, encoding) in encoded.items():
            rows, persons = self.tables[prefix]
            table = forward_transform(apply_released_categories(rows, self.written[prefix], schema), schema)
            dataset = replace(self.dataset, encoding=encoding, sibling_encodings=encodings)
            yield dataset, partial(encoded_chunks, table, schema.model_schema, persons)


def rows_in_memory(
    params: Params,
    schema: Schema,
    train: "DataFrame",
    ledger: "Ledger",
    persons: "Series[str] | None" = None,
    rows_digests: Sequence[str] = (),
) -> RowsInMemory:
    """Rows in memory as the stages prepare those of a source: equal digests, so equal releases.

    Args:
        params: the settings.
        schema: may have open columns.
        train: typed with ``schema``, every row a training row.
        ledger: whose key makes the digests.
        persons: whose row each is, under ``ingest.unit``.
        rows_digests: of the rows of each given table, with all columns.

    Raises:
        DataError: ``privacy.num_records`` is not the number of rows, or there is no row.
    """
    cohort_night = find_cohort(params, ledger, persons)
    train, _, persons = cohort_rows(cohort_night, train, None, persons)
    numbers, hashes = None, row_hashes(train, schema)
    if persons is not None:
        assert params.ingest.unit is not None
        keep = bound_contributions(hashes, persons, np.full(len(train), "train"), params.ingest.unit.max_rows)
        train, numbers, hashes = train[keep], person_numbers(persons[keep]), hashes[keep]
    rows, typed = training_digest(params, schema), TypedDigest(schema, ordered=False)
    rows.add(hashes)
    typed.add(hashes)
    digest, others = rows.digest(ledger.key), [*rows_digests, typed.digest(ledger.key) if len(hashes) else ""]
    dataset = dataset_in_memory(params, ledger, digest, len(train), others, encoding_digest(schema), cohort_night)
    return RowsInMemory({"": (train, numbers)}, schema.row_sets, dataset)


def dataset_in_memory(
    params: Params,
    ledger: "Ledger",
    digest: str,
    count: int,
    rows_digests: Sequence[str],
    encoding: str = "",
    cohort_night: "CohortNight | None" = None,
) -> Dataset:
    """Tell whose rows frames hold.

    Args:
        params: the settings, with the unit of privacy.
        ledger: whose key made the digests.
        digest: of the training rows.
        count: number of training records.
        rows_digests: of the rows of each given table, with all columns.
        encoding: of the first row set as it is written.
        cohort_night: whom a night of a series asks about; None: everybody.

    Raises:
        DataError: see :func:`likeness.pipeline.ingest.manifest_of`.
    """
    manifest = manifest_of(params, ledger.id, digest, count, rows_digests, cohort_night=cohort_night)
    return dataset_from(manifest, params.ledger.attempt, encoding, params.ingest.unit)


def release_all(method: "Method", row_sets: "Sequence[RowSet]", doors: "Sequence[Door]") -> "dict[str, Released]":
    """Release all that a method asks about each row set.

    Args:
        method: the recipe.
        row_sets: of the project.
        doors: one to each.

    Returns:
        answers by the name of their query, in the order of the releases.
    """
    released: dict[str, Released] = {}
    for rows, door in zip(row_sets, doors, strict=True):

        def answer(query: "Query", rows: "RowSet" = rows, door: "Door" = door) -> "Released":
            named = rows.scope(query)
            released[named.name] = from_bytes(door.release(named), named.name)
            return released[named.name]

        auxiliary = method.ask(rows.context, answer)
        answer(method.embedding_query(rows.context, auxiliary))
    return released
