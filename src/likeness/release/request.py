"""What makes a release what it is: the content of its key in the ledger."""

from dataclasses import dataclass
from typing import Any

from likeness.privacy.receipt import MECHANISM
from likeness.release.query import Query

# Part of every key. Raise it when the same query on the same rows would no longer give the same sum.
MECHANISM_VERSION = 2


@dataclass(frozen=True)
class Dataset:
    """Whose rows, and which version of them, without a row.

    Attributes:
        identity: name of the people. digest: keyed hash of the typed training rows.
        slot: a deliberate second release of the same request has another slot.
        encoding: digest of the public rules that turn typed rows into the vectors that feature maps see.
    """

    identity: str
    digest: str
    slot: str = "1"
    encoding: str = ""


def request_of(query: Query, adjacency: str, noise_scale: float, dataset: Dataset) -> dict[str, Any]:
    """Everything that shapes the released values; its digest is the key. A noise scale of 0 is no privacy."""
    return {
        "mechanism": MECHANISM if noise_scale > 0 else "none",
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
    }


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
"""The keys of :func:`request_of`, for whoever recomputes a release's key from the ledger's entry."""
