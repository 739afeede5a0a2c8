"""Every method for tables keeps every rule: no synthetic row of a fit in Python breaks one, also under a condition."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from method_examples import ONLY_IMAGES, SMALL
from ruled import LEARNED, SCHEMA, rows
from test_every_method import small

from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import PlanError
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.constrained_tables import forward_transform, violation_counts
from likeness.ledger.ledger import Ledger
from likeness.methods import METHODS
from likeness.methods.base import Context
from likeness.privacy.adjacency import Adjacency
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.lattice_sum import lattice_sum
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
        table = synthesizer.sample(300, where=where)
        assert set(violation_counts(table, schema).values()) == {0}
    assert all(f"- `{rule.text}`" in synthesizer.statement for rule in schema.rules)
    assert ", rules" in synthesizer.statement
    synthesizer.save(tmp_path / "saved")
    again = Synthesizer.load(tmp_path / "saved")
    assert again.schema_ == schema and again.sample(300, where=where).equals(table)


@pytest.mark.parametrize("name", sorted({name for name in SMALL if name.split()[0] not in (*ONLY_IMAGES, "pearl")}))
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_rows_that_break_rules_move_every_sum_no_farther_than_declared(name: str, adjacency: Adjacency) -> None:
    """A row is removed or replaced, in a table where nearly every row breaks a rule; also all rows of a person."""
    table, others = rows(400), rows(400, seed=5)
    facts = Context(SCHEMA.modeled, str(adjacency), 400 if adjacency is Adjacency.REPLACE_ONE else None, 0)
    encoder = Encoder(SCHEMA.modeled)

    def total(query: Query, table: pd.DataFrame) -> np.ndarray:
        codes = encoder.encode(forward_transform(table, SCHEMA))
        records = Records(encoder.expand(codes), encoder.labels(codes), None)
        return lattice_sum(query, iter([records])).astype(object)

    for query in small(name).planned_queries(facts):
        whole = total(query, table)
        for place in range(5):
            without = table.drop(index=place)
            one = without if adjacency is Adjacency.ADD_REMOVE_ONE else pd.concat([without, others.iloc[[place]]])
            assert ((whole - total(query, one)) ** 2).sum() <= query.sensitivity_squared(adjacency)
        if adjacency is Adjacency.ADD_REMOVE_ONE:
            person = ((whole - total(query, table.drop(index=[7, 8, 9]))) ** 2).sum()
            assert person <= query.sensitivity_squared(adjacency, PrivacyUnit("pid", 3))


def test_a_method_that_learns_no_function_refuses_a_rule_without_a_table(tmp_path: Path) -> None:
    Ledger.start(tmp_path)
    synthesizer = Synthesizer(
        method="merf", schema=LEARNED, population="people", ledger_home=tmp_path, cap=(10.0, 1e-5)
    )
    with pytest.raises(PlanError, match="merf cannot learn how 'school' determines 'grade'"):
        synthesizer.fit(rows(100, schema=LEARNED))
