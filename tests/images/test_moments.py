"""moments: private bounds, levels that are paid for, the closed form, and what a verifier says of it."""

import dataclasses
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from toys import ledger_of_people, plan_with, schema_with
from verdicts import verify

from likeness import Synthesizer
from likeness.bundle.verdict import Wrong
from likeness.core.errors import ParamsError, PlanError, ReleaseError
from likeness.core.typed import build
from likeness.generators.base import Compute
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.ledger.reservation import Dataset
from likeness.methods import METHODS
from likeness.methods.base import Context, Method, class_weights, number_of_records
from likeness.methods.fit import fit
from likeness.privacy.adjacency import Adjacency
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released, from_bytes
from likeness.release.request import check_answer
from likeness.testing.methods import toy_context
from likeness.verify.noise import noise
from likeness.verify.receipts import query_again
from likeness_images.moments import method as moments
from likeness_images.moments.answers import median_norm
from likeness_images.moments.cosine_map import CosineNorms, cosine_basis
from likeness_images.moments.estimates import join_sums
from likeness_images.moments.gaussian_images import GaussianImages
from likeness_images.moments.settings import (
    CLUSTER_COUNTS,
    FIRST,
    LEVEL_COUNTS,
    LEVELS,
    NORMS,
    Auxiliary,
    PlanSettings,
    Privatize,
    Shares,
    TrainMoments,
)
from likeness_papers.pearl.characteristic_map import CharacteristicFunction
from likeness_papers.pearl.method import Pearl

SHAPE = (6, 9)
SCHEMA = schema_with(
    {"y": {"kind": "categorical", "categories": ["no", "yes"]}}, "y", name="toy images", image={"shape": list(SHAPE)}
)
CONTEXT = Context(SCHEMA, "add_remove_one", None, 0)
METHOD = moments.Moments(auxiliary=Auxiliary(cells=32), privatize=Privatize(num_coefficients=20))


def gray_images() -> Records:
    """3,700 images of one gray each, between 0.2 and 0.4."""
    grays = np.linspace(0.2, 0.4, 3_700)[:, None] * np.ones((1, 54))
    return Records(grays, np.arange(3_700) % 2)


def released(method: Method = METHOD, context: Context = CONTEXT, rows: Records | None = None) -> dict[str, Released]:
    """All releases of the method at ε = 2."""
    rows = rows or gray_images()
    plan = plan_with(method.shares(context), 2.0, method=method.name)
    ledger = ledger_of_people(Adjacency.ADD_REMOVE_ONE, 2.0)

    def answer(query: Query) -> Released:
        return from_bytes(Door(plan, ledger, Dataset("people", "digest"), lambda: [rows]).release(query), query.name)

    auxiliary = method.ask(context, answer)
    return {**auxiliary, "embedding": answer(method.embedding_query(context, auxiliary))}


def fitted(method: moments.Moments, found: dict[str, Released]) -> GaussianImages:
    auxiliary = {name: one for name, one in found.items() if name != "embedding"}
    generator = method.fit_generator(CONTEXT, auxiliary, found["embedding"], Compute()).generator
    assert isinstance(generator, GaussianImages)
    return generator


WITHOUT_LEVELS = moments.Moments(
    plan=PlanSettings(Shares(class_counts=0.03, norms=0.02, level_counts=0.0, levels=0.0, embedding=0.95)),
    auxiliary=Auxiliary(cells=32, levels=0),
    train=TrainMoments(texture=0.0),
    privatize=Privatize(num_coefficients=20),
)


@pytest.mark.long
@pytest.mark.parametrize(("method", "least"), [(METHOD, 0.4), (WITHOUT_LEVELS, 0.5)], ids=["levels", "none"])
def test_directions_within_the_noise_are_kept_where_brightness_is_released_apart(
    method: moments.Moments, least: float
) -> None:
    """Of 50 eigenvalues of noise two to three are expected between .8 of the edge and the edge, in either class.

    Both classes together have five with a deviation of .8: none with probability below 1e-6.
    """
    levels = method is METHOD
    method = dataclasses.replace(method, privatize=Privatize(num_coefficients=50))
    found = released(method)
    generator = fitted(method, found)
    counts = class_weights(found["class_counts"]) * number_of_records(CONTEXT, found["class_counts"])
    edges = found["embedding"].noise_std * math.sqrt(2 * 50 / (1 - method.privatize.first_share)) / counts
    strengths = (generator.factors.astype(np.float64) ** 2).sum(axis=1) / edges[:, None]
    kept = strengths[strengths > 0].tolist()
    assert all(strength >= least * (1 - 1e-5) for strength in kept)
    assert any(strength < 0.5 for strength in kept) is levels


