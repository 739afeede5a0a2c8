"""How well ordered features approximate a Gaussian kernel, beside random ones: figure 1 of DP-HP, exactly.

Run: ``python -m evidence.hermite_error``. It fills the table of evidence/RESULTS.md in seconds. As in the paper, 100
numbers are from N(0, 1) and 100 from N(1, 1), the length scale is the median distance of all pairs, and the error is
the mean of ``|k(x, y) - f(x) f(y)|`` over all pairs. The product's settings are at ``lengthscale: 0.1`` on the unit
interval, with 100 numbers of even distance; there *stretched* is what the product does, and *as in the paper* is the
series of inputs as they are.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from evidence.pages import markdown, on_page
from evidence.papers import PAGE
from likeness.core.rng import public
from likeness_papers.hp.mehler import good_scale, hermite_functions, rho_of

ORDERS, RANDOM, DRAWS = (0, 2, 5, 10, 20), (10, 100, 500), 100
Numbers = NDArray[np.float64]


def hermite(x: Numbers, y: Numbers, lengthscale: float, order: int, scale: float = 1.0) -> float:
    """Mean error of the series up to an order, of inputs (n,) and (m,) that are stretched by a factor."""
    rho = torch.tensor([rho_of(lengthscale * scale)], dtype=torch.float64)
    features = [hermite_functions(torch.from_numpy(scale * z)[:, None], rho, order)[:, :, 0].numpy() for z in (x, y)]
    return _error(x, y, lengthscale, features[0] @ features[1].T)


def fourier(x: Numbers, y: Numbers, lengthscale: float, features: int) -> float:
    """Mean error of so many random features, over :data:`DRAWS` draws."""
    stream = public(0, "evidence.hermite_error")
    errors = []
    for _ in range(DRAWS):
        frequencies = stream.standard_normal(features // 2) / lengthscale
        angles = [np.outer(z, frequencies) for z in (x, y)]
        products = np.cos(angles[0]) @ np.cos(angles[1]).T + np.sin(angles[0]) @ np.sin(angles[1]).T
        errors.append(_error(x, y, lengthscale, 2 / features * products))
    return float(np.mean(errors))


def _error(x: Numbers, y: Numbers, lengthscale: float, products: Numbers) -> float:
    return float(np.abs(np.exp(-((x[:, None] - y[None]) ** 2) / (2 * lengthscale**2)) - products).mean())


def table() -> str:
    """The errors in Markdown."""
    stream = public(1, "evidence.hermite_error")
    x, y = stream.standard_normal(100), 1 + stream.standard_normal(100)
    both = np.concatenate([x, y])
    median = float(np.median(np.abs(both[:, None] - both)[np.triu_indices(200, 1)]))
    unit = np.linspace(-0.5, 0.5, 100)
    rows = [
        (
            f"order {order}",
            f"{hermite(x, y, median, order):.1e}",
            f"{hermite(unit, unit, 0.1, order):.1e}",
            f"{hermite(unit, unit, 0.1, order, good_scale(0.1, order)):.1e}",
        )
        for order in ORDERS
    ]
    rows += [
        (f"{count} random features", *(f"{error:.1e}" for error in (fourier(x, y, median, count), unit_error)), "")
        for count in RANDOM
        for unit_error in [fourier(unit, unit, 0.1, count)]
    ]
    return markdown(("features", f"figure 1, ℓ = {median:.2f}:", "ℓ = 0.1, as in the paper:", "stretched:"), rows)


if __name__ == "__main__":
    on_page(PAGE, {"hermite_error": table()})
    print(table())
