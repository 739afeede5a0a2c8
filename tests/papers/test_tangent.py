"""The closed form of the network gradient against automatic differentiation, record by record.

So are distances of means of unit outer products, against their definition.
"""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv1d, conv2d

from likeness.core.errors import ReleaseError
from likeness.methods.maps import from_spec
from likeness_papers.networks.means import class_distances, outer_features
from likeness_papers.networks.numerics import fitting_bits, round_to_grid, sum_of_squares
from likeness_papers.networks.random_network import KERNEL, WEIGHT_BITS, RandomNetwork
from likeness_papers.networks.unit_distance import squared_blocks, unit_distances
from likeness_papers.ntk.tangent_map import NetworkTangent

NETWORKS = [
    *(NetworkTangent("fc_1l", (30,), (12,), seed=1), NetworkTangent("fc_1l", (200,), (300,), seed=2)),
    *(NetworkTangent("fc_2l", (30, 20), (12,), seed=1), NetworkTangent("fc_2l", (100, 50), (60,), seed=3)),
    *(NetworkTangent("cnn_2l", (5, 20), (12,), seed=1), NetworkTangent("cnn_2l", (5, 20), (6, 7), seed=1)),
]


def named(feature: NetworkTangent) -> str:
    return f"{feature.architecture}-{'x'.join(map(str, feature.shape))}"


EVERY = pytest.mark.parametrize("feature", NETWORKS, ids=named)


def weights(network: RandomNetwork) -> list[Tensor]:
    first = [] if network.convolution is None else [network.convolution.weights]
    return [*first, *(layer.weights for layer in network.dense), network.output]


def g(network: RandomNetwork, given: list[Tensor], x: Tensor) -> Tensor:
    """The network on one record, in the words of torch: nothing of the closed form."""
    left = list(given)
    h = x
    if network.convolution is not None:
        kernel, bias = left[0][:, :-1], left[0][:, -1]
        image = x.view(1, 1, *network.shape)
        shape = (-1, 1) + (KERNEL,) * len(network.shape)
        convolve = conv1d if len(network.shape) == 1 else conv2d
        h = convolve(image, kernel.reshape(shape), bias, padding=1)[0].flatten(1).T.flatten().relu()
        left = left[1:]
    for layer in left[:-1]:
        h = (layer[:, :-1] @ h + layer[:, -1]).relu()
    return left[-1] @ h


def by_autograd(feature: NetworkTangent, x: Tensor) -> Tensor:
    given = [one.clone().requires_grad_() for one in weights(feature.network)]
    rows = [torch.cat([d.flatten() for d in torch.autograd.grad(g(feature.network, given, row), given)]) for row in x]
    features = torch.stack(rows)
    return features / features.norm(dim=1, keepdim=True)


def some(feature: NetworkTangent, count: int = 7) -> Tensor:
    x = torch.rand(count, math.prod(feature.shape), generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    x[0], x[1] = 0.0, (x[1] > 0.5).double()  # nothing but biases; a row of zeros and ones
    return x


@EVERY
def test_features_are_the_normalized_gradients_of_autograd(feature: NetworkTangent) -> None:
    x = some(feature)
    torch.testing.assert_close(feature(x), by_autograd(feature, x), rtol=0, atol=1e-10)


@pytest.mark.parametrize("feature", NETWORKS[::2], ids=named)
@pytest.mark.parametrize("counts", [[2, 4, 1], [30, 1, 90]], ids=["few rows", "many rows"])
def test_class_distances_and_their_gradients_are_those_of_the_features(
    feature: NetworkTangent, counts: list[int]
) -> None:
    """Few rows go through the products of rows with each other, many through the mean itself."""
    target = torch.randn(3, feature.bounded_parts[0].width, generator=torch.Generator().manual_seed(6)).double() / 10
    scale = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    found = []
    for closed in (True, False):
        x = some(feature, sum(counts)).requires_grad_()
        given = feature if closed else feature.__call__
        distances = class_distances(given, x, counts, target, scale)
        (distances * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
        found.append((distances.detach(), x.grad))
    means = torch.stack([part.mean(dim=0) for part in by_autograd(feature, some(feature, sum(counts))).split(counts)])
    torch.testing.assert_close(found[0][0], (target - scale[:, None] * means).square().sum(dim=1), rtol=1e-10, atol=0)
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-10)


def test_a_record_that_excites_no_unit_has_the_feature_zero() -> None:
    """One unit with a negative bias: black images do not excite it. The ReLU has slope 0 at 0 and below."""
    feature = next(
        f for f in (NetworkTangent("fc_1l", (1,), (2,), s) for s in range(50)) if f.network.dense[0].weights[0, -1] < 0
    )
    x, target = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True), torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    assert torch.equal(feature(x), torch.zeros(2, 4, dtype=torch.float64))
    distance = class_distances(feature, x, [2], target.double(), torch.ones(1, dtype=torch.float64))
    assert float(distance.detach()) == 30.0
    for value in (feature(x).sum(), distance.sum()):
        (slope,) = torch.autograd.grad(value, x)
        assert torch.equal(slope, torch.zeros_like(x))


