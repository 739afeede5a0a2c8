"""Bins between private quantiles: their cost, their way into the embedding, and what tells where they come from."""

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from toy_numbers import BINS, CONTEXT, LEARNED, SCHEMA, encoded, marginals, plan_of, section, through_the_door
from toys import door_to

from likeness.config.load import load_params
from likeness.config.params import Params
from likeness.core.errors import ParamsError, PlanError, ReleaseError
from likeness.core.paths import ProjectPaths
from likeness.data.encoding.bins import grid_of
from likeness.data.schema.schema import Schema
from likeness.features.cells import Cells
from likeness.features.column_marginals import ColumnMarginals
from likeness.methods.base import Context
from likeness.methods.marginals.method import Marginals
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.methods.marginals.quantiles import QUANTILES, cells_of_number, learned_bins, shares_within
from likeness.pipeline import consistency
from likeness.pipeline.project import Project
from likeness.preflight.cost import new_releases
from likeness.preflight.forecast import MOST_NOISE, forecast
from likeness.privacy.adjacency import Adjacency
from likeness.release.records import Records
from likeness.release.sums.lattice_sum import lattice_sum

ROOT = Path(__file__).parents[2]
SHIPPED = yaml.safe_load((ROOT / "params.yaml").read_text())["marginals"]
ADULT = Schema.load(ROOT / "data/schema/adult.yaml")


def test_the_sensitivity_holds_on_neighbors_and_is_reached() -> None:
    x = encoded(200)
    (_, query) = marginals(columns=["wide", "gaps"], cells=40).auxiliary_queries(CONTEXT, {})

    def total(rows: np.ndarray) -> np.ndarray:
        return lattice_sum(query, [Records(rows, np.zeros(len(rows), dtype=np.int64))])

    unit, moves = 4**query.lattice_bits, set()
    for place in range(60):
        moved = int(((total(x) - total(np.delete(x, place, axis=0))) ** 2).sum())
        assert moved == 2 * unit == query.sensitivity_squared(Adjacency.ADD_REMOVE_ONE)
        other = x.copy()
        other[place] = x[place + 60]
        moves.add(int(((total(x) - total(other)) ** 2).sum()))
    assert max(moves) == 4 * unit == query.sensitivity_squared(Adjacency.REPLACE_ONE)
    assert min(moves) < 4 * unit


def test_all_are_the_numbers_of_which_something_can_be_learned() -> None:
    def asked(**quantiles: Any) -> list[int]:
        feature = list(marginals(**quantiles).auxiliary_queries(CONTEXT, {}))[1].feature
        assert isinstance(feature, ColumnMarginals)
        return [column.start for column in feature.columns]

    starts = CONTEXT.layout.starts
    assert asked(columns="all") == [starts["wide"], starts["gaps"]]  # few: a bin for every value already
    assert asked(columns=["gaps"]) == [starts["gaps"]]
    off = marginals(0.0)
    assert [query.name for query in off.auxiliary_queries(CONTEXT, {})] == ["class_counts"]
    assert off.notes(CONTEXT, {}) == []


