"""Composition of what was really released, from receipts. The only importer of autodp."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from likeness.core.bounds import rows_per_unit
from likeness.core.errors import ReleaseError
from likeness.privacy.calibration import epsilon_gaussian as epsilon_gaussian_of_rho
from likeness.privacy.calibration import epsilon_renyi
from likeness.privacy.lattice_error import ALLOWANCE, check_fine
from likeness.privacy.receipt import MECHANISM, THRESHOLDED, Receipt
from likeness.privacy.thresholds import delta_left, log_delta_keys

# Rényi orders of the published curve; the conversion itself optimizes over all orders.
ORDERS = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 256.0, 512.0)

_SLACK = 1e-9  # relative, between two machines' tails of a Gaussian; the cost itself has as much above it
_AGREE = 1e-5  # relative; autodp solves for the exact Gaussian to about 1e-8


@dataclass(frozen=True)
class Account:
    """Composition of a list of receipts.

    Attributes:
        rho: sum of the ρ of all releases.
        epsilon: at ``delta``; the guarantee that is stated (:func:`likeness.privacy.calibration.epsilon_of_rho`).
        epsilon_rdp: by autodp's composed Rényi curve, which holds whatever the mechanisms.
        epsilon_gaussian: by autodp's composition of exact Gaussians, if the noise were continuous (Balle and Wang
            2018). What is stated is this and the lattice's allowance, or the Rényi value if that is smaller.
        orders, curve: the Rényi curve in total, and by stage in ``stages``.
        delta_keys: what thresholds take of ``delta``; every ε is that of ρ at what they leave.
    """

    delta: float
    rho: float
    epsilon: float
    epsilon_rdp: float
    epsilon_gaussian: float
    orders: tuple[float, ...]
    curve: tuple[float, ...]
    stages: dict[str, tuple[float, ...]]
    delta_keys: float = 0.0


def compose(receipts: Sequence[Receipt], delta: float) -> Account:
    """Compose releases with autodp.

    Raises:
        ReleaseError: there is no receipt, or one of a mechanism that is not known here: nothing is free by default;
            autodp and our own conversion do not agree; or thresholds cost more of δ than they say, or all of it.
        PlanError: a release whose noise is too coarse on its lattice.
    """
    if not receipts:
        raise ReleaseError("no receipts to compose: nothing was released, or data/released is incomplete")
    for receipt in receipts:
        if receipt.private:
            _check_known(receipt)
            check_fine(receipt.query, receipt.dimension, receipt.noise_scale)
    delta_keys = math.fsum(receipt.delta_keys for receipt in receipts)
    stages = sorted({receipt.stage for receipt in receipts})
    if not all(receipt.private for receipt in receipts):
        infinite = tuple(math.inf for _ in ORDERS)
        return Account(
            delta, math.inf, math.inf, math.inf, math.inf, ORDERS, infinite, dict.fromkeys(stages, infinite), delta_keys
        )
    left = delta_left(delta, [delta_keys])
    if not left > 0:
        raise ReleaseError(f"the thresholds of these releases cost delta {delta_keys:g}, all of delta {delta:g}")

    from autodp.mechanism_zoo import ExactGaussianMechanism, GaussianMechanism
    from autodp.transformer_zoo import ComposeGaussian, Composition

    multipliers = [receipt.noise_multiplier for receipt in receipts]
    counts = [1] * len(multipliers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a harmless 0/0 inside autodp's search over orders
        composed = Composition()([GaussianMechanism(sigma=m) for m in multipliers], counts)
        exact = ComposeGaussian()([ExactGaussianMechanism(sigma=m) for m in multipliers], counts)
        epsilon_rdp, epsilon_gaussian = float(composed.get_approxDP(left)), float(exact.get_approxDP(left))
        lattice = float(exact.get_approxDP(left * math.exp(-ALLOWANCE))) + ALLOWANCE
        theirs_curve = [float(composed.get_RDP(order)) for order in ORDERS]
    rho = math.fsum(receipt.rho for receipt in receipts)
    curve, by_stage = curves_of(receipts)
    twins = [*zip(curve, theirs_curve, strict=True)]
    twins += [(epsilon_renyi(rho, left), epsilon_rdp), (epsilon_gaussian_of_rho(rho, left), lattice)]
    for ours, theirs in twins:
        if math.isfinite(ours) and not math.isclose(ours, theirs, rel_tol=_AGREE):
            raise ReleaseError(
                f"two accountants do not agree: epsilon {ours:.9g} by our conversion of rho {rho:.9g}, {theirs:.9g} by "
                f"autodp, at delta {left:g}. Do not publish; report it with versions of autodp and scipy."
            )
    epsilon = min(ours for ours, _ in twins[len(curve) :])
    return Account(delta, rho, epsilon, epsilon_rdp, epsilon_gaussian, ORDERS, curve, by_stage, delta_keys)


def curves_of(receipts: Sequence[Receipt]) -> tuple[tuple[float, ...], dict[str, tuple[float, ...]]]:
    """Rényi divergences at :data:`ORDERS`, of all receipts and of each stage: ``ρ·α``, the same digits everywhere."""
    stages = sorted({receipt.stage for receipt in receipts})
    rho = {stage: math.fsum(receipt.rho for receipt in receipts if receipt.stage == stage) for stage in stages}
    whole = math.fsum(receipt.rho for receipt in receipts)
    return tuple(whole * order for order in ORDERS), {
        stage: tuple(part * order for order in ORDERS) for stage, part in rho.items()
    }


def _check_known(receipt: Receipt) -> None:
    """Refuse a mechanism without an account, and a threshold that lets more through than it says."""
    expected = MECHANISM if receipt.threshold is None else THRESHOLDED
    if receipt.mechanism != expected:
        raise ReleaseError(f"{receipt.query}: mechanism '{receipt.mechanism}' is not known to the accountant")
    if receipt.threshold is None:
        return
    rows, told = rows_per_unit(receipt.unit), receipt.delta_keys
    cost = log_delta_keys(receipt.threshold, receipt.noise_scale, rows, receipt.lattice_bits)
    if not (told > 0 and cost <= math.log(told) + _SLACK):
        raise ReleaseError(f"{receipt.query}: the threshold costs more of delta than the receipt says")
