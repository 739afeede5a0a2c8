"""A whole run with a column of private categories, stage by stage: nothing rare leaves, a verifier recomputes."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from small_project import small_folder, small_settings, stage
from typer.testing import CliRunner
from verdicts import verify

from likeness import Synthesizer
from likeness.bundle.write import write_bundle
from likeness.cli.app import app
from likeness.core.errors import ArtifactError, BudgetError, ReleaseError
from likeness.core.paths import ProjectPaths, read_json
from likeness.data.source.split import split_by_person
from likeness.ledger.budget import Cost
from likeness.pipeline.account import account
from likeness.pipeline.doors import rows_of
from likeness.pipeline.project import Project
from likeness.preflight.cost import afford, new_releases
from likeness.preflight.forecast import forecast
from likeness.preflight.report import Report
from likeness.release.released import load_released, to_bytes
from likeness.synthesizer.published import Published

STAGES = ("ingest", "plan", "categories", "preprocess", "auxiliary", "privatize", "train", "sample", "account")
SECRET = "Xq7Secret"
SCHEMA: dict[str, Any] = {
    "name": "staff",
    "source": "made up",
    "task": "none",
    "columns": {
        "pid": {"kind": "drop", "reason": "names the person"},
        "x": {"kind": "numeric", "lower": 0, "upper": 1},
        "job": {"kind": "categorical", "categories": "private", "other": "rest", "nullable": True},
    },
}


def drawn(folder: Path, rows: int, seed: int, where: dict[str, str]) -> pd.DataFrame:
    return Published.read(folder).tables(rows, seed, where)["synthetic"]


def staff() -> pd.DataFrame:
    """700 people of two rows: most are clerks or nurses, one has a title that nobody else has, guards are held out."""
    generator = np.random.default_rng(0)
    people = np.repeat([f"p{place}" for place in range(700)], 2)
    jobs = generator.choice(["clerk", "nurse", ""], len(people), p=[0.5, 0.45, 0.05]).astype(object)
    jobs[split_by_person(pd.Series(people), 0.2, 0) == "test"] = "guard"
    jobs[:2] = SECRET
    return pd.DataFrame({"pid": people, "x": generator.random(len(people)).round(6), "job": jobs})


settings = partial(small_settings, "staff.csv", "staff", "one employee", 2)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    small_folder(tmp_path / "run", monkeypatch, "staff.csv", staff(), SCHEMA)
    settings()
    return tmp_path / "run"


def test_a_run_with_private_categories(project: Path) -> None:
    (cost,), _ = afford([Project.load()])
    assert cost.delta == pytest.approx(1e-6)
    for name in STAGES:
        stage(name)
    job = Project.load().schema.column("job")
    assert job.categories == ("clerk", "nurse", "rest")
    privacy, text = read_json(ProjectPaths.privacy), ProjectPaths.statement.read_text()
    assert privacy["total"]["delta_keys"] == pytest.approx(1e-6) and 0.99 < privacy["total"]["epsilon"] <= 1
    assert privacy["queries"][0]["keys"] == 2 and privacy["queries"][0]["sensitivity"] == 2
    assert "Categories of `job`:** not taken as public" in text and "categories but those of `job`" in text
    assert privacy["ledger"]["lifetime"]["cap_delta_keys"] == 5e-6
    rows = pd.read_csv("data/synthetic/synthetic.csv")
    assert set(rows["job"].dropna()) <= {"clerk", "nurse", "rest"}
    own = ("data/private", "staff.csv")
    public = [p for p in project.rglob("*") if p.is_file() and not str(p.relative_to(project)).startswith(own)]
    assert len(public) > 10 and not [path for path in public if SECRET.encode() in path.read_bytes()]

    write_bundle(Project.load(), account(Project.load()), Path("bundle"))
    verdict = {check.name: check.passed for check in verify(Path("bundle"))}
    assert False not in verdict.values()
    assert all(verdict[name] for name in ("sensitivity", "epsilon", "account", "statement", "ledger entries", "table"))
    assert list(drawn(Path("bundle"), 5, 0, {"job": "nurse"})["job"]) == ["nurse"] * 5
    assert Published.read(project).tables(5, 0, {})["synthetic"].equals(drawn(Path("bundle"), 5, 0, {}))

    # In memory, the same people and rows are the same releases; all of it is on record, and foreseen to be.
    spent, rows = Project.load().ledger.budget("staff"), staff()
    dataset, _ = rows_of(Project.load())
    assert new_releases(Project.load(), dataset) == {}
    synthesizer = Synthesizer(
        schema=SCHEMA, population="staff", unit="one employee", unit_column="pid", max_rows=2,
        settings={"privatize": {"bins": 4}, "train": {"iterations": 5, "num_components": 5}},
    )  # fmt: skip
    synthesizer.fit(rows[split_by_person(rows["pid"], 0.2, 0) == "train"])
    assert Project.load().ledger.budget("staff") == spent and spent.spent_delta == pytest.approx(1e-6)
    synthesizer.save("saved")
    loaded = Synthesizer.load("saved")
    assert (
        loaded.schema_ == synthesizer.schema_.published_schema == Project.load().schema.published_schema
        and loaded.schema.open_columns
    )
    assert loaded.sample(5).equals(synthesizer.sample(5)) and Published.read(Path("saved")).tables(5, 0, {})[
        "synthetic"
    ].equals(loaded.sample(5))
    shown = CliRunner().invoke(app, ["ledger", "budget"])
    assert "thresholds of private categories: delta 1e-06 spent of the 5e-06" in shown.output

    # Categories of another origin, or of another schema, go no further.
    path = ProjectPaths.categories / "categories_1.safetensors"
    bytes_ = path.read_bytes()
    path.write_bytes(to_bytes(dataclasses.replace(load_released(path), keys=("clerk", "doctor"))))
    with pytest.raises(ReleaseError, match="not hold the bytes that the ledger committed"):
        stage("auxiliary")
    path.write_bytes(bytes_)
    columns = {**SCHEMA["columns"], "job": {**SCHEMA["columns"]["job"], "other": "others"}}
    Path("schema.yaml").write_text(yaml.safe_dump({**SCHEMA, "columns": columns}, sort_keys=False))
    with pytest.raises(ArtifactError, match="does not answer this schema"):
        stage("preprocess")


def test_people_on_record_without_a_part_of_delta_are_asked_about(project: Path) -> None:
    ledger = Project.load().ledger
    from likeness.privacy.adjacency import Adjacency

    ledger.declare_population("staff", Adjacency.ADD_REMOVE_ONE, 10.0, 1e-5, "pid")
    for name in ("ingest", "plan"):
        stage(name)
    with pytest.raises(BudgetError, match=r"for them is 0 of 1e-05.*ledger cap --delta-keys"):
        stage("categories")
    changed = CliRunner().invoke(
        app, ["ledger", "cap", "staff", "--epsilon", "10", "--delta", "1e-5", "--delta-keys", "2e-6"]
    )
    assert changed.exit_code == 0 and "2e-06 of it for thresholds" in changed.output
    stage("categories")
    first = (ProjectPaths.categories / "categories_1.safetensors").read_bytes()
    stage("categories")
    assert (ProjectPaths.categories / "categories_1.safetensors").read_bytes() == first
    assert Project.load().ledger.budget("staff").spent_delta == pytest.approx(1e-6)


def test_a_cap_for_one_run_has_room_for_it(project: Path) -> None:
    settings(ledger__cap={"epsilon": 1.0, "delta": 1e-5})
    for name in ("ingest", "plan", "categories", "preprocess", "auxiliary", "privatize"):
        stage(name)
    budget = Project.load().ledger.budget("staff")
    assert budget.selection_delta == budget.spent_delta == pytest.approx(1e-6)
    assert 0.9999 < budget.spent_epsilon <= 1 and budget.remaining_rho == pytest.approx(0, abs=1e-8)


def test_the_forecast_says_how_many_hold_what_is_kept(project: Path) -> None:
    made = forecast(Project.load(), 1_000)
    (own,) = made.categories
    assert own.column == "job" and own.most == 100 and own.delta == pytest.approx(1e-6)
    assert 100 < own.threshold < own.nearly_always < 200
    assert made.width == 1 + int(1_000 / own.threshold) + 1 + 1 < forecast(Project.load()).width == 1 + 100 + 1 + 1
    text = Report((), (), made).text()
    assert f"A value needs about {np.ceil(own.threshold):.0f} records" in text


def measured(name: str) -> bool:
    """Whether the forecast holds a column to the rule."""
    queries = forecast(Project.load(), 1_000).queries
    return any(f"'{name}', the hardest column" in own.of and own.records for query in queries for own in query.measures)


def test_the_rule_is_about_what_is_listed_and_two_categories(project: Path) -> None:
    assert measured("x") and not measured("job")  # which has more cells
    second = {**SCHEMA["columns"]["job"], "other": "none"}
    columns = {"job": SCHEMA["columns"]["job"], "place": second}
    Path("schema.yaml").write_text(yaml.safe_dump({**SCHEMA, "columns": columns}, sort_keys=False))
    made = forecast(Project.load(), 1_000)
    assert not measured("job") and not measured("place") and made.records == 2 * made.categories[0].nearly_always
    for rows, enough in ((made.records, True), (made.records - 1, False)):
        assert ("NOT ENOUGH" not in Report((), (), forecast(Project.load(), rows)).text()) is enough


def test_without_such_columns_the_stage_spends_nothing(project: Path) -> None:
    listed = {"kind": "categorical", "categories": ["clerk", "nurse"], "other": "nurse", "nullable": True}
    columns = {**SCHEMA["columns"], "job": listed}
    Path("schema.yaml").write_text(yaml.safe_dump({**SCHEMA, "columns": columns}, sort_keys=False))
    ProjectPaths.categories.mkdir(parents=True)
    (ProjectPaths.categories / "categories_1.safetensors").write_bytes(b"of another schema")
    for name in ("ingest", "plan", "categories"):
        stage(name)
    assert (
        read_json(ProjectPaths.categories / "columns.json") == {} and len(list(ProjectPaths.categories.iterdir())) == 1
    )
    ledger = Project.load().ledger
    assert len(ledger.records()) == 1 and afford([Project.load()])[0][0].delta == Cost(0).delta == 0
