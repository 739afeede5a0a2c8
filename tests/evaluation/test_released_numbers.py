"""The public page's numbers about the table: right, from public values alone, readable, and of equal bytes."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from toy_release import ROWS, SCHEMA, drawn, exact, sums_of, table
from toys import schema_with

from likeness.data.schema.constrained_tables import forward_transform
from likeness.inference.measurements import measurements
from likeness.pipeline.private_rows import encoded_chunks
from likeness.report.charts import Cell, bar, chart
from likeness.report.pages import render
from likeness.report.released_numbers import expected_error, table_section


@cache
def section(shuffled: bool = False, compared: bool = True) -> dict[str, Any]:
    """The section of one draw; the synthetic rows are the table, or the table with one column shuffled."""
    rows = table().copy()
    if shuffled:
        rows["age"] = np.random.default_rng(1).permutation(rows["age"])
    chunks = encoded_chunks(rows, SCHEMA) if compared else None
    return table_section(SCHEMA, drawn(1)[0], None, rows, chunks)


@pytest.mark.long
def test_intervals_hold_the_shares_of_the_table_and_synthetic_shares_are_exact() -> None:
    """Two more points than the interval are seven standard errors: false alarms below 1e-10."""
    columns = {column["name"]: column for column in section()["numbers"]["columns"]}
    assert list(columns) == list(SCHEMA.names)
    shares = table()["d"].value_counts(normalize=True, dropna=False)
    cells = {cell["label"]: cell for cell in columns["d"]["bars"]}
    assert list(cells) == ["left", "right", "(missing)"]
    for label, share in (("left", shares["left"]), ("(missing)", table()["d"].isna().mean())):
        assert cells[label]["synthetic"] == f"{100 * share:.1f} %"
        low, high = (float(end.removesuffix(" %").replace("−", "-")) for end in cells[label]["interval"].split(" to "))
        assert low - 2 <= 100 * share <= high + 2 and 0 < high - low < 10


def test_numbers_have_a_mean_and_quartiles_and_categories_have_none() -> None:
    """The noise in the mean of ages has a deviation of .24: false alarms below 1e-10."""
    columns = {column["name"]: column for column in section()["numbers"]["columns"]}
    words = [word for word, *_ in columns["age"]["numbers"]]
    assert words == ["mean", "lower quartile", "median", "upper quartile"] and not columns["c"]["numbers"]
    assert abs(float(columns["age"]["numbers"][0][1]) - table()["age"].mean()) < 3
    assert float(columns["age"]["numbers"][0][3]) == pytest.approx(table()["age"].mean(), abs=0.1)


@pytest.mark.long
def test_a_synthetic_mean_outside_of_its_interval_is_named(privacy: dict[str, Any]) -> None:
    """Intervals around exact sums: with noise, a mean of the other columns lies outside in one run of thirty."""
    released = exact()
    rows = table().assign(age=table()["age"].max())
    given = table_section(SCHEMA, released, None, rows, encoded_chunks(rows, SCHEMA))
    (estimate,) = (column["numbers"][0][1] for column in given["numbers"]["columns"] if column["name"] == "age")
    inside = table().assign(age=float(estimate))
    assert table_section(SCHEMA, released, None, inside, encoded_chunks(inside, SCHEMA))["numbers"]["outside"] == []
    assert given["numbers"]["outside"] == ["age"]
    assert "lie outside their intervals in age." in render(privacy, "", {}, given)


@pytest.mark.long
def test_the_expected_error_of_a_pair_is_the_mean_over_draws() -> None:
    """Between the estimates of 40 draws and those of the exact sums, which have no noise.

    The mean of 40 distances has a deviation of 5.4 % around 98.7 % of the expectation: false alarms below 1e-5.
    """
    pair, forms = ("c", "d"), {"c": np.eye(3), "d": np.eye(3)}
    truth = measurements(SCHEMA, exact()).terms.linear(forms)
    distances, expected = [], []
    for released in drawn(40):
        measured = measurements(SCHEMA, released)
        distances.append(np.abs(measured.terms.linear(forms) - truth).sum() / (2 * ROWS))
        expected.append(expected_error(measured, pair))
    assert np.mean(distances) == pytest.approx(np.mean(expected), rel=0.25)


@pytest.mark.long
def test_a_table_that_lost_a_dependence_does_not_fit() -> None:
    """Ten pairs and five columns by class, in two releases. Cells of the table itself have less than their noise.

    So false alarms are below 1e-5, and the shuffled column is missed with a chance below 1e-10.
    """
    right, shuffled = (section(one)["numbers"]["misfits"] for one in (False, True))
    assert right["excess"] < 1.5 < 2 < shuffled["excess"]
    assert right["tested"] == shuffled["tested"] == 30 and right["count"] == 0
    assert right["joint"] == 0 < shuffled["joint"]
    assert shuffled["count"] > 0 and all("age" in names for names, *_ in shuffled["rows"])


def test_rows_under_a_condition_are_not_compared(privacy: dict[str, Any]) -> None:
    given = section(compared=False)
    assert not given["compared"] and given["numbers"]["misfits"] is None
    page = render(privacy, "", {}, given)
    assert "answer to a condition" in page and ">Synthetic</th>" not in page


def test_a_release_without_cells_shows_its_classes_and_names_the_rest() -> None:
    counts = [one for one in drawn(1)[0] if one.receipt.query == "class_counts"]
    assert counts, "the toy release counts classes"
    numbers = table_section(SCHEMA, counts, None, table(), encoded_chunks(table(), SCHEMA))["numbers"]
    assert [column["name"] for column in numbers["columns"]] == ["y"]
    assert numbers["without"] == [name for name in SCHEMA.names if name != "y"] and "pairs" not in numbers["noise"]


@pytest.mark.long
def test_the_page_has_every_column_the_rows_and_no_script_and_equal_bytes(privacy: dict[str, Any]) -> None:
    pages = [render(privacy, "", {}, section()) for _ in range(2)]
    assert pages[0] == pages[1] and "<script" not in pages[0] and "default-src 'none'" in pages[0]
    assert pages[0].count("<figcaption><strong>") == len(SCHEMA.names) and pages[0].count("<summary>") == 2
    first = table().head(10)["age"].tolist()
    assert all(f"<td>{age}</td>" in pages[0] for age in first)
    assert pages[0].count('<svg class="cells"') == sum(not column.is_categorical for column in SCHEMA.columns)


def test_the_page_says_what_is_kept_and_never_that_noise_proves_agreement(privacy: dict[str, Any]) -> None:
    cut = [{"column": "money", "low": 0.0, "high": 40.5}]
    pairs = {"kept": [["c", "y", 0.5, 0.4], ["d", "y", 0.02, 0.01]], "not_kept": [["c", "age", 0.3, 0.01]]}
    found = {
        **pairs, "unknown": 14, "small": 0.1, "unknown_pairs": [["age", "e"], ["age", "y"]],
        "detectable": [0.04, 0.31], "rules": [["c", "y"], ["age", "e"]], "cut": cut,
    }  # fmt: skip
    page = render({**privacy, "relations": found}, "", {}, section())
    for words in (
        "c × y: kept, 0.50",
        "c × age: not kept, 0.30",
        "Kept: 2, not kept: 1, of a public rule: 1, unknown: 13. Of the kept",
        "Of the kept pairs, near 0 in both the release and the model: 1. Noise",
        "Noise hides relations weaker than 0.04 (|r| or Cramér's V) in half of the pairs",
        "and weaker than 0.31 in the worst one.",
        "Do not read age × y, and 12 more (see",  # each pair is in one list
        "The release counts 10 tables of three or more columns, each with y. Noise alone moves",
        "The synthetic rows differ from none of them by more than",
        "money has no value outside 0 to 40.5.",
        "Real values may lie beyond.",
        "<td>kept: near 0 in both</td>",
        "All kept and lost pairs as a table",
        "The publisher says where the data come from: made up.",
        "The shares of all columns may be used, but for those in parentheses.",
    ):
        assert words in page
    assert "None differ" not in page and "Noise and sampling may explain all differences." in page
    assert "kept and lost" in page and "kept and lost" not in render(privacy, "", {}, section())


def test_a_category_is_text_on_the_page(privacy: dict[str, Any]) -> None:
    given = section()
    column = {**given["numbers"]["columns"][0], "name": "<script>alert(1)</script>"}
    page = render(privacy, "", {}, {**given, "numbers": {**given["numbers"], "columns": [column]}})
    assert "<script" not in page and "&lt;script&gt;" in page


def test_a_release_without_noise_has_no_residuals() -> None:
    released = [replace(one, receipt=replace(one.receipt, noise_scale=0.0)) for one in exact()]
    numbers = table_section(SCHEMA, released, None, table(), encoded_chunks(table(), SCHEMA))["numbers"]
    assert numbers["misfits"]["tested"] == 0 and numbers["noise"]["pairs"] == 0


def test_a_share_of_nobody_has_an_empty_bar() -> None:
    made = bar(Cell("a", *(float("nan"),) * 3), 1.0)
    assert made["share"] == "–" and made["size"] == made["high"] == 0.0 and not made["band"]


def test_a_chart_shows_the_largest_categories_and_all_cells_of_a_number() -> None:
    cells = [Cell(f"{place}..{place + 1}", place / 100) for place in range(14)]
    most, number = chart("x", cells, True), chart("x", [*cells, Cell("(missing)", 0.1)], False)
    assert [one["label"] for one in most["shown"]] == [cell.label for cell in cells[4:]] and most["hidden"] == 4
    assert len(number["shown"]) == 15 and number["ticks"] == ["0", "7", "14", "missing"]


def test_a_derived_column_has_its_synthetic_mean() -> None:
    days, stay = {"lower": 0, "upper": 60}, {"is": "left - age", "lower": 0, "upper": 60}
    columns = {"age": {"kind": "integer", **days}, "left": {"kind": "integer", **days}}
    schema = schema_with(columns, None, derived={"stay": stay})
    rows = pd.DataFrame({"age": [1, 2, 3, 9], "left": [3, 5, 7, 19]})
    modeled = forward_transform(rows, schema)
    released = sums_of(schema.model_schema, modeled)
    numbers = table_section(schema, released, None, rows, encoded_chunks(modeled, schema.model_schema))["numbers"]
    (found,) = [one for one in numbers["columns"] if one["name"] == "stay"]
    assert found["numbers"][0][3] == "4.75"
