"""Bounds that nobody knows publicly: the public grid, the cost of their histograms, what follows, and a whole run."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_project import small_folder, small_settings, stage
from toys import schema_with
from verdicts import verify

from likeness import Synthesizer
from likeness.bundle.write import write_bundle
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import ArtifactError, SchemaError
from likeness.core.paths import ProjectPaths, read_json
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import encoding_digest
from likeness.data.schema.column_keys import column_from
from likeness.data.schema.draft import SchemaDraft
from likeness.data.schema.schema import Schema
from likeness.data.source.cells import type_table
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.account import account
from likeness.pipeline.private_rows import encoded_chunks
from likeness.pipeline.project import Project
from likeness.preflight.cost import new_releases
from likeness.preflight.forecast import forecast
from likeness.preflight.report import Report
from likeness.privacy.adjacency import Adjacency
from likeness.release.private_bounds import (
    BOUNDS,
    _occupied_cells,
    bounds_query,
    complete_schema,
    grid_rows,
    grid_schema,
)
from likeness.release.released import Released, load_released, to_bytes
from likeness.release.sums.over_parts import exact_sum

COLUMNS: dict[str, Any] = {
    "age": {"kind": "integer", "bounds": "private"},
    "money": {"kind": "numeric", "bounds": "private", "decimals": 2},
    "born": {"kind": "date", "bounds": "private"},
    "clock": {"kind": "time", "bounds": "private"},
    "sex": {"kind": "categorical", "categories": ["f", "m"]},
}
SCHEMA = schema_with(COLUMNS)
STAGES = ("ingest", "plan", "categories", "preprocess", "auxiliary", "privatize", "train", "sample", "account")


def raw(rows: int = 900, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": random.integers(17, 91, rows),
            "money": np.exp(random.normal(6, 1, rows)).round(2),
            "born": (pd.Timestamp("1950-03-01") + pd.to_timedelta(random.integers(0, 9000, rows), "D")).strftime("%F"),
            "clock": [f"{hour:02d}:30" for hour in random.integers(0, 24, rows)],
            "sex": random.choice(["f", "m"], rows),
        }
    )


def typed(rows: pd.DataFrame) -> pd.DataFrame:
    return type_table(rows, SCHEMA, "rows")


def test_a_time_of_day_has_public_bounds_and_the_others_are_refused_where_they_are_needed() -> None:
    assert [column.name for column in SCHEMA.unbounded_columns] == ["age", "money", "born"]
    assert SCHEMA.column("clock").bounds == (0, 86_399) and SCHEMA.column("age").nullable
    with pytest.raises(SchemaError, match="'age': its bounds are not released yet"):
        Encoder(SCHEMA)
    again = Schema.from_dict(json.loads(json.dumps(SCHEMA.to_dict())), "again")
    assert again == SCHEMA and SCHEMA.column("born").to_dict()["bounds"] == "private"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"kind": "integer", "bounds": "private", "lower": 0}, "the word private, without lower and upper"),
        ({"kind": "integer", "bounds": [0, 9]}, "bounds must be the word private"),
        ({"kind": "categorical", "categories": ["a"], "bounds": "private"}, "bounds is not a key of a categorical"),
        ({"kind": "date", "bounds": "private", "format": "%d.%m.%y"}, "years of two digits"),
    ],
)
def test_other_words_are_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        column_from("x", spec)


def test_other_decimals_are_another_question_and_no_bound_has_more() -> None:
    def one(decimals: int | None) -> Schema:
        return schema_with({**COLUMNS, "money": {**COLUMNS["money"], "decimals": decimals}})

    schemas = [one(decimals) for decimals in (None, *range(13))]
    assert len({encoding_digest(schema) for schema in schemas}) == len(schemas)
    for schema in schemas[1:]:
        column = schema.column("money")
        assert all(round(end, column.decimals) == end for end in column.type.grid(column))


def test_a_rule_names_no_private_bounds() -> None:
    with pytest.raises(SchemaError, match="'age' has private bounds"):
        schema_with(COLUMNS, rules=[{"if": {"age": "< 20"}, "then": {"sex": ["f"]}}])


def test_each_cell_lies_where_the_grid_says_by_itself() -> None:
    column, money = SCHEMA.column("age"), SCHEMA.column("money")
    ends = [column.bounds[0], *column.type.grid(column), column.bounds[1]]
    ages = [-7, -2, -1, 0, 1, 4, 5, 49, 50, 10**12]
    rows = typed(raw(len(ages)).assign(age=ages, money=[-0.01, 0, 0.004, 0.01, 0.019, 0.02, 99.99, 100, None, 1e15]))
    cells = grid_rows(rows, SCHEMA)
    lows = [ends[place] for place in cells["age"].cat.codes]
    assert lows == [-10, -2, -1, 0, 1, 2, 5, 20, 50, 500_000_000_000]
    steps = [money.bounds[0], *money.type.grid(money)]
    assert [steps[place] for place in cells["money"].cat.codes[:8]] == [-0.01, 0, 0, 0.01, 0.01, 0.02, 50, 100]
    assert cells["money"].isna().tolist()[8] and cells["money"].cat.codes.max() == len(steps) - 1
    alone = pd.concat([grid_rows(rows.iloc[[place]], SCHEMA) for place in range(len(rows))], ignore_index=True)
    assert alone.equals(cells)


def total(rows: pd.DataFrame, persons: np.ndarray | None = None) -> np.ndarray:
    chunks = list(encoded_chunks(grid_rows(rows, SCHEMA), grid_schema(SCHEMA), persons))
    return exact_sum(bounds_query(SCHEMA), lambda: chunks).total


@pytest.mark.parametrize("seed", range(20))
def test_neighbors_differ_by_the_sensitivity_at_most(seed: int) -> None:
    rows, query = typed(raw(40, seed)), bounds_query(SCHEMA)
    step, whole = 4**query.lattice_bits, total(rows)
    removed = whole - total(rows.iloc[1:])
    other = pd.concat([typed(raw(1, 999 + seed)), rows.iloc[1:]], ignore_index=True)
    assert (removed**2).sum() == query.sensitivity_squared(Adjacency.ADD_REMOVE_ONE) == 3 * step
    assert ((whole - total(other)) ** 2).sum() <= query.sensitivity_squared(Adjacency.REPLACE_ONE) == 6 * step
    alike = pd.concat([rows.iloc[[0]]] * 3 + [rows.iloc[1:]], ignore_index=True)
    person = total(alike) - total(rows.iloc[1:])
    assert (person**2).sum() == query.sensitivity_squared(Adjacency.ADD_REMOVE_ONE, PrivacyUnit("p", 3)) == 27 * step


@pytest.mark.parametrize(
    ("counts", "noise", "cells"),
    [
        ([0, 0, 5, 0, 7, 0], 0.0, (2, 4)),
        ([0, 3, 100, 50, 3, -5, 9, 0], 5.0, (2, 3)),
        ([0, 90, 0, 0, 100, -9], 5.0, (1, 4)),
        ([12, -9, -9, -9, 100, 40], 5.0, (4, 5)),
        ([7], 1.0, (0, 0)),
    ],
)
def test_records_lie_in_the_consecutive_cells_with_the_largest_sum(
    counts: list[float], noise: float, cells: tuple[int, int]
) -> None:
    assert _occupied_cells(np.array(counts, float), noise) == cells


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    small_folder(tmp_path / "run", monkeypatch, "people.csv", raw(), {**SCHEMA.to_dict(), "columns": COLUMNS})
    small_settings("people.csv", "people", "one person", 1, ingest__unit=None)
    return tmp_path / "run"


def test_a_run_with_private_bounds(project: Path) -> None:
    told = Report((), (), forecast(Project.load(), 900)).text()
    assert "bounds of 'age', 'money', 'born': private. Their histograms cost 5% of rho" in told
    typed_once = None
    for name in STAGES:
        stage(name)
        if name == "ingest":
            typed_once = ProjectPaths.table.read_bytes()
    assert ProjectPaths.table.read_bytes() == typed_once
    schema, written = Project.load().schema, Project.load().written_schema
    lower, upper = schema.column("age").bounds
    assert 0 <= lower <= 20 and 50 <= upper <= 999 and not schema.unbounded_columns and written.unbounded_columns
    assert [schema.column("born").type.text(end)[4:] for end in schema.column("born").bounds] == ["-01-01", "-12-31"]
    privacy, text = read_json(ProjectPaths.privacy), ProjectPaths.statement.read_text()
    assert privacy["private_bounds"] == ["age", "money", "born"] and "bounds but those above" in text
    assert privacy["queries"][0]["query"] == BOUNDS and privacy["queries"][0]["sensitivity"] == 3**0.5
    rows = pd.read_csv("data/synthetic/synthetic.csv")
    assert rows["age"].dropna().between(lower, upper).all()
    assert new_releases(Project.load(), None)  # without rows all are new
    write_bundle(Project.load(), account(Project.load()), Path("bundle"))
    assert {check.name for check in verify(Path("bundle")) if check.passed is not True} == {"training"}

    # Other counts give other bounds, and then nothing else in the bundle is true.
    path = Path("bundle/released/bounds.safetensors")
    released = load_released(path)
    lattice = released.lattice.copy()
    lattice[0, 0] += 10**6 << released.receipt.lattice_bits
    path.write_bytes(to_bytes(Released(lattice, released.receipt)))
    assert {"checksums", "ledger entries"} <= {check.name for check in verify(Path("bundle")) if check.passed is False}
    path.unlink()
    assert False in {check.passed for check in verify(Path("bundle"))}


def test_answers_to_another_schema_are_refused(project: Path) -> None:
    for name in STAGES[:3]:
        stage(name)
    released = load_released(ProjectPaths.categories / f"{BOUNDS}.safetensors")
    bounded = complete_schema(SCHEMA, [released])
    assert not bounded.unbounded_columns
    for schema, answers in ((SCHEMA, []), (SCHEMA, [released, released]), (bounded, [released])):
        with pytest.raises(ArtifactError, match="does not answer this schema"):
            complete_schema(schema, answers)


def test_a_frame_needs_no_schema() -> None:
    Ledger.create(locate())
    rows = raw(1500).assign(city=np.random.default_rng(1).choice(["Bern", "Oslo"], 1500), lost=None)
    rows.loc[:50, "money"] = np.nan
    made = Synthesizer(population="people", settings={"train": {"iterations": 5, "num_components": 5}})
    made.fit(rows.drop(columns=["lost"]))
    assert made.schema is None and made.schema_.column("city").categories == ("Bern", "Oslo", "other")
    assert list(made.sample(20).columns) == [*COLUMNS, "city"]
    with pytest.raises(SchemaError, match=r"label 'sex': its classes must be public.*\n.*\n.*\nschema.make_private"):
        Synthesizer(population="people", label="sex").fit(rows)


def test_a_draft_takes_the_word_for_bounds() -> None:
    draft = SchemaDraft({"age": "integer", "job": "categorical", "sick": "categorical", "ok": "boolean"})
    draft.source, draft.label = "survey", "sick"
    draft.make_private()
    assert draft["age"].bounds == "private" and draft.missing() == {
        'schema["sick"].categories': draft.missing()['schema["sick"].categories']
    }
    draft["age"].bounds = (0, 120)
    draft["sick"].categories = ["no", "yes"]
    assert draft.complete().column("age").bounds == (0, 120)
    draft["age"].bounds = "private"
    assert draft.complete().column("age").unbounded and 'schema["age"].bounds = "private"' in repr(draft)
