"""What PEARL, DP-MERF, DP-HP and DP-NTK share: one network, trained on batches against a map's mean embedding."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from likeness.core.errors import PlanError
from likeness.core.extras import need, torch
from likeness.core.typed import setting
from likeness.features.base import FeatureMap
from likeness.methods.base import (
    CLASS_COUNTS,
    EMBEDDING,
    Context,
    Method,
    class_counts_query,
    class_weights,
    number_of_records,
)
from likeness.methods.settings import (
    NetworkTraining,
    NoSettings,
    TrainingSettings,
    TwoQueryPlan,
    TwoQueryShares,
    choose_device,
)
from likeness.privacy.plan import QueryShare
from likeness.release.query import Query
from likeness.release.released import Released

if TYPE_CHECKING:
    from torch import Tensor

    from likeness.generators.base import Compute, Generator, Trained
    from likeness_papers.networks.images import ImageGenerator, ResidualImages
    from likeness_papers.networks.latent import LatentGenerator
    from likeness_papers.networks.objective import Critic
    from likeness_papers.networks.tabular import TabularGenerator
    from likeness_papers.networks.training import Objective


_LEAST_CLASS_WEIGHT = 0.05  # that is divided by: the noise of a rarer class would be blown up
_MULTIPLICATIONS_A_PIXEL = 2000  # of the convolutional network
_MULTIPLICATIONS_A_PLACE = 120  # of the residual network, a pair of channels; normalization takes half of the time


def image_generator() -> "type[ImageGenerator]":
    """The convolutional network; imported when it is needed."""
    from likeness_papers.networks.images import ImageGenerator

    return ImageGenerator


def residual_images() -> "type[ResidualImages]":
    """The residual network; imported when it is needed."""
    from likeness_papers.networks.images import ResidualImages

    return ResidualImages


def tabular_generator() -> "type[TabularGenerator]":
    """The fully connected network; imported when it is needed."""
    from likeness_papers.networks.tabular import TabularGenerator

    return TabularGenerator


class EmbeddingMethod(Method):
    """A method with a network, which differs from the others in its queries, its map and its critic.

    ``multiplications_a_coordinate`` counts those for one coordinate of one generated row, and
    ``multiplications_a_value`` those for one coordinate and one of the row's values.
    """

    train: NetworkTraining
    generators: ClassVar = {
        "image": image_generator,
        "residual_images": residual_images,
        "tabular": tabular_generator,
    }
    multiplications_a_coordinate: ClassVar[int] = 30  # a cosine or sine
    multiplications_a_value: ClassVar[float] = 0.2  # one product for a cosine and a sine; its weights have no gradient

    def check_device(self, device: str) -> None:
        """Refuse a device that this machine does not have."""
        need("torch", f"method {self.name}")
        choose_device(device)

    def check(self, context: Context) -> None:
        """A network needs PyTorch. Others than a fully connected one make images."""
        need("torch", f"method {self.name}")
        image, network = context.schema.image, self.train.network
        if network in ("convolutional", "residual") and image is None:
            raise PlanError(f"{self.name}.train.network is {network}, but the schema has no image. Use auto.")
        if image is not None and network in ("auto", "convolutional") and len(self.train.hidden) != 1:
            raise PlanError(
                f"{self.name}.train.hidden has {len(self.train.hidden)} widths, but a convolutional network has one. "
                f"Give one, or set {self.name}.train.network: fully_connected."
            )

    def build_generator(self, context: Context, auxiliary: Mapping[str, Released]) -> "LatentGenerator":
        """The papers' networks, one kind for every method, for fair comparison."""
        train, image = self.train, context.schema.image
        if image is None or train.network == "fully_connected":
            return tabular_generator()(context.layout, train.latent_dim, train.hidden, train.sampling)
        classes = context.layout.num_classes
        if train.network == "residual":
            return residual_images()(image, classes, train.latent_dim, train.channels[0])
        return image_generator()(image, classes, train.latent_dim, train.hidden[0], train.channels)

    def blueprint(self, context: Context, auxiliary: Mapping[str, Released]) -> "Generator":
        """The network on PyTorch's device ``meta``."""
        with torch.device("meta"):
            return self.build_generator(context, auxiliary)

    def trained_feature(self, feature: FeatureMap) -> FeatureMap:
        """The map of the network's rows, from that of encoded rows; by default the given one."""
        return feature

    def multiplications(self, context: Context, coordinates: Mapping[str, int]) -> float:
        """Count the multiplications of a batch of rows through the network and the map."""
        train, width = self.train, context.layout.width
        if context.schema.image is not None and train.network == "residual":
            row = float(_MULTIPLICATIONS_A_PLACE * train.channels[0] ** 2 * math.prod(context.schema.image[:2]))
        elif context.schema.image is not None and train.network != "fully_connected":
            row = float(_MULTIPLICATIONS_A_PIXEL * width)
        else:
            sizes = [train.latent_dim, *train.hidden, width]
            row = sum(a * b for a, b in pairwise(sizes))
        each = self.multiplications_a_coordinate + self.multiplications_a_value * width
        return train.batch_size * (row + each * coordinates[EMBEDDING] / context.layout.num_classes)

    def critic(self, feature: FeatureMap, device: "torch.device") -> "Critic | None":
        """Build the critic that weighs the coordinates; None by default."""
        return None

    def coordinate_weights(self, feature: FeatureMap) -> "Tensor | None":
        """Fixed weights of the coordinates, shape (width,); all 1 by default."""
        return None

    def fit_generator(
        self, context: Context, auxiliary: Mapping[str, Released], embedding: Released, compute: "Compute"
    ) -> "Trained":
        """Train the network from random weights."""
        from likeness_papers.networks.training import fit_network

        return fit_network(
            self.name,
            lambda: self.build_generator(context, auxiliary),
            lambda device: self.build_objective(context, auxiliary, embedding, device),
            self.training,
            context.seed,
            compute,
        )

    def build_objective(
        self, context: Context, auxiliary: Mapping[str, Released], embedding: Released, device: "torch.device"
    ) -> "Objective":
        """Distance of mean embeddings; by class when ``class_weighting: per_class``."""
        from likeness_papers.networks.objective import (
            EmbeddingObjective,
            LatentBatches,
            guarded_class_scale,
            rows_per_class,
        )

        feature = self.trained_feature(self.embedding_query(context, auxiliary).feature)
        weights = torch.from_numpy(class_weights(auxiliary[CLASS_COUNTS]))
        records = number_of_records(context, auxiliary[CLASS_COUNTS])
        objective = EmbeddingObjective(
            feature=feature,
            target=torch.from_numpy(embedding.values) / records,
            class_weights=weights,
            class_scale=guarded_class_scale(weights, self.train.class_weighting, _LEAST_CLASS_WEIGHT),
            critic=self.critic(feature, device),
            coordinate_weights=self.coordinate_weights(feature),
        ).to(device)
        counts = rows_per_class(weights, self.train.batch_size)
        return LatentBatches(objective, self.train.latent_dim, counts, context.seed, device)

    @property
    def training(self) -> TrainingSettings:
        """Section ``METHOD.train``."""
        return self.train.loop


@dataclass(frozen=True)
class TwoQueryMethod(EmbeddingMethod):
    """A method of two queries: class counts, then the embedding, whose map is public from the start."""

    everyday: ClassVar = ("privatize", "train")
    plan: TwoQueryPlan = setting(TwoQueryPlan(TwoQueryShares(0.05, 0.95)))
    auxiliary: NoSettings = setting(NoSettings(), "nothing to set")

    def check(self, context: Context) -> None:
        """Refuse what the network cannot make, and what the map refuses."""
        super().check(context)
        self.embedding_query(context, {})

    def shares(self, context: Context) -> list[QueryShare]:
        """Class counts and embedding."""
        shares = self.plan.shares
        return [
            QueryShare(CLASS_COUNTS, "auxiliary", shares.class_counts),
            QueryShare(EMBEDDING, "privatize", shares.embedding),
        ]

    def auxiliary_queries(self, context: Context, released: Mapping[str, Released]) -> Iterable[Query]:
        """Counts by class."""
        return [class_counts_query(context)]
