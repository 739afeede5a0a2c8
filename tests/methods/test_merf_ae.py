"""merf_ae takes a public encoder only: declared by its SHA-256, for images of this size, made from other images."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from likeness.core.errors import ArtifactError, PlanError
from likeness.data.schema.schema import Schema
from likeness.methods.base import Context
from likeness.methods.merf_ae.deep import Step, load_encoder, save_steps
from likeness.methods.merf_ae.encoded_map import EncodedFourier, EncodedMoments
from likeness.methods.merf_ae.encoder import Encoder, save_encoder
from likeness.methods.merf_ae.method import MerfAe, Privatize


def context(name: str = "hidden digits", shape: tuple[int, int] = (3, 4)) -> Context:
    columns = {"y": {"kind": "categorical", "categories": [0, 1]}}
    schema = {"name": name, "source": "made up", "task": "classification", "label": "y", "columns": columns}
    return Context(Schema.from_dict({**schema, "image": {"shape": list(shape)}}, "s.yaml"), "add_remove_one", None, 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    weights = torch.randn(5, 13, generator=torch.Generator().manual_seed(1))
    save_encoder(tmp_path / "public.safetensors", None, [weights], (3, 4), 4.0, "shapes")
    return tmp_path / "public.safetensors"


@pytest.fixture
def method(path: Path) -> MerfAe:
    sha256 = Encoder.load(path).sha256
    return MerfAe(privatize=Privatize(encoder=str(path), encoder_sha256=sha256, num_frequencies=10, lengthscale=0.5))


def test_the_release_names_the_encoder_and_not_its_place(method: MerfAe, path: Path) -> None:
    method.check(context())
    feature = method.embedding_query(context(), {}).feature
    assert isinstance(feature, EncodedFourier)
    assert feature.encoder == method.privatize.encoder_sha256 and str(path) not in str(feature.spec())
    assert feature.lengthscale == 2.0  # half of the file's unit
    files = {"encoder.safetensors": (path, method.privatize.encoder_sha256)}
    assert method.public_files() == files and MerfAe().public_files() == {}
    MerfAe().check(context())


def test_moments_are_clipped_in_units_of_the_file_and_may_not_be_too_many(method: MerfAe, path: Path) -> None:
    some = replace(method.privatize, features="moments", bound=0.5, first_share=0.2)
    feature = replace(method, privatize=some).embedding_query(context(), {}).feature
    assert isinstance(feature, EncodedMoments) and (feature.bound, feature.first_share) == (2.0, 0.2)
    assert feature.files == {"encoder.safetensors": method.privatize.encoder_sha256}
    many = replace(method, privatize=replace(some, max_coordinates=59))
    with pytest.raises(
        PlanError, match=r"would release 60 coordinates, more than .* Use an encoder with shorter codes"
    ):
        many.check(context())


def test_another_encoder_than_the_declared_public_one_is_refused(method: MerfAe, path: Path) -> None:
    with pytest.raises(PlanError, match=r"was trained on 'shapes', the images to be protected.*preprint's fault"):
        method.check(context("shapes"))
    with pytest.raises(PlanError, match=r"is for images of shape \[3, 4\], but the schema says \[4, 4\]"):
        method.check(context(shape=(4, 4)))
    wrong = replace(method, privatize=replace(method.privatize, encoder_sha256="0" * 64))
    with pytest.raises(PlanError, match="another release at the full cost"):
        wrong.check(context())
    path.unlink()
    with pytest.raises(ArtifactError, match="is missing"):
        method.check(context())


@pytest.fixture
def deep(tmp_path: Path) -> MerfAe:
    """A small deep encoder: a convolution and a projection."""
    steps = (Step("conv", (0,), ("w",), {"padding": [1, 1]}, (0.0, 1024.0)), Step("view", (1,), (), {"shape": [-1]}),
             Step("linear", (2,), ("p", "b")))  # fmt: skip
    draws = torch.Generator().manual_seed(1)
    weights = {"w": torch.randn(4, 1, 3, 3, generator=draws), "p": torch.randn(5, 48, generator=draws),
               "b": torch.zeros(5)}  # fmt: skip
    save_steps(tmp_path / "deep.safetensors", steps, weights, (3, 4), 3.0, "letters, shapes")
    sha256 = load_encoder(tmp_path / "deep.safetensors").sha256
    return MerfAe(privatize=Privatize(encoder=str(tmp_path / "deep.safetensors"), encoder_sha256=sha256, lengthscale=2))


@pytest.mark.parametrize(("features", "kind"), [("fourier", EncodedFourier), ("moments", EncodedMoments)])
def test_a_deep_encoder_is_declared_like_any_other(deep: MerfAe, features: str, kind: type) -> None:
    method = replace(deep, privatize=replace(deep.privatize, features=features, bound=0.5))
    method.check(context())
    feature = method.embedding_query(context(), {}).feature
    assert isinstance(feature, kind) and isinstance(feature, EncodedFourier | EncodedMoments)
    assert (feature.encoder, feature.code, feature.reach) == (deep.privatize.encoder_sha256, 5, 10)
    assert getattr(feature, "lengthscale", 6.0) == 6.0 and getattr(feature, "bound", 1.5) == 1.5
    for name in ("letters", "shapes"):
        with pytest.raises(PlanError, match=f"was trained on '{name}', the images to be protected"):
            method.check(context(name))
    with pytest.raises(PlanError, match=r"is for images of shape \[3, 4\].*Make one with the script's --shape"):
        method.check(context(shape=(4, 4)))
    with pytest.raises(PlanError, match="another release at the full cost"):
        replace(method, privatize=replace(method.privatize, encoder_sha256="0" * 64)).check(context())


def test_the_cost_of_a_deep_encoder_is_foreseen(deep: MerfAe, method: MerfAe) -> None:
    one, other, coordinates = context(), replace(deep, train=replace(deep.train, batch_size=7)), {"embedding": 20}
    plain = replace(other, privatize=method.privatize)
    assert other.multiplications(one, coordinates) - plain.multiplications(one, coordinates) == pytest.approx(
        7 * (0.25 * (48 * 9 + 48 * 5) + 40 * (48 + 48 + 5))
    )
    assert other.training_bytes(one) == 6 * 7 * (48 + 48 + 5) and plain.training_bytes(one) == 0
    (hint,) = deep.hints(one.schema)
    assert hint.startswith("merf_ae: the encoder takes about ") and hint.endswith(" of one core for 1,000 images")
    assert method.hints(one.schema) == [] == MerfAe().hints(one.schema)
    Path(deep.privatize.encoder).unlink()
    assert deep.hints(one.schema) == []  # the check refuses it
