"""Rows under rules: none breaks one, also under conditions, and they are the model's rows that keep all rules."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ruled import COLUMNS, LEARNED, RULES, SCHEMA, ruled

from likeness.core.errors import ParamsError
from likeness.data.encoding.bins import grid_of
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.constrained_tables import inverse_transform, violation_counts
from likeness.data.schema.rules import learned_pairs
from likeness.data.schema.schema import Schema
from likeness.features.cells import Cells
from likeness.methods.marginals.columns import cells_of_number
from likeness.methods.marginals.mixture import MixtureColumn, ProductMixture
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.drawn_rows import DrawnRows
from likeness.pipeline.where import allowed_values

WHERE: list[dict[str, Any]] = [
    {},
    {"age": "< 15"},
    {"sick": "yes", "place": ["husband", "wife"]},
    {"soil_2": True, "left": "2020-03-01.."},
    {"both": "3..6"},
    {"years": ["4", "13"], "soil_1": "no"},
]


def mixture(schema: Schema, seed: int = 0) -> SavedGenerator:
    """Three random products over the modeled columns."""
    modeled = schema.model_schema
    layout, columns = Encoder(modeled).layout, []
    for column in modeled.feature_columns:
        start = layout.starts[column.name]
        if column.is_categorical:
            columns.append(MixtureColumn(Cells(start, column.width)))
        else:
            grid = grid_of(column, 6)
            columns.append(MixtureColumn(cells_of_number(column, start, grid), grid.edges, grid.lows, grid.highs))
    names = [column.name for column in modeled.feature_columns]
    functions = [[names.index(name) for name in pair] for pair in learned_pairs(modeled.rules)]
    network, random = ProductMixture(columns, 2, 3, layout.width, functions), np.random.default_rng(seed)
    logits = {name: random.standard_normal(network.arrays()[name].shape) for name in ("logits", "weights")}
    network.load({**network.arrays(), **logits})
    network.determine({})
    return SavedGenerator(network, (0.3, 0.7), {})


@pytest.fixture(scope="module")
def drawn() -> DrawnRows:
    return DrawnRows(mixture(SCHEMA), SCHEMA)


@pytest.mark.long
@pytest.mark.parametrize("where", WHERE)
def test_no_row_breaks_a_rule_under_any_condition(drawn: DrawnRows, where: dict[str, Any]) -> None:
    given = allowed_values(where, SCHEMA)
    table = drawn.draw_where(700, 1, given)
    assert len(table) == 700 and list(table) == list(SCHEMA.names)
    assert set(violation_counts(table, SCHEMA).values()) == {0}
    for name, allowed in given.items():
        column = SCHEMA.column(name)
        values = column.numbers(table[name])
        assert allowed.holds(np.asarray(values, dtype=float), column).all()
    assert table.equals(drawn.draw_where(700, 1, given))


def test_a_rule_that_rejects_no_row_suits_all_weights_of_classes() -> None:
    """Weights that sum to less than 1 by rounding: their share is 1.0000000000000002."""
    schema = ruled(rules=[RULES[-1]], derived={})
    table = DrawnRows(replace(mixture(schema), class_weights=(0.01, 0.04)), schema).draw_where(50, 0, {})
    assert len(table) == 50 and set(violation_counts(table, schema).values()) == {0}


@pytest.mark.long
def test_rows_are_those_of_each_class_that_keep_the_rules_and_classes_have_their_shares(drawn: DrawnRows) -> None:
    """Beside a plain rejection of many rows of each class. Alarms by chance: below 1e-6."""
    table = drawn.draw_where(20_000, 3, {})
    shares = (table["sick"] == "yes").mean()
    assert abs(shares - 0.7) < 5 * np.sqrt(0.21 / 20_000)
    encoder = Encoder(SCHEMA.model_schema)
    for label, name in enumerate(["no", "yes"]):
        labels = np.full(60_000, label)
        plain, rejected = inverse_transform(
            encoder.decode(drawn.saved.network.draw(labels, np.random.default_rng(9)), labels), SCHEMA
        )
        plain = plain[~np.logical_or.reduce(list(rejected.values()))]
        for column, there in [(column, plain[column]) for column in ("place", "state", "school", "soil_2")]:
            one, two = (
                values.value_counts(normalize=True) for values in (table.loc[table["sick"] == name, column], there)
            )
            spread = np.sqrt(two * (1 - two) * (1 / len(plain) + 1 / (table["sick"] == name).sum()))
            assert ((one - two).abs() < 5.5 * spread).all(), column


def test_rules_that_reject_nearly_all_are_refused_by_their_words() -> None:
    rules = [*RULES, {"if": {"a": ".."}, "then": {"both": 5.55}}]
    schema = ruled(rules=rules, derived={})
    with pytest.raises(ParamsError) as error:
        DrawnRows(mixture(schema), schema).draw_where(10, 0, {})
    assert "less than a thousandth" in str(error.value) and "rule 8 (" in str(error.value)


@pytest.mark.long
def test_a_rare_condition_on_a_computed_column_is_refused(drawn: DrawnRows) -> None:
    with pytest.raises(ParamsError, match=r"rejected by sample\.where\.both"):
        drawn.draw_where(1, 0, allowed_values({"a": 5, "both": 0.01}, SCHEMA))


@pytest.mark.long
def test_rows_beside_given_values_keep_the_rules(drawn: DrawnRows) -> None:
    given = pd.DataFrame({"age": [2, 40, 2, 70], "place": ["child", "husband", "child", "wife"]}, index=[7, 8, 9, 3])
    table = drawn.complete(given, 0)
    assert (table[["age", "place"]].astype(str) == given.astype(str)).all(axis=None)
    assert set(violation_counts(table, SCHEMA).values()) == {0} and (table.loc[[7, 9], "sick"] == "no").all()
    with pytest.raises(ParamsError, match="a row of the frame breaks rule 2"):
        drawn.complete(pd.DataFrame({"place": ["husband"], "sex": ["F"]}), 0)


def test_without_rules_rows_are_those_of_the_generator() -> None:
    schema = ruled(rules=[], derived={})
    saved = mixture(schema)
    x, labels = saved.draw(100, 5)
    assert DrawnRows(saved, schema).draw_where(100, 5, {}).equals(Encoder(schema).decode(x, labels))


@pytest.mark.long
@pytest.mark.parametrize(
    "where",
    [
        {},
        {"grade": "b"},
        {"grade": ["a", "c"], "school": "middle..", "age": "< 15"},
        {"wing": [3, None], "floor": "..12"},
    ],
)
def test_a_learned_function_is_kept_also_under_a_condition_on_its_value(where: dict[str, Any]) -> None:
    """The value is that which the mixture has most often beside the other."""
    saved = mixture(LEARNED, seed=1)
    table = DrawnRows(saved, LEARNED).draw_where(600, 2, allowed_values(where, LEARNED))
    assert set(violation_counts(table, LEARNED).values()) == {0}
    for one, other in (("school", "grade"), ("floor", "wing")):
        assert table.groupby(one, observed=True)[other].nunique(dropna=False).max() == 1
    for name, words in where.items():
        given, column = allowed_values({name: words}, LEARNED)[name], LEARNED.column(name)
        values = table[name].cat.codes if column.is_categorical else table[name]
        assert given.holds(np.asarray(values, dtype=float), column).all()
    (first, second) = saved.network.functions[0]
    parts, weights = saved.network.exact()
    joint = (parts[first] * weights.mean(axis=0)[:, None]).T @ parts[second]
    codes = table[["school", "grade"]].apply(lambda column: column.cat.codes)
    assert (joint.argmax(axis=1)[codes["school"]] == codes["grade"]).all()


def test_a_function_is_read_off_the_released_cells_where_they_stand_out_of_the_noise() -> None:
    network = mixture(LEARNED, seed=1).network
    assert isinstance(network, ProductMixture)
    (first, second), before = network.functions[0], network.arrays()
    name, size = f"function_{first}_{second}", network.sizes[second]
    counts = np.zeros((network.sizes[first], size))
    others = (before[name].astype(int) + 1) % size
    counts[np.arange(len(counts)), others] = 100
    counts[0] /= 100  # below the noise: the mixture says
    turned = counts if first < second else counts.T
    network.determine({(min(first, second), max(first, second)): (turned, 10.0)})
    after = network.arrays()[name]
    assert after[0] == before[name][0] and (after[1:] == others[1:]).all()
    with pytest.raises(ValueError, match="a function has a value that is no cell"):
        network.load({**network.arrays(), name: after + size})


@pytest.mark.long
def test_a_learned_function_may_be_the_only_rule() -> None:
    grades = {"kind": "categorical", "categories": ["a", "b", "c"]}
    alone = ruled(columns={**COLUMNS, "grade": grades}, derived={}, rules=[{"determines": ["school", "grade"]}])
    table = DrawnRows(mixture(alone), alone).draw_where(300, 2, {})
    assert len(table) == 300 and table.groupby("school", observed=True)["grade"].nunique().max() == 1


def test_a_function_is_part_of_the_specification_only_where_there_is_one() -> None:
    assert "functions" not in mixture(SCHEMA).spec()
    network = mixture(LEARNED).network
    assert type(network).from_spec(network.spec()).functions == network.functions != ()
