"""White-box audit of the door: queries of every method, both adjacencies, the worst record there is.

Run: ``python -m tests.campaigns.audit [--draws 20000] [--epsilon 10] [--only QUERY]``. It adds a row for each query to
evidence/results/audit.csv, skips what this commit audited, and fills the table of evidence/AUDIT.md.

For every query of every method as shipped, of what is off as shipped (PEARL's modes, learned bins, named tables and
weights, a first look, the network beside moments, clusters), of images in color and of histories, two neighboring
tables pass the real door, ledger and all, and what it computed on the way (scale, receipt) is caught.
``tests/release/test_partition_selection.py`` tests private categories instead.
Then ONE exact sum of either table is noised again and again by the door's own code, and a lower bound on ε is computed
from the best test of "which table was it?". The bound must stay below the claim, and, so that the audit is known to see
something, come near to it. Tables are made up; nothing here is tuned.

*Canary.* A guarantee speaks of the worst record, and real maps do not always reach their bound (two characteristic
functions are never opposite). So each query is audited twice: with its own map (exact sums only: how far apart do
neighbors get, and is it within the sensitivity?) and with a canary in its place, a map with the same parts that stands
at the bound.

*Statistic.* For noise N(0, σ²) on every coordinate and sums v apart, the likelihood ratio is a function of ⟨y − f, v⟩
alone. Coordinates where v is 0 have the same, independent noise under both tables and drop out of it, so only the
others are noised: the test is the most powerful one on the whole release.
"""

import argparse
import contextlib
import dataclasses
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from evidence.pages import Results, commit, markdown, on_page
from likeness.config.explain import defaults
from likeness.core.bounds import Part, PrivacyUnit
from likeness.core.typed import build
from likeness.data.encoding.layout import Layout
from likeness.data.schema.schema import Schema
from likeness.features.base import CellMap, FeatureMap
from likeness.features.column_marginals import Constant
from likeness.ledger.home import Home
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import Dataset
from likeness.methods import METHODS
from likeness.methods.base import Context, Method
from likeness.methods.maps import MAPS
from likeness.methods.row_set import RowSet
from likeness.pipeline.datasets import MODELS
from likeness.privacy.accountant import compose
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import Plan, QueryShare
from likeness.release import door
from likeness.release.query import Query
from likeness.release.records import BucketPairs, EachCluster, PositionPairs, Records
from likeness.release.released import Released, from_bytes
from likeness.release.sums.lattice_sum import lattice_sum
from likeness.release.sums.over_parts import Partial
from tests.campaigns.audit_bounds import epsilon_lower, mu_lower, tight_epsilon, variance_is
from tests.toys import plan_with

_FACTS = {"source": "made up", "task": "classification", "label": "y"}
_LABEL = {"y": {"kind": "categorical", "categories": ["no", "yes"]}}
COLUMNS = {
    "a": {"kind": "numeric", "lower": 0, "upper": 1},
    "b": {"kind": "integer", "lower": 0, "upper": 9},
    "c": {"kind": "categorical", "categories": ["u", "v", "w"]},
    **_LABEL,
}
SCHEMA = Schema.from_dict({"name": "audit", **_FACTS, "columns": COLUMNS}, "audit.yaml")
IMAGES, COLOR = (
    Schema.from_dict({"name": "images", **_FACTS, "image": {"shape": shape}, "columns": _LABEL}, "audit.yaml")
    for shape in ([2, 3], [2, 3, 3])
)
UNIT = PrivacyUnit("person", 17)
HISTORIES: dict[str, Any] = {
    "name": "audit histories",
    "source": "made up",
    "person": UNIT.column,
    "order": "step",
    "most": UNIT.max_rows,
    "fixed": ["a"],
    "events": {
        "a": {"kind": "numeric", "lower": 0, "upper": 1},
        "step": {"kind": "integer", "lower": 0, "upper": 99},
        "c": {"kind": "categorical", "categories": ["u", "v", "w"]},
    },
}
ONLY_IMAGES = ("merf_ae", "moments")  # methods that refuse tables
MEMORY = ["first", "before", "gap", "usual"]
EPSILON, DELTA = 10.0, 1e-5
LARGE_DELTA = 0.3  # where a bound without assumptions can be tight
ALARM = 1e-7  # of each test: that it refutes a true claim
POWER = 0.8  # of the tight ε, to be reached by the lower bound
_BACKGROUNDS = (2, 40)
RESULTS = Results(Path("evidence/results/audit.csv"), ["commit", "method", "query", "adjacency", "epsilon"])
PAGE = Path("evidence/AUDIT.md")

