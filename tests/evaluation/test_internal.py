import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pytest import LogCaptureFixture

from likeness.config.params import Evaluate
from likeness.data.schema.schema import Schema
from likeness.evaluation.classifiers import select
from likeness.evaluation.details import details, neighbors
from likeness.evaluation.utility import CLASSIFICATION_METRICS, metrics_of, sample_rows
from likeness.report import internal
from likeness.report.files import read_internal
from likeness.report.internal import FILES, Measures, evaluate
from likeness.report.pages import render_internal
from likeness.report.rows import internal_rows

pytestmark = pytest.mark.long

Tables = Callable[..., pd.DataFrame]
RULES = [{"never": {"color": "red", "size": "l"}}, {"if": {"visits": "> 0"}, "then": {"size": ["s", "m", "l"]}}]
QUICK = ("logistic_regression", "decision_tree")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, schema_of: Callable[[str], Schema], table_of: Tables) -> Path:
    """Results of one small evaluation; the tests only read them."""
    out = tmp_path_factory.mktemp("evaluation") / "internal"
    out.mkdir(mode=0o755)
    train, test, synthetic = table_of(2000, 1), table_of(2000, 2), table_of(2000, 3)
    schema = Schema.from_dict({**schema_of("classification").to_dict(), "rules": RULES}, "tiny.yaml")
    evaluate(train, test, synthetic, schema, Evaluate(), out, Measures(select("classification", QUICK)))
    return out


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_all_files_are_there_and_marked(written: Path) -> None:
    assert sorted(path.name for path in written.iterdir()) == sorted(FILES)
    assert written.stat().st_mode & 0o777 == 0o700  # also where it was there before
    metrics = json.loads((written / "metrics.json").read_text())
    assert metrics["not_private"] is True and metrics["estimators"] == [*select("classification", QUICK)]
    assert f"Means over {len(QUICK)} estimators" in render_internal(read_internal(written), "village")
    for table in ("synthetic", "real", "shuffled"):
        assert set(metrics["scores"][table]) == set(CLASSIFICATION_METRICS)
        assert set(metrics["marginals"][table]) == {"1", "2", "3", "4"}


def test_rows_that_break_a_rule_are_counted_synthetic_beside_real(written: Path, table_of: Tables) -> None:
    """Of training and held-out rows together."""
    broken = [
        int(((rows["color"] == "red") & (rows["size"] == "l")).sum()) for rows in map(table_of, [2000] * 3, [3, 1, 2])
    ]
    metrics = json.loads((written / "metrics.json").read_text())
    first = "{never: {color: red, size: l}}"
    assert metrics["rules"]["synthetic"][first] == broken[0] and metrics["rules"]["real"][first] == sum(broken[1:]) > 0
    shown = internal_rows(read_internal(written))["rules"]
    assert shown[0] == (first, str(broken[0]), str(sum(broken[1:]))) and shown[1][1:] == ("0", "0")


def test_details_are_the_numbers_of_the_rows(written: Path, table_of: Tables) -> None:
    held_out, synthetic = table_of(2000, 2), table_of(2000, 3)
    numbers = json.loads((written / "metrics.json").read_text())["details"]
    columns = {row["column"]: row for row in numbers["columns"]}
    marginals = {row["columns"]: row for row in rows_of(written / "marginals.csv") if row["table"] == "synthetic"}
    for name, row in columns.items():
        assert row["total_variation"] == pytest.approx(float(marginals[name]["total_variation"]))
        assert row["held_out"]["missing"] == pytest.approx(held_out[name].isna().mean())
    assert columns["color"]["synthetic"]["center"] == synthetic["color"].mode()[0]
    assert columns["visits"]["held_out"]["spread"] == pytest.approx(held_out["visits"].astype(float).std(ddof=0))
    names = numbers["mapped"]
    for first, second, value, real, drawn in numbers["pairs"]:
        assert 0 <= min(real, drawn) <= max(real, drawn) <= 1
        assert value == pytest.approx(float(marginals[f"{names[first]} × {names[second]}"]["total_variation"]))
    worst = max(numbers["pairs"], key=lambda pair: pair[2])
    assert numbers["crosstabs"][0]["columns"] == [names[worst[0]], names[worst[1]]]
    (group,) = [row for row in numbers["groups"] if row["group"] == "sick = yes"]
    assert group["rows"] == (held_out["sick"] == "yes").sum()
    assert group["synthetic_share"] == pytest.approx((synthetic["sick"] == "yes").mean())


