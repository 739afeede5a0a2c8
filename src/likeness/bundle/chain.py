"""The ledger's chain in a bundle: records about its people in short, and one hash of each record about others.

A line says what a reader cannot work out from the lines before it: of a reservation what differs from the last one of
its query and the last one of all, of a commit the file. Numbers, links and digests follow, and so does the head, which
the last line names. So a record that was edited, removed or moved leads to another head.
"""

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from likeness.bundle.contents import LEDGER
from likeness.bundle.verdict import require
from likeness.ledger.records import OF_ALL, OPENING, SALT, START, Record, hash_of, next_digest, opening_of
from likeness.privacy.receipt import FACTS
from likeness.release.request import key_in

OPENED = ("identity", OPENING, "content")
"""What is shown of a record about others to prove that it is about others."""
OF_QUESTION = {*FACTS} - {"digest", "group", "identity", "key", "plan", "query", "slot"}
"""Keys of a reservation that say what was asked, at which cost. Their values recur with the name of a query."""


def chain_extract(records: Sequence[Record], population: str, open_others: bool = False) -> list[dict[str, Any]]:
    """The chain for a verifier: whole records of one population, and hashes of all others.

    The digests prove that no record between them is missing, and reveal nothing else: see :func:`digest_of`.

    Args:
        records: all records of the ledger.
        population: the people of the bundle.
        open_others: show the population of each other record, with a proof. So a verifier sees that it is another one.
    """
    extract = []
    for record in records:
        parts: dict[str, Any] = opening_of(record)
        if record.kind in OF_ALL or record.body["identity"] == population:
            parts = {"time": record.time, "kind": record.kind, "body": dict(record.body)}
        elif not open_others:
            parts = {"hash": hash_of(parts)}
        extract.append({"seq": record.seq, "previous": record.previous, "digest": record.digest, **parts})
    return extract


def chain_text(extract: Iterable[Mapping[str, Any]], head: str | None = None) -> str:
    """An extract as text, one record a line, and its head in the last one.

    Args:
        extract: as :func:`chain_extract` makes it.
        head: digest of the last record; None: as the record says.
    """
    before, lines = _Before(), list[str]()
    for record in extract:
        lines.append(_text(before.short(record)))
        before.add(record)
    return "".join([*lines, _text({"head": before.digest if head is None else head})])


def chain_of(text: str) -> tuple[list[dict[str, Any]], str]:
    """Inverse of :func:`chain_text`: the extract, its digests computed again, and the head that the text states.

    Raises:
        Wrong: a line is not written as :func:`chain_text` writes it.
    """
    before, extract = _Before(), list[dict[str, Any]]()
    *lines, last = text.splitlines(keepends=True)
    for line in lines:
        shown, again = before.whole_record(json.loads(line))
        record = {"seq": before.seq + 1, "previous": before.digest, "digest": "", **shown}
        require(_text(again) == line, f"{LEDGER}: record {record['seq']} {_OTHER}")
        parts = opening_of(Record(**record)) if "body" in record else record
        hashed = parts["hash"] if "hash" in parts else hash_of(parts)
        record["digest"] = next_digest(record["seq"], record["previous"], hashed)
        before.add(record)
        extract.append(record)
    head = json.loads(last)["head"]
    require(_text({"head": head}) == last, f"{LEDGER}: the head {_OTHER}")
    return extract, head


_OTHER = "is not written as this version writes it"
_JSON = json.JSONEncoder(sort_keys=True)


def _text(line: Any) -> str:
    return _JSON.encode(line) + "\n"


class _Before:
    """The records so far, which let expect much of the next one."""

    def __init__(self) -> None:
        self.seq, self.digest, self.time = 0, START, ""
        self.of_kind: dict[str, dict[str, Any]] = {}  # values by the last reservation
        self.of_query: dict[str, dict[str, Any]] = {}  # values of the last reservation of each query
        self.keys: dict[str, list[str]] = {}  # of releases, by digest of the rows

    def add(self, record: Mapping[str, Any]) -> None:
        """Take the next record."""
        self.seq, self.digest, self.time = record["seq"], record["digest"], record.get("time", self.time)
        if record.get("kind") == "reserve":
            body, keys = record["body"], self.keys.setdefault(str(record["body"].get("digest")), [])
            keys.append(str(body.get("key")))
            self.of_query[str(body.get("query"))] = {key: body[key] for key in OF_QUESTION & body.keys()}
            self.of_kind = {
                "reserve": {key: value for key, value in body.items() if key not in ("key", "query")},
                "commit": {key: body.get(key) for key in ("identity", "key", SALT)} | {"reserve_seq": self.seq},
                "published": {"identity": body.get("identity"), "releases": keys},
            }

    def short(self, record: Mapping[str, Any]) -> Any:
        """The line of a record."""
        if "body" not in record:
            return record["hash"] if "hash" in record else {key: record[key] for key in OPENED}
        values = {"kind": record["kind"], "time": record["time"], **record["body"]}
        return _changes(values, self._expected_values(values))

    def whole_record(self, line: Any) -> tuple[dict[str, Any], Any]:
        """The record of a line, without number and digests, and the line of that record."""
        if isinstance(line, str):
            return {"hash": line}, line
        if "kind" not in line:
            opened_parts = {key: line[key] for key in OPENED}
            return opened_parts, opened_parts
        stated = {key: value for key, value in line.items() if key != "anew"}
        expected = self._expected_values(stated)
        values = stated if "anew" in line else expected | stated
        again = _changes(values, expected)
        return {"kind": values.pop("kind"), "time": values.pop("time"), "body": values}, again

    def _expected_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values that a record has by those before it, if some of it are stated."""
        kind = values["kind"]
        expected = {"time": self.time, **self.of_kind.get(kind, {})}
        if kind == "reserve":
            expected |= self.of_query.get(str(values.get("query")), {})
            with contextlib.suppress(KeyError, TypeError, ValueError):  # it holds no request
                expected["key"] = key_in({**expected, **values})
        elif "releases" in expected:
            expected["releases"] = sorted(expected["releases"])
        return expected


def _changes(values: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are not as expected, or all: 1 is neither 1.0 nor true, and 0.0 is not -0.0."""
    if not expected.keys() <= values.keys():
        return {**values, "anew": True}
    return {
        key: value
        for key, value in values.items()
        if not (key in expected and (value is expected[key] or repr(value) == repr(expected[key])))
    }
