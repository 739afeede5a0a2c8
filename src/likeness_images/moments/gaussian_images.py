"""A Gaussian of low-frequency cosine coefficients for each class, with the brightness of the data's pixels."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from likeness.core.messages import progress
from likeness.data.encoding.layout import NONE, Conditions
from likeness.generators.base import Arrays, Generator
from likeness_images.moments.brightness import brightness
from likeness_images.moments.cosine_map import cosine_basis
from likeness_images.moments.estimates import Moments
from likeness_images.moments.texture import Texture
from likeness_images.moments.variety import Variety
from likeness_images.moments.warp import Warp

Float32 = NDArray[np.float32]
_MOST_TEXTURE = 100
_MOST_CHANGE = 0.5  # strength, of drawn images
_ROWS = 10_000  # images made at once
_LEAST = 1e-6  # of a pixel's deviation: below it, its place in the Gaussian is 0 over 0


class GaussianImages(Generator):
    r"""A Gaussian copula of pixels: :math:`x = Q_y(1 - \Phi((B^\top L_y z + d_y) / s_y))`, z ~ N(0, I).

    B is the public cosine basis and L L' the covariance of its coefficients, so pixels vary together as the class's low
    frequencies do. d is independent detail of higher frequencies (:class:`Texture`), s the deviations of the sum. Q is
    each pixel's quantile function by released shares above J levels. So each pixel is bright as often as in the data,
    even where noise hides directions.

    With clusters, each class is a mixture of such copulas, and a first latent number chooses one. Drawn
    images may be bent (:class:`Warp`) and vary (:class:`Variety`).

    Without levels, :math:`x = \mathrm{clip}_{[0,1]}(C B^\top (\mu_y + L_y z))`: the maximum-entropy images with given
    first and second moments, clipped so that their background stays black.

    Source: copulas, Sklar (1959); for synthetic data under privacy, Li, Xiong and Jiang (2014).
    """

    name: ClassVar[str] = "gaussian_images"

    def __init__(
        self,
        shape: Sequence[int],
        num_classes: int,
        num_coefficients: int,
        bound: float,
        levels: int = 0,
        texture: float = 0.0,
        clusters: int = 1,
        warp: float = 0.0,
        variety: float = 0.0,
    ) -> None:
        """Build with black images.

        Args:
            shape: height and width, and 3 in color.
            num_classes: 1 for images without a class.
            num_coefficients: K.
            bound: C, the norm of coefficients that 1 stands for.
            levels: J.
            texture: strength of the detail, 0 for none; with levels.
            clusters: copulas of each class.
            warp: how far images are bent, in parts of their sides; 0 for not.
            variety: how much their brightness, sharpness and grain vary; 0 for not.
        """
        if not (0 <= texture <= _MOST_TEXTURE and 0 < bound < math.inf) or (texture and not levels) or clusters < 1:
            raise ValueError(
                "gaussian images: bound must be above 0, texture from 0 to 100, and 0 without levels, clusters above 0"
            )
        if not (0 <= warp <= _MOST_CHANGE and 0 <= variety <= _MOST_CHANGE):
            raise ValueError(f"gaussian images: warp and variety must be from 0 to {_MOST_CHANGE}")
        self.shape = tuple(int(size) for size in shape)
        self.width = math.prod(self.shape)
        self.num_classes = num_classes
        self.clusters = clusters
        self.warp = Warp(self.shape, warp) if warp else None
        self.variety = Variety(self.shape, variety) if variety else None
        self._changes = [change for change in (self.warp, self.variety) if change]
        self._drawn = num_coefficients + (self.width if texture else 0) + (clusters > 1)
        self.latent_dim = self._drawn + sum(change.latent_dim for change in self._changes)
        self.num_coefficients = num_coefficients
        self.bound = bound
        self.levels = levels
        self.texture = Texture(self.shape, num_coefficients, texture) if texture else None
        groups = num_classes * clusters
        self.means = np.zeros((groups, num_coefficients), np.float32)
        self.factors = np.zeros((groups, num_coefficients, num_coefficients), np.float32)
        self.shares = np.zeros((groups, levels, self.width), np.float32)
        self.weights = np.full((num_classes, clusters), 1 / clusters, np.float32)
        self._basis = cosine_basis(self.shape, num_coefficients).astype(np.float32)

    def start_from(
        self,
        moments: Moments,
        shares: NDArray[np.float64] | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        """Take over means and factors of each cluster of each class.

        Args:
            moments: of the clusters of class 0, then those of class 1, and so on.
            shares: how often pixels are above levels, shape (classes · clusters, J, pixels).
            weights: of the clusters within each class, shape (classes, clusters).
        """
        self.means[...] = moments.means
        self.factors[...] = moments.factors
        if shares is not None:
            self.shares[...] = shares
        if weights is not None:
            self.weights[...] = weights

    def arrays(self) -> Arrays:
        """Means, factors, shares above levels and weights of clusters."""
        shares = {"shares": self.shares} if self.levels else {}
        weights = {"weights": self.weights} if self.clusters > 1 else {}
        return {"means": self.means, "factors": self.factors, **shares, **weights}

    def load(self, arrays: Arrays) -> None:
        """Take them over."""
        self.means, self.factors = arrays["means"], arrays["factors"]
        self.shares = arrays.get("shares", self.shares)
        self.weights = arrays.get("weights", self.weights)

    def images(self, z: Float32, labels: NDArray[np.int64]) -> Float32:
        """Values in [0, 1], shape (n, values), of z (n, K), or (n, K + values) with detail.

        With clusters, a number before these chooses one by their weights. Numbers after them bend and vary images.
        """
        z, rest = z[:, : self._drawn], z[:, self._drawn :]
        pixels = np.empty((len(z), self.width), np.float32)
        groups = labels
        if self.clusters > 1:
            up_to = self.weights.cumsum(axis=1)[labels]
            position = ndtr(z[:, :1]) * up_to[:, -1:]  # of clusters without weight, none is above the last
            groups = self.clusters * labels + (position > up_to[:, :-1]).sum(axis=1)
            z = z[:, 1:]
        for group in np.unique(groups).tolist():
            members = groups == group
            pixels[members] = self._draw_cluster(group, z[members])
        for change in self._changes:
            pixels, rest = change(pixels, rest[:, : change.latent_dim]), rest[:, change.latent_dim :]
        return pixels

    def draw(
        self, labels: NDArray[np.int64], random: np.random.Generator, conditions: Conditions = NONE
    ) -> NDArray[np.float64]:
        """Images (n, values) of classes (n,), from public randomness; there must be no condition.

        Raises:
            ParamsError: there is a condition.
        """
        self.class_likelihood(conditions)
        pixels = np.empty((len(labels), self.width))
        starts = range(0, len(labels), _ROWS)
        with progress("sample", len(starts) if len(starts) > 1 else 0) as step:
            for done, start in enumerate(starts, start=1):
                part = labels[start : start + _ROWS]
                z = random.standard_normal((len(part), self.latent_dim), np.float32)
                pixels[start : start + _ROWS] = self.images(z, part)
                step(done, "")
        return pixels

    def _draw_cluster(self, group: int, z: Float32) -> Float32:
        """Images of one cluster of a class, shape (n, pixels)."""
        factors = self.factors[group]
        if self.levels == 0:
            pixels: Float32 = np.clip(self.bound * (self.means[group] + z @ factors.T) @ self._basis, 0, 1)
            return pixels
        directions = factors.T @ self._basis
        field = z[:, : self.num_coefficients] @ directions
        variances = (directions**2).sum(axis=0)
        if self.texture is not None:
            deviation = self.texture.deviation(factors)
            field += deviation * self.texture(z[:, self.num_coefficients :])
            variances += deviation**2 * self.texture.variances
        brighter = ndtr(-field / np.sqrt(np.maximum(variances, _LEAST**2)))
        return brightness(brighter, self.shares[group]).astype(np.float32)

    def argument(self, name: str) -> Any:
        """An argument of the constructor; of detail, warp and variety their strength."""
        if name in ("texture", "warp", "variety"):
            part: Texture | Warp | Variety | None = getattr(self, name)
            return part.strength if part else 0.0
        return super().argument(name)
