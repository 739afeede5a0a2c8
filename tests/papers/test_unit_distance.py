"""Distances of means of unit outer products against automatic differentiation of their definition."""

import pytest
import torch
from torch import Tensor

from likeness_papers.networks.means import outer_features
from likeness_papers.networks.unit_distance import squared_blocks, unit_distances

COUNTS = [3, 0, 5]
SIZES = {"by rows": [(40, 30)], "by residual": [(4, 3)], "by mean": [(1, 6)], "all": [(1, 2), (40, 30), (3, 2), (1, 9)]}


def drawn(sizes: list[tuple[int, int]]) -> tuple[list[tuple[Tensor, Tensor]], Tensor, Tensor]:
    """Factors, of which the last row is so small that its norm is not divided by; a target; a scale."""
    stream = torch.Generator().manual_seed(3)
    shrunk = torch.ones(sum(COUNTS), 1, dtype=torch.float64)
    shrunk[-1] = 1e-9
    pairs = []
    for a, b in sizes:
        left, right = (torch.randn(sum(COUNTS), k, generator=stream, dtype=torch.float64) for k in (a, b))
        pairs.append((left, (right * shrunk).requires_grad_()))
    width = sum(a * b for a, b in sizes)
    return pairs, torch.randn(len(COUNTS), width, generator=stream, dtype=torch.float64), torch.tensor([0.2, 0.3, 0.5])


def by_definition(pairs: list[tuple[Tensor, Tensor]], target: Tensor, scale: Tensor) -> Tensor:
    vectors = outer_features(pairs)
    rows = vectors / vectors.square().sum(dim=1, keepdim=True).clamp(min=1e-12).sqrt()
    means = [part.sum(dim=0) / max(1, len(part)) for part in rows.split(COUNTS)]
    return (target - scale[:, None] * torch.stack(means)).square().sum(dim=1)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("known", [True, False], ids=["known", "new"])
def test_value_and_slope(sizes: list[tuple[int, int]], known: bool) -> None:
    pairs, target, scale = drawn(sizes)
    scale = scale.double()
    squares = squared_blocks(target, sizes) if known else None
    mixing, rights = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64), [right for _, right in pairs]
    found = unit_distances(pairs, COUNTS, target, scale, squares)
    expected = by_definition(pairs, target, scale)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    slopes = [torch.autograd.grad((mixing * own).sum(), rights) for own in (found, expected)]
    for ours, theirs in zip(*slopes, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_what_is_known_of_a_target_is_believed() -> None:
    """Or it would be computed in vain in every step."""
    pairs, target, scale = drawn(SIZES["by rows"])
    own = unit_distances(pairs, COUNTS, target, scale.double(), torch.zeros(3, 1, dtype=torch.float64))
    assert float((own.detach() - by_definition(pairs, target, scale.double()).detach()).abs().min()) > 1
