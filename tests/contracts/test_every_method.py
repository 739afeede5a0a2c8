"""Contract of every method, options included, on a toy table: plan, both adjacencies, the door, training, sampling,
private categories, and one whole person through ingestion, encoding and every query. And the table of queries in
PRIVACY.md against the code, both ways: queries, methods, maps, terms and plain numbers.
"""

import dataclasses
import math
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from method_examples import COLORED, ONLY_IMAGES, SMALL
from ruled import LEARNED
from ruled import SCHEMA as RULED
from ruled import rows as ruled_rows
from toys import ledger_of_people, plan_with, schema_with

from likeness.config.load import load_params
from likeness.config.params import Params, Split
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import PlanError
from likeness.core.typed import build
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.constrained_tables import violation_counts
from likeness.data.schema.schema import Schema
from likeness.features.cells import Cells
from likeness.generators.base import Compute
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import Dataset
from likeness.methods import METHODS
from likeness.methods.base import Context, Method
from likeness.methods.fit import fit
from likeness.methods.maps import MAPS
from likeness.methods.marginals.relations.acceptance import SHARES
from likeness.methods.marginals.relations.tables import Operand, Relation, RelationCandidates, RelationCells
from likeness.methods.row_set import RowSet
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.ingest import PERSON, SPLIT, used_rows
from likeness.pipeline.project import Project
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import epsilon_of_rho
from likeness.privacy.plan import QueryShare
from likeness.release import records
from likeness.release.choices import ChoiceQuery
from likeness.release.door import Door
from likeness.release.partition_selection import STAGE, PartitionQuery, partition_queries, query_name
from likeness.release.private_bounds import bounds_query
from likeness.release.query import Query
from likeness.release.records import AllRecords, BucketPairs, Records
from likeness.release.released import Released, from_bytes
from likeness.release.request import AnyQuery
from likeness.release.sums.lattice_sum import lattice_sum
from likeness.synthesizer import Synthesizer
from likeness.testing import Trial
from likeness.testing.methods import IMAGES, ROWS, TABLE, toy_context
from likeness.verify.ledger import _bare_name, maps_of


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


ROOT = Path(__file__).parents[2]
FOR_TABLES = sorted(set(METHODS) - {*ONLY_IMAGES})
PRIVATE = schema_with(
    {
        "a": {"kind": "numeric", "lower": 0, "upper": 1},
        "b": {"kind": "categorical", "categories": "private", "nullable": True},
        "c": {"kind": "categorical", "categories": "private", "other": "rest"},
        "y": {"kind": "categorical", "categories": ["no", "yes"]},
    },
    "y",
)


@pytest.mark.parametrize("name", FOR_TABLES)
def test_every_method_leaves_a_share_for_categories(name: str) -> None:
    params = replace(load_params(ROOT / "params.yaml"), method=name)
    project = Project(ROOT, params, PRIVATE)
    plan, listed = project.plan, replace(project, given_schema=PRIVATE.with_stand_ins(params.categories.most)).plan
    assert [query.query for query in plan.queries[:2]] == ["categories_1", "categories_2"]
    assert [query.query for query in plan.queries[2:]] == [query.query for query in listed.queries]
    for own, other in zip(plan.queries[2:], listed.queries, strict=True):
        assert own.share == pytest.approx(0.9 * other.share) and own.delta_keys == other.delta_keys == 0
    assert 0.99 < epsilon_of_rho(plan.rho, 1e-5 - plan.delta_keys) <= 1
    assert epsilon_of_rho(listed.rho, 1e-5) <= 1 and not listed.delta_keys


@pytest.mark.parametrize("released", [[], ["u"], ["u", "v", "w"]], ids=["none", "one", "three"])
@pytest.mark.parametrize("name", FOR_TABLES)
def test_every_method_asks_and_draws_whatever_was_released(name: str, released: list[str]) -> None:
    params = replace(load_params(ROOT / "params.yaml"), method=name)
    project = Project(ROOT, params, PRIVATE)
    facts, recipe = project.context_of(PRIVATE.with_categories({"b": released, "c": released})), project.method
    assert facts.layout.width == 1 + (len(released) + 2) + (len(released) + 1)
    foreseen = recipe.planned_queries(project.context_of(PRIVATE.with_stand_ins(params.categories.most)))
    most = {query.name: query.width for query in foreseen}
    for query in recipe.planned_queries(facts):
        assert 0 < query.width <= most[query.name]  # what was planned for is enough
    assert recipe.build_generator(facts, {}) is not None


ADD = Adjacency.ADD_REMOVE_ONE
UNIT = PrivacyUnit("pid", 3)


