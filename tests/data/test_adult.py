"""The bundled example table fits its public schema, and reading and encoding it is quick."""

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_source

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "data" / "raw" / "adult.csv.gz"


@pytest.fixture(scope="module")
def schema() -> Schema:
    return Schema.load(ROOT / "data" / "schema" / "adult.yaml")


@pytest.fixture(scope="module")
def adult(schema: Schema) -> tuple[pd.DataFrame, pd.Series]:
    table, parts = read_source(SOURCE, schema, "split")
    assert parts is not None
    return table, parts


def test_the_file_is_the_one_in_the_readme() -> None:
    readme = (SOURCE.parent / "README.md").read_text()
    content = SOURCE.read_bytes()
    assert hashlib.sha256(content).hexdigest() in readme
    assert hashlib.sha256(gzip.decompress(content)).hexdigest() in readme


def test_every_cell_is_known_to_the_schema(schema: Schema, adult: tuple[pd.DataFrame, pd.Series]) -> None:
    # No column has a catch-all, so one unknown category would have been refused.
    assert all(column.other is None for column in schema.columns)
    table, parts = adult
    assert table.shape == (48_842, 15)
    assert parts.value_counts().to_dict() == {"train": 32_561, "test": 16_281}
    missing = table.isna().sum()
    assert missing[missing > 0].to_dict() == {"workclass": 2799, "occupation": 2809, "native-country": 857}
    assert table["income"].value_counts().to_dict() == {"<=50K": 37_155, ">50K": 11_687}


def test_education_levels_are_in_the_order_of_their_numbers(adult: tuple[pd.DataFrame, pd.Series]) -> None:
    table, _ = adult
    assert (table["education"].cat.codes + 1 == table["education-num"]).all()


def test_round_trip_is_exact(schema: Schema, adult: tuple[pd.DataFrame, pd.Series]) -> None:
    table, _ = adult
    encoder = Encoder(schema)
    codes = encoder.encode(table)
    x = encoder.expand(codes)
    assert x.shape == (48_842, 108)
    assert encoder.layout.diameter == pytest.approx(np.sqrt(6 + 2 * 8))
    assert encoder.decode(x, encoder.labels(codes)).equals(table)
