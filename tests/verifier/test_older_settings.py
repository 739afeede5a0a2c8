"""Bundles of older versions: settings without a key that is newer, which then has its default."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from toys import schema_with

from likeness import Synthesizer
from likeness.bundle.files import Bundle, form
from likeness.bundle.verdict import Wrong
from likeness.core.paths import json_text
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger

pytestmark = pytest.mark.long
SCHEMA = schema_with({name: {"kind": "categorical", "categories": list("abc")} for name in "xyz"})
TRAIN = {"iterations": 20, "num_components": 5, "rare_cells": 0.0, "kl_hidden": 1.0}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle, and its settings as the version before `rare_cells` wrote them."""
    Ledger.create(locate())
    rows = pd.DataFrame(np.random.default_rng(0).choice(list("abc"), (300, 3)), columns=list("xyz"))
    given: dict[str, Any] = {"schema": SCHEMA, "population": "toys", "cap": (1.0, 1e-5), "settings": {"train": TRAIN}}
    Synthesizer(**given).fit(rows).bundle(tmp_path / "bundle", n=20)
    return tmp_path / "bundle"


def changed(bundle: Path, **train: Any) -> Bundle:
    """The bundle with other keys of `train`; None: none."""
    path = bundle / "settings.json"
    settings = json.loads(path.read_text())
    merged = settings["marginals"]["train"] | train
    settings["marginals"]["train"] = {key: value for key, value in merged.items() if value is not None}
    path.write_bytes(json_text(settings).encode())
    return Bundle(bundle)


def test_a_key_that_is_newer_than_the_bundle_may_be_missing(bundle: Path) -> None:
    assert "rare_cells" in json.loads((bundle / "settings.json").read_text())["marginals"]["train"]
    older = changed(bundle, rare_cells=None)
    assert older.params.sections["marginals"]["train"].keys().isdisjoint({"rare_cells"})
    assert "nothing else" in form(older)


@pytest.mark.parametrize("train", [{"kl_hidden": 1}, {"swap_rounds": 3, "exchange_rounds": None}])
def test_a_value_in_other_words_is_still_refused(bundle: Path, train: dict[str, Any]) -> None:
    with pytest.raises(Wrong, match=r"settings\.json is not written as this version writes it"):
        form(changed(bundle, **train))