@pytest.fixture(scope="module")
def params() -> Params:
    shipped = load_params(Path(__file__).parents[2] / "params.yaml")
    ingest = replace(shipped.ingest, unit=UNIT, split=Split(test_fraction=0.2))
    return replace(shipped, privacy=replace(shipped.privacy, unit="one person"), ingest=ingest)


def table(schema: Schema, equal: bool) -> tuple[pd.DataFrame, "pd.Series[str]"]:
    """120 visits of 40 people in random order, and seven of one more, all of them equal or all different."""
    generator = np.random.default_rng(1)
    count = 120
    own = pd.DataFrame(
        {
            "a": generator.random(count + 7),
            "b": pd.array(generator.integers(0, 10, count + 7), dtype="Int64"),
            "c": generator.choice(["u", "v", "w"], count + 7),
            "y": generator.choice(["no", "yes"], count + 7),
        }
    )
    if schema.image is not None:
        names = [column.name for column in schema.feature_columns]
        own = pd.DataFrame(generator.integers(0, 256, (count + 7, len(names))), columns=names).assign(y=own["y"])
    people = [f"p{n % 40}" for n in range(count)] + ["z"] * 7
    if equal:
        own = own.iloc[[*range(count), *[count] * 7]]
    order = generator.permutation(count + 7)
    own = own.iloc[order].reset_index(drop=True)
    for column in schema.columns:
        if column.is_categorical:
            own[column.name] = own[column.name].astype(pd.CategoricalDtype(list(column.categories)))
    return own[list(schema.names)], pd.Series([people[place] for place in order], dtype="str")


def training(params: Params, schema: Schema, rows: pd.DataFrame, people: "pd.Series[str]") -> Records:
    """The training rows as the door sees them."""
    used, _ = used_rows(params, schema, rows, None, people)
    own = used[used[SPLIT] == "train"]
    encoder = Encoder(schema)
    codes = encoder.encode(own)
    return Records(encoder.expand(codes), encoder.labels(codes), own[PERSON].to_numpy())


def total(query: Query, records: Records) -> np.ndarray:
    """The exact sum. Every record keeps its secret die in both tables: by content, and by copy of equal ones."""
    if isinstance(query.contributions, BucketPairs):
        seen: Counter[bytes] = Counter()
        dice = []
        for row in records.x:
            seen[row.tobytes()] += 1
            dice.append(sha256(row.tobytes() + bytes([seen[row.tobytes()]])).digest()[:8])
        thrown = np.frombuffer(b"".join(dice), dtype="<u8")
        query = replace(query, contributions=BucketPairs(16, lambda count: thrown))
    return lattice_sum(query, iter([records])).astype(object)


@pytest.mark.long
@pytest.mark.parametrize("equal", [True, False], ids=["equal", "different"])
@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_person_moves_every_sum_no_farther_than_declared(params: Params, name: str, equal: bool) -> None:
    schema = IMAGES if name.startswith(ONLY_IMAGES) else TABLE
    rows, people = table(schema, equal)
    stays = (people != "z").to_numpy()
    whole = training(params, schema, rows, people)
    without = training(params, schema, rows[stays].reset_index(drop=True), people[stays].reset_index(drop=True))
    assert len(whole.x) - len(without.x) == UNIT.max_rows  # seven rows, of which three are used
    farther = []
    for query in small(name).planned_queries(context(ADD, name)):
        one, several = query.sensitivity_squared(ADD), query.sensitivity_squared(ADD, UNIT)
        assert several == UNIT.max_rows**2 * one
        distance = int(((total(query, whole) - total(query, without)) ** 2).sum())
        assert distance <= several, query.name
        farther.append(distance > one)
    if equal:
        assert all(farther[:1])  # three equal rows move the class counts by three: the sensitivity of one would not do


@pytest.mark.parametrize("name", sorted(SMALL))
def test_no_query_of_several_rows_is_answered_under_replacement(name: str) -> None:
    for query in small(name).planned_queries(context(Adjacency.REPLACE_ONE, name)):
        with pytest.raises(PlanError, match=r"needs privacy\.adjacency: add_remove_one"):
            query.sensitivity_squared(Adjacency.REPLACE_ONE, UNIT)


QUICK = {"iterations": 20, "batch_size": 64, "hidden": [16]}


