"""Other ledgers that paid for releases about the same people: a second one would forget what they spent.

Released files, accounts and bundles of a project name the ledger that paid for them. So do ``dvc.lock`` with DVC's
cache, and the anchors of a machine. Whoever deletes or forges them deceives nobody else: no program can tell.
"""

import contextlib
import json
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from likeness.core.errors import LedgerError
from likeness.core.paths import ProjectPaths
from likeness.core.text import excerpt
from likeness.core.yaml import load_written
from likeness.ledger.chain import Anchor, Chain, anchor_path, anchors
from likeness.ledger.database import make_engine
from likeness.ledger.home import Home
from likeness.ledger.records import SPENDING
from likeness.pipeline.provenance import git

if TYPE_CHECKING:
    from likeness.ledger.ledger import Ledger


_SPENDING = ("categories", "auxiliary", "privatize")
_LISTED = "categories"  # a stage whose folder holds a list, and that alone where nothing was asked
_DEPTHS = ("", "*/", "*/*/", "*/*/*/")  # where bundles and saved synthesizers may lie in a project
_BESIDE = _DEPTHS[:2]  # and in a folder that is none: a home folder, or the root of a container
_MOST_BYTES = 1 << 24  # of an account, or of the head of a released file; what is longer is none
_NO_JSON = (ValueError, TypeError, KeyError, RecursionError)


class LedgerReference(NamedTuple):
    """A place that names a ledger.

    Attributes:
        source: the place.
        population: the people that the ledger has answered about.
        ledger_id: id of the ledger; None where the files that name it are not here.
        anchor: of a ledger that cannot be read here, so it may have answered about these people; None of any other.
    """

    source: str
    population: str
    ledger_id: str | None
    anchor: Path | None = None


def ledgers_beside(home: Home, population: str) -> list[LedgerReference]:
    """Other ledgers of this machine that have answered about people, or cannot be read.

    An anchor that a ledger left behind when it moved names none.

    Args:
        home: whose folder of anchors names them.
        population: name of the people.
    """
    read, named, unread = set[str](), list[LedgerReference](), list[LedgerReference]()
    for path, anchor in anchors(home.anchor):
        if path != anchor_path(home.anchor, home.location):
            answered, ledger_id = _has_answered(path, anchor, population), str(anchor.ledger_id)
            if answered is None:
                unread.append(LedgerReference(str(anchor.home), population, ledger_id, path))
                continue
            read.add(ledger_id)
            database = Home(Path(anchor.home), path.parent).database
            named += [LedgerReference(str(database), population, ledger_id)] if answered else []
    return named + [other for other in unread if other.ledger_id not in read]


def _has_answered(path: Path, anchor: Anchor, population: str) -> bool | None:
    """Tell whether the ledger of an anchor has answered about people; None where it cannot be read.

    A file without the anchor's head is an older copy, or another ledger.
    """
    with contextlib.suppress(LedgerError, OSError, ValueError):
        home = Home(Path(anchor.home), path.parent)
        chain = Chain(home, make_engine(home), b"")
        records = chain.records() if home.database.exists() else []
        if anchor.head in {record.digest for record in records}:
            kinds = {record.kind for record in records if record.body.get("identity") == population}
            # What this version does not know of another one may be a release: there a cap counts.
            return not kinds.isdisjoint({*SPENDING} if chain.is_of_this_version() else {*SPENDING, "cap"})
    return None