def test_rare_categories_come_with_their_training_rows(schema: Schema, table_of: Tables) -> None:
    train, held_out, synthetic = (table_of(500, seed) for seed in (1, 2, 3))
    train["color"] = train["color"].mask(train["color"] == "red", "green")
    train.loc[train.index[:2], "color"] = "red"
    rare = details({"synthetic": synthetic, "real": train}, held_out, schema, 8)["rare"]
    assert rare[0] == ("color = red", 2, 0.004, pytest.approx((synthetic["color"] == "red").mean()))


def test_copies_of_training_rows_lie_nearer_to_them(schema: Schema, table_of: Tables) -> None:
    """Of 500 rows without copies the share is binomial around a half: outside of .4 ... .6 with probability 1e-5."""
    train, held_out, fresh = (table_of(500, seed) for seed in (1, 2, 3))
    shares = {
        name: neighbors({"synthetic": rows, "real": train}, held_out, schema, 500, 0)
        for name, rows in (("fresh", fresh), ("copies", train))
    }
    assert 0.4 < shares["fresh"]["nearer"] < 0.6 and shares["copies"]["nearer"] > 0.9
    assert shares["copies"]["equal_train"] == 1 and shares["fresh"]["rows"] == 500


def test_columns_and_pairs_stand_first_on_the_page_and_classifiers_last(written: Path) -> None:
    page = render_internal(read_internal(written), "village")
    headings = re.findall(r"<h2[^>]*>([^<]*)</h2>", page)
    assert headings[:3] == ["In short", "Every column", "Every pair of columns"]
    assert headings[-1] == "What a classifier learns" and "sick = yes" in page and 'class="map"' in page


def test_halves_that_both_trained_have_no_near_rows_and_no_held_out_ones(tmp_path: Path, table_of: Tables) -> None:
    """A table of copies would seem no nearer to either half."""
    schema = Schema.from_dict(
        {
            **{"name": "t", "source": "made", "task": "none"},
            "columns": {"size": {"kind": "categorical", "categories": ["s", "m", "l"]}},
        },
        "t.yaml",
    )
    rows = table_of(80, 1)[["size"]]
    evaluate(rows[:40], rows[40:], rows, schema, Evaluate(), tmp_path, halved=True)
    assert json.loads((tmp_path / "metrics.json").read_text())["details"]["neighbors"] is None
    page = render_internal(read_internal(tmp_path), "village")
    assert "Nothing was held out" in page and "reference real rows" in page
    assert "Copies of training rows" not in page and "from held-out rows" not in page


def test_a_chart_has_the_shares_of_real_and_synthetic_rows(written: Path, table_of: Tables) -> None:
    columns = {row["column"]: row for row in json.loads((written / "metrics.json").read_text())["details"]["columns"]}
    colors, numbers = columns["color"], columns["height"]
    for name, table in (("real", table_of(2000, 1)), ("synthetic", table_of(2000, 3))):
        assert colors["shares"][name][0] == pytest.approx((table["color"] == "red").mean())
        assert numbers["shares"][name][-1] == pytest.approx(table["height"].isna().mean())
        assert sum(numbers["shares"][name]) == pytest.approx(1)
    assert colors["cells"] == ["red", "green", "blue", "(missing)"] and "(missing)" not in columns["size"]["cells"]


def test_the_cells_of_few_integers_are_these_integers(table_of: Tables) -> None:
    columns = {"k": {"kind": "integer", "lower": 1, "upper": 4}}
    schema = Schema.from_dict({"name": "t", "source": "made", "task": "none", "columns": columns}, "t.yaml")
    rows = pd.DataFrame({"k": [1, 2, 2, 4]}, dtype="int64")
    (row,) = details({"synthetic": rows, "real": rows}, rows, schema, 16)["columns"]
    assert row["cells"] == ["1", "2", "3", "4"] and row["shares"]["real"] == [0.25, 0.5, 0.0, 0.25]


def test_a_faithful_table_lies_at_the_ceiling_and_far_from_the_floor(written: Path) -> None:
    metrics = json.loads((written / "metrics.json").read_text())
    hard = {table: scores["roc_auc_hard"] for table, scores in metrics["scores"].items()}
    assert abs(hard["synthetic"] - hard["real"]) < 0.1 and hard["synthetic"] > hard["shuffled"] + 0.2
    pairs = {table: scores["2"] for table, scores in metrics["marginals"].items()}
    assert abs(pairs["synthetic"] - pairs["real"]) < 0.02 < pairs["shuffled"] - pairs["real"]
    ones = {table: scores["1"] for table, scores in metrics["marginals"].items()}
    assert ones["shuffled"] == ones["real"] != ones["synthetic"]  # the floor is made of the training rows


