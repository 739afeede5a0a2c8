"""The contract of a method on toy records: plan, both adjacencies, the door, training and sampling."""

import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from likeness.core.errors import ReleaseError
from likeness.data.schema.schema import Schema
from likeness.generators.base import Compute
from likeness.ledger.home import Home
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import Dataset
from likeness.methods.base import Context, Method, class_weights
from likeness.methods.fit import fit
from likeness.methods.saved_generator import SavedGenerator
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import make_plan
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released, from_bytes
from likeness.release.sums.lattice_sum import lattice_sum

ROWS = 3_000
EPSILON = 3.0
_LABEL = {"y": {"kind": "categorical", "categories": ["no", "yes"]}}
_TOY = {"source": "made up", "task": "classification", "label": "y"}
TABLE = Schema.from_dict(
    {
        "name": "toy",
        **_TOY,
        "columns": {
            "a": {"kind": "numeric", "lower": 0, "upper": 1},
            "b": {"kind": "integer", "lower": 0, "upper": 9, "nullable": True},
            "c": {"kind": "categorical", "categories": ["u", "v", "w"]},
            **_LABEL,
        },
    },
    "toy.yaml",
)
IMAGES = Schema.from_dict({"name": "toy images", **_TOY, "image": {"shape": [4, 4]}, "columns": _LABEL}, "toy.yaml")


def table(count: int, seed: int) -> Records:
    """A third of class 1; the class decides category and the mean of a. ``b`` is uniform and never missing."""
    generator = np.random.default_rng(seed)
    labels = (generator.random(count) < 1 / 3).astype(np.int64)
    x = np.zeros((count, 6))
    x[:, 0] = np.clip(generator.normal(0.3 + 0.4 * labels, 0.1), 0, 1)
    x[:, 1] = generator.random(count)
    category = np.where(generator.random(count) < 0.9, 2 * labels, 1)
    x[np.arange(count), 3 + category] = 1
    return Records(x, labels)


def images(count: int, seed: int) -> Records:
    """The same of images: class 1 is bright in the corners, class 0 in the middle."""
    generator = np.random.default_rng(seed)
    labels = (generator.random(count) < 1 / 3).astype(np.int64)
    corners = np.zeros((4, 4))
    corners[::3, ::3] = 1
    bright = np.where(labels[:, None] == 1, corners.ravel(), np.pad(np.ones((2, 2)), 1).ravel())
    return Records(np.clip(0.1 + 0.7 * bright + generator.normal(0, 0.1, bright.shape), 0, 1), labels)


def toy_context(adjacency: Adjacency, image: bool = False) -> Context:
    """Public facts about toy records."""
    public = ROWS if adjacency is Adjacency.REPLACE_ONE else None
    return Context(IMAGES if image else TABLE, str(adjacency), public, seed=0)


@dataclass(frozen=True)
class Trial:
    """A method and the toy records that it is asked about.

    Attributes:
        method: with settings that train in seconds.
        image: whether the records are images.
    """

    method: Method
    image: bool = False

    def toy_records(self, count: int, seed: int) -> Records:
        """Toy records by number and seed."""
        return images(count, seed) if self.image else table(count, seed)

    @cached_property
    def records(self) -> Records:
        """Those that are released."""
        return self.toy_records(ROWS, 0)

    def context(self, adjacency: Adjacency) -> Context:
        """Public facts about them."""
        return toy_context(adjacency, self.image)

    def release(self, adjacency: Adjacency) -> tuple[dict[str, Released], Released]:
        """Answers of both stages, from a door with a ledger of its own. They spend the whole plan."""
        method, context = self.method, self.context(adjacency)
        method.check(context)
        plan = make_plan(
            method=method.name,
            identity="people",
            shares=method.shares(context),
            epsilon=EPSILON,
            delta=1e-5,
            adjacency=adjacency,
            num_records=context.num_records,
        )
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger.create(Home(Path(folder, "ledger"), Path(folder, "anchor")))
            ledger.declare_population("people", adjacency, EPSILON, 1e-5)
            door = Door(plan, ledger, Dataset("people", "digest"), lambda: [self.records])

            def answer(query: Query) -> Released:
                return from_bytes(door.release(query), query.name)

            auxiliary = method.ask(context, answer)
            embedding = answer(method.embedding_query(context, auxiliary))
            budget = ledger.budget("people")
        assert budget is not None and abs(budget.spent_epsilon - EPSILON) < 1e-5, "the queries spend another sum"
        return auxiliary, embedding

    def check_queries(self, adjacency: Adjacency) -> None:
        """The queries are those of the plan, in its order, and the first one counts classes."""
        auxiliary, embedding = self.release(adjacency)
        planned = [share.query for share in self.method.shares(self.context(adjacency))]
        queries = [*auxiliary, embedding.receipt.query]
        assert queries == planned, f"the plan has the queries {planned}, and asked were {queries}"
        weights = class_weights(auxiliary["class_counts"])
        assert abs(weights[1] - 1 / 3) < 0.05, "class_counts does not count the classes"

    def check_classes(self, adjacency: Adjacency) -> None:
        """Every query asks about every class. One group that sorts by class would only ask about the first."""
        x, labels = self.records.x, self.records.labels
        for query in self.method.planned_queries(self.context(adjacency)):
            for members in (labels == 0, labels == 1):
                total = lattice_sum(query, [Records(x[members], labels[members])])
                assert total.any(), f"{query.name} does not see every class"

    def check_question(self, auxiliary: dict[str, Released]) -> None:
        """A release of another question is not trained on."""
        context = self.context(Adjacency.ADD_REMOVE_ONE)
        try:
            fit(self.method, context, auxiliary, auxiliary["class_counts"], Compute("cpu"))
        except ReleaseError:
            return
        raise AssertionError("the method trains on the answer to another question")

    def check_training(self, auxiliary: dict[str, Released], embedding: Released) -> None:
        """The generator learns what the toy is about, and equal seeds give equal rows, also from a folder."""
        context, method = self.context(Adjacency.ADD_REMOVE_ONE), self.method
        saved, losses = fit(method, context, auxiliary, embedding, Compute("cpu"))
        again, _ = fit(method, context, auxiliary, embedding, Compute("cpu"))
        learned = losses[-1][1] < losses[0][1] if method.training.iterations else losses[0][0] == 0
        assert learned, "the loss does not fall, or a closed form has steps"
        x, labels = saved.draw(2_000, seed=1)
        assert np.array_equal(x, again.draw(2_000, seed=1)[0]), "equal releases give other rows"
        assert not np.array_equal(x, saved.draw(2_000, seed=2)[0]), "the seed of the sample changes nothing"
        with tempfile.TemporaryDirectory() as folder:
            saved.save(Path(folder))
            loaded = SavedGenerator.load(Path(folder)).draw(2_000, seed=1)[0]
        assert np.array_equal(loaded, x), "a saved generator draws other rows"
        # Class 1 has the larger a and the third category; or the brighter corners.
        first, last = (x[labels == 1][:, column].mean() - x[labels == 0][:, column].mean() for column in (0, -1))
        assert first > 0.2 and last > 0.5, "the rows do not show what the classes are about"
        assert abs(labels.mean() - 1 / 3) < 0.06, "the classes have other shares"
