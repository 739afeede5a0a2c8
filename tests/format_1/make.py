"""Make the files of format 1 once: a project, its bundle, saved synthesizers and two ledgers. All people are made up.

Run: ``python tests/format_1/make.py``. It refuses to run twice: what these files hold never changes again. Another
format gets another folder. The key of the ledgers is here for all to read, because nobody real is behind it.
"""

import contextlib
import datetime
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from likeness import HistorySchema, Schema, Synthesizer
from likeness.bundle.write import write_bundle
from likeness.ledger import records as records_of
from likeness.ledger.chain import anchor_path, copies_path
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.records import RECOVERED, append
from likeness.pipeline.project import Project

sys.path.insert(0, str(Path(__file__).parents[1]))
from postgres import programs, server

HERE = Path(__file__).parent
FIRST = datetime.date(2024, 3, 1)
STAFF, PATIENTS, TOWN_PEOPLE = (f"{people} of format 1" for people in ("staff", "patients", "town"))
NAMES = ("bundle", "ledger", "patients", "project", "team", "town")
STAGES = ("ingest", "plan", "categories", "preprocess", "auxiliary", "privatize", "train", "sample", "card", "account")
SPENDING = ("ingest", "plan", "categories", "preprocess", "auxiliary", "privatize")
CAP = (200.0, 1e-5)
SMALL = {"privatize": {"bins": 4}, "train": {"iterations": 5, "num_components": 4}}
SCHEMA: dict[str, Any] = {
    "name": "staff",
    "source": "made up",
    "task": "classification",
    "label": "paid",
    "columns": {
        "pid": {"kind": "drop", "reason": "names the person"},
        "x": {"kind": "numeric", "lower": 0, "upper": 1},
        "years": {"kind": "integer", "lower": 0, "upper": 40, "nullable": True},
        "since": {"kind": "date", "lower": "2000-01-01", "upper": "2024-01-01"},
        "job": {"kind": "categorical", "categories": "private", "other": "rest", "nullable": True},
        "paid": {"kind": "categorical", "categories": ["less", "more"]},
    },
    "rules": [{"if": {"x": "< 0.1"}, "then": {"paid": "less"}}],
}
HISTORIES: dict[str, Any] = {
    "name": "visits",
    "source": "made up",
    "person": "pid",
    "order": "day",
    "most": 3,
    "people": {"ward": {"kind": "categorical", "categories": ["east", "west"]}},
    "events": {
        "day": {"kind": "integer", "lower": 0, "upper": 60},
        "state": {"kind": "categorical", "categories": ["well", "ill"]},
    },
}
TOWN: dict[str, Any] = {
    "name": "town",
    "source": "made up",
    "task": "none",
    "columns": {
        "age": {"kind": "integer", "lower": 0, "upper": 99},
        "side": {"kind": "categorical", "categories": ["north", "south"]},
    },
}
PARAMS: dict[str, Any] = {
    "method": "marginals",
    "privacy": {"population": STAFF, "unit": "one employee", "epsilon": 50.0, "delta": 1e-5},
    "ledger": {"cap": {"epsilon": CAP[0], "delta": CAP[1]}},
    "ingest": {
        "source": "staff.csv",
        "schema": "schema.yaml",
        "split": {"test_fraction": 0.2, "seed": 0},
        "unit": {"column": "pid", "max_rows": 2},
    },
    "marginals": {"expert": SMALL},
    "sample": {"rows": 40},
    "evaluate": {"card": {"share": 0.1, "bins": 4}},
}


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


def visits() -> dict[str, pd.DataFrame]:
    """200 people, with up to two visits each."""
    people = pd.DataFrame({"pid": range(200), "ward": ["east" if n % 3 else "west" for n in range(200)]})
    who = [n for n in range(200) for _ in range(n % 3)]
    rows = {"day": [n * 7 % 60 for n in range(len(who))], "state": ["ill" if n % 4 else "well" for n in who]}
    return {"people": people, "events": pd.DataFrame({"pid": who, **rows})}


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


def keep_ledger(target: Path) -> None:
    """The ledger's folder and its anchor, with ``HOME`` in the place of its place."""
    home = locate()
    (target / "anchor").mkdir(parents=True)
    (target / "anchor/head.json").write_text(
        anchor_path(home.anchor, home.place).read_text().replace(str(home.place), "HOME")
    )
    shutil.copy(copies_path(home), target / "anchor/copies.jsonl")
    shutil.copy(home.key_file, target)
    if home.url is None:
        shutil.copy(home.database, target)
        shutil.copytree(home.path / "releases", target / "releases")


def make_project(folder: Path) -> None:
    """A project, its bundle, saved synthesizers, and the ledger of all."""
    project = folder / "project"
    project.mkdir()
    (project / "schema.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
    (project / "params.yaml").write_text(yaml.safe_dump(PARAMS, sort_keys=False))
    with on_day(0):
        Ledger.create(locate())
        run(project, STAGES)
        with contextlib.chdir(project):
            write_bundle(Project.load(), folder / "bundle", open_others=True)
        histories = HistorySchema.from_dict(HISTORIES)
        patients = Synthesizer(schema=histories, population=PATIENTS, epsilon=20.0, cap=CAP, settings=SMALL)
        patients.fit(visits()).save(folder / "patients")
    for day in (1, 2, 3):
        with on_day(day):
            fitted = of_town().fit(town(100 * day))
    fitted.save(folder / "town")
    with on_day(3):
        ledger, by = Ledger.open(locate()), {"asked_by": "a person"}
        with ledger.appending() as records:
            lost = {
                "identity": TOWN_PEOPLE,
                "rho": 1e-3,
                "delta_keys": 0.0,
                "error": 0.0,
                "lost": ["0" * 64],
                "digest": "0" * 64,
            }
            append(records, RECOVERED, {**by, **lost, "rows_digests": []})
        ledger.change_cap(PATIENTS, CAP[0] + 1, CAP[1])
        commits = [record.body for record in ledger.records() if record.kind == "commit"]
        ledger.redraw(next(body["key"] for body in commits if body["identity"] == PATIENTS), by)
        ledger.confirm_day(records_of._now(), by)
    for private in ("data/private", "staff.csv", "reports/internal"):
        path = project / private
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    keep_ledger(folder / "ledger")


def make_team(folder: Path) -> None:
    """A team's ledger in PostgreSQL, with a night of a series, as a dump in plain text."""
    tools = programs()
    assert tools is not None, "PostgreSQL is not installed"
    with server() as socket, on_day(0):
        os.environ["LIKENESS_LEDGER_URL"] = f"postgresql+psycopg://owner@/postgres?host={socket}"
        Ledger.create(locate())
        of_town().fit(town(100))
        keep_ledger(folder / "team")
        command = [tools / "pg_dump", "--inserts", "--no-owner", "-h", socket, "-U", "owner", "postgres"]
        dump = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (folder / "team/ledger.sql").write_text(dump)
    del os.environ["LIKENESS_LEDGER_URL"]


def main() -> None:
    """Make all of it."""
    if (HERE / "project.zip").exists():
        raise SystemExit(f"{HERE} holds format 1 already. It is not written again.")
    os.environ["LOGNAME"] = "somebody"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for make in (make_project, make_team):
            places = {
                "LIKENESS_HOME": f"{folder}/{make.__name__}",
                "LIKENESS_ANCHOR": f"{folder}/{make.__name__}.anchor",
            }
            os.environ.update(places)
            make(folder)
        for name in NAMES:
            shutil.make_archive(str(HERE / name), "zip", folder / name)


if __name__ == "__main__":
    main()
