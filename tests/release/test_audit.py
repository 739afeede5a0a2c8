"""The audit of the door: every query holds and the audit sees it; every planted fault is reported.

False alarms: each test inside an audit refutes a true claim with probability at most 1e-7, about ten a query. That the
bound comes within 30 % of the tight ε fails by chance with probability about 1e-7 a query (5.4 standard deviations of
the bound at 5,000 draws, simulated).
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from toy_maps import Trigonometric

from likeness.config.explain import defaults
from likeness.core.rng import public
from likeness.data.encoding.layout import Layout
from likeness.methods import METHODS
from likeness.methods.base import Method
from likeness.methods.maps import MAPS
from likeness.methods.marginals.pair_map import PairMarginals
from likeness.privacy.adjacency import Adjacency, lattice_sensitivity_squared
from likeness.privacy.calibration import delta_of_mu
from likeness.release import door, query
from likeness.release.query import Query
from likeness.release.sums import clipping
from tests.campaigns.audit import COLOR, DELTA, OPTIONS, SCHEMA, Case, Finding, audit, cases
from tests.campaigns.audit_bounds import epsilon_lower, mu_lower, tight_epsilon, upper_rate, variance_is

pytestmark = pytest.mark.long

DRAWS, EPSILON, POWER = 5_000, 15.0, 0.7
SMALL = {"num_frequencies": 100, "widths": [40]}
ASKED = {
    "marginals": {"histograms", "products", "second"},
    "pearl": {"mixture_1", "mixture_2"},
    "moments": {"level_counts", "norms"},
}
MAPS_IN_COLOR = {
    "moments": {"cosine_levels", "cosine_moments", "cosine_norms", "level_counts"},
    "merf": {"mixed_fourier"},
    "merf_ae": {"encoded_fourier"},
    "ntk": {"tangent"},
}
WIDTH = Layout.from_schema(SCHEMA).width
FEW = 2_000  # for planted faults: noise of 0.8 times its scale lies nine standard deviations of the test away


def small(method: type[Method]) -> dict[str, Any]:
    """A method's settings with fewer frequencies, and a narrow network: what the audit asks hangs on neither."""
    section = defaults(method)
    section["privatize"] |= {key: SMALL[key] for key in section["privatize"].keys() & SMALL}
    return section


@pytest.fixture(scope="module")
def every_case() -> list[Case]:
    with patch("tests.campaigns.audit.defaults", small):
        return cases()


@pytest.fixture(scope="module")
def embedding() -> Case:
    """Cosines and sines, one record more or less."""
    asked = Query("embedding", "privatize", Trigonometric(100, WIDTH, 0.25, seed=0), num_groups=2)
    return Case("toy embedding", Adjacency.ADD_REMOVE_ONE, asked, asked)


def test_every_method_map_and_adjacency_is_audited(every_case: list[Case]) -> None:
    maps = {str(case.query.feature.spec()["map"]) for case in every_case}
    maps |= {str(case.query.spec()["clusters"]["map"]) for case in every_case if "clusters" in case.query.spec()}
    # Relations are asked about where settings say so: tests/methods/test_found_relations.py.
    usual = {name for name, kind in MAPS.items() if all(kind not in each.row_maps for each in METHODS.values())}
    assert maps == usual, "a registered map that no method asks for, or a method that the audit does not reach"
    assert {case.name.split()[0] for case in every_case} == {*METHODS}
    # Questions that hang on released medians may be new to an option by their noise, under one adjacency only.
    shipped = [case for case in every_case if " with " not in case.name]
    for adjacency in Adjacency:
        assert len([case for case in shipped if case.adjacency is adjacency]) == len(shipped) / 2


def test_options_that_are_off_as_shipped_are_audited(every_case: list[Case]) -> None:
    asked = {case.query.name for case in every_case}
    assert {name for method in ASKED.keys() & METHODS for name in ASKED[method]} <= asked
    for adjacency in Adjacency:
        names = " ".join(case.name for case in every_case if case.adjacency is adjacency)
        assert all(f"{method} with {option} " in names for method, option, _ in OPTIONS)
        colored = [case for case in every_case if case.schema is COLOR and case.adjacency is adjacency]
        in_color = {str(case.query.feature.spec()["map"]) for case in colored}
        assert {name for method in MAPS_IN_COLOR.keys() & METHODS for name in MAPS_IN_COLOR[method]} <= in_color
        own = [case.query.feature for case in every_case if case.adjacency is adjacency]
        pairs = [feature for feature in own if isinstance(feature, PairMarginals)]
        assert any(feature.tables and feature.squared_weights for feature in pairs)


