"""``likeness check``: every fault at once, a forecast from public settings alone, and a verdict by a stated rule."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from likeness.cli.app import app
from likeness.config.load import load_params
from likeness.config.params import Params
from likeness.core.errors import ParamsError
from likeness.core.paths import ProjectPaths
from likeness.data.schema.kinds import KINDS
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods import METHODS
from likeness.pipeline.project import Project
from likeness.preflight.faults import examine, schema_faults
from likeness.preflight.forecast import MOST_NOISE, RULE, forecast
from likeness.privacy.adjacency import Adjacency

ROOT = Path(__file__).resolve().parents[2]
MARKER = "Xq7Secret"
GOOD: dict[str, Any] = {
    "name": "own",
    "source": "made up",
    "task": "classification",
    "label": "sick",
    "columns": {
        "id": {"kind": "drop", "reason": "an id"},
        "age": {"kind": "integer", "lower": 0, "upper": 99},
        "born": {"kind": "date", "lower": "1900-01-01", "upper": "2020-12-31", "nullable": True},
        "town": {"kind": "categorical", "categories": [f"t{place}" for place in range(40)]},
        "sick": {"kind": "boolean"},
    },
}

SPLIT = {"source": "own.csv", "schema": "own.yaml", "split": {"column": "part"}}


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose table has a header, and below it bytes that are no rows."""
    (tmp_path / "own.csv").write_bytes(f"id,age,born,town,sick,extra\n{MARKER}".encode() + b"\xff\xfe" * 100_000)
    write(tmp_path, GOOD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, schema: Any, **changes: Any) -> None:
    """Schema and settings; changed keys with two underscores for a dot."""
    (folder / "own.yaml").write_text(schema if isinstance(schema, str) else yaml.safe_dump(schema, sort_keys=False))
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["ingest"] = {"source": "own.csv", "schema": "own.yaml"}
    for key, value in changes.items():
        section, _, name = key.rpartition("__")
        (content[section] if section else content)[name] = value
    (folder / "params.yaml").write_text(yaml.safe_dump(content, sort_keys=False))


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["check", *arguments], catch_exceptions=False)
    assert MARKER not in result.output
    return result.exit_code, result.output


def test_rules_that_contradict_each_other_or_the_schema_are_faults(clone: Path) -> None:
    one = {"if": {"age": "< 15"}, "then": {"sick": "no"}}
    write(clone, {**GOOD, "rules": [one, {"never": {"age": "< 10", "sick": "no"}}]})
    code, output = run()
    text = " ".join(output.split())
    assert code == 1 and "rule 1 ({if: {age: < 15}, then: {sick: no}})" in text.replace("'no'", "no")
    assert "contradict each other: together they leave no value of 'sick'" in text
    assert schema_faults({**GOOD, "rules": [{"if": {"agee": 1}, "then": {"sick": "no"}}]}) == [
        "rule 1: 'agee' is not a column. Did you mean age? Columns: age, born, town, sick."
    ]


def test_all_faults_are_told_at_once_column_by_column(clone: Path) -> None:
    columns = {
        "age": {"kind": "integer", "lower": None, "upper": None, "nullable": None},
        "born": {"kind": "date", "lower": "soon", "upper": "2020-12-31", "nullable": 3},
        "town": {"kind": "categorical", "categories": None},
        "sick": {"kind": "bool"},
        "note": {"kind": "drop", "reason": None},
        "size": {"kind": "numeric", "lower": 3, "upper": None},
        "gone": {"kind": "numeric", "lower": 2, "upper": 1, "transform": "sqrt"},
    }
    write(
        clone, {**GOOD, "source": None, "colour": 1, "columns": columns}, privacy__population=None, sample={"rows": 0}
    )
    code, output = run()
    assert code == 1
    for words in ("privacy.population is an open question", "sample.rows must be auto or a whole number from 1, got 0"):
        assert words in output
    openly = "Answer from public knowledge, never from the rows."
    faults = schema_faults({**GOOD, "source": None, "colour": 1, "columns": columns})
    assert faults == [
        "colour is not a key of a schema. Keys: name, source, task, label, image, columns, rules, derived.",
        "source is an open question: where bounds and categories come from.",
        f"column 'age': lower, upper and nullable are open questions. {openly}",
        "column 'born': lower must be a date like 1994-03-01.",
        "column 'born': nullable must be true or false.",
        f"column 'town': categories is an open question. {openly}",
        f"column 'sick' has kind 'bool'. Did you mean boolean? Kinds: {', '.join(KINDS)}, drop.",
        f"column 'note': reason is an open question. {openly}",
        f"column 'size': upper is an open question. {openly}",
        "column 'gone' has transform 'sqrt'. Transforms: none, log1p.",
        "column 'gone' has bounds 2 to 1. They must be finite, lower below upper.",
    ]


