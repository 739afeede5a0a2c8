"""Composition of the releases, from their receipts. The only importer of autodp."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from likeness.core.bounds import rows_per_unit
from likeness.core.errors import ReleaseError
from likeness.privacy.calibration import epsilon_gaussian as epsilon_gaussian_of_rho
from likeness.privacy.calibration import epsilon_renyi
from likeness.privacy.lattice_error import ALLOWANCE, check_discretization
from likeness.privacy.receipt import CHOICE, MECHANISM, THRESHOLDED, Receipt
from likeness.privacy.thresholds import delta_left, log_delta

# Rényi orders of the published curve; the conversion itself optimizes over all orders.
ORDERS = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 256.0, 512.0)

_SLACK = 1e-9  # relative, between two machines' tails of a Gaussian; log_delta lies above the cost by as much
_AGREE = 1e-5  # relative; autodp solves for the exact Gaussian to about 1e-8


@dataclass(frozen=True)
class Account:
    """Composition of a list of receipts.

    Attributes:
        delta: δ of the guarantee.
        rho: sum of the ρ of all releases.
        epsilon: ε of the guarantee at ``delta`` (:func:`likeness.privacy.calibration.epsilon_of_rho`).
        epsilon_rdp: ε by autodp's composed Rényi curve, which holds for any mechanisms.
        epsilon_gaussian: ε by autodp's composition of exact Gaussians, if the noise were continuous (Balle and Wang
            2018). ``epsilon`` is this plus the allowance for the lattice, or the Rényi value if that is smaller.
        orders: Rényi orders of the curves.
        curve: Rényi divergences of all releases, at ``orders``.
        stages: Rényi divergences of each stage.
        delta_keys: part of ``delta`` for partition selection; each ε is that of ρ at the rest.
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
        ReleaseError: there is no receipt; a mechanism is unknown, which never counts as free; autodp and this module's
            conversion do not agree; or thresholds cost more of δ than their receipts say, or all of it.
        PlanError: the noise of a release is too coarse on its lattice.
    """
    if not receipts:
        raise ReleaseError("data/released has no receipt: nothing is released, or files are missing. Run: likeness run")
    for receipt in receipts:
        if receipt.private:
            _check_known(receipt)
            check_discretization(receipt.query, receipt.dimension, receipt.noise_scale)
    delta_keys = math.fsum(receipt.delta_keys for receipt in receipts)
    stages = sorted({receipt.stage for receipt in receipts})
    if not all(receipt.private for receipt in receipts):
        infinite = tuple(math.inf for _ in ORDERS)
        return Account(
            delta, math.inf, math.inf, math.inf, math.inf, ORDERS, infinite, dict.fromkeys(stages, infinite), delta_keys
        )
    left = delta_left(delta, [delta_keys])
    if not left > 0:
        raise ReleaseError(
            f"private categories cost delta {delta_keys:g}, all of privacy.delta, {delta:g}. Lower "
            "categories.delta_share."
        )

    multipliers = [receipt.noise_multiplier for receipt in receipts]
    counts = [1] * len(multipliers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of autodp, where the installer has not compiled it
        warnings.simplefilter("ignore", RuntimeWarning)  # a harmless 0/0 inside autodp's search over orders
        from autodp import mechanism_zoo, transformer_zoo

        composed = transformer_zoo.Composition()(
            [mechanism_zoo.GaussianMechanism(sigma=m) for m in multipliers], counts
        )
        exact = transformer_zoo.ComposeGaussian()(
            [mechanism_zoo.ExactGaussianMechanism(sigma=m) for m in multipliers], counts
        )
        epsilon_rdp, epsilon_gaussian = float(composed.get_approxDP(left)), float(exact.get_approxDP(left))
        lattice = float(exact.get_approxDP(left * math.exp(-ALLOWANCE))) + ALLOWANCE
        autodp_curve = [float(composed.get_RDP(order)) for order in ORDERS]
    rho = math.fsum(receipt.rho for receipt in receipts)
    curve, by_stage = curves_of(receipts)
    pairs = [*zip(curve, autodp_curve, strict=True)]
    pairs += [(epsilon_renyi(rho, left), epsilon_rdp), (epsilon_gaussian_of_rho(rho, left), lattice)]
    for value, reference in pairs:
        if math.isfinite(value) and not math.isclose(value, reference, rel_tol=_AGREE):
            raise ReleaseError(
                f"two accountants do not agree: epsilon {value:.9g} by Likeness from rho {rho:.9g}, {reference:.9g} by "
                f"autodp, at delta {left:g}. Do not publish. Report it with the versions of autodp and scipy."
            )
    epsilon = min(value for value, _ in pairs[len(curve) :])
    return Account(delta, rho, epsilon, epsilon_rdp, epsilon_gaussian, ORDERS, curve, by_stage, delta_keys)


def curves_of(receipts: Sequence[Receipt]) -> tuple[tuple[float, ...], dict[str, tuple[float, ...]]]:
    """Rényi divergences at :data:`ORDERS` of all receipts and of each stage: ``ρ·α``, equal digits on all machines."""
    stages = sorted({receipt.stage for receipt in receipts})
    rho = {stage: math.fsum(receipt.rho for receipt in receipts if receipt.stage == stage) for stage in stages}
    whole = math.fsum(receipt.rho for receipt in receipts)
    return tuple(whole * order for order in ORDERS), {
        stage: tuple(part * order for order in ORDERS) for stage, part in rho.items()
    }


def _check_known(receipt: Receipt) -> None:
    """Refuse an unknown mechanism, and a threshold that costs more δ than its receipt says."""
    expected = CHOICE if receipt.is_choice else MECHANISM if receipt.threshold is None else THRESHOLDED
    if receipt.mechanism != expected:
        raise ReleaseError(
            f"{receipt.query}: the accountant does not know mechanism '{receipt.mechanism}'. Restore the released "
            "file, or install the Likeness that wrote it."
        )
    if receipt.threshold is None:
        return
    cost = log_delta(receipt.threshold, receipt.noise_scale, rows_per_unit(receipt.unit), receipt.lattice_bits)
    if not (receipt.delta_keys > 0 and cost <= math.log(receipt.delta_keys) + _SLACK):
        raise ReleaseError(
            f"{receipt.query}: the threshold costs more of delta than the receipt says. Restore the released file."
        )
