"""Peers get the cells of the shipped method and know no more; every line of results says its code and its day."""

import csv
import re
from pathlib import Path

import pytest

from evidence.common import load
from evidence.peers_shared import exact_rho, rho_of
from evidence.tables import peer_columns, through_cells
from likeness.config.load import load_params
from likeness.methods import method_from
from likeness.pipeline.project import Project
from likeness.privacy.calibration import epsilon_renyi, rho_for

ROOT = Path(__file__).parents[2]


def test_peers_get_the_cells_of_the_pairs_and_nothing_within_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    params = load_params()
    columns = peer_columns(params)
    asked = method_from(params).planned_queries(Project(Path(), params).context)[-1].feature
    assert [column.cells for column in columns] == list(asked.columns)  # type: ignore[attr-defined]
    assert not any(column.firsts or column.shares for column in columns)


def test_rows_through_the_cells_keep_categories_and_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Categories and integers with few values are as they were; another number stays in its bin."""
    monkeypatch.chdir(ROOT)
    table = load("adult")
    found, rows = through_cells(table), table.train.reset_index(drop=True)
    for column in table.schema.feature_columns:
        own, was = found[column.name], rows[column.name]
        if column.is_categorical:
            assert (own.isna() == was.isna()).all() and (own.astype(str) == was.astype(str))[was.notna()].all()
    assert (found["age"] - rows["age"]).abs().max() < (90 - 17 + 1) / 16 + 1
    assert (found[table.schema.label].to_numpy() == rows[table.schema.label].to_numpy()).all()
    assert (found["hours-per-week"] != rows["hours-per-week"]).any()


def test_a_peer_spends_what_the_epsilon_allows() -> None:
    """Gaussian noise alone gets our own exact budget, another mechanism that of zCDP."""
    for epsilon in (0.2, 1.0, 10.0):
        assert exact_rho(epsilon, 1e-5) == pytest.approx(rho_for(epsilon, 1e-5), rel=2e-3)
        assert epsilon_renyi(rho_of(epsilon, 1e-5), 1e-5) == pytest.approx(epsilon, rel=1e-3)


RESULTS = Path(__file__).parents[1] / "results"


def test_every_line_has_a_commit_and_a_day() -> None:
    files = sorted(RESULTS.glob("*.csv"))
    assert len(files) > 20
    for path in files:
        with path.open() as file:
            for row in csv.DictReader(file):
                assert re.fullmatch(r"[0-9a-f]{7,}(-dirty|-lost)?|unknown", row["commit"]), (path.name, row["commit"])
                assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"]), (path.name, row["date"])