def test_schema_source_and_settings_are_examined_together(clone: Path) -> None:
    columns = {**GOOD["columns"], "height": {"kind": "numeric", "lower": None, "upper": 1}, "town": {"kind": "date"}}
    write(clone, {**GOOD, "columns": columns}, ingest=SPLIT)
    code, output = run("--json")
    report = json.loads(output)
    assert code == 1 and report["forecast"] is None and not report["passed"]
    assert [(fault["file"], fault["text"].partition(".")[0]) for fault in report["faults"]] == [
        ("own.yaml", "column 'town' has no bounds"),
        ("own.yaml", "column 'height': lower is an open question"),
        ("own.csv", "column 'height' of the schema is not in the header"),
        ("params.yaml", "ingest"),
    ]
    # A column is missing, so nobody knows whether the first line is a header: it is counted, not quoted.
    past = "not read, because the schema does not name them"
    assert report["notes"][0] == f"{past}: 1 of 6 columns of the first line"
    del columns["height"]
    write(clone, {**GOOD, "columns": columns})
    assert json.loads(run("--json")[1])["notes"][0] == f"{past}: extra"


@pytest.mark.parametrize("first", [f"{MARKER},52,HIV positive", f"{MARKER},town,52", MARKER])
def test_a_first_row_in_place_of_a_header_is_not_quoted(clone: Path, first: str) -> None:
    (clone / "own.csv").write_text(f"{first}\nBert,40,none\n")
    for schema in (GOOD, {**GOOD, "columns": None}, {**GOOD, "columns": {"id": GOOD["columns"]["id"]}}):
        write(clone, schema)
        for words in ((), ("--json",)):
            code, output = run(*words)  # which looks for the marker
            assert code == 1 and "HIV" not in output and "Traceback" not in output and "first line" in output


def test_what_a_later_stage_would_stop_at_is_told_with_all_else(clone: Path) -> None:
    """After training, sampling and evaluating, the budget would be spent."""
    later = {"sample__where": {"age": "old", "sick": "maybe", "town": "t1"}, "evaluate__classifiers": ["lda", "oracle"]}
    for used, other in [case for case in (("pearl", None), ("marginals", "gone")) if case[0] in METHODS]:
        columns = {**GOOD["columns"], **({} if other is None else {other: GOOD["columns"]["age"]})}
        write(clone, {**GOOD, "columns": columns}, **later, marginals__bogus=1, method=used)
        code, output = run()
        assert code == 1
        told = [line.strip() for line in output.splitlines() if line.startswith("  params.yaml: ")]
        where = {
            "pearl": [f"sample.where.{name}: method pearl can draw rows of a class only" for name in ("age", "town")],
            "marginals": ["sample.where.age must be a number"],
        }[used]
        where.insert(1, "sample.where.sick must be one of false")
        assert [words.partition(",")[0] for words in told if "bogus" not in words] == [
            *(f"params.yaml: {words}" for words in where),
            "params.yaml: evaluate.classifiers: 'oracle' is not an estimator. Give some of: logistic_regression",
        ]
        # With faults of the schema, and of the section of the method in use: that of another one is not read.
        bogus = "params.yaml: marginals.bogus is not a setting" in output
        assert (bogus, "column 'gone' of the schema is not in the header" in output) == (used == "marginals",) * 2
    write(clone, GOOD, train__device="gpu")
    assert "params.yaml: train.device must be one of auto, cpu, cuda, mps, got 'gpu'" in run()[1]
    write(clone, {**GOOD, "label": None, "task": "none"}, **{**later, "sample__where": {}})
    assert not [fault for fault in examine().faults] and run()[0] == 0  # nobody is asked to classify


def test_what_is_asked_of_a_column_with_private_categories_is_left_to_the_stage(clone: Path) -> None:
    town = {"kind": "categorical", "categories": "private", "other": "other"}
    write(clone, {**GOOD, "columns": {**GOOD["columns"], "town": town}}, sample__where={"town": "t1"})
    assert run()[0] == 0


LACKS_CUDA = "train.device is cuda, which this machine does not have"