@pytest.mark.long
def test_the_bound_is_the_noisy_median_and_a_verifier_computes_it_again() -> None:
    found = released()
    norms = CosineNorms(SHAPE, 20, 32)
    bound = median_norm(norms, found[NORMS])
    # Cells are 1/32 of the whole scale, and 1,850 records lie on either side of the true median: noise moves a cell.
    assert bound / math.sqrt(54) == pytest.approx(0.3, abs=2 / 32)
    assert found["embedding"].receipt.feature["bound"] == bound
    notes = METHOD.notes(CONTEXT, found)
    assert f"norm {bound:.4g}, about the median, read off the noisy `norms`" in notes[0]
    assert f"more than {found[LEVELS].receipt.feature['share']:.4g} of their pixels above levels" in notes[1]
    share = found[LEVELS].receipt.feature["share"]
    assert share == pytest.approx(0.5, abs=2 / 32)  # above 0 all, above a quarter most: two levels of four
    check_again(METHOD, CONTEXT, found)
    for name, changed in (
        *(("embedding", {"bound": bound * 1.01}), ("embedding", {"shape": [9, 6]})),
        *((LEVELS, {"share": share * 1.01}), (LEVELS, {"shape": [9, 6]}), (LEVEL_COUNTS, {"levels": 3})),
        (NORMS, {"terms": "each_record"}),
    ):
        with pytest.raises(ReleaseError, match=f"{name}: answers another question"):
            check_again(METHOD, CONTEXT, found, name, **changed)


FROM_GRAY = dataclasses.replace(METHOD, auxiliary=Auxiliary(cells=32, center="gray"), train=TrainMoments(mirror=True))


@pytest.mark.long
def test_from_gray_the_bounds_are_shorter_and_a_verifier_computes_them_again() -> None:
    """Grays of .2 to .4 are .2 from .5: the noise on second moments is (.2 / .3)² of what it is from black.

    The mean of drawn pixels is .337 with a deviation of .003: false alarms below 1e-9.
    """
    found = released(FROM_GRAY)
    bound, share = found["embedding"].receipt.feature["bound"], found[LEVELS].receipt.feature["share"]
    assert bound / math.sqrt(54) == pytest.approx(0.2, abs=2 / 64)
    assert share == pytest.approx((0 + 1 / 16 + 4 / 16 + 1 / 16) / 4, abs=2 / 32)
    check_again(FROM_GRAY, CONTEXT, found)
    for name in (NORMS, LEVEL_COUNTS, LEVELS, "embedding"):
        assert found[name].receipt.feature["gray"] is True
        with pytest.raises(ReleaseError, match=f"{name}: answers another question"):
            check_again(FROM_GRAY, CONTEXT, found, name, gray=False)
    copula = fitted(FROM_GRAY, found)
    labels = np.repeat([0, 1], 200)
    assert copula.draw(labels, np.random.default_rng(0)).mean() == pytest.approx(0.3, abs=0.06)
    sides = copula.shares.reshape(2, 4, *SHAPE)
    assert np.abs(sides - sides[..., ::-1]).max() < 1e-4


def test_without_levels_means_from_gray_are_those_of_images() -> None:
    method = dataclasses.replace(WITHOUT_LEVELS, auxiliary=Auxiliary(cells=32, levels=0, center="gray"))
    found = released(method)
    copula = fitted(method, found)
    assert copula.draw(np.zeros(200, dtype=np.int64), np.random.default_rng(0)).mean() == pytest.approx(0.3, abs=0.05)


SPLIT = dataclasses.replace(METHOD, auxiliary=Auxiliary(cells=32, splits=2))


def two_shapes(rows: int = 6_000) -> Records:
    """Class 0: three in ten are bright on the left, the others on the right. Class 1: all are gray alike."""
    labels, left = np.arange(rows) % 2, np.arange(rows) % 20 < 6
    bright = (np.arange(54) % 9 < 4) == left[:, None]
    noise = 0.05 * np.random.default_rng(0).random((rows, 54))
    return Records(np.where(labels[:, None] == 0, 0.8 * bright, 0.4) + noise, labels)


