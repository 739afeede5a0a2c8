"""Relations: places by a row alone, neighbors, what follows from choices, and rows that keep what is found."""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import schema_with

from likeness import Ledger, Synthesizer
from likeness.data.encoding.encoder import Encoder
from likeness.features.cells import Cells
from likeness.methods.base import Context
from likeness.methods.marginals.method import AskedRelations, Marginals
from likeness.methods.marginals.relations.acceptance import KEPT, SHARES
from likeness.methods.marginals.relations.listing import Listing
from likeness.methods.marginals.relations.repair import Repair, read_uses
from likeness.methods.marginals.relations.tables import (
    AT_LEAST,
    AT_MOST,
    CLOCK,
    DIFFERENCE,
    FUNCTION,
    MIDDLE,
    NEAR,
    RATIO,
    SUM,
    TOGETHER,
    Operand,
    Relation,
    RelationCandidates,
    RelationCells,
    RelationUse,
    hashes_of,
)
from likeness.privacy.adjacency import Adjacency
from likeness.release.choices import ChoiceQuery, scores_of
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.lattice_sum import lattice_sum

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE
COLUMNS = {
    "hour": {"kind": "integer", "lower": 0, "upper": 23},
    "minute": {"kind": "integer", "lower": 0, "upper": 59},
    "time": {"kind": "integer", "lower": 0, "upper": 2400},
    "end": {"kind": "integer", "lower": 0, "upper": 2400, "nullable": True},
    "town": {"kind": "categorical", "categories": ["a", "b", "c", "d", "no town"]},
    "county": {"kind": "categorical", "categories": ["x", "y", "none at all"]},
}
SCHEMA = schema_with(COLUMNS)


def table(rows: int) -> pd.DataFrame:
    random = np.random.default_rng(rows)
    hour, minute, town = random.integers(0, 24, rows), random.integers(0, 60, rows), random.integers(0, 5, rows)
    time = 100 * hour + minute
    end = np.minimum(2400, time + random.integers(0, 300, rows) * (random.random(rows) < 0.6))
    return pd.DataFrame(
        {
            "hour": hour,
            "minute": minute,
            "time": time,
            "end": pd.array(np.where(random.random(rows) < 0.1, None, end), "Int64"),
            "town": pd.Categorical.from_codes(town, COLUMNS["town"]["categories"]),  # type: ignore[arg-type]
            "county": pd.Categorical.from_codes(
                [0, 0, 1, 1, 2] @ np.eye(5, dtype=int)[:, town], COLUMNS["county"]["categories"]
            ),  # type: ignore[arg-type]
        }
    )


def operands() -> tuple[Operand, ...]:
    starts = Context(SCHEMA, "add_remove_one", None, 0).layout.starts
    edges = tuple(np.linspace(0.1, 0.9, 9).round(6).tolist())
    return tuple(
        Operand(Cells(starts[column.name], column.width))
        if column.is_categorical
        else Operand(Cells(starts[column.name], 10 + column.nullable, edges, column.nullable), *column.bounds, 1.0)
        for column in SCHEMA.feature_columns
    )


RELATIONS = (
    Relation(DIFFERENCE, (2, 3)),
    Relation(SUM, (3, 2, 1)),
    Relation(CLOCK, (2, 0, 1), 100.0),
    Relation(RATIO, (2, 0)),
    Relation(RATIO, (3, 2, 1)),
    Relation(TOGETHER, events=(("zero", 0, 0), ("missing", 3, 0))),
    Relation(FUNCTION, (4, 5)),
    Relation(FUNCTION, (4,), events=(("is", 5, 2),)),
    Relation(FUNCTION, (4, 5, 2)),
)
OFFERS = ((0, AT_MOST), (0, AT_LEAST), (0, NEAR), *((number, NEAR) for number in range(1, len(RELATIONS))))
CANDIDATES = RelationCandidates(operands(), RELATIONS, OFFERS, (3,) * len(OFFERS), 4, 2**32 - 1)
CHOICES = ChoiceQuery("choices", "auxiliary", CANDIDATES, rounds=3)
CELLS = Query("relations", "auxiliary", RelationCells(operands(), RELATIONS))
KEEPS = ((), (500, 503), (500, 501), (490, 501), (495, 506), (1, 2), (0, 0, 1, -1, 2), (0, 0, 0, 0, 1), (3,) * 15)
KEPT_CELLS = Query(KEPT, "auxiliary", RelationCells(operands(), RELATIONS, KEEPS))


