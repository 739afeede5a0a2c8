"""A table that the project has never seen: every kind of column, regression, then no label at all, and its bundle."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from small_project import Clone
from verdicts import verify

SCHEMA = {
    "name": "own",
    "source": "made up for this test",
    "task": "regression",
    "label": "y",
    "columns": {
        "id": {"kind": "drop", "reason": "an id"},
        "code": {"kind": "categorical", "categories": [1, 2, 3], "nullable": True},
        "born": {"kind": "date", "lower": "1930-01-01", "upper": "2009-12-31", "nullable": True},
        "seen": {"kind": "datetime", "lower": "2020-01-01", "upper": "2020-12-31"},
        "smoker": {"kind": "boolean", "categories": ["no", "yes"], "nullable": True},
        "x": {"kind": "numeric", "lower": -1, "upper": 1},
        "y": {"kind": "numeric", "lower": -2, "upper": 2},
    },
}
DTYPES = {
    "code": {"dtype": "category[int8]"},
    "born": {"dtype": "object"},
    "seen": {"dtype": "datetime64[ns, Europe/Paris]"},
    "smoker": {"dtype": "bool"},
    "x": {"dtype": "float32"},
}
SOURCE_ID = "Xq7Secret"


def write_source(project: Clone) -> None:
    """600 people; smokers are born before 1970, and some values are missing."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, 600)
    days = generator.integers(-14_610, 14_610, 600)  # 1930 to 2009
    missing = generator.random((3, 600)) < 0.1
    code = pd.Series(generator.integers(1, 4, 600)).where(~missing[0])  # floats, because of the nulls
    table = {
        "id": [f"{SOURCE_ID}{place}" for place in range(600)],
        "code": pa.array(code, from_pandas=True),
        "born": pa.array(days.astype(np.int32), mask=missing[1]).cast(pa.date32()),
        "seen": pa.array(1_577_836_800_000_000 + generator.integers(0, 10**13, 600), pa.timestamp("us")),
        "smoker": pa.array(days < 0, mask=missing[2]),
        "x": x,
        "y": x + generator.normal(0, 0.1, 600),
    }
    pq.write_table(pa.table(table), project.root / "own.parquet")


@pytest.mark.long
def test_own_table_from_parquet_without_a_split_column(alone: Clone) -> None:
    write_source(alone)
    (alone.root / "data/schema/own.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
    alone.set(
        method="marginals",
        ingest={
            "source": "own.parquet",
            "query": None,
            "schema": "data/schema/own.yaml",
            "split": {"test_fraction": 0.25, "seed": 1},
            "unit": None,
        },
        privacy__population="own people",
        privacy__epsilon=20.0,
        ledger__cap={"epsilon": 20.0, "delta": 1e-5},
        evaluate__classifiers=["ridge"],
    )
    alone.stages("report")
    path = alone.root / "data/synthetic/synthetic.parquet"
    synthetic = pd.read_parquet(path)
    assert list(synthetic.columns) == ["code", "born", "seen", "smoker", "x", "y"]
    assert set(synthetic["code"].dropna()) <= {"1", "2", "3"}
    assert synthetic["x"].between(-1, 1).all()
    types = pq.read_schema(path)
    assert (types.field("born").type, types.field("seen").type) == (pa.date32(), pa.timestamp("ms"))
    born, seen = (synthetic[name].astype("datetime64[s]") for name in ("born", "seen"))
    assert born.dropna().between("1930-01-01", "2009-12-31").all() and born.isna().any()
    assert seen.between("2020-01-01", "2020-12-31 23:59:59").all()
    csv = pd.read_csv(path.with_suffix(".csv"), dtype=str)
    assert csv["born"].dropna().str.fullmatch(r"\d{4}-\d\d-\d\d").all()
    assert csv["seen"].str.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d").all()
    # The dependence of a boolean on a date goes through: all real smokers are, and half of all people. The noise at
    # this epsilon is about one record a cell, so that a false alarm (a quarter of them wrong) is out of reach.
    smokers = born[synthetic["smoker"] == "yes"].dropna()
    assert (smokers < "1970-01-01").mean() > 0.75
    assert "r2" in json.loads(alone.bytes("reports/internal/evaluation/metrics.json"))["scores"]["synthetic"]

    schema = {key: value for key, value in SCHEMA.items() if key != "label"} | {"task": "none"}
    schema["columns"] = {name: {**spec, **DTYPES.get(name, {})} for name, spec in SCHEMA["columns"].items()}
    (alone.root / "data/schema/own.yaml").write_text(yaml.safe_dump(schema, sort_keys=False))
    before = alone.bytes("data/released/embedding/embedding.safetensors")
    alone.stages("report")
    assert alone.bytes("data/released/embedding/embedding.safetensors") == before  # a dtype is no part of the question
    synthetic = pd.read_parquet(path)  # where pandas has no categories of numbers
    assert synthetic["code"].isna().any() and set(synthetic["code"].dropna()) <= {1, 2, 3}
    assert list(map(str, synthetic.dtypes.iloc[1:5])) == [
        "object",
        "datetime64[ns, Europe/Paris]",
        "boolean",
        "float32",
    ]
    assert set(pd.read_csv(path.with_suffix(".csv"))["smoker"].dropna()) == {True, False}
    assert json.loads(alone.bytes("reports/internal/evaluation/metrics.json"))["marginals"]["synthetic"]
    assert json.loads(alone.bytes("reports/privacy.json"))["total"]["epsilon"] <= 20

    alone.run("likeness", "bundle", "own")
    assert False not in {check.passed for check in verify(alone.root / "own", retrain=True)}
    alone.run("likeness", "sample", "own", "--rows", "50", "--where", "smoker=True", "--out", "more.csv")
    assert set(pd.read_csv(alone.root / "more.csv")["smoker"]) == {True}
    public = [path for path in alone.root.rglob("*") if path.is_file() and path.name != "own.parquet"]
    assert not [path for path in public if SOURCE_ID.encode() in path.read_bytes()]