Pair = tuple[Records, Records]


@dataclasses.dataclass(frozen=True)
class Canary:
    """A map with the parts of another that stands at their bounds: in one place for x₁ < ½, in another otherwise.

    The two are as far apart as the parts allow: opposite where signs are free, orthogonal where they are not, at 0 and
    at the bound where there is one coordinate.
    """

    like: FeatureMap

    @property
    def bounded_parts(self) -> tuple[Part, ...]:
        """Those of the other map."""
        return tuple(self.like.bounded_parts)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Map inputs (n, d) to features (n, width)."""
        second, blocks = x[:, 0] >= 0.5, []
        for part in self.bounded_parts:
            block = x.new_zeros(len(x), part.width)
            length = math.sqrt(part.norm_bound_squared)
            block[~second, 0] = length
            if not part.nonnegative:
                block[second, 0] = -length
            elif part.width > 1:
                block[second, 1] = length
            blocks.append(block)
        return torch.cat(blocks, dim=1)

    def spec(self) -> dict[str, Any]:
        """Says that it is no map of the product."""
        return {"map": "canary", "like": self.like.spec()}


class CanaryCells(Canary):
    """The same for maps that name cells; a place outside its part counts nothing."""

    def cell_indices(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """Coordinate within each part, shape (n, parts)."""
        return np.repeat((x[:, :1] >= 0.5).astype(np.int64), len(self.bounded_parts), axis=1)


@dataclasses.dataclass(frozen=True)
class Case:
    """One query under one adjacency.

    Attributes:
        twin: what is asked of the neighboring table: the same, unless at fault.
        most: rows of the person who comes or goes.
    """

    name: str
    adjacency: Adjacency
    query: Query
    twin: Query
    schema: Schema = SCHEMA
    most: int = 1

    @property
    def unit(self) -> PrivacyUnit | None:
        """The unit of privacy, where a person may have several rows."""
        return UNIT if getattr(self.query, "is_per_person", False) else None

    @property
    def canary(self) -> "Case":
        """The same bounds, reached."""
        kind = CanaryCells if isinstance(self.query.feature, CellMap) else Canary
        query = dataclasses.replace(self.query, feature=kind(self.query.feature))
        return Case(f"{self.name} at its bound", self.adjacency, query, query, self.schema, self.most)


@dataclasses.dataclass(frozen=True)
class Finding:
    """What an audit of one case found.

    Attributes:
        reached: distance of the two sums over the claimed sensitivity. claimed: ε that the account states.
        tight: ε of a Gaussian of the claimed scale, exact; what is left below ``claimed`` is for the lattice.
        lower: bound on ε at the plan's δ from error rates; lower_free: without assumptions, at ``LARGE_DELTA``, where
            the tight one is ``tight_free``. failures: what does not hold; empty if all does.
    """

    case: Case
    reached: float
    claimed: float
    tight: float
    lower: float
    tight_free: float
    lower_free: float
    draws: int
    failures: tuple[str, ...]


def changed(section: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A section with other values; mappings are changed within."""
    inner = {key: isinstance(value, dict) and isinstance(section.get(key), dict) for key, value in changes.items()}
    return {**section, **{key: changed(section[key], own) if inner[key] else own for key, own in changes.items()}}


def option(changes: Mapping[str, Any], paid: str, section: Mapping[str, Any]) -> dict[str, Any]:
    """A method's section with changes; a query that they ask for has a tenth of the budget, from the embedding."""
    section = changed(section, changes)
    if not paid:
        return section
    shares = {**section["plan"]["shares"], paid: 0.1}
    shares["embedding"] = 1 - sum(share for name, share in shares.items() if name != "embedding")
    return {**section, "plan": {"shares": shares}}


_TABLES = [{"columns": ["a"], "weight": 2}, {"columns": ["a", "b", "c"]}]
_SHIPPED: tuple[dict[str, Any], str] = ({}, "")
_CODES = ({"privatize": {"code": 12}}, "")
_CNN = ({"privatize": {"architecture": "cnn_2l", "widths": [4, 8]}}, "")
_OPTIONS: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("pearl", "modes", {"auxiliary": {"mixture": {"components": 3, "iterations": 2, "columns": None}}}, "mixture"),
    ("marginals", "tables", {"privatize": {"workload": _TABLES}}, ""),
    ("moments", "clusters", {"auxiliary": {"splits": 2}}, ""),
    ("moments", "gray", {"auxiliary": {"center": "gray"}}, ""),
    ("moments", "centers", {"auxiliary": {"center": "classes", "splits": 1}}, ""),
)

