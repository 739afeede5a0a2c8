"""Outside witnesses of the ledger's head: who saw which record where.

Ledger and anchor that are lost together, or restored together from an old backup, look whole. Whatever named a record
at the time, in another place, shows it as soon as it is looked at: a trailer of a git commit, a tag of a tracking run,
an artifact of a flow, a released file.
"""

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from likeness.core.errors import LedgerError
from likeness.ledger.anchor import Anchor
from likeness.ledger.records import Record
from likeness.privacy.receipt import Receipt

TRAILER = "Likeness-Ledger"
_LINE = re.compile(rf"^{TRAILER}: ([0-9a-f]{{16}}) ([0-9]{{1,9}}) ([0-9a-f]{{64}})$", re.MULTILINE)


@dataclass(frozen=True)
class Witness:
    """Somebody saw a record.

    Attributes:
        source: where it says so. ledger_id, seq: which record of which ledger.
        digest: of the record; None where only its key was seen.
        key: of the release that the record reserved; None where only the digest was seen.
    """

    source: str
    ledger_id: str
    seq: int
    digest: str | None = None
    key: str | None = None


def trailer(head: Anchor) -> str:
    """The line that a commit message carries."""
    return f"{TRAILER}: {head.ledger_id} {head.count} {head.head}"


def write_trailer(message: Path, line: str) -> None:
    """Put the line into the file of a commit message, instead of an earlier one.

    Raises:
        LedgerError: git could not do it.
    """
    command = ["git", "interpret-trailers", "--in-place", "--if-exists", "replace", "--trailer", line, str(message)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        raise LedgerError(f"{message}: git could not write the trailer. Is it the file of a commit message?") from None


def read_trailers(text: str, source: str) -> list[Witness]:
    """Witnesses in any text that holds such lines."""
    return [Witness(source, found[1], int(found[2]), found[3]) for found in _LINE.finditer(text)]


def git_witnesses(folder: Path) -> list[Witness]:
    """Trailers of all commits of a repository, on whatever branch; none where there is no git or no repository."""
    command = ["git", "-C", str(folder), "log", "--all", f"--grep=^{TRAILER}: ", "--format=%x00%h%n%B"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError:
        return []
    found = []
    for message in done.stdout.split("\0")[1:] if done.returncode == 0 else []:
        commit, _, body = message.partition("\n")
        found += read_trailers(body, f"git commit {commit}")
    return found


def receipt_witness(receipt: Receipt, source: str) -> Witness:
    """A released file names the entry that paid for it."""
    return Witness(source, receipt.ledger_id, receipt.ledger_seq, key=receipt.key)


def check_witnesses(records: Sequence[Record], witnesses: Iterable[Witness], others: Iterable[str] = ()) -> int:
    """Whether every record that somebody saw is on the chain.

    Args:
        others: ids of ledgers that are known to be other ones; what is told of them is passed over.

    Returns:
        how many witnesses were right.

    Raises:
        LedgerError: a record is missing or another one, or a witness names a ledger that this is not.
    """
    own, others = str(records[0].body["ledger_id"]), set(others)
    right = 0
    for witness in witnesses:
        if witness.ledger_id in others:
            continue
        if witness.ledger_id != own:
            raise LedgerError(
                f"{witness.source} names ledger {witness.ledger_id}, this is {own}: either that one was lost and this "
                "one started instead, which forgets what was spent: restore it; or it is another machine's, and then "
                f"say so: likeness ledger verify --other {witness.ledger_id}"
            )
        record = records[witness.seq - 1] if 0 < witness.seq <= len(records) else None
        seen = record is not None and (
            (witness.digest is None or record.digest == witness.digest)
            and (witness.key is None or (record.kind == "reserve" and record.body["key"] == witness.key))
        )
        if not seen:
            raise LedgerError(
                f"{witness.source} saw record {witness.seq} of this ledger, which has {len(records)} records and not "
                "that one there: ledger and anchor were restored from an older copy, or rewritten. Restore the newest "
                "copy: what was spent since stays spent."
            )
        right += 1
    return right
