"""DP-MERF on codes of images, with an encoder that no private row has touched (Harder, Adamczewski and Park 2020)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from likeness.config.params import MOST_PATH
from likeness.config.typed import Section, require, setting
from likeness.core.errors import ParamsError, PlanError
from likeness.methods.base import EMBEDDING, Context, PublicFile
from likeness.methods.merf_ae.encoded_map import ENCODER, RANDOM, EncodedFourier
from likeness.methods.network_method import TwoQueryMethod
from likeness.methods.settings import (
    FREE,
    IMAGE_TRAINING,
    MAP_SEED,
    MOST_FEATURES,
    NetworkTraining,
    TwoQueryPlan,
    TwoQueryShares,
)
from likeness.release.query import Query
from likeness.release.released import Released

if TYPE_CHECKING:
    from likeness.methods.merf_ae.encoder import Encoder

_WHERE = "merf_ae.privatize"
_REFUSED = {
    "private": "an encoder trained on the private rows moves all their codes when one row changes, and the embedding's "
    "noise covers one row only. No (ε, δ) could be stated (the preprint's fault)",
    "dp_sgd": "the noise of DP-SGD (Opacus) comes from torch, with seeds and floating-point errors. Here noise comes "
    "only from the discrete sampler behind the door",
}
"""Encoders that are not public, and why they are refused."""


@dataclass(frozen=True)
class Privatize(Section):
    """Section ``merf_ae.privatize``."""

    everyday: ClassVar = ("encoder", "encoder_sha256", "num_frequencies", "lengthscale")
    encoder: str = setting(
        RANDOM,
        "random | a file of scripts/train_encoder.py: OTHER, public images; never private",
        longest=MOST_PATH,
    )
    encoder_sha256: str | None = setting(None, "of that file, as the script printed it; another file, another release")
    channels: int = setting(8, "of a random encoder's 3 x 3 convolution", least=1, most=MOST_FEATURES)
    code: int = setting(128, "numbers in a random encoder's code", least=1, most=MOST_FEATURES)
    num_frequencies: int = setting(1000, "pairs of cosine and sine", least=1, most=MOST_FEATURES)
    lengthscale: float = setting(
        1.0,
        "in units of the distance between codes of public images (random: of uniform noise)",
        above=0,
        below=math.inf,
        rule="greater than 0",
    )

    def __post_init__(self) -> None:
        """Check ranges, and that the encoder is public."""
        super().__post_init__()
        if self.encoder in _REFUSED:
            raise ParamsError(
                f"{_WHERE}.encoder: {self.encoder} is refused: {_REFUSED[self.encoder]}. Use random, or a file that "
                "scripts/train_encoder.py made from PUBLIC images."
            )
        file = self.encoder.lower().endswith(".safetensors")
        require(file or self.encoder == RANDOM, f"{_WHERE}.encoder", self.encoder, "random or a .safetensors file")
        given = self.encoder_sha256 or ""
        key, rule = f"{_WHERE}.encoder_sha256", "the 64 hexadecimal digits that the script printed"
        if file:
            require(len(given) == 64 and set(given) <= set("0123456789abcdef"), key, self.encoder_sha256, rule)
        else:
            require(self.encoder_sha256 is None, key, self.encoder_sha256, "null while encoder is random")


@dataclass(frozen=True)
class MerfAe(TwoQueryMethod):
    """Fourier features of public codes by class.

    The generator makes pixels, and the encoder sees those too, so no decoder is needed. A decoder would have to be
    private, or would make the public images.
    """

    name: ClassVar[str] = "merf_ae"
    maps: ClassVar = (EncodedFourier,)
    public_names: ClassVar = (ENCODER,)
    plan: TwoQueryPlan = setting(TwoQueryPlan(TwoQueryShares(0.03, 0.97)))
    privatize: Privatize = setting(Privatize())
    train: NetworkTraining = setting(NetworkTraining(iterations=1500, **IMAGE_TRAINING), FREE)

    def check(self, context: Context) -> None:
        """Images only, and an encoder for their size that was not made from them."""
        if context.schema.image is None:
            raise PlanError("merf_ae encodes images, and the schema has no image. Use merf, which takes tables.")
        super().check(context)

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """The map of images by class. Encoder and length scale are public; no row is needed to choose them.

        Raises:
            PlanError: the encoder is not the declared one, is for other images, or was made from these images.
        """
        settings, image = self.privatize, context.schema.image
        assert image is not None  # check refuses others
        encoder = self._encoder(image)
        if settings.encoder != RANDOM:
            self._declared(encoder.sha256, encoder.trained_on, encoder.shape, context)
        random = settings.encoder == RANDOM
        encoded: dict[str, Any] = {
            "shape": image,
            "code": encoder.width,
            "reach": encoder.reach,
            "encoder": RANDOM if random else encoder.sha256,
            "channels": settings.channels if random else 0,
            "encoder_seed": MAP_SEED,
            "network": encoder,
        }
        lengthscale = settings.lengthscale * encoder.unit
        feature = EncodedFourier(settings.num_frequencies, lengthscale, MAP_SEED, **encoded)
        return Query(EMBEDDING, "privatize", feature, num_groups=context.layout.num_classes)

    def _encoder(self, image: tuple[int, ...]) -> "Encoder":
        """The encoder of the settings. A file is not compared with them."""
        from likeness.methods.merf_ae.encoder import Encoder

        settings = self.privatize
        if settings.encoder == RANDOM:
            return Encoder.random(image, settings.channels, settings.code, MAP_SEED)
        return Encoder.load(Path(settings.encoder))

    def _declared(self, sha256: str, trained_on: str, shape: tuple[int, ...], context: Context) -> None:
        path = self.privatize.encoder
        if sha256 != self.privatize.encoder_sha256:
            raise PlanError(
                f"{path} has SHA-256 {sha256}, but {_WHERE}.encoder_sha256 is {self.privatize.encoder_sha256}. Restore "
                "the declared file, or declare the new one, which is another release at the full cost."
            )
        if context.schema.name in (name.strip() for name in trained_on.split(",")):
            raise PlanError(
                f"{path} was trained on '{context.schema.name}', the images to be protected: {_REFUSED['private']}. "
                "Train it on other, public images, or use encoder: random."
            )
        if shape != context.schema.image:
            raise PlanError(
                f"{path} is for images of shape {list(shape)}, but the schema says "
                f"{list(context.schema.image or ())}. Make one with the script's --shape."
            )

    def at(self, root: Path) -> Self:
        """The encoder's file below a project's folder."""
        encoder = self.privatize.encoder
        place = RANDOM if encoder == RANDOM else str(root / encoder)
        return replace(self, privatize=replace(self.privatize, encoder=place))

    def public_files(self) -> dict[str, PublicFile]:
        """The encoder, where it is a file: it belongs to the bundle."""
        if self.privatize.encoder == RANDOM:
            return {}
        return {ENCODER: PublicFile(Path(self.privatize.encoder), str(self.privatize.encoder_sha256))}
