"""Contract of every method, options included, on a toy table: plan, both adjacencies, the door, training, sampling."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from method_examples import ONLY_IMAGES, SMALL
from toys import ledger_of_people, plan_with, schema_with

from likeness.config.typed import build
from likeness.core.errors import PlanError, ReleaseError
from likeness.data.encoding.layout import Layout
from likeness.data.schema.schema import Schema
from likeness.generators.base import Compute
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods import METHODS
from likeness.methods.base import Context, Method, class_weights
from likeness.methods.fit import fit
from likeness.methods.saved_generator import SavedGenerator
from likeness.privacy.adjacency import Adjacency
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released, from_bytes
from likeness.release.request import Dataset
from likeness.release.sums.lattice_sum import lattice_sum

ROWS = 3_000
SCHEMA = schema_with(
    {
        "a": {"kind": "numeric", "lower": 0, "upper": 1},
        "b": {"kind": "integer", "lower": 0, "upper": 9, "nullable": True},
        "c": {"kind": "categorical", "categories": ["u", "v", "w"]},
        "y": {"kind": "categorical", "categories": ["no", "yes"]},
    },
    "y",
)
LAYOUT = Layout.from_schema(SCHEMA)
IMAGES = schema_with(
    {"y": {"kind": "categorical", "categories": ["no", "yes"]}}, "y", name="toy images", image={"shape": [4, 4]}
)


def rows() -> Iterator[Records]:
    """A third of class 1; class decides category and the mean of a."""
    generator = np.random.default_rng(0)
    labels = (generator.random(ROWS) < 1 / 3).astype(np.int64)
    x = np.zeros((ROWS, LAYOUT.width))
    x[:, 0] = np.clip(generator.normal(0.3 + 0.4 * labels, 0.1), 0, 1)
    x[:, 1] = generator.random(ROWS)
    category = np.where(generator.random(ROWS) < 0.9, 2 * labels, 1)
    x[np.arange(ROWS), LAYOUT.width - 3 + category] = 1
    yield Records(x, labels)


def images() -> Iterator[Records]:
    """The same of images: class 1 is bright in the corners, class 0 in the middle."""
    generator = np.random.default_rng(0)
    labels = (generator.random(ROWS) < 1 / 3).astype(np.int64)
    corners = np.zeros((4, 4))
    corners[::3, ::3] = 1
    bright = np.where(labels[:, None] == 1, corners.ravel(), np.pad(np.ones((2, 2)), 1).ravel())
    yield Records(np.clip(0.1 + 0.7 * bright + generator.normal(0, 0.1, bright.shape), 0, 1), labels)


def small(name: str) -> Method:
    """The default settings, cut down to a toy."""
    method = name.split()[0]
    section = dataclasses.asdict(METHODS[method]())  # type: ignore[call-overload]
    for part, values in SMALL[name].items():
        section[part].update(values)
    return build(METHODS[method], section, method)


def context(adjacency: Adjacency, name: str = "") -> Context:
    schema = IMAGES if name.startswith(ONLY_IMAGES) else SCHEMA
    return Context(schema, str(adjacency), ROWS if adjacency is Adjacency.REPLACE_ONE else None, seed=0)


@pytest.fixture(params=sorted(SMALL))
def method(request: pytest.FixtureRequest) -> Method:
    return small(request.param)


@pytest.fixture
def released(method: Method) -> Callable[[Adjacency], tuple[dict[str, Released], Released]]:
    """Both stages' releases at ε = 3."""

    def make(adjacency: Adjacency) -> tuple[dict[str, Released], Released]:
        plan = plan_with(
            method.shares(context(adjacency, method.name)),
            3.0,
            adjacency,
            context(adjacency).num_records,
            method=method.name,
        )
        ledger = ledger_of_people(adjacency, 3.0)
        dataset = Dataset("people", "digest")

        def answer(query: Query) -> Released:
            own = images if method.name in ONLY_IMAGES else rows
            return from_bytes(Door(plan, ledger, dataset, own).release(query), query.name)

        auxiliary = method.ask(context(adjacency, method.name), answer)
        return auxiliary, answer(method.embedding_query(context(adjacency, method.name), auxiliary))

    return make


def test_every_registered_method_is_here() -> None:
    assert {name.split()[0] for name in SMALL} == set(METHODS)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_generators_have_the_names_under_which_a_method_lists_them(name: str) -> None:
    assert all(load().name == listed for listed, load in METHODS[name].generators.items())


@pytest.mark.long
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_queries_are_the_planned_ones_and_spend_the_whole_plan(
    method: Method, released: Callable[[Adjacency], tuple[dict[str, Released], Released]], adjacency: Adjacency
) -> None:
    auxiliary, embedding = released(adjacency)
    assert [*auxiliary, embedding.receipt.query] == [
        share.query for share in method.shares(context(adjacency, method.name))
    ]
    budget = Ledger.open(locate()).budget("people")
    assert budget is not None and budget.spent_epsilon == pytest.approx(3.0, rel=1e-6)
    weights = class_weights(auxiliary["class_counts"])
    assert float(weights[1]) == pytest.approx(1 / 3, abs=0.05)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_every_query_asks_about_records_of_every_class(method: Method, adjacency: Adjacency) -> None:
    """A query of one group that sorts by class would only ask about the first class."""
    (found,) = images() if method.name in ONLY_IMAGES else rows()
    for query in method.foreseen_queries(context(adjacency, method.name)):
        for label in (0, 1):
            own = found.labels == label
            total = lattice_sum(query, [Records(found.x[own], found.labels[own])])
            assert total.any(), f"{query.name} does not see class {label}"


