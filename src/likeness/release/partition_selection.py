"""Partition selection: which categories a column holds, where nobody knows them publicly.

The rows of each partition (key) are counted here. The door adds noise and releases what reaches a threshold.
:mod:`likeness.privacy.thresholds` proves the cost.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part, PrivacyUnit, rows_per_unit
from likeness.core.errors import ArtifactError, DataError, PlanError, SchemaError
from likeness.core.hashing import sha256_bytes
from likeness.data.schema.schema import Schema
from likeness.privacy.adjacency import Adjacency, Stability, lattice_sensitivity_squared
from likeness.privacy.plan import Plan
from likeness.release.query import MAX_SUMMED
from likeness.release.records import EachRecord
from likeness.release.released import Released

STAGE = "categories"
COUNT_BITS = 30
"""A row counts ``2**30`` lattice steps: 2**32 rows fit an int64, with room for the noise."""
_MOST_NOISE = 2.0**55  # lattice steps; 64 times as much fits beside all counts
_ONE_HOT = (Part(2, Fraction(1), nonnegative=True),)  # one place holds a 1; nobody knows which


@dataclass(frozen=True)
class Partitions:
    """The partition (key) of each of consecutive private rows.

    Attributes:
        texts: the keys; None where a row has none.
        persons: whose row each is, as in :class:`likeness.release.records.Records`.
    """

    texts: Sequence[str | None]
    persons: NDArray[np.int64] | None = None


ReadPartitions = Callable[[], Iterable[Partitions]]


@dataclass(frozen=True)
class PartitionQuery:
    """A query for the texts that stand in a column in enough rows, and for their counts. Public facts only.

    Attributes:
        name: unique within a plan.
        column: of the schema.
        other: the category of everything that is not released. It is no partition.
        most: number of released partitions at most: those with the largest noisy counts.
        delta_keys: the part of δ that the threshold may cost.
    """

    stage: ClassVar[str] = STAGE
    num_groups: ClassVar[int] = 1
    lattice_bits: ClassVar[int] = COUNT_BITS
    contributions: ClassVar[EachRecord] = EachRecord()

    name: str
    column: str
    other: str
    most: int
    delta_keys: float

    def sensitivity_squared(self, adjacency: Adjacency, unit: PrivacyUnit | None = None) -> int:
        """Squared L2 sensitivity of the counts on any fixed set of keys, in lattice steps.

        A row is in one place of a one-hot vector: ``k²·4^bits`` for a person of k rows who is added or removed (reached
        where all have one key), ``2·4^bits`` for a row that is replaced (it leaves one key and joins another).
        """
        change = self.contributions.change(adjacency)
        return lattice_sensitivity_squared(_ONE_HOT, COUNT_BITS, change, self.num_groups, rows_per_unit(unit))

    def changed_counts(self, adjacency: Adjacency, unit: PrivacyUnit | None = None) -> int:
        """The most counts that one person changes."""
        return 2 if self.contributions.change(adjacency) is Stability.ONE_REPLACED else rows_per_unit(unit)

    def threshold(self, scale: float, unit: PrivacyUnit | None) -> int:
        """T in lattice steps; 0 without noise.

        Args:
            scale: σ in lattice steps.
            unit: the people where they may have several rows.

        Raises:
            PlanError: counts and noise do not fit 64 bits.
        """
        if scale > _MOST_NOISE:
            raise PlanError(
                f"{self.name}: the noise of this plan is {scale / 2**COUNT_BITS:.3g} rows wide and does not fit 64 "
                "bits. Raise privacy.epsilon or categories.share, or list the categories in the schema."
            )
        from likeness.privacy.thresholds import threshold_for  # scipy, without which a training runs

        return threshold_for(self.delta_keys, scale, rows_per_unit(unit), COUNT_BITS) if scale else 0

    def spec(self) -> dict[str, Any]:
        """Public specification."""
        selection = {"map": "keys", "column": self.column, "other": self.other, "most": self.most}
        return {**selection, **self.contributions.spec()}


def query_name(number: int) -> str:
    """The name of the query about the n-th open column, from 1."""
    return f"{STAGE}_{number}"


def partition_queries(schema: Schema, plan: Plan, most: int) -> list[PartitionQuery]:
    """One query for every open column of a schema, in its order.

    Raises:
        PlanError: the plan has none of them.
    """
    named = [(query_name(number), column) for number, column in enumerate(schema.open_columns, start=1)]
    return [
        PartitionQuery(name, column.name, str(column.other), most, plan.query(name).delta_keys)
        for name, column in named
    ]


def count_partitions(query: PartitionQuery, chunks: Iterable[Partitions]) -> tuple[dict[str, int], int]:
    """Exact counts of the partitions that are present, sorted by key, and the number of rows. Private.

    Memory grows with the number of partitions.

    Raises:
        DataError: more rows than fit 64 bits.
    """
    counts: Counter[str] = Counter()
    rows = 0
    for chunk in chunks:
        rows += len(chunk.texts)
        if rows > MAX_SUMMED:
            raise DataError(f"{query.name}: over {MAX_SUMMED} rows overflow a 64-bit sum. Split the table.")
        counts.update(text for text in chunk.texts if text is not None)
    del counts[query.other]
    return {key: counts[key] for key in sorted(counts)}, rows


def count_hashes(query: PartitionQuery, counts: Mapping[str, int], rows: int) -> tuple[dict[str, int], int]:
    """Count as :func:`count_partitions`, from counts by SHA-256 of the texts; the keys are these hashes.

    Raises:
        DataError: more rows than fit 64 bits.
    """
    if rows > MAX_SUMMED:
        raise DataError(f"{query.name}: over {MAX_SUMMED} rows overflow a 64-bit sum. Split the table.")
    other = sha256_bytes(query.other.encode())
    return {key: counts[key] for key in sorted(counts) if key != other}, rows


def select_keys(keys: Sequence[str], noisy: NDArray[np.int64], threshold: int, most: int) -> list[int]:
    """Give the indices of the keys that are released: at or above the threshold, and among the largest.

    Args:
        keys: sorted and different.
        noisy: their noisy counts, shape (len(keys),).
        threshold: the smallest noisy count that is released.
        most: number of released keys at most.
    """
    indices = [index for index in range(len(keys)) if noisy[index] >= threshold]
    largest = sorted(indices, key=lambda index: (-int(noisy[index]), keys[index]))[:most]
    return sorted(largest)


def complete_categories(schema: Schema, released: Sequence[Released]) -> Schema:
    """A schema whose open columns have their released categories. This is post-processing.

    Raises:
        ArtifactError: the categories are not those of this schema.
    """
    by_column = {str(release.receipt.feature.get("column")): release for release in released}
    others = {column.name: column.other for column in schema.open_columns}
    same = set(by_column) == set(others) and len(by_column) == len(released)
    if not same or any(release.receipt.feature.get("other") != others[name] for name, release in by_column.items()):
        raise ArtifactError("data/released/categories does not answer this schema. Run: likeness run")
    try:
        return schema.with_categories({name: release.keys for name, release in by_column.items()})
    except SchemaError as error:
        raise ArtifactError(f"data/released/categories does not fit the schema: {error}") from None