def test_bins_follow_the_rows_and_cost_what_the_plan_gives_them() -> None:
    """At ε = 5 with 20,000 rows, σ is 6 records: an edge is wrong by less than a cell's content."""
    method = marginals(columns="all", cells=512)
    plan = plan_of(method, 5.0)
    released = through_the_door(method, plan, 20_000)
    assert list(released) == [query.query for query in plan.queries] == ["class_counts", QUANTILES, "embedding"]
    receipt = released[QUANTILES].receipt
    assert (receipt.stage, receipt.sensitivity) == ("auxiliary", pytest.approx(math.sqrt(2)))
    assert receipt.rho == pytest.approx(0.1 * plan.rho, rel=1e-9)
    assert sum(one.receipt.rho for one in released.values()) == pytest.approx(plan.rho, rel=1e-9)
    grids = method.auxiliary.quantiles.grids(CONTEXT, released, BINS)
    wide, gaps = grids["wide"], grids["gaps"]
    assert wide is not None and gaps is not None
    # The first of 512 cells holds nearly everything but the zeros: it is a bin of its own, beside the spike's.
    assert wide.edges[2] == pytest.approx(1 / 512) and wide.lows[0] == wide.highs[0] == 0
    assert wide.size == BINS + 1  # that of the spike beside
    values = np.array(gaps.edges) * 999
    assert sum(99 < edge < 900 for edge in values) <= 1  # the gap is not cut, but for an edge that moved a cell
    few = method.mixture_columns(CONTEXT, released)[3]
    assert len(few.edges) == 8 and few.firsts == ()  # as ever
    feature = method.embedding_query(CONTEXT, released).feature
    assert isinstance(feature, PairMarginals) and feature.columns[1].edges == wide.edges[1:-1]
    assert feature.sizes == method.foreseen_queries(CONTEXT)[-1].feature.sizes  # type: ignore[attr-defined]
    assert method.notes(CONTEXT, released) == [LEARNED]


def test_bins_of_equal_width_ask_the_pairs_as_without_quantiles_and_say_how_values_lie_within() -> None:
    method = marginals(columns="all", cells=512, edges="equal_width")
    released = through_the_door(method, plan_of(method, 5.0), 20_000)
    assert released["embedding"].receipt.feature == marginals(0.0).embedding_query(CONTEXT, {}).spec()
    assert method.notes(CONTEXT, released) == [
        "Values of `wide`, `gaps` lie within their bins as the noisy histogram `quantiles` says."
    ]
    _, wide, gaps, few = method.mixture_columns(CONTEXT, released)
    assert len(wide.firsts) == wide.cells.size == BINS + 1 and few.firsts == ()
    shares, firsts = np.array(wide.shares), [*wide.firsts, len(wide.shares)]
    np.testing.assert_allclose([shares[a:b].sum() for a, b in itertools.pairwise(firsts)], 1)
    # Of amounts from 0 to 125,000, which are one bin, most lie in the first of its 64 cells.
    assert shares[1] > 0.7
    # Of 0 to 124, and of 875 to 999, there are none between 100 and 899.
    values = (np.array(gaps.lows) * 999).round()
    first = values < 125
    assert np.array(gaps.shares)[first & (values >= 100)].sum() < 0.15
    assert np.array(gaps.shares)[first & (values < 100)].sum() > 0.85


@pytest.mark.parametrize(("cells", "made"), [(100, 104), (12, 16), (104, 104)])
def test_cells_that_bins_of_equal_width_would_cut_are_rounded_up(cells: int, made: int) -> None:
    method = marginals(columns="all", cells=cells, edges="equal_width")
    method.check(CONTEXT)
    assert sizes(method) == (made + 1, made + 1)  # a spike; a cell for missing
    assert sizes(marginals(columns="all", cells=cells)) == (cells + 1, cells + 1)
    released = through_the_door(method, plan_of(method, 5.0), 1_000)
    assert [bool(column.firsts) for column in method.mixture_columns(CONTEXT, released)] == [False, True, True, False]


def sizes(method: Marginals) -> tuple[int, ...]:
    """Cells of the histogram of each number."""
    (_, histogram) = method.auxiliary_queries(CONTEXT, {})
    assert isinstance(histogram.feature, ColumnMarginals)
    return tuple(column.size for column in histogram.feature.columns)


def test_auto_asks_of_numbers_where_there_are_some_and_else_leaves_their_share_to_the_pairs() -> None:
    auto, every = (marginals(0.1, columns=columns, edges="equal_width") for columns in ("auto", "all"))
    assert auto.shares(CONTEXT) == every.shares(CONTEXT) and sizes(auto) == sizes(every)
    content = SCHEMA.to_dict()
    columns = [column for column in content["columns"] if column["name"] in ("c", "few")]
    small = Context(Schema.from_dict({**content, "columns": columns}, "small.yaml"), "add_remove_one", None, 0)
    auto.check(small)
    with pytest.raises(PlanError, match="no numeric feature column has more cells than bins"):
        every.check(small)
    without = marginals(0.0)
    assert auto.shares(small) == without.shares(small)  # and so the same plan and keys
    assert [query.spec() for query in auto.foreseen_queries(small)] == [
        query.spec() for query in without.foreseen_queries(small)
    ]
    assert auto.notes(small, {}) == [] and auto.mixture_columns(small, {}) == without.mixture_columns(small, {})


