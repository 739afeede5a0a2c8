"""moments: the cosine basis, moments freed of noise, the private clipping bound, and what a verifier says of it."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.fft import dctn

from likeness.data.schema import Schema
from likeness.errors import ReleaseError
from likeness.features import CosineMoments, CosineNorms
from likeness.features.cosine import cosine_basis
from likeness.generators.gaussian_images import GaussianImages
from likeness.generators.moments import denoised
from likeness.methods import Context
from likeness.methods.fit import fit
from likeness.methods.moments import NORMS, Auxiliary, Moments, Privatize, TrainMoments, median_norm
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.home import locate
from likeness.privacy.ledger import Ledger
from likeness.privacy.plan import make_plan
from likeness.release.door import release
from likeness.release.query import Query
from likeness.release.released import Released, from_bytes, to_bytes
from likeness.release.request import Dataset
from likeness.release.terms import Records
from likeness.verifier.files import Bundle
from likeness.verifier.scales import scales
from likeness.verifier.verdict import Wrong

SHAPE = (6, 9)
SCHEMA = Schema.from_dict(
    {
        "name": "toy images",
        "source": "made up",
        "task": "classification",
        "label": "y",
        "image": {"shape": list(SHAPE)},
        "columns": {"y": {"kind": "categorical", "categories": ["no", "yes"]}},
    },
    "toy.yaml",
)
CONTEXT = Context(SCHEMA, "add_remove_one", None, 0)
METHOD = Moments(auxiliary=Auxiliary(cells=32), privatize=Privatize(num_coefficients=20))


def images(count: int, seed: int) -> torch.Tensor:
    return torch.rand(count, math.prod(SHAPE), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_basis_is_the_cosine_transform_lowest_frequencies_first() -> None:
    x = images(5, 1)
    basis = cosine_basis(SHAPE, math.prod(SHAPE))
    assert torch.allclose(basis @ basis.T, torch.eye(len(basis), dtype=torch.float64), atol=1e-5)
    whole = dctn(x.numpy().reshape(5, *SHAPE), axes=(1, 2), norm="ortho")
    order = sorted(np.ndindex(SHAPE), key=lambda at: ((9 * at[0]) ** 2 + (6 * at[1]) ** 2, at))
    for place, (u, v) in enumerate(order[:20]):
        assert (x @ cosine_basis(SHAPE, 20)[place]).numpy() == pytest.approx(whole[:, u, v], abs=1e-4)


def test_brightness_is_kept_below_the_bound_and_cut_above() -> None:
    feature = CosineMoments(SHAPE, 20, 2.0, 0.3)
    dim, bright = 0.1 * torch.ones(1, 54, dtype=torch.float64), torch.ones(1, 54, dtype=torch.float64)
    norms = [float(feature.factors(x)[0][0].norm()) for x in (dim, 2 * dim, bright)]
    assert norms == pytest.approx([0.1 * math.sqrt(54) / 2, 0.2 * math.sqrt(54) / 2, 1], abs=1e-5)
    assert float(feature(bright).norm()) == pytest.approx(1, abs=1e-12)


def test_without_noise_the_moments_are_those_of_the_rows() -> None:
    feature = CosineMoments(SHAPE, 20, 3.0, 0.4)
    x, counts = images(300, 2), torch.tensor([100.0, 200.0], dtype=torch.float64)
    parts = torch.split(x, [100, 200])
    sums = torch.stack([feature(part).sum(dim=0) for part in parts])
    found = denoised(sums, counts, 0.4, noise_std=0.0)
    for own, mean, factor in zip(parts, found.means, found.factors, strict=True):
        ((u, _),) = feature.factors(own)
        assert torch.allclose(mean, u.mean(dim=0), atol=1e-12)
        assert torch.allclose(factor @ factor.T, torch.cov(u.T, correction=0), atol=1e-12)
    assert torch.allclose(found.features(0.4), sums / counts[:, None], atol=1e-12)


def test_directions_within_the_noise_are_dropped_and_the_others_freed_of_it() -> None:
    """One covariance of rank 2 under noise, 20 times. False alarms: the edge is exceeded by noise alone in about 3 of
    100 matrices (Tracy and Widom), so that more than 8 of 20 happen with a probability below 1e-7; each estimate lies
    within six of its deviations, 2e-9 a bound."""
    size, count, sigma = 60, 1_000.0, 5.0
    directions = torch.linalg.qr(torch.randn(size, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64))[
        0
    ]
    truth = torch.tensor([0.4, 0.2], dtype=torch.float64)
    draws = torch.Generator().manual_seed(4)
    extra, strongest = 0, []
    for _ in range(20):
        exact = torch.cat([torch.zeros(size, 1), (directions * truth) @ directions.T], dim=1).double()
        noise = sigma * torch.randn(size, size + 1, generator=draws, dtype=torch.float64)
        noise[:, 0] = 0  # of the mean, which this test is not about
        found = denoised((math.sqrt(0.5) * count * exact + noise).flatten()[None], torch.tensor([count]), 0.5, sigma)
        strongest.append((found.factors[0].square().sum(dim=0))[:2])
        extra += found.ranks[0] > 2
        assert found.ranks[0] >= 2
    assert extra <= 8
    spread = sigma / count / math.sqrt(0.5) * 6 / math.sqrt(20)
    assert torch.stack(strongest).mean(dim=0).tolist() == pytest.approx(truth.tolist(), abs=spread + 0.002)


def test_noise_alone_gives_no_direction_and_black_images() -> None:
    draws = torch.Generator().manual_seed(5)
    noise = torch.randn(1, 60 * 61, generator=draws, dtype=torch.float64)
    noise.view(60, 61)[:, 0] = 0
    found = denoised(noise, torch.tensor([1000.0]), 0.3, 1.2)  # noise a fifth smaller than said: no false alarm
    assert found.ranks == [0]
    network = GaussianImages((10, 10), 1, 60, 3.0)
    network.start_from(found)
    assert float(network.draw(torch.zeros(5, dtype=torch.int64), torch.Generator().manual_seed(1)).abs().max()) == 0


def test_the_generator_has_the_moments_that_it_was_given() -> None:
    """20,000 images of two classes, far from the ends of the scale; means of 20,000 within six deviations, 2e-9."""
    network, size = GaussianImages(SHAPE, 2, 20, 3.0), 20
    means = torch.zeros(2, size, dtype=torch.float64)
    means[:, 0] = torch.tensor([0.4, 0.6]) * math.sqrt(54) / 3.0  # gray
    factors = torch.zeros(2, size, size, dtype=torch.float64)
    factors[0, 3, 0], factors[1, 5, 1] = 0.05, 0.07
    network.start_from(type(denoised(torch.ones(1, 6), torch.ones(1), 0.5, 1.0))(means, factors))
    labels = torch.tensor([0, 1]).repeat(20_000)
    x = network.draw(labels, torch.Generator().manual_seed(2)).double()
    assert float(x.min()) >= 0 and float(x.max()) <= 1
    u = x @ cosine_basis(SHAPE, size).T / 3.0
    for label, (row, deviation) in enumerate(((3, 0.05), (5, 0.07))):
        own = u[labels == label]
        assert own.mean(dim=0).numpy() == pytest.approx(means[label].numpy(), abs=6 * 0.07 / math.sqrt(20_000))
        scatter = own.std(dim=0)
        assert float(scatter[row]) == pytest.approx(deviation, rel=6 / math.sqrt(40_000))
        assert float(scatter.sum() - scatter[row]) < 1e-3  # what rounding of the basis leaves


def released() -> dict[str, Released]:
    """All releases of 4,000 images of one gray each, between 0.2 and 0.4, at ε = 2."""
    grays = torch.linspace(0.2, 0.4, 4_000, dtype=torch.float64)[:, None] * torch.ones(1, 54, dtype=torch.float64)
    rows = Records(grays.numpy(), np.arange(4_000) % 2)
    plan = make_plan(
        method="moments", identity="people", shares=METHOD.shares(), epsilon=2.0, delta=1e-5,
        adjacency=Adjacency.ADD_REMOVE_ONE, num_records=None,
    )  # fmt: skip
    ledger = Ledger.create(locate())
    ledger.declare_identity("people", Adjacency.ADD_REMOVE_ONE, 2.0, 1e-5)

    def answer(query: Query) -> Released:
        return from_bytes(release(query, plan, Dataset("people", "digest"), ledger, lambda: [rows]), query.name)

    auxiliary = METHOD.ask(CONTEXT, answer)
    return {**auxiliary, "embedding": answer(METHOD.embedding_query(CONTEXT, auxiliary))}


def test_the_bound_is_the_noisy_median_and_a_verifier_computes_it_again(tmp_path: Path) -> None:
    found = released()
    norms = CosineNorms(SHAPE, 20, 32)
    bound = median_norm(norms, found[NORMS])
    # Cells are 1/32 of the whole scale, and 2,000 records lie on either side of the true median: noise moves a cell.
    assert bound / math.sqrt(54) == pytest.approx(0.3, abs=2 / 32)
    assert found["embedding"].receipt.feature["bound"] == bound
    (tmp_path / "released").mkdir()

    def told(**changed: Any) -> str:
        for name, one in found.items():
            if name == "embedding":
                feature = {**one.receipt.feature, **changed}
                one = dataclasses.replace(one, receipt=dataclasses.replace(one.receipt, feature=feature))
            (tmp_path / f"released/{name}.safetensors").write_bytes(to_bytes(one))
        return scales(Bundle(tmp_path))

    assert told() == f"coefficients clipped at {bound:.4g}, the median of the released norms"
    for changed, message in (({"bound": bound * 1.01}, "a bound of"), ({"shape": [9, 6]}, "other coefficients")):
        with pytest.raises(Wrong, match=message):
            told(**changed)


def test_a_histogram_of_noise_alone_clips_nothing() -> None:
    norms = CosineNorms(SHAPE, 20, 32)
    hidden = released()[NORMS]
    lost = dataclasses.replace(hidden, lattice=-np.abs(hidden.lattice))
    assert median_norm(norms, lost) == pytest.approx(math.sqrt(54))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: CosineMoments((2, 3), 7, 1.0, 0.3), "1 to height · width coefficients"),
        (lambda: CosineMoments((2, 3), 6, 0.0, 0.3), "the bound is positive"),
        (lambda: CosineMoments((2, 3), 6, 1.0, 1.0), "first_share between 0 and 1"),
        (lambda: CosineNorms((2, 3), 6, 0), "needs a cell"),
    ],
    ids=["too many", "no bound", "no second moments", "no cells"],
)
def test_maps_that_make_no_sense_are_refused(build: Any, message: str) -> None:
    with pytest.raises(ReleaseError, match=message):
        build()


def test_the_closed_form_is_not_trained_and_its_loss_is_told() -> None:
    found = released()
    auxiliary = {name: one for name, one in found.items() if name != "embedding"}
    saved, losses = fit(METHOD, CONTEXT, auxiliary, found["embedding"], device="cpu")
    assert [iteration for iteration, _ in losses] == [0] and 0 < losses[0][1] < 0.05
    trained, curve = fit(
        dataclasses.replace(METHOD, train=TrainMoments(iterations=3)), CONTEXT, auxiliary, found["embedding"], "cpu"
    )
    start = METHOD.build_generator(CONTEXT, auxiliary)
    METHOD.start(CONTEXT, auxiliary, found["embedding"], start)
    same = [torch.equal(network.means, start.means) for network in (saved.network, trained.network)]  # type: ignore
    assert same == [True, False] and curve[0][0] == 1
