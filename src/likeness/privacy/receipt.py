"""The receipt of one release: a frozen record that knows no mathematics. No receipt, no release."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from likeness.core.bounds import Unit
from likeness.core.errors import ReleaseError

MECHANISM = "discrete_gaussian"
THRESHOLDED = "thresholded_discrete_gaussian"
"""Of keys that are not publicly known, see :mod:`likeness.privacy.thresholds`."""


@dataclass(frozen=True)
class Receipt:
    """What was released, at what noise, under which promise.

    Attributes:
        query: name of the query; ``stage`` and ``method`` say who asked.
        feature: public specification of the feature map, enough to build it again.
        mechanism: ``"discrete_gaussian"`` on an integer lattice (Canonne, Kamath and Steinke 2020), or
            :data:`THRESHOLDED`.
        sampler: library and version that drew the noise.
        adjacency: ``add_remove_one`` or ``replace_one``.
        change: how one record changes the terms of the sum, see :class:`likeness.privacy.adjacency.TermChange`.
        num_groups: number of classes into whose columns the terms are sorted.
        dimension: number of released coordinates; with a threshold, the most that one person can change.
        lattice_bits: one unit of the feature is ``2**lattice_bits`` lattice steps.
        sensitivity: L2 sensitivity in units of the feature, rounding included.
        noise_multiplier: σ/Δ. ``noise_scale``: σ in lattice steps. Both 0 when not private.
        rho: ``Δ²/(2σ²)``.
        identity: name of the people in the data. ``digest``: keyed hash of the typed rows, useless without the key.
        slot: which deliberate repetition this is.
        key: name of the release in the ledger. ``ledger_id`` and ``ledger_seq``: the entry that paid for it.
        plan: digest of the plan.
        unit: who is protected with up to how many rows, where a person may have several; None: a row is a person.
        threshold: T in lattice steps; None: the query has none. ``delta_keys``: what it costs of δ.
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
    unit: Unit | None = None
    threshold: int | None = None
    delta_keys: float = 0.0

    @property
    def private(self) -> bool:
        """Whether noise was added."""
        return math.isfinite(self.rho)

    def to_dict(self) -> dict[str, Any]:
        """A JSON value."""
        value = asdict(self)
        value["rho"] = self.rho if self.private else "inf"
        if self.unit is None:
            del value["unit"]  # as receipts were before there were units
        if self.threshold is None:
            del value["threshold"], value["delta_keys"]
        return value

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], where: str) -> "Receipt":
        """Read a receipt.

        Raises:
            ReleaseError: fields are missing or unknown, or the format is newer than this version.
        """
        known = {field.name for field in fields(cls)}
        own = {"threshold", "delta_keys"}
        expected = 2 if own <= set(value) else 1
        if set(value) | {"unit"} != (known if expected == 2 else known - own) or value.get("format") != expected:
            raise ReleaseError(
                f"{where}: the receipt does not have the fields of format {expected}; it was not written by us"
            )
        unit = Unit.from_dict(value["unit"]) if "unit" in value else None
        return cls(**{**value, "rho": float(value["rho"]), "unit": unit})
