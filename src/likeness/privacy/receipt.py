"""The receipt of one release: a frozen record without mathematics. There is no release without a receipt."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import ReleaseError
from likeness.core.format import FORMAT, HERE, KNOWN, RECIPE, check_known

MECHANISM = "discrete_gaussian"
THRESHOLDED = "thresholded_discrete_gaussian"
"""The mechanism of partition selection; see :mod:`likeness.privacy.thresholds`."""
CHOICE, SCORE = "gumbel_choice", "score"
"""The mechanism of choices among public candidates, and the word of their specification that no map has."""


@dataclass(frozen=True)
class Receipt:
    """Query, noise and guarantee of one release.

    Attributes:
        query: name of the query.
        stage: stage of the pipeline.
        method: name of the method.
        feature: public specification of the feature map, enough to build it again.
        mechanism: ``"discrete_gaussian"`` on an integer lattice (Canonne, Kamath and Steinke 2020), or
            :data:`THRESHOLDED` or :data:`CHOICE`.
        sampler: library and version that drew the noise.
        adjacency: ``add_remove_one`` or ``replace_one``.
        change: how one record changes the contributions; see :class:`likeness.privacy.adjacency.Stability`.
        num_groups: number of classes, each with its columns of the sum.
        dimension: number of released coordinates, or choices; with a threshold, the most that one person can change.
        lattice_bits: one unit of the feature is ``2**lattice_bits`` lattice steps.
        sensitivity: L2 sensitivity in units of the feature, rounding included; of choices that of the Gaussian that
            dominates them.
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
        unit: unit of privacy where a person may have several rows; None: a row is a person.
        threshold: T in lattice steps of a partition selection; None for other queries.
        delta_keys: δ of the partition selection.
        plugin: name and version of the distribution that holds the method; empty for a method of Likeness.
        group: the cohort that it is about (:mod:`likeness.privacy.cohorts`); empty: everybody.
        recipe, backend: see :mod:`likeness.core.format`.
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
    unit: PrivacyUnit | None = None
    threshold: int | None = None
    delta_keys: float = 0.0
    plugin: str = ""
    recipe: int = RECIPE
    group: str = ""
    backend: str = HERE

    @property
    def private(self) -> bool:
        """Tell whether noise was added."""
        return math.isfinite(self.rho)

    @property
    def is_choice(self) -> bool:
        """Tell whether it is about choices, whose values are numbers of candidates."""
        return SCORE in self.feature

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        unit = None if self.unit is None else asdict(self.unit)
        return {**vars(self), "format": FORMAT, "rho": self.rho if self.private else "inf", "unit": unit}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], where: str) -> "Receipt":
        """Inverse of :meth:`to_dict`.

        Args:
            value: JSON form.
            where: name of the file, for messages.

        Raises:
            ReleaseError: fields are missing or unknown, or the format is another.
        """
        check_known(value, KNOWN, where, ReleaseError)
        if set(value) != {*(field.name for field in fields(cls)), "format"}:
            raise ReleaseError(
                f"{where}: the receipt does not have the fields of format {FORMAT}. Restore the released file, or "
                "install the Likeness that wrote it."
            )
        return cls._from_facts({name: fact for name, fact in value.items() if name != "format"})

    @classmethod
    def _from_facts(cls, facts: Mapping[str, Any]) -> "Receipt":
        unit = None if facts["unit"] is None else PrivacyUnit.from_dict(facts["unit"])
        return cls(**{**facts, "rho": float(facts["rho"]), "unit": unit})

    @classmethod
    def from_reservation(cls, entry: Mapping[str, Any], ledger_id: str, ledger_seq: int, sampler: str) -> "Receipt":
        """The receipt of a reservation, which holds all other facts; its recipe may be that of another version.

        Args:
            entry: body of the ledger's record.
            ledger_id: id of the ledger.
            ledger_seq: number of the record.
            sampler: that draws the noise.

        Raises:
            KeyError: the entry lacks a fact.
        """
        rest = {"ledger_id": ledger_id, "ledger_seq": ledger_seq, "sampler": sampler}
        return cls._from_facts({**{name: entry[name] for name in FACTS}, **rest})


FACTS = tuple(field.name for field in fields(Receipt) if field.name not in ("sampler", "ledger_id", "ledger_seq"))
"""The fields of a receipt that its reservation in the ledger holds too."""
