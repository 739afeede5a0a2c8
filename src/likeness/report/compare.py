"""Comparisons for the internal page, beside the scores: one of tables, one of images. NOT private."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from likeness.config.params import Evaluate
from likeness.data.schema.schema import Schema
from likeness.evaluation.distances import Measures, image_distances, table_mmd
from likeness.evaluation.images import Shape, pixel_marginals, pixels
from likeness.evaluation.marginals import marginal_table
from likeness.evaluation.ranges import answers, draw_queries
from likeness.report import image_figures

Tables = Mapping[str, pd.DataFrame]
"""``synthetic``, ``real`` (training rows, the ceiling) and ``shuffled`` (the shuffled baseline, the floor)."""

ORDERS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Comparison:
    """A comparison with the held-out rows.

    Attributes:
        marginals: columns ``table``, ``order``, ``columns`` and ``total_variation``.
        distances: by table and name.
        figures: of images, PNG bytes by file name without its suffix: ``means``, ``association``, ``samples``.
    """

    marginals: pd.DataFrame
    distances: dict[str, Measures]
    figures: dict[str, bytes]


def compare_tables(real_test: pd.DataFrame, tables: Tables, schema: Schema, settings: Evaluate) -> Comparison:
    """Compare tables: marginals of one to four columns, range queries, L1 of all pairs, MMD."""
    seed, bins = settings.seed, settings.bins
    marginals = {
        name: marginal_table(real_test, table, schema, ORDERS, bins, settings.max_tuples, seed)
        for name, table in tables.items()
    }
    queries = draw_queries(schema, settings.range_queries, seed=seed)
    real = answers(real_test, schema, queries)
    answered = {name: answers(table, schema, queries) for name, table in tables.items()}
    distances = {}
    for name, table in tables.items():
        measures = {"range_queries": float(abs(answered[name] - real).mean())}
        pairs = marginals[name].query("order == 2")["total_variation"]
        if len(pairs):
            measures["pairs_l1"] = 2 * float(pairs.mean())  # total variation is half of the L1 distance
        distances[name] = {**measures, **table_mmd(real_test, table, schema, settings.mmd_rows, seed)}
    return Comparison(_joined(marginals), distances, {})


def compare_images(
    real_test: pd.DataFrame, tables: Tables, schema: Schema, settings: Evaluate, shape: Shape
) -> Comparison:
    """Compare images: pixels alone and with the class, FID, KID, MMD. Samples and mean images replace the columns."""
    seed, bins = settings.seed, settings.bins
    marginals = {name: pixel_marginals(real_test, table, schema, bins) for name, table in tables.items()}
    between = image_distances(real_test, tables, schema, shape, seed)
    distances = {
        name: {**between[name], **table_mmd(real_test, table, schema, settings.mmd_rows, seed)}
        for name, table in tables.items()
    }
    real, synthetic = pixels(real_test, schema), pixels(tables["synthetic"], schema)
    names = schema.classes
    return Comparison(
        _joined(marginals),
        distances,
        {
            "means": image_figures.means_and_values(real, synthetic, shape, names),
            "association": image_figures.class_association(real, synthetic, shape, names, bins),
            "samples": image_figures.sample_grids(real, synthetic, shape, names),
        },
    )


def _joined(marginals: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    rows = pd.concat(table.assign(table=name) for name, table in marginals.items())
    return rows[["table", "order", "columns", "total_variation"]]