def dense(rows: int) -> np.ndarray:
    encoder = Encoder(SCHEMA)
    return np.asarray(encoder.expand(encoder.encode(table(rows))))


def records(x: np.ndarray) -> list[Records]:
    return [Records(x, np.zeros(len(x), np.int64))]


POOL = dense(60)
indices = st.lists(st.integers(0, 59), max_size=10)


@settings(deadline=None, max_examples=120)
@given(
    indices,
    st.lists(st.integers(0, 59), min_size=1, max_size=3),
    st.integers(0, 59),
    st.sampled_from([2**32 - 1, 2**31]),
)
def test_neighbors_move_scores_and_tables_within_their_bounds(
    rows: list[int], own: list[int], other: int, most_hash: int
) -> None:
    """A person comes or goes, and a row is replaced: all kinds of candidates, and both maps of tables."""
    asked = replace(CHOICES, feature=replace(CANDIDATES, most_hash=most_hash))
    score = lambda chosen: np.array(scores_of(asked, records(POOL[chosen]))[0])  # noqa: E731
    moved = score([*rows, *own]) - score(rows)
    assert (moved >= 0).all() and (moved <= len(own)).all() and moved[-1] == 0
    replaced = score([*rows, other]) - score([*rows, own[0]])
    assert abs(replaced).max() <= 1
    for query in (CELLS, KEPT_CELLS):
        total = lambda chosen, query=query: lattice_sum(query, records(POOL[chosen])).astype(object)  # noqa: E731
        first, second, added = total([*rows, own[0]]), total([*rows, other]), total(rows)
        assert ((first - added) ** 2).sum() == query.sensitivity_squared(ADD)
        assert ((first - second) ** 2).sum() <= query.sensitivity_squared(REPLACE)


def test_a_place_depends_on_its_row_alone() -> None:
    feature, whole = CELLS.feature, CELLS.feature.cell_indices(POOL)  # type: ignore[attr-defined]
    assert (np.stack([feature.cell_indices(POOL[[row]])[0] for row in range(60)]) == whole).all()  # type: ignore[attr-defined]
    assert len({*hashes_of(POOL).tolist()}) == 60 and (hashes_of(POOL[[7]]) == hashes_of(POOL)[7]).all()
    assert (whole[:, 2] == MIDDLE + 1).all()  # the clock
    missing = table(60)["end"].isna().to_numpy()
    assert (whole[missing, 0] == 0).all() and (whole[~missing, 0] > MIDDLE).all()
    again = RelationCells(
        **{key: value for key, value in json.loads(json.dumps(feature.spec())).items() if key != "map"}
    )
    assert again == feature


def test_what_follows_from_choices_is_struck() -> None:
    left = CANDIDATES.remaining([0])
    assert left == [3, 4, 5, 6, 7, 8, 9, 10, 11] and CANDIDATES.remaining([11]) == []
    chain = tuple(Relation(DIFFERENCE, pair) for pair in ((0, 1), (1, 2), (0, 2)))
    events = ("zero", 0, 0), ("zero", 1, 0), ("zero", 2, 0)
    same = tuple(
        Relation(TOGETHER, events=pair)
        for pair in ((events[0], events[1]), (events[1], events[2]), (events[0], events[2]))
    )
    every = RelationCandidates(
        operands(), (*chain, *same), tuple((n, AT_MOST if n < 3 else NEAR) for n in range(6)), (0,) * 6, 0, 1
    )
    assert every.remaining([0, 1]) == [3, 4, 5, 6] and every.remaining([3, 4]) == [0, 1, 2, 6]


def test_candidates_follow_from_the_schema_and_spare_public_rules() -> None:
    listing = Listing(SCHEMA, operands(), 5_000)
    assert {Relation(CLOCK, (2, 0, 1), 100.0), Relation(FUNCTION, (4, 5)), Relation(DIFFERENCE, (2, 3))} <= {
        *listing.relations
    }
    ruled = Listing(schema_with(COLUMNS, rules=[{"order": ["time", "end"]}]), operands(), 5_000)
    assert Relation(DIFFERENCE, (2, 3)) not in ruled.relations and listing.left_out == 0