@pytest.mark.long
def test_a_class_of_two_shapes_splits_and_a_verifier_computes_it_again() -> None:
    """At ε = 2 the distance of the shapes is over ten times the edge of the noise in a cluster.

    Sides differ by .89 with a deviation of .024, and shares have one of .004: false alarms below 1e-9.
    """
    found = released(SPLIT, rows=two_shapes())
    copula = fitted(SPLIT, found)
    assert (copula.weights > 0).tolist() == [[True, True, False, False], [True, False, False, False]]
    assert sorted(copula.weights[0, :2].tolist()) == pytest.approx([0.3, 0.7], abs=0.05)
    assert f"split into 3 clusters in all, by directions of the noisy `{FIRST}`" in SPLIT.notes(CONTEXT, found)[-1]
    check_again(SPLIT, CONTEXT, found)
    clusters = found["embedding"].receipt.feature["clusters"]
    other = {**clusters, "centers": [center + 1.0 for center in clusters["centers"]]}
    for name in (CLUSTER_COUNTS, LEVELS, "embedding"):
        assert found[name].receipt.feature["clusters"] == clusters
        with pytest.raises(ReleaseError, match=f"{name}: answers another question"):
            check_again(SPLIT, CONTEXT, found, name, clusters=other)
    receipt = found["embedding"].receipt
    assert query_again(receipt).contributions.spec()["clusters"] == clusters
    with pytest.raises(Wrong, match="embedding: has other groups than its clusters"):
        query_again(dataclasses.replace(receipt, num_groups=4))
    no_cells = {**receipt.feature, "clusters": found[FIRST].receipt.feature | {"map": "cosine_moments"}}
    del no_cells["clusters"]["terms"]
    with pytest.raises(Wrong, match="embedding: its clusters are no map of cells"):
        query_again(dataclasses.replace(receipt, feature=no_cells))
    # Each cluster has the brightness of its shape: above half of white, on which side?
    (left, right) = (copula.shares[:2, 2].reshape(2, 6, 9)[:, 1:5, side].mean(axis=(1, 2)) for side in ([1, 2], [6, 7]))
    assert (np.abs(left - right) > 0.7).all() and (left[0] > right[0]) == (right[1] > left[1])


@pytest.mark.long
@pytest.mark.parametrize("splits", [0, 2])
def test_images_are_measured_from_the_released_mean_of_their_class(splits: int) -> None:
    """Both shapes of class 0 are far from their mean, images of class 1 are not: the bound is between them."""
    method = dataclasses.replace(METHOD, auxiliary=Auxiliary(cells=32, splits=splits, center="classes"))
    rows = two_shapes()
    found = released(method, rows=rows)
    auxiliary = {name: one for name, one in found.items() if name != "embedding"}
    feature = found["embedding"].receipt.feature
    means = np.stack([rows.x[rows.labels == label].mean(axis=0) for label in (0, 1)]) @ cosine_basis(SHAPE, 20).T
    # Levels know brightness to an eighth: of 54 pixels that is .9; the noise on a mean is about .1.
    centers = np.array(feature["centers"]).reshape(2, 20) / 64
    assert np.linalg.norm(centers - means, axis=1).max() < 1.2 < np.linalg.norm(means, axis=1).min()
    assert found[NORMS].receipt.feature["centers"] == feature["centers"]
    from_black = np.linalg.norm(rows.x @ cosine_basis(SHAPE, 20).T, axis=1)
    assert feature["bound"] < 0.8 * np.median(from_black)
    check_again(method, CONTEXT, found)
    other = [entry + 1 for entry in feature["centers"]]
    for name in (NORMS, "embedding", *([FIRST] if splits else [])):
        assert query_again(found[name].receipt).spec() == found[name].receipt.feature
        with pytest.raises(ReleaseError, match=f"{name}: answers another question"):
            check_again(method, CONTEXT, found, name, centers=other)
    assert "of an image from the mean of its class are clipped" in method.notes(CONTEXT, auxiliary)[0]
    trained = method.fit_generator(CONTEXT, auxiliary, found["embedding"], Compute())
    copula = trained.generator
    assert isinstance(copula, GaussianImages) and 0 < trained.losses[0][1] < 0.5
    labels = np.repeat([0, 1], 500)
    drawn = copula.draw(labels, np.random.default_rng(0))
    assert drawn[:500].mean() == pytest.approx(rows.x[::2].mean(), abs=1 / 8)  # half of a level
    if splits:
        clusters = feature["contributions"]["clusters"]  # its first plane passes through the mean
        through = np.array(clusters["directions"][:20]) @ means[0] / math.sqrt(54)
        # Clipping shortens the rarer shape, so the plane lies beyond the mean. From black it is at .37 of it.
        assert 0.7 < clusters["centers"][0] / through < 1.8 and abs(through) > 15
        assert sorted(copula.weights[0, :2].tolist()) == pytest.approx([0.3, 0.7], abs=0.05)
        left = drawn[:500].reshape(500, *SHAPE)[:, :, :4].mean(axis=(1, 2)) > 0.4
        assert left.mean() == pytest.approx(0.3, abs=0.1)  # six deviations of 500 coins


