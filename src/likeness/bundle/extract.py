"""The ledger's chain in a bundle."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from likeness.ledger.records import SALT, Record, content_of, population_of


def chain_extract(records: Sequence[Record], population: str, open_others: bool = False) -> list[dict[str, Any]]:
    """The chain for a verifier: whole records of one population, and links of all others.

    The digests prove that no record between them is missing, and reveal nothing else. A link has the digests of
    population and content too, if the record has them: see :func:`digest_of`.

    Args:
        records: all records of the ledger.
        population: the people of the bundle.
        open_others: a link names its population and its salt. So a verifier sees that it is another one.
    """
    keys = {str(r.body["key"]) for r in records if r.kind == "reserve" and r.body["identity"] == population}
    extract = []
    for record in records:
        body = record.body
        ours = record.kind == "genesis" or body.get("identity") == population or body.get("key") in keys
        parts: dict[str, Any] = {}
        if ours:
            parts = {"time": record.time, "kind": record.kind, "body": body}
        elif SALT in body:
            parts = {"population": population_of(body), "content": content_of(record)}
            if open_others:
                parts |= {"identity": body.get("identity", ""), SALT: body[SALT]}
        extract.append({"seq": record.seq, "previous": record.previous, "digest": record.digest, **parts})
    return extract


def chain_text(extract: Sequence[Mapping[str, Any]]) -> str:
    """An extract as text, one record a line."""
    return "".join(json.dumps(record, sort_keys=True) + "\n" for record in extract)
