"""Rules that ``likeness check`` proposes from names."""

from typing import Any

import pandas as pd
import pytest
from toys import schema_with

import likeness
from likeness.core.errors import SchemaError
from likeness.data.schema.rule_proposals import rule_text, sections

YES = {"kind": "boolean"}
DAY = {"kind": "date", "lower": "2020-01-01", "upper": "2020-12-31"}
SEX = {"kind": "categorical", "categories": ["Female", "Male"]}
SCHOOL = {"kind": "categorical", "categories": ["low", "high"]}
NUMBER = {"kind": "integer", "lower": 0, "upper": 9}
LABEL = {"sick": {"kind": "boolean"}}
HUSBAND = {"never": {"place": "Husband", "sex": "Female"}}
PLACE = {"place": {"kind": "categorical", "categories": ["Husband", "child"]}, "sex": SEX}
BIG = {"kind": "integer", "lower": 0, "upper": 15}
AGE = {"kind": "integer", "lower": 0, "upper": 100}
BORN = {"kind": "integer", "lower": 1920, "upper": 2020}
CLASSES = {"kind": "categorical", "categories": ["under 18", "18 bis 64", "65 and over"]}
RANGES = {"0..17": "under 18", "18..64": "18 bis 64", "65..100": "65 and over"}
OLD = {
    "determines": ["alter", "Altersklasse"],
    "table": {**{key: RANGES[key] for key in ("0..17", "18..64")}, "65..90": "65 and over"},
}
INCOME = {"equal": ["Income total", ["income_work", "income_rent"]]}
WIFE = {"never": {"Rolle": "Ehefrau", "Geschlecht": "männlich"}}


def tie(first: str, second: str) -> dict[str, Any]:
    return {"determines": [first, second]}


def between(first: str, second: str) -> dict[str, Any]:
    return {"derived": {f"{first} to {second}": {"is": f"{second} - {first}", "lower": 0}}}