@pytest.mark.long
@pytest.mark.parametrize("splits", [0, 2])
def test_centers_of_classes_cost_a_tenth_of_the_levels_where_classes_split(splits: int) -> None:
    black, classes = (
        dataclasses.replace(METHOD, auxiliary=Auxiliary(cells=32, splits=splits, center=center))
        for center in ("black", "classes")
    )
    plain = {one.query: one.share for one in black.shares(CONTEXT)}
    own = {one.query: one.share for one in classes.shares(CONTEXT)}
    assert own.pop("levels_first", 0.0) == pytest.approx(0.1 * plain[LEVELS] if splits else 0)
    assert own.pop(LEVELS) == pytest.approx((0.9 if splits else 1) * plain.pop(LEVELS)) and own == plain
    foreseen = {query.name: query for query in classes.planned_queries(CONTEXT)}
    found = released(classes, rows=two_shapes())
    assert set(found) == set(foreseen)
    for name, one in found.items():
        assert (foreseen[name].dimension, foreseen[name].num_groups) == (one.receipt.dimension, one.receipt.num_groups)


@pytest.mark.long
def test_few_records_split_no_class_and_the_first_look_is_not_lost() -> None:
    """All of the moments' share but that of the counts is in the estimate: the noise is as if it were one release."""
    few = two_shapes()[:40]
    found = released(SPLIT, rows=few)
    auxiliary = {name: one for name, one in found.items() if name != "embedding"}
    assert not any(found["embedding"].receipt.feature["clusters"]["directions"])
    looked, second = found[FIRST], found["embedding"]
    sums, deviations = join_sums(second.values, second.noise_std, [1, 1], looked.values, looked.noise_std)
    alone = plan_with(METHOD.shares(CONTEXT), 2.0, method="moments").query("embedding").noise_multiplier
    assert deviations[[0, 4]] == pytest.approx(alone / math.sqrt(0.97), rel=1e-6)
    assert not sums[[1, 2, 3, 5, 6, 7]].any()
    assert SPLIT.fit_generator(CONTEXT, auxiliary, second, Compute()).losses[0][0] == 0


def check_again(method: Method, context: Context, found: dict[str, Released], other: str = "", **changed: Any) -> None:
    """Every query, made again from the values in ``found``, is the one answered; ``other`` has a ``changed`` map."""
    if other:
        receipt = found[other].receipt
        receipt = dataclasses.replace(receipt, feature={**receipt.feature, **changed})
        found = {**found, other: dataclasses.replace(found[other], receipt=receipt)}
    auxiliary = {name: one for name, one in found.items() if name != "embedding"}
    for query in (*method.auxiliary_queries(context, auxiliary), method.embedding_query(context, auxiliary)):
        check_answer(query, "", found[query.name], query.name)


def test_a_verifier_computes_the_scale_of_pearl_again() -> None:
    schema = schema_with({name: {"kind": "numeric", "lower": 0, "upper": 1} for name in "ab"})  # fmt: skip
    shares = {"class_counts": 0.05, "mixture": 0.0, "mean_pairwise_distance": 0.05, "embedding": 0.9}
    pearl = build(Pearl, {"plan": {"shares": shares}, "privatize": {"num_frequencies": 20}}, "pearl")
    rows = Records(np.random.default_rng(0).random((2_000, 2)), np.zeros(2_000, dtype=np.int64))
    context = Context(schema, "add_remove_one", None, 0)
    found = released(pearl, context, rows)
    check_again(pearl, context, found)
    scale = found["embedding"].receipt.feature["scale"]
    with pytest.raises(ReleaseError, match="embedding: answers another question"):
        check_again(pearl, context, found, "embedding", **CharacteristicFunction(20, 2, scale * 1.01, 0).spec())