def other_ledger(
    root: Path, population: str, home: Home, ledger: "Ledger | None", references: Iterable[LedgerReference] = ()
) -> LedgerReference | None:
    """The first place that names another ledger about these people; None if there is none.

    Args:
        root: a project's folder, or a folder in it.
        population: name of the people.
        home: where the ledger lies, or would lie.
        ledger: that is open; None: there is none at ``home``.
        references: more of them.
    """
    around = (path for path in (root, *root.absolute().parents) if (path / ProjectPaths.params).exists())
    folder, depths = next(((path, _DEPTHS) for path in around), (root, _BESIDE))
    ledger_id = None if ledger is None else ledger.id
    named = [*references]
    for path in sorted((folder / ProjectPaths.released).rglob("*.safetensors")):
        named += _ledger_in_receipt(str(path), path)  # a file that is none says nothing here: its stage refuses it
    named += _accounts(folder, depths)
    locks = list(_locks(folder, population, 1))
    # A pulled lock may be of another's run.
    named += [reference for _, outputs in locks for reference in _cached_ledgers(folder, outputs)]
    beside = ledgers_beside(home, population)
    named += [other for other in beside if other.anchor is None]
    for reference in named:
        if reference.population == population and reference.ledger_id != ledger_id:
            return reference
    records = () if ledger is None else ledger.records()
    if any(record.kind == "reserve" and record.body["identity"] == population for record in records):
        return None  # a ledger that has answered about these people: dvc.lock may be about its own releases
    shown_by = (LedgerReference(source, population, None) for source, _ in (*locks, *_locks(folder, population)))
    unread = (other for other in beside if other.anchor is not None and other.ledger_id != ledger_id)
    return next(shown_by, None) or next(unread, None)


def refuse_other_ledger(
    root: Path, population: str, home: Home, ledger: "Ledger | None", references: Iterable[LedgerReference] = ()
) -> None:
    """Refuse to spend, or to start a ledger, where another one has answered about these people.

    Args:
        root: see :func:`other_ledger`.
        population: see there.
        home: see there.
        ledger: see there.
        references: see there.

    Raises:
        LedgerError: the message names the other ledger, and how to join it.
    """
    other = other_ledger(root, population, home, ledger, references)
    if other is None:
        return
    local = f"there is no ledger at {home.location}" if ledger is None else f"this is ledger {ledger.id}"
    source, ledger_id = excerpt(other.source), excerpt(other.ledger_id)
    if other.ledger_id is None:
        raise LedgerError(
            f"{source} shows a run about '{population}', and {local}. The released files name the ledger of that "
            "run. They are not here. Get them first: dvc pull. A new ledger would forget what that run spent."
        )
    if other.anchor is not None:
        raise LedgerError(
            f"{other.anchor} is the anchor of ledger {ledger_id} at {source}, and {local}. That ledger cannot be read "
            f"here. It may have answered about '{population}'. Another ledger would forget what it spent. Mount its "
            "disk, set LIKENESS_HOME to its folder, or restore it from a backup. A team sets ledger.url to its "
            "PostgreSQL. If that ledger is about other people only, a person says so: move the anchor to another "
            "folder. Where that ledger is used, set LIKENESS_ANCHOR to that folder. If it is lost and has answered "
            "about these people, they get no further release."
        )
    raise LedgerError(
        f"{source} names ledger {ledger_id} about '{population}', and {local}. A new ledger would forget "
        "what that one spent on the same people. Run where that ledger is, or join it. A team sets ledger.url to its "
        "PostgreSQL. Else move the ledger's folder to this machine, set LIKENESS_HOME to it, and run: likeness ledger "
        "reanchor HEAD. Two copies would each forget what the other spends. If that ledger is lost, restore it from a "
        "backup. Without a backup nobody knows what it spent, and these people get no further release. Only other "
        "people get another name: privacy.population."
    )


def rows_elsewhere(folder: Path, other: LedgerReference | None) -> str:
    """Say what a clone without the private rows can do; empty where no other ledger is known.

    Args:
        folder: of the project.
        other: place that names the ledger of the run.
    """
    if other is None or other.anchor is not None:
        return ""
    author = git(folder, "log", "-1", "--format=%an", "--", str(ProjectPaths.lock))
    ledger = "another ledger" if other.ledger_id is None else f"ledger {excerpt(other.ledger_id)}"
    return (
        f" The rows are elsewhere: {excerpt(other.source)} shows a run with {ledger}, which is not on this machine. "
        + (f"Ask {author!r}, who committed {ProjectPaths.lock}. " if author else "")
        + "New releases need rows and ledger, so run there. Without them these run here, after dvc pull: likeness "
        "sample, likeness estimate, likeness summary, python -m stages.train, stages.sample, stages.account and "
        "stages.report."
    )


