"""DP-HP: its recipe on tables of every kind, its map in 400 digits, the kernels that it expands, and its bounds.

Maps of PEARL and DP-MERF against their definitions, and cosine and sine against finite differences.
"""

import dataclasses
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from likeness.core.errors import PlanError, ReleaseError
from likeness.core.typed import build
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema
from likeness.methods import METHODS
from likeness.methods.base import Context
from likeness.methods.maps import from_spec
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.lattice_sum import block_rows, lattice_sum
from likeness_papers.hp.hermite_map import HermiteFeatures
from likeness_papers.hp.mehler import (
    SCALES,
    good_scale,
    hermite_functions,
    least_norm,
    lengthscale_of,
    rho_of,
    squared_norm_bound,
)
from likeness_papers.hp.method import Hp
from likeness_papers.merf.fourier_map import MixedFourierFeatures
from likeness_papers.networks.trigonometric import cosine_sine
from likeness_papers.pearl.characteristic_map import CharacteristicFunction

SCALE, LENGTHSCALE = 6.0, 0.1
RHO = rho_of(SCALE * LENGTHSCALE)
# Columns: number 0; number 1 with its indicator 2; categories 3-5 and 6-7. Products of all kinds of columns.
MIXED = HermiteFeatures(
    numeric=(0, 1), nullable=(1,), categorical=((3, 6), (6, 8)), rho=(RHO, RHO), scale=(SCALE, SCALE), order=25,
    product_order=25, subsets=((0, 1), (0, 2), (2, 3), (0, 1, 3)), product_share=0.75,
)  # fmt: skip


def rows(count: int, seed: int) -> torch.Tensor:
    """Valid encoded rows: a missing number stands at 0.5, blocks are one-hot."""
    draws = torch.Generator().manual_seed(seed)
    x = torch.rand(count, 8, generator=draws, dtype=torch.float64)
    x[:, 2] = (x[:, 2] < 0.3).double()
    x[x[:, 2] == 1, 1] = 0.5
    for start, stop in ((3, 6), (6, 8)):
        chosen = torch.randint(0, stop - start, (count,), generator=draws)
        x[:, start:stop] = torch.nn.functional.one_hot(chosen, stop - start)
    return x


def kernels(x: torch.Tensor) -> list[torch.Tensor]:
    """The four columns' own kernels between all rows."""
    gaussians = [torch.exp(-torch.cdist(x[:, d, None], x[:, d, None]).square() / (2 * LENGTHSCALE**2)) for d in (0, 1)]
    missing = x[:, 2]
    second = torch.outer(1 - missing, 1 - missing) * gaussians[1] + torch.outer(missing, missing)
    return [gaussians[0], second, x[:, 3:6] @ x[:, 3:6].T, x[:, 6:8] @ x[:, 6:8].T]


def test_inner_products_are_the_sum_and_the_products_of_kernels() -> None:
    x = rows(40, 0)
    first, second, third, fourth = kernels(x)
    total = (first + second + third + fourth) / 4
    products = (first * second + first * third + third * fourth + first * second * fourth) / 4
    features = MIXED(x)
    # What order 25 leaves out of a number's kernel is below 1e-3, and so is what its norm is divided by.
    assert float((features @ features.T - 0.25 * total - 0.75 * products).abs().max()) < 3e-3


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "kept"), [({"subsets": (), "product_share": 0.0}, "sum"), ({"product_share": 1.0}, "products")]
)
def test_one_kernel_alone(changes: dict[str, object], kept: str) -> None:
    spec = {**MIXED.spec(), **{key: list(v) if isinstance(v, tuple) else v for key, v in changes.items()}}
    alone, x = from_spec(spec), rows(20, 1)
    start = MIXED.sum_width
    expected = MIXED(x)[:, :start] / 0.25**0.5 if kept == "sum" else MIXED(x)[:, start:] / 0.75**0.5
    torch.testing.assert_close(alone(x), expected, rtol=0, atol=1e-12)
    assert sum(part.norm_bound_squared for part in alone.bounded_parts) == 1