def test_a_verifier_sees_noise_that_is_smaller_than_claimed() -> None:
    """False alarm of the right release: 1e-9, twice (its low bits, its scale)."""
    found = released()

    def told(claimed: float) -> str:
        one = found["embedding"]
        receipt = dataclasses.replace(one.receipt, noise_scale=claimed * one.receipt.noise_scale)
        bundle: Any = SimpleNamespace(released_files={"embedding": dataclasses.replace(one, receipt=receipt)})
        return noise(bundle)

    assert told(1.0) == "as the receipts state, where a test exists: embedding (bits), embedding (scale, from below)"
    with pytest.raises(Wrong, match="the noise is smaller than the receipt claims"):
        told(1.5)


@pytest.mark.long
@pytest.mark.parametrize("center", ["gray", "classes"])
def test_a_bundle_of_images_in_color_is_verified_and_classes_have_intervals(tmp_path: Path, center: str) -> None:
    """Halves of 2,000: the noise on a share has a deviation of .004.

    The variance that splits a class is 1.7 times the least in "no" and a third of it in "yes". Both lie more than six
    deviations of the noise from 1.
    """
    Ledger.create(locate())
    columns = {"y": {"kind": "categorical", "categories": ["no", "yes"]}}
    content = {"name": "toy colors", "source": "made up", "task": "classification", "label": "y", "columns": columns}
    pixels = [f"pixel_{place}" for place in range(1, 49)]
    rows = pd.DataFrame(np.random.default_rng(0).integers(100, 151, (2_000, 48)), columns=pixels)
    rows.iloc[::4], rows.iloc[2::4] = 0, 255  # the class "no" is black or white
    rows["y"] = ["no", "yes"] * 1_000
    settings = {"auxiliary": {"cells": 16, "splits": 1, "center": center}, "privatize": {"num_coefficients": 10}}
    schema = {**content, "image": {"shape": [4, 4, 3]}}
    model = Synthesizer(schema=schema, population="p", method="moments", epsilon=2.0, settings=settings, device="cpu")
    model.fit(rows).bundle(tmp_path / "colors", n=50)
    shares = model.estimate("y")
    assert (shares["low"] < shares["high"]).all()
    assert shares["estimate"].tolist() == pytest.approx([0.5, 0.5], abs=0.03)
    assert shares["noise_error"].between(0.003, 0.006).all()
    assert {check.passed for check in verify(tmp_path / "colors")} == {True, None}  # None: no training again
    statement = (tmp_path / "colors/PRIVACY_STATEMENT.md").read_text()
    said = [f"about the median, read off the noisy `{name}`" for name in (NORMS, LEVEL_COUNTS)]
    assert all(words in statement for words in said) and "split into 3 clusters in all" in statement
    # Of as many values, and another image: the maps of the receipts are others.
    path = tmp_path / "colors/schema.yaml"
    path.write_text(path.read_text().replace("[4, 4, 3]", "[2, 8, 3]"))
    assert {"plan", "generator"} <= {check.name for check in verify(tmp_path / "colors") if check.passed is False}


def test_what_levels_depend_on_has_to_be_released_first() -> None:
    """A forecast takes a stand-in; a price does not, or it would pass for a release that is on record."""
    queries = METHOD.auxiliary_queries(CONTEXT, {})
    assert [next(queries).name for _ in range(3)] == ["class_counts", NORMS, LEVEL_COUNTS]  # type: ignore
    with pytest.raises(KeyError, match=LEVEL_COUNTS):
        next(queries)  # type: ignore
    foreseen = {query.name: query for query in METHOD.planned_queries(CONTEXT)}
    for name, one in released().items():
        query = foreseen[name]
        assert (query.dimension, query.num_groups) == (one.receipt.dimension, one.receipt.num_groups)
        squared = query.sensitivity_squared(Adjacency.ADD_REMOVE_ONE)
        assert math.sqrt(squared) * 2.0**-query.lattice_bits == pytest.approx(one.receipt.sensitivity, rel=1e-12)


