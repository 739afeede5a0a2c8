"""moments: the cosine basis, moments freed of noise, levels, private bounds, and what a verifier says of it."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.fft import dctn
from sklearn.isotonic import isotonic_regression

from likeness.data.schema import Schema
from likeness.errors import ParamsError, ReleaseError
from likeness.features import CharacteristicFunction, CosineLevels, CosineMoments, CosineNorms, LevelCounts, Modal
from likeness.features.cosine import cosine_basis
from likeness.features.modes import Modes
from likeness.generators.brightness import brightness, share_brighter, shares_above
from likeness.generators.gaussian_images import GaussianImages
from likeness.generators.moments import Moments, denoised
from likeness.methods import Context, Method, moments
from likeness.methods.fit import fit
from likeness.methods.moments import LEVEL_COUNTS, LEVELS, NORMS, Auxiliary, Privatize, TrainMoments, median_norm
from likeness.methods.pearl import Pearl
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.home import locate
from likeness.privacy.ledger import Ledger
from likeness.privacy.plan import make_plan
from likeness.release.door import release
from likeness.release.query import Query
from likeness.release.released import Released, from_bytes, to_bytes
from likeness.release.request import Dataset
from likeness.release.terms import Records
from likeness.typed import build
from likeness.verifier.files import Bundle
from likeness.verifier.noise import noise
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
METHOD = moments.Moments(auxiliary=Auxiliary(cells=32), privatize=Privatize(num_coefficients=20))


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


def planted(values: list[float], mean: float, size: int, sigma: float, draws: torch.Generator) -> Moments:
    """Estimates of 1,000 records whose covariance has these eigenvalues and whose mean has this norm, under noise."""
    count, share = 1_000.0, 0.5
    directions = torch.linalg.qr(torch.randn(size, len(values) + 1, generator=draws, dtype=torch.float64))[0]
    center = mean * directions[:, -1]
    second = (directions[:, :-1] * torch.tensor(values, dtype=torch.float64)) @ directions[:, :-1].T
    second = second + center[:, None] * center[None]
    exact = torch.cat([math.sqrt(share) * center[:, None], math.sqrt(1 - share) * second], dim=1)
    noise = sigma * torch.randn(size, size + 1, generator=draws, dtype=torch.float64)
    return denoised((count * exact + noise).flatten()[None], torch.tensor([count]), share, sigma)


def test_eigenvalues_are_freed_of_what_noise_added_and_hidden_ones_dropped() -> None:
    """40 covariances with eigenvalues 3, 1.8 and .5 times s√K, where noise makes of the first two a third more, and
    hides the third. False alarms: the bound is six deviations of a mean of 40, 2e-9; noise alone exceeds the edge in
    about one matrix of six, in more than 24 of 40 with probability below 1e-9."""
    size, sigma = 60, 5.0
    unit = sigma * math.sqrt(size / (2 * 0.5)) / 1_000  # s √K
    draws, found = torch.Generator().manual_seed(4), []
    for _ in range(40):
        found.append(planted([3 * unit, 1.8 * unit, 0.5 * unit], 0.0, size, sigma, draws))
    strengths = torch.stack([own.factors[0].square().sum(dim=0)[:2] for own in found]) / unit
    # A single eigenvalue has a deviation of s√2 at most, that is √(2/60) in this unit.
    assert strengths.mean(dim=0).tolist() == pytest.approx([3, 1.8], abs=6 * math.sqrt(2 / 60 / 40))
    assert sum(own.ranks[0] > 2 for own in found) <= 24


def test_noise_alone_gives_no_direction_and_dark_images() -> None:
    draws = torch.Generator().manual_seed(5)
    noise = torch.randn(1, 60 * 61, generator=draws, dtype=torch.float64)
    found = denoised(noise, torch.tensor([1000.0]), 0.3, 1.2)  # noise a fifth smaller than said: no false alarm
    assert found.ranks == [0] and float(found.means.norm()) < 0.1
    loud = denoised(1e4 * noise, torch.tensor([1000.0]), 0.3, 1.2e4)
    assert float(loud.means.norm()) == pytest.approx(1)  # no mean of vectors within the ball is longer


@pytest.mark.parametrize(("brightness", "expected"), [(-2.0, 0.0), (5.0, 1.0)])
def test_pixels_are_clipped_to_black_and_white(brightness: float, expected: float) -> None:
    network = GaussianImages((10, 10), 1, 60, 2.5)
    means = torch.zeros(1, 60, dtype=torch.float64)
    means[0, 0] = brightness * 10 / 2.5
    network.start_from(Moments(means, torch.zeros(1, 60, 60, dtype=torch.float64)))
    x = network.draw(torch.zeros(5, dtype=torch.int64), torch.Generator().manual_seed(1))
    assert bool((x == expected).all())


def test_the_generator_has_the_moments_that_it_was_given() -> None:
    """20,000 images of two classes, far from the ends of the scale; means of 20,000 within six deviations, 2e-9."""
    network, size, bound = GaussianImages(SHAPE, 2, 20, 2.4), 20, 2.4
    means = torch.zeros(2, size, dtype=torch.float64)
    means[:, 0] = torch.tensor([0.4, 0.6]) * math.sqrt(54) / bound  # gray
    factors = torch.zeros(2, size, size, dtype=torch.float64)
    factors[0, 3, 0], factors[1, 5, 1] = 0.05, 0.07
    network.start_from(Moments(means, factors))
    labels = torch.tensor([0, 1]).repeat(20_000)
    x = network.draw(labels, torch.Generator().manual_seed(2)).double()
    assert float(x.min()) >= 0 and float(x.max()) <= 1
    u = x @ cosine_basis(SHAPE, size).T / bound
    for label, (row, deviation) in enumerate(((3, 0.05), (5, 0.07))):
        own = u[labels == label]
        assert own.mean(dim=0).numpy() == pytest.approx(means[label].numpy(), abs=6 * 0.07 / math.sqrt(20_000))
        scatter = own.std(dim=0)
        assert float(scatter[row]) == pytest.approx(deviation, rel=6 / math.sqrt(40_000))
        assert float(scatter.sum() - scatter[row]) < 1e-3  # what rounding of the basis leaves


def gray_images() -> Records:
    """3,700 images of one gray each, between 0.2 and 0.4."""
    grays = torch.linspace(0.2, 0.4, 3_700, dtype=torch.float64)[:, None] * torch.ones(1, 54, dtype=torch.float64)
    return Records(grays.numpy(), np.arange(3_700) % 2)


def released(method: Method = METHOD, context: Context = CONTEXT, rows: Records | None = None) -> dict[str, Released]:
    """All releases of the method at ε = 2."""
    rows = rows or gray_images()
    plan = make_plan(
        method=method.name, identity="people", shares=method.shares(), epsilon=2.0, delta=1e-5,
        adjacency=Adjacency.ADD_REMOVE_ONE, num_records=None,
    )  # fmt: skip
    ledger = Ledger.create(locate())
    ledger.declare_identity("people", Adjacency.ADD_REMOVE_ONE, 2.0, 1e-5)

    def answer(query: Query) -> Released:
        return from_bytes(release(query, plan, Dataset("people", "digest"), ledger, lambda: [rows]), query.name)

    auxiliary = method.ask(context, answer)
    return {**auxiliary, "embedding": answer(method.embedding_query(context, auxiliary))}


def test_the_bound_is_the_noisy_median_and_a_verifier_computes_it_again(tmp_path: Path) -> None:
    found = released()
    norms = CosineNorms(SHAPE, 20, 32)
    bound = median_norm(norms, found[NORMS])
    # Cells are 1/32 of the whole scale, and 1,850 records lie on either side of the true median: noise moves a cell.
    assert bound / math.sqrt(54) == pytest.approx(0.3, abs=2 / 32)
    assert found["embedding"].receipt.feature["bound"] == bound
    notes = METHOD.notes(CONTEXT, found)
    assert f"norm {bound:.4g}, about the median, read off the noisy `norms`" in notes[0]
    assert f"more than {found[LEVELS].receipt.feature['share']:.4g} of their pixels above levels" in notes[1]
    (tmp_path / "released").mkdir()

    def told(other: str = "embedding", **changed: Any) -> str:
        for name, one in found.items():
            if name == other:
                feature = {**one.receipt.feature, **changed}
                one = dataclasses.replace(one, receipt=dataclasses.replace(one.receipt, feature=feature))
            (tmp_path / f"released/{name}.safetensors").write_bytes(to_bytes(one))
        return scales(Bundle(tmp_path))

    share = found[LEVELS].receipt.feature["share"]
    assert share == pytest.approx(0.5, abs=2 / 32)  # above 0 all, above a quarter most: two levels of four
    said = f"coefficients clipped at {bound:.4g}, as read off the released norms, and levels at a share of {share:.4g}"
    assert told() == said
    for other, changed, message in (
        ("embedding", {"bound": bound * 1.01}, "a bound of"),
        ("embedding", {"shape": [9, 6]}, "other coefficients"),
        (LEVELS, {"share": share * 1.01}, "a share of"),
        (LEVELS, {"shape": [9, 6]}, "other levels"),
        (LEVEL_COUNTS, {"levels": 3}, "other levels"),
    ):
        with pytest.raises(Wrong, match=message):
            told(other, **changed)
    for name in (LEVELS, "embedding"):
        elsewhere = dataclasses.replace(found[name].receipt, query="else")
        path = tmp_path / "released/else.safetensors"
        path.write_bytes(to_bytes(dataclasses.replace(found[name], receipt=elsewhere)))
        with pytest.raises(Wrong, match=f"else has the map of {name}"):
            told()
        path.unlink()
    modes = (Modes(0, False, (1.0,), (0.5,), (0.2,)),)
    wrapped = Modal(54, modes, CosineLevels(SHAPE, 20, 4, 0.3)).spec()
    hidden = dataclasses.replace(found[LEVELS].receipt, query="else", feature={**wrapped, "terms": "each_record"})
    path.write_bytes(to_bytes(dataclasses.replace(found[LEVELS], receipt=hidden)))
    with pytest.raises(Wrong, match="else has the map of levels"):
        told()
    path.unlink()
    counted = found.pop(LEVEL_COUNTS)
    (tmp_path / f"released/{LEVEL_COUNTS}.safetensors").unlink()
    with pytest.raises(Wrong, match="no level_counts of all images"):
        told()
    found[LEVEL_COUNTS] = counted
    one = found[NORMS]
    by_class = {**one.receipt.feature, "terms": "each_record"}
    halves = dataclasses.replace(one.receipt, num_groups=2, feature=by_class)
    found[NORMS] = dataclasses.replace(one, lattice=one.lattice.reshape(2, -1), receipt=halves)
    with pytest.raises(Wrong, match="norms are counted by class"):
        told()
    together = dataclasses.replace(halves, feature=one.receipt.feature)
    found[NORMS] = dataclasses.replace(found[NORMS], receipt=together)
    with pytest.raises(Wrong, match="records of all classes together are one group"):
        told()


def test_a_verifier_computes_the_scale_of_pearl_again(tmp_path: Path) -> None:
    schema = Schema.from_dict(
        {
            "name": "toy", "source": "made up", "task": "none",
            "columns": {name: {"kind": "numeric", "lower": 0, "upper": 1} for name in "ab"},
        },
        "toy.yaml",
    )  # fmt: skip
    shares = {"class_counts": 0.05, "mixture": 0.0, "mean_pairwise_distance": 0.05, "embedding": 0.9}
    pearl = build(Pearl, {"plan": {"shares": shares}, "privatize": {"num_frequencies": 20}}, "pearl")
    rows = Records(np.random.default_rng(0).random((2_000, 2)), np.zeros(2_000, dtype=np.int64))
    found = released(pearl, Context(schema, "add_remove_one", None, 0), rows)
    (tmp_path / "released").mkdir()

    def told(**changed: Any) -> str:
        for name, one in found.items():
            feature = {**one.receipt.feature, **(changed if name == "embedding" else {})}
            other = dataclasses.replace(one, receipt=dataclasses.replace(one.receipt, feature=feature))
            (tmp_path / f"released/{name}.safetensors").write_bytes(to_bytes(other))
        return scales(Bundle(tmp_path))

    scale = found["embedding"].receipt.feature["scale"]
    assert told().startswith(f"frequencies of scale {scale:.4g}")
    with pytest.raises(Wrong, match="a scale of"):
        told(**CharacteristicFunction(20, 2, scale * 1.01, 0).spec())


def test_a_verifier_sees_noise_that_is_smaller_than_claimed(tmp_path: Path) -> None:
    """False alarm of the right release: 1e-9, twice (its low bits, its scale)."""
    found = released()
    (tmp_path / "released").mkdir()

    def told(claimed: float) -> str:
        one = found["embedding"]
        receipt = dataclasses.replace(one.receipt, noise_scale=claimed * one.receipt.noise_scale)
        (tmp_path / "released/embedding.safetensors").write_bytes(to_bytes(dataclasses.replace(one, receipt=receipt)))
        return noise(Bundle(tmp_path))

    assert told(1.0) == "as claimed where it can be tested: embedding (bits), embedding (scale, from below)"
    with pytest.raises(Wrong, match="the noise is smaller than the receipt claims"):
        told(1.5)


def test_the_bounds_are_those_of_all_classes() -> None:
    """Class 1 is white and three quarters of all: its median is the median."""
    x = np.full((4_000, 54), 0.1)
    labels = (np.arange(4_000) % 4 > 0).astype(np.int64)
    x[labels == 1] = 1.0
    found = released(rows=Records(x, labels))
    assert found["embedding"].receipt.feature["bound"] == pytest.approx(math.sqrt(54), rel=1e-5)
    assert found[LEVELS].receipt.feature["share"] == 1.0


def test_what_levels_depend_on_has_to_be_released_first() -> None:
    """A forecast takes a stand-in; a price does not, or it would pass for a release that is on record."""
    queries = METHOD.auxiliary_queries(CONTEXT, {})
    assert [next(queries).name for _ in range(3)] == ["class_counts", NORMS, LEVEL_COUNTS]  # type: ignore
    with pytest.raises(KeyError, match=LEVEL_COUNTS):
        next(queries)  # type: ignore
    foreseen = {query.name: query for query in METHOD.foreseen_queries(CONTEXT)}
    for name, one in released().items():
        query = foreseen[name]
        assert (query.dimension, query.num_groups) == (one.receipt.dimension, one.receipt.num_groups)
        squared = query.sensitivity_squared(Adjacency.ADD_REMOVE_ONE)
        assert math.sqrt(squared) * 2.0**-query.lattice_bits == pytest.approx(one.receipt.sensitivity, rel=1e-12)


def test_no_pixel_is_on_a_level_by_rounding() -> None:
    """Bytes that are j/J exactly, where J divides 255, are not above it; the next byte is."""
    counts, feature = LevelCounts((1, 1), 5, 5), CosineLevels((1, 1), 1, 5, 1.0)
    for level in range(1, 5):
        byte = 255 * level // 5
        x = np.array([[byte / 255], [(byte + 1) / 255]])
        assert counts.places(x)[:, 0].tolist() == [level, min(level + 1, 4)]
        rounded = torch.from_numpy(np.rint(x * 2.0**24) * 2.0**-24)
        assert (feature(rounded) > 0).sum(dim=1).tolist() == [level, level + 1]


def test_cells_of_noise_alone_do_not_count() -> None:
    """Black images in the first of 32 cells, and noise in the others, which adds up to more than they are."""
    norms, hidden = CosineNorms(SHAPE, 20, 32), released()[NORMS]
    scale = hidden.noise_std * 2.0**hidden.receipt.lattice_bits
    noise = np.linspace(-3, 1.9, 31) * scale
    counts = np.concatenate([[8 * scale], noise]).astype(np.int64)[None]
    assert median_norm(norms, dataclasses.replace(hidden, lattice=counts)) == pytest.approx(norms.cell_width)
    lost = dataclasses.replace(hidden, lattice=-np.abs(hidden.lattice))
    assert median_norm(norms, lost) == pytest.approx(math.sqrt(54))  # nothing left: nothing is clipped


def test_the_basis_is_exact_on_the_grid_of_the_door() -> None:
    basis = cosine_basis((16, 16), 100)
    assert bool((basis * 2.0**20 == (basis * 2.0**20).round()).all())
    x = torch.round(images(1, 3)[0, :1] * torch.linspace(0, 1, 256, dtype=torch.float64) * 2**24) * 2.0**-24
    exact = [
        sum(int(a * 2**24) * int(b * 2**20) for a, b in zip(x.tolist(), row.tolist(), strict=True))
        for row in basis[:10]
    ]
    assert ((basis[:10] @ x) * 2.0**44).tolist() == exact


@pytest.mark.parametrize(("shape", "count", "cells"), [((8, 8), 64, 255), ((16, 16), 100, 85), ((28, 28), 100, 64)])
def test_the_cell_of_an_image_does_not_depend_on_how_many_there_are(
    shape: tuple[int, int], count: int, cells: int
) -> None:
    """One gray each, whose norms stand exactly on borders of cells where 255 is a multiple of ``cells``. The door gives
    rows as they are encoded, v/255, in blocks of any size, and matrix products round by the size of the block."""
    norms = CosineNorms(shape, count, cells)
    grays = np.arange(0, 256)[:, None] / 255 * np.ones((1, math.prod(shape)))
    alone = np.concatenate([norms.places(row[None]) for row in grays])
    for size in (2, 3, 4, 5, 100):
        blocks = np.concatenate([norms.places(grays[start : start + size]) for start in range(0, 256, size)])
        assert np.array_equal(blocks, alone)
    assert alone.min() == 0 and alone.max() == cells - 1


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: CosineMoments((2, 3), 7, 1.0, 0.3), "1 to height · width coefficients"),
        (lambda: CosineMoments((2, 3), 6, 0.0, 0.3), "the bound is positive"),
        (lambda: CosineMoments((2, 3), 6, 1.0, 1.0), "first_share between 0 and 1"),
        (lambda: CosineMoments((2, 3), 6, 10**400, 0.3), "the bound is positive"),
        (lambda: CosineMoments((2.0, 3.0), 6, 1.0, 0.3), "1 to height · width coefficients"),
        (lambda: CosineNorms((2, 3), 6, 0), "needs a cell"),
        (lambda: LevelCounts((2, 3), 4, 0), "needs a cell"),
        (lambda: LevelCounts((2, 3), 0, 4), "needs a level"),
        (lambda: CosineLevels((2, 3), 6, 0, 0.5), "needs a level"),
        (lambda: CosineLevels((2, 3), 7, 4, 0.5), "1 to height · width coefficients"),
        (lambda: CosineLevels((2, 3), 6, 4, 0.0), "above 0 and at most 1"),
        (lambda: CosineLevels((2, 3), 6, 4, 1), "above 0 and at most 1"),
    ],
    ids=[
        *("too many", "no bound", "no second moments", "huge", "not whole", "no cells"),
        *("no cells of counts", "no levels of counts", "no levels", "too many of levels", "no share", "whole share"),
    ],
)
def test_maps_that_make_no_sense_are_refused(build: Any, message: str) -> None:
    with pytest.raises(ReleaseError, match=message):
        build()


def test_without_noise_shares_above_levels_are_those_of_the_rows() -> None:
    """With all frequencies nothing is smoothed, and no image is dimmed where the bound is a white image's share."""
    feature = CosineLevels(SHAPE, math.prod(SHAPE), 3, 1.0)
    x, counts = images(300, 2), torch.tensor([100.0, 200.0], dtype=torch.float64)
    parts = torch.split(x, [100, 200])
    found = shares_above(torch.stack([feature(part).sum(dim=0) for part in parts]), counts, feature)
    for own, shares in zip(parts, found, strict=True):
        for level in range(3):
            assert torch.allclose(shares[level], (own > level / 3).double().mean(dim=0), atol=1e-4)


