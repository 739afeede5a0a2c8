"""The ledger's chain as a bundle shows it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from likeness.ledger.records import SALT, Record, content_of, population_of


def chain_extract(records: Sequence[Record], identity: str, open_others: bool = False) -> list[dict[str, Any]]:
    """The chain for a verifier: records about these people whole, of all others only their links.

    The digests prove that nothing was left out between them, without telling what else the ledger holds. A link has
    the digests of population and content too, where the record has them: see :func:`digest_of`.

    Args:
        records: all records of the ledger.
        identity: the people of the bundle.
        open_others: a link tells its population by name, with the salt. So a verifier sees that it is another one.
    """
    own = {str(r.body["key"]) for r in records if r.kind == "reserve" and r.body["identity"] == identity}
    found = []
    for record in records:
        body = record.body
        ours = record.kind == "genesis" or body.get("identity") == identity or body.get("key") in own
        parts: dict[str, Any] = {}
        if ours:
            parts = {"time": record.time, "kind": record.kind, "body": body}
        elif SALT in body:
            parts = {"population": population_of(body), "content": content_of(record)}
            if open_others:
                parts |= {"identity": body.get("identity", ""), SALT: body[SALT]}
        found.append({"seq": record.seq, "previous": record.previous, "digest": record.digest, **parts})
    return found


def chain_text(extract: Sequence[Mapping[str, Any]]) -> str:
    """Records of an extract, a line each."""
    return "".join(json.dumps(record, sort_keys=True) + "\n" for record in extract)
