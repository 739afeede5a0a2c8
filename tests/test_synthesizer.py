"""The Python API: conventions of scikit-learn, the ledger's rules, and the typing rules of a source file."""

import copy
import gc
import json
import math
import pickle
import subprocess
import sys
import traceback
import types
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
import yaml
from sklearn.base import clone
from sklearn.pipeline import Pipeline

import likeness
from likeness import Schema, Synthesizer
from likeness.bundle.files import sums
from likeness.config.params import LedgerSettings
from likeness.core.artifacts import Artifacts
from likeness.core.errors import (
    BudgetError,
    DataError,
    LikenessError,
    NotFittedError,
    ParamsError,
    ReleaseError,
    SchemaError,
)
from likeness.core.paths import ProjectPaths
from likeness.data.schema.column_keys import NAMES_PERSON
from likeness.data.source.files import read_frame, read_source
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.synthesizer.published import Published

pytestmark = pytest.mark.long

MARKER = "8675309"  # stands for a private value: it must never be in a message
SCHEMA = {
    "name": "toy",
    "source": "made up",
    "task": "classification",
    "label": "y",
    "columns": {
        "a": {"kind": "numeric", "lower": 0, "upper": 1},
        "b": {"kind": "integer", "lower": 0, "upper": 9, "nullable": True},
        "n": {"kind": "integer", "lower": 0, "upper": 9},
        "c": {"kind": "categorical", "categories": ["u", "v", "w"]},
        "o": {"kind": "categorical", "categories": [1, 2, 3], "ordered": True, "nullable": True},
        "y": {"kind": "categorical", "categories": ["No", "Yes"]},
    },
}
FAST = {"privatize": {"bins": 4}, "train": {"iterations": 10, "num_components": 5}}


def rows(count: int = 400) -> pd.DataFrame:
    """A table as people have it: plain objects, floats because of nulls, one column too many."""
    generator = np.random.default_rng(0)
    label = generator.integers(0, 2, count)
    return pd.DataFrame(
        {
            "extra": "not in the schema",
            "a": generator.random(count),
            "b": pd.Series(generator.integers(0, 10, count)).where(generator.random(count) < 0.8),
            "n": generator.integers(0, 10, count),
            "c": np.array(["u", "v", "w"])[np.minimum(2, label + generator.integers(0, 2, count))],
            "o": pd.Series(generator.integers(1, 4, count)).where(generator.random(count) < 0.9),
            "y": np.where(label == 1, "Yes", "No"),
        },
        index=generator.permutation(count),
    )


def small(**changes: Any) -> Synthesizer:
    given = {"schema": SCHEMA, "population": "toy people", "settings": FAST, "device": "cpu"}
    return Synthesizer(**{**given, **changes})


@pytest.fixture
def ledger() -> Ledger:
    return Ledger.create(locate())


def count() -> int:
    return Ledger.open(locate()).head().count


NUMBER = 0.7318530717958648  # stands for a private value, too


def holds_cells(start: object) -> list[object]:
    """Every object that is reachable from another and holds a marked cell, or a frame of rows."""
    found, seen, waiting = [], {id(start)}, [start]
    while waiting:
        item = waiting.pop()
        if isinstance(item, np.ndarray):
            texts = str(item.tolist()).encode() if item.dtype == "object" else item.tobytes()
        else:
            texts = item.encode() if isinstance(item, str) else item if isinstance(item, bytes) else b""
        if (
            MARKER.encode() in texts
            or np.float64(NUMBER).tobytes() in texts
            or (type(item) is float and item == NUMBER)
        ):
            found.append(item)
        if isinstance(item, pd.DataFrame | pd.Series | pa.Table | pa.RecordBatch | pa.ChunkedArray | pa.Buffer):
            found.append(item)
        new = [other for other in gc.get_referents(item) if id(other) not in seen]
        new = [other for other in new if not isinstance(other, types.ModuleType | types.FunctionType)]
        seen.update(map(id, new))
        waiting += new
    return found


