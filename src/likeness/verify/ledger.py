"""The ledger's extract: its links, the population's entries, and proofs that other records are about others."""

import math
import re
from collections.abc import Mapping
from typing import Any

from likeness.bundle import contents as names
from likeness.bundle.files import Bundle
from likeness.bundle.verdict import MOST_WORDS, VERSION, Untestable, require
from likeness.core.hashing import sha256_bytes, sha256_json
from likeness.data.encoding.layout import encoding_digest
from likeness.ledger.budget import budget_of, discretization_error_of
from likeness.ledger.records import SALT, Record, digest_of
from likeness.methods.row_set import rows_of
from likeness.privacy.lattice_error import ALLOWANCE
from likeness.release.request import REQUEST_KEYS, SOMETIMES, request_in

_EXACT = 1e-9
_SALTS = {SALT, "content_salt"}
_WHOLE = {"seq", "previous", "digest", "time", "kind", "body"}
_HIDDEN = {"seq", "previous", "digest", "population", "content"}
_ASKED = {"asked_by", "git_changed", "git_commit", "likeness", "params_sha256", "software"}
_BODIES: dict[str, tuple[set[str], set[str]]] = {
    "genesis": ({"format", "key_sha256", "ledger_id"}, set()),
    "cap": ({"identity", "adjacency", "epsilon", "delta"}, {"person", "delta_keys"}),
    "reserve": (
        {*REQUEST_KEYS, "key", "rho", "rows_digests", "plan", "stage", "method", "dimension", "noise_multiplier"},
        {*SOMETIMES, *_ASKED},
    ),
    "commit": ({"key", "identity", "reserve_seq", "sha256"}, set()),
    "lost": ({"key", "identity"}, _ASKED),
    "published": ({"identity", "files", "releases"}, set()),
}
"""Keys of the body of each kind of record: required keys, and optional ones."""
_SHA = "[0-9a-f]{64}"
_FORMS = {
    **dict.fromkeys(("digest", "encoding", "key", "key_sha256", "params_sha256", "plan", "reference", "sha256"), _SHA),
    **dict.fromkeys(("content_salt", SALT), "[0-9a-f]{32}"),
    "git_commit": "none|[0-9a-f]{40,64}",
    "ledger_id": "[0-9a-f]{16}",
    "likeness": VERSION,
    "releases": _SHA,
    "rows_digests": f"[0-9a-f]{{32}}:{_SHA}",
}
"""Patterns of texts that no person chose, by key. Other texts are one short line."""
_OF_ALL = {"files": "sha256", "software": "likeness"}
"""Key whose pattern holds for all values of a mapping."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOST_NUMBER = 1 << 64


def chain(bundle: Bundle) -> str:
    """Links and digests of the ledger's extract hold, and each key and text is one that Likeness writes."""
    previous, whole, time = "0" * 64, 0, ""
    for place, record in enumerate(bundle.chain, start=1):
        linked = record["seq"] == place and record["previous"] == previous
        require(linked, f"{names.LEDGER}: the chain is broken at record {place}")
        digests = [record[name] for name in ("digest", "population", "content") if name in record]
        require(
            all(re.fullmatch(_SHA, digest) for digest in digests), f"record {place} has a text that is not a digest"
        )
        if "body" in record:
            require(set(record) == _WHOLE, f"record {place} has unknown keys")
            require(digest_of(Record(**record)) == record["digest"], f"record {place} was edited")
            later = bool(_DAY.fullmatch(record["time"])) and record["time"] >= time
            require(later, f"record {place} has no time, or one before that of an earlier record")
            require((record["kind"] == "genesis") is (place == 1), "the first record is not the ledger's first")
            _check_body(record["kind"], record["body"], place)
            whole, time = whole + 1, record["time"]
        else:
            known = set(record) in (_HIDDEN, _HIDDEN | {"identity", SALT})
            require(known, f"record {place} has unknown keys, or lacks some")
            _check_texts({key: record[key] for key in ("identity", SALT) if key in record}, "", place)
            parts = [record[name] for name in ("seq", "previous", "population", "content")]
            require(sha256_json(parts) == record["digest"], f"record {place} was edited")
        previous = record["digest"]
    require(whole > 0 and "body" in bundle.chain[0], "the first record is not the ledger's first")
    return f"{len(bundle.chain)} records linked, {whole} of them whole; head {previous[:16]}"


def _check_body(kind: str, body: dict[str, Any], place: int) -> None:
    """Refuse keys and values that Likeness does not write."""
    require(kind in _BODIES, f"record {place} is of an unknown kind")
    always, sometimes = _BODIES[kind]
    require(
        always | _SALTS <= set(body) <= always | sometimes | _SALTS, f"record {place} has unknown keys, or lacks some"
    )
    require(set(body.get("files", {})) <= set(names.ALWAYS), f"record {place} names a file that is not of a bundle")
    _check_texts(body, "", place)


