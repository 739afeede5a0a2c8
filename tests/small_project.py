"""A small copy of the project in a temporary folder: the real stages, graph and code on 1,500 rows of Adult."""

import contextlib
import gzip
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import yaml
from dvc.repo import Repo
from pandas import DataFrame
from pytest import MonkeyPatch

from likeness.cli import app as cli
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods import METHODS
from likeness.pipeline.project import Project
from likeness.pipeline.run_stage import run_stage

ROOT = Path(__file__).parents[1]
ROWS = 1_500
QUERIES = ["class_counts", "columns", "finer_histograms", "histograms", "products", "second", "embedding"]
SMALL = {
    ("method",): "marginals",  # the method with the most releases
    ("marginals", "train", "iterations"): 300,
    ("marginals", "train", "num_components"): 50,
    ("pearl", "privatize", "num_frequencies"): 100,
    ("pearl", "train", "iterations"): 60,
    ("pearl", "expert"): {
        "plan": {"shares": {"class_counts": 0.05, "mixture": 0.1, "mean_pairwise_distance": 0.05, "embedding": 0.8}},
        "auxiliary": {
            "num_pairs": 256,
            "mixture": {"components": 3, "iterations": 2, "columns": ["age", "hours-per-week"]},
        },
        "train": {"batch_size": 200, "hidden": [32]},
    },
    ("merf", "privatize", "num_frequencies"): 100,
    ("merf", "train", "iterations"): 60,
    ("merf", "expert", "train", "hidden"): [32],
    ("sample", "rows"): 700,
    ("evaluate", "classifiers"): ["logistic_regression", "decision_tree"],
}
SMALL = {keys: value for keys, value in SMALL.items() if keys[0] in METHODS or keys[0] not in ("pearl", "merf")}


@dataclass
class Clone:
    """A project folder with its own environment."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, *command: str, ok: bool = True) -> str:
        """``python -m command`` as if in the folder; its output, both streams.

        Stages and the command line run in this process, which has loaded everything already.
        """
        name = command[0]
        if name != "likeness" and not name.startswith("stages."):
            return self.start(*command, ok=ok)
        code: object = 0
        with self.here() as output, patch.object(sys, "argv", list(command)):
            try:
                cli.main() if name == "likeness" else run_stage(name.split(".")[1], import_module(name).main)
            except SystemExit as end:
                code = end.code
        assert (not code) is ok, output.getvalue()
        return output.getvalue()

    @contextlib.contextmanager
    def here(self) -> Iterator[io.StringIO]:
        """This process in the project's folder and environment; what it writes to both streams."""
        output = io.StringIO()
        with (
            contextlib.chdir(self.root),
            patch.dict(os.environ, self.environment, clear=True),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(output),
        ):
            yield output

    def start(self, *command: str, ok: bool = True) -> str:
        """``python -m command`` in the folder, as a process; its output, both streams."""
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=self.root, env=self.environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert (done.returncode == 0) is ok, done.stdout
        return done.stdout

    def repro(self, *arguments: str, ok: bool = True) -> str:
        """``dvc repro``."""
        return self.start("dvc", "repro", *arguments, ok=ok)

    def stages(self, last: str, without: Sequence[str] = ()) -> None:
        """All stages up to one, in the order of dvc.yaml, in this process.

        For tests of what the stages make together; what DVC makes of them is tested with ``repro``.
        """
        names = list(yaml.safe_load((self.root / "dvc.yaml").read_text())["stages"])
        for name in names[: names.index(last) + 1]:
            if name not in without:
                self.run(f"stages.{name}")

    def set(self, **values: Any) -> None:
        """Change params.yaml; keys with two underscores for a dot."""
        path = self.root / "params.yaml"
        content = yaml.safe_load(path.read_text())
        for key, value in values.items():
            assign(content, tuple(key.split("__")), value)
        path.write_text(yaml.safe_dump(content, sort_keys=False))

    def bytes(self, path: str) -> bytes:
        """Content of a file."""
        return (self.root / path).read_bytes()