@pytest.mark.parametrize("name", ["marginals with quantiles", "moments", "moments with fourier", "pearl with modes"])
def test_without_classes_a_query_about_all_records_keeps_its_key(name: str) -> None:
    """Receipts of before ``all_records`` were right there, and are not paid for again."""
    own = context(Adjacency.ADD_REMOVE_ONE, name)
    columns = tuple(column for column in own.schema.columns if column.name != own.schema.label)
    unlabeled = dataclasses.replace(own.schema, label=None, task="none", columns=columns)
    method = small(name)
    for schema, expected in ((own.schema, {"each_record", "all_records"}), (unlabeled, {"each_record"})):
        found = method.foreseen_queries(dataclasses.replace(own, schema=schema))
        terms = {str(query.spec()["terms"]) for query in found} - {"bucket_pairs"}
        assert terms == expected


def test_a_release_of_another_question_is_not_trained_on(
    method: Method, released: Callable[[Adjacency], tuple[dict[str, Released], Released]]
) -> None:
    auxiliary, _ = released(Adjacency.ADD_REMOVE_ONE)
    own = context(Adjacency.ADD_REMOVE_ONE, method.name)
    with pytest.raises(ReleaseError, match=f"class_counts: answers another question than {method.name} asks"):
        fit(method, own, auxiliary, auxiliary["class_counts"], Compute("cpu"))


@pytest.mark.long
def test_the_generator_learns_and_the_same_seed_gives_the_same_rows(
    method: Method, released: Callable[[Adjacency], tuple[dict[str, Released], Released]], tmp_path: Path
) -> None:
    auxiliary, embedding = released(Adjacency.ADD_REMOVE_ONE)
    own = context(Adjacency.ADD_REMOVE_ONE, method.name)
    saved, losses = fit(method, own, auxiliary, embedding, Compute("cpu"))
    again, _ = fit(method, own, auxiliary, embedding, Compute("cpu"))
    if method.training.iterations:
        assert losses[-1][1] < losses[0][1]
    else:
        assert losses[0][0] == 0  # a closed form
    x, labels = saved.draw(2_000, seed=1)
    assert np.array_equal(x, again.draw(2_000, seed=1)[0])
    assert not np.array_equal(x, saved.draw(2_000, seed=2)[0])
    saved.save(tmp_path / "generator")
    assert np.array_equal(SavedGenerator.load(tmp_path / "generator").draw(2_000, seed=1)[0], x)
    # What the toy is about: class 1 has the larger a and the third category; or the brighter corners.
    assert x[labels == 1, 0].mean() - x[labels == 0, 0].mean() > 0.2
    assert x[labels == 1, -1].mean() - x[labels == 0, -1].mean() > 0.5
    assert labels.mean() == pytest.approx(1 / 3, abs=0.06)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "network", "generator_name"),
    [("moments", "", "gaussian_images"), ("ntk", "auto", "image"), ("ntk", "residual", "residual_images")],
)
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
    method = build(METHODS["marginals"], {"privatize": {"bins": 16, "max_coordinates": 50}}, "marginals")
    with pytest.raises(PlanError, match=r"would release \d+ coordinates .* Lower marginals.privatize.bins"):
        method.check(context(Adjacency.ADD_REMOVE_ONE))
    many = build(METHODS["moments"], {"privatize": {"max_coordinates": 500}}, "moments")
    with pytest.raises(PlanError, match=r"would release 544 coordinates .* Lower moments.privatize.num_coefficients"):
        many.check(context(Adjacency.ADD_REMOVE_ONE, "moments"))
    few = {"num_coefficients": 2, "max_coordinates": 500}
    many = build(METHODS["moments"], {"auxiliary": {"levels": 16}, "privatize": few}, "moments")
    with pytest.raises(
        PlanError, match=r"would release 512 shares of images above levels.* Lower moments.auxiliary.levels"
    ):
        many.check(context(Adjacency.ADD_REMOVE_ONE, "moments"))
    lonely = Schema("t", "made up", "none", None, (SCHEMA.column("a"),))
    with pytest.raises(PlanError, match="at least two feature columns"):
        small("marginals").check(Context(lonely, "add_remove_one", None, 0))
    with pytest.raises(PlanError, match="merf_ae encodes images, and the schema has no image"):
        small("merf_ae").check(context(Adjacency.ADD_REMOVE_ONE))
    with pytest.raises(PlanError, match="moments needs images, and the schema has no image"):
        small("moments").check(context(Adjacency.ADD_REMOVE_ONE))
    for name in SMALL:
        small(name).check(context(Adjacency.ADD_REMOVE_ONE, name))
