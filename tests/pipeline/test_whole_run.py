"""The main job on real rows, through DVC, and every way in which a re-run could become a second release."""

import json
import shutil
import sqlite3
from pathlib import Path

import pandas as pd
import pytest
from small_project import QUERIES, Clone
from verdicts import verify

from likeness.data.private_tables import read_manifest, read_private, write_private
from likeness.methods import METHODS
from likeness.release.released import load_released

RELEASED = ["data/released/auxiliary/class_counts.safetensors", "data/released/embedding/embedding.safetensors"]


def ledger_rows(project: Clone) -> list[tuple[str, ...]]:
    connection = sqlite3.connect(Path(project.environment["LIKENESS_HOME"]) / "ledger.sqlite")
    return connection.execute("SELECT kind, body, digest FROM records ORDER BY seq").fetchall()


def test_everything_is_there_and_the_account_is_right(finished: Clone) -> None:
    privacy = json.loads(finished.bytes("reports/privacy.json"))
    assert privacy["private"] and privacy["adjacency"] == "add_remove_one"
    assert 0.999 < privacy["total"]["epsilon"] <= 1.0
    assert privacy["total"]["epsilon_gaussian"] < privacy["total"]["epsilon"] < privacy["total"]["epsilon_rdp"]
    assert [query["query"] for query in privacy["queries"]] == QUERIES
    for path in ("data/synthetic/synthetic.csv", "reports/index.html", "reports/internal/index.html"):
        assert len(finished.bytes(path)) > 1000
    statement = finished.bytes("reports/PRIVACY_STATEMENT.md").decode()
    assert "uci-adult-1994" in statement and "one row is one person" in statement and "embedding" in statement