def test_noise_alone_makes_no_pattern_within_a_bin_and_what_is_there_stays() -> None:
    """The seed is fixed: no false alarms."""
    generator = np.random.default_rng(0)
    for _ in range(200):
        counts = (10_000 + generator.normal(0, 100, 64)).round().astype(np.int64)
        shares = np.array(shares_within([0], counts, 100.0))
        assert np.abs(shares - 1 / 64).sum() < 0.5 * np.abs(counts / counts.sum() - 1 / 64).sum()
    exact = np.array([5, 0, 15, 7, 0, 0, 0])
    assert shares_within([0, 3, 4], exact, 0.0) == (0.25, 0.0, 0.75, 1.0, 1 / 3, 1 / 3, 1 / 3)
    peak = np.array([1_000, 1_020, 980, 90_000, 990, 1_010])
    assert np.allclose(shares_within([0], peak, 30.0), peak / peak.sum(), atol=1e-3)
    assert shares_within([0], np.array([-5, -9]), 2.0) == (0.5, 0.5)


def test_where_noise_hides_the_quantiles_bins_are_the_public_ones_and_the_statement_says_so() -> None:
    method = marginals(columns="all")
    released = through_the_door(method, plan_of(method, 0.1), 50)
    (note,) = method.notes(CONTEXT, released)
    assert note == "Bins of `wide`, `gaps`: of equal width, because the noise of `quantiles` hides the quantiles."
    assert released["embedding"].receipt.feature == method.foreseen_queries(CONTEXT)[-1].spec()


def test_missing_cells_are_in_no_bin() -> None:
    column = SCHEMA.column("gaps")
    fine = cells_of_number(column, 0, grid_of(column, 8))
    assert learned_bins(column, fine, np.array([10] * 8 + [10_000]), 0.0, 4) == (0, 2, 4, 6)


CHANGED: list[tuple[dict[str, Any], str]] = [
    ({"cells": 65}, r"quantiles\.safetensors answers another question"),
    ({"columns": ["age"]}, r"quantiles\.safetensors answers another question"),
    ({"columns": "none"}, "is not the plan of params.yaml"),
]


def adult(share: float = 0.1, **quantiles: Any) -> Params:
    shipped = load_params(ROOT / "params.yaml")
    return dataclasses.replace(shipped, method="marginals", sections={"marginals": section(share, **quantiles)})


@pytest.mark.long
def test_account_and_forecast_of_cost_follow_the_released_quantiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(consistency, "_check_generator", lambda *_: None)
    params = adult(columns=["age", "fnlwgt"], cells=64)
    project = Project(ROOT, params)
    plan, method, context = project.plan, project.method, project.context
    dataset, answer = door_to(project, rows=3_000, epsilon=3.0)

    def to_come(settings: Params) -> float:
        return sum(cost.rho for cost in new_releases(Project(Path(), settings), dataset).values())

    assert to_come(params) == pytest.approx(plan.rho)
    auxiliary = method.ask(context, answer)
    assert to_come(params) == pytest.approx(plan.query("embedding").rho)
    # Another grid is another question, and so are the bins that its answer may give: nothing of it is free.
    assert to_come(adult(columns=["age", "fnlwgt"], cells=65)) == pytest.approx(0.97 * plan.rho)
    released = {Path(f"{name}.safetensors"): one for name, one in auxiliary.items()}
    released[ProjectPaths.embedding] = answer(method.embedding_query(context, auxiliary))
    assert to_come(params) == 0
    consistency.check_run(project, plan, released)
    for change, message in CHANGED:
        changed = {"columns": ["age", "fnlwgt"], "cells": 64, **change}
        share = 0.0 if changed["columns"] == "none" else 0.1
        with pytest.raises(ReleaseError, match=message):
            consistency.check_run(Project(ROOT, adult(share, **changed)), plan, released)
    # Edges that are not those of the released histogram, in a release that is otherwise in order.
    unlearned = method.foreseen_queries(context)[-1]
    with pytest.raises(ReleaseError, match=r"embedding\.safetensors: answers another question"):
        consistency.check_run(project, plan, {**released, ProjectPaths.embedding: answer(unlearned)})


