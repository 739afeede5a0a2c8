"""A second ledger about the same people is refused wherever something names the first.

Outside witnesses: one that survives shows that ledger and anchor were lost or restored together.
"""

import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from pytest import MonkeyPatch
from sqlalchemy import insert
from toys import ADD, ledger_of_people, plan_with, request, schema_with

from likeness import Synthesizer
from likeness.core.errors import DataError, LedgerError
from likeness.features.column_marginals import Constant
from likeness.ledger.chain import Chain
from likeness.ledger.database import VERSION, VERSIONS, make_engine
from likeness.ledger.home import Home, locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.records import append
from likeness.ledger.reservation import Dataset
from likeness.ledger.witness import Witness, check_witnesses, git_witnesses, read_trailers, trailer, write_trailer
from likeness.pipeline.other_ledgers import LedgerReference, ledgers_beside, other_ledger
from likeness.pipeline.project import Project
from likeness.privacy.plan import QueryShare
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records

ROOT = Path(__file__).parents[2]
RELEASED = "data/released/auxiliary/q.safetensors"
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def colleague(tmp_path: Path, monkeypatch: MonkeyPatch) -> tuple[str, bytes]:
    """Id of a colleague's ledger and a file that it released; then this is another machine, in a project's folder."""
    for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR"):
        monkeypatch.setenv(name, str(tmp_path / "colleague" / name))
    ledger, rows = ledger_of_people(ADD, 2.0), [Records(np.zeros((10, 1)), np.zeros(10, dtype=np.int64))]
    door = Door(plan_with([QueryShare("q", "privatize", 1.0)]), ledger, Dataset("people", "d"), lambda: rows)
    released = door.release(Query("q", "privatize", Constant()))
    for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR"):
        monkeypatch.setenv(name, str(tmp_path / "here" / name))
    root = tmp_path / "project"
    (root / "data/schema").mkdir(parents=True)
    (root / "data/schema/adult.yaml").write_bytes((ROOT / "data/schema/adult.yaml").read_bytes())
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["privacy"]["population"], content["ingest"]["source"] = "people", "rows.csv"
    (root / "params.yaml").write_text(yaml.safe_dump(content))
    monkeypatch.chdir(root)
    return ledger.id, released


