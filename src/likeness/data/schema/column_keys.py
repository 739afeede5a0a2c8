"""A column from its mapping in the YAML file: which keys a kind has, and what each may hold."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from likeness.core.errors import SchemaError
from likeness.core.text import choices, normal_text
from likeness.data.schema.column import Column
from likeness.data.schema.kinds import KINDS, OTHER, PRIVATE, Kind, Numeric

DROP = "drop"
_DROP_KEYS = ("kind", "reason")
NAMES_PERSON = "names the person (ingest.unit) and is never released"
"""The reason of a dropped column whose values name people who may have several rows."""


@dataclass(frozen=True)
class Dropped:
    """A column of the source that is read past and not synthesized: an id, free text, whatever nobody needs."""

    name: str
    reason: str

    @property
    def names_person(self) -> bool:
        """Tell whether the schema says that this column names people who may have several rows."""
        return " ".join(self.reason.split()) == NAMES_PERSON


def keys_of(kind: str) -> tuple[str, ...]:
    """The keys that a column of this kind may have."""
    return _DROP_KEYS if kind == DROP else KINDS[kind].keys


def column_from(name: str, spec: Any) -> Column | Dropped:
    """Build from a mapping as it stands in the YAML file.

    Raises:
        SchemaError: the first fault; all of them, as (key, sentence), in its ``faults``.
    """
    if not isinstance(spec, Mapping) or spec.get("kind") is None:
        _refuse([("kind", f"column '{name}' has no kind. Kinds: {', '.join(KINDS)}, drop.")])
    kind, reading = str(spec["kind"]), _Reading(name, spec)
    is_kind = kind in KINDS or kind == DROP
    for key in spec:
        if is_kind and key not in keys_of(kind):
            a = "an" if kind[0] in "aeiou" else "a"
            hint = choices(key, keys_of(kind), "Keys")
            reading.fault(str(key), f"{key} is not a key of {a} {kind} column.{hint}")
    if kind == DROP:
        return reading.read_dropped()
    return reading.column(kind)


class _Reading:
    """One mapping, read key by key; what cannot be read is noted and left at its default."""

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        self.name = name
        self.spec = spec
        self.faults: list[tuple[str, str]] = []

    def fault(self, key: str, text: str) -> None:
        self.faults.append((key, f"column '{self.name}': {text}"))

    def read_dropped(self) -> Dropped:
        reason = self.spec.get("reason")
        if not isinstance(reason, str) or not reason.strip():
            self.fault("reason", "reason is missing. Say in words why the column is dropped.")
        if self.faults:
            _refuse(self.faults)
        return Dropped(normal_text(self.name), str(reason))

    def column(self, kind: str) -> Column:
        rules = KINDS.get(kind, KINDS[Numeric.name])
        spec = {key: value for key, value in self.spec.items() if kind not in KINDS or key in rules.keys}
        self.spec, private = spec, spec.get("categories") == PRIVATE
        lower, upper = self._bounds(rules)
        values: dict[str, Any] = {
            "lower": lower,
            "upper": upper,
            "categories": () if private else self._texts("categories", truth=bool(rules.default_categories)),
            "other": (OTHER if private else None) if spec.get("other") is None else str(spec["other"]),
            "open": private,
            "ordered": self._truth("ordered"),
            "nullable": self._truth("nullable", spec.get("bounds") == PRIVATE),
            "transform": str(spec.get("transform", "none")),
            "missing_values": self._texts("missing_values"),
            "spikes": self._spikes(rules, spec.get("spikes", ())),
            "decimals": spec.get("decimals"),
            **{key: str(spec[key]) for key in ("format", "dtype") if spec.get(key) is not None},
        }
        if self.spec.get("categories") is None:
            values["categories"] = rules.default_categories
        try:
            column = Column(name=self.name, kind=kind, **values)
            if spec.get("bounds") == PRIVATE and rules.grid(column):
                column = replace(column, unbounded=True)
        except SchemaError as error:
            noted = {key for key, _ in self.faults}
            # A value that could not be read is not also missing.
            self.faults += [(key, text) for key, text in error.faults if not noted & {key, _PARTNER.get(key, key)}]
        if self.faults:
            _refuse(self.faults)
        return column

    def _bounds(self, kind: Kind) -> tuple[float | None, float | None]:
        """Both bounds; those of the kind where the column's own are private."""
        private = self.spec.get("bounds")
        if private is None:
            lower, upper = (self._read_bound(kind, key, self.spec.get(key)) for key in _PARTNER)
            return lower, upper
        if private != PRIVATE or not self.spec.keys().isdisjoint(_PARTNER):
            self.fault("bounds", f"bounds must be the word {PRIVATE}, without lower and upper. Or give both of these.")
        decimals = self.spec.get("decimals")
        return kind.widest(decimals if type(decimals) is int else None) or (None, None)

    def _truth(self, key: str, usual: bool = False) -> bool:
        value = self.spec.get(key, usual)
        if not isinstance(value, bool):
            self.fault(key, f"{key} must be true or false.")
        return value is True

    def _read_bound(self, kind: Kind, key: str, value: Any) -> float | None:
        bound = None if value is None else kind.parse_bound(key, value)
        if isinstance(bound, str):
            self.fault(key, f"{key} {bound}")
            return None
        return bound

    def _spikes(self, kind: Kind, values: Any) -> tuple[float, ...]:
        if not isinstance(values, list | tuple):
            self.fault("spikes", "spikes must be a list of numbers or dates.")
            return ()
        bounds = [self._read_bound(kind, "spikes", value) for value in values]
        return tuple(sorted({bound for bound in bounds if bound is not None}))

    def _texts(self, key: str, truth: bool = False) -> tuple[str, ...]:
        values = self.spec.get(key)
        if values is None:
            return ()
        if truth and isinstance(values, list | tuple):
            values = [str(value).lower() if isinstance(value, bool) else value for value in values]
        # Integer codes have one spelling; a float, a date or a truth value has several, so its text must be given.
        if not isinstance(values, list | tuple) or any(
            isinstance(v, bool) or not isinstance(v, str | int) for v in values
        ):
            also = f", or the word {PRIVATE}" if key == "categories" else ""
            self.fault(key, f"{key} must be a list of texts or whole numbers{also}. Put other values in quotes.")
            return ()
        return tuple(str(value) for value in values)


# The rules about bounds speak of both.
_PARTNER = {"lower": "upper", "upper": "lower"}


def _refuse(faults: list[tuple[str, str]]) -> NoReturn:
    raise SchemaError(faults[0][1], tuple(faults))
