"""The forecast of what noise leaves of relations and shares, from public facts alone."""

from typing import Any

import pytest

from likeness import Synthesizer
from likeness.methods import METHODS
from likeness.methods.expected import RELATION, PairNoise, expect_noise

LIKERT = {f"q{number:02}": {"kind": "integer", "lower": 1, "upper": 5} for number in range(24)}


def survey(epsilon: float = 1.0, columns: Any = LIKERT, **schema: Any) -> Synthesizer:
    document = {"name": "survey", "source": "a questionnaire", "task": "none", "columns": columns, **schema}
    return Synthesizer(epsilon=epsilon, schema=document, population="answers")


def test_a_small_survey_of_many_questions_is_never_called_ok() -> None:
    """A thousand answers to 24 questions, whose relations of medium strength noise hides."""
    report = survey().check(1_000)
    (found,) = report.forecast.expected
    assert found.pairs == found.lost == 276 and found.detectable > 0.5 and not report.passes
    sigma = 31  # of a cell of 24 columns at about a third of the budget
    assert found.column_distance == pytest.approx(0.22 * 5 * sigma / 1_000, rel=0.1)
    text = str(report)
    assert "NOT ENOUGH: 1,000 records" in text and "strength 0.3 is lost in 276 of 276 pairs" in text
    assert "ok: 1,000 records" not in text and "would help: epsilon 2" in text and "half of the columns" in text


def test_many_records_keep_every_relation_and_few_pairs_lost_are_named() -> None:
    assert "ok: 200,000 records" in str(survey().check(200_000)).replace("delta", "")
    wide = {"kind": "categorical", "categories": [f"c{number}" for number in range(60)]}
    columns = {**{name: LIKERT[name] for name in ("q00", "q01", "q02", "q03")}, "town": wide, "job": wide}
    report = survey(columns=columns).check(30_000)
    (found,) = report.forecast.expected
    assert 0 < found.lost < found.pairs / 2 and set(found.hardest_pair) == {"town", "job"} and report.passes
    assert "IN PART: 30,000 records" in str(report) and "as town and job" in str(report)


@pytest.mark.long
def test_noise_falls_with_records_and_epsilon_and_grows_with_columns() -> None:
    (one,), (more,) = (survey(epsilon).check(5_000).forecast.expected for epsilon in (1.0, 4.0))
    (records,) = survey().check(20_000).forecast.expected
    (few,) = survey(columns=dict(list(LIKERT.items())[:6])).check(5_000).forecast.expected
    for better in (more, records, few):
        assert better.detectable < one.detectable and better.column_distance < one.column_distance
        assert better.pair_distance < one.pair_distance and better.category_share < one.category_share


@pytest.mark.long
def test_the_number_of_records_for_relations_is_enough_and_no_less_is() -> None:
    needed = survey().check(1_000).forecast.relation_records
    assert needed is not None
    for rows, enough in ((needed, True), (round(0.98 * needed), False)):
        (found,) = survey().check(rows).forecast.expected
        assert (found.detectable <= RELATION) is enough


def test_a_label_has_classes_that_noise_hides() -> None:
    answer = {"kind": "categorical", "categories": ["no", "yes"]}
    columns = {**dict(list(LIKERT.items())[:5]), "answer": answer}
    labeled = survey(columns=columns, task="classification", label="answer")
    (found,) = labeled.check(2_000).forecast.expected
    assert found.pairs == 15 and found.class_share == pytest.approx(4 * 21.54 / 2_000, rel=0.01)
    assert survey().check(2_000).forecast.expected[0].class_share is None


@pytest.mark.skipif("merf" not in METHODS, reason="no method that is here has no cells")
def test_a_method_without_cells_says_nothing_about_relations() -> None:
    report = Synthesizer(method="merf", schema=survey().schema, population="answers").check(50_000)
    assert report.forecast.expected == () and report.forecast.relation_records is None
    assert "survive" not in str(report) and "relation" not in str(report)


def test_pairs_of_a_sort_count_as_often_as_there_are() -> None:
    sorts = [PairNoise(9, ("a", "b"), 1, 0.01, (1.0, 1.0)), PairNoise(1, ("c", "d"), 1, 1.0, (1.0, 1.0))]
    found = expect_noise(sorts, 5.0, 0.01, None, None)
    assert found.pairs == 10 and found.lost == 1 and found.hardest_pair == ("c", "d") and found.detectable < 0.1
    assert expect_noise(sorts, 1e6, 0.01, None, None).pair_distance == 1.0
