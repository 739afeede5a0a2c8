"""Contract of every method, options included, on a toy table: plan, both adjacencies, the door, training, sampling."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from method_examples import COLORED, ONLY_IMAGES, SMALL
from toys import ledger_of_people, plan_with, schema_with

from likeness.config.typed import build
from likeness.core.errors import PlanError
from likeness.data.schema.schema import Schema
from likeness.generators.base import Compute
from likeness.methods import METHODS
from likeness.methods.base import Context, Method
from likeness.methods.fit import fit
from likeness.methods.saved_generator import SavedGenerator
from likeness.privacy.adjacency import Adjacency
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released, from_bytes
from likeness.release.request import Dataset
from likeness.testing import Trial
from likeness.testing.methods import ROWS, TABLE, toy_context


def small(name: str) -> Method:
    """The default settings, cut down to a toy."""
    method = name.split()[0]
    section = dataclasses.asdict(METHODS[method]())  # type: ignore[call-overload]
    for part, values in SMALL[name].items():
        section[part].update(values)
    return build(METHODS[method], section, method)


def context(adjacency: Adjacency, name: str = "") -> Context:
    return toy_context(adjacency, name.startswith(ONLY_IMAGES))


@pytest.fixture(params=sorted(SMALL))
def trial(request: pytest.FixtureRequest) -> Trial:
    return Trial(small(request.param), request.param.startswith(ONLY_IMAGES))


def test_every_registered_method_is_here() -> None:
    assert {name.split()[0] for name in SMALL} == set(METHODS)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_generators_have_the_names_under_which_a_method_lists_them(name: str) -> None:
    assert all(load().name == listed for listed, load in METHODS[name].generators.items())


@pytest.mark.long
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_queries_are_the_planned_ones_and_spend_the_whole_plan(trial: Trial, adjacency: Adjacency) -> None:
    trial.check_queries(adjacency)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_every_query_asks_about_records_of_every_class(trial: Trial, adjacency: Adjacency) -> None:
    trial.check_classes(adjacency)


@pytest.mark.parametrize("name", [name for name in ("marginals", "moments", "pearl with modes") if name in SMALL])
def test_without_classes_a_query_about_all_records_keeps_its_key(name: str) -> None:
    """Receipts of before ``all_records`` were right there, and are not paid for again."""
    own = context(Adjacency.ADD_REMOVE_ONE, name)
    columns = tuple(column for column in own.schema.columns if column.name != own.schema.label)
    unlabeled = dataclasses.replace(own.schema, label=None, task="none", columns=columns)
    method = small(name)
    for schema, expected in ((own.schema, {"each_record", "all_records"}), (unlabeled, {"each_record"})):
        found = method.planned_queries(dataclasses.replace(own, schema=schema))
        terms = {str(query.spec()["terms"]) for query in found} - {"bucket_pairs"}
        assert terms == expected


@pytest.mark.long
def test_the_generator_learns_from_the_answer_to_its_question_and_no_other(trial: Trial) -> None:
    auxiliary, embedding = trial.release(Adjacency.ADD_REMOVE_ONE)
    trial.check_question(auxiliary)
    trial.check_training(auxiliary, embedding)


@pytest.mark.long
@pytest.mark.parametrize(("name", "network", "generator_name"), COLORED)
def test_images_in_color_keep_their_colors(name: str, network: str, generator_name: str, tmp_path: Path) -> None:
    """Class 0 is red above and dark below, class 1 blue."""
    label = {"y": {"kind": "categorical", "categories": ["no", "yes"]}}
    schema = schema_with(label, "y", name="toy colors", image={"shape": [4, 4, 3]})
    generator, labels = np.random.default_rng(0), np.arange(ROWS) % 2
    colors = np.zeros((2, 4, 4, 3))
    colors[0, :2, :, 0], colors[1, :2, :, 2] = 0.8, 0.8
    x = np.clip(0.1 + colors[labels].reshape(ROWS, -1) + generator.normal(0, 0.1, (ROWS, 48)), 0, 1)
    method: Any = small(name)
    if hasattr(method.train, "hidden"):
        few = {"iterations": 100, "channels": (4, 4)} if network == "residual" else {}
        train = dataclasses.replace(method.train, hidden=(32,), network=network, **few)
        method = dataclasses.replace(method, train=train)
    own = Context(schema, "add_remove_one", None, 0)
    method.check(own)
    plan, ledger = plan_with(method.shares(own), 10.0, method=method.name), ledger_of_people("add_remove_one", 10.0)

    def answer(query: Query) -> Released:
        door = Door(plan, ledger, Dataset("people", "digest"), lambda: iter([Records(x, labels)]))
        return from_bytes(door.release(query), query.name)

    auxiliary = method.ask(own, answer)
    saved, _ = fit(method, own, auxiliary, answer(method.embedding_query(own, auxiliary)), Compute("cpu"))
    assert saved.network.name == generator_name
    saved.save(tmp_path / "generator")
    drawn, classes = SavedGenerator.load(tmp_path / "generator").draw(1_000, seed=1)
    above = [drawn[classes == one].reshape(-1, 4, 4, 3)[:, :2].mean(axis=(0, 1, 2)) for one in (0, 1)]
    red, green, blue = above[0] - above[1]
    assert red > 0 > blue and red - blue > 0.3 and abs(green) < 0.2


def test_what_cannot_be_released_is_refused_before_anything_is_spent() -> None:
    method = build(METHODS["marginals"], {"privatize": {"bins": 16, "max_coordinates": 20}}, "marginals")
    with pytest.raises(PlanError, match=r"would release \d+ coordinates .* Lower marginals.privatize.bins"):
        method.check(context(Adjacency.ADD_REMOVE_ONE))
    lonely = Schema("t", "made up", "none", None, (TABLE.column("a"),))
    with pytest.raises(PlanError, match="at least two feature columns"):
        small("marginals").check(Context(lonely, "add_remove_one", None, 0))
    for name in SMALL:
        small(name).check(context(Adjacency.ADD_REMOVE_ONE, name))
