"""The files of a bundle: unpacked, read, complete, unchanged, and without other content.

The author of a bundle may be hostile. The verifier opens regular files only, and none longer than Likeness writes. It
unpacks no more bytes than an honest zip file of this size can hold.
"""

import filecmp
import math
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from likeness.bundle import contents as names
from likeness.bundle.chain import chain_of
from likeness.bundle.contents import BundleProject, params_of, settings_of
from likeness.bundle.verdict import require, run_check
from likeness.core.errors import ArtifactError
from likeness.core.format import json_content
from likeness.core.hashing import sha256_bytes
from likeness.core.paths import json_text
from likeness.core.text import excerpt
from likeness.data.schema.yaml import schema_text
from likeness.ledger.records import Record
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.datasets import read_schema
from likeness.release.released import Released, load_released, to_bytes

_MOST_BYTES = {".yaml": 1 << 21, ".json": 1 << 26, ".jsonl": 1 << 26, ".md": 1 << 26, "": 1 << 26}  # by suffix
_MOST_OTHER = 1 << 32  # bytes of a table, a release or weights
_OTHER_BYTES = "holds bytes beside the files of a bundle, or somebody packed it again. Unpack it, and verify the folder"
_MOST_RATIO = 200  # unpacked bytes to packed ones: noise has 1, and tables of texts have a tenth of this
_MOST_TOTAL = 20  # this ratio of a whole bundle
_SMALL = 1 << 20  # bytes that may have any ratio
_MOST_NUMBER = 1 << 64  # of a setting: a longer seed is a text
_FOLDERS = {str(parent) for name in names.ALWAYS for parent in Path(name).parents} - {"."} | {names.RELEASED}


@dataclass(frozen=True)
class Bundle:
    """A bundle as a folder.

    Attributes:
        folder: the folder.
        retrain: whether the training check trains the generator again.
        most_minutes: which the training may take.
    """

    folder: Path
    retrain: bool = False
    most_minutes: float = math.inf

    def text(self, name: str) -> str:
        """Content of a text file, with its line ends."""
        return (self.folder / name).read_bytes().decode()

    def sha256(self, name: str) -> str:
        """SHA-256 of the bytes of a file."""
        return sha256_bytes((self.folder / name).read_bytes())

    def json(self, name: str) -> dict[str, Any]:
        """Content of a JSON file that holds a mapping."""
        value: dict[str, Any] = json_content(self.text(name), name)
        require(isinstance(value, dict), f"{name} does not hold a mapping")
        return value

    @cached_property
    def project(self) -> BundleProject:
        """The project that follows from settings and schema."""
        schema = read_schema(self.folder / names.SCHEMA, aliases=False)
        return BundleProject(self.folder, params_of(self.json(names.SETTINGS)), schema)

    @cached_property
    def released_files(self) -> dict[str, Released]:
        """Released files by their name in the bundle, in the order of the run."""
        paths = self.project.paths.released_files
        require(all(path.exists() for path in paths), f"{names.RELEASED} has no embedding: nothing is released")
        return {path.relative_to(self.folder).as_posix(): load_released(path) for path in paths}

    @property
    def answers(self) -> list[Released]:
        """All releases."""
        return list(self.released_files.values())

    @cached_property
    def stated_chain(self) -> tuple[list[dict[str, Any]], str]:
        """Records of the ledger's extract, and the head that it states."""
        return chain_of(self.text(names.LEDGER))

    @property
    def chain(self) -> list[dict[str, Any]]:
        """Records of the ledger's extract."""
        return self.stated_chain[0]

    @cached_property
    def records(self) -> list[Record]:
        """Records that the extract shows whole."""
        return [Record(**record) for record in self.chain if "body" in record]