def test_repaired_rows_keep_what_is_found_as_often_as_released() -> None:
    random, x = np.random.default_rng(0), dense(4_000)
    shuffled = np.concatenate(
        [x[random.permutation(len(x)), a:b] for a, b in ((0, 1), (1, 2), (2, 3), (3, 5), (5, 10), (10, 13))], axis=1
    )
    uses = [
        RelationUse(RELATIONS[0], AT_MOST, 0.99, 0.5, 0.01, 0.4),
        RelationUse(RELATIONS[2], NEAR, 0.97, 0.0, 0.01, 0.0, (500, 501), (1.0,), 2),
        RelationUse(RELATIONS[6], NEAR, 0.9, 0.4, 0.01, 0.0, (0, 0, 1, 1, 2), (), 5),
    ]
    stored = read_uses(
        json.loads(
            json.dumps(
                {
                    "operands": [vars(o) | {"cells": vars(o.cells)} for o in operands()],
                    "uses": [{**vars(one), "relation": vars(one.relation)} for one in uses],
                }
            )
        )
    )
    assert stored == {"operands": operands(), "uses": uses}
    y = Repair(shuffled.copy(), operands(), [None] * 6, random).run(uses)
    feature = RelationCells(operands(), tuple(one.relation for one in uses), ((), (500, 501), (0, 0, 1, 1, 2)))
    cells = feature.cell_indices(y)
    known = cells[:, 0] > 0
    order = (cells[known, 0] > 1).mean()
    assert 0.97 <= order <= 1 and 0.3 <= (cells[known, 0] == 3).mean() <= 0.5
    assert (cells[:, 1] == 2).mean() == pytest.approx(0.97, abs=0.01)
    assert (cells[:, 2] == 2).mean() == pytest.approx(0.9, abs=0.01)
    assert (np.sort(y[:, 0]) == np.sort(shuffled[:, 0])).all()  # an hour stays
    fixed = Repair(shuffled.copy(), operands(), [None] * 6, random, fixed=(2,)).run(uses)
    assert (fixed[:, 2] == shuffled[:, 2]).all()


def synthesizer(relations: str, epsilon: float = 3.0) -> Synthesizer:
    train = {"num_components": 40, "iterations": 60}
    schema = {"name": "t", "source": "made", "task": "none", "label": None, "columns": COLUMNS}
    options = {"auxiliary": {"relations": relations}, "train": train}
    return Synthesizer(schema=schema, epsilon=epsilon, delta=1e-5, population="p", settings=options, cap=(50.0, 1e-3))


def kept(frame: pd.DataFrame) -> Sequence[float]:
    time = frame["time"].astype(float)
    ends = frame["end"].astype(float)
    county = frame["town"].astype(str).map(dict(zip("abcd", "xxyy", strict=True))).fillna("none at all")
    clock = (time == 100 * frame["hour"] + frame["minute"]).mean()
    return clock, (time[ends.notna()] <= ends[ends.notna()]).mean(), (county == frame["county"].astype(str)).mean()


def test_a_run_finds_relations_and_its_rows_keep_them() -> None:
    Ledger.start(if_absent=True)
    rows = table(6_000)
    with_relations = synthesizer("found").fit(rows)
    assert min(kept(with_relations.sample(3_000))) > 0.93
    without = kept(synthesizer("none").set_params(attempt="2").fit(rows).sample(3_000))
    assert without[0] < 0.1


def test_relations_cost_their_shares_and_none_costs_nothing() -> None:
    context = Context(SCHEMA, "add_remove_one", None, 0)
    uses = {one.query: one.share for one in Marginals(auxiliary=AskedRelations("found")).shares(context)}
    none = {one.query: one.share for one in Marginals().shares(context)}
    assert {name: uses[name] for name in SHARES} == SHARES and not {*SHARES} & {*none}
    assert sum(uses.values()) == pytest.approx(1) == sum(none.values()) and none["columns"] - uses[
        "columns"
    ] == pytest.approx(0.02)
