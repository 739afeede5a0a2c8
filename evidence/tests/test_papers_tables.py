"""Tables of the papers without a schema file: made files of the published form become typed tables."""

from pathlib import Path

import pandas as pd
import pytest

from evidence.papers_tables import FILES, build
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_source

_YES = ["Smokes", "STDs", "STDs:HIV", "Dx", "Biopsy"]
_YEARS = ["Age", "Smokes (years)", "STDs: Time since first diagnosis", "STDs: Time since last diagnosis"]
RAW = {
    "cervical": pd.DataFrame({**{key: [0, 1, 1] for key in _YES}, **{key: [20, None, 30] for key in _YEARS}}),
    "epileptic": pd.DataFrame({"X1": [-1800, 0, 2047], "seizure": [0, 1, 0]}),
    "intrusion": pd.DataFrame(
        {
            "duration": [0, 5, 50_000], "protocol_type": ["tcp", "udp", "icmp"], "service": ["http", "ntp_u", "eco_i"],
            "flag": "SF", "src_bytes": [0, 10, 10**9], "land": [0, 0, 1], "num_outbound_cmds": 0, "count": [1, 2, 511],
            "serror_rate": [0.0, 0.5, 1.0], "label": ["normal.", "smurf.", "rootkit."],
        }
    ),
    "adult_discretized": pd.DataFrame({"c0": [0, 1, 7], "c1": [1, 0, 0]}),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_published_file_becomes_a_typed_table(name: str, tmp_path: Path) -> None:
    source = tmp_path / FILES[name]
    if source.suffix == ".csv":
        RAW[name].to_csv(source, index=False, na_rep="?")
    else:
        RAW[name].to_parquet(source)
    build(name, source, tmp_path / "raw")
    schema = Schema.load(tmp_path / "raw" / f"{name}.yaml")
    split = None if name == "adult_discretized" else "split"
    table, _, _ = read_source(tmp_path / "raw" / f"{name}.parquet", schema, split)
    assert len(table) == 3
