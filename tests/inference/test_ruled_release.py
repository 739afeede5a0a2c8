"""Estimates, tables of the model and replicates of a schema whose rules compute columns."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml
from pytest import MonkeyPatch
from ruled import SCHEMA, rows
from typer.testing import CliRunner
from verdicts import verify

from likeness import Synthesizer
from likeness.cli.app import app
from likeness.core.errors import ParamsError
from likeness.data.schema.yaml import schema_text
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.synthesizer.published import Published

pytestmark = pytest.mark.long

SOIL = "one of soil_1 to soil_3"
ROWS = 2_000


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Synthesizer]:
    home = tmp_path_factory.mktemp("home") / "ledger"
    settings = {"privatize": {"bins": 4}, "train": {"iterations": 60, "num_components": 20}}
    given = {"schema": SCHEMA, "population": "ruled people", "epsilon": 1e4, "cap": (1e6, 1e-5), "settings": settings}
    with MonkeyPatch.context() as patch:
        at(patch, home)
        Ledger.create(locate())
        yield Synthesizer(**given, ledger_home=str(home)).fit(rows(ROWS))


def at(patch: MonkeyPatch, home: str | Path) -> None:
    """Point ledger and anchor at those of the fit."""
    patch.setenv("LIKENESS_HOME", str(home))
    patch.setenv("LIKENESS_ANCHOR", str(Path(home).with_name("anchor")))


def test_estimates_the_model_and_replicates_know_computed_columns(fitted: Synthesizer, tmp_path: Path) -> None:
    """At epsilon = 10,000 an estimate has a noise of few records; the model of 60 steps is within .05."""
    private = rows(ROWS)
    soil = private[["soil_1", "soil_2", "soil_3"]].to_numpy(dtype=object)
    first = np.bincount((soil == "true").argmax(axis=1), minlength=3) / ROWS
    assert fitted.estimate(SOIL).estimate.to_numpy() == pytest.approx(first, abs=0.02)
    school = private.school.value_counts(normalize=True).reindex(["low", "middle", "high"])
    assert fitted.estimate("school").estimate.to_numpy() == pytest.approx(school.to_numpy(), abs=0.02)
    with pytest.raises(ParamsError, match=r"stay.*got .years"):
        fitted.estimate("years")
    pytest.importorskip("likeness_margins", reason="the wing likeness_margins is not here")
    assert fitted.model_.marginal(SOIL).to_numpy() == pytest.approx(first, abs=0.05)
    assert fitted.model_.marginal("school").to_numpy() == pytest.approx(school.to_numpy(), abs=0.05)
    with pytest.raises(ParamsError, match=r"stay.*got .years"):
        fitted.model_.marginal("years")
    fitted.save(tmp_path / "saved")
    written = [one["synthetic"] for one in Published.read(tmp_path / "saved").replicates(30, 0, {}, 2)]
    for table in (*fitted.sample(30, replicates=2), *written):
        assert list(table.columns) == list(SCHEMA.names)


def test_a_bundle_of_computed_columns_is_right(fitted: Synthesizer, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    """The verifier asks about rows of the schema, not of the model. Loss distributions would take gigabytes here."""
    at(monkeypatch, str(fitted.ledger_home))
    fitted.bundle(tmp_path / "bundle", n=30)
    wrong = {check.name: check.text for check in verify(tmp_path / "bundle") if check.passed is False}
    assert set(wrong) <= {"epsilon"}, wrong  # at epsilon = 10,000 libraries differ


def test_a_saved_folder_answers(fitted: Synthesizer, tmp_path: Path) -> None:
    fitted.save(tmp_path / "saved")
    result = CliRunner().invoke(app, ["estimate", str(tmp_path / "saved"), "--columns", "stay", "--statistic", "mean"])
    assert result.exit_code == 0, result.output


def test_a_project_draws_all_columns(tmp_path: Path) -> None:
    """``likeness sample PROJECT`` takes the schema of the table from here, and not that of the model."""
    params = yaml.safe_load((Path(__file__).resolve().parents[2] / "params.yaml").read_text())
    params["ingest"] = {"source": "t.csv", "schema": "s.yaml"}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    (tmp_path / "s.yaml").write_text(schema_text(SCHEMA))
    assert Published.read(tmp_path).project.schema == SCHEMA != SCHEMA.model_schema
