"""Released bytes: staged, published, restored."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from likeness.core.errors import LedgerError, ReleaseError
from likeness.core.files import sync_folder, write_durably
from likeness.core.hashing import sha256_bytes
from likeness.ledger.ledger import Ledger
from likeness.privacy.receipt import Receipt
from likeness.release.released import Released, from_bytes, to_bytes


def _drawn_once(ledger: Ledger, receipt: Receipt, draw: Callable[[Receipt], Released]) -> bytes:
    """The only draw of a reservation: the one that a killed process staged, or a new one, which is staged.

    Two draws for the cost of one would halve the variance of the noise for a person who has both. A file in staging has
    its name only after all its bytes are on the disk. A temporary file may have holes after a power loss, so it is
    deleted. A team's database takes bytes and commit in one transaction, and stages none.
    """
    staged = ledger.home.staging / receipt.key
    for leftover in ledger.home.staging.glob(f".{staged.name}.*"):
        leftover.unlink(missing_ok=True)
    if staged.exists() and _is_draw_of(receipt, data := staged.read_bytes()):
        return data
    staged.unlink(missing_ok=True)
    data = to_bytes(draw(receipt))
    if not ledger.keeps_bytes:
        write_durably(staged, data)
    return data


def _is_draw_of(receipt: Receipt, data: bytes) -> bool:
    """Tell whether bytes are a whole release of this reservation. The version of the sampler may be another."""
    try:
        drawn = from_bytes(data, "staged").receipt
    except ReleaseError:
        return False
    return replace(drawn, sampler=receipt.sampler) == receipt


def _publish(ledger: Ledger, key: str) -> None:
    """Move committed bytes from staging into the store."""
    staged, stored = ledger.home.staging / key, ledger.home.releases / f"{key}.safetensors"
    staged.chmod(0o444)
    staged.replace(stored)
    sync_folder(stored.parent)


def _publish_staged(ledger: Ledger, key: str, sha256: str) -> bytes:
    """The bytes of a committed release, and no others; publishes staged bytes.

    Raises:
        LedgerError: the bytes are lost or altered.
    """
    stored = ledger.home.releases / f"{key}.safetensors"
    staged = ledger.home.staging / key
    if not (ledger.keeps_bytes or stored.exists()) and staged.exists() and sha256_bytes(staged.read_bytes()) == sha256:
        _publish(ledger, key)
    data = stored_bytes(ledger, key)
    if data is None or sha256_bytes(data) != sha256:
        location = ledger.home.location if ledger.keeps_bytes else ledger.home.releases
        raise LedgerError(
            f"release {key[:12]} is in the ledger, but its bytes are lost or altered in {location}. Restore them from "
            "a backup. Or get the released file from the DVC remote (dvc pull) or a bundle, and run: likeness ledger "
            "restore FILE. A second release costs the full price: give ledger.attempt in params.yaml another value. If "
            f"the first release is lost for ever, run: likeness ledger redraw {key[:12]}"
        )
    with suppress(PermissionError):  # Windows keeps an open file
        (ledger.home.locks / f"{key}.lock").unlink(missing_ok=True)  # whoever waits for it will get these bytes
    return data


def stored_bytes(ledger: Ledger, key: str) -> bytes | None:
    """The bytes that the store holds under a key, right or wrong; None if it holds none."""
    if ledger.keeps_bytes:
        return ledger.chain.released_bytes(key)
    stored = ledger.home.releases / f"{key}.safetensors"
    return stored.read_bytes() if stored.exists() else None


def check_store(ledger: Ledger) -> None:
    """Refuse a store that lacks the bytes of a committed release, or holds others.

    Raises:
        LedgerError: it names how many releases, and how to get them back.
    """
    held, lost = ledger.home.staging, ledger.lost_keys()
    commits = {key: sha256 for key, (_, sha256) in ledger.commits().items() if key not in lost}
    staged = {key: (held / key).read_bytes() for key in commits if (held / key).exists()}
    bytes_of = {key: stored_bytes(ledger, key) or staged.get(key, b"") for key in commits}
    gone = [key for key, sha256 in commits.items() if sha256_bytes(bytes_of[key]) != sha256]
    if gone:
        location = ledger.home.location if ledger.keeps_bytes else ledger.home.releases
        raise LedgerError(
            f"{location} lacks or has altered {len(gone)} of {len(commits)} releases. Restore it from a backup. Or get "
            "the released files of a project by dvc pull, or from its bundles, and run: likeness ledger restore FILES"
        )


def restore(ledger: Ledger, data: bytes, where: str) -> str:
    """Put a released file back into the store. It spends nothing, because the ledger committed these bytes.

    Returns:
        the key of the release.

    Raises:
        LedgerError: the ledger never committed these bytes.
    """
    key = next((key for key, (_, sha256) in ledger.commits().items() if sha256 == sha256_bytes(data)), None)
    if key is None:
        raise LedgerError(f"{where}: this ledger never committed this file. Give a released file of this ledger.")
    if stored_bytes(ledger, key) != data:
        if ledger.keeps_bytes:
            ledger.chain.keep(key, data)
        else:
            write_durably(ledger.home.releases / f"{key}.safetensors", data, mode=0o444)
    return key
