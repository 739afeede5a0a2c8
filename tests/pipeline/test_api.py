"""The Python API and the stages are one pipeline: the same rows, schema and settings are the same release."""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from small_project import Clone

from likeness import Synthesizer
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger


@pytest.mark.long
def test_what_the_stages_released_costs_the_api_nothing_and_gives_the_same_rows(
    finished: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR"):
        monkeypatch.setenv(name, finished.environment[name])
    params = yaml.safe_load((finished.root / "params.yaml").read_text())
    table = pd.read_csv(finished.root / "table.csv")
    before = Ledger.open(locate()).head()
    synthesizer = Synthesizer(
        method=params["method"],
        schema=finished.root / params["ingest"]["schema"],
        population=params["privacy"]["population"],
        settings=params[params["method"]],
    ).fit(table[table["split"] == "train"])
    assert Ledger.open(locate()).head() == before
    synthesizer.save(tmp_path / "saved")
    for query in synthesizer.releases_:
        place = "embedding/embedding" if query == "embedding" else f"auxiliary/{query}"
        released = finished.bytes(f"data/released/{place}.safetensors")
        assert (tmp_path / f"saved/released/{query}.safetensors").read_bytes() == released
    for name in ("spec.json", "weights.safetensors"):
        assert (tmp_path / "saved/generator" / name).read_bytes() == finished.bytes(f"data/models/generator/{name}")
    sample = synthesizer.sample(params["sample"]["rows"], seed=params["sample"]["seed"])
    staged = pd.read_parquet(finished.root / "data/synthetic/synthetic.parquet")
    pd.testing.assert_frame_equal(sample.astype(str), staged.astype(str))  # dtypes: those of the frame, of the schema
