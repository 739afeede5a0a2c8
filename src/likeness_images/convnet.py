"""A LeNet for images of any size, gray or in color: the eye of FID and KID, and one of the classifiers.

It has two convolutions of 5 x 5, each with rectified units and a maximum over 2 x 2, then two dense layers. As the eye
of FID it has the size of LeCun et al. (1998), 6 and 16 channels, 120 and 84 units. Its last 84 units are the features,
as in Liew et al. (PEARL, ICLR 2022), appendix G. As a classifier it has more channels.

A public seed reproduces everything: numpy draws weights and batches. Global generators of torch stay untouched, so
several networks may train at a time.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likeness.core import rng
from likeness.core.extras import torch
from likeness.evaluation.classifiers import Factory, select
from likeness_images.pixels import Shape

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[Any]

EYE = ((6, 16), (120, 84))
"""Channels and units of the network for the features of FID and KID."""

JUDGE = ((16, 32), (128,))
"""Channels and units of the classifier."""

RESIDUAL = ((16, 32, 64), ())
"""Channels of the blocks of the residual network."""

STEPS = 600
"""Batches of a training: four passes over 10,000 images."""

LONG_STEPS = 4 * STEPS
"""Batches of a long training: two and a half passes over 60,000 images."""

_BATCH = 64
_AT_ONCE = 1024  # images in one pass without gradient
_KERNEL = 5
_GROUPS = 4  # of channels that are normalized together
DEFAULT = ("logistic_regression", "mlp", "cnn")
"""Default judges of images: the papers' two, and a network that uses neighboring pixels."""


