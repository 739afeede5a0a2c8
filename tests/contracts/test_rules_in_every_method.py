"""Every method for tables keeps every rule: no synthetic row of a fit in Python breaks one, also under a condition."""

from pathlib import Path
from typing import Any

import pytest
from method_examples import ONLY_IMAGES, SMALL
from ruled import LEARNED, SCHEMA, rows

from likeness.core.errors import PlanError
from likeness.data.schema.constrained_tables import violation_counts
from likeness.ledger.ledger import Ledger
from likeness.methods import METHODS
from likeness.synthesizer import Synthesizer

pytestmark = pytest.mark.long
QUICK = {"iterations": 20, "batch_size": 64, "hidden": [16]}


@pytest.mark.parametrize("name", sorted({name for name in SMALL if " " not in name} - {*ONLY_IMAGES}))
def test_no_synthetic_row_of_a_method_breaks_a_rule(name: str, tmp_path: Path) -> None:
    Ledger.start(tmp_path)
    settings: dict[str, Any] = {**SMALL[name]}
    settings["train"] = {**settings["train"], **(QUICK if "hidden" in settings["train"] else {"iterations": 20})}
    schema = LEARNED if METHODS[name].learns_functions else SCHEMA
    synthesizer = Synthesizer(
        method=name, schema=schema, population="people", ledger_home=tmp_path, cap=(10.0, 1e-5), settings=settings
    )
    synthesizer.fit(rows(1_000, schema=schema))
    for where in ({}, {"sick": "no"}):
        table = synthesizer.sample(100, where=where)
        assert set(violation_counts(table, schema).values()) == {0}
    assert all(f"- `{rule.text}`" in synthesizer.statement for rule in schema.rules)
    assert ", rules" in synthesizer.statement
    synthesizer.save(tmp_path / "saved")
    again = Synthesizer.load(tmp_path / "saved")
    assert again.schema_ == schema and again.sample(100, where=where).equals(table)


@pytest.mark.parametrize(
    "name", [name for name, kind in METHODS.items() if name not in ONLY_IMAGES and not kind.learns_functions][:1]
)
def test_a_method_that_learns_no_function_refuses_a_rule_without_a_table(name: str, tmp_path: Path) -> None:
    Ledger.start(tmp_path)
    synthesizer = Synthesizer(method=name, schema=LEARNED, population="people", ledger_home=tmp_path, cap=(10.0, 1e-5))
    with pytest.raises(PlanError, match=f"{name} cannot learn how 'school' determines 'grade'"):
        synthesizer.fit(rows(100, schema=LEARNED))