def test_the_forecast_asks_for_enough_records_to_see_quantiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (_, query, _) = forecast(Project(Path(), adult(columns=["age", "hours-per-week"]))).queries
    (measure,) = query.measures
    cells = 99  # whole hours of a week; ages are fewer
    assert query.sensitivity == pytest.approx(math.sqrt(2))
    assert measure.noise == pytest.approx(query.sigma * math.sqrt(cells) / 2)
    assert measure.records == math.ceil(measure.noise * BINS / MOST_NOISE)


@pytest.mark.long
def test_with_bins_of_equal_width_another_histogram_asks_no_pairs_again_and_demands_no_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)

    def settings(cells: int) -> Params:
        return adult(columns=["age", "fnlwgt"], cells=cells, edges="equal_width")

    project = Project(ROOT, settings(64))
    plan, method, context = project.plan, project.method, project.context
    dataset, answer = door_to(project, rows=500, epsilon=3.0)

    answer(method.embedding_query(context, method.ask(context, answer)))
    assert new_releases(Project(Path(), settings(64)), dataset) == {}
    (cost,) = new_releases(Project(Path(), settings(128)), dataset).values()
    assert cost.rho == pytest.approx(0.1 * plan.rho)
    (_, query, _) = forecast(Project(Path(), settings(64))).queries
    assert [measure.records for measure in query.measures] == [None]


@pytest.mark.parametrize(
    ("share", "quantiles", "message"),
    [
        (0.0, {"columns": "all"}, r"shares\.quantiles must be between 0 and 1 while"),
        (0.1, {}, r"shares\.quantiles must be 0 while .* is none, got 0\.1"),
        (
            0.1,
            {"columns": "some"},
            r"quantiles\.columns must be none, auto, all or a list of different names, got 'some'",
        ),
        (0.1, {"columns": ["wide", "wide"]}, r"quantiles\.columns must be none, auto, all or a list"),
        (0.1, {"columns": "all", "cells": 1025}, r"quantiles\.cells must be from 2 to 1,024, got 1025"),
    ],
    ids=["no share", "share of nothing", "unknown word", "twice", "cells"],
)
def test_settings_that_contradict_each_other_are_refused(share: float, quantiles: dict[str, Any], message: str) -> None:
    with pytest.raises(ParamsError, match=message):
        marginals(share, **quantiles)


@pytest.mark.parametrize("name", ["c", "few", "nobody"])
def test_columns_without_quantiles_are_refused_before_anything_is_spent(name: str) -> None:
    with pytest.raises(PlanError, match=f"columns: '{name}' is no numeric feature column .* There are: wide, gaps"):
        marginals(columns=["wide", name]).check(CONTEXT)
    with pytest.raises(PlanError, match="no numeric feature column has more cells than bins"):
        marginals(columns="all", cells=4).check(CONTEXT)


def test_cells_that_are_none_are_refused() -> None:
    with pytest.raises(ReleaseError, match="at least one column"):
        ColumnMarginals(())
    with pytest.raises(ReleaseError, match="column_marginals: columns are not cells"):
        ColumnMarginals(({"start": 0},))  # type: ignore[arg-type]
    places = ColumnMarginals((Cells(0, 2), Cells(2, 3, (0.5,), missing=True)))
    rows = itertools.product([0.0, 0.5], [0.0, 1.0])
    x = np.array([[1.0, 0.0, value, missing] for value, missing in rows])
    assert places.places(x).tolist() == [[0, 0], [0, 2], [0, 1], [0, 2]]
