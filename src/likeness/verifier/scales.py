"""Scales of maps: whether they are those that released statistics give."""

from likeness.features import (
    CharacteristicFunction,
    CosineLevels,
    CosineMoments,
    CosineNorms,
    FeatureMap,
    LevelCounts,
    Modal,
)
from likeness.methods.base import EMBEDDING
from likeness.methods.moments import LEVEL_COUNTS, LEVELS, NORMS, median_norm, median_share
from likeness.methods.pearl import DISTANCE, mean_distance
from likeness.release.released import Released
from likeness.verifier.files import Bundle
from likeness.verifier.receipts import query_again
from likeness.verifier.verdict import require


def scales(bundle: Bundle) -> str:
    """PEARL's scale of frequencies and the clipping bounds of moments, computed again from the released values.

    A scale from anywhere else, from the rows say, would have cost nothing and told something.
    """
    released = {one.receipt.query: one for one in bundle.released().values()}
    _under_their_names(released)
    levels = _levels(released)
    inner = _inner(query_again(released[EMBEDDING].receipt).feature)
    if isinstance(inner, CharacteristicFunction):
        expected = 1 / mean_distance(released[DISTANCE])
        require(
            inner.scale == expected, f"a scale of {inner.scale:.6g}, the released mean distance gives {expected:.6g}"
        )
        return f"frequencies of scale {expected:.4g}, one over the released mean distance"
    if isinstance(inner, CosineMoments):
        require(released[NORMS].receipt.num_groups == 1, f"{NORMS} are counted by class, of which no median is taken")
        norms = query_again(released[NORMS].receipt).feature
        assert isinstance(norms, CosineNorms)
        same = (norms.shape, norms.num_coefficients) == (inner.shape, inner.num_coefficients)
        require(same, f"{NORMS} are those of other coefficients than the embedding's")
        expected = median_norm(norms, released[NORMS])
        require(inner.bound == expected, f"a bound of {inner.bound:.6g}, the released norms give {expected:.6g}")
        return f"coefficients clipped at {expected:.4g}, as read off the released norms{levels}"
    return "none: the embedding's map takes no scale from released values"


def _levels(released: dict[str, Released]) -> str:
    """The share above which images count less, computed again; nothing where no levels were released."""
    if LEVELS not in released:
        return ""
    require(
        LEVEL_COUNTS in released and released[LEVEL_COUNTS].receipt.num_groups == 1,
        f"{LEVELS} were released, and no {LEVEL_COUNTS} of all images that their share could be read off",
    )
    counts, levels = (query_again(released[name].receipt).feature for name in (LEVEL_COUNTS, LEVELS))
    require(
        isinstance(counts, LevelCounts)
        and isinstance(levels, CosineLevels)
        and (counts.shape, counts.levels) == (levels.shape, levels.levels),
        f"{LEVEL_COUNTS} are those of other levels than {LEVELS}",
    )
    assert isinstance(counts, LevelCounts) and isinstance(levels, CosineLevels)
    expected = median_share(counts, released[LEVEL_COUNTS])
    require(levels.share == expected, f"a share of {levels.share:.6g}, the released counts give {expected:.6g}")
    return f", and levels at a share of {expected:.4g}"


def _under_their_names(released: dict[str, Released]) -> None:
    """A map whose bound is read off another release has the name that the bound is checked under."""
    for name, one in released.items():
        if one.receipt.threshold is not None:
            continue  # of keys, which have no such map
        feature = _inner(query_again(one.receipt).feature)
        for map_, only in ((CharacteristicFunction, EMBEDDING), (CosineLevels, LEVELS), (CosineMoments, EMBEDDING)):
            require(not isinstance(feature, map_) or name == only, f"{name} has the map of {only}")


def _inner(feature: FeatureMap) -> FeatureMap:
    """The map of a map of modes."""
    return _inner(feature.inner) if isinstance(feature, Modal) else feature