def assign(content: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    for key in keys[:-1]:
        content = content.setdefault(key, {})
    content[keys[-1]] = value


def small_csv(path: Path, rows: int = ROWS) -> None:
    """Header, and the first training and test rows of Adult."""
    with gzip.open(ROOT / "data/raw/adult.csv.gz", "rt") as file:
        header, *lines = file.read().splitlines()
    train = [line for line in lines if line.endswith("train")][: rows * 2 // 3]
    test = [line for line in lines if line.endswith("test")][: rows // 3]
    path.write_text("\n".join([header, *train, *test]) + "\n")


def copy_project(target: Path) -> None:
    """Code, graph and public files; no artifact of a run."""
    for name in ("src", "stages", "data/schema"):
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "dvc.yaml", target)
    small_csv(target / "table.csv")
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    for keys, value in SMALL.items():
        assign(content, keys, value)
    content["ingest"]["source"] = "table.csv"
    (target / "params.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    subprocess.run(["git", "init", "-q"], cwd=target, check=True)
    Repo.init(str(target))
    shutil.copy(ROOT / ".dvcignore", target)


def write_settings(content: dict[str, Any], changed: dict[str, Any]) -> None:
    """params.yaml here, with other values at keys whose dots are two underscores."""
    for key, value in changed.items():
        section = content
        *path, last = key.split("__")
        for name in path:
            section = section[name]
        section[last] = value
    Path("params.yaml").write_text(yaml.safe_dump(content))


def small_settings(source: str, population: str, unit: str, most: int, **changed: Any) -> None:
    """params.yaml here of a small run, at most so many rows of a person, and then as :func:`write_settings`."""
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["ingest"] |= {"source": source, "schema": "schema.yaml", "split": {"test_fraction": 0.2, "seed": 0}}
    content["ingest"]["unit"] = {"column": "pid", "max_rows": most}
    content["privacy"] |= {"population": population, "unit": unit}
    content["marginals"]["privatize"]["bins"] = 4
    content["marginals"]["train"] |= {"iterations": 5, "num_components": 5}
    content["sample"]["rows"] = 50
    write_settings(content, changed)


def small_folder(folder: Path, monkeypatch: MonkeyPatch, source: str, table: DataFrame, schema: dict[str, Any]) -> None:
    """Go to a new folder with a ledger, a table and its schema."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    Ledger.create(locate())
    table.to_csv(source, index=False)
    Path("schema.yaml").write_text(yaml.safe_dump(schema, sort_keys=False))


def asking(folder: Path, schema: Any, ingest: dict[str, Any], **privacy: Any) -> Project:
    """A project whose params.yaml asks for a table of visitors by some settings of ``ingest``."""
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["privacy"] |= {"population": "visitors", **privacy}
    content["ingest"] |= {"schema": "schema.yaml", **ingest}
    (folder / "params.yaml").write_text(yaml.safe_dump(content))
    (folder / "schema.yaml").write_text(yaml.safe_dump(schema.to_dict(), sort_keys=False))
    return Project.load(folder)


def stage(name: str) -> None:
    """One stage, in this process."""
    import_module(f"stages.{name}").main(Project.load())


FEW: dict[tuple[str, ...], Any] = {
    ("marginals", "privatize", "bins"): 4,
    ("marginals", "train", "iterations"): 5,
    ("marginals", "train", "num_components"): 5,
    ("sample", "rows"): 100,
    ("evaluate", "classifiers"): ["decision_tree"],
}
RELATIVE = {
    ("ingest", "schema"): "schema.yaml", ("ingest", "split"): {"test_fraction": 0.3}, ("ledger", "home"): "ledger",
    ("tracking", "uri"): "sqlite:///runs.db", **FEW,
}  # fmt: skip


def write_project_files(root: Path, jobs: Any, **ingest: str) -> DataFrame:
    """Settings, schema and rows of a project whose places are all relative to its folder."""
    root.mkdir()
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    changes = {
        **RELATIVE,
        ("privacy", "population"): root.name,
        **{("ingest", key): own for key, own in ingest.items()},
    }
    for keys, value in changes.items():
        assign(content, keys, value)
    (root / "params.yaml").write_text(yaml.safe_dump(content))
    columns = {"x": {"kind": "numeric", "lower": 0, "upper": 1}, "job": {"kind": "categorical", **jobs}}
    schema = {"name": root.name, "source": "made up", "task": "classification", "label": "sick"}
    columns["sick"] = {"kind": "categorical", "categories": ["no", "yes"]}
    (root / "schema.yaml").write_text(yaml.safe_dump({**schema, "columns": columns}, sort_keys=False))
    draw, rows = np.random.default_rng(len(root.name)), 1_000
    table = {"x": draw.random(rows), "job": draw.choice(["clerk", "nurse"], rows)}
    return DataFrame({**table, "sick": draw.choice(["no", "yes"], rows)})
