"""PEARL with modes: the mixture, its cost, what it is when it is off, and the way to split rows and back."""

import dataclasses
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import ledger_of_people, plan_with, schema_with

from likeness.config.explain import defaults
from likeness.core.errors import LikenessError, PlanError, ReleaseError
from likeness.core.hashing import json_value
from likeness.core.typed import build
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import Layout
from likeness.data.schema.schema import Schema
from likeness.features.column_marginals import Constant
from likeness.ledger.reservation import Dataset
from likeness.methods.base import Context
from likeness.privacy.accountant import compose
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import Plan
from likeness.privacy.receipt import MECHANISM, Receipt
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released, from_bytes
from likeness.release.sums.lattice_sum import lattice_sum
from likeness.verify.receipts import query_again
from likeness_papers.pearl.method import Pearl
from likeness_papers.pearl.modal_generator import ModalGenerator
from likeness_papers.pearl.modal_map import Modal
from likeness_papers.pearl.mode import Modes
from likeness_papers.pearl.mode_statistics_map import ModeStatistics
from likeness_papers.pearl.modes import maximize

ROOT = Path(__file__).parents[2]
SHIPPED = defaults(Pearl)
SCHEMA = schema_with(
    {
        "c": {"kind": "categorical", "categories": ["u", "v"]},
        "a": {"kind": "numeric", "lower": 0, "upper": 100},
        "b": {"kind": "numeric", "lower": 0, "upper": 1, "nullable": True},
    }
)
CONTEXT = Context(SCHEMA, "add_remove_one", None, 0)
MODES = (
    Modes(2, False, (0.6, 0.4), (0.25, 0.7), (0.03, 0.05)),
    Modes(3, True, (0.2, 0.5, 0.3), (0.1, 0.5, 0.8), (0.02, 0.1, 0.01)),
)


def pearl(share: float, **mixture: Any) -> Pearl:
    shares = {"class_counts": 0.05, "mixture": share, "mean_pairwise_distance": 0.05, "embedding": 0.9 - share}
    section = {**SHIPPED, "plan": {"shares": shares}, "auxiliary": {**SHIPPED["auxiliary"], "mixture": mixture}}
    return build(Pearl, section, "pearl")


def plan_of(method: Pearl, epsilon: float, adjacency: Adjacency = Adjacency.ADD_REMOVE_ONE, n: int = 1_000) -> Plan:
    return plan_with(method.shares(CONTEXT), epsilon, adjacency, n, method="pearl")


def asked(query: Query, values: np.ndarray, noise: float = 0.0, **others: Any) -> Released:
    """An answer that no door gave: sums in units of the feature."""
    receipt = Receipt(
        query=query.name, stage=query.stage, method="pearl", feature=json.loads(json.dumps(query.spec())),
        mechanism=MECHANISM, sampler="s", adjacency="add_remove_one", change="one_appears", num_groups=1,
        dimension=values.size, lattice_bits=query.lattice_bits, sensitivity=1.0, noise_multiplier=1.0,
        noise_scale=noise * 2.0**query.lattice_bits, rho=0.5, identity="people", digest="d", slot="1", plan="p",
        key="k", ledger_id="l", ledger_seq=3,
    )  # fmt: skip
    return Released(np.rint(values * 2.0**query.lattice_bits).astype(np.int64), dataclasses.replace(receipt, **others))


def answered(query: Query, x: np.ndarray, noise: float = 0.0) -> Released:
    records = Records(x, np.zeros(len(x), dtype=np.int64))
    return asked(query, lattice_sum(query, [records]) * 2.0**-query.lattice_bits, noise)


def two_modes(n: int) -> np.ndarray:
    """Column a: 60 % around .25 and 40 % around .7. Column b: uniform, a third of it missing."""
    generator = np.random.default_rng(0)
    second = generator.random(n) < 0.4
    a = np.where(second, generator.normal(0.7, 0.05, n), generator.normal(0.25, 0.03, n))
    missing = generator.random(n) < 1 / 3
    b = np.where(missing, 0.5, generator.random(n))
    return np.column_stack([np.ones(n), np.zeros(n), a.clip(0, 1), b, missing])


def test_without_noise_a_step_is_that_of_the_textbook() -> None:
    """Bishop (2006), section 9.2.2, on values that all windows hold; a lattice step and six decimals apart."""
    x = np.random.default_rng(1).uniform(0.35, 0.65, 5_000)
    start = Modes(0, False, (0.5, 0.3, 0.2), (0.4, 0.5, 0.7), (0.09, 0.1, 0.15))
    densities = np.array(start.weights) * np.exp(-0.5 * ((x[:, None] - start.means) / start.deviations) ** 2)
    densities /= np.array(start.deviations)
    r = densities / densities.sum(axis=1, keepdims=True)
    means = (r * x[:, None]).sum(axis=0) / r.sum(axis=0)
    variances = (r * (x[:, None] - means) ** 2).sum(axis=0) / r.sum(axis=0)
    (found,) = maximize(answered(Query("q", "auxiliary", ModeStatistics((start,))), x[:, None]))
    assert found.weights == pytest.approx(r.mean(axis=0), abs=2e-6) and found.means == pytest.approx(means, abs=2e-6)
    assert found.deviations == pytest.approx(np.sqrt(variances), abs=2e-6)