@pytest.mark.long
@pytest.mark.parametrize("name", sorted({name for name in SMALL if " " not in name} - {*ONLY_IMAGES}))
def test_no_synthetic_row_of_a_method_breaks_a_rule(name: str, tmp_path: Path) -> None:
    Ledger.start(tmp_path)
    settings: dict[str, Any] = {**SMALL[name]}
    settings["train"] = {**settings["train"], **(QUICK if "hidden" in settings["train"] else {"iterations": 20})}
    schema = LEARNED if METHODS[name].learns_functions else RULED
    synthesizer = Synthesizer(
        method=name, schema=schema, population="people", ledger_home=tmp_path, cap=(10.0, 1e-5), settings=settings
    )
    synthesizer.fit(ruled_rows(1_000, schema=schema))
    for where in ({}, {"sick": "no"}):
        table = synthesizer.sample(100, where=where)
        assert set(violation_counts(table, schema).values()) == {0}
    assert all(f"- `{rule.text}`" in synthesizer.statement for rule in schema.rules)
    assert ", rules" in synthesizer.statement
    synthesizer.save(tmp_path / "saved")
    again = Synthesizer.load(tmp_path / "saved")
    assert again.schema_ == schema and again.sample(100, where=where).equals(table)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [name for name, kind in METHODS.items() if name not in ONLY_IMAGES and not kind.learns_functions][:1]
)
def test_a_method_that_learns_no_function_refuses_a_rule_without_a_table(name: str, tmp_path: Path) -> None:
    Ledger.start(tmp_path)
    synthesizer = Synthesizer(method=name, schema=LEARNED, population="people", ledger_home=tmp_path, cap=(10.0, 1e-5))
    with pytest.raises(PlanError, match=f"{name} cannot learn how 'school' determines 'grade'"):
        synthesizer.fit(ruled_rows(100, schema=LEARNED))


