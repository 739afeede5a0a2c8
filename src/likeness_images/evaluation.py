"""The comparison of synthetic images with real ones for the internal page. NOT private."""

from functools import partial
from pathlib import Path

import pandas as pd

from likeness.config.params import Evaluate
from likeness.data.schema.schema import Schema
from likeness.evaluation.utility import sample_rows
from likeness.report.internal import Comparison, Measures, Tables, evaluate, join_marginals
from likeness_images import figures
from likeness_images.convnet import estimators_of
from likeness_images.distances import image_distances
from likeness_images.pixels import MOST_ROWS, Shape, check_shape, pixel_marginals, pixels


def evaluate_images(
    real_train: pd.DataFrame,
    real_test: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    settings: Evaluate,
    folder: Path,
    shape: Shape,
    halved: bool = False,
) -> None:
    """Judge images as :func:`likeness.report.internal.evaluate` judges rows, with pictures of them.

    ``evaluate.max_rows``, or :data:`likeness_images.pixels.MOST_ROWS`, limits every use of images.

    Raises:
        DataError: a table has no rows, or the shape does not fit the schema.
    """
    check_shape(schema, shape)
    most = settings.max_rows or MOST_ROWS
    named = {"train": real_train, "test": real_test, "synthetic": synthetic}
    train, test, drawn = (sample_rows(table, most, settings.seed, name) for name, table in named.items())
    estimators = None if schema.task == "none" else estimators_of(schema.task, settings.classifiers, shape)
    measures = Measures(estimators, most, partial(compare_images, shape), detailed=False)
    evaluate(train, test, drawn, schema, settings, folder, measures, halved)


def compare_images(
    shape: Shape, real_test: pd.DataFrame, tables: Tables, schema: Schema, settings: Evaluate
) -> Comparison:
    """Compare images: pixels alone and with the class, FID and KID. Samples and mean images replace the columns."""
    seed, bins, names = settings.seed, settings.bins, schema.classes
    marginals = {name: pixel_marginals(real_test, table, schema, bins) for name, table in tables.items()}
    real, synthetic = pixels(real_test, schema), pixels(tables["synthetic"], schema)
    pictures = {
        "means": figures.means_and_values(real, synthetic, shape, names),
        "association": figures.class_association(real, synthetic, shape, names, bins),
        "samples": figures.sample_grids(real, synthetic, shape, names),
    }
    return Comparison(join_marginals(marginals), image_distances(real_test, tables, schema, shape, seed), pictures)
