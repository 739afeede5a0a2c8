"""What one changed byte of the library runs again, as DVC sees it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
STAGES: dict[str, Any] = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
FOLDERS = sorted(path.parent.name for path in (ROOT / "src/likeness").glob("*/__init__.py"))
ASKS = {"auxiliary", "privatize"}
DRAWS = {"train", "sample"}
NOT_THE_REPORT = set(STAGES) - {"report"}
RUN_AGAIN = {
    "bundle": set(),
    "cli": set(),
    "onboarding": set(),
    "verify": set(),
    "generators": {*DRAWS, "account"},
    "methods": {"settings", "plan", *ASKS, *DRAWS, "account"},
    "evaluation": {"plan", "evaluate"},
    "preflight": {"plan"},
    "report": {"evaluate", "account", "report", "track"},
    "tracking": {"track"},
    "engine": {"ingest", *ASKS},
    "ledger": {"fingerprint", "ingest", "categories", *ASKS, "account", "track"},
    "features": NOT_THE_REPORT - {"fingerprint", "ingest"},
    "release": NOT_THE_REPORT - {"fingerprint", "ingest"},
    "data": NOT_THE_REPORT,
    "privacy": NOT_THE_REPORT,
    "config": set(STAGES),
    "core": set(STAGES),
    "pipeline": set(STAGES),
}
"""By folder of the library: stages that load it. What follows one of them runs where its outputs change."""


@pytest.mark.process
def test_a_byte_in_a_folder_runs_the_stages_that_load_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By DVC itself, on stages that depend on the library as ours do and on nothing else."""
    from dvc.repo import Repo

    modules = {folder: tmp_path / "src/likeness" / folder / "module.py" for folder in FOLDERS}
    for module in modules.values():
        module.parent.mkdir(parents=True)
        module.write_text("")
    stages = {}
    for name, stage in STAGES.items():
        library = [path for path in stage["deps"] if path.startswith("src/")]
        stages[name] = {"cmd": f"stage {name}", "deps": library}
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump({"stages": stages}))
    monkeypatch.chdir(tmp_path)
    repository = Repo.init(no_scm=True)
    repository.commit(None, force=True)
    assert repository.status() == {}
    out_of_date = {}
    for folder, module in modules.items():
        module.write_text("#")
        out_of_date[folder] = set(repository.status())
        module.write_text("")
    assert out_of_date == RUN_AGAIN
