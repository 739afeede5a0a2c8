"""A sweep says what its grid costs before it starts, asks, and keeps its runs apart."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from flows import sweep as module
from flows import sweep_folders as cell_module
from likeness.config.load import load_params
from likeness.config.params import Params
from likeness.data.encoding.layout import encoding_digest
from likeness.ledger.budget import Cost
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.open_ledger import limits
from likeness.pipeline.project import context, method, plan_of
from likeness.preflight.cost import afford, known_rows, with_target
from likeness.preflight.cost import grid_costs as priced
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import rho_for
from likeness.release.door import release
from likeness.release.records import Records
from likeness.release.released import from_bytes
from likeness.release.request import Dataset

ROOT = Path(__file__).parents[2]
ONE = rho_for(1.0, 1e-5)


def grid_costs(cells: list[Params], ledger: Ledger, dataset: Dataset | None) -> list[float]:
    return [cost.rho for cost in priced(cells, ledger, dataset)]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings and schema, and a ledger that knows nobody."""
    root = tmp_path / "project"
    (root / "data/schema").mkdir(parents=True)
    shutil.copy(ROOT / "data/schema/adult.yaml", root / "data/schema")
    shutil.copy(ROOT / "params.yaml", root)
    monkeypatch.chdir(root)
    Ledger.create(locate())
    return root


def cells(*wanted: tuple[str, float]) -> list[Params]:
    return [with_target(load_params(), name, epsilon) for name, epsilon in wanted]


def test_the_grid_is_composed_and_what_cells_share_is_counted_once(project: Path) -> None:
    """PEARL and DP-MERF ask for the same class counts where their share of ρ is the same."""
    ledger = Ledger.open(locate())
    costs = grid_costs(cells(("merf", 1.0), ("pearl", 1.0), ("merf", 2.0)), ledger, None)
    assert costs == pytest.approx([ONE, 0.95 * ONE, rho_for(2.0, 1e-5)], rel=1e-6)
    lines, refusal = module.price_list(cells(("merf", 1.0), ("merf", 2.0)))
    assert not refusal and f"all of it: rho {ONE + rho_for(2.0, 1e-5):.6g}" in lines[2]
    assert "lifetime cap of uci-adult-1994: epsilon 0 spent, 2.302 of 10 afterwards" in lines[3]


@pytest.mark.long
def test_what_is_on_record_is_not_counted_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.open(locate())
    ledger.declare_population("uci-adult-1994", Adjacency.ADD_REMOVE_ONE, 10.0, 1e-5)
    (params,) = cells(("merf", 1.0))
    recipe, facts = method(params), context(params)
    dataset = Dataset("uci-adult-1994", "digest", "1", encoding_digest(facts.schema))
    assert known_rows(params, ledger) is None  # nothing was ingested here
    assert grid_costs([params], ledger, dataset) == pytest.approx([ONE], rel=1e-6)

    def rows() -> list[Records]:
        return [Records(np.zeros((3, facts.layout.width)), np.zeros(3, dtype=np.int64))]

    (query,) = recipe.auxiliary_queries(facts, {})
    counts = from_bytes(release(query, plan_of(params), dataset, ledger, rows), "counts")
    assert grid_costs([params], ledger, dataset) == pytest.approx([0.95 * ONE], rel=1e-6)
    release(recipe.embedding_query(facts, {query.name: counts}), plan_of(params), dataset, ledger, rows)
    assert grid_costs([params, *cells(("merf", 2.0))], ledger, dataset) == pytest.approx(
        [0, rho_for(2.0, 1e-5)], rel=1e-6
    )
    assert module.rows_of([params], project, ledger) is None
    module.prepare(params, project, project / "sweeps/merf-epsilon-1")
    # The cell's own folder is asked, where its settings are those of today.
    known = lambda params, ledger: dataset if Path.cwd().name == "merf-epsilon-1" else None  # noqa: E731
    monkeypatch.setattr(module, "known_rows", known)
    assert module.rows_of([params], project, ledger) is dataset
    assert module.price_list([params])[0][1].startswith("all of it: rho 0,")
    settings = (project / "params.yaml").read_text()
    (project / "params.yaml").write_text(settings.replace("test: test", "test: other"))
    assert module.rows_of([params], project, ledger) is None
    (project / "params.yaml").write_text(settings)
    monkeypatch.setattr("likeness.preflight.cost.known_rows", lambda params, ledger: dataset)
    ledger.change_cap("uci-adult-1994", 1.0, 1e-5)
    assert afford(params, ledger)[0] == Cost(0)  # nothing is left, and nothing is asked


def sweep(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["sweep", *words])
    monkeypatch.setenv("LIKENESS_HOME", str(locate().path))  # undone after the test, whatever the sweep sets
    return module.main()


@pytest.mark.long
def test_over_a_cap_or_unasked_nothing_starts(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "sweep", None)  # to start would be an error
    assert sweep(monkeypatch, "--epsilon", "9", "10", "--yes") == 2
    text = capsys.readouterr()
    assert "over budget" in text.err and "rho 0 of" in text.out
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert sweep(monkeypatch, "--epsilon", "0.2", "1") == 2
    assert "nobody to ask" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda prompt: "n")
    assert sweep(monkeypatch, "--epsilon", "0.2", "1") == 2
    assert sweep(monkeypatch, "--epsilon", "-1", "--yes") == 2
    assert not (project / "sweeps").exists()


def test_a_wished_cap_counts_before_it_is_recorded(project: Path) -> None:
    content = yaml.safe_load((project / "params.yaml").read_text())
    content["ledger"]["caps"]["user"] = {"epsilon": 1.0, "delta": 1e-5}
    (project / "params.yaml").write_text(yaml.safe_dump(content))
    assert limits(load_params()) == {"user": (1.0, 1e-5)}
    _, refusal = module.price_list(cells(("merf", 0.9), ("merf", 0.8)))
    assert "user" in refusal and "Waiting brings no budget back" in refusal


@pytest.mark.slow
def test_cells_are_folders_of_their_own(toy: Path, prefect_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    (toy / "data/schema").mkdir(parents=True)
    shutil.copy(ROOT / "data/schema/adult.yaml", toy / "data/schema")
    step = "import yaml; print(yaml.safe_load(open('params.yaml'))['privacy']['epsilon'], file=open('a.txt', 'w'))\n"
    (toy / "step.py").write_text(step)
    graph = (toy / "dvc.yaml").read_text()
    (toy / "dvc.yaml").write_text(graph.replace("deps: [step.py]", "deps: [step.py]\n    params: [privacy.epsilon]"))
    (toy / ".gitignore").write_text("/sweeps/\n")
    monkeypatch.setattr(cell_module, "_COPIED", (*cell_module._COPIED, "step.py"))
    made = cells(("merf", 0.2), ("merf", 1.0))
    folders = [toy / "sweeps" / module.cell_name(cell) for cell in made]
    for cell, folder in zip(made, folders, strict=True):
        module.prepare(cell, toy, folder)
    assert module.sweep([str(folder) for folder in folders], return_state=True).is_completed()
    assert [(folder / "c.txt").read_text().strip() for folder in folders] == ["0.2", "1.0"]
    settings = yaml.safe_load((folders[0] / "params.yaml").read_text())
    assert settings["ingest"]["source"] == str(toy / "data/raw/adult.csv.gz") and settings["method"] == "merf"