@pytest.mark.long
def test_cells_of_noise_alone_do_not_count() -> None:
    """Black images in the first of 32 cells, and noise in the others, which adds up to more than they are."""
    norms, hidden = CosineNorms(SHAPE, 20, 32), released()[NORMS]
    scale = hidden.noise_std * 2.0**hidden.receipt.lattice_bits
    noise = np.linspace(-3, 1.9, 31) * scale
    counts = np.concatenate([[8 * scale], noise]).astype(np.int64)[None]
    assert median_norm(norms, dataclasses.replace(hidden, lattice=counts)) == pytest.approx(norms.cell_width)
    lost = dataclasses.replace(hidden, lattice=-np.abs(hidden.lattice))
    assert median_norm(norms, lost) == pytest.approx(math.sqrt(54))  # nothing left: nothing is clipped


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"auxiliary": {"levels": 0}}, r"moments\.plan\.shares\.level_counts must be 0 while .*levels is 0"),
        (
            {"plan": {"shares": {"level_counts": 0.02, "levels": 0.0, "embedding": 0.93}}},
            r"moments\.plan\.shares\.levels must be between 0 and 1 while moments\.auxiliary\.levels is 4",
        ),
        (
            {"auxiliary": {"levels": 0}, "plan": {"shares": {"level_counts": 0.0, "levels": 0.0, "embedding": 0.95}}},
            r"moments\.train\.texture must be 0 while moments\.auxiliary\.levels is 0",
        ),
        ({"train": {"texture": -0.5}}, r"moments\.train\.texture must be from 0 to 100, got -0.5"),
        (
            {
                "auxiliary": {"levels": 0, "center": "classes"},
                "plan": {"shares": {"level_counts": 0.0, "levels": 0.0, "embedding": 0.95}},
                "train": {"texture": 0.0},
            },
            r"moments\.auxiliary\.center must be black or gray while levels is 0, got 'classes'",
        ),
        (
            {"auxiliary": {"splits": 1}, "train": {"mirror": True}},
            r"moments\.train\.mirror must be false while moments\.auxiliary\.splits is above 0",
        ),
        ({"auxiliary": {"levels": 17}}, r"moments\.auxiliary\.levels must be from 0 to 16, got 17"),
    ],
)
def test_what_is_asked_is_paid_for_or_not_there(section: dict[str, Any], message: str) -> None:
    with pytest.raises(ParamsError, match=message):
        build(moments.Moments, section, "moments")


def test_without_levels_pixels_are_clipped_and_a_verifier_is_content() -> None:
    method = WITHOUT_LEVELS
    found = released(method)
    assert sorted(found) == ["class_counts", "embedding", "norms"] and len(method.notes(CONTEXT, found)) == 1
    auxiliary = {name: one for name, one in found.items() if name != "embedding"}
    saved, _ = fit(method, CONTEXT, auxiliary, found["embedding"])
    spec = saved.network.spec()
    assert spec.pop("levels") == 0
    assert list(GaussianImages.from_spec(spec).arrays()) == ["means", "factors"]  # as without levels
    check_again(method, CONTEXT, found)


@pytest.mark.long
def test_the_closed_form_is_not_trained_and_its_loss_is_told() -> None:
    found = released()
    auxiliary = {name: one for name, one in found.items() if name != "embedding"}
    saved, losses = fit(METHOD, CONTEXT, auxiliary, found["embedding"])
    bound = found["embedding"].receipt.feature["bound"]
    gray = np.minimum(1, gray_images().x[:, 0] * math.sqrt(54) / bound).mean()
    # A twentieth is more than six deviations of the noise on means and numbers of records together.
    assert saved.network.means[:, 0].tolist() == pytest.approx([gray, gray], rel=0.05)  # type: ignore
    assert [iteration for iteration, _ in losses] == [0] and 0 < losses[0][1] < 0.05


def test_what_cannot_be_released_is_refused_before_anything_is_spent() -> None:
    many = build(METHODS["moments"], {"privatize": {"max_coordinates": 500}}, "moments")
    with pytest.raises(PlanError, match=r"would release 544 coordinates .* Lower moments.privatize.num_coefficients"):
        many.check(toy_context(Adjacency.ADD_REMOVE_ONE, True))
    few = {"num_coefficients": 2, "max_coordinates": 500}
    many = build(METHODS["moments"], {"auxiliary": {"levels": 16}, "privatize": few}, "moments")
    with pytest.raises(
        PlanError, match=r"would release 512 shares of images above levels.* Lower moments.auxiliary.levels"
    ):
        many.check(toy_context(Adjacency.ADD_REMOVE_ONE, True))
    with pytest.raises(PlanError, match="moments needs images, and the schema has no image"):
        METHODS["moments"]().check(toy_context(Adjacency.ADD_REMOVE_ONE, False))