def test_bounds_are_exact_and_know_which_parts_are_not_negative() -> None:
    bounds = [part.norm_bound_squared for part in MIXED.bounded_parts]
    assert bounds == [Fraction(1, 8), Fraction(1, 8), *[Fraction(3, 16)] * 4]
    assert [part.nonnegative for part in MIXED.bounded_parts] == [False, True, False, False, True, False]
    assert [part.width for part in MIXED.bounded_parts] == [26 * 2 + 1, 5, 26 * 27, 26 * 3, 6, 26 * 27 * 2]


@pytest.mark.parametrize("order", [0, 2, 5])
def test_low_orders_use_the_whole_bound(order: int) -> None:
    """The paper's scaling leaves a fraction of the norm; the map is normalized, so that the noise fits the signal."""
    x = torch.linspace(0, 1, 501, dtype=torch.float64)[:, None]
    low = HermiteFeatures((0,), (), (), (rho_of(0.07),), (1.0,), order)
    assert 0.97 < float(low(x).norm(dim=1).max()) <= 1


def test_gamma_weighs_kernels_whatever_their_shares() -> None:
    weights = MIXED.coordinate_weights(0.1)
    x = rows(40, 3)
    difference = MIXED(x[:20]).mean(dim=0) - MIXED(x[20:]).mean(dim=0)
    alone = {}
    for name, changes in (("sum", {"subsets": [], "product_share": 0.0}), ("products", {"product_share": 1.0})):
        own = from_spec({**MIXED.spec(), **changes})
        alone[name] = float((own(x[:20]).mean(dim=0) - own(x[20:]).mean(dim=0)).square().sum())
    assert float(weights @ difference.square()) == pytest.approx(alone["sum"] + 0.1 * alone["products"], rel=1e-9)
    assert torch.equal(MIXED.coordinate_weights(None), torch.ones(len(weights), dtype=torch.float64))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(({"rho": [0.5]}, "one rho and one scale"), ({"rho": [0.5, 1.0]}, "rho must be between 0 and 1")),
        *(({"scale": [1.0, 17.0]}, "at most 16"), ({"order": -1}, "orders must be at least 0")),
        ({"nullable": [2]}, "nullable columns must be among the numbers"),
        *(({"subsets": [[0, 0]]}, "different columns"), ({"subsets": [[0, 4]]}, "different columns")),
        *(({"subsets": [[]]}, "different columns"), ({"subsets": [3]}, "lists of columns")),
        *(({"subsets": []}, "product_share"), ({"product_share": 1.5}, "product_share")),
        ({"product_share": 0.0}, "product_share"),
    ],
)
def test_contradictions_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ReleaseError, match=message):
        from_spec({**MIXED.spec(), **changes})


@pytest.mark.parametrize(
    ("subsets", "as_one_matrix"),
    [
        (((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)), True),
        (((1, 3),), False),
        (((1,), (3,), (0, 1, 2, 3)), False),
        (((0, 2), (0, 1, 3)), False),
    ],
)
def test_means_of_products_are_found_without_the_products(
    subsets: tuple[tuple[int, ...], ...], as_one_matrix: bool
) -> None:
    spec = {**MIXED.spec(), "subsets": [list(own) for own in subsets], "order": 2, "product_order": 3}
    feature, x = from_spec(spec), rows(30, 5)
    assert isinstance(feature, HermiteFeatures) and (feature._pair_places is not None) is as_one_matrix
    expected = torch.stack([feature(x)[:13].mean(dim=0), feature(x)[13:].mean(dim=0)])
    torch.testing.assert_close(feature.means(x, [13, 17]), expected, rtol=0, atol=1e-14)


