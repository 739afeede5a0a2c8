"""DP-HP's map against the kernels that it stands for, and its bounds on neighboring tables."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from likeness.core.errors import ReleaseError
from likeness.methods.maps import from_spec
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.sums.lattice_sum import lattice_sum
from likeness_papers.hp.hermite_map import HermiteFeatures
from likeness_papers.hp.mehler import rho_of

SCALE, LENGTHSCALE = 6.0, 0.1
RHO = rho_of(SCALE * LENGTHSCALE)
# Columns: number 0; number 1 with its indicator 2; categories 3-5 and 6-7. Products of all kinds of columns.
MIXED = HermiteFeatures(
    numeric=(0, 1),
    nullable=(1,),
    categorical=((3, 6), (6, 8)),
    rho=(RHO, RHO),
    scale=(SCALE, SCALE),
    order=25,
    product_order=25,
    subsets=((0, 1), (0, 2), (2, 3), (0, 1, 3)),
    product_share=0.75,
)


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
        ({"rho": [0.5]}, "one rho and one scale"),
        ({"rho": [0.5, 1.0]}, "rho must be between 0 and 1"),
        ({"scale": [1.0, 17.0]}, "at most 16"),
        ({"order": -1}, "orders must be at least 0"),
        ({"nullable": [2]}, "nullable columns must be among the numbers"),
        ({"subsets": [[0, 0]]}, "different columns"),
        ({"subsets": [[0, 4]]}, "different columns"),
        ({"subsets": [[]]}, "different columns"),
        ({"subsets": [3]}, "lists of columns"),
        ({"subsets": []}, "product_share"),
        ({"product_share": 1.5}, "product_share"),
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
