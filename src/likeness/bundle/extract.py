"""The ledger's chain in a bundle."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from likeness.ledger.records import OF_ALL, SALT, Record, content_of, population_of


def chain_extract(records: Sequence[Record], population: str, open_others: bool = False) -> list[dict[str, Any]]:
    """The chain for a verifier: whole records of one population, and links of all others.

    The digests prove that no record between them is missing, and reveal nothing else. A link has the digests of
    population and content too: see :func:`digest_of`.

    Args:
        records: all records of the ledger.
        population: the people of the bundle.
        open_others: a link names its population and its salt. So a verifier sees that it is another one.
    """
    extract = []
    for record in records:
        body = record.body
        parts: dict[str, Any] = {"population": population_of(body), "content": content_of(record)}
        if record.kind in OF_ALL or body["identity"] == population:
            parts = {"time": record.time, "kind": record.kind, "body": dict(body)}
        elif open_others:
            parts |= {"identity": body["identity"], SALT: body[SALT]}
        extract.append({"seq": record.seq, "previous": record.previous, "digest": record.digest, **parts})
    return extract


def chain_text(extract: Sequence[Mapping[str, Any]]) -> str:
    """An extract as text, one record a line."""
    return "".join(json.dumps(record, sort_keys=True) + "\n" for record in extract)
