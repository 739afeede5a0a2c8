"""The ledger's extract: its links, the entries of these people, and whether others may hide entries of theirs."""

import math
from typing import Any

from likeness import bundle as names
from likeness.canonical import sha256_bytes, sha256_json
from likeness.data.layout import encoding_digest
from likeness.privacy.budget import budget_of, coarseness_of
from likeness.privacy.fineness import ALLOWANCE
from likeness.privacy.records import SALT, Record, digest_of
from likeness.release.request import REQUEST_KEYS, SOMETIMES, request_in
from likeness.verifier.files import Bundle
from likeness.verifier.verdict import Untestable, require

_EXACT = 1e-9
_SALTS = {SALT, "content_salt"}
_WHOLE = {"seq", "previous", "digest", "time", "kind", "body"}
_LINK = {"seq", "previous", "digest"}
_ASKED = {"asked_by", "git_changed", "git_commit", "likeness", "params_sha256", "project", "software"}
_BODIES: dict[str, tuple[set[str], set[str]]] = {
    "genesis": ({"format", "key_sha256", "ledger_id"}, set()),
    "cap": ({"identity", "adjacency", "epsilon", "delta"}, {"person", "delta_keys", "nonce"}),
    "limit": ({"identity", "scope", "name", "epsilon", "delta"}, {"nonce"}),
    "reserve": (
        {*REQUEST_KEYS, "key", "rho", "plan", "stage", "method", "dimension", "noise_multiplier"},
        {*SOMETIMES, *_ASKED, "rows_digest"},
    ),
    "commit": ({"key", "reserve_seq", "sha256"}, {"identity"}),
    "lost": ({"key", "identity"}, _ASKED),
    "published": ({"identity", "files", "releases"}, set()),
}
"""Keys of the body of each kind of record: those that it always has, and those that it may have."""
_MOST_WORDS = 200  # characters of a text that a person or a machine chose


def chain(bundle: Bundle) -> str:
    """Links and digests of the ledger's extract; no record has a key that we do not write."""
    previous, whole = "0" * 64, 0
    for place, record in enumerate(bundle.chain, start=1):
        linked = record["seq"] == place and record["previous"] == previous
        require(linked, f"the chain is broken at record {place}")
        if "body" in record:
            require(set(record) == _WHOLE, f"record {place} has unknown keys")
            require(digest_of(Record(**record)) == record["digest"], f"record {place} was edited")
            _check_body(record["kind"], record["body"], place)
            whole += 1
        elif "content" in record:
            opened = {"identity", SALT} & set(record)
            require(set(record) == {*_LINK, "population", "content", *opened}, f"record {place} has unknown keys")
            parts = [record[name] for name in ("seq", "previous", "population", "content")]
            require(sha256_json(parts) == record["digest"], f"record {place} was edited")
        else:
            require(set(record) == _LINK, f"record {place} has unknown keys")
        previous = record["digest"]
    require(bundle.records[0].kind == "genesis", "the first record is not the ledger's first")
    return f"{len(bundle.chain)} records linked, {whole} of them whole; head {previous[:16]}"


def _check_body(kind: str, body: dict[str, Any], place: int) -> None:
    """Refuse keys that we do not write, and long texts."""
    require(kind in _BODIES, f"record {place} is of an unknown kind")
    always, sometimes = _BODIES[kind]
    require(always <= set(body) <= always | sometimes | _SALTS, f"record {place} has unknown keys, or lacks some")
    words = [value for key, value in body.items() if key in _ASKED and key != "software"]
    words += list(body.get("software", {}).values())
    short = all(isinstance(word, bool) or (isinstance(word, str) and len(word) <= _MOST_WORDS) for word in words)
    require(short, f"record {place} has a text that is longer than any that we write")