# Of what is off as shipped, in the methods that are here: method, name, what it makes of the method's section.
OPTIONS: tuple[tuple[str, str, Callable[[Mapping[str, Any]], dict[str, Any]]], ...] = tuple(
    (method, name, partial(option, changes, paid)) for method, name, changes, paid in _OPTIONS if method in METHODS
)

# Of images in color: method, what it makes of the method's section.
IN_COLOR: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    method: partial(option, *own)
    for method, own in (("merf", _SHIPPED), ("merf_ae", _CODES), ("moments", _SHIPPED), ("ntk", _CNN))
    if method in METHODS
}


def cases(names: Iterable[str] = tuple(METHODS)) -> list[Case]:
    """Every query of the methods, each question once, under both adjacencies: settings as shipped, and the options."""
    found: dict[str, Case] = {}
    sections = {name: defaults(METHODS[name]) for name in names}
    own = {name: IMAGES if name in ONLY_IMAGES else SCHEMA for name in names}
    asked = [(name, "", sections[name], own[name]) for name in names]
    asked += [(name, f" with {option}", to(sections[name]), own[name]) for name, option, to in OPTIONS if name in names]
    asked += [(name, " with color", to(sections[name]), COLOR) for name, to in IN_COLOR.items() if name in names]
    for name, variant, section, schema in asked:
        method = build(METHODS[name], section, name)
        for adjacency in Adjacency:
            rows = table(200, 0, schema)
            count = len(rows.x) if adjacency is Adjacency.REPLACE_ONE else None
            context = Context(schema, str(adjacency), count, seed=0)
            for query in queries_of(name, method, RowSet(context, ""), rows):
                key = f"{adjacency} {query.spec()} {query.num_groups}"
                found.setdefault(key, Case(f"{name}{variant} {query.name}", adjacency, query, query, schema))
    clusters = cluster_cases() if "moments" in METHODS else ()
    return [*found.values(), *clusters, *(history_cases() if "histories" in MODELS else ())]


def queries_of(name: str, method: Method, asked: RowSet, records: Records) -> list[Query]:
    """Every query of a method about some rows; those of the auxiliary stage are answered on the way."""
    adjacency, unit = Adjacency(asked.context.adjacency), UNIT if asked.is_per_person else None
    shares = asked.shares(method) if asked.is_per_person else method.shares(asked.context)
    plan = plan_with(shares, EPSILON, adjacency, asked.context.num_records, method=name, delta=DELTA, unit=unit)
    queries: list[Query] = []
    with temporary_ledger(adjacency, unit) as ledger:

        def answer(query: Query) -> Released:
            queries.append(asked.scope(query))
            data = door.Door(plan, ledger, Dataset("people", "rows", unit=unit), lambda: [records]).release(queries[-1])
            return from_bytes(data, query.name)

        auxiliary = method.ask(asked.context, answer)
    return [*queries, asked.scope(method.embedding_query(asked.context, auxiliary))]


def history_cases() -> Iterator[Case]:
    """The queries about people with histories. Only people who come or go are protected, so there is one adjacency."""
    section = defaults(METHODS["marginals"])
    section["privatize"]["workload"] = [{"columns": ["a", "last c", "next c"]}]
    adjacency, method = Adjacency.ADD_REMOVE_ONE, build(METHODS["marginals"], section, "marginals").adapt_to_histories()
    histories = MODELS["histories"].schema_from(HISTORIES, "audit.yaml")
    remembering = MODELS["histories"].schema_from({**HISTORIES, "memory": MEMORY}, "audit.yaml")
    row_sets = [
        ("", "", histories.row_sets[""]),
        ("", "next_", histories.row_sets["next_"]),
        (" and memory", "next_", remembering.row_sets["next_"]),
    ]
    for words, prefix, schema in row_sets:
        asked = RowSet(Context(schema, str(adjacency), None, seed=0), "", prefix=prefix, is_per_person=True)
        most = UNIT.max_rows - 1 if prefix else 1
        for query in queries_of("marginals", method, asked, _of_people(table(200, 0, schema))):
            yield Case(f"marginals with histories{words} {query.name}", adjacency, query, query, schema, most)