def test_few_pairs_of_many_columns_are_no_matrix() -> None:
    """Two pairs of eight columns: the matrix would be mostly unused, and the door makes whole vectors."""
    few = HermiteFeatures(tuple(range(8)), (), (), (0.7,) * 8, (6.0,) * 8, 2, 2, ((0, 1), (4, 7)), 0.5)
    triples = HermiteFeatures((0, 1, 2), (), (), (0.7,) * 3, (6.0,) * 3, 2, 2, ((0, 1, 2),), 0.5)
    assert few.pairs == triples.pairs == ()
    x = np.random.default_rng(0).random((9, 8))
    assert lattice_sum(Query("q", "privatize", few), [Records(x, np.zeros(9, dtype=np.int64))]).any()


def exact(x: float, rho: float, order: int) -> list[float]:
    """The definition: the square root of λ_k / N_k times the Hermite polynomial times the exponential, in Decimal."""
    with localcontext() as digits:
        digits.prec = 400
        z, r = Decimal(x), Decimal(rho)
        weight = (-r / (1 + r) * z * z).exp()
        root = ((1 - r) / (1 + r)).sqrt()
        before, polynomial, found = Decimal(0), Decimal(1), []
        for k in range(order + 1):
            eigenvalue, norm = (1 - r) * r**k, Decimal(2) ** k * math.factorial(k) * root
            found.append(float((eigenvalue / norm).sqrt() * polynomial * weight))
            before, polynomial = polynomial, 2 * z * polynomial - 2 * k * before
        return found


@pytest.mark.parametrize("rho", [0.05, 0.5, 0.78, 0.99])
def test_the_recursion_is_exact_to_order_150(rho: float) -> None:
    points = [0.0, 0.3, -0.5, 1.0, -2.5, 4.0, 8.0]
    found = hermite_functions(torch.tensor(points, dtype=torch.float64)[:, None], torch.tensor([rho]).double(), 150)
    assert found.shape == (7, 151, 1) and bool(torch.isfinite(found).all())
    for own, x in zip(found[:, :, 0], points, strict=True):
        expected = torch.tensor(exact(x, torch.tensor([rho]).double().item(), 150), dtype=torch.float64)
        assert float((own - expected).abs().max()) < 1e-13


@pytest.mark.parametrize("lengthscale", [0.05, 0.1, 0.5, 2.0, 50.0])
def test_inner_products_are_the_gaussian_kernel(lengthscale: float) -> None:
    """At the scale that is chosen for the order, up to what the order leaves out; whatever the scale is."""
    for scale, tolerance in ((good_scale(lengthscale, 60), 1e-3), (8.0, 1e-4)):
        x = torch.linspace(-0.5, 0.5, 41, dtype=torch.float64)[:, None]
        values = hermite_functions(scale * x, torch.tensor([rho_of(scale * lengthscale)]).double(), 60)[:, :, 0]
        gaussian = torch.exp(-torch.cdist(x, x).square() / (2 * lengthscale**2))
        assert float((values @ values.T - gaussian).abs().max()) < tolerance


def test_rho_and_length_scale_belong_to_each_other() -> None:
    for lengthscale in (1e-3, 0.07, 0.5, 3.0, 100.0, 1600.0):
        rho = rho_of(lengthscale)
        assert 0 < rho < 1 and rho / (1 - rho) / (1 + rho) == pytest.approx(1 / (2 * lengthscale**2), rel=1e-8)
        assert lengthscale_of(rho) == pytest.approx(lengthscale, rel=1e-8)


