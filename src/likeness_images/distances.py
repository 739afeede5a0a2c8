"""Distance of images from the held-out ones: FID and KID.

Each number is 0 for equal distributions and grows with the distance. The real training rows (ceiling) show the part of
sampling.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from likeness.core import rng
from likeness.data.schema.schema import Schema
from likeness.evaluation.utility import sample_rows
from likeness_images.convnet import eye
from likeness_images.fid_kid import fid, fid_bootstrap, kid
from likeness_images.pixels import Shape, halves, pixels

Measures = dict[str, float]

_MOST_FEATURES = 5_000  # images of each table: FID depends on their number
_FEWEST = 2


def image_distances(
    real: pd.DataFrame, tables: Mapping[str, pd.DataFrame], schema: Schema, shape: Shape, seed: int
) -> dict[str, Measures]:
    """FID and KID of each table, with their spread, against held-out images.

    The public seed halves the held-out images. A LeNet learns the classes of one half. Its features of each table are
    compared with those of the other half. Features of images that the network learned by heart would make each table
    look worse. All tables have equally many images, since FID falls with their number.

    Features are divided by their root mean square on the learned half, so that the numbers do not grow with training.
    Numbers of two networks still do not compare. The network learns from real rows, so its numbers are internal.

    Args:
        real: typed held-out rows.
        tables: typed tables by name.
        schema: public schema of all.
        shape: height and width.
        seed: public seed of halves, network, samples and subsets.

    Returns:
        ``fid``, ``fid_deviation`` (10 bootstrap resamplings), ``kid`` and ``kid_deviation`` (100 subsets of 100) by
        table; empty where a table has fewer than two images.
    """
    images, labels = pixels(real, schema)
    learn, compare = halves(len(images), seed)
    size = min([len(compare), _MOST_FEATURES, *map(len, tables.values())])
    if min(size, len(learn)) < _FEWEST:
        return {name: {} for name in tables}
    classes = labels[learn] if schema.task == "classification" else None
    network = eye(images[learn], classes, shape, rng.public_seed(seed, "evaluation.eye"))
    # One factor for all features: with large features the cube in KID's kernel makes it noise.
    unit = float(np.sqrt((network.features(images[learn]) ** 2).mean())) or 1.0
    reference = network.features(images[compare])[:size] / unit
    distances = {}
    for name, table in tables.items():
        chosen = sample_rows(table, size, seed, "fid")
        features = network.features(pixels(chosen, schema)[0]) / unit
        mean, deviation = kid(reference, features, seed=seed)
        distances[name] = {
            "fid": fid(reference, features),
            "fid_deviation": fid_bootstrap(reference, features, seed=seed),
            "kid": mean,
            "kid_deviation": deviation,
        }
    return distances
