"""A LeNet for images of any size, gray or in color: the eye of FID and KID, and one of the classifiers.

It has two convolutions of 5 x 5, each with rectified units and a maximum over 2 x 2, then two dense layers. As the eye
of FID it has the size of LeCun et al. (1998), 6 and 16 channels, 120 and 84 units. Its last 84 units are the features,
as in Liew et al. (PEARL, ICLR 2022), appendix G. As a classifier it has more channels.

A public seed reproduces everything: numpy draws weights and batches. Global generators of torch stay untouched, so
several networks may train at a time.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likeness.core import rng
from likeness.evaluation.images import Shape

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[Any]

EYE = ((6, 16), (120, 84))
"""Channels and units of the network for the features of FID and KID."""

JUDGE = ((16, 32), (128,))
"""Channels and units of the classifier."""

STEPS = 600
"""Batches of a training: four passes over 10,000 images."""

_BATCH = 64
_AT_ONCE = 1024  # images in one pass without gradient
_KERNEL = 5


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
        import torch
        from torch.nn.functional import cross_entropy

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
                loss = cross_entropy(self._forward(images[chosen])[1], labels[chosen])
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
        import torch

        images = torch.from_numpy(np.ascontiguousarray(x, np.float32))
        with torch.no_grad():
            parts = [self._forward(part)[which].numpy() for part in torch.split(images, _AT_ONCE)]
        return np.concatenate(parts).astype(np.float64)

    @property
    def _colors(self) -> int:
        return math.prod(self.shape[2:])

    def _draw_weights(self, classes: int) -> None:
        """Uniform with variance 2 / inputs for the rectified layers (He et al., 2015); biases are zero."""
        import torch

        stream = rng.public(self.seed, "evaluation.convnet.weights")
        channels, units = self.sizes
        inside = channels[-1] * math.prod(side // 2 ** len(channels) for side in self.shape[:2])
        shapes = [(b, a, _KERNEL, _KERNEL) for a, b in zip((self._colors, *channels), channels, strict=False)]
        shapes += [(b, a) for a, b in zip((inside, *units), (*units, classes), strict=True)]  # type: ignore[misc]
        self._weights = []
        for shape in shapes:
            limit = math.sqrt(6 / math.prod(shape[1:]))
            drawn = stream.uniform(-limit, limit, shape).astype(np.float32)
            self._weights += [torch.from_numpy(drawn).requires_grad_(), torch.zeros(shape[0], requires_grad=True)]

    def _forward(self, images: "Tensor") -> "tuple[Tensor, Tensor]":
        """Features and class scores of images (n, values)."""
        from torch.nn.functional import conv2d, linear, max_pool2d

        pairs = list(zip(self._weights[::2], self._weights[1::2], strict=True))
        count = len(self.sizes[0])
        planes = images.reshape(len(images), math.prod(self.shape[:2]), self._colors).transpose(1, 2)
        hidden = planes.reshape(len(images), self._colors, *self.shape[:2])
        for weight, bias in pairs[:count]:
            hidden = max_pool2d(conv2d(hidden, weight, bias, padding=_KERNEL // 2).relu(), 2)
        hidden = hidden.flatten(1)
        for weight, bias in pairs[count:-1]:
            hidden = linear(hidden, weight, bias).relu()
        return hidden, linear(hidden, *pairs[-1])


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