def test_every_query_holds_with_its_own_map(every_case: list[Case]) -> None:
    found = [audit(case, epsilon=EPSILON) for case in every_case]
    assert [(one.case.name, one.failures) for one in found if one.failures] == []
    assert all(one.reached > 0.6 for one in found), "the tables tried are not the worst ones"


def canary_of(case: Case) -> object:
    """What its canary hangs on: the parts of a map count by their bounds and signs, and not by what else it is."""
    parts = Counter(
        (part.width > 1, part.nonnegative, part.norm_bound_squared) for part in case.query.feature.bounded_parts
    )
    terms = repr(case.query.contributions), case.query.num_groups, type(case.canary.query.feature)
    return frozenset(parts.items()), *terms, case.schema, case.adjacency, case.most


def kind_of(case: Case) -> object:
    """What kind of canary it is: one part or several, of which signs, and how the door adds records up.

    Adjacencies share the noise, and differ in the sensitivity, which the test above sees under both.
    """
    parts, terms = case.query.feature.bounded_parts, case.query.contributions
    signs, norms = {(part.width > 1, part.nonnegative) for part in parts}, {part.norm_bound_squared for part in parts}
    ways = type(terms), type(getattr(terms, "contributions", None)), type(case.canary.query.feature)
    return frozenset(signs), len(norms) > 1, len(parts) > 1, *ways, case.most


def size_of(case: Case) -> int:
    return len(case.query.feature.bounded_parts)


def check_reached(found: Finding) -> None:
    assert found.failures == (), found.case.name
    assert found.reached == pytest.approx(1, abs=1e-6), found.case.name


def test_every_query_holds_at_its_bound(every_case: list[Case]) -> None:
    for case in {canary_of(case): case for case in every_case}.values():
        check_reached(audit(case.canary, epsilon=EPSILON))


def canary_of_few_parts(case: Case) -> Case:
    """Its canary with two parts of the first bound, and one of each other bound."""
    canary = case.canary
    if size_of(case) < 3:
        return canary
    feature = canary.query.feature
    each = {(part.nonnegative, part.norm_bound_squared): part for part in feature.bounded_parts}
    few = SimpleNamespace(bounded_parts=(feature.bounded_parts[0], *each.values()), spec=feature.spec)
    query = dataclasses.replace(canary.query, feature=type(feature)(few))
    return dataclasses.replace(canary, query=query, twin=query)


@pytest.mark.slow
def test_at_the_bound_of_each_kind_of_query_the_audit_comes_near(every_case: list[Case]) -> None:
    """Draws of the smallest query of a kind: each part more takes seconds, and says the same."""
    smallest = {kind_of(case): case for case in sorted(every_case, key=size_of, reverse=True)}
    for case in map(canary_of_few_parts, smallest.values()):
        found = audit(case, DRAWS, EPSILON)
        check_reached(found)
        assert POWER * found.reached * found.tight < found.lower < found.tight < found.claimed <= EPSILON, case.name


def halve_the_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    def halved(*arguments: Any) -> int:
        return lattice_sensitivity_squared(*arguments) // 4

    monkeypatch.setattr(query, "lattice_sensitivity_squared", halved)


def lower_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = door.add_discrete_gaussian
    monkeypatch.setattr(door, "add_discrete_gaussian", lambda values, scale: honest(values, 0.8 * scale))


def reuse_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def seeded(values: np.ndarray, scale: float) -> np.ndarray:
        return values + np.rint(public(7, "noise").standard_normal(values.shape) * scale).astype(np.int64)

    monkeypatch.setattr(door, "add_discrete_gaussian", seeded)


def scale_noise_by_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = door.add_discrete_gaussian
    largest = 2.0**29
    monkeypatch.setattr(
        door,
        "add_discrete_gaussian",
        lambda values, scale: honest(values, scale * (1 + min(1.0, float(np.abs(values).max()) / largest))),
    )


