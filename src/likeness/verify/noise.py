"""Whether released integers look like sums with the noise that their receipts claim."""

import math

import numpy as np

from likeness.features.base import CellMap, Map, blocks_of
from likeness.release.released import Released
from likeness.verify.files import Bundle
from likeness.verify.receipts import query_again
from likeness.verify.verdict import Untestable, require

_FALSE_ALARM = 1e-9  # of each statistical test
_LOW_BITS = 6


def noise(bundle: Bundle) -> str:
    """Whether the released integers look like values with the noise that their receipts claim.

    The lowest bits of a sum with so wide a noise are uniform (without noise they are zeros or repeat); where a map's
    cells must add up to the same number of records in every part, they may differ by the noise only. What a map gives
    twice differs by its noise, which so is at least as large as claimed. (What truncation to the lattice adds grows
    with the number of records, and is not tested.)
    Two tests a release, false alarm 1e-9 each. A smaller noise in a map without such redundancy cannot be seen.
    """
    from scipy.stats import chi2

    tested = []
    for name, one in bundle.released.items():
        if one.receipt.noise_scale < 2 ** (_LOW_BITS + 2):
            continue
        low = np.bincount((one.lattice & (2**_LOW_BITS - 1)).ravel(), minlength=2**_LOW_BITS)
        expected = one.lattice.size / 2**_LOW_BITS
        if expected >= 5:
            statistic = float(((low - expected) ** 2).sum() / expected)
            require(chi2.sf(statistic, 2**_LOW_BITS - 1) > _FALSE_ALARM, f"{name}: the low bits are not those of noise")
            tested.append(f"{one.receipt.query} (bits)")
        if one.receipt.threshold is not None:
            continue  # every key is a sum of its own
        feature = query_again(one.receipt).feature
        if isinstance(feature, CellMap) and len(feature.parts) > 1:
            statistic, freedom = _block_sums(feature, one)
            tails = chi2.cdf(statistic, freedom), chi2.sf(statistic, freedom)
            require(min(tails) > _FALSE_ALARM, f"{name}: the noise is not of the scale that the receipt claims")
            tested.append(f"{one.receipt.query} (scale)")
        if isinstance(feature, Map) and (differences := feature.differences(one.values)).size:
            statistic = float(np.square(differences).sum() / (2 * one.noise_std**2))
            enough = chi2.cdf(statistic, differences.size) > _FALSE_ALARM
            require(bool(enough), f"{name}: the noise is smaller than the receipt claims")
            tested.append(f"{one.receipt.query} (scale, from below)")
    if not tested:
        raise Untestable("no release is large enough to test its noise")
    return "as claimed where it can be tested: " + ", ".join(tested)


def _block_sums(feature: CellMap, released: Released) -> tuple[float, int]:
    """Chi-square of the parts' totals around their mean, class by class, in units of the claimed noise."""
    totals, variances = [], []
    for part, values in blocks_of(feature.parts, released.values):
        norm = float(part.norm_bound_squared)
        totals.append(values.sum(axis=1) / math.sqrt(norm))
        variances.append(part.width * released.noise_std**2 / norm)
    precision = 1 / np.array(variances)[:, None]
    values = np.array(totals)
    mean = (values * precision).sum(axis=0) / precision.sum()
    return float(((values - mean) ** 2 * precision).sum()), (len(totals) - 1) * values.shape[1]
