"""Every version reads what format 1 wrote: bundle, saved synthesizers, project, and ledgers of a machine and of a team.

``tests/format_1/make.py`` of commit c19fd8f1 wrote the files, about people who are made up. Whoever changes a format
adds a folder, and leaves this one as it is.
"""

import contextlib
import datetime
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from postgres_server import programs, server

from likeness import Schema, Synthesizer
from likeness.bundle.files import Bundle
from likeness.bundle.verdict import run_check
from likeness.core.bounds import PrivacyUnit
from likeness.ledger import records as records_of
from likeness.ledger.chain import anchor_path, copies_path
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import Reservation
from likeness.pipeline.project import Project
from likeness.privacy.adjacency import Adjacency
from likeness.synthesizer.published import Published
from likeness.verify import CHECKS, account, checks_of

HERE = Path(__file__).parent
FIRST = datetime.date(2024, 3, 1)
STAFF, PATIENTS, TOWN_PEOPLE = (f"{people} of format 1" for people in ("staff", "patients", "town"))
NAMES = ("bundle", "ledger", "patients", "project", "team", "town")
SPENDING = ("ingest", "plan", "categories", "preprocess", "auxiliary", "privatize")
CAP = (200.0, 1e-5)
SMALL = {"privatize": {"bins": 4}, "train": {"iterations": 5, "num_components": 4}}
TOWN: dict[str, Any] = {
    "name": "town",
    "source": "made up",
    "task": "none",
    "columns": {
        "age": {"kind": "integer", "lower": 0, "upper": 99},
        "side": {"kind": "categorical", "categories": ["north", "south"]},
    },
}
SPENT = {STAFF: 22.197, PATIENTS: 5.9435, TOWN_PEOPLE: 11.888}  # rho
CHECK_OF = {"settings.json": "form", "plan.json": "form", "privacy.json": "account", "generator/spec.json": "generator"}


def staff() -> pd.DataFrame:
    """400 people with two rows each, by arithmetic that is the same everywhere."""
    numbers = range(800)
    columns = {
        "pid": [f"p{number // 2}" for number in numbers],
        "x": [f"{number * 377 % 1000 / 1000:.3f}" for number in numbers],
        "years": ["" if number % 17 == 0 else number * 29 % 41 for number in numbers],
        "since": [f"20{number * 7 % 24:02}-{1 + number % 12:02}-{1 + number * 5 % 28:02}" for number in numbers],
        "job": [("clerk", "nurse", "clerk", "")[number * 13 % 4] for number in numbers],
        "paid": ["more" if number * 377 % 1000 > 400 else "less" for number in numbers],
    }
    return pd.DataFrame(columns)


def town(people: int) -> pd.DataFrame:
    """A table that grows by one row a person."""
    rows = {"pid": [f"t{n}" for n in range(people)], "age": [n * 31 % 100 for n in range(people)]}
    return pd.DataFrame({**rows, "side": ["north" if n % 3 else "south" for n in range(people)]})


def of_town(**more: Any) -> Synthesizer:
    """The series about the town."""
    told = {"schema": Schema.from_dict(TOWN, "town.yaml"), "population": TOWN_PEOPLE, "epsilon": 20.0, "cap": CAP}
    return Synthesizer(**told, settings=SMALL, unit_column="pid", max_rows=1, series="growing", **more)


@contextlib.contextmanager
def on_day(number: int) -> Iterator[None]:
    """The clock of this process at a day of format 1."""
    real = records_of._now
    records_of._now = lambda: (FIRST + datetime.timedelta(number)).isoformat()
    try:
        yield
    finally:
        records_of._now = real


def run(folder: Path, stages: tuple[str, ...]) -> None:
    """Stages of the project in its folder, whose rows come and go."""
    with contextlib.chdir(folder), contextlib.redirect_stdout(sys.stderr):
        staff().to_csv("staff.csv", index=False)
        for stage in stages:
            import_module(f"stages.{stage}").main(Project.load())