@EVERY
def test_weights_are_coarse_and_every_sum_is_within_the_exact_integers(feature: NetworkTangent) -> None:
    network = feature.network
    for own in weights(network):
        assert torch.equal(own * 2.0**WEIGHT_BITS, (own * 2.0**WEIGHT_BITS).round())
    for layer in network.dense:
        steps = float(layer.output_bounds.max()) * 2.0 ** (WEIGHT_BITS + layer.input_bits)
        assert steps < 2.0**53
    found = network.gradients(some(feature, 50))
    for seen, layer in zip(found.seen, network.dense, strict=True):
        assert bool((seen.abs() <= layer.input_bounds).all())
    for signal, bound in zip(found.signals, network.signal_bounds, strict=True):
        assert bool((signal.abs() <= bound + 1e-12).all())
    if found.kernel is not None:
        assert bool((found.kernel.abs() <= network.kernel_bounds + 1e-6).all())


def test_sums_on_a_grid_do_not_depend_on_their_order() -> None:
    values = torch.rand(1, 5_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    order = torch.randperm(5_000, generator=torch.Generator().manual_seed(1))
    bounds = torch.ones(5_000, dtype=torch.float64)
    assert torch.equal(sum_of_squares(values[:, order], bounds), sum_of_squares(values, bounds))
    assert float(sum_of_squares(values, bounds)) == pytest.approx(float(values.square().sum()), rel=1e-10)
    assert fitting_bits(5_000, 52) == 39 and fitting_bits(0.1, 30) == 30
    rounded = round_to_grid(values, 3)
    assert torch.equal(rounded * 8, (values * 8).round()) and round_to_grid(values.float(), 3).dtype == torch.float32


def test_the_seed_and_nothing_else_makes_the_network() -> None:
    feature = NetworkTangent("fc_1l", (30,), (12,), seed=1)
    assert NetworkTangent("fc_1l", (30,), (12,), seed=1).digest == feature.digest
    assert NetworkTangent("fc_1l", (30,), (12,), seed=2).digest != feature.digest
    assert from_spec(feature.spec()) == feature
    with pytest.raises(ReleaseError, match="public weights drawn here are not those"):
        from_spec({**feature.spec(), "seed": 2})


@pytest.mark.parametrize(
    ("architecture", "widths", "shape"),
    [
        *(("fc_3l", (3,), (4,)), ("fc_2l", (3,), (4,)), ("fc_1l", (0,), (4,)), ("cnn_2l", (3, 3), (2, 2, 2))),
        ("fc_1l", (10**13,), (4,)),
    ],
)
def test_impossible_networks_are_refused(architecture: str, widths: tuple[int, ...], shape: tuple[int, ...]) -> None:
    with pytest.raises(ReleaseError, match="tangent:"):
        NetworkTangent(architecture, widths, shape, seed=0)


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