def test_images_with_much_above_levels_are_dimmed_and_no_others() -> None:
    feature = CosineLevels(SHAPE, 20, 4, 0.25)
    dark, gray, white = (torch.full((1, 54), value, dtype=torch.float64) for value in (0.2, 0.6, 1.0))
    norms = [float(feature(x).norm()) for x in (dark, gray, white)]  # above 1, 3 and 4 of the levels everywhere
    assert norms == pytest.approx([1, 1, 1], abs=1e-5)
    half = dark.clone()
    half[:, :27] = 0
    whole = CosineLevels(SHAPE, 54, 4, 0.25)(half)
    assert float(whole.norm()) == pytest.approx(math.sqrt(0.5), abs=1e-5)  # an eighth of all pairs, not dimmed


def test_shares_do_not_increase_with_the_level() -> None:
    """The same as scikit-learn's isotonic regression, pixel by pixel."""
    feature = CosineLevels(SHAPE, math.prod(SHAPE), 5, 1.0)
    noise = torch.randn(2, 5 * 54, generator=torch.Generator().manual_seed(8), dtype=torch.float64)
    counts = torch.tensor([10.0, 20.0], dtype=torch.float64)
    found = shares_above(noise, counts, feature)
    basis = cosine_basis(SHAPE, 54)
    for own, count, shares in zip(noise, counts, found, strict=True):
        rough = (own.view(5, 54) @ basis / (count * feature.scale)).numpy()
        for pixel in range(54):
            expected = isotonic_regression(rough[:, pixel], increasing=False)
            assert shares[:, pixel].numpy() == pytest.approx(np.clip(expected, 0, 1), abs=1e-9)


