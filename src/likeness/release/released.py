"""Released files: noisy values with their receipt inside. Needs only numpy and safetensors to read."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from likeness.core.errors import ArtifactError, ReleaseError
from likeness.core.hashing import canonical_json, sha256_bytes
from likeness.core.messages import LOG
from likeness.core.text import fault_of
from likeness.privacy.receipt import Receipt

_MOST_KEYS = 1 << 22  # bytes of all keys; a longer text ends in the middle, and is no JSON


@dataclass(frozen=True)
class Released:
    """Noisy sums that anyone may see, and the receipt that states their noise.

    Attributes:
        lattice: noisy sums in lattice steps, shape (num_groups, width), int64.
        receipt: see :class:`Receipt`.
        keys: the partition that each coordinate counts, as many as ``lattice`` is wide; empty without selection.
    """

    lattice: np.ndarray
    receipt: Receipt
    keys: tuple[str, ...] = ()

    @property
    def values(self) -> np.ndarray:
        """Noisy sums in units of the feature, float64."""
        return self.lattice * 2.0**-self.receipt.lattice_bits

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise of one coordinate, in units of the feature."""
        return self.receipt.noise_scale * 2.0**-self.receipt.lattice_bits

    def equals(self, other: "Released") -> bool:
        """Tell whether another has the same numbers, receipt and keys."""
        same = np.array_equal(self.lattice, other.lattice) and self.keys == other.keys
        return same and self.receipt == other.receipt


def to_bytes(released: Released) -> bytes:
    """One safetensors file; the receipt is its only metadata entry, so the bytes are determined."""
    tensors = {"lattice": released.lattice}
    if released.receipt.threshold is not None:
        tensors["keys"] = np.frombuffer(canonical_json(list(released.keys)).encode(), dtype=np.uint8)
    data: bytes = save(tensors, metadata={"receipt": canonical_json(released.receipt.to_dict())})
    return data


def from_bytes(data: bytes, where: str) -> Released:
    """Read a released file.

    Raises:
        ReleaseError: it is no released file, or its numbers contradict its receipt.
    """
    try:
        tensors = load(data)
        lattice = tensors["lattice"]
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        receipt = Receipt.from_dict(json.loads(header["__metadata__"]["receipt"]), where)
        keys = () if receipt.threshold is None else tuple(json.loads(tensors["keys"].tobytes()[:_MOST_KEYS]))
    except (SafetensorError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise ReleaseError(f"{where} is not a released file. Run: likeness run") from error
    size = receipt.dimension if receipt.threshold is None else len(keys)
    if lattice.dtype != np.int64 or lattice.size != size or len(lattice) != receipt.num_groups:
        raise ReleaseError(f"{where} is damaged: its values do not have the shape in its receipt. Run: likeness run")
    if list(keys) != sorted({str(key) for key in keys if not fault_of(str(key))}):
        raise ReleaseError(f"{where} is damaged: its keys are not different short texts in order. Run: likeness run")
    return Released(lattice, receipt, keys)


def load_released(path: Path) -> Released:
    """Read one released file.

    Raises:
        ArtifactError: there is no such file.
    """
    if not path.exists():
        raise ArtifactError(f"{path} is missing. Run: likeness run")
    return from_bytes(path.read_bytes(), str(path))


def load_answers(files: Iterable[Path]) -> dict[str, Released]:
    """Released files, by the name of their query."""
    return {released.receipt.query: released for released in map(load_released, files)}


def ledger_is_absent(home: str | None, url: str | None = None) -> bool:
    """Tell whether this machine has no ledger, and no trace of a lost one. Then a warning says what is not checked.

    ``LIKENESS_LEDGER=absent`` says it where the packages of the ledger are not installed, or its ledger is another.

    Args:
        home: ``ledger.home`` of params.yaml.
        url: ``ledger.url`` of params.yaml.
    """
    if os.environ.get("LIKENESS_LEDGER") != "absent":
        from likeness.ledger.chain import read_anchor
        from likeness.ledger.home import locate
        from likeness.ledger.ledger import Ledger

        location = locate(home, url)
        if Ledger.exists(location) or read_anchor(location) is not None:
            return False
    LOG.warning("there is no ledger on this machine: released files are not checked against it")
    return True


def check_against(commits: Mapping[str, tuple[int, str]], path: Path, receipt: Receipt, ledger_id: str) -> None:
    """Compare a file with the ledger's commits, which map a key to (seq of the reservation, SHA-256)."""
    expected = commits.get(receipt.key)
    if receipt.ledger_id != ledger_id or expected is None:
        raise ReleaseError(
            f"{path}: the ledger on this machine does not know this release (entry {receipt.ledger_seq} of ledger "
            f"{receipt.ledger_id}). The file comes from another ledger, or this ledger is an old copy. Restore the "
            "newest copy. To train or to look at the account without that ledger, set LIKENESS_LEDGER=absent."
        )
    if expected != (receipt.ledger_seq, sha256_bytes(path.read_bytes())):
        raise ReleaseError(
            f"{path} does not hold the bytes that the ledger committed. Run its stage again to restore them."
        )