@contextmanager
def open_bundle(path: Path) -> Iterator[Path]:
    """A bundle as a folder. A zip file is unpacked for the time of the context.

    Raises:
        ArtifactError: the path is missing or is no bundle; or a file has another name, is not regular, or is too long.
    """
    if path.is_dir():
        _check_regular(path)
        yield path
        return
    if not path.exists():
        raise ArtifactError(f"{excerpt(path)} does not exist. Give the path of a bundle.")
    if not path.is_file():
        raise ArtifactError(f"{excerpt(path)} is neither a folder nor a file. Give the path of a bundle.")
    with tempfile.TemporaryDirectory() as temporary:
        try:
            with zipfile.ZipFile(path) as archive:
                _unpack(archive, path, Path(temporary))
        except (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError, struct.error, zlib.error):
            fault = "is neither a folder nor a zip file that can be read. Get it again."
            raise ArtifactError(f"{excerpt(path)} {fault}") from None
        _check_regular(Path(temporary))
        yield Path(temporary)


def _check_regular(folder: Path) -> None:
    """Refuse links, pipes and devices: opening one may never end, or lead to another place."""
    for inner in sorted(_FOLDERS):
        path = folder / inner
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise ArtifactError(f"{excerpt(folder)}: '{inner}' is not a folder")
    listed = [folder / name for name in names.ALWAYS]
    for file in [*listed, *(folder / names.RELEASED).glob("*")]:
        try:
            status = file.lstat()
        except FileNotFoundError:
            continue
        name = f"{excerpt(folder)}: '{excerpt(file.relative_to(folder))}'"
        if not stat.S_ISREG(status.st_mode):
            raise ArtifactError(f"{name} is not a regular file")
        if status.st_size > _MOST_BYTES.get(file.suffix, _MOST_OTHER):
            raise ArtifactError(f"{name} is longer than Likeness writes it")


def _unpack(archive: zipfile.ZipFile, path: Path, target: Path) -> None:
    """Unpack, and pack again: so no byte is another than Likeness writes. Empty blocks of zlib may hold a text."""
    items, seen = archive.infolist(), set[str]()
    if sum(item.file_size for item in items) > 64 * _SMALL + _MOST_TOTAL * path.stat().st_size:
        raise ArtifactError(f"{excerpt(path)} is packed more densely than a bundle of Likeness")
    for item in items:
        name = item.filename
        if not names.allowed_name(name) or name in seen:
            raise ArtifactError(f"{excerpt(path)}: '{excerpt(name)}' does not belong in a bundle, or occurs twice")
        if item.file_size > max(_SMALL, _MOST_RATIO * item.compress_size):
            raise ArtifactError(f"{excerpt(path)}: '{excerpt(name)}' is packed more densely than a file of Likeness")
        if (item.compress_type, item.flag_bits) != (zipfile.ZIP_DEFLATED, 0):
            raise ArtifactError(f"{excerpt(path)} {_OTHER_BYTES}")
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        with archive.open(item) as packed, (target / name).open("wb") as unpacked:  # it reads no more than the size
            shutil.copyfileobj(packed, unpacked)
        seen.add(name)
    with tempfile.TemporaryDirectory() as temporary:
        again = Path(temporary) / "bundle.zip"
        pack(target, sorted(seen), again)
        if not filecmp.cmp(path, again, shallow=False):
            raise ArtifactError(f"{excerpt(path)} {_OTHER_BYTES}")


def pack(folder: Path, files: Iterable[str], target: Path) -> None:
    """Pack files of a folder without times and in the given order, so that equal files give an equal zip file."""
    with zipfile.ZipFile(target, "w") as archive:
        for name in files:
            item = zipfile.ZipInfo(name)
            item.compress_type, item.create_system = zipfile.ZIP_DEFLATED, 3  # Unix, also where the system is another
            item.file_size = (folder / name).stat().st_size
            with (folder / name).open("rb") as unpacked, archive.open(item, "w") as packed:
                shutil.copyfileobj(unpacked, packed)


