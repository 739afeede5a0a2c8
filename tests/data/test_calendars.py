"""The rule ``calendar``: each date has one year, month and weekday, and comes back from them."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from likeness.core.errors import SchemaError
from likeness.data.schema.allowed import Allowed
from likeness.data.schema.constrained_tables import forward_transform, inverse_transform
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_frame
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.synthesizer import Synthesizer

COLUMNS: dict[str, Any] = {
    "came": {"kind": "date", "lower": "2019-03-05", "upper": "2023-10-20", "nullable": True},
    "left": {"kind": "date", "lower": "2019-03-05", "upper": "2023-12-31", "nullable": True},
}


def schema(columns: dict[str, Any] | None = None, **keys: Any) -> Schema:
    content = {"name": "visits", "source": "made up", "task": "none", "columns": columns or COLUMNS}
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
    long = schema({**COLUMNS, "came": {"kind": "date", "lower": "1900-01-01", "upper": "2023-12-31"}})
    assert long.model_schema.column("year of came").cuts == ()


@pytest.mark.parametrize(
    ("days", "years"),
    [
        (("2020-01-01", "2021-12-31"), (2020, 2022)),
        (("2000-01-01", "2019-12-31"), (2019, 2020)),
        (("2023-01-01", "2023-10-20"), (2023, 2024)),
        (("2020-01-02", "2021-12-31"), None),
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
        ({**COLUMNS, "month of came": {"kind": "boolean"}}, "'month of came' is already a column. Rename it."),
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