def forget_the_noise_of_a_coordinate(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a slice had been written one too short."""
    honest = door.add_discrete_gaussian

    def short(values: np.ndarray, scale: float) -> np.ndarray:
        return np.concatenate([honest(values[:-1], scale), values[-1:]])

    monkeypatch.setattr(door, "add_discrete_gaussian", short)


@pytest.mark.parametrize(
    ("fault", "report"),
    [
        *((halve_the_sensitivity, "times the sensitivity apart"), (halve_the_sensitivity, "epsilon is at least")),
        *((lower_the_noise, "of its claimed scale"), (reuse_a_seed, "the same noise")),
        (scale_noise_by_the_data, "of its claimed scale"),
        (forget_the_noise_of_a_coordinate, "a coordinate carries no noise"),
    ],
)
def test_a_planted_fault_is_reported(
    embedding: Case, monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None], report: str
) -> None:
    fault(monkeypatch)
    assert any(report in failure for failure in audit(embedding.canary, FEW, EPSILON).failures)


def over_the_bound(feature: Trigonometric, x: torch.Tensor) -> torch.Tensor:
    """Ten times the features that the parts allow."""
    angles = x @ feature.frequencies.to(x).T
    return 10 * torch.cat([angles.cos(), angles.sin()], dim=1)


def test_a_map_over_its_bound_is_clipped_and_without_the_clip_it_is_reported(
    embedding: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trigonometric, "__call__", over_the_bound)
    clipped = audit(embedding)
    assert clipped.failures == () and clipped.reached <= 1
    monkeypatch.setattr(clipping, "_clip", lambda scaled, bound: np.trunc(scaled).astype(np.int64))
    assert any("times the sensitivity apart" in failure for failure in audit(embedding).failures)


def standardized(feature: Trigonometric, x: torch.Tensor) -> torch.Tensor:
    """Inputs divided by their own standard deviation: one row more moves the features of all."""
    angles = (x / (x.std(dim=0) + 1e-3)) @ feature.frequencies.to(x).T
    return torch.cat([angles.cos(), angles.sin()], dim=1)


def test_a_map_with_a_scale_from_the_rows_is_reported(embedding: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trigonometric, "__call__", standardized)
    assert any("times the sensitivity apart" in failure for failure in audit(embedding).failures)


def test_another_scale_on_the_neighboring_table_is_reported(embedding: Case) -> None:
    """As a median of private distances would give: here one percent larger."""
    feature = embedding.query.feature
    assert isinstance(feature, Trigonometric)
    other = dataclasses.replace(feature, scale=1.01 * feature.scale, digest="")
    found = audit(dataclasses.replace(embedding, twin=dataclasses.replace(embedding.query, feature=other)))
    assert any("another question" in failure for failure in found.failures)
    assert any("times the sensitivity apart" in failure for failure in found.failures)


def test_bounds_hold_and_are_near_on_a_gaussian_that_is_known() -> None:
    """Public Gaussian draws: a true μ is not refuted, a μ that is 10 % too small is."""
    generator = public(1, "audit")
    without, present = generator.standard_normal(200_000), 2.0 + generator.standard_normal(200_000)
    assert 1.9 < mu_lower(without, present, 1e-7) < 2.0
    assert 0.8 * tight_epsilon(2.0, 0.3) < epsilon_lower(without, present, 0.3, 1e-7) < tight_epsilon(2.0, 0.3)
    assert epsilon_lower(without, present, 0.9, 1e-7) == 0.0
    assert (
        variance_is(without, 1e-7) and not variance_is(0.97 * without, 1e-7) and not variance_is(without / 0.97, 1e-7)
    )


def test_known_values_of_the_bounds() -> None:
    # No event in n draws: the rate is below 1 - alarm^(1/n), the exact "rule of three".
    assert upper_rate(0, 100, 0.05) == pytest.approx(1 - 0.05 ** (1 / 100))
    assert upper_rate(100, 100, 0.05) == 1.0
    assert delta_of_mu(tight_epsilon(0.5, DELTA), 0.5) == pytest.approx(DELTA, rel=1e-6)
    assert tight_epsilon(0.001, 0.5) == 0.0
    assert math.isclose(tight_epsilon(1.0, 1e-5), 4.3776, rel_tol=1e-3)  # Balle and Wang 2018, σ = 1