def test_a_second_run_does_nothing(finished: Clone) -> None:
    before = ledger_rows(finished)
    output = finished.repro()
    ran = [line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage")]
    assert ran == ["settings", "fingerprint"]  # they watch what DVC may not know
    assert ledger_rows(finished) == before


@pytest.mark.slow
def test_lost_outputs_cache_and_lock_come_back_from_the_store(finished: Clone) -> None:
    """The stages run again, by DVC: the same release, and from the same seed the same table."""
    made = [*RELEASED, "data/synthetic/synthetic.csv"]
    before, rows = {path: finished.bytes(path) for path in made}, ledger_rows(finished)
    shutil.rmtree(finished.root / "data/released")
    shutil.rmtree(finished.root / ".dvc/cache")
    (finished.root / "dvc.lock").unlink()
    finished.repro("account")
    assert {path: finished.bytes(path) for path in made} == before and ledger_rows(finished) == rows


def test_another_clone_gets_the_same_bytes_and_spends_nothing(finished: Clone, another: Clone) -> None:
    rows = ledger_rows(finished)
    another.stages("privatize")
    assert [another.bytes(path) for path in RELEASED] == [finished.bytes(path) for path in RELEASED]
    assert ledger_rows(another) == rows


def test_over_the_cap_is_refused_before_a_row_is_read(finished: Clone, another: Clone) -> None:
    another.set(privacy__epsilon=9.9)
    another.stages("preprocess")
    # No row can be read, there is none under the card: the refusal is about the budget all the same.
    path = another.root / "data/private/encoded/table.arrow"
    write_private(read_private(path).head(0), path, read_manifest(path))
    another.run("stages.plan")
    rows = ledger_rows(finished)
    output = another.run("stages.auxiliary", ok=False)
    assert "over budget for 'uci-adult-1994': spent epsilon" in output and "cap is epsilon 10" in output
    assert "Traceback" not in output and ledger_rows(finished) == rows


BLOCK = """
import sys
BLOCKED = ("pandas", "pyarrow", "sqlalchemy", "opendp", "autodp", "scipy", "sklearn", "platformdirs", "prefect",
           "mlflow", "dvc", "matplotlib", "jinja2", "xgboost", "typer", "torch")
class Without:
    "A finder that does not find the blocked packages, as if they were not installed."
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] in BLOCKED else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)
sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
from likeness.pipeline.run_stage import run_stage
from likeness.stages.train import main
run_stage("train", main)
"""


def test_training_needs_only_numpy_safetensors_threadpoolctl_and_yaml(finished: Clone) -> None:
    (finished.root / "train_alone.py").write_text(BLOCK)
    finished.environment["LIKENESS_LEDGER"] = "absent"
    try:
        assert "not checked against it" in finished.run("train_alone")
    finally:
        del finished.environment["LIKENESS_LEDGER"]


def test_an_edited_release_is_refused_downstream(finished: Clone) -> None:
    path = finished.root / "data/released/embedding/embedding.safetensors"
    data = path.read_bytes()
    path.unlink()  # a link into the cache, perhaps
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    try:
        assert "not hold the bytes that the ledger committed" in finished.run("stages.train", ok=False)
        assert "not hold the bytes that the ledger committed" in finished.run("stages.account", ok=False)
    finally:
        path.write_bytes(data)
        finished.run("stages.account")  # a refusal deletes the statement


def test_the_same_rows_under_another_name_are_refused(alone: Clone) -> None:
    alone.stages("auxiliary")
    alone.set(privacy__population="somebody else")
    refusal = "accounted under population 'uci-adult-1994'"
    assert refusal in alone.run("likeness", "check", ok=False)
    assert refusal in alone.run("stages.ingest", ok=False)  # also where nothing is left of the first run
    alone.set(privacy__population="uci-adult-1994")
    assert refusal not in alone.run("likeness", "check")


def test_replace_one(alone: Clone) -> None:
    """Of a method with a network, where there is one."""
    name = "merf" if "merf" in METHODS else "marginals"
    alone.set(
        method=name,
        privacy__adjacency="replace_one",
        privacy__population="others",
        privacy__num_records=1000,
        sample__rows="auto",
    )
    alone.stages("account", without=["evaluate"])
    privacy = json.loads(alone.bytes("reports/privacy.json"))
    assert privacy["sample"]["rows"] == 1000 and (privacy["adjacency"], privacy["method"]) == ("replace_one", name)
    assert privacy["queries"][0]["sensitivity"] == pytest.approx(2**0.5)
    alone.set(privacy__num_records=999)
    assert "num_records is 999" in alone.run("stages.ingest", ok=False)


def test_marginals(another: Clone, tmp_path: Path) -> None:
    named = {"marginals__privatize__workload": [{"columns": ["age", "education", "sex"], "weight": 39}]}
    another.set(method="marginals", privacy__epsilon=5.0, sample__rows="auto", **named)  # a thousand rows are few
    another.stages("account", without=["evaluate"])
    privacy = json.loads(another.bytes("reports/privacy.json"))
    assert (privacy["private"], privacy["method"]) == (True, "marginals")
    # 14 feature columns: squared weights sum to 1,000 times their 91 pairs, whatever pairs and tables are counted.
    assert privacy["queries"][-1]["sensitivity"] == pytest.approx((1000 * 91) ** 0.5)
    another.run("likeness", "bundle", "--open-others", str(tmp_path / "bundle"))
    verdicts = {check.name: check.passed for check in verify(tmp_path / "bundle", retrain=True)}
    assert set(verdicts.values()) == {True}, verdicts
    table = pd.read_parquet(another.root / "data/synthetic/synthetic.parquet")
    counted = round(float(load_released(another.root / RELEASED[0]).values.sum()))
    assert json.loads((tmp_path / "bundle/settings.json").read_text())["sample"]["rows"] == "auto"
    assert privacy["sample"]["rows"] == len(table) == counted
    for place in (tmp_path / "bundle", another.root):  # and without a number, the command draws as many
        assert f"{counted:,} rows" in another.run("likeness", "sample", str(place), "--out", "drawn.csv")
    assert table["age"].between(17, 90).all()
    assert (table["capital-gain"] == 0).mean() > 0.8  # the spike at zero has a cell of its own
