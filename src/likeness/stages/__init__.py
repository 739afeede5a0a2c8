"""The stages of ``dvc.yaml``: each module says what it reads, writes and spends. And the code that a stage loads.

A project's `stages/` only start these modules, so an upgrade of the package upgrades every project. Stage ``settings``
writes a file of digests for every other stage, and DVC runs a stage again when its file changes. Tests compare the
table below with the imports.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from likeness.core.wings import wing_folders

_PACKAGE = Path(__file__).parents[1]
_ALL = "core config pipeline"
FOLDERS = {
    "fingerprint": "data privacy ledger",
    "ingest": "data privacy ledger",
    "plan": "data features privacy ledger release evaluation methods preflight",
    "categories": "data features privacy ledger release",
    "preprocess": "data features privacy release",
    "auxiliary": "data features privacy ledger release methods",
    "privatize": "data features privacy ledger release methods",
    "train": "data features privacy release generators methods",
    "sample": "data features privacy release generators methods",
    "evaluate": "data features privacy release evaluation report",
    "account": "data features privacy ledger release generators methods inference report",
    "report": "data features privacy ledger release methods inference report",
    "track": "data features privacy ledger release methods report tracking",
}
"""Folders of the package that a stage loads, beside those that all stages load. ``settings`` runs every time."""


def code_digests(package: Path = _PACKAGE, plugin: Iterable[Path] = ()) -> dict[str, str]:
    """Give each stage a text that changes when a file of the package that it loads changes.

    Stages with methods also load the wings that offer methods, and every stage those that offer anything else.
    ``plugin`` holds files and folders of the method, where it is none of Likeness.
    """
    names = {name for folders in FOLDERS.values() for name in f"{_ALL} {folders}".split()}
    folders = {name: _digest(package, sorted((package / name).rglob("*"))) for name in names}
    outside = {
        "plugin": list(plugin),
        "methods of wings": wing_folders(["likeness.methods"]),
        "wings": wing_folders(["likeness.counts", "likeness.datasets", "likeness.sources"]),
    }
    others = {
        name: " ".join(_digest(path.parent, sorted([path, *path.rglob("*")])) for path in paths)
        for name, paths in outside.items()
    }
    texts = {}
    for stage, packages in FOLDERS.items():
        digests = {name: folders[name] for name in f"{_ALL} {packages}".split()}
        digests["stage"] = _digest(package, [package / "stages" / f"{stage}.py"])
        digests |= {name: digest for name, digest in others.items() if name == "wings" or "methods" in packages.split()}
        texts[stage] = "".join(f"{name} {digest}\n" for name, digest in digests.items())
    return texts


def _digest(package: Path, paths: list[Path]) -> str:
    """SHA-256 of the names and bytes of files, without what was compiled from them."""
    digest = hashlib.sha256()
    for path in paths:
        if path.is_file() and path.parent.name != "__pycache__" and path.suffix not in (".so", ".pyd"):
            data = path.read_bytes()
            digest.update(f"{path.relative_to(package).as_posix()} {len(data)}\n".encode() + data)
    return digest.hexdigest()