def test_no_row_is_left_after_a_fit_or_an_error(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell, a number and a name that nobody may see are in no object of the synthesizer, and in no error."""
    made: list[Artifacts] = []
    monkeypatch.setattr("likeness.synthesizer.published.Artifacts", lambda: made.append(Artifacts()) or made[-1])
    table = rows().assign(o="x", extra=[f"name {MARKER} {place}" for place in range(400)])
    table.iloc[7, table.columns.get_indexer(["a", "o"])] = NUMBER, f"cell {MARKER}"
    columns = {**SCHEMA["columns"], "o": {"kind": "categorical", "categories": "private", "other": "rest"}}
    given = {"schema": {**SCHEMA, "columns": columns}, "unit_column": "extra", "max_rows": 1}
    fitted = small(**given).fit(table)
    assert not holds_cells(fitted) and fitted._fitted.project.artifacts is made[0]
    fitted.sample(9)
    assert not holds_cells(fitted) and len(holds_cells([table])) > 1
    made[0][f"{ProjectPaths.plan}.old"] = b"which no stage names"
    with pytest.raises(FileNotFoundError), made[0].limited_to([ProjectPaths.plan]):
        assert [*(made[0].root / ProjectPaths.plan.parent).glob("*")] == [made[0].root / ProjectPaths.plan]
        (made[0].root / ProjectPaths.privacy).read_bytes()
    with pytest.raises(PermissionError), made[0].limited_to([ProjectPaths.plan]):
        (made[0].root / ProjectPaths.privacy).write_bytes(b"no output of the stage")
    (made[0].root / ProjectPaths.table).open("wb").write(b"rows")  # and nobody closes it
    assert str(ProjectPaths.table) not in made[0]
    for stage in ("preprocess", "train"):

        def fail(project: Any) -> None:
            list(project.frames)
            raise ValueError("a fault of the program")

        monkeypatch.setattr(f"likeness.stages.{stage}.main", fail)
        with pytest.raises(ValueError, match="fault") as error:
            small(**given, attempt=stage).fit(table)
        assert not any(str(ProjectPaths.private) in name for name in made[-1]) and not holds_cells([made[-1]])
        assert MARKER not in "".join(traceback.format_exception(error.value))


def test_fit_sample_and_what_it_cost(ledger: Ledger) -> None:
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    table = rows()
    fitted = small(threads=threads + 1).fit(table)
    assert torch.equal(torch.get_rng_state(), state) and torch.get_num_threads() == threads
    assert fitted.n_features_in_ == 6 and list(fitted.feature_names_in_) == ["a", "b", "n", "c", "o", "y"]
    synthetic = fitted.sample(500)
    assert synthetic.dtypes.equals(table.dtypes[synthetic.columns])
    assert synthetic["a"].between(0, 1).all() and len(synthetic) == 500
    assert fitted.sample(500).equals(synthetic) and not fitted.sample(500, seed=1).equals(synthetic)
    chosen = fitted.sample(50, where={"y": "Yes", "c": "w", "o": None})
    assert (chosen["y"] == "Yes").all() and (chosen["c"] == "w").all() and chosen["o"].isna().all()
    wholes: list[Any] = [[1], "x", 5, table["a"]]
    for whole in wholes:
        with pytest.raises(DataError, match=r"where: must be a mapping from columns to values, or a frame"):
            fitted.sample(1, where=whole)
    with pytest.raises(ParamsError, match="the frame has no column"):
        fitted.sample(where=pd.DataFrame(index=[0, 1]))
    counted = fitted.releases_["class_counts"].values.sum()
    assert len(fitted.sample()) == round(counted) and len(fitted.sample(where={"y": "No"})) == round(counted)
    privacy, budget = fitted.privacy, Ledger.open(locate()).budget("toy people")
    assert budget is not None and privacy["adjacency"] == "add_remove_one"
    assert privacy["total"]["epsilon"] == pytest.approx(1, abs=1e-6) and privacy["total"]["delta"] == 1e-5
    asked = ["class_counts", "columns", "finer_histograms", "histograms", "products", "second", "steps", "embedding"]
    assert [query["query"] for query in privacy["queries"]] == asked
    assert privacy["ledger"]["lifetime"]["spent_epsilon"] == budget.spent_epsilon == pytest.approx(1, abs=1e-6)
    assert (budget.cap_epsilon, budget.cap_delta) == (LedgerSettings().cap.epsilon, LedgerSettings().cap.delta)
    assert "ε = 1 at δ = 10⁻⁵" in fitted.statement and "toy people" in fitted.statement


def test_a_refit_is_the_stored_release_and_another_question_costs(ledger: Ledger) -> None:
    first = small().fit(rows())
    spent = count()
    again = clone(first).fit(rows())
    assert count() == spent and again.sample(99).equals(first.sample(99)) and again.privacy == first.privacy
    # Neither the training nor other columns, the index or the order of rows are part of the question.
    other = small(settings={**FAST, "train": {"iterations": 5, "num_components": 3}}, seed=3)
    other.fit(rows().drop(columns="extra").reset_index(drop=True))
    assert count() == spent and other.releases_["embedding"].receipt == first.releases_["embedding"].receipt
    small(attempt="2").fit(rows())
    assert count() == spent + 16  # eight reserved, eight committed
    shuffled = rows().sample(frac=1, random_state=1)
    assert small().fit(shuffled).releases_["embedding"].receipt == first.releases_["embedding"].receipt
    assert small().fit(shuffled).sample(99).equals(first.sample(99)) and count() == spent + 16
    small().fit(pd.concat([rows(), rows().iloc[:1]]))  # the same rows and one of them once more
    assert count() == spent + 32


def test_the_same_people_under_another_name_are_known_by_another_question_too(ledger: Ledger) -> None:
    small().fit(rows())
    table, columns = rows(), SCHEMA["columns"]
    for again, asked in (
        (table.sample(frac=1, random_state=1), columns),
        (table, dict(reversed(columns.items()))),
        (table, {**columns, "n": {"kind": "drop", "reason": "another question"}}),
        (table[table.columns[::-1]], {name: columns[name] for name in ("c", "a", "y")}),
        (table, {**columns, "b": {**columns["b"], "upper": 5}}),
    ):
        other = small(population="a new name", schema={**SCHEMA, "columns": asked})
        with pytest.raises(BudgetError, match="accounted under population 'toy people'"):
            other.fit(again)
    other.fit(table.assign(a=table["a"] / 2))  # other rows


def test_the_order_of_rows_is_theirs_under_replace_one(ledger: Ledger) -> None:
    """Pairs of rows are fixed by their places there."""
    fixed = {"adjacency": "replace_one", "num_records": 400}
    small(**fixed).fit(rows())
    spent = count()
    small(**fixed).fit(rows()[::-1])
    assert count() == spent + 16


def test_the_cap_is_kept_and_the_one_on_record_rules(ledger: Ledger) -> None:
    small(cap=(1.2, 1e-5)).fit(rows())
    spent = count()
    with pytest.raises(BudgetError, match="over budget for 'toy people'"):
        small(attempt="2").fit(rows())  # no cap asked for: the one on record
    with pytest.raises(BudgetError, match="the ledger counts"):
        small(cap=(9.0, 1e-5), attempt="2").fit(rows())
    with pytest.raises(BudgetError, match="accounted under population 'toy people'"):
        small(population="a new name").fit(rows())
    assert Ledger.open(locate()).budget("toy people").spent_epsilon == pytest.approx(1, abs=1e-6)  # type: ignore[union-attr]
    assert count() == spent  # not even the new name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"population": None}, r"synthesizer\.population = \?"),
        ({"method": "gan"}, "method must be one of"),
        ({"epsilon": -1}, "privacy.epsilon must be greater than 0"),
        ({"epsilon": "much"}, "privacy.epsilon must be a number"),
        ({"cap": (1.0,)}, "cap must be a pair"),
        ({"device": "abacus"}, "train.device must be one of"),
        ({"settings": {"trane": {}}}, "marginals.trane is not a setting"),
        ({"adjacency": "replace_one"}, "num_records is missing"),
        ({"adjacency": "replace_one", "num_records": 399}, "the training table has 400 rows"),
        ({"settings": {"privatize": {"max_coordinates": 5}}}, "would release"),
        (
            {"schema": {**SCHEMA, "columns": {**SCHEMA["columns"], "who": {"kind": "drop", "reason": NAMES_PERSON}}}},
            "column 'who' names the person.* Give unit_column='who' and max_rows",
        ),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_spent(
    ledger: Ledger, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(LikenessError, match=message):
        small(**change).fit(rows())
    assert not [record for record in Ledger.open(locate()).records() if record.kind == "reserve"]


def test_no_ledger_no_fit() -> None:
    with pytest.raises(LikenessError, match="likeness ledger init"):
        small().fit(rows())


def test_a_first_fit_is_refused_once_with_all_that_it_lacks(tmp_path: Path) -> None:
    table = rows().assign(id=MARKER)
    draft = likeness.draft(table)
    draft.person = "id"
    first = Synthesizer(schema=draft, epsilon=-1, ledger_home=str(tmp_path / "home"), settings=FAST)
    with pytest.raises(ParamsError, match="epsilon must be greater than 0") as caught:
        first.fit(table.drop(columns=["a", "n"]))
    assert "the DataFrame: columns 'a', 'n' are missing" in str(caught.value) and MARKER not in str(caught.value)
    lines = str(caught.value).split("run these lines first:\n")[1]
    answers = {
        "synthesizer.population": "'toy people'",
        "synthesizer.max_rows": "400",
        "schema.source": "'made up'",
        "schema.nullable": "['b', 'o']",
        'schema["extra"].categories': "['not in the schema']",
        'schema["a"].bounds': "(0, 1)",
        'schema["b"].bounds': "(0, 9)",
        'schema["n"].bounds': "(0, 9)",
        'schema["c"].categories': "['u', 'v', 'w']",
        'schema["o"].bounds': "(1, 3)",
        'schema["y"].categories': "['No', 'Yes']",
    }
    asked = [line.split(" = ?")[0].split("; ")[-1] for line in lines.splitlines() if "?  #" in line]
    assert sorted(asked) == sorted(answers) and "schema.label = None" in lines
    for answer in answers.values():  # in the order of the lines
        lines = lines.replace("?  #", f"{answer}  #", 1)
    exec(lines, {"schema": draft, "synthesizer": first})
    assert len(first.set_params(epsilon=1.0).fit(table).sample(30)) == 30
    assert Ledger.open(locate()).budget("toy people") is not None


def test_one_fault_keeps_its_kind(ledger: Ledger) -> None:
    with pytest.raises(SchemaError, match=r"'a' has no bounds[^\0]*'c' has no categories"):
        small(schema={**SCHEMA, "columns": {"a": {"kind": "numeric"}, "c": {"kind": "categorical"}}}).fit(rows())
    with pytest.raises(DataError, match="must be a frame"):
        small(schema=None).fit(rows().to_numpy())


def test_wrong_tables_are_refused_without_a_private_word(ledger: Ledger) -> None:
    table = rows()
    tables: list[tuple[Any, str]] = [
        (table.drop(columns="c"), "the DataFrame: column 'c' is missing"),
        (pd.concat([table, table[["c"]]], axis=1), "column 'c' occurs twice"),
        (table.assign(c=MARKER), "column 'c' has a value that is not among its public categories"),
        (table.assign(a=MARKER + "x"), "column 'a' has a value that is not a number"),
        (table.assign(n=np.where(table["n"] > 5, 0.5, 1)), "column 'n' has a value that is not whole"),
        (table.assign(n=table["b"]), "column 'n' has a missing value"),
        (table.assign(n=table["b"].astype("Int64")), "column 'n' has a missing value"),
        (table.assign(c=[MARKER, [MARKER]] * 200), "column 'c' holds cells that are not single values"),
        (table.iloc[:0], "has no training rows. Nothing was spent"),
        (table.to_numpy(), "must be a frame of pandas, polars or pyarrow, .* got numpy.ndarray"),
    ]
    for wrong, message in tables:
        with pytest.raises(DataError, match=message) as caught:
            small().fit(wrong)
        assert MARKER not in str(caught.value) and caught.value.__context__ is None
    with pytest.raises(ParamsError, match="y must be None"):
        small().fit(table, table["y"])
    assert count() == 1


def test_a_frame_is_typed_as_a_parquet_file_of_it(tmp_path: Path) -> None:
    schema, table = Schema.from_dict(SCHEMA, "toy.yaml"), rows()
    table["c"] = table["c"].astype("category")
    table.to_parquet(tmp_path / "toy.parquet", index=False)
    typed = read_frame(table, schema)
    pd.testing.assert_frame_equal(typed, read_source(tmp_path / "toy.parquet", schema)[0])
    pd.testing.assert_frame_equal(typed, read_frame(typed, schema))  # and what was typed stays as it is
    assert set(typed["o"].dropna()) == {"1", "2", "3"}


def test_conventions_of_scikit_learn(ledger: Ledger) -> None:
    own = small(epsilon=2.0)
    assert clone(own).get_params() == own.get_params() and own.get_params()["epsilon"] == 2.0
    assert own.set_params(epsilon=3.0).epsilon == 3.0
    with pytest.raises(ValueError, match="Invalid parameter"):
        own.set_params(epsilom=1)
    with pytest.raises(TypeError):
        Synthesizer("marginals")  # type: ignore[misc]
    for use in (lambda: own.sample(1), lambda: own.privacy, lambda: own.statement, lambda: own.save("nowhere")):
        with pytest.raises(NotFittedError):
            use()
    fitted = own.fit(rows())
    with pytest.raises(NotFittedError):
        clone(fitted).sample(1)
    for sent in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):  # noqa: S301
        assert sent.sample(9).equals(fitted.sample(9)) and sent.privacy == fitted.privacy
    assert repr(Synthesizer(epsilon=2.0)) == "Synthesizer(epsilon=2.0)"
    assert repr(Synthesizer(schema=likeness.draft(rows()))) == "Synthesizer(schema=<SchemaDraft>)"
    piped = Pipeline([("rows", fitted)])
    assert piped.get_params()["rows__epsilon"] == 3.0 and piped.fit(rows()) is piped  # the pipeline asks for tags


def test_save_and_load(ledger: Ledger, tmp_path: Path) -> None:
    fitted = small(epsilon=np.float64(2), cap=(5, 1e-5), ledger_home=str(tmp_path / "ledger")).fit(rows())
    fitted.save(tmp_path / "saved")
    with pytest.raises(LikenessError, match="exists"):
        fitted.save(tmp_path / "saved")
    loaded = Synthesizer.load(tmp_path / "saved")
    assert loaded.sample(99, seed=4).equals(fitted.sample(99, seed=4))
    assert (loaded.privacy, loaded.statement) == (fitted.privacy, fitted.statement)
    assert loaded.schema_ == fitted.schema_ and list(loaded.feature_names_in_) == list(fitted.feature_names_in_)
    changed = {"schema": loaded.schema_, "ledger_home": None}
    assert loaded.get_params() == {**fitted.get_params(), **changed}
    assert loaded.params().sections == fitted.params().sections
    text = "".join(path.read_text() for path in (tmp_path / "saved").iterdir() if path.is_file())
    assert str(tmp_path) not in text
    shares = fitted.estimate("c", by="y", sampling=True)
    assert loaded.estimate(["c"], by=["y"], sampling=True).equals(shares) and shares.loc[("u", "No"), "noise_error"] > 0
    relations, found = fitted.relations_, fitted.privacy["relations"]
    assert loaded.relations_.equals(relations) and len(relations) == math.comb(len(fitted.schema_.names), 2)
    kept = set(relations.index[relations.verdict == "kept"])
    assert {tuple(pair[:2]) for pair in found["kept"]} == kept and found["unknown"] == (
        relations.verdict == "unknown"
    ).sum()
    assert "## What a reader may believe" in fitted.statement
    pages = [one.report(60).html for one in (fitted, loaded)]
    assert all("60 rows" in page and "Every column" in page for page in pages) and "Training loss" in pages[0]
    assert (
        Published.read(tmp_path / "saved").tables(99, 4, {})["synthetic"].equals(loaded.sample(99, seed=4))
    )  # as `likeness sample` does
    spent = count()
    assert loaded.fit(rows()).sample(9).equals(fitted.sample(9)) and count() == spent
    released = tmp_path / "saved/released"
    (released / "embedding.safetensors").write_bytes((released / "class_counts.safetensors").read_bytes())
    (tmp_path / "saved/SHA256SUMS").write_text(sums(tmp_path / "saved"))
    with pytest.raises(ReleaseError, match="not those of privacy"):
        Synthesizer.load(tmp_path / "saved")
    (tmp_path / "saved/schema.yaml").write_text("a: &many [1]\nb: *many\n")
    (tmp_path / "saved/SHA256SUMS").write_text(sums(tmp_path / "saved"))
    with pytest.raises(LikenessError, match="repeats another value"):
        Synthesizer.load(tmp_path / "saved")
    with pytest.raises(LikenessError, match=r"no saved synthesizer.*Give the folder of save"):
        Synthesizer.load(tmp_path)


def test_without_noise_it_says_not_private(ledger: Ledger) -> None:
    fitted = small(epsilon=float("inf"), cap=(float("inf"), 1e-5)).fit(rows())
    assert fitted.privacy["private"] is False and "NOT PRIVATE" in fitted.statement
    assert "inf" in json.dumps(fitted.privacy) and fitted.privacy["outputs"] == {}


def test_defaults_are_those_of_the_shipped_settings() -> None:
    shipped = yaml.safe_load((Path(__file__).parents[1] / "params.yaml").read_text())
    own = Synthesizer().get_params()
    assert own["method"] == shipped["method"]
    for section, names in {
        "privacy": ("epsilon", "delta", "adjacency", "num_records", "unit"),
        "ledger": ("attempt",),
        "train": ("device", "seed", "threads", "precision"),
    }.items():
        for name in names:
            assert own[name] == shipped[section][name], name


@pytest.mark.process
def test_importing_likeness_is_quick_and_names_are_there() -> None:
    code = (
        "import sys, likeness\n"
        "heavy = {'torch', 'pandas', 'sklearn', 'numpy', 'yaml'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert {'Schema', 'Synthesizer'} <= set(dir(likeness))\n"
        "from likeness import Schema\n"
        "assert Schema.__module__ == 'likeness.data.schema.schema' and 'sklearn' not in sys.modules\n"
        "assert not hasattr(likeness, 'Nothing')\n"
        "import likeness.data.encoding.layout\n"
        "assert not {'pandas', 'pyarrow', 'torch'} & set(sys.modules), 'a schema needs no table'\n"
        "import likeness.report.pages\n"
        "assert not {'pandas', 'sklearn'} & set(sys.modules), 'a report needs no table'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_first_notebook() -> None:
    """From a frame to rows, as a newcomer writes it: no file, no command, no refusal.

    The noise in the number has a deviation of 30, and .09 is seven of the difference: false alarms below 1e-9.
    """
    random = np.random.default_rng(0)
    df = pd.DataFrame({"age": random.integers(18, 90, 2_000), "sex": random.choice(["female", "male"], 2_000)})
    df["income"] = df["age"] * 1_000 * random.random(2_000)
    df["smoker"] = random.random(2_000) < np.where(df["sex"] == "male", 0.4, 0.1)
    likeness.Ledger.start(if_absent=True)
    schema = likeness.draft(df)
    schema.source, schema.label, schema.nullable = "questionnaire of 2026", "smoker", "none"
    schema["age"].bounds = (18, 100)
    schema["income"].bounds = (0, 1_000_000)
    schema["income"].transform = "log1p"
    schema["sex"].categories = ["female", "male"]
    synthesizer = Synthesizer(schema=schema, population="survey 2026", epsilon=1).fit(df)
    synthetic = synthesizer.sample()
    assert 1_800 < len(synthetic) < 2_200 and list(synthetic.columns) == list(df.columns)
    share = synthetic.groupby("sex")["smoker"].mean()
    assert share["male"] - share["female"] > 0.2
    young = synthesizer.sample(where={"age": (18, 30), "sex": "male"})
    assert len(young) == len(synthetic) and young["age"].max() <= 30 and set(young["sex"]) == {"male"}
    beside = synthesizer.sample(where=df[["age", "sex"]].head(20))
    assert beside["age"].tolist() == df["age"].head(20).tolist()
    assert synthetic.dtypes.equals(df.dtypes) and beside.dtypes.equals(df.dtypes)


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("privacy.json", "{}", "does not know format None"),
        ("privacy.json", "[]", "does not hold a mapping"),
        ("synthesizer.json", '{"frame": 1}', "key 'frames' of format 0 is missing"),
        ("synthesizer.json", '{"frames": 1}', "was changed by hand"),
    ],
)
def test_a_file_of_another_form_is_named_when_rows_are_drawn(
    ledger: Ledger, tmp_path: Path, file: str, text: str, words: str
) -> None:
    small().fit(rows()).save(tmp_path / "saved")
    (tmp_path / "saved" / file).write_text(text)
    (tmp_path / "saved/SHA256SUMS").write_text(sums(tmp_path / "saved"))
    with pytest.raises(LikenessError, match=f"{file}:? .*{words}"):
        Published.read(tmp_path / "saved").tables(9, 0, {})


def test_what_a_disk_refuses_to_a_fit_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Mock(side_effect=PermissionError(13, "Permission denied", "anchor.json"))
    monkeypatch.setattr("likeness.synthesizer.published.fit", refused)
    with pytest.raises(LikenessError, match=r"anchor\.json cannot be read or written \(Permission denied\)"):
        Synthesizer().fit(None)