PAGE = (Path(__file__).parents[2] / "PRIVACY.md").read_text(encoding="utf-8")
NUMBERS = {"1": 1.0, "√2": math.sqrt(2), "2": 2.0}
ALL = "all"


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table: what may meet in one query, and Δ where it is a plain number."""

    queries: frozenset[str]
    methods: frozenset[str]
    maps: frozenset[str]
    terms: frozenset[str]
    sensitivity: dict[Adjacency, float]

    def has(self, one: "Asked") -> bool:
        named = one.query in self.queries or re.sub(r"_\d+$", "_1", one.query) in self.queries
        known = self.methods & {one.method, ALL} and one.maps <= self.maps and one.terms <= self.terms
        return bool(named and known)


@dataclasses.dataclass(frozen=True)
class Asked:
    """A query that some settings of a method ask."""

    query: str
    stage: str
    top: str
    method: str
    maps: frozenset[str]
    terms: frozenset[str]
    adjacency: Adjacency
    sensitivity: float


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def names(cell: str) -> frozenset[str]:
    return frozenset(re.findall(r"`([a-z_]+1?)`", cell))


def table_of(header: str) -> list[list[str]]:
    """The cells of the table with this header."""
    lines = iter(PAGE.splitlines())
    assert any(line.startswith(header) for line in lines), f"PRIVACY.md has no table {header}"
    next(lines)
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append(cells(line))
    return found


@cache
def rows() -> list[Row]:
    made = []
    for query, methods, feature, _, terms, added, replaced in table_of("| query | methods | map | feature | terms |"):
        method = methods.partition(",")[0]
        if METHODS.is_ours(method) and method not in METHODS:
            continue  # of a wing that is not installed
        plain = {
            adjacency: NUMBERS[text.partition(" (")[0]]
            for adjacency, text in zip(Adjacency, (added, replaced), strict=True)
            if text.partition(" (")[0] in NUMBERS
        }
        made.append(Row(names(query), frozenset({method}), names(feature), names(terms), plain))
    return made


def asked(query: AnyQuery, method: str, adjacency: Adjacency) -> Asked:
    """A query with every map and terms in its specification, those in others included. Clusters belong to the terms."""
    maps, terms = set[str](), set[str]()

    def look(value: Any) -> None:
        if isinstance(value, dict):
            maps.update([value["map"]] if "map" in value else [])
            terms.update([value["terms"]] if "terms" in value else [])
            for key in value.keys() - {"clusters"}:
                look(value[key])

    look(query.spec())
    delta = math.sqrt(query.sensitivity_squared(adjacency)) * 2.0**-query.lattice_bits
    stage, top = (STAGE, "") if isinstance(query, PartitionQuery) else (query.stage, query.feature.name)
    return Asked(query.name, stage, top, method, frozenset(maps), frozenset(terms), adjacency, delta)


def beside(adjacency: Adjacency) -> list[Asked]:
    """The queries that every method may have: private categories and bounds."""
    facts, one = context(adjacency), [QueryShare("q", "privatize", 1.0)]
    columns = {"job": {"kind": "categorical", "categories": "private", "other": "rest"}}
    selection = [QueryShare(query_name(1), STAGE, 0.1, 0.1)]
    plan = plan_with(one, 1.0, adjacency, facts.num_records, selection=selection)
    queries = [*partition_queries(schema_with(columns), plan, 10)]
    queries += [bounds_query(schema_with({"age": {"kind": "integer", "bounds": "private"}}))]
    return [asked(query, ALL, adjacency) for query in queries]


def of_relations() -> list[Query]:
    """The queries of relations, which follow from answers."""
    column, relation = Operand(Cells(0, 1, ()), 0.0, 9.0, 1.0), Relation("difference", (0, 0))
    candidates = RelationCandidates((column,), (relation,), ((0, "near"),), (0,), 0, 1)
    tables = Query("relations", "auxiliary", RelationCells((column,), (relation,)), contributions=AllRecords())
    choices = ChoiceQuery("choices", "auxiliary", candidates, contributions=AllRecords(), rounds=4)
    return [choices, tables, dataclasses.replace(tables, name="kept")]


@cache
def everything() -> list[Asked]:
    """All queries of the examples of all methods, and of rows that a person shares."""
    found = [one for adjacency in Adjacency for one in beside(adjacency)]
    methods = {name: small(name) for name in SMALL}
    first = methods["marginals"]
    for method in methods.values():
        for adjacency in Adjacency:
            facts = context(adjacency, method.name)
            queries = method.planned_queries(facts)
            # Where noise hides cells, the second release of marginals repeats the products.
            products = [query for query in queries if query.name == "products"]
            queries += [dataclasses.replace(query, name=name) for query in products for name in ("second", *SHARES)]
            queries += of_relations() if products else []
            found += [asked(query, method.name, adjacency) for query in queries]
    shared = RowSet(context(Adjacency.ADD_REMOVE_ONE), "", is_per_person=True)
    queries = [shared.scope(query) for query in first.planned_queries(shared.context)]
    return [*found, *(asked(query, "people", Adjacency.ADD_REMOVE_ONE) for query in queries)]


def kinds_of_terms() -> set[str]:
    """Every class of :mod:`likeness.release.records` that says what a contribution is."""
    kinds = [kind for kind in vars(records).values() if isinstance(kind, type) and hasattr(kind, "change")]
    return {re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower() for kind in kinds} - {"contributions"}


@pytest.mark.long
def test_every_query_has_a_row() -> None:
    for one in everything():
        if one.method != "people":  # their names and maps are those of marginals
            assert any(row.has(one) for row in rows()), f"PRIVACY.md has no row for {one}"
    assert len({one.query for one in everything()}) >= 9


@pytest.mark.long
def test_everything_in_the_table_is_asked_by_the_code() -> None:
    for row in rows():
        here = [one for one in everything() if row.has(one)]
        assert here, f"no method asks {row}"
        for kind in ("maps", "terms"):
            listed = getattr(row, kind)
            assert listed == frozenset().union(*(getattr(one, kind) for one in here)), f"{kind} of {row}"
        for name in row.queries:
            assert any(name in (one.query, re.sub(r"_\d+$", "_1", one.query)) for one in here), f"{name} of {row}"


@pytest.mark.long
def test_the_verifier_knows_every_query_and_no_other() -> None:
    for one in everything():
        method = METHODS.get(one.method, METHODS["marginals"])
        right = one.stage == "categories" or method.allows(_bare_name(one.query), one.stage, one.top)
        assert right, f"the verifier knows no query {one.query} of {one.top}"
        assert not method.allows(f"{_bare_name(one.query)}x", one.stage, one.top)
        if one.method in METHODS:
            assert one.maps & MAPS.keys() <= maps_of(method)
    for name, method in METHODS.items():
        asked_for = [one for one in everything() if one.method == name]
        for pattern, maps in method.queries.items():
            tops = {one.top for one in asked_for if re.fullmatch(pattern, one.query)}
            assert tops >= {kind.name for kind in maps} and tops, f"{name} does not ask {pattern} by all of its maps"


@pytest.mark.long
def test_plain_sensitivities_are_those_of_the_code() -> None:
    for row in rows():
        for one in everything():
            if row.has(one) and one.adjacency in row.sensitivity:
                assert one.sensitivity == pytest.approx(row.sensitivity[one.adjacency], rel=1e-4), (row, one)


def test_methods_maps_and_terms_of_the_tables_are_all_there_are() -> None:
    described = table_of("| terms | a contribution |")
    assert frozenset().union(*(row.methods for row in rows())) == {*METHODS, ALL}
    section = PAGE.partition("## Every query of this version")[2].partition("\n## ")[0]
    assert not {name for name in MAPS if f"`{name}`" not in section}
    assert sorted(line[0].strip("`") for line in described) == sorted(kinds_of_terms())
