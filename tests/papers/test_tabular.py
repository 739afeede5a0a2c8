"""Generators of tables: categories and missing numbers are drawn with the probabilities that the network gives."""

import numpy as np
import pytest
import torch

from likeness.core.errors import DataError, ParamsError
from likeness.data.encoding.layout import Block, Condition, Layout
from likeness.methods.saved_generator import SavedGenerator
from likeness_papers.networks.tabular import TabularGenerator

LAYOUT = Layout(
    (Block("a", "unit", 0, 1), Block("a", "indicator", 1, 2), Block("b", "onehot", 2, 5), Block("c", "onehot", 5, 7)), 2
)
ROWS = 40_000
SIX = 6.0  # standard errors: a false alarm once in 500 million comparisons


def network(**options: object) -> TabularGenerator:
    torch.manual_seed(0)
    return TabularGenerator(LAYOUT, 4, [8], **options).eval()  # type: ignore[arg-type]


def drawn(own: TabularGenerator, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Classes, relaxed rows, and the exact rows that are drawn from them."""
    labels = torch.arange(ROWS) % 2
    x = torch.from_numpy(own.draw(labels.numpy(), np.random.default_rng(seed))).float()
    generator = torch.Generator().manual_seed(int(np.random.default_rng(seed).integers(2**63 - 1)))
    again = []
    for part in torch.split(labels, 10_000):
        with torch.no_grad():
            relaxed = own(torch.randn(len(part), own.latent_dim, generator=generator), part)
        again.append(relaxed.clone())
        own.settle(relaxed, generator)
    return labels, torch.cat(again), x


def test_a_drawn_row_has_the_mean_of_the_relaxed_one() -> None:
    labels, relaxed, x = drawn(network())
    for own in (0, 1):
        probabilities, found = relaxed[labels == own][:, 1:], x[labels == own][:, 1:]
        error = (probabilities * (1 - probabilities)).sum(dim=0).sqrt()
        assert ((found - probabilities).sum(dim=0).abs() < SIX * error).all()
    assert torch.equal(x[:, 2:5].sum(dim=1), torch.ones(ROWS))
    assert set(x[:, 1:].unique().tolist()) == {0.0, 1.0}
    assert torch.equal(x[:, 0], relaxed[:, 0])


def test_the_most_probable_category_on_request() -> None:
    _, relaxed, x = drawn(network(sampling="argmax"))
    for start, stop in ((2, 5), (5, 7)):
        assert torch.equal(x[:, start:stop].argmax(dim=1), relaxed[:, start:stop].argmax(dim=1))
    assert torch.equal(x[:, 1], relaxed[:, 1])


@pytest.mark.parametrize("changed", [{"sampling": "softmax"}, {"sampling": None}])
def test_another_kind_of_sampling_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="sampling"):
        TabularGenerator.from_spec({**network().spec(), **changed})


def test_rows_that_are_not_finite_are_refused() -> None:
    own = network()
    with torch.no_grad():
        own.body[-1].bias[3] = torch.nan  # type: ignore[index]
    with pytest.raises(DataError, match="not finite"):
        own.draw(np.zeros(10, dtype=np.int64), np.random.default_rng(0))


def test_the_network_can_be_asked_for_a_class_only() -> None:
    saved = SavedGenerator(network(), (0.5, 0.5), {})
    assert (saved.draw(20, seed=0, classes=(1,))[1] == 1).all()
    with pytest.raises(ParamsError, match="the label only"):
        saved.draw(20, seed=0, conditions={0: Condition((0,))})
