"""The files of a bundle: unpacked, read, none missing, none too many, none changed."""

import json
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likeness import bundle as names
from likeness.canonical import sha256_bytes
from likeness.data.schema import Schema
from likeness.errors import ArtifactError
from likeness.release.keys import completed
from likeness.release.released import Released, load_released
from likeness.verifier.verdict import require

_MOST_BYTES = 1 << 34


@dataclass(frozen=True)
class Bundle:
    """A bundle as a folder. Everything is read anew by each check, so that one failure does not hide another."""

    folder: Path

    def text(self, name: str) -> str:
        """Content of a text file."""
        return (self.folder / name).read_text()

    def json(self, name: str) -> dict[str, Any]:
        """A JSON file that holds a mapping."""
        value = json.loads(self.text(name))
        require(isinstance(value, dict), f"{name} is no mapping")
        result: dict[str, Any] = value
        return result

    def schema(self) -> Schema:
        """The public schema, its open columns completed with the released categories."""
        written = self.written_schema()
        keys = [one for one in self.released().values() if one.receipt.threshold is not None]
        return completed(written, keys)

    def written_schema(self) -> Schema:
        """The public schema as it was written."""
        return Schema.load(self.folder / names.SCHEMA)

    def chain(self) -> list[dict[str, Any]]:
        """Records of the ledger's extract, as they stand."""
        return [json.loads(line) for line in self.text(names.LEDGER).splitlines()]

    def released(self) -> dict[str, Released]:
        """Released files by their name in the bundle."""
        paths = sorted((self.folder / names.RELEASED).glob("*.safetensors"))
        require(bool(paths), "nothing is released")
        return {f"{names.RELEASED}/{path.name}": load_released(path) for path in paths}


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """A bundle as a folder; a zip file is unpacked for as long, names that do not belong refused.

    Raises:
        ArtifactError: there is nothing at the path, or it is no bundle.
    """
    if path.is_dir():
        yield path
        return
    if not path.exists():
        raise ArtifactError(f"{path} does not exist")
    with tempfile.TemporaryDirectory() as temporary:
        try:
            with zipfile.ZipFile(path) as archive:
                for item in archive.infolist():
                    if not names.allowed_name(item.filename) or item.file_size > _MOST_BYTES:
                        raise ArtifactError(f"{path}: '{item.filename}' does not belong in a bundle")
                    target = Path(temporary) / item.filename
                    target.parent.mkdir(exist_ok=True)
                    target.write_bytes(archive.read(item))
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError):
            raise ArtifactError(f"{path} is neither a folder nor a zip file that can be read") from None
        yield Path(temporary)


def files(bundle: Bundle) -> str:
    """Exactly the files that a bundle has."""
    found = {str(path.relative_to(bundle.folder)) for path in bundle.folder.rglob("*") if not path.is_dir()}
    links = [path.name for path in bundle.folder.rglob("*") if path.is_symlink()]
    stray = sorted(name for name in found if not names.allowed_name(name))
    lost = sorted(set(names.ALWAYS) - found)
    for problem, own in (("is a link", links), ("does not belong in a bundle", stray), ("is missing", lost)):
        require(not own, f"{own[0] if own else ''} {problem}")
    return f"{len(found)} files, none that does not belong"


def checksums(bundle: Bundle) -> str:
    """SHA256SUMS against the bytes."""
    lines = bundle.text(names.CHECKSUMS).splitlines()
    told = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    found = {str(path.relative_to(bundle.folder)) for path in bundle.folder.rglob("*") if path.is_file()}
    require(set(told) == found - {names.CHECKSUMS}, "the list of files is not that of the bundle")
    for name, digest in told.items():
        require(sha256_bytes((bundle.folder / name).read_bytes()) == digest, f"{name} was changed")
    return f"{len(told)} files unchanged"
