"""Whether released integers look like sums with the noise that their receipts claim."""

import math

import numpy as np

from likeness.features import ColumnMarginals, PairMarginals
from likeness.release.released import Released
from likeness.verifier.files import Bundle
from likeness.verifier.receipts import query_again
from likeness.verifier.verdict import Untestable, require

_FALSE_ALARM = 1e-9  # of each statistical test
_LOW_BITS = 6


def noise(bundle: Bundle) -> str:
    """Whether the released integers look like values with the noise that their receipts claim.

    The lowest bits of a sum with so wide a noise are uniform (without noise they are zeros or repeat); and where a
    map's cells must add up to the same number of records in every pair or column, they may differ by the noise only.
    Two tests a release, false alarm 1e-9 each. A smaller noise in a map without such redundancy cannot be seen.
    """
    from scipy.stats import chi2

    tested = []
    for name, one in bundle.released().items():
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
        if isinstance(feature, PairMarginals | ColumnMarginals) and len(feature.parts) > 1:
            statistic, freedom = _block_sums(feature, one)
            tails = chi2.cdf(statistic, freedom), chi2.sf(statistic, freedom)
            require(min(tails) > _FALSE_ALARM, f"{name}: the noise is not of the scale that the receipt claims")
            tested.append(f"{one.receipt.query} (scale)")
    if not tested:
        raise Untestable("no release is large enough to test its noise")
    return "as claimed where it can be tested: " + ", ".join(tested)


def _block_sums(feature: PairMarginals | ColumnMarginals, released: Released) -> tuple[float, int]:
    """Chi-square of the parts' totals around their mean, class by class, in units of the claimed noise."""
    totals, variances, start = [], [], 0
    for part in feature.parts:
        norm = float(part.norm_bound_squared)
        totals.append(released.values[:, start : start + part.width].sum(axis=1) / math.sqrt(norm))
        variances.append(part.width * released.noise_std**2 / norm)
        start += part.width
    precision = 1 / np.array(variances)[:, None]
    values = np.array(totals)
    mean = (values * precision).sum(axis=0) / precision.sum()
    return float(((values - mean) ** 2 * precision).sum()), (len(totals) - 1) * values.shape[1]