def test_a_pixel_is_above_a_level_as_often_as_was_released() -> None:
    shares = torch.tensor([[0.8, 0.5, 0.0], [0.5, 0.5, 0.0], [0.2, 0.0, 0.0]], dtype=torch.float64)
    places = (torch.arange(1_000, dtype=torch.float64)[:, None] + 0.5) / 1_000 * torch.ones(1, 3)
    x = brightness(places, shares)
    for level in range(3):
        assert torch.equal((x > level / 3).double().mean(dim=0), shares[level])
    assert float(x.min()) == 0 and float(x.max()) <= 1
    assert bool((x[:-1, 0] >= x[1:, 0]).all())  # the brightest first
    mean = float(x[:, 0].mean())  # linear between levels: a fifth and three tenths twice, in the middle of each step
    assert mean == pytest.approx((0.3 * 1 / 6 + 0.3 * 3 / 6 + 0.2 * 5 / 6), abs=1e-3)


def test_the_generator_is_above_levels_as_often_as_released_whatever_the_noise_hid() -> None:
    """20,000 images a class, of which one has no direction left; a share of 20,000 within six deviations, 2e-9."""
    network = GaussianImages(SHAPE, 2, 20, 2.4, levels=2)
    factors = torch.zeros(2, 20, 20, dtype=torch.float64)
    factors[0, :, :3] = torch.randn(20, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    shares = torch.stack([torch.linspace(0.9, 0.2, 54), torch.linspace(0.4, 0.0, 54)])
    network.start_from(Moments(torch.zeros(2, 20), factors), torch.stack([shares, shares]).double())
    x = network.draw(torch.tensor([0, 1]).repeat(20_000), torch.Generator().manual_seed(2)).double()
    assert float(x.min()) >= 0 and float(x.max()) <= 1
    for level in range(2):
        found = (x[::2] > level / 2).double().mean(dim=0).numpy()
        assert found == pytest.approx(shares[level].numpy(), abs=6 * 0.5 / math.sqrt(20_000))
    still = x[1::2]
    assert torch.equal(still, still[:1].expand_as(still))  # nothing is known to vary: one image, of medians
    assert torch.equal(still[0] > 0, shares[0] > 0.5)
    assert float(share_brighter(torch.zeros(1))) == 0.5


def test_pixels_that_go_together_in_the_moments_go_together_in_images() -> None:
    """One direction of the lowest frequency: all pixels rise and fall as one."""
    network = GaussianImages(SHAPE, 1, 20, 2.4, levels=1)
    factors = torch.zeros(1, 20, 20, dtype=torch.float64)
    factors[0, 0, 3] = 0.3
    network.start_from(Moments(torch.zeros(1, 20), factors), torch.full((1, 1, 54), 0.5).double())
    x = network.draw(torch.zeros(1_000, dtype=torch.int64), torch.Generator().manual_seed(2))
    assert torch.allclose(x, x[:, :1].expand_as(x), atol=1e-4)
    assert 0.4 < float((x[:, 0] > 0).float().mean()) < 0.6  # of 1,000: six deviations are 0.095


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"auxiliary": {"levels": 0}}, r"moments\.plan\.shares\.level_counts must be 0 while .*levels is 0"),
        (
            {"plan": {"shares": {"level_counts": 0.02, "levels": 0.0, "embedding": 0.93}}},
            r"moments\.plan\.shares\.levels must be between 0 and 1 while moments\.auxiliary\.levels is 4",
        ),
        ({"auxiliary": {"levels": 17}}, r"moments\.auxiliary\.levels must be from 0 to 16, got 17"),
    ],
    ids=["paid for nothing", "not paid for", "too many"],
)
def test_levels_are_paid_for_or_not_there(section: dict[str, Any], message: str) -> None:
    with pytest.raises(ParamsError, match=message):
        build(moments.Moments, section, "moments")


