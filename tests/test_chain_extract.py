"""What the ledger's extract in a bundle tells of other people: that there are records, and nothing of them."""

import json
from typing import Any

import pytest

from likeness.bundle.chain import chain_extract, chain_of, chain_text
from likeness.core.hashing import sha256_json
from likeness.ledger.records import START, Record, append, digest_of
from likeness.release.request import REQUEST_KEYS, request_in

OURS, THEIRS = "villagers", "hush-patients"
SECRET = "Xq7Secret"


def body(identity: str, word: str, kind: str) -> dict[str, Any]:
    """What stands in a record of these people; ``word`` in every text."""
    return {
        "cap": {"identity": identity, "cap_epsilon": 7.125, "person": word},
        "reserve": {"identity": identity, "key": f"key of {word}", "query": word, "rho": 0.0625},
        "commit": {"identity": identity, "key": f"key of {word}", "path": word, "sha256": f"digest of {word}"},
        "lost": {"identity": identity, "key": f"key of {word}", "reason": word},
        "published": {"identity": identity, "table": f"digest of {word}", "generator": word},
    }[kind]


def chain(*told: tuple[str, dict[str, Any]]) -> list[Record]:
    """A genesis and these records."""
    records = [append([], "genesis", {"ledger": "f00d"})]
    for kind, content in told:
        append(records, kind, content)
    return records


KINDS = ("cap", "reserve", "commit", "lost", "published")
MIXED = chain(*((kind, body(*who, kind)) for kind in KINDS for who in ((THEIRS, f"{SECRET} theirs"), (OURS, "ours"))))


def texts(value: Any) -> list[str]:
    """Every text in a JSON value, salts too."""
    if isinstance(value, dict):
        return [text for part in value.values() for text in texts(part)]
    return [value] if isinstance(value, str) else []


def test_of_other_people_only_the_links_are_there() -> None:
    extract = chain_extract(MIXED, OURS)
    text = "\n".join(json.dumps(record) for record in extract)
    others = [place for place, record in enumerate(MIXED) if SECRET in record.text]
    assert len(others) == len(KINDS)
    for place in others:
        assert set(extract[place]) == {"seq", "previous", "digest", "hash"}
        assert len(texts(dict(MIXED[place].body))) > 2 and not [
            one for one in texts(dict(MIXED[place].body)) if one in text
        ]
    whole = json.dumps(chain_extract(MIXED, THEIRS))
    assert all(one in whole for place in others for one in texts(dict(MIXED[place].body)))  # so the search can find


@pytest.mark.parametrize("kind", KINDS)
def test_of_these_people_every_record_is_whole_and_its_digest_follows(kind: str) -> None:
    (found,) = [one for one in chain_extract(MIXED, OURS) if one.get("kind") == kind]
    assert body(OURS, "ours", kind).items() <= found["body"].items()
    assert found == MIXED[found["seq"] - 1]._asdict() and found["digest"] == digest_of(Record(**found))


def test_no_link_is_left_out() -> None:
    extract = chain_extract(MIXED, OURS)
    assert [record["seq"] for record in extract] == list(range(1, len(MIXED) + 1))
    assert [record["previous"] for record in extract] == [START, *(record["digest"] for record in extract[:-1])]
    assert extract[0]["kind"] == "genesis"


def test_people_who_are_not_in_the_ledger_get_links_only() -> None:
    assert ["body" in record for record in chain_extract(MIXED, "nobody")] == [True] + [False] * (len(MIXED) - 1)


@pytest.mark.parametrize("open_others", [False, True])
def test_the_text_is_short_and_gives_the_extract_back(open_others: bool) -> None:
    """Also where values differ in type or sign only, keys come and go, and a key is not that of a request."""
    reserved = {**dict.fromkeys(REQUEST_KEYS, 1), "identity": OURS, "group": "", "query": "q", "rho": 0.0, "salt": "a"}
    changes: tuple[dict[str, Any], ...] = (
        {},
        {},
        {"rho": -0.0},
        {"rho": 0},
        {"rho": False},
        {"day": "d"},
        {"key": "k"},
    )
    told: list[tuple[str, dict[str, Any]]] = [("published", {"identity": OURS, "releases": [], "files": "f"})]
    for place, change in enumerate(changes):
        asked = {**reserved, "query": "pq"[place % 2], **change}
        asked = {"key": sha256_json(request_in(asked)), **asked}
        done = {name: asked[name] for name in ("identity", "key", "salt")}
        told += [("reserve", asked), ("commit", {**done, "reserve_seq": len(told) + 3, "sha256": f"file {place}"})]
    told += [
        ("reserve", {"identity": OURS}),
        ("commit", {"identity": OURS}),
        ("lost", {"identity": THEIRS, "key": "k"}),
    ]
    extract = chain_extract(chain(("cap", {"identity": OURS}), *told), OURS, open_others)
    text = chain_text(extract)
    read, head = chain_of(text)
    assert json.dumps(read, sort_keys=True) == json.dumps(extract, sort_keys=True)
    assert head == extract[-1]["digest"] and chain_text(read) == text
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[5] == {"kind": "reserve", "query": "q"} and lines[6] == {"kind": "commit", "sha256": "file 1"}
