"""A command loads no heavy package that it does not need: each one costs its caller a tenth of a second or more."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "src"
HEAVY = (
    "numpy", "pandas", "pyarrow", "scipy", "scipy.optimize", "sqlalchemy", "matplotlib", "sklearn", "torch", "dvc",
    "mlflow", "jinja2", "ruamel", "autodp", "opendp",
)  # fmt: skip
LOADED = f"""
import sys
from likeness.cli.app import main
try:
    main()
finally:
    print(*(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)
"""
ACCOUNT = {
    "private": True, "method": "marginals", "adjacency": "add_remove_one", "target": {"epsilon": 1.0, "delta": 1e-5},
    "total": {"epsilon": 1.0, "delta": 1e-5}, "ledger": {"lifetime": {"spent_epsilon": 2.5, "cap_epsilon": 10.0}},
}  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "needed"),
    [
        *(("--help", set()), ("summary", set()), ("params", {"numpy"}), ("params privacy", {"numpy"})),
        *(("ledger init", {"numpy", "scipy", "sqlalchemy"}), ("ledger show", {"numpy", "scipy", "sqlalchemy"})),
    ],
)
def test_a_command_loads_only_what_it_needs(command: str, needed: set[str], tmp_path: Path) -> None:
    places = {name: str(tmp_path / name) for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR")}
    places["PYTHONPATH"] = os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")])

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        own = [sys.executable, "-c", LOADED, *words]
        return subprocess.run(own, cwd=tmp_path, env={**os.environ, **places}, capture_output=True, text=True)

    if command == "ledger show":
        assert run("ledger", "init").returncode == 0
    if command == "summary":
        (tmp_path / "params.yaml").write_text("{}")
        (tmp_path / "reports").mkdir()
        (tmp_path / "reports/privacy.json").write_text(json.dumps(ACCOUNT))
    done = run(*command.split())
    assert done.returncode == 0 and done.stdout, done.stderr
    assert set(done.stderr.splitlines()[-1].split()) <= needed
