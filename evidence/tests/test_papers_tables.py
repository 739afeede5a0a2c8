"""Tables of the papers without a schema file become typed tables; an experiment has rows, a command or a reason."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from evidence.common import NAMES
from evidence.papers import CONTROLS, RESULTS, RUN
from evidence.papers_list import ENTRIES, PAPERS, Entry, listing
from evidence.papers_tables import FILES, build
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_source
from scripts.build_images import CELEBA, celeba

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
    "isolet": pd.DataFrame([[-1.0, 0.5, 1], [0.25, 1.0, 26], [0.0, -0.5, 5]]),
    "credit": pd.DataFrame({"Time": [0, 1, 172_792], "V1": [-1.3, 30, 0.1], "Amount": [9.5, 0, 3], "Class": [0, 1, 0]}),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_published_file_becomes_a_typed_table(name: str, tmp_path: Path) -> None:
    source = tmp_path / FILES[name]
    if source.suffix != ".parquet":
        RAW[name].to_csv(source, index=False, na_rep="?", header=source.suffix == ".csv")
    else:
        RAW[name].to_parquet(source)
    build(name, source, tmp_path / "raw")
    schema = Schema.load(tmp_path / "raw" / f"{name}.yaml")
    split = None if name == "adult_discretized" else "split"
    table, _, _ = read_source(tmp_path / "raw" / f"{name}.parquet", schema, split)
    assert len(table) == 3
    if name == "isolet":
        assert table["vowel"].astype(int).tolist() == [1, 0, 1]


def test_faces_are_cropped_in_the_middle_and_resized(tmp_path: Path) -> None:
    folder, out = tmp_path / "celeba", tmp_path / "celeba.parquet"
    (folder / CELEBA[0]).mkdir(parents=True)
    pixels = np.zeros((218, 178, 3), dtype=np.uint8)
    pixels[20:198] = (200, 100, 50)  # the square in the middle
    for name in ("000001.jpg", "000002.jpg"):
        Image.fromarray(pixels).save(folder / CELEBA[0] / name)
    (folder / CELEBA[1]).write_text("2\nSmiling Male\n000001.jpg  1 -1\n000002.jpg -1  1\n")
    (folder / CELEBA[2]).write_text("000001.jpg 0\n000002.jpg 2\n")
    celeba(folder, out, 64)
    schema = Schema.load(Path("data/schema/celeba.yaml"))
    table, split, _ = read_source(out, schema, "split")
    assert split.tolist() == ["train", "test"] and table["label"].tolist() == ["female", "male"]
    encoder = Encoder(schema)
    x = encoder.expand(encoder.encode(table)).reshape(2, 64, 64, 3)
    assert np.abs(x[:, 4:-4] - np.array([200, 100, 50]) / 255).max() < 0.02


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.paper}, {entry.place}, {entry.what}"[:60])
def test_an_experiment_has_rows_a_command_or_a_reason(entry: Entry) -> None:
    assert set(entry.data.split()) <= set(NAMES)
    assert not entry.data or set(entry.methods.split(" | ")) <= {*RUN, *CONTROLS}
    line = entry.line(RESULTS.rows)
    assert "no row" not in line or entry.command or entry.reason
    assert "not run" not in line or (" hours " in line and "about 0 hours" not in line)


def test_each_paper_s_experiments_are_listed() -> None:
    assert {entry.paper for entry in ENTRIES} == {"DP-MERF", "DP-HP", "DP-HP preprint", "PEARL", "DP-NTK", "all"}
    assert len(listing(RESULTS.rows).splitlines()) == len(ENTRIES) + 1  # and the command of a row


def test_numbers_of_papers_name_their_table_and_a_method_that_runs() -> None:
    for (data, method, *_), text in PAPERS.items():
        assert data in NAMES and method in {*RUN, *CONTROLS} and ("table" in text or "figure" in text)
