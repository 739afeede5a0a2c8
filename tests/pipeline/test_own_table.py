"""A table that the project has never seen: regression, then no label at all, a fractional split, numeric codes."""

import json

import numpy as np
import pandas as pd
import yaml
from small_project import Project

SCHEMA = {
    "name": "own",
    "source": "made up for this test",
    "task": "regression",
    "label": "y",
    "columns": {
        "code": {"kind": "categorical", "categories": [1, 2, 3], "nullable": True},
        "x": {"kind": "numeric", "lower": -1, "upper": 1},
        "y": {"kind": "numeric", "lower": -2, "upper": 2},
    },
}


def test_own_table_from_parquet_without_a_split_column(another: Project) -> None:
    for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR"):
        another.environment[name] = str(another.root.parent / name.lower())
    another.run("likeness", "ledger", "init")
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, 600)
    code = pd.Series(generator.integers(1, 4, 600)).where(generator.random(600) < 0.9)  # floats, because of the nulls
    pd.DataFrame({"code": code, "x": x, "y": x + generator.normal(0, 0.1, 600)}).to_parquet(
        another.root / "own.parquet"
    )
    (another.root / "data/schema/own.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
    another.set(
        ingest={"source": "own.parquet", "schema": "data/schema/own.yaml", "split": {"test_fraction": 0.25, "seed": 1}},
        privacy__identity="own people",
        evaluate__classifiers=["ridge"],
    )
    another.repro("report")
    synthetic = pd.read_parquet(another.root / "data/synthetic/synthetic.parquet")
    assert list(synthetic.columns) == ["code", "x", "y"]
    assert set(synthetic["code"].dropna()) <= {"1", "2", "3"}
    assert synthetic["x"].between(-1, 1).all()
    assert "r2" in json.loads(another.bytes("reports/internal/metrics.json"))["scores"]["synthetic"]
    schema = {key: value for key, value in SCHEMA.items() if key != "label"} | {"task": "none"}
    (another.root / "data/schema/own.yaml").write_text(yaml.safe_dump(schema, sort_keys=False))
    before = another.bytes("data/released/embedding.safetensors")
    another.repro("report")
    assert another.bytes("data/released/embedding.safetensors") == before  # the same rows, the same question
    assert json.loads(another.bytes("reports/privacy.json"))["total"]["epsilon_rdp"] <= 1
