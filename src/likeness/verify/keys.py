"""Releases with a threshold: sensitivity, noise, and how likely a value of one person alone was to pass.

By formulas of its own, from the receipt: not those that chose the threshold.
"""

import math

from likeness.config.params import MOST_ROWS
from likeness.core.bounds import rows_per_unit
from likeness.privacy.lattice_error import MOST_ERROR, discretization_error
from likeness.privacy.receipt import THRESHOLDED
from likeness.release.released import Released
from likeness.verify.verdict import require

_EXACT = 1e-9
_FIELDS = {"map", "column", "other", "most", "terms"}


def keys(name: str, released: Released) -> None:
    """Whether receipt and values are what such a release may be; raises otherwise."""
    receipt, spec = released.receipt, dict(released.receipt.feature)
    require(set(spec) == _FIELDS and spec["map"] == "keys" and spec["terms"] == "each_record", f"{name}: another map")
    require(receipt.mechanism == THRESHOLDED, f"{name}: mechanism '{receipt.mechanism}' is not known")
    require(receipt.num_groups == 1 and receipt.format == 2, f"{name}: the receipt is not of a release of keys")
    rows = rows_per_unit(receipt.unit)
    # A person's k rows may all have one key; a row that is replaced leaves one key and joins another.
    replaced = receipt.adjacency == "replace_one"
    require(receipt.adjacency in ("add_remove_one", "replace_one"), f"{name}: adjacency is not known")
    require(not replaced or rows == 1, f"{name}: people of several rows cannot be replaced")
    require(receipt.noise_scale > 0 and rows <= MOST_ROWS, f"{name}: no noise, or people of too many rows")
    step, distance = 2.0**receipt.lattice_bits, math.sqrt(2) if replaced else float(rows)
    expected = {
        "dimension": (2.0 if replaced else float(rows), receipt.dimension),
        "sensitivity": (distance, receipt.sensitivity),
        "noise_scale": (receipt.noise_multiplier * distance * step, receipt.noise_scale),
        "rho": ((distance * step / receipt.noise_scale) ** 2 / 2, receipt.rho),
    }
    for field, (own, told) in expected.items():
        require(math.isclose(own, told, rel_tol=_EXACT), f"{name}: {field} is {told:.9g}, not {own:.9g}")
    require(receipt.change == ("one_replaced" if replaced else "one_appears"), f"{name}: change is wrong")
    fine = discretization_error(receipt.dimension, receipt.noise_scale) <= MOST_ERROR
    require(fine, f"{name}: the noise is too coarse on its lattice to be accounted as Gaussian")
    threshold = receipt.threshold
    require(type(threshold) is int and 0 < receipt.delta_keys < 1, f"{name}: no threshold, or no delta for it")
    assert threshold is not None
    least = _log_delta(threshold, receipt.noise_scale, rows, step)
    passes = f"{name}: the threshold lets a person's own value pass with probability {math.exp(min(0.0, least)):.3g}"
    require(least <= math.log(receipt.delta_keys) + _EXACT, f"{passes}, more than delta {receipt.delta_keys:.3g}")
    counts = released.lattice.ravel()
    require(bool((counts >= threshold).all()), f"{name}: a key below the threshold")
    require(len(counts) <= int(spec["most"]), f"{name}: more keys than asked for")
    require(str(spec["other"]) not in released.keys, f"{name}: '{spec['other']}' is no key")


def _log_delta(threshold: int, scale: float, rows: int, step: float) -> float:
    """Logarithm of a bound on the probability that any key of one person alone passes, over all ways to split k rows.

    With c rows a key, at most ``k/c`` keys: the union bound. Tails of the Gaussian by the scaled complementary error
    function, which neither rounds to 0 nor needs a logarithm of it.
    """
    from scipy.special import erfcx

    worst = -math.inf
    for count in range(1, rows + 1):
        distance = (threshold - count * step - 0.5) / scale / math.sqrt(2)
        near = distance <= 0
        tail = math.log1p(-math.erfc(-distance) / 2) if near else math.log(erfcx(distance) / 2) - distance**2
        worst = max(worst, tail + math.log(rows / count))
    return worst