def test_a_missing_number_adds_nothing_and_every_other_one_record() -> None:
    x = two_modes(500)
    feature = ModeStatistics(MODES)
    sums = feature(torch.from_numpy(x)).sum(dim=0).numpy()
    first, second = sums[:6].reshape(3, 2), sums[6:].reshape(3, 3)
    assert first[:2].sum() == pytest.approx(500) and second[:2].sum() == pytest.approx(500 - x[:, 4].sum())
    assert not feature(torch.tensor([[1.0, 0.0, 0.3, 0.5, 1.0]]))[0, 6:].any()


@pytest.fixture
def through_the_door() -> Callable[[Pearl, Plan, np.ndarray], dict[str, Released]]:
    """Every auxiliary answer, with real noise."""

    def make(method: Pearl, plan: Plan, x: np.ndarray) -> dict[str, Released]:
        ledger = ledger_of_people(plan.adjacency, plan.epsilon, plan.delta)

        def rows() -> Iterator[Records]:
            yield Records(x, np.zeros(len(x), dtype=np.int64))

        def answer(query: Query) -> Released:
            return from_bytes(Door(plan, ledger, Dataset("people", "digest"), rows).release(query), query.name)

        return method.ask(CONTEXT, answer)

    return make


@pytest.mark.long
def test_two_modes_are_found_through_noise(
    through_the_door: Callable[[Pearl, Plan, np.ndarray], dict[str, Released]],
) -> None:
    """At ε = 5 with 20,000 rows. Tolerances: six standard errors of noise and sampling of the last step; modes nine

    deviations apart overlap so little that an earlier step's error hardly passes on. False alarm below 1e-7.
    """
    n, method = 20_000, pearl(0.3, components=2, iterations=6, columns=["a"])
    released = through_the_door(method, plan_of(method, 5.0), two_modes(n))
    noise = released["mixture_6"].noise_std
    (found,) = method.auxiliary.mixture.modes(released)
    assert found.place == 2 and not found.missing
    truth = zip(found.weights, found.means, found.deviations, (0.6, 0.4), (0.25, 0.7), (0.03, 0.05), strict=True)
    for weight, mean, deviation, true_weight, true_mean, true_deviation in truth:
        count = true_weight * n
        assert weight == pytest.approx(true_weight, abs=6 * (noise * 2 / n + 0.5 / math.sqrt(n)))
        relative = 6 * (8 * noise / count + 1 / math.sqrt(count))  # of a deviation; 8 of them are a window
        assert relative < 0.5  # the test says something
        assert mean == pytest.approx(true_mean, abs=true_deviation * relative)
        assert deviation == pytest.approx(true_deviation, rel=2 * relative)


@pytest.mark.long
def test_the_steps_cost_what_the_plan_gives_them(
    through_the_door: Callable[[Pearl, Plan, np.ndarray], dict[str, Released]],
) -> None:
    method = pearl(0.3, components=3, iterations=4, columns=None)
    plan = plan_of(method, 1.0)
    released = through_the_door(method, plan, two_modes(200))
    steps = [f"mixture_{step}" for step in range(1, 5)]
    assert list(released) == ["class_counts", *steps, "mean_pairwise_distance"]
    receipts = [released[name].receipt for name in steps]
    assert {receipt.stage for receipt in receipts} == {"auxiliary"}
    assert [receipt.sensitivity for receipt in receipts] == pytest.approx([math.sqrt(2)] * 4)  # two columns
    account = compose(receipts, 1e-5)
    assert account.rho == pytest.approx(math.fsum(plan.query(name).rho for name in steps), rel=1e-9)
    assert account.rho == pytest.approx(0.3 * plan.rho, rel=1e-9)
    total = [one.receipt for one in released.values()]
    planned = plan.query("embedding")
    embedding = dataclasses.replace(total[0], noise_multiplier=planned.noise_multiplier, rho=planned.rho)
    assert 0.999 < compose([*total, embedding], 1e-5).epsilon <= 1.0


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(-1e5, 1e5), min_size=15, max_size=15), st.floats(0, 1e4))
def test_whatever_noise_does_the_modes_are_modes(sums: list[float], noise: float) -> None:
    query = Query("mixture_1", "auxiliary", ModeStatistics(MODES))
    for modes, before in zip(maximize(asked(query, np.array([sums]), noise)), MODES, strict=True):
        assert (modes.place, modes.missing, modes.size) == (before.place, before.missing, before.size)
        assert min(modes.weights) > 0 and min(modes.means) >= 0 and max(modes.means) <= 1
        assert min(modes.deviations) >= 0.01 and max(modes.deviations) <= 1


