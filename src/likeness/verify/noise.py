"""Statistical tests of released integers against the noise of their receipts."""

import math

import numpy as np

from likeness.bundle.files import Bundle
from likeness.bundle.verdict import Untestable, require
from likeness.features.base import CellMap, Map, blocks_of, without_means
from likeness.release.distances import DISTANCES
from likeness.release.released import Released
from likeness.verify.receipts import query_again

_FALSE_ALARM = 1e-9  # of each statistical test
_LOW_BITS = 6


def noise(bundle: Bundle) -> str:
    """Test that released integers have the noise of their receipts.

    - With wide noise the lowest bits of a sum are uniform. Without noise they are zeros, or they repeat.
    - The cells of some maps add up to one number of records in each part. Totals differ by noise only.
      Contrasts have no means, so that these are noise.
    - Some maps give a value twice, which differs by its noise. This tests from below: truncation to the lattice adds a
      difference that grows with the number of records.

    Two tests a release, each with false alarm 1e-9. No test sees a smaller noise in a map without such redundancy.
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
        if one.receipt.threshold is not None or one.receipt.feature.get("map") == DISTANCES:
            continue  # keys have no common total, and distances have no cells
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
        raise Untestable("no release is large enough for a test of its noise")
    return "as the receipts state, where a test exists: " + ", ".join(tested)


def _block_sums(feature: CellMap, released: Released) -> tuple[float, int]:
    """Chi-square of what is noise alone, in units of the claimed noise, and its freedom.

    That is the totals of parts around their mean by class, and the means of contrasts, which are 0 in every sum.
    """
    totals, variances, statistic, freedom = [], [], 0.0, 0
    for part, values in blocks_of(feature.parts, released.values):
        if part.contrasts:
            statistic += float(np.square(values - without_means(values, part.contrasts)).sum()) / released.noise_std**2
            freedom += len(values) * (part.width - math.prod(size - 1 for size in part.contrasts))
            continue
        norm = float(part.norm_bound_squared)
        totals.append(values.sum(axis=1) / math.sqrt(norm))
        variances.append(part.width * released.noise_std**2 / norm)
    precision = 1 / np.array(variances)[:, None]
    sums = np.array(totals)
    mean = (sums * precision).sum(axis=0) / precision.sum()
    statistic += float(((sums - mean) ** 2 * precision).sum())
    return statistic, freedom + (len(totals) - 1) * sums.shape[1]
