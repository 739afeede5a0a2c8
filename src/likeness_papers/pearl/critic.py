"""PEARL's critic: it moves only the scale of the frequency distribution."""

import math

import torch
from torch import Tensor

from likeness_papers.pearl.characteristic_map import CharacteristicFunction

_TRIED, _SEARCHES = 8, 2  # lengths in one search, and searches


class FrequencyCritic:
    r"""Ascends on the standard deviations of ω in :math:`\sup_\omega \sum_j \omega(t_j)/\omega_0(t_j) |r_j|^2`.

    ω = N(0, diag σ²), one σ a dimension. The importance weights are normalized to mean 1, so the supremum is over
    directions, not over size. Each σ stays within a factor of σ₀: with few hundred frequencies in a hundred dimensions
    an unbounded ω would settle on the frequency with the largest noise. In the many dimensions of an image even small
    factors add up. So all σ are drawn back towards σ₀ until the effective number of frequencies (Kish 1965),
    :math:`(\sum w)^2 / \sum w^2`, has a given share. Source: Liew, Takahashi and Ueno (2022), section 4.3.
    """

    def __init__(
        self,
        feature: CharacteristicFunction,
        learning_rate: float,
        max_factor: float,
        least_effective: float,
        device: torch.device,
    ) -> None:
        """Start at ω = ω₀.

        Args:
            feature: the released map.
            learning_rate: of Adam on log σ.
            max_factor: largest ratio of σ to σ₀ in either direction, at least 1.
            least_effective: least share of effective frequencies, in (0, 1].
            device: of the weights.
        """
        self._feature = feature
        self._base = base = math.log(feature.scale)
        self._log_scale = torch.full((feature.dimension,), base, device=device, requires_grad=True)
        self._limits = (base - math.log(max_factor), base + math.log(max_factor))
        self._least = least_effective
        self._optimizer = torch.optim.Adam([self._log_scale], lr=learning_rate, maximize=True)

    def weights(self) -> Tensor:
        """ω(t)/ω₀(t), normalized to mean 1 and repeated for cosine and sine, shape (2k,)."""
        ratio = self._shares(self._log_scale)
        return torch.cat([ratio, ratio]) * len(ratio)

    def _shares(self, log_scale: Tensor) -> Tensor:
        return torch.softmax(self._feature.log_density_ratio(log_scale), dim=-1)

    def scatter(self, means: Tensor, counts: list[int]) -> Tensor:
        """Variance of a batch's mean features (num_classes, 2k), half for the cosine and half for the sine.

        cos² + sin² = 1, so both together scatter by 1 − |mean|² a row; their weights are equal.
        """
        cosine, sine = means.detach().chunk(2, dim=1)
        rows = torch.tensor(counts, device=means.device, dtype=means.dtype)[:, None]
        half = (1 - cosine.square() - sine.square()) / (2 * (rows - 1))
        return torch.cat([half, half], dim=1)

    def step(self, residuals: Tensor) -> None:
        """One Adam step up on the weighted squared residuals, shape (2k,)."""
        self._optimizer.zero_grad()
        (self.weights() * residuals).sum().backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        with torch.no_grad():
            self._log_scale.clamp_(*self._limits)
            self._draw_back()

    def _draw_back(self) -> None:
        """Shorten the way from log σ₀ until enough frequencies count, by search on the device.

        A search tries many lengths in one product, because reading the frequencies takes the time.
        """
        way, parts = self._log_scale - self._base, torch.linspace(0, 1, _TRIED + 1).to(self._log_scale)
        low, size = way.new_zeros(()), way.new_ones(())
        for _ in range(_SEARCHES):
            tried = low + size * parts
            enough = self._effective(self._base + tried[:, None] * way) >= self._least
            last = (enough.cumprod(dim=0).sum() - 1).clamp(min=0)
            low = tried[last]
            size = torch.where(last == _TRIED, 0, size / _TRIED)
        self._log_scale.copy_(self._base + low * way)

    def _effective(self, log_scales: Tensor) -> Tensor:
        """Share of effective frequencies, shape (m,), at scales (m, d)."""
        shares = self._shares(log_scales)
        return 1 / (shares.square().sum(dim=1) * shares.shape[1])