def test_without_levels_pixels_are_clipped_and_a_verifier_is_content(tmp_path: Path) -> None:
    shares = {"class_counts": 0.03, "norms": 0.02, "level_counts": 0.0, "levels": 0.0, "embedding": 0.95}
    section = {"plan": {"shares": shares}, "auxiliary": {"cells": 32, "levels": 0}}
    method = build(moments.Moments, {**section, "privatize": {"num_coefficients": 20}}, "moments")
    found = released(method)
    assert sorted(found) == ["class_counts", "embedding", "norms"] and len(method.notes(CONTEXT, found)) == 1
    auxiliary = {name: one for name, one in found.items() if name != "embedding"}
    saved, _ = fit(method, CONTEXT, auxiliary, found["embedding"], device="cpu")
    spec = saved.network.spec()
    assert spec.pop("levels") == 0
    assert list(GaussianImages.from_spec(spec).state_dict()) == ["means", "factors"]  # as bundles of before levels
    (tmp_path / "released").mkdir()
    for name, one in found.items():
        (tmp_path / f"released/{name}.safetensors").write_bytes(to_bytes(one))
    assert scales(Bundle(tmp_path)).endswith("as read off the released norms")


def test_the_closed_form_is_not_trained_and_its_loss_is_told() -> None:
    found = released()
    auxiliary = {name: one for name, one in found.items() if name != "embedding"}
    saved, losses = fit(METHOD, CONTEXT, auxiliary, found["embedding"], device="cpu")
    bound = found["embedding"].receipt.feature["bound"]
    gray = np.minimum(1, gray_images().x[:, 0] * math.sqrt(54) / bound).mean()
    # A twentieth is more than six deviations of the noise on means and numbers of records together.
    assert saved.network.means[:, 0].tolist() == pytest.approx([gray, gray], rel=0.05)  # type: ignore
    assert [iteration for iteration, _ in losses] == [0] and 0 < losses[0][1] < 0.05
    trained, curve = fit(
        dataclasses.replace(METHOD, train=TrainMoments(iterations=3)), CONTEXT, auxiliary, found["embedding"], "cpu"
    )
    start = METHOD.build_generator(CONTEXT, auxiliary)
    METHOD.start(CONTEXT, auxiliary, found["embedding"], start)
    same = [torch.equal(network.factors, start.factors) for network in (saved.network, trained.network)]  # type: ignore
    assert same == [True, False] and curve[0][0] == 1
