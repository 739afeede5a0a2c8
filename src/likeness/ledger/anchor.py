"""The anchor: count and head of the ledger, kept in another place, one step behind at most."""

import hashlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from likeness.core.errors import LedgerError


@dataclass(frozen=True)
class Anchor:
    """What the ledger looked like after its last append."""

    ledger_id: str
    home: str
    count: int
    head: str


def anchor_path(folder: Path, home: Path | str) -> Path:
    """The anchor's file: named after the ledger's place, so that a deleted ledger is missed."""
    return folder / f"{hashlib.sha256(str(home).encode()).hexdigest()[:16]}.json"


def read_anchor(folder: Path, home: Path | str) -> Anchor | None:
    """Read the anchor of the ledger at ``home``; None if there is none."""
    path = anchor_path(folder, home)
    if not path.exists():
        return None
    try:
        return Anchor(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise LedgerError(f"{path}: the ledger's anchor is damaged. Restore it from a backup.") from error


def write_anchor(folder: Path, home: Path | str, anchor: Anchor) -> None:
    """Replace the anchor, durably."""
    folder.mkdir(parents=True, exist_ok=True)
    path = anchor_path(folder, home)
    write_durably(path, json.dumps(asdict(anchor), indent=1).encode())


def write_durably(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file so that after a crash it holds either the old bytes or the new ones.

    The bytes are on the disk before the file has its name, and the name before this returns. The temporary file is
    this call's alone: two machines, or containers, that share the folder may have processes of the same number.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        os.fchmod(descriptor, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make a rename in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