def test_scores_are_of_the_held_out_rows(tmp_path: Path, schema: Schema, table_of: Tables) -> None:
    """The held-out rows have the label turned around: who learned it from other rows is wrong about them."""
    train, test, synthetic = (table_of(600, seed) for seed in (1, 2, 3))
    test["sick"] = test["sick"].cat.rename_categories(["yes", "no"]).cat.reorder_categories(["no", "yes"])
    evaluate(
        train, test, synthetic, schema, Evaluate(), tmp_path, Measures(select("classification", ("decision_tree",)))
    )
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert max(metrics["scores"][table]["roc_auc_score"] for table in ("synthetic", "real")) < 0.3
    # The other numbers are of these rows too: each pair with the label lies far away, and no other does.
    pairs = [row for row in rows_of(tmp_path / "marginals.csv") if (row["table"], row["order"]) == ("real", "2")]
    far = {row["columns"] for row in pairs if float(row["total_variation"]) > 0.5}
    assert "size × sick" in far and all("sick" in name for name in far)


def test_distances_rank_the_tables(written: Path) -> None:
    distances = json.loads((written / "metrics.json").read_text())["distances"]
    values = {table: distances[table]["pairs_l1"] for table in ("synthetic", "real", "shuffled")}
    assert abs(values["synthetic"] - values["real"]) < 0.5 * (values["shuffled"] - values["real"]), values
    metrics = json.loads((written / "metrics.json").read_text())
    assert distances["real"]["pairs_l1"] == pytest.approx(2 * metrics["marginals"]["real"]["2"])
    assert metrics["image"] is False


def test_means_are_those_of_the_rows(written: Path) -> None:
    metrics = json.loads((written / "metrics.json").read_text())
    scores = [float(row["f1"]) for row in rows_of(written / "scores.csv") if row["table"] == "synthetic"]
    assert len(scores) == len(QUICK)
    assert metrics["scores"]["synthetic"]["f1"] == pytest.approx(sum(scores) / len(scores))
    marginals = rows_of(written / "marginals.csv")
    values = [float(r["total_variation"]) for r in marginals if (r["table"], r["order"]) == ("shuffled", "2")]
    assert metrics["marginals"]["shuffled"]["2"] == pytest.approx(sum(values) / len(values))


def test_progress_tells_no_number(tmp_path: Path, schema: Schema, table_of: Tables, caplog: LogCaptureFixture) -> None:
    caplog.set_level("INFO", "likeness")
    evaluate(
        *(table_of(60, seed) for seed in (1, 2, 3)),
        schema,
        Evaluate(max_rows=40),
        tmp_path,
        Measures(select("classification", ("lda",))),
    )
    tables = ("synthetic", "real", "shuffled")
    assert caplog.messages == [f"evaluate: {done} of 3, {name}: lda" for done, name in enumerate(tables, 1)]


def test_classifiers_see_few_rows_unless_a_setting_says_more(
    tmp_path: Path, schema: Schema, table_of: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []

    def judged(train: pd.DataFrame, test: pd.DataFrame, *_: Any) -> pd.DataFrame:
        seen.append((len(train), len(test)))
        return pd.DataFrame([{"classifier": "lda", **dict.fromkeys(metrics_of("classification"), 0.5), "seconds": 0}])

    monkeypatch.setattr(internal, "train_on_synthetic_test_on_real", judged)
    tables = [table_of(60, seed) for seed in (1, 2, 3)]
    for most, rows in ((None, 30), (50, 50)):
        settings, estimators = Evaluate(max_rows=most), select("classification", ("lda",))
        evaluate(*tables, schema, settings, tmp_path, Measures(estimators, most=30))
        assert seen[-3:] == [(rows, rows)] * 3
    smallest = sample_rows(tables[1], 50, 0, "test")[schema.label].value_counts().min()
    assert json.loads((tmp_path / "metrics.json").read_text())["auc_error"] == pytest.approx(smallest**-0.5)


@pytest.mark.parametrize("task", ["regression", "none"])
def test_other_tasks(tmp_path: Path, schema_of: Callable[[str], Schema], table_of: Tables, task: str) -> None:
    tables = [table_of(80, seed, task) for seed in (1, 2, 3)]
    chosen = select(task, ("ridge",)) if task == "regression" else None
    evaluate(*tables, schema_of(task), Evaluate(), tmp_path, Measures(chosen))
    scores = json.loads((tmp_path / "metrics.json").read_text())["scores"]
    assert scores == {} if task == "none" else set(scores["real"]) == {"r2", "rmse"}


def test_at_most_rows_are_a_public_sample(schema: Schema, table_of: Tables) -> None:
    table = table_of(100, 1)
    assert len(sample_rows(table, 30, 0, "real")) == 30 and sample_rows(table, None, 0, "real") is table
    assert sample_rows(table, 30, 0, "real").equals(sample_rows(table, 30, 0, "real"))
    assert not sample_rows(table, 30, 0, "real").index.equals(sample_rows(table, 30, 1, "real").index)
