r"""Distances between the private counts of a table and public reference counts: a few numbers about a synthetic table.

Let :math:`c_p` be the exact counts of the private records in the cells of marginal p, and :math:`m_p` public reference
counts: those of the synthetic rows, scaled to the number of records. The door releases the mean and the largest of
:math:`d_p = \|c_p - m_p\|_1` over the marginals of one order, with noise. Half of it over the number of records is the
total variation.

**Sensitivity.** A record stands in at most one cell of each marginal, because the door counts at most one place of each
part (:func:`likeness.release.sums.lattice_sum.cell_sum`). Every marginal is such a part, or a sum of its cells.

- One record more or less changes one count of :math:`c_p` by 1. So :math:`d_p` moves by at most 1, by the triangle
  inequality. One record replaced changes at most two counts by 1, so :math:`d_p` moves by at most 2.
- The mean and the largest of numbers that each move by at most s move by at most s. The mean is rounded down to a step
  of the lattice. For an integer s, ``x <= y + s`` gives ``floor(x) <= floor(y) + s``, so rounding keeps s.
- So each released coordinate moves by at most s. With D coordinates, :math:`\Delta^2 \le D s^2`.
- Between two tables that differ in a person of at most k rows lies a chain of at most k records: k times that.

All of it is computed in integers. One record is ``2**24`` steps. The bound is reached where every cell of the reference
is empty: then each record adds 1 to every distance.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import Part, PrivacyUnit, rows_per_unit
from likeness.core.hashing import sha256_bytes
from likeness.features.base import blocks_of
from likeness.features.low_order_marginals import LowOrderMarginals
from likeness.privacy.adjacency import Adjacency, lattice_sensitivity_squared
from likeness.release.query import Query
from likeness.release.records import EachRecord, Records
from likeness.release.sums.lattice_sum import cell_sum

DISTANCES = "distances"
"""Name of the map in a specification."""
MEAN, WORST = "mean", "worst"
_BITS = 24  # 2**32 records and as many of the reference fit an int64, with room for the noise
_COORDINATE = Part(1, Fraction(1))  # moves by at most 1, and by 2 where a record is replaced


@dataclass(frozen=True)
class DistanceQuery:
    """How far the marginals of a table lie from public ones. Public facts only.

    Attributes:
        name: unique within a plan.
        stage: that releases it.
        feature: cells of columns and pairs.
        classes: number of classes; with two or more, the label counts as a column too.
        measures: :data:`MEAN`, :data:`WORST` or both.
        digest: SHA-256 of the reference, which the specification names.
        reference: public counts by class in steps, shape (classes, width). Without it the query has a bound and no
            answer: enough for a forecast and a receipt.
    """

    num_groups: ClassVar[int] = 1
    lattice_bits: ClassVar[int] = _BITS
    contributions: ClassVar[EachRecord] = EachRecord()

    name: str
    stage: str
    feature: LowOrderMarginals
    classes: int
    measures: tuple[str, ...]
    digest: str = ""
    reference: NDArray[np.int64] | None = field(default=None, compare=False, repr=False)

    @property
    def cells(self) -> Query:
        """The counts behind it: of every cell, by class. Their exact sum never leaves the door."""
        return Query(self.name, self.stage, self.feature, self.classes)

    @property
    def figures(self) -> tuple[tuple[str, int], ...]:
        """Measure and order of each released coordinate."""
        orders = (1, 2) if len(self.feature.columns) > 1 or self.classes > 1 else (1,)
        return tuple((measure, order) for measure in self.measures for order in orders)

    @property
    def dimension(self) -> int:
        """Coordinates of the release."""
        return len(self.figures)

    def sensitivity_squared(self, adjacency: Adjacency, unit: PrivacyUnit | None = None) -> int:
        """Squared L2 sensitivity in lattice steps: D·4^bits for one record more, 4·D·4^bits for one replaced."""
        change, parts = self.contributions.change(adjacency), [_COORDINATE] * self.dimension
        return lattice_sensitivity_squared(parts, _BITS, change, rows=rows_per_unit(unit))

    def spec(self) -> dict[str, Any]:
        """Public specification."""
        measured = {"measures": list(self.measures), "classes": self.classes, "reference": self.digest}
        return {**self.feature.spec(), "map": DISTANCES, **measured, **self.contributions.spec()}

    @classmethod
    def from_spec(cls, name: str, stage: str, spec: dict[str, Any]) -> "DistanceQuery":
        """The query of a specification, without its reference.

        Raises:
            KeyError: a part of it is missing.
        """
        columns, measures = LowOrderMarginals(tuple(spec["columns"])), tuple(map(str, spec["measures"]))
        return cls(name, stage, columns, int(spec["classes"]), measures, str(spec["reference"]))

    def about(self, counts: NDArray[np.int64], records: float) -> "DistanceQuery":
        """The query about a public table.

        Args:
            counts: :meth:`counts` of the table.
            records: public or noisy number of private records, to which the reference is scaled.
        """
        scale = records * 2.0**_BITS / max(1, counts[:, : self.feature.parts[0].width].sum())
        reference = np.rint(counts * scale).astype(np.int64)
        digest = sha256_bytes(reference.astype("<i8").tobytes())
        return replace(self, digest=digest, reference=reference)

    def counts(self, rows: Iterable[Records]) -> NDArray[np.int64]:
        """Rows of a public table in every cell, by class, shape (classes, width)."""
        counts: NDArray[np.int64] = cell_sum(self.cells, self.feature, rows) >> self.cells.lattice_bits
        return counts

    def distances(self, total: NDArray[np.int64]) -> NDArray[np.int64]:
        """The measures in lattice steps, shape (1, dimension), exact. Private until the door has added noise.

        Args:
            total: the exact lattice sum of :attr:`cells`.
        """
        assert self.reference is not None
        steps = (total >> self.cells.lattice_bits) << _BITS
        by_order: dict[int, list[int]] = {1: [], 2: []}
        for order, difference in self._marginals(steps - self.reference):
            by_order[order].append(int(np.abs(difference).sum()))
        values = [_measured(measure, by_order[order]) for measure, order in self.figures]
        return np.array([values], dtype=np.int64)

    def _marginals(self, cells: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Order and values of every marginal, from values by class: each cell of a part is in one cell of a marginal.

        The label alone, and beside each column, is a marginal too: the first part and the parts of columns by class.
        """
        columns = len(self.feature.columns)
        for place, (_, values) in enumerate(blocks_of(self.feature.parts, cells)):
            yield 1 if place < columns else 2, values.sum(axis=0)
            if self.classes > 1 and place < columns:
                yield 2, values
            if self.classes > 1 and place == 0:
                yield 1, values.sum(axis=1)


def _measured(measure: str, distances: list[int]) -> int:
    """The mean of distances, rounded down, or the largest. Their sum may not fit 64 bits, so they are Python's."""
    return max(distances) if measure == WORST else sum(distances) // len(distances)
