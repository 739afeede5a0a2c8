"""How far a table lies from the held-out rows, in a few numbers: MMD of any rows, FID and KID of images.

Every number is 0 for an equal distribution and grows with the distance. The real training rows (ceiling) give what
sampling alone leaves.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from likeness.core import rng
from likeness.data.schema.schema import Schema
from likeness.evaluation.convnet import eye
from likeness.evaluation.fid_kid import fid, fid_bootstrap, kid
from likeness.evaluation.images import Shape, halves, pixels
from likeness.evaluation.mmd import length_scale, mmd_squared, points

Measures = dict[str, float]

_MOST_FEATURES = 5_000  # images whose features are compared: the same number of every table, see frechet
_FEWEST = 2


def table_mmd(real: pd.DataFrame, other: pd.DataFrame, schema: Schema, most_rows: int, seed: int) -> Measures:
    """Squared MMD on encoded rows; nothing where a table has fewer than two."""
    samples = [points(at_most(table, most_rows, seed, "mmd"), schema) for table in (real, other)]
    if min(map(len, samples)) < _FEWEST:
        return {}
    found = mmd_squared(samples[0], samples[1], length_scale(schema))
    return {"mmd_unbiased": found.unbiased, "mmd_biased": found.biased}


def image_distances(
    real: pd.DataFrame, tables: Mapping[str, pd.DataFrame], schema: Schema, shape: Shape, seed: int
) -> dict[str, Measures]:
    """FID and KID of every table, with their spread, against held-out images.

    The held-out images are halved by the public seed: a LeNet learns to tell the classes of one half, and its features
    of every table are compared with those of the other half, which it never saw. Otherwise the reference would have
    the features of images learned by heart, and every table, real ones too, would look worse than it is. All tables
    enter with equally many images, since FID falls with their number.

    Features are divided by their root mean square on the half that was learned, so that the numbers do not grow with
    the time that the network was trained; they are no numbers of another network all the same.

    The network has seen real rows: like everything here its numbers are internal.

    Args:
        real: typed held-out rows.
        tables: typed tables by name.
        schema: public schema of all.
        shape: height and width.
        seed: public seed of halves, network, samples and subsets.

    Returns:
        ``fid``, ``fid_deviation`` (10 bootstrap resamplings), ``kid`` and ``kid_deviation`` (100 subsets of 100) by
        table; nothing where a table has fewer than two images.
    """
    images, labels = pixels(real, schema)
    learn, compare = halves(len(images), seed)
    size = min([len(compare), _MOST_FEATURES, *map(len, tables.values())])
    if min(size, len(learn)) < _FEWEST:
        return {name: {} for name in tables}
    classes = labels[learn] if schema.task == "classification" else None
    network = eye(images[learn], classes, shape, rng.public_seed(seed, "evaluation.eye"))
    # One factor for all features: the cube in KID's kernel makes it all noise where a network's features are large.
    unit = float(np.sqrt((network.features(images[learn]) ** 2).mean())) or 1.0
    reference = network.features(images[compare])[:size] / unit
    found = {}
    for name, table in tables.items():
        chosen = at_most(table, size, seed, "fid")
        features = network.features(pixels(chosen, schema)[0]) / unit
        mean, deviation = kid(reference, features, seed=seed)
        found[name] = {
            "fid": fid(reference, features),
            "fid_deviation": fid_bootstrap(reference, features, seed=seed),
            "kid": mean,
            "kid_deviation": deviation,
        }
    return found


def at_most(table: pd.DataFrame, most: int | None, seed: int, purpose: str) -> pd.DataFrame:
    """At most so many rows, drawn by the public seed for one purpose, in table order; None means all."""
    if most is None or len(table) <= most:
        return table
    chosen = rng.public(seed, f"evaluation.rows.{purpose}").choice(len(table), most, replace=False)
    return table.iloc[sorted(chosen)]
