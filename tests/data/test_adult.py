"""The bundled example table fits its public schema, and so do the first rows of public tables beside the clone."""

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_source

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "data" / "raw" / "adult.csv.gz"
SHARED = ROOT.parent / "shared" / "data"


def load(name: str) -> Schema:
    return Schema.load(ROOT / "data" / "schema" / f"{name}.yaml")


@pytest.fixture(scope="module")
def adult() -> tuple[pd.DataFrame, pd.Series]:
    table, parts = read_source(SOURCE, load("adult"), "split")
    assert parts is not None
    return table, parts


def test_the_file_is_the_one_in_the_readme() -> None:
    readme = (SOURCE.parent / "README.md").read_text()
    content = SOURCE.read_bytes()
    assert hashlib.sha256(content).hexdigest() in readme
    assert hashlib.sha256(gzip.decompress(content)).hexdigest() in readme


def test_every_cell_is_known_to_the_schema(adult: tuple[pd.DataFrame, pd.Series]) -> None:
    table, parts = adult
    assert table.shape == (48_842, 15)
    assert parts.value_counts().to_dict() == {"train": 32_561, "test": 16_281}
    missing = table.isna().sum()
    assert missing[missing > 0].to_dict() == {"workclass": 2799, "occupation": 2809, "native-country": 857}
    assert table["income"].value_counts().to_dict() == {"<=50K": 37_155, ">50K": 11_687}
    assert (table["education"].cat.codes + 1 == table["education-num"]).all()


def check_round_trip(table: pd.DataFrame, schema: Schema, width: int) -> Encoder:
    encoder = Encoder(schema)
    codes = encoder.encode(table)
    x = encoder.expand(codes)
    assert x.shape == (len(table), width) and tuple(table.columns) == schema.names
    blocks = sum(block.kind == "onehot" for block in encoder.layout.blocks)
    assert (x[:, encoder.layout.onehot_columns].sum(axis=1) == blocks).all()
    assert encoder.decode(x, encoder.labels(codes)).equals(table)
    return encoder


def test_round_trip_is_exact(adult: tuple[pd.DataFrame, pd.Series]) -> None:
    encoder = check_round_trip(adult[0], load("adult"), 108)
    assert encoder.layout.diameter == pytest.approx(np.sqrt(6 + 2 * 8))


@pytest.mark.parametrize("name", ["adult", "census", "covtype"])
def test_an_unknown_category_is_refused_and_not_hidden(name: str) -> None:
    """The codebooks have no catch-all."""
    schema = load(name)
    assert schema.name == name and schema.task == "classification"
    assert all(column.other is None for column in schema.columns)


@pytest.mark.parametrize(("name", "split", "width"), [("census", "split", 510), ("covtype", None, 98)])
def test_the_first_rows_survive_a_round_trip(name: str, split: str | None, width: int, tmp_path: Path) -> None:
    path = SHARED / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"the public table {name}.parquet is not in ../shared/data beside this clone")
    first = next(pq.ParquetFile(path).iter_batches(batch_size=1000))
    pq.write_table(pa.Table.from_batches([first]), tmp_path / "t.parquet")
    table, parts = read_source(tmp_path / "t.parquet", load(name), split)
    check_round_trip(table, load(name), width)
    assert (parts is None) is (split is None)
