"""Scales of maps: whether they are those that released statistics give."""

from likeness.features import CharacteristicFunction, CosineMoments, CosineNorms, Modal
from likeness.methods.base import EMBEDDING
from likeness.methods.moments import NORMS, median_norm
from likeness.methods.pearl import DISTANCE, mean_distance
from likeness.verifier.files import Bundle
from likeness.verifier.receipts import query_again
from likeness.verifier.verdict import require


def scales(bundle: Bundle) -> str:
    """PEARL's scale of frequencies and the clipping bound of moments, computed again from the released values.

    A scale from anywhere else, from the rows say, would have cost nothing and told something.
    """
    released = {one.receipt.query: one for one in bundle.released().values()}
    feature = query_again(released[EMBEDDING].receipt).feature
    inner = feature.inner if isinstance(feature, Modal) else feature
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
        return f"coefficients clipped at {expected:.4g}, as read off the released norms"
    return "none: the embedding's map takes no scale from released values"
