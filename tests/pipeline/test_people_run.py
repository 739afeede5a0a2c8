"""A whole run whose people have several rows, stage by stage: ids stay inside, and a verifier recomputes."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_project import small_folder, small_settings, stage
from verdicts import verify

from likeness import Synthesizer
from likeness.bundle.write import write_bundle
from likeness.core.errors import (
    ArtifactError,
    BudgetError,
    DataError,
    LikenessError,
    ParamsError,
    ReleaseError,
    SchemaError,
)
from likeness.core.paths import ProjectPaths, read_json
from likeness.data.private_tables import read_manifest, read_private, write_private
from likeness.data.schema.draft import SchemaDraft
from likeness.data.source.split import split_by_person
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.account import account
from likeness.pipeline.doors import rows_of
from likeness.pipeline.project import Project
from likeness.preflight.faults import examine

STAGES = ("ingest", "plan", "preprocess", "auxiliary", "privatize", "train", "sample", "account")
SECRET = "Xq7Secret"
SCHEMA = {
    "name": "visits",
    "source": "made up",
    "task": "none",
    "columns": {
        "pid": {"kind": "drop", "reason": "names the person"},
        "x": {"kind": "numeric", "lower": 0, "upper": 1},
        "c": {"kind": "categorical", "categories": ["u", "v"]},
    },
}


def visits() -> pd.DataFrame:
    """60 people of one visit, and one of forty."""
    generator = np.random.default_rng(0)
    people = [f"{SECRET}{n}" for n in range(60)] + [f"{SECRET}often"] * 40
    table = pd.DataFrame({"pid": people, "x": generator.random(100).round(6), "c": generator.choice(["u", "v"], 100)})
    return table.iloc[generator.permutation(100)]


settings = partial(small_settings, "visits.csv", "visitors", "one visitor", 3)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    small_folder(tmp_path / "run", monkeypatch, "visits.csv", visits(), SCHEMA)
    settings()
    return tmp_path / "run"


def test_a_run_of_people_with_several_rows(project: Path) -> None:
    for name in STAGES:
        stage(name)
    table = read_private(ProjectPaths.table)
    assert len(table) < 66 and table["__person__"].value_counts().max() == 3
    assert table.groupby("__person__")["__split__"].nunique().eq(1).all()
    privacy, text = read_json(ProjectPaths.privacy), ProjectPaths.statement.read_text()
    assert privacy["rows_of_a_person"] == {"column": "pid", "max_rows": 3}
    assert privacy["unit"] == "one visitor with all rows of one value of 'pid', of which at most 3 rows are used"
    assert privacy["unit"] in text and "one person added or removed with all rows" in text
    assert privacy["queries"][0]["sensitivity"] == 3 and privacy["total"]["epsilon"] <= 1

    write_bundle(Project.load(), account(Project.load()), Path("bundle"))
    assert privacy["unit"] in Path("bundle/README.md").read_text()
    verdict = {check.name: check.passed for check in verify(Path("bundle"))}
    assert False not in verdict.values()
    assert all(verdict[name] for name in ("sensitivity", "account", "statement", "ledger entries", "table"))
    public = [path for path in project.rglob("*") if path.is_file() and path.name != "visits.csv"]
    assert not [path for path in public if SECRET.encode() in path.read_bytes()]

    published = json.loads(Path("bundle/privacy.json").read_text())
    for wrong in ({"rows_of_a_person": {"column": "pid", "max_rows": 2}}, {"unit": "one visitor"}):
        Path("bundle/privacy.json").write_text(json.dumps({**published, **wrong}))
        failed = {check.name for check in verify(Path("bundle")) if check.passed is False}
        assert "account" in failed, wrong

    # In memory, the same people and rows are the same release: nothing is spent.
    spent = Ledger.open(locate()).budget("visitors").spent_rho
    rows = visits()
    train = rows[split_by_person(rows["pid"], 0.2, 0) == "train"]
    assert f"{SECRET}often" in set(train["pid"])  # so that there is somebody to be bounded
    synthesizer = Synthesizer(
        schema=SCHEMA, population="visitors", unit="one visitor", unit_column="pid", max_rows=3,
        settings={"privatize": {"bins": 4}, "train": {"iterations": 5, "num_components": 5}},
    )  # fmt: skip
    synthesizer.fit(train)
    assert Ledger.open(locate()).budget("visitors").spent_rho == spent
    assert synthesizer.privacy["rows_of_a_person"] == privacy["rows_of_a_person"]
    assert "pid" not in synthesizer.sample(5).columns


def test_a_run_without_noise_is_not_bundled(project: Path) -> None:
    settings(privacy__epsilon=float("inf"), ledger__cap={"epsilon": float("inf"), "delta": 1e-5})
    for name in STAGES:
        stage(name)
    assert not read_json(ProjectPaths.privacy)["private"] and "NOT PRIVATE" in ProjectPaths.statement.read_text()
    for target in ("bundle", "bundle.zip"):
        with pytest.raises(ReleaseError, match="run is NOT PRIVATE"):
            write_bundle(Project.load(), account(Project.load()), Path(target))
    assert not [path for path in project.rglob("*") if "bundle" in path.name]


def test_a_table_that_was_made_for_others_is_refused(project: Path) -> None:
    for name in ("ingest", "plan", "preprocess"):
        stage(name)
    for changed in ({"ingest__unit__max_rows": 2}, {"ingest__unit": None, "privacy__unit": "one row is one visit"}):
        settings(**changed)
        with pytest.raises(ArtifactError, match=r"was written under another ingest\.unit than params\.yaml has"):
            rows_of(Project.load())
    settings()
    codes, card = read_private(ProjectPaths.encoded), read_manifest(ProjectPaths.encoded)
    write_private(codes.assign(__person__=0), ProjectPaths.encoded, card)  # a table that breaks what its card says
    with pytest.raises(DataError, match="Nothing was released"):
        stage("auxiliary")
    write_private(codes.drop(columns="__person__"), ProjectPaths.encoded, card)
    with pytest.raises(ReleaseError, match="must have the number of its person"):
        stage("auxiliary")
    assert not Ledger.open(locate()).commits()
    write_private(codes, ProjectPaths.encoded, card)
    stage("auxiliary")
    settings(ingest__unit__column="household")
    with pytest.raises(BudgetError, match="all rows of one value of 'pid'"):
        stage("auxiliary")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ingest__unit__max_rows": 0}, r"ingest\.unit\.max_rows must be 1 to 10,000"),
        ({"ingest__unit__max_rows": 2.5}, r"ingest\.unit\.max_rows must be of type int"),
        ({"ingest__unit__column": " "}, r"ingest\.unit\.column must be the name of a column"),
        ({"ingest__split": {"column": "pid"}}, r"must be another column than ingest\.split\.column"),
        ({"privacy__unit": "one row is one person"}, r"privacy\.unit must be who is protected"),
        ({"privacy__adjacency": "replace_one", "privacy__num_records": 50}, "number of records cannot be public"),
        ({"ingest__unit__column": "x"}, "column 'x' is ingest.unit.column: its values name people"),
    ],
    ids=["none", "fraction", "blank", "split", "words", "replaced", "feature"],
)
def test_what_cannot_be_protected_is_refused_by_name(project: Path, changed: dict[str, Any], message: str) -> None:
    settings(**changed)
    with pytest.raises(LikenessError, match=message):
        stage("plan")


def test_a_schema_of_init_needs_the_people_that_it_names(project: Path) -> None:
    """Without them, one row would pass for one person."""
    draft = SchemaDraft({"pid": "categorical", "x": "numeric", "c": "categorical"}, "visits")
    draft.source, draft.person, draft.nullable = "made up", "pid", "none"
    draft["x"].bounds, draft["c"].categories = (0, 1), ["u", "v"]
    draft.to_yaml(Project.load().schema_file)
    stage("plan")
    settings(ingest__unit=None)
    message = r"column 'pid' names the person.* Give ingest\.unit: {column: pid, max_rows: \?} in params\.yaml"
    with pytest.raises(ParamsError, match=message):
        stage("plan")
    assert [fault.text for fault in examine(Path()).faults if "column 'pid' names the person" in fault.text]
    with pytest.raises(ParamsError, match="unit_column='pid' and max_rows"):
        Synthesizer(schema=Project.load().schema_file, population="visitors").fit(visits())
    assert not Ledger.open(locate()).commits()


def test_the_api_refuses_half_a_unit_and_a_released_name(project: Path) -> None:
    own = {"schema": SCHEMA, "population": "visitors"}
    with pytest.raises(LikenessError, match="unit_column and max_rows go together"):
        Synthesizer(**own, unit_column="pid").fit(visits())
    with pytest.raises(SchemaError, match="are never released"):
        Synthesizer(**own, unit_column="c", max_rows=2).fit(visits())
    with pytest.raises(DataError, match="column 'who' is missing"):
        Synthesizer(**own, unit_column="who", max_rows=2).fit(visits())