@pytest.mark.long
def test_the_plan_stage_refuses_it_too(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from likeness.stages import plan

    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for changes, words in (
        ({"sample__where": {"age": [3, "9..7"]}}, "sample.where.age: the range 9..7 ends before it begins"),
        ({"evaluate__classifiers": ["oracle"]}, "evaluate.classifiers: 'oracle'"),
        *([({"method": "merf", "train__device": "cuda"}, LACKS_CUDA)] if "merf" in METHODS else []),
    ):
        write(clone, GOOD, **changes)
        with pytest.raises(ParamsError, match=words):
            plan.main(Project.load())
    assert not ProjectPaths(clone).plan.exists()
    write(clone, GOOD)
    plan.main(Project.load())
    assert ProjectPaths(clone).plan.exists()


@pytest.mark.skipif("merf" not in METHODS, reason="no method that is here trains a network")
def test_a_device_that_the_machine_lacks_is_a_fault(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    words = f"{LACKS_CUDA}. Use auto."
    write(clone, GOOD, method="merf", train__device="cuda")
    code, output = run()
    assert code == 1 and words in " ".join(output.split())
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert words not in run()[1]


def test_a_ledger_that_was_never_started_is_told_before_the_run(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, output = run()
    assert code == 0 and "note: there is no ledger at" in output and "likeness ledger init" in output
    assert not (clone / "ledger").exists()
    Ledger.create(locate())
    assert "no ledger" not in run()[1]
    monkeypatch.setenv("LIKENESS_ANCHOR", str(clone / "ledger/anchor"))
    assert any("must not lie inside each other" in fault.text for fault in examine().faults)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        (
            {"privacy__adjacency": "replace_one", "privacy__num_records": 50},
            "accounted under add_remove_one. A release under replace_one cannot be composed with the earlier ones. Set "
            "privacy.adjacency in params.yaml: add_remove_one.",
        ),
        (
            {"ingest__unit": {"column": "id", "max_rows": 4}, "privacy__unit": "one patient"},
            "accounted with a row as the unit of privacy",
        ),
        ({"ledger__cap": {"epsilon": 3.0, "delta": 1e-5}}, "ledger.cap in params.yaml is (epsilon 3, delta 1e-05)"),
        ({"privacy__population": "others", "ledger__cap": {"epsilon": 3.0, "delta": 1e-5}}, None),
    ],
    ids=["same", "adjacency", "unit", "cap", "others"],
)
def test_terms_that_the_ledger_will_refuse_are_told_before_the_run(
    clone: Path, changes: dict[str, Any], words: str | None
) -> None:
    ledger, own = Ledger.create(locate()), load_params()
    ledger.declare_population(own.privacy.population, Adjacency.ADD_REMOVE_ONE, 10.0, 1e-5)
    write(clone, GOOD, **changes)
    faults = [fault.text for fault in examine().faults]
    assert [words in fault for fault in faults] == [True] if words else not faults
    assert len(ledger.records()) == 2  # nothing was put on record


@pytest.mark.long
@pytest.mark.parametrize("started", [False, True], ids=["no ledger", "ledger"])
def test_a_run_that_no_cap_has_room_for_is_told(clone: Path, started: bool) -> None:
    ledger = Ledger.create(locate()) if started else None
    for epsilon, cap, refused in ((1.0, 10.0, False), (10.0, 10.0, False), (10.1, 10.0, True)):
        write(clone, GOOD, privacy__epsilon=epsilon, ledger__cap={"epsilon": cap, "delta": 1e-5})
        code, output = run()
        words = "note: unless these rows are on record with these settings, a run is refused: over budget for"
        assert (words in output) is refused and code == 0
    if ledger is not None:
        ledger.declare_population(load_params().privacy.population, Adjacency.ADD_REMOVE_ONE, 10.0, 1e-5)
        assert words in run()[1] and len(ledger.records()) == 2
    assert (clone / "ledger").exists() is started


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"label": "age"}, "label 'age' is integer, but task classification"),
        ({"label": "id"}, "label 'id' has kind drop"),
        ({"task": "guess"}, "task 'guess' is not a task"),
        ({"columns": None}, "columns is missing"),
    ],
)
def test_rules_that_span_columns(clone: Path, change: dict[str, Any], words: str) -> None:
    assert any(words in fault for fault in schema_faults({**GOOD, **change}))
    # Also where another column is still open.
    if change.get("columns", True):
        other = {**GOOD["columns"], "height": {"kind": "numeric", "lower": None, "upper": None}}
        faults = schema_faults({**GOOD, "columns": other, **change})
        assert len(faults) == 2 and words in faults[1]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("own.yaml", "name: [", ["is not valid YAML"]),
        ("own.yaml", "- 1\n", ["must hold a mapping"]),
        ("own.yaml", "", ["must hold a mapping"]),
        ("params.yaml", "a: [", ["params.yaml", "The forecast follows"]),
        ("params.yaml", "[]", ["params.yaml", "The forecast follows"]),
    ],
)
def test_a_schema_or_settings_that_are_none(clone: Path, name: str, text: str, words: list[str]) -> None:
    (clone / name).write_text(text)
    code, output = run()
    assert code == 1 and all(word in output for word in words)


