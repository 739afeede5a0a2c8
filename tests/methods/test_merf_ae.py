"""merf_ae takes a public encoder only: declared by its SHA-256, for images of this size, made from other images."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from likeness.core.errors import ArtifactError, PlanError
from likeness.data.schema.schema import Schema
from likeness.methods.base import Context
from likeness.methods.merf_ae.encoded_map import EncodedFourier
from likeness.methods.merf_ae.encoder import Encoder, save_encoder
from likeness.methods.merf_ae.method import MerfAe, Privatize


def context(name: str = "hidden digits", shape: tuple[int, int] = (3, 4)) -> Context:
    columns = {"y": {"kind": "categorical", "categories": [0, 1]}}
    schema = {"name": name, "source": "made up", "task": "classification", "label": "y", "columns": columns}
    return Context(Schema.from_dict({**schema, "image": {"shape": list(shape)}}, "s.yaml"), "add_remove_one", None, 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    weights = torch.randn(5, 13, generator=torch.Generator().manual_seed(1))
    save_encoder(tmp_path / "public.safetensors", None, [weights], (3, 4), 4.0, "letters, shapes")
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


def test_another_encoder_than_the_declared_public_one_is_refused(method: MerfAe, path: Path) -> None:
    for name in ("letters", "shapes"):
        with pytest.raises(PlanError, match=rf"was trained on '{name}', the images to be protected.*preprint's fault"):
            method.check(context(name))
    with pytest.raises(PlanError, match=r"is for images of shape \[3, 4\], but the schema says \[4, 4\]"):
        method.check(context(shape=(4, 4)))
    wrong = replace(method, privatize=replace(method.privatize, encoder_sha256="0" * 64))
    with pytest.raises(PlanError, match="another release at the full cost"):
        wrong.check(context())
    path.unlink()
    with pytest.raises(ArtifactError, match="is missing"):
        method.check(context())
