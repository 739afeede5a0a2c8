"""Every method plans a table with private categories, and works with as many of them as are released, or none."""

from dataclasses import replace
from pathlib import Path

import pytest
from method_examples import ONLY_IMAGES
from toys import schema_with

from likeness.config.load import load_params
from likeness.methods import METHODS
from likeness.pipeline.project import Project
from likeness.privacy.calibration import epsilon_of_rho

ROOT = Path(__file__).parents[2]
TABLES = sorted(set(METHODS) - {*ONLY_IMAGES})
SCHEMA = schema_with(
    {
        "a": {"kind": "numeric", "lower": 0, "upper": 1},
        "b": {"kind": "categorical", "categories": "private", "nullable": True},
        "c": {"kind": "categorical", "categories": "private", "other": "rest"},
        "y": {"kind": "categorical", "categories": ["no", "yes"]},
    },
    "y",
)


@pytest.mark.parametrize("name", TABLES)
def test_every_method_leaves_a_share_for_categories(name: str) -> None:
    params = replace(load_params(ROOT / "params.yaml"), method=name)
    project = Project(ROOT, params, SCHEMA)
    plan, listed = project.plan, replace(project, given_schema=SCHEMA.with_stand_ins(params.categories.most)).plan
    assert [query.query for query in plan.queries[:2]] == ["categories_1", "categories_2"]
    assert [query.query for query in plan.queries[2:]] == [query.query for query in listed.queries]
    for own, other in zip(plan.queries[2:], listed.queries, strict=True):
        assert own.share == pytest.approx(0.9 * other.share) and own.delta_keys == other.delta_keys == 0
    assert 0.99 < epsilon_of_rho(plan.rho, 1e-5 - plan.delta_keys) <= 1
    assert epsilon_of_rho(listed.rho, 1e-5) <= 1 and not listed.delta_keys


@pytest.mark.parametrize("released", [[], ["u"], ["u", "v", "w"]], ids=["none", "one", "three"])
@pytest.mark.parametrize("name", TABLES)
def test_every_method_asks_and_draws_whatever_was_released(name: str, released: list[str]) -> None:
    params = replace(load_params(ROOT / "params.yaml"), method=name)
    project = Project(ROOT, params, SCHEMA)
    facts, recipe = project.context_of(SCHEMA.with_categories({"b": released, "c": released})), project.method
    assert facts.layout.width == 1 + (len(released) + 2) + (len(released) + 1)
    foreseen = recipe.planned_queries(project.context_of(SCHEMA.with_stand_ins(params.categories.most)))
    most = {query.name: query.width for query in foreseen}
    for query in recipe.planned_queries(facts):
        assert 0 < query.width <= most[query.name]  # what was planned for is enough
    assert recipe.build_generator(facts, {}) is not None