def test_a_plan_that_cannot_be_is_a_fault(clone: Path) -> None:
    write(clone, GOOD, privacy__num_records=100)
    code, output = run()
    assert code == 1 and "privacy.num_records must be null with privacy.adjacency: add_remove_one" in output


def test_the_verdict_follows_the_rule_and_nothing_is_opened_or_written(clone: Path) -> None:
    """Below the header are no rows."""
    before = sorted(path.name for path in clone.rglob("*"))
    code, output = run()
    assert code == 0 and RULE in output and "not given (--rows)" in output
    assert "note: not read, because the schema does not name them: extra" in output
    _, text = run("--json")
    needed = json.loads(text)["forecast"]["records"]
    code, output = run("--rows", str(needed))
    assert code == 0 and f"IN PART: {needed:,} records; the rule for single columns needs {needed:,}. A" in output
    code, output = run("--rows", str(needed - 1))
    assert code == 1 and f"NOT ENOUGH: {needed - 1:,} records; the rule for single columns needs {needed:,}" in output
    code, output = run("--rows", "1000000")
    assert code == 1 and "NOT ENOUGH: delta 1e-05 against 1 / records, 1e-06. A delta of 1 / records" in output
    assert sorted(path.name for path in clone.rglob("*")) == before


@pytest.mark.long
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("name", sorted(set(METHODS) - {"merf_ae", "moments"}))  # which take images only
def test_every_method_is_foreseen_with_the_noise_of_its_plan(clone: Path, name: str, adjacency: Adjacency) -> None:
    """Sigma by query as the door computes it; and a query for every planned one, so that none is forgotten."""
    number = 5_000 if adjacency is Adjacency.REPLACE_ONE else None
    write(clone, GOOD, method=name, privacy__adjacency=str(adjacency), privacy__num_records=number)
    params = load_params()
    found = forecast(Project(Path(), params), 5_000)
    plan, facts = Project(Path(), params).plan, Project(Path(), params).context
    assert [query.query for query in found.queries] == [query.query for query in plan.queries]
    for query, asked in zip(found.queries, Project(Path(), params).method.planned_queries(facts), strict=True):
        scale = math.sqrt(asked.sensitivity_squared(adjacency)) * plan.query(query.query).noise_multiplier
        assert query.sigma == pytest.approx(scale / 2**asked.lattice_bits, rel=1e-12)
        assert query.coordinates == asked.dimension
    assert found.rows == 5_000 and found.memory_bytes > 0 and found.records > 1


@pytest.mark.long
def test_several_rows_a_person_are_asked_about_and_their_cost_is_told(clone: Path) -> None:
    write(clone, GOOD)
    one = forecast(Project.load(), 5_000)
    people = {"ingest__unit": {"column": "id", "max_rows": 4}, "privacy__unit": "one patient"}
    write(clone, GOOD, **people)
    four = forecast(Project.load(), 5_000)
    assert [query.sigma for query in four.queries] == pytest.approx([4 * query.sigma for query in one.queries])
    assert four.records == pytest.approx(4 * one.records, abs=4) and four.rho == one.rho
    assert "up to 4 rows of a person: noise is 4 times as wide" in run()[1]
    people["ingest__unit"]["max_rows"] = None
    write(clone, GOOD, **people)
    assert "params.yaml: ingest.unit.max_rows is an open question: the most rows of one person" in run()[1]
    write(clone, GOOD, ingest__unit={"column": "town", "max_rows": 4}, privacy__unit="one town")
    assert "own.yaml: column 'town' names people (ingest.unit) and is never released" in run()[1]
    write(clone, GOOD, ingest__unit={"column": "pid", "max_rows": 4}, privacy__unit="one patient")
    code, output = run()
    assert code == 1 and "ingest.unit.column 'pid' is not in the header of own.csv" in output
    write(clone, GOOD, ingest__format={"separator": ";"})
    assert "1 to put right:\n  own.csv: its first line is one column" in run()[1]