@pytest.mark.parametrize("order", [0, 1, 5, 20])
@pytest.mark.parametrize("rho", [0.2, 0.9, 0.995])
def test_the_norm_bound_holds_and_is_not_far(rho: float, order: int) -> None:
    for reach in (0.5, 2.0, 4.0):
        bound = squared_norm_bound(rho, order, reach)
        x = torch.rand(20_000, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2 * reach - reach
        squares = hermite_functions(x, torch.tensor([rho]).double(), order).square().sum(dim=1)
        assert float(squares.max()) - 1e-12 <= bound <= min(1.0, float(squares.max()) + 0.02)


def test_the_chosen_scale_keeps_most_of_the_kernel() -> None:
    for lengthscale in (0.07, 0.1, 0.3, 1.0):
        for order in (5, 10, 20):
            kept = {scale: least_norm(rho_of(scale * lengthscale), order, scale / 2) for scale in SCALES}
            chosen = good_scale(lengthscale, order)
            assert kept[chosen] >= max(kept.values()) - 1e-3 and kept[chosen] >= kept[1.0]
    # The paper's scale with its order of 100 for MNIST's length scale, against order 20 at the chosen scale.
    assert least_norm(rho_of(0.005**0.5), 100, 0.5) < 0.7
    assert least_norm(rho_of(0.005**0.5 * good_scale(0.005**0.5, 20)), 20, good_scale(0.005**0.5, 20) / 2) > 0.98


TRAIN = {"iterations": 10, "batch_size": 100, "learning_rate": 0.01, "latent_dim": 4, "hidden": [8]}
NUMBER = {"kind": "numeric", "lower": 0, "upper": 1}
CATEGORY = {"kind": "categorical", "categories": ["u", "v", "w"]}


def hp(**privatize: Any) -> Hp:
    section = {"plan": {"shares": {"class_counts": 0.1, "embedding": 0.9}}, "train": TRAIN, "privatize": privatize}
    method = build(METHODS["hp"], section, "hp")
    assert isinstance(method, Hp)
    return method


def context(columns: dict[str, dict[str, Any]], label: str | None = None) -> Context:
    task = "none" if label is None else "classification"
    content = {"name": "t", "source": "made up", "task": task, "label": label, "columns": columns}
    return Context(Schema.from_dict(content, "t.yaml"), "add_remove_one", None, seed=0)


BOTH = {
    "a": NUMBER,
    "b": {"kind": "integer", "lower": 0, "upper": 9, "nullable": True},
    "c": CATEGORY,
    "d": {**CATEGORY, "nullable": True},
}


def feature(method: Hp, own: Context) -> HermiteFeatures:
    found = method.embedding_query(own, {}).feature
    assert isinstance(found, HermiteFeatures)
    return found


def test_columns_of_a_mixed_table_without_a_label() -> None:
    own = context(BOTH)
    query, found = hp().embedding_query(own, {}), feature(hp(), own)
    assert (found.numeric, found.nullable, found.categorical) == ((0, 1), (1,), ((3, 6), (6, 10)))
    assert query.num_groups == 1 and len(found.subsets) == math.comb(4, 2)
    assert query.width == 21 * 2 + 1 + 3 + 4 + 11 * 12 + 11 * 3 + 11 * 4 + 12 * 3 + 12 * 4 + 3 * 4


def test_a_label_groups_the_sum_and_is_no_column_of_it() -> None:
    query = hp().embedding_query(context(BOTH, label="c"), {})
    assert query.num_groups == 3 and feature(hp(), context(BOTH, label="c")).categorical == ((3, 7),)


def test_products_of_a_discretized_table_are_its_marginals() -> None:
    """With categories alone, products count combinations: exact up to the door's truncation of √weight."""
    own = context({"a": CATEGORY, "b": CATEGORY, "c": CATEGORY})
    query = hp(kernel="product", product_dimension=3).embedding_query(own, {})
    assert query.width == 27 and all(part.nonnegative for part in query.bounded_parts)
    places = np.random.default_rng(0).integers(0, 3, (500, 3))
    x = np.concatenate([np.eye(3)[places[:, d]] for d in range(3)], axis=1)
    counts = lattice_sum(query, [Records(x, np.zeros(500, dtype=np.int64))])[0] * 2.0**-query.lattice_bits
    expected = np.bincount(places @ [9, 3, 1], minlength=27)
    assert np.allclose(counts, expected, atol=1e-5)


def test_kernels_and_orders_go_where_they_belong() -> None:
    own = context(BOTH)
    alone = feature(hp(kernel="sum", order=7), own)
    assert (alone.order, alone.subsets, alone.product_share) == (7, (), 0.0)
    products = feature(hp(kernel="product", product_order=3), own)
    assert (products.product_order, products.product_share, products.sum_width) == (3, 1.0, 0)
    both = feature(hp(lengthscale=[0.1, 0.4], product_share=0.25), own)
    assert both.rho[0] > both.rho[1] and both.product_share == 0.25


def test_the_loss_weighs_products_by_gamma() -> None:
    own = context(BOTH)
    for gamma, expected in ((None, 1.0), (0.1, 0.1 / 0.8 * 0.2)):
        method = hp()
        method = dataclasses.replace(method, train=dataclasses.replace(method.train, gamma=gamma))
        weights = method.coordinate_weights(feature(method, own))
        assert weights is not None and float(weights[-1] / weights[0]) == pytest.approx(expected)


def test_subsets_are_drawn_once_from_public_randomness() -> None:
    own = context({f"n{place}": NUMBER for place in range(30)})
    drawn = feature(hp(product_dimension=3, num_subsets=50), own).subsets
    assert len(set(drawn)) == 50 and all(a < b < c for a, b, c in drawn) and list(drawn) == sorted(drawn)
    assert feature(hp(product_dimension=3, num_subsets=50), own).subsets == drawn
    assert len(feature(hp(product_dimension=2, num_subsets=1_000), own).subsets) == math.comb(30, 2)


@pytest.mark.parametrize(
    ("privatize", "message"),
    [
        ({"lengthscale": [0.1]}, r"hp\.privatize\.lengthscale has 1 numbers, but the table has 2 numeric columns"),
        ({"product_dimension": 5}, r"product_dimension is 5, but the table has 4 feature columns"),
        ({"max_coordinates": 100}, r"would release \d+ coordinates, more than hp\.privatize\.max_coordinates 100"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_spent(privatize: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        hp(**privatize).check(context(BOTH))


@pytest.mark.long
def test_pixels() -> None:
    """784 numbers and ten classes: all pairs are refused, a few are drawn, and a block of rows stays small."""
    columns = {f"pixel_{place}": {"kind": "integer", "lower": 0, "upper": 255} for place in range(1, 785)}
    own = context({**columns, "y": {"kind": "categorical", "categories": [str(k) for k in range(10)]}}, label="y")
    with pytest.raises(PlanError, match=r"would release 306,936 products.*Set hp\.privatize\.num_subsets"):
        hp(max_coordinates=300_000).check(own)
    method = hp(num_subsets=10, product_order=20, lengthscale=0.07)
    query = method.embedding_query(own, {})
    assert (query.width, query.num_groups) == (784 * 21 + 10 * 21**2, 10)
    assert block_rows(query) * query.width * 8 < 20e6  # bytes
    x = np.random.default_rng(0).integers(0, 256, (20, 784)) / 255
    total = lattice_sum(query, [Records(x, np.arange(20) % 10)])
    norms = np.linalg.norm(total * 2.0**-query.lattice_bits, axis=1)
    assert total.shape == (10, query.width) and norms.max() <= 2
    found, rows = feature(method, own), torch.from_numpy(x).float().requires_grad_()
    means = found.means(rows, [10, 10])
    torch.testing.assert_close(means[0], found(rows[:10]).mean(dim=0), rtol=0, atol=1e-5)
    means.square().sum().backward()
    assert found._pair_places is None  # ten pairs of 784 columns: the matrix of all of them would be gigabytes
    assert rows.grad is not None and bool(torch.isfinite(rows.grad).all())


def test_the_generator_of_a_table_of_numbers_is_decoded() -> None:
    own = context({"a": NUMBER, "b": NUMBER})
    network = hp().build_generator(own, {})
    x = network.draw(np.zeros(7, dtype=np.int64), np.random.default_rng(0))
    assert list(Encoder(own.schema).decode(x, np.zeros(7, dtype=np.int64)).columns) == ["a", "b"]


def test_mean_of_gaussian_records_is_the_known_characteristic_function() -> None:
    """For x ~ N(0, I) the characteristic function is exp(-|t|²/2); six standard errors at 40,000 draws."""
    feature = CharacteristicFunction(50, 3, 0.7, seed=0)
    x = torch.randn(40_000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    real, imaginary = feature(x).mean(dim=0).chunk(2)
    expected = torch.exp(-0.5 * feature.frequencies.square().sum(dim=1))
    assert float((real - expected).abs().max()) < 6 / 200 and float(imaginary.abs().max()) < 6 / 200


def test_density_ratio_is_that_of_two_gaussians() -> None:
    feature = CharacteristicFunction(20, 4, 0.3, seed=0)
    log_scale = torch.tensor([-1.0, -1.2, -0.8, -1.5], dtype=torch.float64)
    own = torch.distributions.Normal(torch.zeros(4), log_scale.exp()).log_prob(feature.frequencies).sum(dim=1)
    base = torch.distributions.Normal(torch.zeros(4), torch.full((4,), 0.3)).log_prob(feature.frequencies).sum(dim=1)
    assert torch.allclose(feature.log_density_ratio(log_scale), own - base, atol=1e-5)


def test_frequencies_of_another_numpy_are_refused() -> None:
    spec = CharacteristicFunction(5, 2, 1.0, seed=0).spec()
    with pytest.raises(ReleaseError, match="frequencies"):
        from_spec({**spec, "digest": "0" * 64})


def test_value_and_gradient() -> None:
    angles = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    assert torch.equal(cosine_sine(angles), torch.cat([angles.cos(), angles.sin()], dim=1))
    assert torch.autograd.gradcheck(cosine_sine, angles)


ONE = MixedFourierFeatures(4_000, 0.5, 0, numeric=(0, 1), categorical=(2, 3), num_categorical=1)
SEVERAL = MixedFourierFeatures(9_000, (0.1, 0.5, 3.0, 3.0), 0, (0, 1), (2, 3), 1)


@pytest.mark.parametrize(
    ("feature", "weights"), [(ONE, {0.5: 1.0}), (SEVERAL, {0.1: 0.25, 0.5: 0.25, 3.0: 0.5})], ids=["one", "several"]
)
def test_inner_products_are_the_weighted_sum_of_kernels(
    feature: MixedFourierFeatures, weights: dict[float, float]
) -> None:
    x = torch.rand(12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[:, 2:] = torch.nn.functional.one_hot((x[:, 2] < 0.5).long(), 2)
    squares = torch.cdist(x[:, :2], x[:, :2]).square()
    gaussian = sum(weight * torch.exp(-squares / (2 * own**2)) for own, weight in weights.items())
    linear = x[:, 2:] @ x[:, 2:].T / 2
    # 6 standard errors of so many frequencies.
    assert float((feature(x) @ feature(x).T - gaussian - linear).abs().max()) < 6 / feature.num_frequencies**0.5
    norms = feature(x)[:, : 2 * feature.num_frequencies].norm(dim=1)
    assert float((norms - 1).abs().max()) < 1e-12  # one bound for all of them, and it is reached


def test_tables_of_one_kind_only() -> None:
    numeric = MixedFourierFeatures(10, 0.5, 0, numeric=(0,), categorical=(), num_categorical=0)
    assert numeric(torch.zeros(2, 1)).shape == (2, 20) and len(numeric.bounded_parts) == 1
    categorical = MixedFourierFeatures(10, 0.5, 0, numeric=(), categorical=(0, 1), num_categorical=1)
    assert categorical(torch.zeros(2, 2)).shape == (2, 2) and categorical.bounded_parts[0].nonnegative


@pytest.mark.parametrize("lengthscale", [(0.1,) * 6, ()])
def test_length_scales_that_do_not_fit_are_refused(lengthscale: tuple[float, ...]) -> None:
    with pytest.raises(ReleaseError, match="at least one frequency for each"):
        MixedFourierFeatures(5, lengthscale, 0, (0, 1), (), 0)
