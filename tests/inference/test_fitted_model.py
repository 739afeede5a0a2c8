"""Tables of the fitted model, beside rows that it draws."""

from dataclasses import replace
from functools import cache

import pandas as pd
import pytest
from toy_release import SCHEMA, exact, method

from likeness.core.errors import ParamsError
from likeness.generators.base import Generator
from likeness.inference import model
from likeness.inference.model import FittedModel
from likeness.methods.base import Context
from likeness.methods.fit import fit
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.synthetic_table import typed_rows


@cache
def fitted() -> FittedModel:
    released = {one.receipt.query: one for one in exact()}
    auxiliary = {name: one for name, one in released.items() if name != "embedding"}
    return FittedModel(
        SCHEMA, fit(method(), Context(SCHEMA, "add_remove_one", None, 0), auxiliary, released["embedding"])[0]
    )


@pytest.mark.parametrize("names", [("c",), ("c", "y"), ("y", "age", "c")])
def test_shares_are_those_of_drawn_rows(names: tuple[str, ...]) -> None:
    """Each share of 20,000 rows within .02. The order of the names is that of the index, label or not."""
    shares = fitted().marginal(names)
    ages = fitted().marginal("age").index
    ends = [-1, *(int(label.split("..")[-1]) for label in ages)]
    rows = typed_rows(fitted().saved, SCHEMA, 20_000, 0, {}).assign(
        age=lambda frame: pd.cut(frame.age, ends, labels=ages)
    )
    drawn = rows.groupby(list(names), observed=False).size() / len(rows)
    assert list(shares.index.names) == list(names) and shares.sum() == pytest.approx(1)
    assert len(shares) == len(drawn) and shares.to_numpy() == pytest.approx(drawn[shares.index].to_numpy(), abs=0.02)


def test_one_name_is_a_list_of_one_and_missing_is_a_cell() -> None:
    shares = fitted().marginal("d")
    assert shares.equals(fitted().marginal(["d"])) and list(shares.index.isna()) == [False, False, True]


@pytest.mark.parametrize(
    ("names", "message"),
    [(("c", "c"), "different names"), ((), "at least one"), (("height",), "one of y, c.*got .height")],
)
def test_a_wrong_question_is_refused(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(ParamsError, match=message):
        fitted().marginal(names)


def test_a_table_of_too_many_cells_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "MOST_CELLS", 11)
    assert len(fitted().marginal(["c", "y"])) == 6
    with pytest.raises(ParamsError, match=r"age, c have 12 cells, more than 11\. Name fewer columns"):
        fitted().marginal(["age", "c"])


def test_a_model_without_tables_is_refused_by_the_name_of_its_method(monkeypatch: pytest.MonkeyPatch) -> None:
    saved: SavedGenerator = fitted().saved
    monkeypatch.setattr(type(saved.network), "table_cells", Generator.table_cells)
    other = replace(fitted(), saved=replace(saved, provenance={**saved.provenance, "method": "merf"}))
    with pytest.raises(ParamsError, match=r"merf has no tables.*Use method marginals"):
        other.marginal("c")
