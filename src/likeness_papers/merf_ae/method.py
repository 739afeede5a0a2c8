"""DP-MERF on codes of images, with an encoder that no private row has touched (Harder, Adamczewski and Park 2020)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from likeness.core.errors import PlanError
from likeness.core.typed import Section, setting
from likeness.methods.base import EMBEDDING, Context
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
from likeness_papers.merf_ae.encoded_map import EncodedFourier
from likeness_papers.networks.network_method import TwoQueryMethod


@dataclass(frozen=True)
class Privatize(Section):
    """Section ``merf_ae.privatize``."""

    everyday: ClassVar = ("num_frequencies", "lengthscale")
    channels: int = setting(8, "of the encoder's 3 x 3 convolution", least=1, most=MOST_FEATURES)
    code: int = setting(128, "numbers in the encoder's code", least=1, most=MOST_FEATURES)
    num_frequencies: int = setting(1000, "pairs of cosine and sine", least=1, most=MOST_FEATURES)
    lengthscale: float = setting(
        1.0, "in units of the distance between codes of uniform noise", above=0, below=math.inf, rule="greater than 0"
    )


@dataclass(frozen=True)
class MerfAe(TwoQueryMethod):
    """Fourier features of public codes by class.

    The generator makes pixels, and the encoder sees those too, so no decoder is needed. A decoder would have to be
    private, or would make the public images.
    """

    name: ClassVar[str] = "merf_ae"
    maps: ClassVar = (EncodedFourier,)
    plan: TwoQueryPlan = setting(TwoQueryPlan(TwoQueryShares(0.03, 0.97)))
    privatize: Privatize = setting(Privatize())
    train: NetworkTraining = setting(NetworkTraining(iterations=1500, **IMAGE_TRAINING), FREE)

    def check(self, context: Context) -> None:
        """Images only."""
        if context.schema.image is None:
            raise PlanError("merf_ae encodes images, and the schema has no image. Use merf, which takes tables.")
        super().check(context)

    def embedding_query(self, context: Context, auxiliary: Mapping[str, Released]) -> Query:
        """The map of images by class. Encoder and length scale are public; no row is needed to choose them."""
        from likeness_papers.merf_ae.encoder import Encoder

        settings, image = self.privatize, context.schema.image
        assert image is not None  # check refuses others
        encoder = Encoder.draw(image, settings.channels, settings.code, MAP_SEED)
        feature = EncodedFourier(
            settings.num_frequencies,
            settings.lengthscale * encoder.unit,
            MAP_SEED,
            image,
            settings.code,
            encoder.reach,
            settings.channels,
            MAP_SEED,
        )
        return Query(EMBEDDING, "privatize", feature, num_groups=context.layout.num_classes)
