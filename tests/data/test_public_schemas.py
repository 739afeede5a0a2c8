"""The public tables Census-Income and Covertype fit their schemas.

The tables are not part of the repository: tests that read them are skipped where they do not lie beside the clone.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_source

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
NAMES = ("census", "covtype")
SPLIT = {"census": "split", "covtype": None}
WIDTH = {"census": 510, "covtype": 98}
# covtype.info gives these counts; census-income.names gives 93.80 and 6.20 percent. census: both parts together.
LABELS = {
    "census": {"- 50000.": 280_717, "50000+.": 18_568},
    "covtype": {"1": 211_840, "2": 283_301, "3": 35_754, "4": 2_747, "5": 9_493, "6": 17_367, "7": 20_510},
}


def load(name: str) -> Schema:
    return Schema.load(ROOT / "data" / "schema" / f"{name}.yaml")


def source(name: str) -> Path:
    path = SHARED / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"the public table {name}.parquet is not in ../shared/data beside this clone")
    return path


def first_rows(name: str, folder: Path, count: int = 1000) -> Path:
    """A small Parquet file of the first rows, with the types of the large one."""
    file = pq.ParquetFile(source(name))
    batch = next(file.iter_batches(batch_size=count))
    path = folder / f"{name}.parquet"
    pq.write_table(pa.Table.from_batches([batch]), path)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_schema_stands_alone(name: str) -> None:
    schema = load(name)
    assert schema.name == name and schema.task == "classification"
    assert schema.classes == tuple(LABELS[name])
    assert Encoder(schema).layout.width == WIDTH[name]
    # The codebooks have no catch-all, so an unknown category is refused and not hidden.
    assert all(column.other is None for column in schema.columns)
    assert Schema.from_dict(schema.to_dict(), "copy") == schema


@pytest.mark.parametrize("name", NAMES)
def test_the_first_rows_survive_a_round_trip(name: str, tmp_path: Path) -> None:
    schema = load(name)
    table, parts = read_source(first_rows(name, tmp_path), schema, SPLIT[name])
    encoder = Encoder(schema)
    codes = encoder.encode(table)
    x = encoder.expand(codes)
    assert x.shape == (1000, WIDTH[name])
    assert (
        x[:, encoder.layout.onehot_columns].sum(axis=1) == sum(b.kind == "onehot" for b in encoder.layout.blocks)
    ).all()
    assert encoder.decode(x, encoder.labels(codes)).equals(table)
    # The split is no column of the table.
    assert tuple(table.columns) == schema.names
    assert (parts is None) is (SPLIT[name] is None)