def cluster_cases() -> Iterator[Case]:
    """Queries by cluster where classes are split: a black image and a white one lie in different clusters."""
    clusters = EachCluster(MAPS["class_halves"]((2, 3), 4, 1.0, 1, (127, 0, 0, 0) * 2, (60.0, 30.0)))
    for feature in (Constant(), MAPS["cosine_moments"]((2, 3), 4, 1.0, 0.3)):
        query = Query("by_cluster", "privatize", feature, clusters.num_groups, clusters)
        for adjacency in Adjacency:
            yield Case(f"moments with split classes {feature.name}", adjacency, query, query, IMAGES)


def audit(case: Case, draws: int = 0, epsilon: float = EPSILON, alarm: float = ALARM) -> Finding:
    """Send the worst neighboring tables through the door, and judge.

    Args:
        draws: of the statistic, under either table; 0: only what two exact sums and three releases tell.
    """
    failures: list[str] = []
    pair = worst_pair(case)
    first, second = (_exact(query, records) for query, records in zip((case.query, case.twin), pair, strict=True))
    moved = (second - first).ravel()
    with temporary_ledger(case.adjacency, case.unit) as ledger:
        first_twice = (case.query, pair[0], "1"), (case.query, pair[0], "2")
        seen = [
            _through_the_door(case, query, records, Dataset("people", "rows", slot, unit=case.unit), ledger, epsilon)
            for query, records, slot in (*first_twice, (case.twin, pair[1], "3"))
        ]
    receipts = [one.released.receipt for one in seen]
    claim = receipts[0]
    distance = math.sqrt(sum(int(step) ** 2 for step in moved))
    allowed = claim.sensitivity * 2.0**claim.lattice_bits
    if distance > allowed * (1 + 1e-12):
        failures.append(f"neighbors lie {distance / allowed:.6g} times the sensitivity apart")
    if len({(one.noise_scale, str(one.feature)) for one in receipts}) > 1:
        failures.append("the neighboring table is asked another question, or at another scale")
    noises = [one.released.lattice - exact for one, exact in zip(seen, (first, first, second), strict=True)]
    if any((noises[i] == noises[j]).mean() > 0.5 for i, j in ((0, 1), (0, 2), (1, 2)) if noises[i].size):
        failures.append("two releases carry the same noise")
    if np.logical_and.reduce([noise == 0 for noise in noises]).any():
        failures.append("a coordinate carries no noise")
    mu = 1 / claim.noise_multiplier
    claimed = compose([claim], DELTA).epsilon
    unit = [noise.ravel() / claim.noise_scale for noise in noises]
    lower = lower_free = 0.0
    support = np.flatnonzero(moved)
    if draws and len(support):
        again = [one.again(exact.ravel()[support], draws) for one, exact in ((seen[0], first), (seen[2], second))]
        direction = moved[support] / distance
        # The statistic: the sum's place between the two tables, 0 at the first and Δ/σ at the second.
        without, present = ((values - first.ravel()[support]) / claim.noise_scale @ direction for values in again)
        lower = tight_epsilon(mu_lower(without, present, alarm), DELTA)
        lower_free = epsilon_lower(without, present, LARGE_DELTA, alarm)
        exact_sums = (first.ravel()[support], second.ravel()[support])
        unit += [((v - e) / claim.noise_scale).ravel() for v, e in zip(again, exact_sums, strict=True)]
    for place, own in enumerate(unit):
        if not variance_is(own, alarm / len(unit)):
            failures.append(f"the noise of draw {place + 1} is {np.sqrt(np.mean(own**2)):.4f} of its claimed scale")
    tight, tight_free = tight_epsilon(mu, DELTA), tight_epsilon(mu, LARGE_DELTA)
    if lower > tight:
        failures.append(f"epsilon is at least {lower:.4g} at delta {DELTA:g}, the noise is said to give {tight:.4g}")
    if lower_free > tight_free:
        failures.append(
            f"epsilon is at least {lower_free:.4g} at delta {LARGE_DELTA:g}, the noise is said to give {tight_free:.4g}"
        )
    if claimed > epsilon * (1 + 1e-9) or claimed < tight:
        failures.append(f"the account states epsilon {claimed:.6g} for a plan of {epsilon:g}, exactly {tight:.6g}")
    return Finding(
        case, distance / allowed, claimed, tight, lower, tight_free, lower_free, draws, tuple(dict.fromkeys(failures))
    )


