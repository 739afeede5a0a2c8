"""Composition of what was really released, from receipts. The only importer of autodp."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from likeness.errors import ReleaseError
from likeness.privacy.receipt import MECHANISM, Receipt

# Rényi orders of the published curve; the conversion itself optimizes over all orders.
ORDERS = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 256.0, 512.0)


@dataclass(frozen=True)
class Account:
    """Composition of a list of receipts.

    Attributes:
        rho: sum of the ρ of all releases.
        epsilon_rdp: ε at ``delta`` from autodp's composed Rényi curve. The guarantee that is stated.
        epsilon_gaussian: ε of the exact composition if the noise were continuous Gaussian (Balle and Wang 2018); the
            lattice is so fine (see docs) that the difference is far below what is printed. Shown beside, not claimed.
        orders, curve: the Rényi curve in total, and by stage in ``stages``.
    """

    delta: float
    rho: float
    epsilon_rdp: float
    epsilon_gaussian: float
    orders: tuple[float, ...]
    curve: tuple[float, ...]
    stages: dict[str, tuple[float, ...]]


def compose(receipts: Sequence[Receipt], delta: float) -> Account:
    """Compose releases with autodp.

    Raises:
        ReleaseError: there is no receipt, or one of a mechanism that is not known here: nothing is free by default.
    """
    if not receipts:
        raise ReleaseError("no receipts to compose: nothing was released, or data/released is incomplete")
    for receipt in receipts:
        if receipt.private and receipt.mechanism != MECHANISM:
            raise ReleaseError(f"{receipt.query}: mechanism '{receipt.mechanism}' is not known to the accountant")
    stages = sorted({receipt.stage for receipt in receipts})
    if not all(receipt.private for receipt in receipts):
        infinite = tuple(math.inf for _ in ORDERS)
        return Account(delta, math.inf, math.inf, math.inf, ORDERS, infinite, {stage: infinite for stage in stages})

    from autodp.mechanism_zoo import ExactGaussianMechanism, GaussianMechanism
    from autodp.transformer_zoo import ComposeGaussian, Composition

    multipliers = [receipt.noise_multiplier for receipt in receipts]
    counts = [1] * len(multipliers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a harmless 0/0 inside autodp's search over orders
        composed = Composition()([GaussianMechanism(sigma=m) for m in multipliers], counts)
        exact = ComposeGaussian()([ExactGaussianMechanism(sigma=m) for m in multipliers], counts)
        epsilon_rdp, epsilon_gaussian = float(composed.get_approxDP(delta)), float(exact.get_approxDP(delta))
        curve = tuple(float(composed.get_RDP(order)) for order in ORDERS)
        by_stage = {}
        for stage in stages:
            own = [GaussianMechanism(sigma=r.noise_multiplier) for r in receipts if r.stage == stage]
            part = Composition()(own, [1] * len(own))
            by_stage[stage] = tuple(float(part.get_RDP(order)) for order in ORDERS)
    rho = math.fsum(receipt.rho for receipt in receipts)
    return Account(delta, rho, epsilon_rdp, epsilon_gaussian, ORDERS, curve, by_stage)