def index(height: str, *factor: float) -> dict[str, Any]:
    return {"equal": ["bmi", ["weight", height, height, *factor]], "kind": "ratio"}


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({f"soil_{place}": YES for place in range(1, 5)}, [{"one_of": ["soil_*"]}]),
        ({"a1": YES, "a2": YES, "a3": YES, "ab": YES}, [{"one_of": ["a1", "a2", "a3"]}]),
        ({"a1": YES, "a2": YES}, []),
        ({"a1": YES, "a2": YES, "a3": {**YES, "nullable": True}}, []),
        ({"a1": DAY, "a2": DAY, "a3": DAY}, []),
        ({"school": SCHOOL, "school-num": NUMBER}, [tie("school", "school-num")]),
        ({"school": SCHOOL, "school_code": SCHOOL}, [{"determines": ["school", "school_code"]}]),
        ({"town": {"kind": "categorical", "categories": "private", "other": "-"}, "town_code": NUMBER}, []),
        (
            {"school": SCHOOL, "school-nr": {**NUMBER, "upper": 500}},
            [{"determines": ["school", "school-nr"], "table": "?"}],
        ),
        ({"discharged": DAY, "admitted": DAY}, [between("admitted", "discharged")]),
        ({"Start_date": DAY, "End_date": DAY}, [between("Start_date", "End_date")]),
        ({"start": {**DAY, "nullable": True}, "end": DAY}, [{"order": ["start", "end"]}]),
        ({"start": DAY, "end": {**DAY, "kind": "datetime"}}, []),
        ({"in": NUMBER, "out": NUMBER}, []),
        ({"temp_min": NUMBER, "temp_max": NUMBER}, [{"order": ["temp_min", "temp_max"]}]),
        ({"admission": DAY, "discharge": DAY, "stay": NUMBER}, [{"equal": ["discharge", ["admission", "stay"]]}]),
        ({"Income total": BIG, "income_work": NUMBER, "income_rent": NUMBER}, [INCOME]),
        ({"income_total": NUMBER, "income_work": NUMBER}, []),
        ({"age": AGE, "age_group": CLASSES}, [{"determines": ["age", "age_group"], "table": RANGES}]),
        ({"age": AGE, "Altersklasse": CLASSES, "alter": {**AGE, "upper": 90}}, [OLD]),
        ({"age": AGE, "age_class": SCHOOL}, [{"determines": ["age", "age_class"], "table": "?"}]),
        ({"town": SCHOOL, "state": SEX, "county": SEX}, [tie("town", "county"), tie("town", "state")]),
        ({"height": {**NUMBER, "lower": 40, "upper": 84}, "weight": BIG, "bmi": BIG}, [index("height", 0.0014225)]),
        (
            {"height": {**NUMBER, "lower": 1, "upper": 2.5, "kind": "numeric"}, "weight": BIG, "bmi": BIG},
            [index("height")],
        ),
        ({"height": {**NUMBER, "lower": 1, "upper": 9}, "weight": BIG, "bmi": BIG}, []),
        ({"age": AGE, "born": BORN, "year": BORN}, []),  # off by a year before a birthday
        (PLACE, [HUSBAND]),
        (
            {
                "Rolle": {**SCHOOL, "categories": ["Ehefrau", "Kind"]},
                "Geschlecht": {**SEX, "categories": ["männlich", "x"]},
            },
            [WIFE],
        ),
        ({"colour": {"kind": "categorical", "categories": ["red", "blue"]}, "sex": SEX}, []),
    ],
)
def test_names_suggest_rules(columns: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    assert schema_with({**columns, **LABEL}, "sick").proposals() == expected


def test_what_the_schema_says_is_not_proposed() -> None:
    assert schema_with({**PLACE, **LABEL}, "sick", rules=[HUSBAND]).proposals() == []


@pytest.mark.parametrize("code", [SCHOOL, NUMBER])
def test_no_rule_computes_the_label(code: dict[str, Any]) -> None:
    task = "regression" if code == NUMBER else "classification"
    assert schema_with({"school": SCHOOL, "school_code": code, **LABEL}, "school_code", task=task).proposals() == []


WORDS = ("height", "weight", "bmi", "quantity", "price", "total", "born", "age", "town", "county", "day_in", "day_out")
GERMAN = (
    *("Körpergröße", "Gewicht", "BMI", "Menge", "Stückpreis", "Gesamtbetrag", "Geburtsjahr", "Alter"),
    *("Gemeinde", "Landkreis", "Aufnahmetag", "Entlassungsdatum"),
)
OTHER = (
    *("ht_cm", "WeightKg", "body mass index", "qty", "unit price", "Amount (EUR)", "year of birth", "Age (years)"),
    *("city", "district", "AdmissionDay", "discharge.day"),
)
SHORT = (
    "hgt",
    "wt",
    "bmi",
    "anzahl",
    "Preis",
    "Summe",
    "Jahrgang",
    "alter",
    "Ort",
    "kreis",
    "check-in date",
    "check-out date",
)


@pytest.mark.parametrize("names", [WORDS, GERMAN, OTHER, SHORT])
def test_a_stranger_finds_ties_in_german_and_other_english(names: tuple[str, ...]) -> None:
    """Four rules, whatever the names, and all of them together are rules."""
    numbers = ((100, 230), (20, 250), (10, 80), (1, 50), (0, 1000), (0, 20000), (1920, 2010), (14, 104))
    columns = [*({**NUMBER, "lower": low, "upper": high} for low, high in numbers), SCHOOL, SEX, NUMBER, NUMBER]
    h, w, bmi, quantity, price, total, _, _, town, county, first, last = names
    expected = [
        {"equal": [bmi, [w, h, h, 0.0001]], "kind": "ratio"},
        {"equal": [total, [quantity, price]], "kind": "product"},
        tie(town, county),
        between(first, last),
    ]
    given = {**dict(zip(names, columns, strict=True)), **LABEL}
    assert schema_with(given, "sick").proposals() == expected
    said = sections(expected)
    assert not schema_with(given, "sick", rules=said["rules"], derived=said["derived"]).proposals()


def test_equal_names_and_dtypes_give_equal_drafts() -> None:
    """Rows say nothing: neither in the draft nor in what it proposes."""
    tables = [
        pd.DataFrame(
            {
                "born": [1950, year],
                "bmi": [7, 7],
                "height": [7, 7],
                "admitted": [day] * 2,
                "discharged": [day] * 2,
                "weight": [low, 1.5],
            }
        )
        for year, day, low in ((1990, pd.Timestamp("2020-01-01"), 0.0), (2050, pd.Timestamp("1066-01-01"), -1e9))
    ]
    drafts = [likeness.draft(table) for table in tables]
    assert drafts[0].text() == drafts[1].text() and repr(drafts[0]) == repr(drafts[1])
    assert drafts[0].proposals() == drafts[1].proposals() == [
        {"equal": ["bmi", ["weight", "height", "height", "?"]], "kind": "ratio"}, between("admitted", "discharged")
    ]  # fmt: skip


def test_a_confirmed_proposal_is_a_rule_of_the_schema() -> None:
    draft = likeness.draft(
        pd.DataFrame({"bmi": [1.5], "weight": [1.5], "height": [1], "admitted": [1], "discharge_day": [1]})
    )
    with pytest.raises(SchemaError, match="has an open part"):
        draft.confirm(draft.proposals())
    assert f"#   {rule_text(draft.proposals()[1])}" in draft.text()
    draft.source, draft.nullable = "codebook", "none"
    numbers = {"bmi": (10, 80), "weight": (20, 250), "height": (120, 230)}
    for name, bounds in {**numbers, "admitted": (0, 9), "discharge_day": (0, 9)}.items():
        assert not draft.offered()
        draft[name].bounds = bounds
    assert all(f"#   {rule_text(spec)}" in repr(draft) for spec in draft.offered())
    draft.answer_key("rules", "all")
    assert [rule.kind for rule in draft.complete().rules] == ["equal", "derived"]
    assert not draft.proposals() and not draft.open_keys()["rules"]
