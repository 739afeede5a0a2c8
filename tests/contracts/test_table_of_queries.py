"""The table of queries in PRIVACY.md against the code, both ways: queries, methods, maps, terms and plain numbers."""

import dataclasses
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from method_examples import SMALL
from test_every_method import context, small
from toys import plan_with, schema_with

from likeness.methods import METHODS
from likeness.methods.maps import MAPS
from likeness.methods.row_set import RowSet
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import QueryShare
from likeness.release import records
from likeness.release.partition_selection import STAGE, partition_queries, query_name
from likeness.release.request import AnyQuery
from likeness.verify.ledger import maps_of, query_form

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
    method: str
    maps: frozenset[str]
    terms: frozenset[str]
    adjacency: Adjacency
    sensitivity: float


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def names(cell: str) -> frozenset[str]:
    return frozenset(re.findall(r"`([a-z_]+1?)`", cell))


def table(header: str) -> list[list[str]]:
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
    for query, methods, feature, _, terms, added, replaced in table("| query | methods | map | feature | terms |"):
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
    return Asked(query.name, method, frozenset(maps), frozenset(terms), adjacency, delta)


def beside(adjacency: Adjacency) -> list[Asked]:
    """The query that every method may have: private categories."""
    facts, one = context(adjacency), [QueryShare("q", "privatize", 1.0)]
    columns = {"job": {"kind": "categorical", "categories": "private", "other": "rest"}}
    selection = [QueryShare(query_name(1), STAGE, 0.1, 0.1)]
    plan = plan_with(one, 1.0, adjacency, facts.num_records, selection=selection)
    return [asked(query, ALL, adjacency) for query in partition_queries(schema_with(columns), plan, 10)]


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
            queries += [dataclasses.replace(query, name="second") for query in queries if query.name == "products"]
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
        assert re.fullmatch(query_form(method), one.query), f"the verifier knows no query {one.query}"
        if one.method in METHODS:
            assert one.maps & MAPS.keys() <= maps_of(method)
    for name, method in METHODS.items():
        asked_for = {one.query for one in everything() if one.method == name}
        for pattern in method.queries:
            assert any(re.fullmatch(pattern, query) for query in asked_for), f"{name} does not ask {pattern}"


@pytest.mark.long
def test_plain_sensitivities_are_those_of_the_code() -> None:
    for row in rows():
        for one in everything():
            if row.has(one) and one.adjacency in row.sensitivity:
                assert one.sensitivity == pytest.approx(row.sensitivity[one.adjacency], rel=1e-4), (row, one)


def test_methods_maps_and_terms_of_the_tables_are_all_there_are() -> None:
    described = table("| terms | a contribution |")
    assert frozenset().union(*(row.methods for row in rows())) == {*METHODS, ALL}
    section = PAGE.partition("## Every query of this version")[2].partition("\n## ")[0]
    assert not {name for name in MAPS if f"`{name}`" not in section}
    assert sorted(line[0].strip("`") for line in described) == sorted(kinds_of_terms())