def entries(bundle: Bundle) -> str:
    """Each release was reserved at its cost before it was committed, under a key that says what was asked.

    The files that follow from the releases were recorded with their SHA-256.
    """
    records, identity = bundle.records, bundle.params.privacy.identity
    reserved = {record.body["key"]: record for record in records if record.kind == "reserve"}
    committed = {record.body["key"]: record for record in records if record.kind == "commit"}
    encoding, written = encoding_digest(bundle.schema), encoding_digest(bundle.written_schema)
    for name, one in bundle.released.items():
        receipt = one.receipt
        require(receipt.key in reserved and receipt.key in committed, f"{name}: no entry in the ledger")
        entry, commit = reserved[receipt.key], committed[receipt.key]
        require(entry.seq == receipt.ledger_seq < commit.seq, f"{name}: entries in another order")
        require(commit.body["reserve_seq"] == entry.seq, f"{name}: committed for another reservation")
        require(commit.body.get("identity", identity) == identity, f"{name}: committed for other people")
        require(receipt.ledger_id == records[0].body["ledger_id"], f"{name}: of another ledger")
        digest = sha256_bytes((bundle.folder / name).read_bytes())
        require(commit.body["sha256"] == digest, f"{name}: other bytes than those that were committed")
        require(sha256_json(request_in(entry.body)) == receipt.key, f"{name}: another request")
        unit = None if receipt.unit is None else receipt.unit.to_dict()
        same = {
            "cost": (entry.body["rho"], receipt.rho),
            "identity": (entry.body["identity"], receipt.identity),
            "digest of the rows": (entry.body["digest"], receipt.digest),
            "slot": (entry.body["slot"], receipt.slot),
            "adjacency": (entry.body["adjacency"], receipt.adjacency),
            "map": (entry.body["feature"], dict(receipt.feature)),
            "plan": (entry.body["plan"], receipt.plan),
            "stage": (entry.body["stage"], receipt.stage),
            "method": (entry.body["method"], receipt.method),
            "dimension": (entry.body["dimension"], receipt.dimension),
            "number of rows a person": (entry.body.get("unit"), unit),
            "schema": (entry.body["encoding"], encoding if receipt.threshold is None else written),
            "threshold": (entry.body.get("threshold"), receipt.threshold),
            "cost of delta": (entry.body.get("delta_keys", 0.0), receipt.delta_keys),
        }
        for field, (recorded, stated) in same.items():
            require(recorded == stated, f"{name}: reserved with another {field}")
    _check_caps(bundle)
    _check_published(bundle)
    return f"{len(bundle.released)} releases reserved, committed and published as they are here"


def _check_caps(bundle: Bundle) -> None:
    """What these people may spend in their lifetime holds all that is on record."""
    identity = bundle.params.privacy.identity
    budget = budget_of(bundle.records, identity)
    require(budget is not None, "the ledger has no cap of these people")
    assert budget is not None
    entries = [r.body for r in bundle.records if r.kind == "reserve" and r.body["identity"] == identity]
    lattices = math.fsum(coarseness_of(entry) for entry in entries)
    require(lattices <= ALLOWANCE, "the lattices of all releases together are too coarse to be accounted for")
    require(budget.adjacency is bundle.plan.adjacency, "the ledger accounts for these people under another adjacency")
    unit = bundle.plan.unit
    require(budget.person == (None if unit is None else unit.column), "the ledger's unit of privacy is another one")
    require(0 <= budget.cap_keys < budget.cap_delta, "thresholds have all of the lifetime cap's delta")
    taken = budget.spent_delta <= budget.cap_keys * (1 + _EXACT)
    require(taken, "thresholds took more than the part of delta that the cap keeps for them")


def _check_published(bundle: Bundle) -> None:
    """The ledger recorded the files of the bundle, made from exactly these releases."""
    digests = {name: sha256_bytes((bundle.folder / name).read_bytes()) for name in names.PUBLISHED}
    published = {
        "identity": bundle.params.privacy.identity,
        "files": digests,
        "releases": sorted(one.receipt.key for one in bundle.answers),
    }
    records = [record.body for record in bundle.records if record.kind == "published"]
    recorded = any(published.items() <= body.items() for body in records)
    require(recorded, "the ledger does not know that these files were published")


def lifetime(bundle: Bundle) -> str:
    """All records about these people are shown: every other record proves that it is about others."""
    identity, hidden, old = bundle.params.privacy.identity, 0, 0
    for place, record in enumerate(bundle.chain, start=1):
        if "body" in record:
            continue
        if "content" not in record:
            old += 1
        elif SALT not in record:
            hidden += 1
        else:
            opens = sha256_json([record[SALT], record["identity"]]) == record["population"]
            require(opens, f"record {place} is about another population than it says")
            require(record["identity"] != identity, f"record {place} is about these people, and is hidden")
    if hidden or old:
        raise Untestable(
            f"as the bundler tells it: {hidden + old} records of the ledger are said to be about others. "
            "Ask for a bundle that names them: likeness bundle --open-others"
            + (f"; {old} of them are of an earlier version and cannot be opened" if old else "")
        )
    return "all that the ledger holds about these people is here"
