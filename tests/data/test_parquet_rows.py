"""A Parquet cell is typed by itself: no other row may change it."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_source

SCHEMA = Schema.from_dict(
    {
        "name": "t",
        "source": "made up",
        "task": "none",
        "columns": {
            "c": {
                "kind": "categorical",
                "categories": ["9007199254740993", "2020-01-01 00:00:00.000000", "else"],
                "other": "else",
                "nullable": True,
            }
        },
    },
    "t.yaml",
)


@pytest.mark.parametrize(
    ("cells", "added", "kind"),
    [
        ([datetime(2020, 1, 1)] * 3, datetime(2020, 1, 2, 3, 4), pa.timestamp("us")),
        ([2**53 + 1] * 3, None, pa.int64()),
    ],
)
def test_one_more_row_changes_no_other(tmp_path: Path, cells: list[Any], added: Any, kind: Any) -> None:
    def typed(values: list[Any]) -> list[Any]:
        path = tmp_path / "t.parquet"
        pq.write_table(pa.table({"c": pa.array(values, type=kind)}), path)
        column: pd.Series[Any] = read_source(path, SCHEMA)[0]["c"]
        return column.tolist()

    assert typed([*cells, added])[:3] == typed(cells) != ["else"] * 3
