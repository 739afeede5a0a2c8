"""What makes a release what it is: the content of its key in the ledger."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from likeness.core.bounds import PrivacyUnit
from likeness.privacy.receipt import MECHANISM, THRESHOLDED
from likeness.release.keys import KeyQuery
from likeness.release.query import Query

# Part of every key. Raise it when the same query on the same encoded rows would no longer give the same sum, but for
# rounding that no noise would let through.
MECHANISM_VERSION = 2


@dataclass(frozen=True)
class Dataset:
    """Whose rows, and which version of them, without a row.

    Attributes:
        identity: name of the people. digest: keyed hash of the typed training rows.
        slot: a deliberate second release of the same request has another slot.
        encoding: digest of the public rules that turn typed rows into the vectors that feature maps see.
        unit: for whom the rows were bounded, where a person may have several; None: a row is a person.
        rows_digest: keyed hash of the rows of the source, in no order and with all columns; no part of the request.
            Empty where the rows were prepared by an older version.
    """

    identity: str
    digest: str
    slot: str = "1"
    encoding: str = ""
    unit: PrivacyUnit | None = None
    rows_digest: str = ""


def request_of(query: Query | KeyQuery, adjacency: str, noise_scale: float, dataset: Dataset) -> dict[str, Any]:
    """Everything that shapes the released values; its digest is the key. A noise scale of 0 is no privacy.

    ``unit`` is in it only where a person may have several rows, ``threshold`` and ``delta_keys`` only where a query has
    them: other keys are what they were before there were any.
    """
    mechanism, own = MECHANISM, {}
    if isinstance(query, KeyQuery):
        mechanism = THRESHOLDED
        own = {"threshold": query.threshold(noise_scale, dataset.unit), "delta_keys": query.delta_keys}
    return {
        "mechanism": mechanism if noise_scale > 0 else "none",
        "mechanism_version": MECHANISM_VERSION,
        "identity": dataset.identity,
        "digest": dataset.digest,
        "slot": dataset.slot,
        "encoding": dataset.encoding,
        "query": query.name,
        "feature": query.spec(),
        "num_groups": query.num_groups,
        "adjacency": adjacency,
        "lattice_bits": query.lattice_bits,
        "noise_scale": noise_scale,
        **({} if dataset.unit is None else {"unit": dataset.unit.to_dict()}),
        **own,
    }


def request_in(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The request that a ledger's entry tells of, for whoever recomputes its key.

    Raises:
        KeyError: the entry tells of none.
    """
    return {key: entry[key] for key in REQUEST_KEYS} | {key: entry[key] for key in SOMETIMES if key in entry}


SOMETIMES = ("unit", "threshold", "delta_keys")
REQUEST_KEYS = (
    "mechanism",
    "mechanism_version",
    "identity",
    "digest",
    "slot",
    "encoding",
    "query",
    "feature",
    "num_groups",
    "adjacency",
    "lattice_bits",
    "noise_scale",
)
"""The keys of every :func:`request_of`."""
