"""Outside witnesses: one that survives shows that ledger and anchor were lost or restored together."""

import shutil
import subprocess
from pathlib import Path

import pytest
from toys import ledger_of_people, request

from likeness.core.errors import LedgerError
from likeness.ledger.home import Home, locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.witness import Witness, check_witnesses, git_witnesses, read_trailers, trailer, write_trailer
from likeness.pipeline.project import Project


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
    assert sorted(witness.seq for witness in found) == [3, 4]
    assert check_witnesses(ledger.records(), found) == 2
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


def test_a_stage_that_would_spend_asks_git_first(
    ledger: Ledger, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