def _check_texts(value: Any, key: str, place: int) -> None:
    """Refuse a text that does not match the pattern of its key, a long text, and a huge number."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            _check_texts(name, "", place)
            _check_texts(item, _OF_ALL.get(key, str(name)), place)
    elif isinstance(value, list):
        for item in value:
            _check_texts(item, key, place)
    elif isinstance(value, str):
        match = len(value) <= MOST_WORDS and value.isprintable() and re.fullmatch(_FORMS.get(key, ".*"), value)
        require(bool(match), f"record {place} has a text that Likeness does not write")
    elif isinstance(value, int):
        require(abs(value) < _MOST_NUMBER, f"record {place} has a number that is larger than Likeness writes it")


def entries(bundle: Bundle) -> str:
    """Each release was reserved at its cost before it was committed, under the key of its request.

    The ledger also has the SHA-256 of each file that follows from the releases.
    """
    records, identity = bundle.records, bundle.params.privacy.population
    reserved = {record.body["key"]: record for record in records if record.kind == "reserve"}
    committed = {record.body["key"]: record for record in records if record.kind == "commit"}
    written = encoding_digest(bundle.written_schema)
    for name, one in bundle.released.items():
        receipt = one.receipt
        require(receipt.key in reserved and receipt.key in committed, f"{name}: no entry in the ledger")
        entry, commit = reserved[receipt.key], committed[receipt.key]
        require(entry.seq == receipt.ledger_seq < commit.seq, f"{name}: entries in the wrong order")
        require(commit.body["reserve_seq"] == entry.seq, f"{name}: committed for another reservation")
        require(commit.body["identity"] == identity, f"{name}: committed for other people")
        require(receipt.ledger_id == records[0].body["ledger_id"], f"{name}: of another ledger")
        digest = sha256_bytes((bundle.folder / name).read_bytes())
        require(commit.body["sha256"] == digest, f"{name}: other bytes than the ledger committed")
        require(sha256_json(request_in(entry.body)) == receipt.key, f"{name}: another request than its key")
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
            "schema": (
                entry.body["encoding"],
                rows_of(bundle.row_sets, receipt.query).encoding if receipt.threshold is None else written,
            ),
            "threshold": (entry.body.get("threshold"), receipt.threshold),
            "cost of delta": (entry.body.get("delta_keys", 0.0), receipt.delta_keys),
        }
        for field, (recorded, stated) in same.items():
            require(recorded == stated, f"{name}: reserved with another {field}")
        noise = math.isclose(entry.body["noise_multiplier"], receipt.noise_multiplier, rel_tol=_EXACT)
        require(noise, f"{name}: reserved with another noise")
    _check_caps(bundle)
    _check_published(bundle)
    return f"{len(bundle.released)} releases were reserved, committed and published as they are here"


def _check_caps(bundle: Bundle) -> None:
    """The population's lifetime cap allows all that is on record."""
    identity = bundle.params.privacy.population
    budget = budget_of(bundle.records, identity)
    require(budget is not None, "the ledger has no cap of this population")
    assert budget is not None
    entries = [r.body for r in bundle.records if r.kind == "reserve" and r.body["identity"] == identity]
    lattices = math.fsum(discretization_error_of(entry) for entry in entries)
    require(lattices <= ALLOWANCE, "the lattices of all releases together are too coarse for exact accounting")
    require(budget.adjacency is bundle.plan.adjacency, "the ledger has another adjacency for this population")
    unit = bundle.plan.unit
    require(
        budget.person == (None if unit is None else unit.column),
        "the ledger has another unit of privacy for this population",
    )
    require(0 <= budget.selection_delta < budget.cap_delta, "partition selection has all of the lifetime cap's delta")
    taken = budget.spent_delta <= budget.selection_delta * (1 + _EXACT)
    require(taken, "partition selection took more than its part of the cap's delta")


def _check_published(bundle: Bundle) -> None:
    """The ledger has the files of the bundle, made from exactly these releases."""
    digests = {name: sha256_bytes((bundle.folder / name).read_bytes()) for name in bundle.published}
    published = {
        "identity": bundle.params.privacy.population,
        "files": digests,
        "releases": sorted(one.receipt.key for one in bundle.training_answers),
    }
    records = [record.body for record in bundle.records if record.kind == "published"]
    recorded = any(published.items() <= body.items() for body in records)
    require(recorded, "the ledger has no record that these files were published")


def lifetime(bundle: Bundle) -> str:
    """All records about this population are shown: each other record proves that it is about others."""
    identity, hidden = bundle.params.privacy.population, 0
    for place, record in enumerate(bundle.chain, start=1):
        if "body" in record:
            continue
        if SALT not in record:
            hidden += 1
        else:
            opens = sha256_json([record[SALT], record["identity"]]) == record["population"]
            require(opens, f"record {place} is about another population than it states")
            require(record["identity"] != identity, f"record {place} is about this population, and is hidden")
    if hidden:
        raise Untestable(
            f"by the word of the bundler, {hidden} records of the ledger are about others. Ask for a bundle that "
            "names them: likeness bundle --open-others"
        )
    head = bundle.chain[-1]["digest"][:16]
    return f"all records of this ledger about the population are here; a witness of head {head} shows that it is whole"
