"""A query: its question, its records and its bounds. All of it is public."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from likeness.core.bounds import Part, PrivacyUnit, lattice_bits, rows_per_unit
from likeness.core.errors import ReleaseError
from likeness.features.base import FeatureMap
from likeness.privacy.adjacency import Adjacency, Stability, lattice_sensitivity_squared
from likeness.release.records import Contributions, EachPerson, EachRecord

MAX_SUMMED = 2**32  # records whose sum fits an int64, see likeness.core.bounds


@dataclass(frozen=True)
class Query:
    """Sum a bounded feature over the contributions of a table, by class.

    Attributes:
        name: unique within a method.
        stage: ``"auxiliary"`` or ``"privatize"``.
        feature: the bounded map.
        num_groups: number of classes; the sum has shape (num_groups, width of the feature).
        contributions: how records become contributions; by class, unless they say otherwise.
    """

    name: str
    stage: str
    feature: FeatureMap
    num_groups: int = 1
    contributions: Contributions = field(default_factory=EachRecord)

    @cached_property
    def bounded_parts(self) -> tuple[Part, ...]:
        """Bounds of the feature, read once: the sensitivity and the sum use the same."""
        return tuple(self.feature.bounded_parts)

    @cached_property
    def width(self) -> int:
        """Coordinates of one feature vector."""
        return sum(part.width for part in self.bounded_parts)

    @property
    def dimension(self) -> int:
        """Coordinates of the release."""
        return self.num_groups * self.width

    @cached_property
    def lattice_bits(self) -> int:
        """One unit of the feature is ``2**lattice_bits`` lattice steps."""
        return lattice_bits(self.bounded_parts)

    @property
    def is_per_person(self) -> bool:
        """Tell whether the rows of a person share one contribution."""
        return isinstance(self.contributions, EachPerson)

    def sensitivity_squared(self, adjacency: Adjacency, unit: PrivacyUnit | None = None) -> float:
        """Squared L2 sensitivity of the integer sum, a whole number; see :func:`lattice_sensitivity_squared`.

        Args:
            adjacency: which tables are neighbors.
            unit: the people where they may have several rows; None: a row is a person.
        """
        change = self.contributions.change(adjacency)
        rows = 1 if self.is_per_person else rows_per_unit(unit)
        if (facts := (change, self.num_groups, rows)) not in self._sensitivities:
            squared = lattice_sensitivity_squared(self.bounded_parts, self.lattice_bits, *facts)
            self._sensitivities[facts] = squared
        return self._sensitivities[facts]

    @cached_property
    def _sensitivities(self) -> dict[tuple[Stability, int, int], int]:
        """Those that were asked for, by change, classes and rows."""
        return {}

    def spec(self) -> dict[str, Any]:
        """Public specification of feature and contributions.

        Raises:
            ReleaseError: both use a name, so that different questions could have one key.
        """
        feature, contributions = self.feature.spec(), self.contributions.spec()
        if both := feature.keys() & contributions.keys():
            raise ReleaseError(f"{self.name}: both map and contributions use the name {sorted(both)[0]}")
        return {**feature, **contributions}
