"""Small honest bundles, what lies are planted in: two by the stages, one of histories by the Python API."""

import contextlib
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import yaml

import likeness
from likeness import Synthesizer
from likeness.bundle.write import write_bundle
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods import METHODS
from likeness.pipeline.account import account
from likeness.pipeline.datasets import MODELS
from likeness.pipeline.project import Project

ROOT = Path(__file__).parents[2]
IDENTITY = "staff"
"""The people of both bundles."""
SCHEMA: dict[str, Any] = {
    "name": "staff",
    "source": "made up",
    "task": "classification",
    "label": "paid",
    "columns": {
        "pid": {"kind": "drop", "reason": "names the person"},
        "x": {"kind": "numeric", "lower": 0, "upper": 1},
        "years": {"kind": "integer", "lower": 0, "upper": 40, "nullable": True},
        "job": {"kind": "categorical", "categories": "private", "other": "rest", "nullable": True},
        "paid": {"kind": "categorical", "categories": ["less", "more"]},
    },
    "rules": [{"if": {"x": "< 0.1"}, "then": {"paid": "less"}}],
}
HISTORIES: dict[str, Any] = {
    "name": "visits",
    "source": "made up",
    "person": "pid",
    "order": "day",
    "most": 3,
    "ends": {"state": ["dead"]},
    "people": {"ward": {"kind": "categorical", "categories": ["east", "west"]}},
    "events": {
        "day": {"kind": "integer", "lower": 0, "upper": 60},
        "state": {"kind": "categorical", "categories": ["well", "ill", "dead"]},
    },
}
_SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "marginals": {"privatize": {"bins": 4}, "train": {"iterations": 5, "num_components": 5}},
    "pearl": {
        "plan": {"shares": {"class_counts": 0.05, "mixture": 0.1, "mean_pairwise_distance": 0.05, "embedding": 0.8}},
        "auxiliary": {"num_pairs": 256, "mixture": {"components": 2, "iterations": 1, "columns": ["x", "years"]}},
        "privatize": {"num_frequencies": 100},
        "train": {"iterations": 5, "batch_size": 50, "hidden": [8]},
    },
}
MADE = [name for name, known in (("marginals", METHODS), ("pearl", METHODS), ("histories", MODELS)) if name in known]
"""The bundles that can be made here."""
_RELEASE = ("ingest", "plan", "categories", "preprocess", "auxiliary", "privatize")
_PUBLISH = ("train", "sample", "account")


def bundles(folder: Path) -> dict[str, Path]:
    """Make a bundle by ``marginals``, one by ``pearl``, and one of histories, as far as their wings are here.

    They share a ledger, and the first two their people. Each bundle tells the names of other people in the ledger.

    Args:
        folder: empty; ledger, runs and bundles are made in it.
    """
    places = {"LIKENESS_HOME": str(folder / "ledger"), "LIKENESS_ANCHOR": str(folder / "anchor")}
    with patch.dict(os.environ, places):
        Ledger.create(locate())
        _run(folder / "others", "visitors", "marginals", ("ingest", "plan", "categories"))
        made = {method: _bundle(folder, method) for method in MADE if method in METHODS}
        return made | ({"histories": _histories(folder / "histories_bundle")} if "histories" in MADE else {})


def _bundle(folder: Path, method: str) -> Path:
    """Run all stages, and write the bundle."""
    target = folder / f"{method}_bundle"
    _run(folder / method, IDENTITY, method, (*_RELEASE, *_PUBLISH))
    with contextlib.chdir(folder / method):
        write_bundle(Project.load(), account(Project.load()), target, open_others=True)
    return target


def _run(folder: Path, identity: str, method: str, stages: Sequence[str]) -> None:
    """Stages of a run in a new folder."""
    folder.mkdir()
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["method"] = method
    content["privacy"] |= {"population": identity, "unit": "one employee"}
    content["ingest"] |= {"source": "staff.csv", "schema": "schema.yaml", "split": {"test_fraction": 0.2, "seed": 0}}
    content["ingest"]["unit"] = {"column": "pid", "max_rows": 2}
    content[method] = {"expert": _SETTINGS[method]}
    content["sample"]["rows"] = 50
    with contextlib.chdir(folder), contextlib.redirect_stdout(sys.stderr):
        staff(identity).to_csv("staff.csv", index=False)
        Path("schema.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
        Path("params.yaml").write_text(yaml.safe_dump(content))
        for stage in stages:
            import_module(f"stages.{stage}").main(Project.load())


def _histories(target: Path) -> Path:
    """People with visits, fitted and bundled."""
    settings = {"privatize": {"bins": 4}, "train": {"iterations": 5, "num_components": 5}}
    model = Synthesizer(schema=likeness.HistorySchema.from_dict(HISTORIES), population="patients", settings=settings)
    model.fit(wards_and_visits()).bundle(target, n=60, open_others=True)
    return target


def wards_and_visits() -> dict[str, pd.DataFrame]:
    """300 people, with up to three visits each."""
    generator = np.random.default_rng(0)
    count = generator.integers(0, 4, 300)
    people = pd.DataFrame({"pid": np.arange(300), "ward": generator.choice(["east", "west"], 300)})
    who = np.repeat(people["pid"], count)
    visits = {"day": generator.integers(0, 50, len(who)), "state": generator.choice(["well", "ill"], len(who))}
    return {"people": people, "events": pd.DataFrame({"pid": who, **visits})}


def staff(people_of: str) -> pd.DataFrame:
    """1,500 people of two rows each: so many that rows of either class keep the rule, whatever the noise is."""
    generator = np.random.default_rng(list(people_of.encode()))
    people = np.repeat([f"p{place}" for place in range(1500)], 2)
    columns = {
        "pid": people,
        "x": generator.random(len(people)).round(6),
        "years": generator.integers(0, 41, len(people)),
        "job": generator.choice(["clerk", "nurse", ""], len(people), p=[0.5, 0.45, 0.05]),
        "paid": generator.choice(["less", "more"], len(people)),
    }
    return pd.DataFrame(columns)