def _ledger_in_receipt(source: str, path: Path) -> Iterator[LedgerReference]:
    """The ledger in the head of a released file, whatever its values are."""
    with contextlib.suppress(OSError, *_NO_JSON), path.open("rb") as file:
        head = json.loads(file.read(min(int.from_bytes(file.read(8), "little"), _MOST_BYTES)))
        receipt = json.loads(head["__metadata__"]["receipt"])
        yield LedgerReference(source, str(receipt["identity"]), str(receipt["ledger_id"]))


def _accounts(folder: Path, depths: Iterable[str]) -> Iterator[LedgerReference]:
    """Ledgers that accounts name: of the project, of bundles and of saved synthesizers in it."""
    name = ProjectPaths.privacy.name
    for pattern in (f"{depth}{end}" for depth in depths for end in (name, "*.[zZ][iI][pP]")):
        for path in sorted(folder.glob(pattern)):
            with contextlib.suppress(OSError, RuntimeError, NotImplementedError, zipfile.BadZipFile, *_NO_JSON):
                if path.name == name:
                    text = path.read_bytes()
                else:
                    with zipfile.ZipFile(path) as archive, archive.open(name) as file:
                        text = file.read(_MOST_BYTES)
                account = json.loads(text)
                yield LedgerReference(str(path), str(account["identity"]), str(account["ledger"]["id"]))


def _locks(folder: Path, population: str, most: int | None = None) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Files ``dvc.lock`` that show a run about these people, here or in git's history, with its released outputs.

    Args:
        folder: of the project.
        population: name of the people.
        most: number of files to look at; None: all.
    """
    name = str(ProjectPaths.lock)
    commits = [] if most == 1 else git(folder, "log", "--all", "--format=%h", "--", name).split()
    for commit in ["", *commits]:
        path, text = folder / name, ""
        with contextlib.suppress(OSError, ValueError):
            text = git(folder, "show", f"{commit}:./{name}") if commit else path.read_text(encoding="utf-8")
        outputs = _outputs(text, population)
        if outputs:
            yield f"{path} of git commit {commit}" if commit else str(path), outputs


def _outputs(text: str, population: str) -> list[dict[str, Any]]:
    """Outputs of stages that spend on these people; none if the file is cut short, which its repair says."""
    with contextlib.suppress(yaml.YAMLError, AttributeError, TypeError, KeyError):
        stages = load_written(text)["stages"]
        return [
            out
            for name in _SPENDING
            for settings in stages.get(name, {}).get("params", {}).values()
            if (settings.get("privacy") or {}).get("population") == population
            for out in stages[name]["outs"]
            if not (name == _LISTED and out.get("nfiles") == 1)
        ]
    return []


def _cached_ledgers(folder: Path, outputs: Iterable[dict[str, Any]]) -> Iterator[LedgerReference]:
    """Ledgers that released files in DVC's cache name."""
    try:
        from dvc.repo import Repo

        cache = Path(Repo(str(folder)).cache.local.path)
    except Exception:  # DVC is not installed, or refuses its settings, which it says itself
        return
    for out in outputs:
        with contextlib.suppress(OSError, *_NO_JSON):
            files = {out["path"]: out["md5"]}
            if out["md5"].endswith(".dir"):
                entries = json.loads(_object(cache, out["md5"]).read_bytes())
                files = {f"{out['path']}/{entry['relpath']}": entry["md5"] for entry in entries}
            for name, digest in files.items():
                yield from _ledger_in_receipt(f"{name} in DVC's cache", _object(cache, digest))


def _object(cache: Path, digest: str) -> Path:
    return cache / digest[:2] / digest[2:]