def files(bundle: Bundle) -> str:
    """The bundle has its files and folders, and no others."""
    paths = list(bundle.folder.rglob("*"))
    folders = {str(path.relative_to(bundle.folder)) for path in paths if path.is_dir() and not path.is_symlink()}
    present = {str(path.relative_to(bundle.folder)) for path in paths} - folders
    always = names.always(names.outputs_in(present))
    parents = {str(parent) for name in always for parent in Path(name).parents} | {names.RELEASED}
    stray = sorted({name for name in present if not names.allowed_name(name, always)} | folders - parents)
    require(not stray, f"{stray[0] if stray else ''} does not belong in a bundle")
    lost = sorted(set(always) - present)
    require(not lost, f"{lost[0] if lost else ''} is missing")
    return f"{len(present)} files, all of them part of a bundle"


def sums(folder: Path) -> str:
    """Content of SHA256SUMS: each other file of a folder."""
    return "".join(f"{sha256_bytes((folder / name).read_bytes())}  {name}\n" for name in _listed_files(folder))


def _listed_files(folder: Path) -> list[str]:
    """The files of a folder but SHA256SUMS."""
    return sorted({str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {names.CHECKSUMS})


def check_whole(folder: Path, *checks: Callable[[Bundle], str]) -> None:
    """Refuse a folder of a stranger that one of some checks finds wrong, before anything in it is believed.

    Raises:
        ArtifactError: naming file and rule.
    """
    for check in checks:
        verdict = run_check(check.__name__, check, Bundle(folder))
        if not verdict.passed:
            raise ArtifactError(f"{excerpt(folder)}: {verdict.text}. Get it again from its author.")


def checksums(bundle: Bundle) -> str:
    """SHA256SUMS agrees with the bytes."""
    present, lines = _listed_files(bundle.folder), bundle.text(names.CHECKSUMS).splitlines(keepends=True)
    same = [line[64:] for line in lines] == [f"  {name}\n" for name in present]
    require(same, f"{names.CHECKSUMS} lists other files")
    for name, line in zip(present, lines, strict=True):
        require(bundle.sha256(name) == line[:64], f"{name} was changed")
    return f"{len(present)} files unchanged"


def _whole_numbers(value: Any) -> Iterator[int]:
    """All whole numbers in a JSON value."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _whole_numbers(item)
    elif isinstance(value, int):
        yield value


def form(bundle: Bundle) -> str:
    """Each file but the table has exactly the bytes that this version writes for its content.

    So no file has a key, comment or padding that other checks miss. The check of the table does this for the table.
    """
    texts = {
        names.SETTINGS: json_text(settings_of(bundle.project)),
        names.PLAN_FILE: json_text(bundle.project.written_plan.to_dict()),
        names.SCHEMA: schema_text(bundle.project.public_schema.published_schema),
        names.PRIVACY: json_text(bundle.json(names.PRIVACY)),
    }
    plain = all(abs(number) < _MOST_NUMBER for number in _whole_numbers(bundle.json(names.SETTINGS)))
    require(plain, f"{names.SETTINGS} has a number that is larger than Likeness needs one")
    for name, text in texts.items():
        require(bundle.text(name) == text, f"{name} is not written as this version writes it")
    for name, answer in bundle.released_files.items():
        require((bundle.folder / name).read_bytes() == to_bytes(answer), f"{name} holds more than values and a receipt")
        named = name == f"{names.RELEASED}/{answer.receipt.query}.safetensors"
        require(named, f"{name} has the answer to {answer.receipt.query}")
    bundle.chain  # noqa: B018 (its lines are compared where they are read)
    with tempfile.TemporaryDirectory() as temporary:
        for folder in bundle.project.outputs.generators:
            SavedGenerator.load(bundle.folder / folder).save(Path(temporary) / folder)
        for name in bundle.project.outputs.generator_files:
            again = (Path(temporary) / name).read_bytes()
            require((bundle.folder / name).read_bytes() == again, f"{name} holds more than a generator")
    return "each file holds what this version writes, and nothing else"