@pytest.fixture(scope="module")
def format_1(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files, unpacked."""
    folder = tmp_path_factory.mktemp("format_1")
    for name in NAMES:
        shutil.unpack_archive(HERE / f"{name}.zip", folder / name)
    return folder


def give_ledger(folder: Path) -> Ledger:
    """The ledger of a folder, opened in the place of this test's."""
    home = locate()
    home.anchor.mkdir(parents=True)
    home.path.mkdir(parents=True)
    head = (folder / "anchor/head.json").read_text().replace('"HOME"', json.dumps(str(home.place)))
    anchor_path(home.anchor, home.place).write_text(head)
    shutil.copy(folder / "anchor/copies.jsonl", copies_path(home))
    for file in ("hmac.key", "ledger.sqlite"):
        if (folder / file).exists():
            shutil.copy(folder / file, home.path)
    if (folder / "releases").exists():
        shutil.copytree(folder / "releases", home.path / "releases")
    return Ledger.open(home)


def groups_of(ledger: Ledger) -> list[str]:
    """The cohort of each release that was paid."""
    return [record.body["group"] for record in ledger.records() if record.kind == "reserve"]


@pytest.mark.long
def test_the_bundle_passes_its_checks(format_1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another processor may round is not tested there; nothing is wrong. dp-accounting takes seven seconds."""
    monkeypatch.setattr(account, "find_spec", lambda _: None)
    verdict = {check.name: check for check in checks_of(format_1 / "bundle")}
    assert not [check for check in verdict.values() if check.passed is False]
    assert {name for name, check in verdict.items() if not check.passed} <= {"training", "table", "card"}


@pytest.mark.long
def test_a_key_that_a_file_lacks_is_said_in_words(format_1: Path, tmp_path: Path) -> None:
    """A bundle of an earlier or later version is wrong by file and key; no error of Python is shown."""
    shutil.copytree(format_1 / "bundle", tmp_path / "bundle")
    for name, check in CHECK_OF.items():
        text = (tmp_path / "bundle" / name).read_text()
        for key in json.loads(text):
            (tmp_path / "bundle" / name).write_text(json.dumps({k: v for k, v in json.loads(text).items() if k != key}))
            said = run_check(check, CHECKS[check], Bundle(tmp_path / "bundle"))
            assert "cannot be read" not in said.text, (name, key, said)
            assert said.passed is False or key == "relations", (name, key, said)  # that is for the generator's check
        (tmp_path / "bundle" / name).write_text(text)


def test_saved_synthesizers_and_the_project_draw_rows(format_1: Path) -> None:
    patients, crowd = (Synthesizer.load(format_1 / name) for name in ("patients", "town"))
    people = patients.sample(20)["people"]
    assert len(people) == 20 and set(people["ward"]) <= {"east", "west"}
    assert crowd.sample(20)["age"].between(0, 99).all() and len(crowd.estimate(["side"])) == 2
    drawn = Published.read(format_1 / "project").tables(30, 0, {"paid": "more"})["synthetic"]
    assert set(drawn["paid"]) == {"more"} and set(drawn["job"].dropna()) <= {"clerk", "nurse", "rest"}


@pytest.mark.long
def test_equal_rows_ask_nothing_new_and_a_release_may_be_reserved(
    format_1: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Split, digests, encoding, queries and keys are those of format 1: else an upgrade would charge all again."""
    monkeypatch.chdir(tmp_path)
    ledger = give_ledger(format_1 / "ledger")
    spent = {name: budget.spent_rho for name in SPENT if (budget := ledger.budget(name)) is not None}
    assert spent == pytest.approx(SPENT, rel=1e-4)
    assert {record.kind for record in ledger.records()} == {
        *("genesis", "cap", "reserve", "commit", "published", "lost", "recovered", "day")
    }
    before = groups_of(ledger)
    shutil.copytree(format_1 / "project", tmp_path / "project")
    shutil.rmtree(tmp_path / "project/data/released")
    with on_day(3):
        run(tmp_path / "project", SPENDING)
        of_town().fit(town(300))
    assert groups_of(ledger) == before
    for file in (tmp_path / "project/data/released").rglob("*.safetensors"):
        assert file.read_bytes() == (format_1 / "project" / file.relative_to(tmp_path / "project")).read_bytes()
    with on_day(4):
        request = {"others": {}, "attempt": "1", "encoding": "e", "details": {"query": "q"}, "digest": "d"}
        ledger.reserve(
            Reservation("k", STAFF, Adjacency.ADD_REMOVE_ONE, 1e-3, "p", unit=PrivacyUnit("pid", 2), **request)
        )
    assert groups_of(Ledger.open(locate())) == [*before, ""]


@pytest.mark.process
@pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed")
def test_the_dump_of_a_team_goes_on(format_1: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restored from plain text: the same night costs nothing, and the next one follows it."""
    tools = programs()
    assert tools is not None
    monkeypatch.chdir(tmp_path)  # beside the files of format 1 another ledger is refused
    with server() as socket:
        command = [tools / "psql", "-q", "-h", socket, "-U", "owner", "-d", "postgres", "-f"]
        subprocess.run([*command, format_1 / "team/ledger.sql"], check=True, stdout=subprocess.DEVNULL)
        monkeypatch.setenv("LIKENESS_LEDGER_URL", f"postgresql+psycopg://owner@/postgres?host={socket}")
        ledger = give_ledger(format_1 / "team")
        before = groups_of(ledger)
        for day, new in ((0, []), (1, ["1-2"] * len(before))):
            with on_day(day):
                of_town().fit(town(100 + 50 * day))
            assert groups_of(ledger) == before + new
