"""Where this package is not installed, the core refuses histories by name, and says how to have them."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import likeness
from likeness import Synthesizer
from likeness.cli.verify import UNTESTED, give_verdict
from likeness.core.errors import MissingPackageError
from likeness.data.schema.yaml import schema_text
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.datasets import MODELS, read_schema
from likeness.preflight.faults import faults_of
from likeness.verify.checks import checks_of
from likeness_histories.schema import HistorySchema

SCHEMA: dict[str, Any] = {
    **{"name": "visits", "source": "made up", "person": "id", "order": "day", "most": 3},
    "people": {"sex": {"kind": "categorical", "categories": ["f", "m"]}},
    "events": {
        "day": {"kind": "integer", "lower": 0, "upper": 30},
        "state": {"kind": "categorical", "categories": ["a", "b"]},
    },
}
REMEDY = "likeness_histories is not installed here. Run: pip install"


def hide(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the folder were not there."""
    monkeypatch.setattr(
        "likeness.core.wings.find_spec", lambda name: None if name == "likeness_histories" else find_spec(name)
    )
    monkeypatch.setitem(vars(MODELS), "_names", [name for name in MODELS if name != "histories"])


def test_its_schema_and_its_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = HistorySchema.from_dict(SCHEMA)
    Ledger.create(locate())
    (tmp_path / "visits.yaml").write_text(schema_text(schema))
    assert read_schema(tmp_path / "visits.yaml") == schema
    hide(monkeypatch)
    assert "histories" not in MODELS
    with pytest.raises(MissingPackageError, match=rf"visits.yaml describes no table. {REMEDY}"):
        read_schema(tmp_path / "visits.yaml")
    with pytest.raises(MissingPackageError, match=REMEDY):
        faults_of(yaml.safe_load((tmp_path / "visits.yaml").read_text()))
    with pytest.raises(MissingPackageError, match=rf"likeness.HistorySchema is that of a part of Likeness. {REMEDY}"):
        _ = likeness.HistorySchema
    with pytest.raises(MissingPackageError, match=REMEDY):
        Synthesizer(schema=schema, population="patients").fit({})


@pytest.mark.long
def test_its_bundle_is_not_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Ledger.create(locate())
    people = pd.DataFrame({"id": range(200), "sex": ["f", "m"] * 100})
    events = pd.DataFrame({"id": np.repeat(range(200), 2), "day": [1, 5] * 200, "state": ["a", "b"] * 200})
    settings = {"privatize": {"bins": 3}, "train": {"iterations": 2, "num_components": 2}}
    model = Synthesizer(schema=HistorySchema.from_dict(SCHEMA), population="patients", settings=settings)
    model.fit({"people": people, "events": events}).bundle(tmp_path / "bundle")
    hide(monkeypatch)
    checks = list(checks_of(tmp_path / "bundle"))
    assert not [check for check in checks if check.passed is False]
    assert any(check.passed is None and REMEDY in check.text for check in checks)
    assert give_verdict(checks, False) == UNTESTED