def test_a_constant_column_is_allowed_and_its_cost_is_told(clone: Path) -> None:
    town = {"kind": "categorical", "categories": ["=t1"]}
    write(clone, {**GOOD, "columns": {**GOOD["columns"], "town": town}})
    code, output = run()
    assert (
        code == 0
        and "note: one category only, which costs noise and holds no information; kind drop is cheaper: town" in output
        and "note: the CSV escapes categories that a spreadsheet would run: '=t1' of town" in output
    )
    with_it = forecast(Project.load()).queries[-1].sigma
    write(clone, {**GOOD, "columns": {**GOOD["columns"], "town": {"kind": "drop", "reason": "one value"}}})
    assert forecast(Project.load()).queries[-1].sigma < with_it


def marginals(clone: Path, **changes: Any) -> Params:
    write(clone, GOOD, **changes)
    return load_params()


def test_the_hardest_column_decides_how_many_records_are_enough(clone: Path) -> None:
    found = forecast(Project(Path(), marginals(clone)), 10_000)
    counts, *_, embedding = found.queries
    columns = next(query for query in found.queries if query.query == "columns")
    assert counts.measures[0].error == pytest.approx(counts.sigma / 10_000)
    (town,) = columns.measures
    assert "'town'" in town.of and town.noise == columns.sigma and town.average == 1 / 40
    assert town.records == math.ceil(town.noise / (MOST_NOISE * town.average)) == found.records
    assert all(measure.records is None for measure in embedding.measures)


def test_a_named_table_is_foreseen_by_itself_and_leaves_the_pairs_their_rest(clone: Path) -> None:
    alone = forecast(Project(Path(), marginals(clone)), 10_000).queries[-1]
    params = marginals(clone)
    sections = json.loads(json.dumps(params.sections))
    sections["marginals"]["privatize"] |= {"workload": [{"columns": ["town", "age", "born"]}]}
    embedding = forecast(Project(Path(), dataclasses.replace(params, sections=sections)), 10_000).queries[-1]
    pair, table, single = embedding.measures
    # Three pairs have three quarters of all squares, the table one.
    assert pair.noise == pytest.approx(alone.measures[0].noise / 0.75**0.5, rel=1e-3)
    assert "named table" in table.of and table.average == pytest.approx(1 / (2 * 16 * 17 * 40))
    assert single.noise == pytest.approx(alone.measures[1].noise / 0.75**0.5, rel=1e-2)


def test_more_epsilon_and_fewer_categories_need_fewer_records(clone: Path) -> None:
    first = forecast(Project(Path(), marginals(clone))).records
    assert forecast(Project(Path(), marginals(clone, privacy__epsilon=4.0))).records < first / 2
    write(clone, {**GOOD, "columns": {**GOOD["columns"], "town": {"kind": "boolean"}}})
    assert forecast(Project.load()).records < first / 1.5
    assert forecast(Project(Path(), marginals(clone, privacy__epsilon=float("inf")))).records == 1


@pytest.mark.long
def test_the_shipped_project_passes_for_adult(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert examine().faults == ()
    code, output = run("--rows", "32561")
    assert code == 0 and "embedding: " in output


def test_categories_that_no_cell_of_the_source_can_be_are_told(clone: Path) -> None:
    kinds = {
        "x": (pa.float64(), ["1", "2.0", "2.5", "rest"]),
        "n": (pa.int32(), ["7", "07", "x"]),
        "b": (pa.bool_(), ["True", "no"]),
        "d": (pa.date32(), ["2024-12-31", "31.12.2024"]),
        "m": (pa.decimal128(6, 2), ["1.50", "1.5"]),
        "w": (pa.dictionary(pa.int8(), pa.string()), ["2.0", "07"]),
    }
    names = list(kinds)
    pq.write_table(pa.schema([(name, kind) for name, (kind, _) in kinds.items()]).empty_table(), clone / "own.parquet")
    columns: dict[str, Any] = {name: {"kind": "categorical", "categories": kinds[name][1]} for name in names}
    columns["x"]["other"] = "rest"
    schema = {"name": "own", "source": "made up", "task": "none", "columns": columns}
    write(clone, schema, ingest={"source": "own.parquet", "schema": "own.yaml"})
    wrong = ["'x': no cell of type double gives '2.0'", "'n': no cell of type int32 gives '07', 'x'"]
    wrong += ["'b': no cell of type bool gives 'no'", "'d': no cell of type date32[day] gives '31.12.2024'"]
    wrong += ["'m': no cell of type decimal128(6, 2) gives '1.50'"]
    texts = [fault.text for fault in examine(clone).faults if "no cell of type" in fault.text]
    assert [text.partition(", so the source")[0].removeprefix("column ") for text in texts] == wrong
