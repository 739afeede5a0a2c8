"""Rules that ``likeness check`` proposes from names."""

from typing import Any

import pytest
from toys import schema_with

from likeness.data.schema.rule_proposals import proposed

YES = {"kind": "boolean"}
DAY = {"kind": "date", "lower": "2020-01-01", "upper": "2020-12-31"}
SEX = {"kind": "categorical", "categories": ["Female", "Male"]}
SCHOOL = {"kind": "categorical", "categories": ["low", "high"]}
NUMBER = {"kind": "integer", "lower": 0, "upper": 9}
LABEL = {"sick": {"kind": "boolean"}}
HUSBAND = {"never": {"place": "Husband", "sex": "Female"}}
PLACE = {"place": {"kind": "categorical", "categories": ["Husband", "child"]}, "sex": SEX}


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({f"soil_{place}": YES for place in range(1, 5)}, [{"one_of": ["soil_*"]}]),
        ({"a1": YES, "a2": YES, "a3": YES, "ab": YES}, [{"one_of": ["a1", "a2", "a3"]}]),
        ({"a1": YES, "a2": YES}, []),
        ({"a1": YES, "a2": YES, "a3": {**YES, "nullable": True}}, []),
        ({"a1": DAY, "a2": DAY, "a3": DAY}, []),
        ({"school": SCHOOL, "school-num": NUMBER}, [{"determines": ["school", "school-num"], "table": "?"}]),
        ({"school": SCHOOL, "school_code": SCHOOL}, [{"determines": ["school", "school_code"]}]),
        ({"town": {"kind": "categorical", "categories": "private", "other": "-"}, "town_code": NUMBER}, []),
        ({"discharged": DAY, "admitted": DAY}, [{"order": ["admitted", "discharged"]}]),
        ({"Start_date": DAY, "End_date": DAY}, [{"order": ["Start_date", "End_date"]}]),
        ({"start": DAY, "end": {**DAY, "kind": "datetime"}}, []),
        (PLACE, [HUSBAND]),
        ({"colour": {"kind": "categorical", "categories": ["red", "blue"]}, "sex": SEX}, []),
    ],
)
def test_names_suggest_rules(columns: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    assert proposed(schema_with({**columns, **LABEL}, "sick")) == expected


def test_what_the_schema_says_is_not_proposed() -> None:
    assert proposed(schema_with({**PLACE, **LABEL}, "sick", rules=[HUSBAND])) == []


@pytest.mark.parametrize("code", [SCHOOL, NUMBER])
def test_no_rule_computes_the_label(code: dict[str, Any]) -> None:
    task = "regression" if code == NUMBER else "classification"
    assert proposed(schema_with({"school": SCHOOL, "school_code": code, **LABEL}, "school_code", task=task)) == []
