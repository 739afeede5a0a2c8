"""The ledger's extract: its links, and the entries of the releases."""

import math

from likeness import bundle as names
from likeness.canonical import sha256_bytes, sha256_json
from likeness.data.layout import encoding_digest
from likeness.privacy.budget import coarseness_of
from likeness.privacy.calibration import epsilon_of_rho
from likeness.privacy.fineness import ALLOWANCE
from likeness.privacy.records import Record, digest_of
from likeness.release.request import request_in
from likeness.verifier.files import Bundle
from likeness.verifier.verdict import require

_EXACT = 1e-9
_CLOSE = 1e-3


def chain(bundle: Bundle) -> str:
    """Links and digests of the ledger's extract."""
    records = bundle.chain()
    previous, whole = "0" * 64, 0
    for place, record in enumerate(records, start=1):
        linked = record["seq"] == place and record["previous"] == previous
        require(linked, f"the chain is broken at record {place}")
        if "body" in record:
            require(digest_of(Record(**record)) == record["digest"], f"record {place} was edited")
            whole += 1
        elif "content" in record:
            parts = [record[name] for name in ("seq", "previous", "population", "content")]
            require(sha256_json(parts) == record["digest"], f"record {place} was edited")
        previous = record["digest"]
    return f"{len(records)} records linked, {whole} of them whole; head {previous[:16]}"


def entries(bundle: Bundle) -> str:
    """Each release was reserved at its cost before it was committed, under a key that says what was asked."""
    records = [record for record in bundle.chain() if "body" in record]
    privacy = bundle.json(names.PRIVACY)
    reserved = {r["body"]["key"]: r for r in records if r["kind"] == "reserve"}
    committed = {r["body"]["key"]: r for r in records if r["kind"] == "commit"}
    encoding, written = encoding_digest(bundle.schema()), encoding_digest(bundle.written_schema())
    for name, one in bundle.released().items():
        receipt = one.receipt
        require(receipt.key in reserved and receipt.key in committed, f"{name}: no entry in the ledger")
        entry, commit = reserved[receipt.key], committed[receipt.key]
        require(entry["seq"] == receipt.ledger_seq < commit["seq"], f"{name}: entries in another order")
        require(commit["body"]["sha256"] == sha256_bytes((bundle.folder / name).read_bytes()), f"{name}: other bytes")
        require(math.isclose(entry["body"]["rho"], receipt.rho, rel_tol=_EXACT), f"{name}: another cost")
        require(
            sha256_json(request_in(entry["body"])) == receipt.key,
            f"{name}: another request",
        )
        same = all(entry["body"][key] == getattr(receipt, key) for key in ("identity", "digest", "slot", "adjacency"))
        require(same and entry["body"]["feature"] == dict(receipt.feature), f"{name}: reserved for something else")
        unit = None if receipt.unit is None else receipt.unit.to_dict()
        require(entry["body"].get("unit") == unit, f"{name}: reserved for another number of rows a person")
        expected = encoding if receipt.threshold is None else written
        require(entry["body"]["encoding"] == expected, f"{name}: released for another schema than {names.SCHEMA}")
        require(entry["body"].get("threshold") == receipt.threshold, f"{name}: reserved with another threshold")
        require(entry["body"].get("delta_keys", 0.0) == receipt.delta_keys, f"{name}: another cost of delta")
    spent = math.fsum(
        float(r["body"]["rho"]) for r in reserved.values() if r["body"]["identity"] == privacy["identity"]
    )
    taken = math.fsum(
        float(r["body"].get("delta_keys", 0.0))
        for r in reserved.values()
        if r["body"]["identity"] == privacy["identity"]
    )
    lattices = math.fsum(
        coarseness_of(r["body"]) for r in reserved.values() if r["body"]["identity"] == privacy["identity"]
    )
    require(lattices <= ALLOWANCE, "the lattices of all releases together are too coarse to be accounted for")
    told = float(privacy["ledger"]["lifetime"]["spent_rho"])
    require(math.isclose(spent, told, rel_tol=_EXACT), f"lifetime rho is {spent:.6g}, the account says {told:.6g}")
    lifetime = privacy["ledger"]["lifetime"]
    cap = [r["body"] for r in records if r["kind"] == "cap" and r["body"]["identity"] == privacy["identity"]][-1]
    told_cap = {"epsilon": float(lifetime["cap_epsilon"]), "delta": float(lifetime["cap_delta"])}
    require(all(float(cap[key]) == told_cap[key] for key in told_cap), "another lifetime cap than the ledger's")
    people = {None if one.receipt.unit is None else one.receipt.unit.column for one in bundle.released().values()}
    require(people == {cap.get("person")}, "the ledger's unit of privacy is not that of the releases")
    kept = float(cap.get("delta_keys", 0.0))
    told_keys = (float(lifetime.get("cap_delta_keys", 0.0)), float(lifetime.get("spent_delta_keys", 0.0)))
    require(told_keys[0] == kept and math.isclose(told_keys[1], taken, rel_tol=_EXACT), "another lifetime delta")
    require(0 <= kept < told_cap["delta"], "thresholds have all of the lifetime cap's delta")
    require(taken <= kept * (1 + _EXACT), "thresholds took more than the part of delta that the cap keeps for them")
    epsilon = epsilon_of_rho(spent, told_cap["delta"] - kept)
    require(math.isclose(epsilon, float(lifetime["spent_epsilon"]), rel_tol=_CLOSE), "another lifetime epsilon")
    return f"{len(bundle.released())} releases entered; lifetime rho of these people {spent:.6g}"
