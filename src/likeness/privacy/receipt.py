"""The receipt of one release: a frozen record without mathematics. There is no release without a receipt."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import ReleaseError

MECHANISM = "discrete_gaussian"
THRESHOLDED = "thresholded_discrete_gaussian"
"""The mechanism of partition selection; see :mod:`likeness.privacy.thresholds`."""


@dataclass(frozen=True)
class Receipt:
    """Query, noise and guarantee of one release.

    Attributes:
        query: name of the query.
        stage: stage of the pipeline.
        method: name of the method.
        feature: public specification of the feature map, enough to build it again.
        mechanism: ``"discrete_gaussian"`` on an integer lattice (Canonne, Kamath and Steinke 2020), or
            :data:`THRESHOLDED`.
        sampler: library and version that drew the noise.
        adjacency: ``add_remove_one`` or ``replace_one``.
        change: how one record changes the contributions; see :class:`likeness.privacy.adjacency.Stability`.
        num_groups: number of classes, each with its columns of the sum.
        dimension: number of released coordinates; with a threshold, the most that one person can change.
        lattice_bits: one unit of the feature is ``2**lattice_bits`` lattice steps.
        sensitivity: L2 sensitivity in units of the feature, rounding included.
        noise_multiplier: σ/Δ; 0 without privacy.
        noise_scale: σ in lattice steps; 0 without privacy.
        rho: ``Δ²/(2σ²)``.
        identity: name of the population.
        digest: keyed hash of the typed rows, useless without the key.
        slot: attempt: a deliberate repetition has another one.
        plan: digest of the plan.
        key: name of the release in the ledger.
        ledger_id: id of the ledger that paid for it.
        ledger_seq: number of the ledger's entry.
        format: 2 with a threshold, else 1.
        unit: unit of privacy where a person may have several rows; None: a row is a person.
        threshold: T in lattice steps of a partition selection; None for other queries.
        delta_keys: δ of the partition selection.
    """

    query: str
    stage: str
    method: str
    feature: Mapping[str, Any]
    mechanism: str
    sampler: str
    adjacency: str
    change: str
    num_groups: int
    dimension: int
    lattice_bits: int
    sensitivity: float
    noise_multiplier: float
    noise_scale: float
    rho: float
    identity: str
    digest: str
    slot: str
    plan: str
    key: str
    ledger_id: str
    ledger_seq: int
    format: int = 1
    unit: PrivacyUnit | None = None
    threshold: int | None = None
    delta_keys: float = 0.0

    @property
    def private(self) -> bool:
        """Whether noise was added."""
        return math.isfinite(self.rho)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        value = asdict(self)
        value["rho"] = self.rho if self.private else "inf"
        if self.unit is None:
            del value["unit"]
        if self.threshold is None:
            del value["threshold"], value["delta_keys"]
        return value

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], where: str) -> "Receipt":
        """Inverse of :meth:`to_dict`.

        Args:
            value: JSON form.
            where: name of the file, for messages.

        Raises:
            ReleaseError: fields are missing or unknown, or the format is newer than this version.
        """
        names, selection = {field.name for field in fields(cls)}, {"threshold", "delta_keys"}
        expected = 2 if selection <= set(value) else 1
        if set(value) | {"unit"} != (names if expected == 2 else names - selection) or value.get("format") != expected:
            raise ReleaseError(
                f"{where}: the receipt does not have the fields of format {expected}. Restore the released file, or "
                "install the Likeness that wrote it."
            )
        unit = PrivacyUnit.from_dict(value["unit"]) if "unit" in value else None
        return cls(**{**value, "rho": float(value["rho"]), "unit": unit})
