"""DP-HP's recipe on tables of every kind: what is asked, and what is refused before anything is spent."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch

from likeness.config.typed import build
from likeness.core.errors import PlanError
from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.schema import Schema
from likeness.methods import METHODS
from likeness.methods.base import Context
from likeness.release.records import Records
from likeness.release.sums.lattice_sum import block_rows, lattice_sum
from likeness_papers.hp.hermite_map import HermiteFeatures
from likeness_papers.hp.method import Hp

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


MIXED = {
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
    own = context(MIXED)
    query, found = hp().embedding_query(own, {}), feature(hp(), own)
    assert (found.numeric, found.nullable, found.categorical) == ((0, 1), (1,), ((3, 6), (6, 10)))
    assert query.num_groups == 1 and len(found.subsets) == math.comb(4, 2)
    assert query.width == 21 * 2 + 1 + 3 + 4 + 11 * 12 + 11 * 3 + 11 * 4 + 12 * 3 + 12 * 4 + 3 * 4


def test_a_label_groups_the_sum_and_is_no_column_of_it() -> None:
    query = hp().embedding_query(context(MIXED, label="c"), {})
    assert query.num_groups == 3
    assert feature(hp(), context(MIXED, label="c")).categorical == ((3, 7),)


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
    own = context(MIXED)
    alone = feature(hp(kernel="sum", order=7), own)
    assert (alone.order, alone.subsets, alone.product_share) == (7, (), 0.0)
    products = feature(hp(kernel="product", product_order=3), own)
    assert (products.product_order, products.product_share, products.sum_width) == (3, 1.0, 0)
    both = feature(hp(lengthscale=[0.1, 0.4], product_share=0.25), own)
    assert both.rho[0] > both.rho[1] and both.product_share == 0.25


def test_the_loss_weighs_products_by_gamma() -> None:
    own = context(MIXED)
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
        hp(**privatize).check(context(MIXED))


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
