"""Conditions on drawn rows: what may be asked, and that rows then are as the model has them."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from likeness.core.errors import DataError, ParamsError
from likeness.data.encoding.bins import grid_of
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import Condition
from likeness.data.schema.schema import Schema
from likeness.features.cells import Cells
from likeness.methods.marginals.columns import cells_of_number
from likeness.methods.marginals.mixture import MixtureColumn, ProductMixture
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.datasets.table import Table
from likeness.pipeline.drawn_rows import DrawnRows
from likeness.pipeline.synthetic_table import Request, sample_request
from likeness.pipeline.where import conditions, pairs

SCHEMA = Schema.from_dict(
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
NAMES = list(SCHEMA.names)
ROWS = 20_000


def of(column: str, value: Any) -> Condition:
    """The condition on one feature column."""
    return conditions({column: value}, SCHEMA)[1][NAMES.index(column)]


@pytest.fixture(scope="module")
def saved() -> SavedGenerator:
    """A mixture of four products with random probabilities, whose columns depend on each other."""
    starts, columns = Encoder(SCHEMA).layout.starts, []
    for column in SCHEMA.feature_columns:
        start = starts[column.name]
        if column.is_categorical:
            columns.append(MixtureColumn(Cells(start, column.width)))
        else:
            grid = grid_of(column, 4)
            columns.append(MixtureColumn(cells_of_number(column, start, grid), grid.edges, grid.lows, grid.highs))
    mixture, random = ProductMixture(columns, 2, 4, Encoder(SCHEMA).layout.width), np.random.default_rng(0)
    mixture.load({name: 1.5 * random.standard_normal(array.shape) for name, array in mixture.arrays().items()})
    return SavedGenerator(mixture, (0.3, 0.7), {})


@pytest.fixture(scope="module")
def everything(saved: SavedGenerator) -> pd.DataFrame:
    return Table(SCHEMA).draw([saved], 10 * ROWS, 1, {})["synthetic"]


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
    drawn = Table(SCHEMA).draw([saved], ROWS, 0, where)["synthetic"]
    assert meets(drawn).all() and (where != {"share": 0.5} or (drawn["share"] == 0.5).all())
    expected, encoder = everything[meets(everything)], Encoder(SCHEMA)
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
    drawn = DrawnRows(saved, SCHEMA).complete(given, 0)
    assert list(drawn.index) == [4, 3, 2, 1] and list(drawn.columns) == NAMES
    assert drawn["age"].tolist()[::2] == [30, 30] and drawn["age"].isna().tolist() == [False, True, False, False]
    assert drawn["sick"].tolist() == ["yes", "no", "yes", "yes"] and (drawn["share"] == given["share"]).all()
    assert (days(drawn) == given["seen"]).all() and (drawn["cost"] == given["cost"]).all()
    assert drawn.equals(DrawnRows(saved, SCHEMA).complete(given, 0))
    many = DrawnRows(saved, SCHEMA).complete(pd.concat([given] * 50), 1)
    alike = many[many["age"] == 30]
    assert alike["ward"].nunique() > 1 and alike["level"].nunique() > 1  # the rest is drawn
    for wrong, kind, words in (
        (given.rename(columns={"age": "old"}), ParamsError, "must be one of age, cost"),
        (given.assign(cost=None), DataError, "column 'cost' has a missing value"),
        (given.assign(sick="maybe"), DataError, "not among its public categories"),
    ):
        with pytest.raises(kind, match=words):
            DrawnRows(saved, SCHEMA).complete(wrong, 0)


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
    assert conditions({"sick": "no"}, SCHEMA) == ((0,), {})


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"sex": 1}, "sample.where.sex must be one of age, cost"),
        ({"age": "old"}, r"sample.where.age must be a number, a range like 30..40"),
        ({"age": [3, "9..7"]}, "the range 9..7 ends before it begins"),
        ({"age": (30.2, 30.8)}, "column 'age' has no such value. Its values are"),
        ({"age": True}, "sample.where.age must be a number"),
        ({"age": []}, "sample.where.age is an empty list"),
        ({"cost": None}, "'cost' is not nullable"),
        ({"sick": None}, "'sick' is not nullable"),
        ({"ward": ("a", "b")}, "sample.where.ward must be a list for several values"),
        ({"level": "high..low"}, "the range high..low ends before it begins"),
        ({"level": "low..top"}, "sample.where.level must be one of low, middle, high"),
        ({"seen": "yesterday.."}, "sample.where.seen must be a date like"),
    ],
)
def test_what_nobody_can_draw_is_refused(where: dict[str, Any], words: str) -> None:
    with pytest.raises(ParamsError, match=words):
        conditions(where, SCHEMA)


def test_a_command_line_and_a_bundle_keep_what_was_asked() -> None:
    where = pairs(["age=30..40", "ward=a", "ward=b", "ward=", "level=low=high"])
    assert where == {"age": "30..40", "ward": ["a", "b", None], "level": "low=high"}
    asked = {"age": [3, "30..40", None], "share": 0.25, "sick": "no", "ward": None}
    written = sample_request(Request(9, 0, asked))["where"]
    assert written == {"age": ["3", "30..40", None], "share": "0.25", "sick": "no", "ward": None}
    assert conditions(written, SCHEMA) == conditions(asked, SCHEMA)
