"""Bad tables through the real ingest stage: a plain message, no traceback, no private value."""

from pathlib import Path

import pytest
from small_project import Clone

MARKER = "Xq7Secret"


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("age", MARKER, "column 'age'"),
        ("split", MARKER, "split"),
    ],
)
def test_a_bad_cell_is_named_by_column_and_rule(alone: Clone, column: str, value: str, message: str) -> None:
    path = alone.root / "table.csv"
    header, first, *rest = path.read_text().splitlines()
    cells = first.split(",")
    cells[header.split(",").index(column)] = value
    path.write_text("\n".join([header, ",".join(cells), *rest]) + "\n")
    output = alone.run("stages.ingest", ok=False)
    assert message in output
    assert MARKER not in output and "Traceback" not in output
    assert not (alone.root / "data/private/typed/table.parquet").exists()


def test_files_that_are_no_tables(alone: Clone) -> None:
    for content in (b"", b"\xff\xfe\x00garbage", b"a,b\n1,2\n"):
        (alone.root / "table.csv").write_bytes(content)
        output = alone.run("stages.ingest", ok=False)
        assert "table.csv" in output and "Traceback" not in output


def test_a_missing_source_and_a_missing_ledger_say_what_to_do(alone: Clone, tmp_path: Path) -> None:
    alone.set(ingest__source="nowhere.csv")
    assert "ingest.source nowhere.csv does not exist" in alone.run("stages.ingest", ok=False)
    alone.set(ingest__source="table.csv")
    alone.environment |= {"LIKENESS_HOME": str(tmp_path / "none"), "LIKENESS_ANCHOR": str(tmp_path / "anchors")}
    assert "likeness ledger init" in alone.run("stages.fingerprint", ok=False)
