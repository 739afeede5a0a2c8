"""A run with a quality card: released once for a table, stated, and never paid twice without a word."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_project import small_folder, small_settings, stage

from evidence.card import Simulation
from likeness.config.params import Card
from likeness.core.errors import LedgerError, ParamsError, PlanError, ReleaseError
from likeness.core.paths import ProjectPaths, read_json
from likeness.data.private_tables import read_private
from likeness.data.schema.constrained_tables import forward_transform
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_frame
from likeness.inference.measurements import _parts
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods.base import Context
from likeness.methods.marginals.method import Marginals
from likeness.pipeline.card import CONFUSION, DISTANCES, card_shares
from likeness.pipeline.doors import rows_of
from likeness.pipeline.project import Project
from likeness.pipeline.synthetic_table import read_synthetic
from likeness.preflight.cost import new_releases
from likeness.preflight.forecast import forecast
from likeness.release.released import load_released
from tests.campaigns.honest_bundles import SCHEMA, staff

BEFORE = ("ingest", "plan", "categories", "preprocess", "auxiliary", "privatize", "train", "sample")
COLUMNS = {**SCHEMA["columns"], "job": {"kind": "categorical", "categories": ["clerk", "nurse"], "nullable": True}}


def settings(**changed: Any) -> None:
    """params.yaml of a small run, with other values at keys whose dots are two underscores."""
    whose, card = {"population": "staff", "epsilon": 4.0}, {"card": {"share": 0.2, "bins": 8}}
    small_settings(changed, "staff.csv", privacy=whose, evaluate=card, sample={"rows": 60})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    small_folder(tmp_path / "run", monkeypatch, "staff.csv", staff("staff"), {**SCHEMA, "columns": COLUMNS})
    settings()
    return tmp_path / "run"


def spent() -> float:
    budget = Ledger.open(locate()).budget("staff")
    return 0.0 if budget is None else budget.spent_rho


@pytest.mark.long
def test_a_run_with_a_card(project: Path) -> None:
    for name in (*BEFORE, "card", "account"):
        stage(name)
    privacy, plan, whole = read_json(ProjectPaths.privacy), Project.load().written_plan, spent()
    assert [query["query"] for query in privacy["queries"]][-2:] == [CONFUSION, DISTANCES]
    assert sum(query["share"] for query in privacy["queries"][-2:]) == pytest.approx(0.2)
    assert privacy["total"]["epsilon"] <= 4 and whole == pytest.approx(plan.rho)
    assert "## Quality card" in ProjectPaths.statement.read_text()

    schema = Project.load().schema
    train = read_private(ProjectPaths.table).query("__split__ == 'train'")[list(schema.names)]
    figures = {figure.pop("measure"): figure for figure in privacy["card"]}
    # The noise is within 5 standard deviations: a false alarm for one of the five numbers in 300,000 runs.
    synthetic, seen = read_synthetic(ProjectPaths.synthetic, schema), forward_transform(train, schema)
    for name, value in Simulation(Project.load(), seen, synthetic).truth().items():  # rows that keep the rule
        figure = figures[name]
        assert figure["low"] <= figure["value"] <= figure["high"]
        if "accuracy" not in name:  # of a classifier that the run's own noisy counts make
            assert figure["value"] == pytest.approx(value, abs=5 * (figure["high"] - figure["value"]) / 1.96)
    # Classes are drawn like coins, and a rule makes one row in twenty `less`: .2 is ten standard errors of 1,100 rows.
    assert 0.3 < figures["accuracy"]["value"] < 0.7

    # No cell can be estimated from a distance, also where a schema has no classes.
    without_classes = Schema.from_dict({**SCHEMA, "task": "none", "label": None, "columns": COLUMNS}, "schema")
    distances = load_released(ProjectPaths.card / f"{DISTANCES}.safetensors")
    assert [*_parts(distances, without_classes, {})] == []

    # The same table again: the same bytes, nothing spent. Another one: refused before anything is spent.
    before = {path.name: path.read_bytes() for path in ProjectPaths.card.iterdir()}
    stage("card")
    assert {path.name: path.read_bytes() for path in ProjectPaths.card.iterdir()} == before and spent() == whole
    assert new_releases(Project.load(), rows_of(Project.load())[0]) == {}
    settings(sample__seed=1)
    stage("sample")
    with pytest.raises(LedgerError, match=r"evaluate.card.tables: 2"):
        stage("card")
    with pytest.raises(ReleaseError, match="answers the queries"):
        stage("account")
    assert spent() == whole and new_releases(Project.load(), rows_of(Project.load())[0]) == {}
    settings(sample__seed=1, evaluate__card={"share": 0.2, "bins": 8, "tables": 2})
    price = math.fsum(cost.rho for cost in new_releases(Project.load(), rows_of(Project.load())[0]).values())
    for name in ("plan", "card"):
        stage(name)
    assert spent() == pytest.approx(whole + price) == pytest.approx(1.2 * whole)
    stage("account")
    assert read_json(ProjectPaths.privacy)["total"]["rho"] == pytest.approx(whole)  # of the run; the ledger has both
    (ProjectPaths.card / f"{DISTANCES}.safetensors").write_bytes(before[f"{DISTANCES}.safetensors"])
    with pytest.raises(ReleaseError, match="answers another question"):  # the card of the table with the other seed
        stage("account")


def test_without_a_share_there_is_no_card(project: Path) -> None:
    settings(evaluate__card=None)
    made = Project.load()
    assert [query.query for query in made.plan.queries] == [*Marginals.queries]
    made.paths.plan.parent.mkdir(parents=True)
    stage("plan")
    stage("card")
    assert [path.name for path in ProjectPaths.card.iterdir()] == ["queries.json"] and spent() == 0


def test_what_a_card_cannot_measure_is_refused_before_anything_is_spent(project: Path) -> None:
    for key, value, refused, words in (
        ("measures", ["median"], ParamsError, r"evaluate.card.measures must be a list of mean, worst, accuracy"),
        ("share", 0, ParamsError, r"evaluate.card.share must be between 0 and 1"),
        ("bins", 1, ParamsError, r"evaluate.card.bins must be from 2"),
    ):
        settings(evaluate__card={"share": 0.1, key: value})
        with pytest.raises(refused, match=words):
            Project.load()
    settings(sample__where={"paid": "more"})
    with pytest.raises(ParamsError, match=r"sample.where: \{\}, or evaluate.card: null"):
        Project.load()
    nothing = Schema.from_dict({"name": "n", "source": "s", "task": "none", "columns": {
        "x": {"kind": "numeric", "lower": 0, "upper": 1}}}, "schema")  # fmt: skip
    with pytest.raises(PlanError, match="no measure for a table whose label has no classes"):
        card_shares(Card(0.1, ("accuracy",)), Context(nothing, "add_remove_one", None, 0))
    (share,) = card_shares(Card(0.1), Context(nothing, "add_remove_one", None, 0))
    assert (share.query, share.share) == (DISTANCES, pytest.approx(0.1))
    wide = Schema.from_dict({"name": "n", "source": "s", "task": "none", "columns": {
        f"x{place}": {"kind": "numeric", "lower": 0, "upper": 1} for place in range(12)}}, "schema")  # fmt: skip
    with pytest.raises(PlanError, match=r"Lower evaluate.card.bins"):
        card_shares(Card(0.1, bins=1000), Context(wide, "add_remove_one", None, 0))


def test_the_forecast_says_how_wide_the_intervals_will_be(project: Path) -> None:
    """With rho .01 and 30,000 records the standard deviation of a total variation is below .001."""
    settings(privacy__epsilon=3.2, evaluate__card={"share": 0.0337})
    made = Project.load()
    assert sum(query.rho for query in made.plan.queries if query.stage == "card") == pytest.approx(0.01, rel=0.05)
    queries = {query.query: query for query in forecast(made, 30_000).queries}
    assert queries[DISTANCES].measures[0].error < 3e-4 and queries[CONFUSION].measures[0].error < 1e-3


def test_intervals_hold_the_truth_and_those_of_a_third_of_the_noise_do_not(project: Path) -> None:
    """Over 60 draws: 95 % of the figures or more, and about 49 % of those whose interval is no wider than its noise.

    Fewer than 46 of 60 hold with probability 2e-7. Means of three figures have deviations of .025 and .06, and their
    bound is over five of these away. So false alarms are below 1e-5.
    """
    made, table = Project.load(), staff("staff")
    rows = read_frame(table, made.written_schema)
    honest, wrong = (Simulation(made, rows[:1000], rows[1000:1100], claimed).covered(60) for claimed in (1.0, 1 / 3))
    exact = ("rows", "accuracy", "balanced_accuracy")
    assert len(honest) == 7 and min(honest.values()) > 0.76, honest
    assert np.mean([honest[name] for name in exact]) > 0.8 > np.mean([wrong[name] for name in exact]), wrong