def worst_pair(case: Case) -> Pair:
    """The neighboring tables, of many tried, whose exact sums are farthest apart."""
    best, farthest = None, -1.0
    corners = _corners(case.schema)
    for background in (_row(corners, 0), *(table(size, size, case.schema) for size in _BACKGROUNDS)):
        longer = [_joined(_row(corners, place, case.most), background) for place in range(len(corners.x))]
        shorter = [background] if case.adjacency is Adjacency.ADD_REMOVE_ONE else longer
        if case.unit is not None:
            shorter, longer = (
                [_of_people(rows, one) for rows in many] for many, one in ((shorter, 1), (longer, case.most))
            )
        firsts = [_exact(case.query, records) for records in shorter]
        seconds = firsts if shorter is longer and case.twin is case.query else None
        seconds = seconds or [_exact(case.twin, records) for records in longer]
        for one, first in zip(shorter, firsts, strict=True):
            for other, second in zip(longer, seconds, strict=True):
                distance = float(np.square((second - first).astype(np.float64)).sum())
                if distance > farthest:
                    best, farthest = (one, other), distance
    assert best is not None
    return best


def _corners(schema: Schema) -> Records:
    """Records at the corners of the domain: both ends of the first number in either class.

    Of images, half have both ends of all pixels. The others are gray but for the first pixel.
    """
    layout = Layout.from_schema(schema)
    x, starts = np.zeros((8, layout.width)), layout.starts
    if schema.image is not None:
        x[:, 2:] = np.array([0, 1, 1, 0] * 2)[:, None]
        x[:, 0], x[:, 1] = [0, 1] * 4, [0, 1, 1, 0, 0, 1, 1, 0]
        x[4:, 1:] = 0.5
    for place, column in enumerate(schema.feature_columns if schema.image is None else ()):
        if column.is_categorical:
            x[np.arange(8), starts[column.name] + np.array([0, 2, 1, 0, 2, 0, 0, 1]) % column.width] = 1
        else:
            x[:, starts[column.name]] = [0, 1] * 4 if place == 0 else [0, 1, 1, 0, 0, 1, 1, 0]
    return Records(x, np.array([0, 0, 1, 1] * 2, dtype=np.int64) % layout.num_classes)


def table(rows: int, seed: int, schema: Schema = SCHEMA) -> Records:
    """Made-up rows; the first coordinate of all is below ½, so that a canary can be told from them."""
    generator = np.random.default_rng(seed)
    layout = Layout.from_schema(schema)
    x, starts = np.zeros((rows, layout.width)), layout.starts
    if schema.image is not None:
        x[:, :2] = generator.random((rows, 2)) * [0.4, 1]
        x[:, 2:] = generator.random((rows, layout.width - 2))
        return Records(x, generator.integers(0, 2, rows))
    numbers = [starts[column.name] for column in schema.feature_columns if not column.is_categorical]
    x[:, numbers] = generator.random((rows, len(numbers))) * [0.4, *[1] * (len(numbers) - 1)]
    for column in schema.feature_columns:
        if column.is_categorical:
            x[np.arange(rows), starts[column.name] + generator.integers(0, column.width, rows)] = 1
    return Records(x, generator.integers(0, layout.num_classes, rows))


def _row(records: Records, place: int, times: int = 1) -> Records:
    return Records(np.repeat(records.x[[place]], times, axis=0), np.repeat(records.labels[[place]], times))


def _of_people(records: Records, most: int = 1) -> Records:
    """The first person has ``most`` rows, everybody else has one."""
    return dataclasses.replace(records, persons=np.maximum(np.arange(len(records.x)) - (most - 1), 0))


def _joined(one: Records, others: Records) -> Records:
    return Records(np.concatenate([one.x, others.x]), np.concatenate([one.labels, others.labels]))


def _pinned(query: Query, records: Records) -> Query:
    """The worst case over secret dice and rooms: all records in one bucket, the last ones keep their dice.

    What holds for every throw of the dice holds for their mixture (:class:`BucketPairs`).
    """
    count = len(records.x)
    if isinstance(query.contributions, BucketPairs):
        buckets = query.contributions.num_buckets
        dice = (np.arange(1_000 - count, 1_000, dtype=np.uint64) * np.uint64(buckets)).astype("<u8")
        return dataclasses.replace(
            query, contributions=dataclasses.replace(query.contributions, dice=lambda number: dice[:number])
        )
    if isinstance(query.contributions, PositionPairs):
        return dataclasses.replace(query, contributions=dataclasses.replace(query.contributions, num_rooms=1))
    return query


