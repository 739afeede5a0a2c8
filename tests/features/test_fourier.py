"""DP-MERF's map against the kernels that it stands for."""

import torch

from likeness.features import MixedFourierFeatures


def test_inner_product_is_the_sum_of_two_kernels() -> None:
    feature = MixedFourierFeatures(4_000, 0.5, 0, numeric=(0, 1), categorical=(2, 3), num_categorical=1)
    x = torch.tensor([[0.1, 0.9, 1.0, 0.0], [0.3, 0.5, 1.0, 0.0], [0.7, 0.2, 0.0, 1.0]], dtype=torch.float64)
    gaussian = torch.exp(-torch.cdist(x[:, :2], x[:, :2]).square() / (2 * 0.5**2))
    linear = x[:, 2:] @ x[:, 2:].T / 2
    # 6 standard errors of 4,000 frequencies.
    assert float((feature(x) @ feature(x).T - gaussian - linear).abs().max()) < 6 / 4_000**0.5


def test_tables_of_one_kind_only() -> None:
    numeric = MixedFourierFeatures(10, 0.5, 0, numeric=(0,), categorical=(), num_categorical=0)
    assert numeric(torch.zeros(2, 1)).shape == (2, 20) and len(numeric.parts) == 1
    categorical = MixedFourierFeatures(10, 0.5, 0, numeric=(), categorical=(0, 1), num_categorical=1)
    assert categorical(torch.zeros(2, 2)).shape == (2, 2) and categorical.parts[0].nonnegative
