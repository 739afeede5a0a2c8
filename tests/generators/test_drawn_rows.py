"""Drawn rows: under rules none breaks one, and under conditions they are the model's rows that meet them."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ruled import COLUMNS, LEARNED, RULES, SCHEMA, ruled

from likeness.core.errors import DataError, ParamsError
from likeness.data.encoding.bins import grid_of
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import Condition
from likeness.data.schema.constrained_tables import inverse_transform, violation_counts
from likeness.data.schema.rules import learned_pairs
from likeness.data.schema.schema import Schema
from likeness.features.cells import Cells
from likeness.methods.marginals.columns import cells_of_number
from likeness.methods.marginals.mixture import MixtureColumn, ProductMixture
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.datasets.table import Table
from likeness.pipeline.drawn_rows import DrawnRows
from likeness.pipeline.synthetic_table import Request, sample_request
from likeness.pipeline.where import allowed_values, conditions, pairs

WHERE: list[dict[str, Any]] = [
    *({}, {"age": "< 15"}, {"sick": "yes", "place": ["husband", "wife"]}, {"soil_2": True, "left": "2020-03-01.."}),
    *({"both": "3..6"}, {"years": ["4", "13"], "soil_1": "no"}),
]


def columns_of(schema: Schema, bins: int) -> list[MixtureColumn]:
    starts, columns = Encoder(schema).layout.starts, []
    for column in schema.feature_columns:
        start = starts[column.name]
        if column.is_categorical:
            columns.append(MixtureColumn(Cells(start, column.width)))
        else:
            grid = grid_of(column, bins)
            columns.append(MixtureColumn(cells_of_number(column, start, grid), grid.edges, grid.lows, grid.highs))
    return columns


def mixture(schema: Schema, seed: int = 0) -> SavedGenerator:
    """Three random products over the modeled columns."""
    modeled = schema.model_schema
    width, columns = Encoder(modeled).layout.width, columns_of(modeled, 6)
    names = [column.name for column in modeled.feature_columns]
    functions = [[names.index(name) for name in pair] for pair in learned_pairs(modeled.rules)]
    network, random = ProductMixture(columns, 2, 3, width, functions), np.random.default_rng(seed)
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


OPEN = Schema.from_dict(
    {
        "name": "visits",
        "source": "made up",
        "task": "classification",
        "label": "sick",
        "columns": {
            "age": {"kind": "integer", "lower": 0, "upper": 99, "nullable": True},
            "cost": {"kind": "numeric", "lower": 0, "upper": 1000, "transform": "log1p", "decimals": 2},
            "share": {"kind": "numeric", "lower": 0, "upper": 3, "spikes": [0.5]},
            "ward": {"kind": "categorical", "categories": ["a", "b", "c..d"], "nullable": True},
            "level": {"kind": "categorical", "categories": ["low", "middle", "high"], "ordered": True},
            "seen": {"kind": "date", "lower": "2020-01-01", "upper": "2024-12-31"},
            "sick": {"kind": "boolean", "categories": ["no", "yes"]},
        },
    },
    "visits.yaml",
)
NAMES = list(OPEN.names)
ROWS = 20_000


def of(column: str, value: Any) -> Condition:
    """The condition on one feature column."""
    return conditions({column: value}, OPEN)[1][NAMES.index(column)]


@pytest.fixture(scope="module")
def saved() -> SavedGenerator:
    """A mixture of four products with random probabilities, whose columns depend on each other."""
    network = ProductMixture(columns_of(OPEN, 4), 2, 4, Encoder(OPEN).layout.width)
    random = np.random.default_rng(0)
    network.load({name: 1.5 * random.standard_normal(array.shape) for name, array in network.arrays().items()})
    return SavedGenerator(network, (0.3, 0.7), {})


@pytest.fixture(scope="module")
def everything(saved: SavedGenerator) -> pd.DataFrame:
    return Table(OPEN).draw([saved], 10 * ROWS, 1, {})["synthetic"]


def days(table: pd.DataFrame) -> "pd.Series[Any]":
    return pd.to_datetime(table["seen"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("where", "meets"),
    [
        ({"age": (30, 42)}, lambda t: t["age"].between(30, 42)),
        ({"age": "95..", "sick": True}, lambda t: (t["age"] >= 95) & (t["sick"] == "yes")),
        ({"age": [None, 7, (50, 52)]}, lambda t: t["age"].isna() | t["age"].isin([7, 50, 51, 52])),
        ({"age": None}, lambda t: t["age"].isna()),
        ({"cost": "..12.5"}, lambda t: t["cost"] <= 12.5),
        (
            {"cost": (0.5, 0.75), "level": ("middle", None)},
            lambda t: t["cost"].between(0.5, 0.75) & (t["level"] > "low"),
        ),
        ({"share": 0.5}, lambda t: (t["share"] - 0.5).abs() < 1e-12),
        ({"share": (0.1, 0.3)}, lambda t: t["share"].between(0.1, 0.3)),
        ({"ward": ["a", None]}, lambda t: t["ward"].isin(["a"]) | t["ward"].isna()),
        ({"ward": "c..d", "level": "low..middle"}, lambda t: (t["ward"] == "c..d") & (t["level"] < "high")),
        ({"seen": ("2021-03-01", "2021-05-31")}, lambda t: days(t).between("2021-03-01", "2021-05-31")),
    ],
    ids=lambda value: "" if callable(value) else str(value),
)
def test_rows_are_those_of_the_model_that_meet_the_conditions(
    saved: SavedGenerator, everything: pd.DataFrame, where: dict[str, Any], meets: Any
) -> None:
    """Encoded, in every coordinate: 6 standard deviations (32 comparisons each, 1e-6 false alarms in all)."""
    drawn = Table(OPEN).draw([saved], ROWS, 0, where)["synthetic"]
    assert meets(drawn).all() and (where != {"share": 0.5} or (drawn["share"] == 0.5).all())
    expected, encoder = everything[meets(everything)], Encoder(OPEN)
    assert len(expected) > 500
    ours, theirs = (
        np.column_stack([encoder.expand(codes), encoder.labels(codes)])
        for codes in (encoder.encode(drawn), encoder.encode(expected))
    )
    for moment in (1, 2):
        error = np.sqrt((ours**moment).var(axis=0) / len(ours) + (theirs**moment).var(axis=0) / len(theirs))
        assert (np.abs((ours**moment).mean(axis=0) - (theirs**moment).mean(axis=0)) <= 6 * error + 1e-9).all()


def test_a_frame_gives_the_values_of_each_row(saved: SavedGenerator) -> None:
    given = pd.DataFrame(
        {
            "sick": [True, False, True, True],
            "age": pd.array([30, None, 30, 99], dtype="Int64"),
            "share": [0.123456789, 0.5, 0.123456789, 1.0],
            "cost": np.array([1, 1000, 1, 0], dtype="int32"),
            "seen": pd.to_datetime(["2020-01-01", "2024-12-31", "2020-01-01", "2022-02-02"]),
        },
        index=[4, 3, 2, 1],
    )
    drawn = DrawnRows(saved, OPEN).complete(given, 0)
    assert list(drawn.index) == [4, 3, 2, 1] and list(drawn.columns) == NAMES
    assert drawn["age"].tolist()[::2] == [30, 30] and drawn["age"].isna().tolist() == [False, True, False, False]
    assert drawn["sick"].tolist() == ["yes", "no", "yes", "yes"] and (drawn["share"] == given["share"]).all()
    assert (days(drawn) == given["seen"]).all() and (drawn["cost"] == given["cost"]).all()
    assert drawn.equals(DrawnRows(saved, OPEN).complete(given, 0))
    many = DrawnRows(saved, OPEN).complete(pd.concat([given] * 50), 1)
    alike = many[many["age"] == 30]
    assert alike["ward"].nunique() > 1 and alike["level"].nunique() > 1  # the rest is drawn
    for wrong, kind, words in (
        (given.rename(columns={"age": "old"}), ParamsError, "must be one of age, cost"),
        (given.assign(cost=None), DataError, "column 'cost' has a missing value"),
        (given.assign(sick="maybe", age=-1), DataError, r"(?s)'age' has a value beyond .* not among its public cat"),
    ):
        with pytest.raises(kind, match=words):
            DrawnRows(saved, OPEN).complete(wrong, 0)


def test_ranges_are_intervals_of_the_unit_scale() -> None:
    assert (
        of("age", (0, 99)) == of("age", (-5, 200)) == of("age", "..") == Condition(intervals=((-math.inf, math.inf),))
    )
    (low, high) = of("age", 42).intervals[0]
    assert (low * 99, high * 99) == pytest.approx((41.5, 42.5), abs=1e-4) and low * 99 > 41.5 and high * 99 < 42.5
    assert of("age", [7, (6, 9), "5..7"]) == of("age", (5, 9)) and len(of("age", [1, (3, 4)]).intervals) == 2
    assert of("share", [0.2, (0.1, 0.3)]) == of("share", (0.1, 0.3))
    assert of("share", (0.3, 0.6)) == Condition(intervals=((0.1, 0.2),))
    assert of("seen", ("2020-01-01", "2024-12-31")) == Condition(intervals=((-math.inf, math.inf),))
    assert of("ward", [None, "b"]) == Condition((1, 3)) and of("level", ("middle", None)) == Condition((1, 2))
    assert conditions({"sick": "no"}, OPEN) == ((0,), {})


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"sex": 1}, "sample.where.sex must be one of age, cost"),
        ({"age": "old"}, r"sample.where.age must be a number, a range like 30..40"),
        ({"age": [3, "9..7"]}, "the range 9..7 ends before it begins"),
        ({"age": (30.2, 30.8)}, "column 'age' has no such value. Its values are"),
        *(({"age": True}, "sample.where.age must be a number"), ({"age": []}, "sample.where.age is an empty list")),
        *(({"cost": None}, "'cost' is not nullable"), ({"sick": None}, "'sick' is not nullable")),
        ({"ward": ("a", "b")}, "sample.where.ward must be a list for several values"),
        ({"level": "high..low"}, "the range high..low ends before it begins"),
        ({"level": "low..top"}, "sample.where.level must be one of low, middle, high"),
        ({"seen": "yesterday.."}, "sample.where.seen must be a date like"),
    ],
)
def test_what_nobody_can_draw_is_refused(where: dict[str, Any], words: str) -> None:
    with pytest.raises(ParamsError, match=words):
        conditions(where, OPEN)


def test_a_command_line_and_a_bundle_keep_what_was_asked() -> None:
    where = pairs(["age=30..40", "ward=a", "ward=b", "ward=", "level=low=high"])
    assert where == {"age": "30..40", "ward": ["a", "b", None], "level": "low=high"}
    asked = {"age": [3, "30..40", None], "share": 0.25, "sick": "no", "ward": None}
    written = sample_request(Request(9, 0, asked))["where"]
    assert written == {"age": ["3", "30..40", None], "share": "0.25", "sick": "no", "ward": None}
    assert conditions(written, OPEN) == conditions(asked, OPEN)
