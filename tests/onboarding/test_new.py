"""``likeness new``: a project in any folder, of the repository's files, and what commands say outside of a project."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from likeness.pipeline.new_project import outdated_files, project_files

ROOT = Path(__file__).parents[2]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is no project and in no repository, with a table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("age,ill\n31,yes\n47,no\n")
    return tmp_path


def tree(folder: Path) -> dict[str, str]:
    """Text of every file by name, without git's."""
    paths = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def test_a_project_has_the_repositorys_files(command: Command) -> None:
    assert command("new", "project")[0] == 0
    files = tree(Path("project"))
    params, ignored = yaml.safe_load(files.pop("params.yaml")), files.pop(".gitignore")
    assert files == {name: (ROOT / name).read_text() for name in files}
    assert len(Path("project/params.yaml").read_text().splitlines()) <= 60
    assert {"dvc.yaml", "prefect.toml", ".dvcignore", ".dvc/config", "flows/synthesize.py"} < set(files)
    assert {f"stages/{path.name}" for path in (ROOT / "stages").glob("*.py")} < set(files)
    assert params["ingest"] == {"source": None, "schema": "data/schema/table.yaml"}
    assert params["privacy"]["population"] is None
    assert ignored and (ROOT / ".gitignore").read_text().endswith(ignored) and "evidence" not in ignored
    assert Path("project/.git").is_dir()  # made: no repository is around
    subprocess.run(["git", "add", "."], cwd="project", check=True)
    Path("project/data/raw").mkdir()
    Path("project/data/raw/rows.csv").write_text("secret")
    listed = subprocess.run(["git", "status", "--short"], cwd="project", capture_output=True, text=True, check=True)
    assert "data/raw" not in listed.stdout


def test_a_project_in_a_repository_starts_none_and_works_without_git(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("shutil.which", lambda _: None)
        assert command("new", "without")[0] == 0
    assert not Path("without/.git").exists() and "no_scm = true" in Path("without/.dvc/config").read_text()
    subprocess.run(["git", "init", "-q", "around"], check=True)
    assert command("new", "around/inside")[0] == 0
    assert not Path("around/inside/.git").exists() and "no_scm" not in Path("around/inside/.dvc/config").read_text()


def test_a_table_is_named_and_drafted_and_never_copied(command: Command, outside: Path) -> None:
    code, output, _ = command("new", "project", "--table", "rows.csv", "--label", "ill")
    assert code == 0 and "likeness check" in output
    ingest = yaml.safe_load(Path("project/params.yaml").read_text())["ingest"]
    assert ingest == {"source": str(outside / "rows.csv"), "schema": "data/schema/rows.yaml"}
    schema = yaml.safe_load(Path("project/data/schema/rows.yaml").read_text())
    assert schema["label"] == "ill" and list(schema["columns"]) == ["age", "ill"]
    assert not [name for name, text in tree(Path("project")).items() if "31,yes" in text]
    Path("here").mkdir()
    Path("here/rows.csv").write_text("age\n1\n")
    Path("here/.gitignore").write_text("*.log\n")
    assert command("new", "here", "--table", "here/rows.csv")[0] == 0
    assert yaml.safe_load(Path("here/params.yaml").read_text())["ingest"]["source"] == "rows.csv"
    assert Path("here/.gitignore").read_text().startswith("*.log\n.venv\n")


def test_nothing_is_overwritten_and_a_refused_table_leaves_nothing(command: Command) -> None:
    assert "needs a terminal" in command("new", "asked", "--table", "rows.csv", "--ask")[2]
    assert not Path("asked").exists()
    Path("full").mkdir()
    Path("full/dvc.yaml").write_text("mine")
    code, _, error = command("new", "full")
    assert code == 2 and "full/dvc.yaml exists and is not overwritten" in error
    assert tree(Path("full")) == {"dvc.yaml": "mine"}
    for words in (["--table", "nowhere.csv"], ["--label", "ill"], ["--ask"]):
        assert command("new", "project", *words)[0] == 2 and not Path("project").exists()
    code, _, error = command("new", "project", "--table", "rows.csv", "--label", "sick")
    assert code == 2 and "--label sick is not a column" in error
    assert "a project" not in error and not Path("project").exists()


@pytest.mark.parametrize("words", [["init", "rows.csv"], ["check"], ["run"], ["bundle"]])
def test_outside_of_a_project_a_command_offers_one_in_a_sentence(command: Command, words: list[str]) -> None:
    code, output, error = command(*words)
    assert code == 2 and not output
    missing = error.removeprefix("likeness: ").partition(" is missing: ")
    assert missing[0] in ("params.yaml", "dvc.yaml") and error.count(". ") == 0
    assert missing[2] == "go to the folder of a project, or make a project with `likeness new FOLDER`.\n"


def test_an_open_project_says_what_to_run_and_an_old_one_is_upgraded(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("new", "project", "--table", "rows.csv", "--label", "ill")
    before = tree(Path("project"))
    Path("project/dvc.yaml").write_text("stages: {}\n")
    Path("project/stages/train.py").unlink()
    monkeypatch.chdir("project")
    assert "not as in the installed version: dvc.yaml, stages/train.py" in command("check")[1]
    assert "dvc.yaml, stages/train.py changed" in command("new", ".", "--upgrade")[1]
    assert tree(Path()) == before and outdated_files(Path()) == [] and "not as in" not in command("check")[1]
    assert "nothing changed" in command("new", ".", "--upgrade")[1]
    Path("params.yaml").write_text("ingest: {source: null, schema: null}\n")
    assert "ingest.source is an open question: the table. Run: likeness init TABLE" in command("check")[1]
    monkeypatch.chdir("..")
    code, _, error = command("new", "nowhere", "--upgrade")
    assert code == 2 and "only a project can be upgraded" in error


def test_stages_of_a_project_hold_no_logic() -> None:
    """An upgrade of the package upgrades them."""
    scripts = {name: text for name, text in project_files().items() if name.endswith(".py")}
    assert all(len(text.splitlines()) <= 10 for text in scripts.values()), scripts
