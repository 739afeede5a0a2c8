"""The writer that a table's Parquet file names: a version that a reader can install, and never a text of its author."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likeness.verify.outputs import written_by


@pytest.mark.parametrize("stated", ["Xq7Secret version 1", "parquet-cpp-arrow version 1x"])
def test_the_writer_is_a_version_of_pyarrow_or_nobody(tmp_path: Path, stated: str) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [1]}), path)
    ours = pq.read_metadata(path).created_by
    assert written_by(path) == f"pyarrow {pa.__version__}"
    data = path.read_bytes()
    assert data.count(ours.encode()) == 1
    path.write_bytes(data.replace(ours.encode(), stated.ljust(len(ours), "!")[: len(ours)].encode()))
    assert written_by(path) == "another writer"
