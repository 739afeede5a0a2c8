"""Outside witnesses of the ledger's head: places that name a record.

Ledger and anchor look whole if both come from one old backup. A witness in another place shows the loss: a trailer of a
git commit, a tag of a tracking run, an artifact of a flow, or a released file.
"""

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from likeness.core.errors import LedgerError
from likeness.ledger.records import RECOVERED, Record

if TYPE_CHECKING:
    from likeness.ledger.chain import Anchor

TRAILER = "Likeness-Ledger"
_LINE = re.compile(rf"^{TRAILER}: ([0-9a-f]{{16}}) ([0-9]{{1,9}}) ([0-9a-f]{{64}})$", re.MULTILINE)


@dataclass(frozen=True)
class Witness:
    """A place outside the ledger that names a record.

    Attributes:
        source: the place.
        ledger_id: id of the ledger.
        seq: number of the record.
        digest: digest of the record; None where the place names only the key.
        key: key of the release that the record reserved; None where the place names only the digest.
    """

    source: str
    ledger_id: str
    seq: int
    digest: str | None = None
    key: str | None = None


def trailer(head: "Anchor") -> str:
    """The line for a commit message."""
    return f"{TRAILER}: {head.ledger_id} {head.count} {head.head}"


def write_trailer(message: Path, line: str) -> None:
    """Put the line into the file of a commit message, in the place of an earlier one.

    Raises:
        LedgerError: git refuses the file.
    """
    command = ["git", "interpret-trailers", "--in-place", "--if-exists", "replace", "--trailer", line, str(message)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        remedy = "Install git, and give the file of a commit message."
        raise LedgerError(f"{message}: git could not write the trailer. {remedy}") from None


def read_trailers(text: str, source: str) -> list[Witness]:
    """Witnesses in a text with trailers."""
    return [Witness(source, match[1], int(match[2]), match[3]) for match in _LINE.finditer(text)]


def git_witnesses(folder: Path) -> list[Witness]:
    """Trailers of all commits on all branches of a repository; none without git or a repository."""
    command = ["git", "-C", str(folder), "log", "--all", f"--grep=^{TRAILER}: ", "--format=%x00%h%n%B"]
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    except FileNotFoundError:
        return []
    messages = done.stdout.split("\0")[1:] if done.returncode == 0 else []
    parts = (message.partition("\n") for message in messages)
    return [witness for commit, _, body in parts for witness in read_trailers(body, f"git commit {commit}")]


def check_witnesses(records: Sequence[Record], witnesses: Iterable[Witness], others: Iterable[str] = ()) -> int:
    """Check that each record that a witness names is on the chain.

    Args:
        records: all records of the ledger.
        witnesses: places that name records.
        others: ids of other ledgers, whose witnesses are skipped.

    Returns:
        The number of witnesses of this ledger.

    Raises:
        LedgerError: a record is missing or different, or a witness names another ledger.
    """
    ledger_id, others = str(records[0].body["ledger_id"]), set(others)
    recovered = {digest for record in records if record.kind == RECOVERED for digest in record.body["lost"]}
    right = 0
    for witness in witnesses:
        if witness.ledger_id in others:
            continue
        if witness.ledger_id != ledger_id:
            raise LedgerError(
                f"{witness.source} names ledger {witness.ledger_id}, this is {ledger_id}. If that ledger was lost, "
                "restore it: a new one forgets what was spent. If it belongs to another machine, run: likeness ledger "
                f"verify --other {witness.ledger_id}"
            )
        record = records[witness.seq - 1] if 0 < witness.seq <= len(records) else None
        seen = record is not None and (
            (witness.digest is None or record.digest == witness.digest)
            and (witness.key is None or (record.kind == "reserve" and record.body["key"] == witness.key))
        )
        if not seen and witness.digest not in recovered:
            raise LedgerError(
                f"{witness.source} names record {witness.seq} of this ledger. The ledger has {len(records)} records, "
                "and not that one there. Ledger and anchor were restored from an older copy, or rewritten. Restore the "
                "newest copy. Or run: likeness ledger recover. Then lost records cost all that is left of each cap."
            )
        right += 1
    return right
