"""What the ledger's extract in a bundle tells of other people: that there are records, and nothing of them."""

import json
from typing import Any

import pytest

from likeness.bundle.files import chain_extract
from likeness.ledger.records import START, Record, append, digest_of

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
        assert set(extract[place]) == {"seq", "previous", "digest", "population", "content"}
        assert len(texts(dict(MIXED[place].body))) > 3 and not [
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
