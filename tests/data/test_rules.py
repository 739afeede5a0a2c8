"""Rules of a schema: what may be written, what each says of rows, and the public map of private rows.

The rule ``calendar``: each date has one year, month and weekday, and comes back from them.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from ruled import COLUMNS, RULES, SCHEMA, YES, rows, ruled
from toys import schema_with

from likeness.core.errors import SchemaError
from likeness.data.encoding.bins import grid_of, unit_of
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import encoding_digest
from likeness.data.schema.allowed import Allowed, read
from likeness.data.schema.column import Column
from likeness.data.schema.constrained_tables import forward_transform, inverse_transform, values_of, violation_counts
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_frame
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.synthesizer import Synthesizer

NUMBERS = Column("x", "numeric", 0.0, 10.0)
WHOLE = Column("x", "integer", 0.0, 10.0, nullable=True)
CENTS = Column("x", "numeric", 0.0, 10.0, decimals=1)
WORDS = Column("x", "categorical", categories=("low", "middle", "high"), ordered=True, nullable=True)


def test_a_schema_is_written_and_read_with_its_rules() -> None:
    assert Schema.from_dict(SCHEMA.to_dict(), "again") == SCHEMA and SCHEMA.to_dict()["rules"] == RULES


def test_rules_belong_to_the_encoding_and_no_rules_leave_it() -> None:
    plain, other = ruled(rules=[], derived={}), ruled(derived={})
    assert len({encoding_digest(schema) for schema in (SCHEMA, plain, other)}) == 3
    assert encoding_digest(plain) == "4ca1d466a5505fc3cd028b8dd3965d8cdff72283b646f1f62ecf4ad361cb8e47"
    assert plain.model_schema is plain


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"if": {"age": "< 15"}}, "rule 1: needs a mapping from columns to values"),
        ({"if": {"age": "< 15"}, "then": {"state": "no"}}, "rule 1: state must be one of never, married, widowed"),
        ({"if": {"age": "< 15"}, "then": {"town": "x"}}, "rule 1: 'town' is not a column"),
        ({"if": {"age": "< 0"}, "then": {"sex": "F"}}, "rule 1: column 'age' has no value < 0"),
        ({"if": {"age": None}, "then": {"sex": "F"}}, "'age' is not nullable"),
        ({"if": {"age": "< 15"}, "then": {"age": 3}}, "'age' stands in if and in then"),
        ({"never": {"sex": "F"}}, "never needs two columns"),
        ({"never": {"place": "wife", "sex": ["F", "M"]}}, "leaves no value of 'sex'"),
        ({"never": {"place": "wife"}, "then": {"sex": "F"}}, "then is not a key of such a rule"),
        ({"always": {"sex": "F"}}, "must be a mapping with one of if, never"),
        ({"order": ["age", "came"]}, "'age' is integer, 'came' is date"),
        ({"order": ["age", "age"]}, "different columns"),
        ({"one_of": ["soil_1", "sex", "state"]}, "'state' must have two values"),
        ({"equal": ["both", ["a"]]}, "needs two parts or more"),
        ({"equal": ["both", ["a", float("inf")]]}, "needs two parts or more"),
        ({"equal": ["left", ["came", "left"]]}, "different columns"),
        ({"equal": ["left", ["came", "a"]]}, "'a' has more decimals than 'left'"),
        ({"equal": ["left", ["came", "years"]], "kind": "product"}, "must all be numbers"),
        ({"equal": ["age", ["income", "years"]], "kind": "difference"}, "'age' not. Set nullable: true"),
        ({"equal": ["age", ["a", "b"]]}, "'a' has more decimals than 'age'"),
        ({"equal": ["both", ["a", "b"]], "kind": "mean"}, "rule 1: kind must be one of sum, difference"),
        ({"equal": ["sick", ["soil_1", "soil_2"]]}, "must all be numbers"),
        ({"determines": ["school", "a"]}, "needs a table, because 'a' has no categories"),
        ({"determines": ["income", "years"]}, "needs a table, because 'income' has no categories"),
        ({"determines": ["school", "years"], "table": {"low": 4, "middle": 5}}, "no value for high of 'school'"),
        ({"determines": ["school", "years"], "table": {"low": "4..5"}}, "must be one value of 'years'"),
        ({"determines": ["age", "years"], "table": {"0..20": 4, "20..": 5}}, "gives '20..' of 'age' twice"),
        ({"determines": ["school", "sick"], "table": {"low..high": "yes"}}, "computes the label 'sick'"),
    ],
)
def test_what_a_rule_cannot_say(rule: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError) as error:
        ruled(rules=[rule], derived={})
    assert words in str(error.value) and str(error.value).startswith("toy.yaml: ")


@pytest.mark.parametrize(
    "derived", [{"stay": "left + came"}, {"age": "left - came"}, {"stay": "left - age"}, {"stay": "left - left"}]
)
def test_what_a_derived_column_cannot_be(derived: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="rule 1"):
        ruled(rules=[], derived=derived)


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        (RULES[0], {"if": {"age": "< 10"}, "then": {"state": ["married", "widowed"]}}, "state"),
        (RULES[1], {"if": {"place": "husband"}, "then": {"sex": "F"}}, "sex"),
        ({"never": {"sex": "F", "age": "< 50"}}, {"never": {"age": "40..", "sex": "F"}}, "age"),
    ],
)
def test_two_rules_that_leave_no_value_are_both_named(first: Any, second: Any, name: str) -> None:
    with pytest.raises(SchemaError) as error:
        ruled(rules=[first, second], derived={})
    message = str(error.value)
    assert "rule 1 (" in message and "rule 2 (" in message and f"no value of '{name}'" in message


def test_rules_that_only_imply_a_third_are_no_contradiction() -> None:
    one = {"if": {"age": "< 15"}, "then": {"state": "never"}}
    ruled(rules=[one, {"if": {"place": "wife"}, "then": {"state": "married"}}], derived={})


def test_no_column_is_computed_twice_or_from_a_computed_one() -> None:
    table = {"0..50": 3, "51..": 4}
    with pytest.raises(SchemaError, match="compute 'years' both"):
        ruled(rules=[*RULES, {"determines": ["age", "years"], "table": table}], derived={})
    again = {"determines": ["years", "age"], "table": {"0..10": 3, "11..20": 4}}
    with pytest.raises(SchemaError, match="reads 'years', which rule 7"):
        ruled(rules=[*RULES, again], derived={})


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"equal": ["x", ["a", "b", 0.5]]}, [8.5, np.nan, 6.5]),
        ({"equal": ["x", [2024, "a", "b"]], "kind": "difference"}, [2016.0, np.nan, 2018.0]),
        ({"equal": ["x", ["a", "b", "b"]], "kind": "product"}, [24.0, np.nan, 0.0]),
        ({"equal": ["x", ["a", "b", "b", 0.1]], "kind": "ratio"}, [15.0, np.nan, np.nan]),
        ({"equal": ["whole", ["a", 4]], "kind": "ratio"}, [2.0, 0.0, 2.0]),
        ({"equal": ["end", ["begin", "b"]]}, [12.0, np.nan, 30.0]),
    ],
)
def test_a_column_equals_what_the_rule_says(rule: dict[str, Any], expected: list[float]) -> None:
    """A ratio with 0 below is missing, a date is a date and days, and whole numbers are rounded."""
    whole = {"kind": "integer", "lower": 0, "upper": 20, "nullable": True}
    day = {"kind": "date", "lower": "1970-01-01", "upper": "1970-03-01", "nullable": True}
    columns: dict[str, Any] = {"x": {**whole, "kind": "numeric"}, "whole": whole, "a": whole, "b": whole}
    schema = schema_with({**columns, "begin": day, "end": day, "y": YES}, "y", rules=[rule])
    values = {"a": np.array([6.0, 1, 6]), "b": np.array([2.0, np.nan, 0]), "begin": np.array([10.0, 20, 30])}
    (computing,) = schema.constrained_table.computing
    np.testing.assert_allclose(computing.compute(values)[rule["equal"][0]], expected)


@pytest.mark.parametrize("column", [NUMBERS, WHOLE, CENTS, WORDS])
def test_complement_and_intersection_are_those_of_values(column: Column) -> None:
    """Of all conditions that words can say, on every value between 0 and 10 in steps of a tenth."""
    if column.is_categorical:
        words: list[Any] = ["low", "< high", [None, "high"], "middle..", ">= low", ["low", "high"]]
        values = np.array([0.0, 1, 2, np.nan])
    else:
        words = [3, "3..5", "< 3", "<= 3", "> 3", ">= 3", [1, "4..6", "> 8"], "..", ["2..3", "4..5"]]
        values = np.array([np.nan, *(np.arange(11) if column.is_integral else np.arange(101) / 10)])
        values = values if column.nullable else values[1:]
    conditions = [read(one, column, "key").restrict_to(column) for one in words]
    for given in conditions:
        holds, rest = given.holds(values, column), given.complement(column)
        assert (rest.holds(values, column) == ~holds).all() and rest.complement(column) == given
        for other in conditions:
            both = given.intersect(other, column)
            assert (both.holds(values, column) == (holds & other.holds(values, column))).all()


def test_the_nearest_value_is_allowed() -> None:
    given = Allowed(ranges=((1.0, 2.0), (7.0, 8.0)))
    assert given.nearest(np.array([0.0, 1.5, 4.0, 5.0, 9.0, np.nan])).tolist() == [1.0, 1.5, 2.0, 7.0, 8.0, 1.0]


def test_private_rows_keep_the_rules_after_the_map_and_others_do_not_change() -> None:
    """Of the rules about modeled columns: the others compute their columns in every synthetic row."""
    table = rows(2_000)
    values = values_of(table, SCHEMA.columns)
    assert all(rule.violations(values).any() for rule in SCHEMA.rules)
    mapped = forward_transform(table, SCHEMA)
    assert list(mapped) == list(SCHEMA.model_schema.names)
    after = values_of(mapped, SCHEMA.model_schema.columns)
    assert len(SCHEMA.model_schema.rules) == 3 and not any(
        rule.violations(after).any() for rule in SCHEMA.model_schema.rules
    )
    innocent = ~np.logical_or.reduce([rule.violations(values) for rule in SCHEMA.model_schema.rules])
    both = [name for name in SCHEMA.names if name in mapped]
    assert innocent.any() and mapped.loc[innocent, both].equals(table.loc[innocent, both])


@pytest.mark.long
def test_the_map_sees_each_row_by_itself() -> None:
    """Neighbors stay neighbors: a row added, removed or replaced, or all rows of a person, moves no other row."""
    table, others = rows(60), rows(60, seed=1)
    mapped = forward_transform(table, SCHEMA)
    for place in range(60):
        without = forward_transform(table.drop(index=place), SCHEMA)
        assert without.equals(mapped.drop(index=place))
        replaced = forward_transform(pd.concat([table.drop(index=place), others.iloc[[place]]]), SCHEMA)
        assert replaced.iloc[:-1].equals(mapped.drop(index=place))
    person = [3, 20, 21, 59]
    assert forward_transform(table.drop(index=person), SCHEMA).equals(mapped.drop(index=person))


def test_computed_columns_follow_from_modeled_ones() -> None:
    modeled = forward_transform(rows(2_000), SCHEMA)
    table, rejected = inverse_transform(modeled, SCHEMA)
    keep = ~np.logical_or.reduce(list(rejected.values()))
    assert list(table) == list(SCHEMA.names) and keep.any() and not keep.all()
    table, modeled = table[keep], modeled[keep]
    assert violation_counts(table, SCHEMA) == dict.fromkeys([rule.text for rule in SCHEMA.rules], 0)
    assert (table["both"] - table["a"] - table["b"]).abs().max() < 1e-9
    assert table["both"].isna().equals(table["b"].isna())
    days = (pd.to_datetime(table["left"]) - pd.to_datetime(table["came"])).dt.days
    assert (days == modeled["stay"]).all() and days.between(0, 30).all()
    assert (table["years"] == table["school"].astype(str).map({"low": 4, "middle": 10, "high": 13})).all()
    chosen = table[["soil_1", "soil_2", "soil_3"]].astype(str) == "true"
    assert (chosen.sum(axis=1) == 1).all()
    assert (chosen.idxmax(axis=1) == modeled["one of soil_1 to soil_3"].astype(str)).all()


def test_a_row_beyond_the_bounds_of_a_computed_column_is_rejected() -> None:
    modeled = forward_transform(rows(500), SCHEMA).assign(a=10.0, b=9.0)
    _, rejected = inverse_transform(modeled, SCHEMA)
    assert rejected[f"bounds of what {SCHEMA.rules[5]} computes"].all()


def test_a_bin_begins_where_a_rule_begins_to_hold() -> None:
    column = SCHEMA.model_schema.column("age")
    assert column.cuts == (3.0, 15.0)
    lows = grid_of(column, 7).lows
    assert unit_of(column, 15) in lows and unit_of(column, 15) not in grid_of(SCHEMA.column("age"), 7).lows
    columns = {**COLUMNS, "share": {"kind": "numeric", "lower": 0, "upper": 1}}
    share = ruled(columns=columns, rules=[{"if": {"share": "< 0.3"}, "then": {"sex": "F"}}]).model_schema.column(
        "share"
    )
    assert 0.3 in grid_of(share, 7).edges


def test_a_rule_cannot_name_private_categories() -> None:
    columns = {**COLUMNS, "town": {"kind": "categorical", "categories": "private"}}
    with pytest.raises(SchemaError, match="rule 1: column 'town' has private categories"):
        ruled(columns=columns, rules=[{"never": {"town": "x", "sex": "F"}}], derived={})


def test_encoded_rows_are_those_of_the_modeled_schema() -> None:
    encoder = Encoder(SCHEMA.model_schema)
    codes = encoder.encode(forward_transform(rows(200), SCHEMA))
    assert encoder.decode_codes(codes).equals(forward_transform(rows(200), SCHEMA))


VISIT: dict[str, Any] = {
    "came": {"kind": "date", "lower": "2019-03-05", "upper": "2023-10-20", "nullable": True},
    "left": {"kind": "date", "lower": "2019-03-05", "upper": "2023-12-31", "nullable": True},
}


def schema(columns: dict[str, Any] | None = None, **keys: Any) -> Schema:
    content = {"name": "visits", "source": "made up", "task": "none", "columns": columns or VISIT}
    return Schema.from_dict({**content, "rules": [{"calendar": "came"}], **keys}, "visits.yaml")


def typed(came: list[str | None], left: list[str | None], of: Schema) -> pd.DataFrame:
    return read_frame(pd.DataFrame({"came": came, "left": left}, dtype="str"), of)


def test_every_day_comes_back_from_its_year_month_and_weekday() -> None:
    of = schema()
    days = pd.date_range("2019-03-05", "2023-10-20").strftime("%Y-%m-%d").tolist()
    rows = typed([*days, None], [*days, None], of)
    model = forward_transform(rows, of)
    assert list(model) == ["year of came", "month of came", "weekday of came", "left"]
    assert model.iloc[0, 1:3].tolist() == ["March", "Tuesday"] and model.iloc[-2, 1:3].tolist() == ["October", "Friday"]
    assert model["year of came"].iloc[:-1].astype(int).tolist() == [int(day[:4]) for day in days]
    assert model.iloc[-1].isna().all()
    back, rejected = inverse_transform(model, of)
    pd.testing.assert_frame_equal(back, rows)
    assert not np.any(list(rejected.values()))


def test_any_place_within_a_year_is_a_day_of_its_month_and_weekday() -> None:
    of = schema()
    model = forward_transform(typed(["2020-02-29"] * 100, ["2020-02-29"] * 100, of), of)
    model["year of came"] = np.linspace(2020, 2020.9999, 100)
    came = inverse_transform(model, of)[0]["came"].astype(str)
    assert came.value_counts().to_dict() == dict.fromkeys([f"2020-02-{day:02}" for day in (1, 8, 15, 22, 29)], 20)


def test_a_date_beyond_its_bounds_or_without_a_part_is_rejected() -> None:
    of = schema()
    model = forward_transform(typed(["2019-03-20"] * 3 + [None], ["2020-01-01"] * 4, of), of)
    model.loc[1, "month of came"] = "February"
    model.loc[2, "weekday of came"] = None
    rows, rejected = inverse_transform(model, of)
    assert np.any(list(rejected.values()), axis=0).tolist() == [False, True, True, False]
    assert rows["came"].isna().tolist()[::3] == [False, True]


def test_a_private_date_beyond_its_bounds_counts_as_the_bound() -> None:
    of = schema()
    early, bound = (forward_transform(typed([day], [day], of), of) for day in ("1990-01-01", "2019-03-05"))
    pd.testing.assert_frame_equal(early, bound)


def test_a_difference_to_the_date_is_modeled_beside_it() -> None:
    of = schema(derived={"stay": {"is": "left - came", "lower": 0, "upper": 30}})
    rows = typed(["2020-02-27", "2021-12-31"], ["2020-03-01", "2022-01-01"], of)
    model = forward_transform(rows, of)
    assert list(model) == ["year of came", "month of came", "weekday of came", "stay"]
    assert model["stay"].tolist() == [3, 1]
    pd.testing.assert_frame_equal(inverse_transform(model, of)[0], rows)


def test_bins_begin_with_a_year_where_there_are_few() -> None:
    assert schema().model_schema.column("year of came").cuts == (2020, 2021, 2022, 2023)
    long = schema({**VISIT, "came": {"kind": "date", "lower": "1900-01-01", "upper": "2023-12-31"}})
    assert long.model_schema.column("year of came").cuts == ()


@pytest.mark.parametrize(
    ("days", "years"),
    [
        *((("2020-01-01", "2021-12-31"), (2020, 2022)), (("2000-01-01", "2019-12-31"), (2019, 2020))),
        *((("2023-01-01", "2023-10-20"), (2023, 2024)), (("2020-01-02", "2021-12-31"), None)),
        (("2020-01-01", "2021-12-30"), None),
    ],
)
def test_a_condition_on_whole_years_draws_these_years(days: tuple[str, str], years: tuple[int, int] | None) -> None:
    """The model knows years, so no row needs to be rejected. Ends of the bounds count as ends of years."""
    ends = np.array(days, dtype="datetime64[D]").astype(float).tolist()
    given = {"came": Allowed(ranges=((ends[0], ends[1]),), missing=True)}
    exact, rest = schema().constrained_table.translate(given)
    if years is None:
        assert (exact, rest) == ({}, given)
    else:
        ((low, high),) = exact["year of came"].ranges
        assert low == years[0] and np.floor(high) == years[1] - 1 and years[1] - high < 1e-9
        assert exact["year of came"].missing and not rest


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"came": {"kind": "integer", "lower": 0, "upper": 9}}, "rule 1: calendar needs a date, but 'came' is integer"),
        ({"came": {"kind": "datetime", "lower": "2019-01-01", "upper": "2020-01-01"}}, "'came' is datetime"),
        ({**VISIT, "month of came": {"kind": "boolean"}}, "'month of came' is already a column. Rename it."),
    ],
)
def test_what_a_calendar_cannot_be(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError) as error:
        schema(columns)
    assert words in str(error.value)


@pytest.mark.long
def test_synthetic_visits_keep_weekdays_months_and_stays() -> None:
    """Few visits begin on weekends, and none in July. The noise at epsilon 10 moves a share by less than .005."""
    days, random = pd.date_range("2019-03-05", "2023-10-20"), np.random.default_rng(0)
    weight = np.where(np.asarray(days.day_of_week) > 4, 0.1, 1.0) * (np.asarray(days.month) != 7)
    came = days[random.choice(len(days), 5000, p=weight / weight.sum())]
    table = pd.DataFrame({"came": came, "left": came + pd.to_timedelta(random.integers(0, 5, 5000), unit="D")})
    of = schema(derived={"stay": {"is": "left - came", "lower": 0, "upper": 30}})
    Ledger.create(locate())
    model = Synthesizer(schema=of, population="visitors", epsilon=10.0, device="cpu")
    rows = model.fit(table.astype("str")).sample(5000).astype("datetime64[s]")
    assert (rows["came"].dt.day_of_week > 4).mean() == pytest.approx(
        (table["came"].dt.day_of_week > 4).mean(), abs=0.03
    )
    assert (rows["came"].dt.month == 7).mean() < 0.02
    assert (rows["left"] - rows["came"]).dt.days.between(0, 5).mean() > 0.97