def test_a_mode_without_records_stays_where_it_is() -> None:
    start = Modes(2, False, (0.5, 0.5), (0.25, 0.99), (0.03, 0.02))
    x = two_modes(4_000)
    x = x[x[:, 2] < 0.45]
    (found,) = maximize(answered(Query("q", "auxiliary", ModeStatistics((start,))), x, noise=50.0))
    assert found.means[0] == pytest.approx(0.25, abs=0.005)
    # No record is near the second: its count is its own noise, and the sums tell nothing of its place.
    assert found.weights[1] == pytest.approx(math.sqrt(2) * 50 / (len(x) + math.sqrt(2) * 50), rel=1e-3)
    assert found.means[1] == pytest.approx(0.99, abs=8 * 0.02 * 0.5 * 0.2)


def test_rows_are_split_and_joined_within_the_clipping() -> None:
    """A number comes back but for what lies beyond its mode's window, and for the rounding to 2^-24 of a window."""
    generator = np.random.default_rng(2)
    x = torch.from_numpy(two_modes(2_000))
    x[:200, 2] = torch.from_numpy(generator.random(200))
    layout = Layout.from_schema(SCHEMA)
    feature = Modal(layout.width, MODES, Constant())
    split = feature.split(x)
    wide = layout.with_modes({column.place: column.size for column in MODES})
    assert split.shape[1] == wide.width and float(split.min()) >= 0 and float(split.max()) <= 1
    assert bool(((split * 2**24) == (split * 2**24).round()).all())
    for block in wide.blocks:
        if block.kind == "onehot":
            assert bool((split[:, block.start : block.stop].sum(dim=1) == 1).all())
    joined = ModalGenerator(layout, MODES, 4, (8,)).join(split)
    assert joined.shape == x.shape
    numbers = {column.place for column in MODES}
    others = [place for place in range(layout.width) if place not in numbers]
    assert torch.equal(joined[:, others], x[:, others])
    for column in MODES:
        values = x[:, column.place]
        mode = column.log_joint(values).argmax(dim=1)
        means, deviations = torch.tensor(column.means)[mode], torch.tensor(column.deviations)[mode]
        beyond = ((values - means).abs() - 4 * deviations).clamp(min=0)
        error = (joined[:, column.place] - values).abs()
        assert bool((error <= beyond + 1e-6).all())
        assert float(beyond.max()) > 0.01 and float((beyond == 0).double().mean()) > 0.8  # both happen
    table = Encoder(SCHEMA).decode(joined.numpy(), np.zeros(len(joined), dtype=np.int64))
    assert np.array_equal(table["b"].isna().to_numpy(), x[:, 4].numpy() == 1)


def test_a_verifier_rebuilds_every_query_from_its_receipt(
    through_the_door: Callable[[Pearl, Plan, np.ndarray], dict[str, Released]],
) -> None:
    method = pearl(0.3, components=3, iterations=2, columns=["b"])
    released = through_the_door(method, plan_of(method, 3.0), two_modes(300))
    for one in released.values():
        receipt = one.receipt
        query = query_again(receipt)
        assert query.spec() == receipt.feature
        squared = query.sensitivity_squared(Adjacency.ADD_REMOVE_ONE)
        assert math.sqrt(squared) * 2.0**-receipt.lattice_bits == pytest.approx(receipt.sensitivity, rel=1e-12)


@pytest.mark.parametrize(
    ("schema", "columns", "message"),
    [
        (SCHEMA, ["c"], r"mixture\.columns: 'c' is no numeric feature column\. There are: a, b\."),
        (Schema("t", "made up", "none", None, (SCHEMA.column("c"),)), None, "has no numeric feature column"),
        (Schema.load(ROOT / "data/schema/digits.yaml"), None, "pixels have no modes"),
    ],
)
def test_columns_without_modes_are_refused_before_anything_is_spent(
    schema: Schema, columns: list[str] | None, message: str
) -> None:
    method = pearl(0.3, components=3, columns=columns)
    with pytest.raises(PlanError, match=message):
        method.check(Context(schema, "add_remove_one", None, 0))


@pytest.mark.parametrize(
    "change", [{"weights": (0.5,)}, {"means": (0.1, math.nan)}, {"deviations": (0.1, 0.0)}, {"weights": (0.5, -0.5)}]
)
def test_numbers_that_are_no_mixture_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(LikenessError, match=r"^modes"):
        build(Modes, {**json_value(MODES[0]), **change}, "modes")
    with pytest.raises(ReleaseError, match="order of their places"):
        ModeStatistics(MODES[::-1])