def _exact(query: Query, records: Records) -> NDArray[np.int64]:
    return lattice_sum(_pinned(query, records), [records])


@dataclasses.dataclass(frozen=True)
class _Seen:
    """One release, and the call by which the door drew it."""

    released: Released
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]

    def again(self, exact: NDArray[np.int64], draws: int) -> NDArray[np.int64]:
        """Noise one exact vector many times, by the same call of the door; shape (draws, coordinates)."""
        plan = self.arguments[1]
        many = Partial(np.tile(exact, (draws, 1)), plan.num_records or 0)
        with mock.patch.object(door, "exact_sum", lambda query, read, engine: many):
            noisy: NDArray[np.int64] = door._draw(*self.arguments, **self.keywords).lattice
        return noisy


def _through_the_door(
    case: Case, query: Query, records: Records, dataset: Dataset, ledger: Ledger, epsilon: float
) -> _Seen:
    """A whole release."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    draw = door._draw

    def spy(*arguments: Any, **keywords: Any) -> Released:
        calls.append((arguments, keywords))
        return draw(*arguments, **keywords)

    with mock.patch.object(door, "_draw", spy):
        plan = plan_of(case, len(records.x), epsilon)
        data = door.Door(plan, ledger, dataset, lambda: [records]).release(_pinned(query, records))
    return _Seen(from_bytes(data, case.name), *calls[0])


def plan_of(case: Case, rows: int, epsilon: float) -> Plan:
    """The whole budget for this query."""
    shares = [QueryShare(case.query.name, case.query.stage, 1.0)]
    return plan_with(shares, epsilon, case.adjacency, rows, delta=DELTA, unit=case.unit)


@contextlib.contextmanager
def temporary_ledger(adjacency: Adjacency, unit: PrivacyUnit | None = None) -> Iterator[Ledger]:
    """A ledger that nobody else uses, with room for everything."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Home(Path(folder) / "ledger", Path(folder) / "anchor"))
        ledger.declare_population("people", adjacency, 1e3, DELTA, unit.column if unit else None)
        yield ledger


def summary(rows: pd.DataFrame) -> str:
    """One line for each method and option: the latest row of each query, in Markdown."""
    latest = rows.groupby(["method", "query", "adjacency"], sort=False, as_index=False).last()
    lines = []
    for method, own in latest.groupby("method", sort=False):
        reached, lower, free = (
            f"{own[name].min():.{digits}f} to {own[name].max():.{digits}f}"
            for name, digits in (("reached", 3), ("at_least", 2), ("at_least_free", 2))
        )
        share = f"{(own['at_least'] / own['tight']).min():.0%}"
        share_free = f"{(own['at_least_free'] / own['tight_free']).min():.0%}"
        verdict = "; ".join(own["failures"].dropna()) or "✓"
        lines.append((method, len(own), reached, lower, share, free, share_free, verdict))
    heads = ("method", "queries:", "reached:", "ε at least:", "least of tight:", f"δ = {LARGE_DELTA}: ε at least:")
    return markdown((*heads, "least of tight:", "verdict"), lines)


def main() -> int:
    """Audit all, fill the page; 1 if something does not hold or the audit was blind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--only", default="", help="part of a query's name")
    arguments = parser.parse_args()
    made, wrong = commit(), False
    for case in cases():
        method, _, query = case.name.rpartition(" ")
        keys = [made, method, query, str(case.adjacency), arguments.epsilon]
        if arguments.only not in case.name or not RESULTS.of(*keys).empty:
            continue
        own = audit(case, 0, arguments.epsilon)
        found = audit(case.canary, arguments.draws, arguments.epsilon)
        failures = [*own.failures, *found.failures] + ["blind"] * (found.lower < POWER * found.tight)
        wrong |= bool(failures)
        numbers = {"reached": own.reached, "claimed": found.claimed, "tight": found.tight, "at_least": found.lower}
        free = {"tight_free": found.tight_free, "at_least_free": found.lower_free}
        RESULTS.add(keys, {"draws": found.draws, **numbers, **free, "failures": "; ".join(failures)})
    on_page(PAGE, {"audit": summary(RESULTS.rows[RESULTS.rows["epsilon"] == arguments.epsilon])})
    return int(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