class ConvNet:
    """A small convolutional classifier with the interface of scikit-learn.

    Attributes:
        classes_: labels 0 ... C - 1 that it was fitted on, after :meth:`fit`.
    """

    def __init__(
        self,
        shape: Shape,
        seed: int,
        sizes: tuple[tuple[int, ...], tuple[int, ...]] = JUDGE,
        steps: int | None = None,
        learning_rate: float = 1e-3,
    ) -> None:
        """Set the sizes; :meth:`fit` draws the weights.

        Args:
            shape: height and width of an image, at least 4 pixels each, and 3 in color.
            seed: public seed of weights and batches.
            sizes: channels of the convolutions and units of the dense layers, see :data:`EYE`.
            steps: batches of 64 images; None: :data:`STEPS`, 0: no training.
            learning_rate: learning rate of Adam at the start; it falls to zero along a cosine.
        """
        self.shape, self.seed, self.sizes = shape, seed, sizes
        self.steps = STEPS if steps is None else steps
        self.learning_rate = learning_rate
        self._weights: list[Tensor] = []

    def fit(self, x: Array, y: Array) -> "ConvNet":
        """Train on images (n, values) in [0, 1] with labels (n,) from 0 ... C - 1."""
        self.classes_ = np.arange(int(y.max()) + 1 if len(y) else 1)
        self._draw_weights(len(self.classes_))
        images, labels = (
            torch.from_numpy(np.ascontiguousarray(x, np.float32)),
            torch.from_numpy(np.asarray(y, np.int64)),
        )
        stream = rng.public(self.seed, "evaluation.convnet.batches")
        optimizer = torch.optim.Adam(self._weights, lr=self.learning_rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, self.steps))
        with torch.enable_grad():
            for _ in range(self.steps):
                chosen = torch.from_numpy(stream.integers(0, len(images), _BATCH))
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(self._forward(images[chosen])[1], labels[chosen])
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
        return self

    def predict_proba(self, x: Array) -> NDArray[np.float64]:
        """Class probabilities (n, C)."""
        scores = self._pass(x, 1)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        result: NDArray[np.float64] = scores / scores.sum(axis=1, keepdims=True)
        return result

    def predict(self, x: Array) -> NDArray[np.int64]:
        """Most probable class (n,)."""
        result: NDArray[np.int64] = self._pass(x, 1).argmax(axis=1)
        return result

    def features(self, x: Array) -> NDArray[np.float64]:
        """Values of the last layer before the class scores, (n, units of that layer)."""
        return self._pass(x, 0)

    def _pass(self, x: Array, which: int) -> NDArray[np.float64]:
        images = torch.from_numpy(np.ascontiguousarray(x, np.float32))
        with torch.no_grad():
            parts = [self._forward(part)[which].numpy() for part in torch.split(images, _AT_ONCE)]
        return np.concatenate(parts).astype(np.float64)

    @property
    def _colors(self) -> int:
        return math.prod(self.shape[2:])

    def _draw_weights(self, classes: int) -> None:
        """Uniform with variance 2 / inputs for the rectified layers (He et al., 2015); biases are zero."""
        stream = rng.public(self.seed, "evaluation.convnet.weights")
        self._weights = []
        for shape in self._shapes(classes):
            limit = math.sqrt(6 / math.prod(shape[1:]))
            drawn = stream.uniform(-limit, limit, shape).astype(np.float32)
            self._weights += [torch.from_numpy(drawn).requires_grad_(), torch.zeros(shape[0], requires_grad=True)]

    def _shapes(self, classes: int) -> list[tuple[int, ...]]:
        """Shapes of the weights, layer by layer: outputs, inputs, and the window of a convolution."""
        channels, units = self.sizes
        inside = channels[-1] * math.prod(side // 2 ** len(channels) for side in self.shape[:2])
        windows = [(b, a, _KERNEL, _KERNEL) for a, b in zip((self._colors, *channels), channels, strict=False)]
        return [*windows, *((b, a) for a, b in zip((inside, *units), (*units, classes), strict=True))]

    def _planes(self, images: "Tensor") -> "Tensor":
        """Images (n, values) as (n, colors, height, width)."""
        planes = images.reshape(len(images), math.prod(self.shape[:2]), self._colors).transpose(1, 2)
        return planes.reshape(len(images), self._colors, *self.shape[:2])

    def _forward(self, images: "Tensor") -> "tuple[Tensor, Tensor]":
        """Features and class scores of images (n, values)."""
        functional = torch.nn.functional
        pairs = list(zip(self._weights[::2], self._weights[1::2], strict=True))
        count, hidden = len(self.sizes[0]), self._planes(images)
        for weight, bias in pairs[:count]:
            hidden = functional.max_pool2d(functional.conv2d(hidden, weight, bias, padding=_KERNEL // 2).relu(), 2)
        hidden = hidden.flatten(1)
        for weight, bias in pairs[count:-1]:
            hidden = functional.linear(hidden, weight, bias).relu()
        return hidden, functional.linear(hidden, *pairs[-1])


class ResNet(ConvNet):
    """A small residual network (He et al. 2016): a convolution, then blocks of two convolutions beside a short cut.

    Each block but the first halves the sides. Channels are normalized in groups, in each image alone (Wu and He 2018),
    so no score depends on the batch. ``sizes`` holds the channels of the blocks.
    """

    def __init__(self, shape: Shape, seed: int) -> None:
        """Set the sizes; :meth:`fit` draws the weights."""
        super().__init__(shape, seed, RESIDUAL, 2 * STEPS)

    def _shapes(self, classes: int) -> list[tuple[int, ...]]:
        channels = self.sizes[0]
        shapes: list[tuple[int, ...]] = [(channels[0], self._colors, 3, 3)]
        for a, b in zip((channels[0], *channels), channels, strict=False):
            shapes += [(b, a, 3, 3), (b, b, 3, 3), (b, a, 1, 1)]
        return [*shapes, (classes, channels[-1])]

    def _forward(self, images: "Tensor") -> "tuple[Tensor, Tensor]":
        functional, pairs = torch.nn.functional, iter(zip(self._weights[::2], self._weights[1::2], strict=True))

        def layer(hidden: "Tensor", stride: int = 1) -> "Tensor":
            weight, bias = next(pairs)
            out = functional.conv2d(hidden, weight, stride=stride, padding=weight.shape[-1] // 2)
            return functional.group_norm(out, _GROUPS) + bias[:, None, None]

        hidden = layer(self._planes(images)).relu()
        for block in range(len(self.sizes[0])):
            stride = 1 if block == 0 else 2
            deep = layer(layer(hidden, stride).relu())
            hidden = (deep + layer(hidden, stride)).relu()
        means = hidden.mean(dim=(2, 3))
        return means, functional.linear(means, *next(pairs))


def eye(images: Array, labels: Array | None, shape: Shape, seed: int, steps: int | None = None) -> ConvNet:
    """The network for the features of FID and KID, trained on images with labels, else untrained.

    Random features tell distributions apart too, if less well. They are public: the seed draws them.

    Args:
        images: shape (n, values), in [0, 1].
        labels: classes (n,); None: no training.
        shape: height and width, and 3 in color.
        seed: public seed.
        steps: batches; None: :data:`STEPS`.
    """
    network = ConvNet(shape, seed, EYE, steps if labels is not None else 0)
    return network.fit(images, np.zeros(len(images), np.int64) if labels is None else labels)


@dataclass(frozen=True)
class NetworkFactory:
    """Makes an unfitted network from a public seed.

    Attributes:
        build: makes it.
    """

    library: ClassVar[str] = "torch"
    build: Factory

    def __call__(self, seed: int) -> ConvNet:
        """A new network."""
        network: ConvNet = self.build(seed)
        return network


def estimators_of(task: str, names: Iterable[str] | None, shape: Shape) -> dict[str, Factory]:
    """The judges of images: those of tables, and networks that use neighboring pixels.

    Args:
        task: of the schema.
        names: wanted names; None: :data:`DEFAULT`.
        shape: height and width of an image, and 3 in color.

    Raises:
        ParamsError: no judge has one of the names.
    """
    if task != "classification":
        return select(task, names)
    networks: Mapping[str, Factory] = {
        "cnn": NetworkFactory(lambda seed: ConvNet(shape, seed)),
        "cnn_long": NetworkFactory(lambda seed: ConvNet(shape, seed, steps=LONG_STEPS)),
        "resnet": NetworkFactory(lambda seed: ResNet(shape, seed)),
    }
    return select(task, names, networks, DEFAULT)
