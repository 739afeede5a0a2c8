"""What Python shows: a page of two tables, small tables of objects, and refusals without lines of the library."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import likeness
from likeness import Schema, Synthesizer
from likeness.core.errors import DataError, LikenessError
from likeness.synthesizer.estimates import Account

COLUMNS = {
    "age": {"kind": "integer", "lower": 0, "upper": 99, "nullable": True},
    "town": {"kind": "categorical", "categories": ["<Ulm>", "Bonn"]},
}
SCHEMA = Schema.from_dict({"name": "people", "source": "made", "task": "none", "columns": COLUMNS}, "people.yaml")


def rows(seed: int, dependent: bool) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    age = draw.integers(0, 100, 400)
    towns = np.where(age < 50 if dependent else draw.random(400) < 0.5, "<Ulm>", "Bonn")
    return pd.DataFrame({"age": age, "town": towns})


@pytest.mark.long
def test_two_tables_are_compared_with_a_page_frames_and_figures(tmp_path: Path) -> None:
    compared = likeness.compare(rows(1, True), rows(2, False))
    (pair,) = compared.pairs.to_dict("records")
    assert pair["v_real"] > 0.9 and pair["v_synthetic"] < 0.2 and pair["total_variation"] > 0.3
    assert list(compared.columns.index) == ["age", "town"] and list(compared.figures) == ["age", "town"]
    page = compared.save(tmp_path / "deep/page.html").read_text()
    assert "No better than independence" in page and "INTERNAL – NOT PRIVATE" in page and "&lt;Ulm&gt;" in page
    assert compared._repr_html_().startswith('<iframe srcdoc="&lt;!DOCTYPE')
    good = likeness.compare(rows(1, True), rows(2, True), SCHEMA)
    assert "No better than independence" not in good.page.html
    for words in ("held-out", "training row", "Nothing was held out", "reports/index.html"):
        assert words not in page  # the caller gave neither


def test_tables_that_cannot_be_compared_are_refused() -> None:
    table = rows(1, True)
    with pytest.raises(DataError, match="the real rows have no column 'town'"):
        likeness.compare(table.drop(columns="town"), table)
    assert list(likeness.compare(table.assign(id=range(len(table))), table).columns.index) == ["age", "town"]
    with pytest.raises(DataError, match="fewer than two rows"):
        likeness.compare(table, table.head(1))
    texts = pd.DataFrame({"text": [f"text {place}" for place in range(1001)]})
    with pytest.raises(DataError, match="'text' has more than 1,000 different texts"):
        likeness.compare(texts, texts)


def test_objects_show_themselves_as_escaped_tables() -> None:
    assert "<th>town</th><td>categorical</td><td>&lt;Ulm&gt;, Bonn</td>" in SCHEMA._repr_html_()
    assert "<td>0 to 99</td><td>may be missing</td>" in SCHEMA._repr_html_()
    shown = Synthesizer(schema=SCHEMA, population="<people>")._repr_html_()
    assert "<th>population</th><td>&lt;people&gt;</td>" in shown and "<th>epsilon</th><td>1.0</td>" in shown
    total = {"epsilon": 1.0, "delta": 1e-5}
    query = {"query": "embedding", "dimension": 1200, "sensitivity": 1.0, "noise_scale": 3.5, "rho": 0.03}
    account = Account(total=total, identity="people", unit="one row", queries=[query])
    assert "ε = 1 at δ = 10⁻⁵" in account._repr_html_() and "<th>embedding</th><td>1,200</td>" in account._repr_html_()


def test_a_refusal_is_one_message_in_notebooks_and_python_shows_errors_as_ever() -> None:
    with pytest.raises(LikenessError) as caught:
        likeness.compare(pd.DataFrame(), rows(1, True))
    (line,) = caught.value._render_traceback_()
    assert line.startswith("DataError: compare: the real rows have no column")
    assert "likeness" not in getattr(sys.excepthook, "__module__", "")