def write(path: str, data: bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(data)


def account(ledger_id: str, population: str = "people") -> bytes:
    return json.dumps({"identity": population, "ledger": {"id": ledger_id}}).encode()


def packed(path: str, data: bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("privacy.json", data)


def locked(outputs: list[dict[str, Any]], population: str = "people") -> bytes:
    """What dvc.lock says after a run."""
    params = {"data/plan/settings.yaml": {"privacy": {"population": population}, "method": "m"}}
    return yaml.safe_dump({"schema": "2.0", "stages": {"privatize": {"params": params, "outs": outputs}}}).encode()


def cached(released: bytes) -> None:
    """DVC's cache has the file, and a folder with it; the project has neither."""
    write(".dvc/config", b"[core]\n    no_scm = true\n")
    for digest, data in (("00ab", released), ("01ab.dir", b'[{"md5": "00ab", "relpath": "q.safetensors"}]')):
        write(f".dvc/cache/files/md5/{digest[:2]}/{digest[2:]}", data)
    write("dvc.lock", locked([{"path": "data/released/auxiliary", "md5": "01ab.dir"}]))


PLACES: dict[str, Callable[[str, bytes], None]] = {
    RELEASED: lambda _, released: write(RELEASED, released),
    "embedding.safetensors": lambda _, released: write(
        "data/released/embedding/embedding.safetensors", released[:-1] + b"?"
    ),
    "reports/privacy.json": lambda one, _: write("reports/privacy.json", account(one)),
    "out/2026/bundle/privacy.json": lambda one, _: write("out/2026/bundle/privacy.json", account(one)),
    "saved/privacy.json": lambda one, _: write("saved/privacy.json", account(one)),
    "out/b.zip": lambda one, _: packed("out/b.zip", account(one)),
    "out/B.ZIP": lambda one, _: packed("out/B.ZIP", account(one)),
    "DVC's cache": lambda _, released: cached(released),
}


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_no_ledger_starts_and_none_spends_beside_what_names_another(
    place: str, colleague: tuple[str, bytes], command: Command
) -> None:
    first, released = colleague
    PLACES[place](first, released)
    for words in (["init"], ["init", "--if-absent"], ["afford"]):
        code, _, error = command("ledger", *words)
        assert code == 2 and f"{place} names ledger {first} about 'people', and there is no ledger at" in error, words
        assert "would forget" in error and "LIKENESS_HOME" in error and "ledger.url" in error and "init" not in error
    assert not Ledger.exists(locate())
    ledger = Ledger.start()  # in Python it is for any people
    project = Project.load()
    Path("rows.csv").touch()
    for action in (lambda: project.ledger_to_spend, lambda: project.ledger_session.check_ready(project.sources)):
        with pytest.raises(LedgerError, match=f"names ledger {first} about 'people', and this is ledger {ledger.id}"):
            action()
    assert [record.kind for record in ledger.records()] == ["genesis"]
    code, _, error = command("ledger", "init", "--if-absent")
    assert code == 2 and first in error and first in command("check")[1]


def test_other_people_and_other_files_are_no_reason(colleague: tuple[str, bytes], command: Command) -> None:
    first, released = colleague
    write("reports/privacy.json", account(first, "others"))
    write("dvc.lock", locked([{"path": RELEASED, "md5": "00"}], "others"))
    for path, data in {
        "a/privacy.json": b"{",
        "b/privacy.json": b"[]",
        "c.zip": b"PK",
        "data/released/cut.safetensors": released[:20],
        "data/released/odd.safetensors": b"\xff" * 8,
    }.items():
        write(path, data)
    packed("d.zip", b'{"identity": "people"}')
    assert command("ledger", "init")[0] == 0 and Project.load().ledger_to_spend.budget("people") is not None
    write(RELEASED, released)
    with pytest.raises(LedgerError, match=first):
        assert Project.load().ledger_to_spend


@pytest.mark.long
def test_a_run_that_stopped_before_it_asked_anything_goes_on(colleague: tuple[str, bytes], command: Command) -> None:
    """Stage ``categories`` ends well where nothing is private and nothing is asked."""
    lock = yaml.safe_load(locked([{"path": "data/released/categories", "md5": "00.dir", "nfiles": 1}]))
    lock["stages"]["categories"] = lock["stages"].pop("privatize")
    write("dvc.lock", yaml.safe_dump(lock).encode())
    assert command("ledger", "init")[0] == 0 and Project.load().ledger_to_spend
    lock["stages"]["categories"]["outs"][0]["nfiles"] = 2
    write("dvc.lock", yaml.safe_dump(lock).encode())
    with pytest.raises(LedgerError, match="shows a run"):
        assert Project.load().ledger_to_spend


def test_a_made_up_name_of_a_ledger_moves_no_cursor(colleague: tuple[str, bytes], command: Command) -> None:
    write("reports/privacy.json", account("\x1b[2J right\n"))
    code, _, error = command("ledger", "init")
    assert code == 2 and "\x1b" not in error and "names ledger \\x1b[2J right\\n about" in error


@pytest.mark.long
def test_a_lock_without_its_files_asks_for_them(colleague: tuple[str, bytes], command: Command) -> None:
    """In the work tree, and in a commit of git. A ledger that has answered about these people knows its own runs."""
    write("dvc.lock", locked([{"path": "data/released/embedding/embedding.safetensors", "md5": "00"}]))
    code, _, error = command("ledger", "init")
    assert code == 2 and "dvc.lock shows a run about 'people'" in error and "dvc pull" in error
    own = ("-c", "user.name=Ada", "-c", "user.email=a@example.org")
    for words in (["init", "-q"], ["add", "dvc.lock"], ["commit", "-qm", "run"], ["rm", "-q", "dvc.lock"]):
        subprocess.run(["git", *own, *words], check=True)
    code, _, error = command("ledger", "init")
    assert code == 2 and "dvc.lock of git commit" in error and "dvc pull" in error
    with pytest.raises(DataError, match=r"rows.csv does not exist.* The rows are elsewhere: dvc.lock of .* Ask 'Ada'"):
        Project.load().ledger_session.check_ready(Project.load().sources)
    ledger = ledger_of_people()
    home = locate()
    assert other_ledger(Path(), "people", home, ledger) == LedgerReference(
        "dvc.lock of git commit", "people", None
    )._replace(source=error.removeprefix("likeness: ").partition(" shows")[0])
    ledger.reserve(request("k", 1e-3))
    assert other_ledger(Path(), "people", home, ledger) is None


def test_two_ledgers_of_one_machine_know_each_other_by_their_anchors(
    colleague: tuple[str, bytes], tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    first, _ = colleague
    monkeypatch.setenv("LIKENESS_ANCHOR", str(tmp_path / "colleague/LIKENESS_ANCHOR"))
    Ledger.start()
    with pytest.raises(LedgerError, match=rf"ledger\.sqlite names ledger {first} about 'people'"):
        assert Project.load().ledger_to_spend


def damaged(home: Path, _: Path) -> None:
    (home / "ledger.sqlite").write_bytes(b"no database")


def replaced(home: Path, _: Path) -> None:
    """Another ledger in the place of the first."""
    (home / "ledger.sqlite").unlink()
    Ledger.create(Home(home, home.parent / "unseen"))


def of_a_team(_: Path, anchor: Path) -> None:
    content = json.loads(anchor.read_text())
    anchor.write_text(json.dumps(content | {"home": "postgresql://db.clinic/ledger"}))


UNREADABLE: dict[str, Callable[[Path, Path], object]] = {
    "unmounted": lambda home, _: home.rename(home.parent / "unmounted"),
    "damaged": damaged,
    "replaced": replaced,
    "postgresql://db.clinic/ledger": of_a_team,
    "unknown": lambda _, anchor: anchor.write_text("{"),
}


@pytest.mark.long
@pytest.mark.parametrize("case", UNREADABLE)
def test_an_anchor_whose_ledger_cannot_be_read_stops_a_ledger_without_releases(
    case: str, colleague: tuple[str, bytes], tmp_path: Path, monkeypatch: MonkeyPatch, command: Command
) -> None:
    """Until the ledger can be read, or a person moves its anchor away."""
    home, folder = (tmp_path / "colleague" / name for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR"))
    (anchor,) = folder.glob("*.json")
    UNREADABLE[case](home, anchor)
    monkeypatch.setenv("LIKENESS_ANCHOR", str(folder))
    code, _, error = command("ledger", "init")
    assert code == 2 and f"{anchor} is the anchor of" in error and "there is no ledger at" in error
    named = {
        "unknown": "unknown at",
        "postgresql://db.clinic/ledger": f"{colleague[0]} at postgresql://db.clinic/ledger",
    }
    assert (
        f"ledger {named.get(case, f'{colleague[0]} at {home}')}" in error
        and "move the anchor to another folder" in error
    )
    ledger = Ledger.start()
    with pytest.raises(LedgerError, match=r"cannot be read here\. It may have answered about 'people'"):
        assert Project.load().ledger_to_spend
    assert [record.kind for record in ledger.records()] == ["genesis"]
    anchor.rename(tmp_path / anchor.name)
    assert Project.load().ledger_to_spend
    ledger.reserve(request("k", 1e-3))
    (tmp_path / anchor.name).rename(anchor)
    assert Project.load().ledger_to_spend  # it is the ledger of these people


def test_a_ledger_that_moved_or_has_other_people_stops_nobody(
    colleague: tuple[str, bytes], tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    """A moved one leaves an anchor behind."""
    home, folder = (tmp_path / "colleague" / name for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR"))
    monkeypatch.setenv("LIKENESS_ANCHOR", str(folder))
    content = yaml.safe_load(Path("params.yaml").read_text())
    content["privacy"]["population"] = "others"
    Path("params.yaml").write_text(yaml.safe_dump(content))
    moved = Home(tmp_path / "moved", folder)
    head = Ledger.open(Home(home, folder)).head().head
    home.rename(moved.path)
    Chain.reanchor(moved, head)
    assert len(list(folder.glob("*.json"))) == 2
    Ledger.start()
    assert Project.load().ledger_to_spend


def test_a_ledger_of_another_version_is_named(
    colleague: tuple[str, bytes], tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    """Its cap counts: what this version does not know may be a release."""
    places = Home(*(tmp_path / "other" / name for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR")))
    old = Ledger.create(places)
    with old.chain.appending() as records:
        body = {"identity": "people", "adjacency": str(ADD), "epsilon": 1.0, "delta": 1e-5, "person": None}
        append(records, "cap", body)
    monkeypatch.setenv("LIKENESS_ANCHOR", str(places.anchor))
    Ledger.start()
    home = locate()
    assert ledgers_beside(home, "people") == []
    with make_engine(places).begin() as connection:
        connection.execute(insert(VERSIONS), {"version": VERSION + 1, "time": "2026-01-01"})
    with pytest.raises(LedgerError, match=rf"ledger\.sqlite names ledger {old.id} about 'people'"):
        assert Project.load().ledger_to_spend


def test_the_cache_is_read_beside_own_files(colleague: tuple[str, bytes]) -> None:
    """Two colleagues began before either pushed: own files lie here, those of the other in DVC's cache."""
    first, released = colleague
    ledger = ledger_of_people()
    ledger.reserve(request("k", 1e-3))
    write("reports/privacy.json", account(ledger.id))
    assert other_ledger(Path(), "people", locate(), ledger) is None
    cached(released)
    other = other_ledger(Path(), "people", locate(), ledger)
    assert other is not None and other.ledger_id == first and other.source.endswith("in DVC's cache")


def test_a_folder_that_is_no_project_is_searched_beside_its_files_only(colleague: tuple[str, bytes]) -> None:
    first, _ = colleague
    write("notebooks/x.py", b"")
    write("saved/privacy.json", account(first))
    home = locate()
    found = other_ledger(Path("notebooks").absolute(), "people", home, None)  # below a project
    assert found is not None and found.ledger_id == first
    Path("params.yaml").unlink()
    assert other_ledger(Path("notebooks").absolute(), "people", home, None) is None
    assert other_ledger(Path(), "people", home, None) == LedgerReference("saved/privacy.json", "people", first)
    Path("saved").rename("a")
    Path("deep").mkdir()
    Path("a").rename("deep/a")
    assert other_ledger(Path(), "people", home, None) is None


def test_a_fit_in_python_asks_for_the_ledger_of_these_people(
    colleague: tuple[str, bytes], tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    """In a project, and after ``load``. Without one the list of what a fit lacks does not start a second."""
    first, released = colleague
    columns = {"x": {"kind": "categorical", "categories": ["a", "b"]}}
    given = Synthesizer(schema=schema_with(columns), population="people")
    frame = pd.DataFrame({"x": ["a", "b"] * 50})
    write(RELEASED, released)
    with pytest.raises(LedgerError, match=f"names ledger {first} about 'people', and there is no ledger") as refusal:
        given.fit(frame)
    assert "Ledger.start" not in str(refusal.value)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError, match=r"likeness\.Ledger\.start"):
        given.fit(frame)
    given.privacy_ = {"identity": "people", "ledger": {"id": first}}  # as load() leaves it
    with pytest.raises(LedgerError, match=f"this synthesizer names ledger {first}"):
        given.fit(frame)
    ledger = Ledger.start()
    with pytest.raises(LedgerError, match=f"this synthesizer names ledger {first}.* and this is ledger {ledger.id}"):
        given.fit(frame)
    assert [record.kind for record in ledger.records()] == ["genesis"]


def grown(ledger: Ledger, key: str) -> Ledger:
    ledger.reserve(request(key, 1e-3))
    return ledger


@pytest.fixture
def ledger() -> Ledger:
    made = ledger_of_people()
    return grown(made, "a")


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


def commit(folder: Path, ledger: Ledger) -> None:
    message = folder / "message"
    message.write_text("Subject\n\nLikeness-Ledger: of an earlier attempt\n")
    write_trailer(message, trailer(ledger.head()))
    assert message.read_text().count("Likeness-Ledger") == 1
    git(folder, "commit", "-q", "--allow-empty", "-F", "message")


def test_trailers_come_back_from_every_branch(ledger: Ledger, repository: Path) -> None:
    commit(repository, ledger)
    git(repository, "checkout", "-q", "-b", "side")
    commit(repository, grown(ledger, "b"))
    git(repository, "checkout", "-q", "-")
    found = git_witnesses(repository)
    assert sorted(witness.seq for witness in found) == [3, 4] and check_witnesses(ledger.records(), found) == 2
    assert git_witnesses(repository.parent / "no repository") == []
    assert read_trailers("Likeness-Ledger: 00 1 00\nsaid: Likeness-Ledger: x", "t") == []


def both(home: Home) -> list[Path]:
    return [home.path, home.anchor]


def test_an_old_backup_of_ledger_and_anchor_is_noticed_by_one_trailer(
    ledger: Ledger, repository: Path, tmp_path: Path
) -> None:
    for folder in both(locate()):
        shutil.copytree(folder, tmp_path / "backup" / folder.name)
    commit(repository, grown(ledger, "b"))
    for folder in both(locate()):
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "backup" / folder.name, folder)
    restored = Ledger.open(locate())  # by itself it looks whole
    with pytest.raises(LedgerError, match=r"git commit \w+ names record 4 of this ledger. The ledger has 3 records"):
        check_witnesses(restored.records(), git_witnesses(repository))
    grown(restored, "c")  # as long again, with another record there
    with pytest.raises(LedgerError, match="older copy, or rewritten"):
        check_witnesses(restored.records(), git_witnesses(repository))


def test_a_new_ledger_in_the_place_of_a_lost_one_is_noticed(ledger: Ledger, repository: Path) -> None:
    commit(repository, ledger)
    lost = ledger.id
    for folder in both(locate()):
        shutil.rmtree(folder)
    fresh = Ledger.create(locate())
    with pytest.raises(LedgerError, match=f"names ledger {lost}, this is {fresh.id}"):
        check_witnesses(fresh.records(), git_witnesses(repository))
    assert check_witnesses(fresh.records(), git_witnesses(repository), [lost]) == 0


def test_a_released_file_names_the_entry_that_paid(ledger: Ledger) -> None:
    records = ledger.records()
    assert check_witnesses(records, [Witness("file", ledger.id, 3, key="a")]) == 1
    for wrong in (Witness("file", ledger.id, 3, key="b"), Witness("file", ledger.id, 2, key="a")):
        with pytest.raises(LedgerError, match="file names record"):
            check_witnesses(records, [wrong])


def test_a_stage_that_would_spend_asks_git_first(ledger: Ledger, repository: Path, monkeypatch: MonkeyPatch) -> None:
    from likeness.config.load import load_params
    from likeness.data.schema.schema import Schema

    root = Path(__file__).parents[2]
    params = load_params(root / "params.yaml")
    schema = Schema.load(root / params.ingest.schema)
    monkeypatch.chdir(repository)
    commit(repository, ledger)
    assert Project(Path(), params, schema).ledger_to_spend.id == ledger.id
    git(repository, "commit", "-q", "--allow-empty", "-m", f"x\n\nLikeness-Ledger: {ledger.id} 9 {'0' * 64}")
    git(repository, "commit", "-q", "--allow-empty", "-m", f"x\n\nLikeness-Ledger: {'0' * 16} 9 {'0' * 64}")
    before = Ledger.open(locate()).records()
    with pytest.raises(LedgerError, match="names record 9"):
        assert Project(Path(), params, schema).ledger_to_spend
    assert Ledger.open(locate()).records() == before
