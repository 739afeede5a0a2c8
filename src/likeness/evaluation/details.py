"""Where a synthetic table differs from real rows: columns, pairs, groups, rare categories, neighbors. NOT private.

Cells are those of :mod:`likeness.evaluation.marginals`, on public bins.

*Neighbors.* As many training rows as held-out rows are drawn by the public seed. A synthetic row that copies a training
row lies nearer to a training row than to a held-out one. Without copies both are equally likely, so the share is one
half. That is a check of the program. It is no proof of privacy, and no substitute for one.
"""

import math
from collections.abc import Mapping
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.data.encoding.encoder import Encoder
from likeness.data.schema.column import Column
from likeness.data.schema.schema import Schema
from likeness.evaluation.marginals import Codes, cells, cramers_v, total_variation
from likeness.evaluation.utility import sample_rows

MOST_MAPPED, MOST_CROSSED, MOST_SHOWN, MOST_GROUPS, MOST_RARE = 60, 3, 10, 12, 20
RARE = 0.01
"""Share of the training rows below which a category is rare."""
_MISSING = "(missing)"


def details(tables: Mapping[str, pd.DataFrame], held_out: pd.DataFrame, schema: Schema, bins: int) -> dict[str, Any]:
    """Numbers of the internal page, ready for JSON. A pair has its distance, and Cramér's V of real and synthetic rows.

    Args:
        tables: typed ``synthetic`` and ``real`` (training) rows.
        held_out: typed rows, the reference.
        schema: public schema of all.
        bins: cells of a number.
    """
    names, everyone = schema.names, {**tables, "held_out": held_out}
    codes = {name: cells(table, schema, bins)[0] for name, table in everyone.items()}
    sizes, labels = cells(held_out.head(1), schema, bins)[1], _labels(schema, bins)
    synthetic, real = codes["synthetic"], codes["held_out"]
    pairs = combinations(range(min(len(names), MOST_MAPPED)), 2)
    distances = {pair: total_variation(synthetic, real, sizes, pair) for pair in pairs}
    strengths = [cramers_v(codes[name][:, :MOST_MAPPED], sizes[:MOST_MAPPED]) for name in ("held_out", "synthetic")]
    worst = sorted(distances, key=lambda pair: -distances[pair])[:MOST_CROSSED]
    return {
        "columns": [
            {
                "column": column.name,
                "total_variation": total_variation(synthetic, real, sizes, [index]),
                "categories": column.is_categorical,
                **_shares(codes, labels[index], index, column),
                **{name: _summary(everyone[name][column.name], column) for name in ("synthetic", "held_out")},
            }
            for index, column in enumerate(schema.columns)
        ],
        "mapped": list(names[:MOST_MAPPED]),
        "pairs": [
            [*pair, distance, *(float(matrix[pair]) for matrix in strengths)] for pair, distance in distances.items()
        ],
        "crosstabs": [_crosstab(synthetic, real, pair, labels, names) for pair in worst],
        "groups": _groups(codes, sizes, labels, schema),
        "rare": _rare(codes, labels, schema),
    }


def neighbors(tables: Mapping[str, pd.DataFrame], held_out: pd.DataFrame, schema: Schema, most: int, seed: int) -> Any:
    """Distances of synthetic rows to the nearest training row and to the nearest held-out row.

    Args:
        tables: typed ``synthetic`` and ``real`` (training) rows.
        held_out: typed rows.
        schema: public schema of all.
        most: rows of each table.
        seed: public; draws them.
    """
    from sklearn.neighbors import NearestNeighbors

    most = min(most, len(tables["real"]), len(held_out))
    rows = points(sample_rows(tables["synthetic"], most, seed, "neighbors"), schema)
    distances = {}
    for name, table in {"train": tables["real"], "held_out": held_out}.items():
        references = points(sample_rows(table, most, seed, f"neighbors {name}"), schema)
        distances[name] = NearestNeighbors(n_neighbors=1).fit(references).kneighbors(rows)[0][:, 0]
    nearer = (distances["train"] < distances["held_out"]) + 0.5 * (distances["train"] == distances["held_out"])
    return {
        "rows": len(rows),
        "nearer": float(nearer.mean()),
        **{f"median_{name}": float(np.median(each)) for name, each in distances.items()},
        **{f"equal_{name}": float((each < 1e-9).mean()) for name, each in distances.items()},
    }


def points(df: pd.DataFrame, schema: Schema) -> NDArray[np.float64]:
    """Rows as points (n, features + classes), one-hot places divided by √2: two categories that differ are 1 apart."""
    encoder = Encoder(schema)
    codes = encoder.encode(df)
    dense = encoder.expand(codes)
    for block in encoder.layout.blocks:
        if block.kind == "onehot":
            dense[:, block.start : block.stop] *= math.sqrt(0.5)
    if schema.task != "classification":
        return dense
    labels = np.eye(len(schema.classes))[encoder.labels(codes)] * math.sqrt(0.5)
    return np.concatenate([dense, labels], axis=1)


def _labels(schema: Schema, bins: int) -> list[list[str]]:
    """A text for each cell of each column."""
    labels = []
    for column in schema.columns:
        texts = list(column.categories)
        if not column.is_categorical:
            ends = column.numbers(column.type.decode(np.linspace(0, 1, bins + 1), column))
            values = map(column.type.label, ends.tolist())
            texts = [f"{low} to {high}" for low, high in pairwise(values)]
        labels.append([*texts, _MISSING])
    return labels


def _shares(codes: Mapping[str, Codes], labels: list[str], index: int, column: Column) -> dict[str, Any]:
    """The shares of real and synthetic rows in the cells of a column.

    Bins that no integer falls in are left out, and so is the cell for missing where no value is.
    """
    counts = {name: np.bincount(codes[name][:, index], minlength=len(labels)) for name in ("real", "synthetic")}
    bins, cells = len(labels) - 1, {cell: name for cell, name in enumerate(labels[:-1])}
    if column.is_integral and column.transform == "none" and (span := column.bounds[1] - column.bounds[0]) < bins:
        values = np.arange(span + 1)
        filled = np.minimum((values / max(span, 1) * bins).astype(int), bins - 1)
        cells = dict(zip(filled.tolist(), map(column.type.label, (column.bounds[0] + values).tolist()), strict=True))
    cells |= {bins: _MISSING} if any(count[-1] for count in counts.values()) else {}
    shares = {name: (count[list(cells)] / max(1, count.sum())).tolist() for name, count in counts.items()}
    return {"cells": list(cells.values()), "shares": shares}


def _summary(values: "pd.Series[Any]", column: Column) -> dict[str, Any]:
    """Share that is missing; of a number mean and deviation, of categories the most frequent one and its share."""
    missing = float(values.isna().mean())
    if column.is_categorical:
        shares = values.dropna().value_counts(normalize=True)
        first = (str(shares.index[0]), float(shares.iloc[0])) if missing < 1 else ("–", None)
        return {"missing": missing, "center": first[0], "spread": first[1]}
    numbers = column.numbers(values.dropna())
    if not len(numbers):
        return {"missing": missing, "center": "–", "spread": None}
    spread = float(numbers.std()) if column.type.numeric_source else None
    return {"missing": missing, "center": column.type.label(float(numbers.mean())), "spread": spread}


def _crosstab(
    synthetic: Codes, real: Codes, pair: tuple[int, int], labels: list[list[str]], names: tuple[str, ...]
) -> dict[str, Any]:
    """Shares of the most frequent cells of two columns, synthetic and real."""
    shapes = [len(labels[index]) for index in pair]
    joint = [np.zeros(shapes) for _ in range(2)]
    for table, counts in zip((synthetic, real), joint, strict=True):
        np.add.at(counts, (table[:, pair[0]], table[:, pair[1]]), 1 / len(table))
    both = joint[0] + joint[1]
    shares = zip(("synthetic", "held_out"), joint, strict=True)
    shown = [np.sort(np.argsort(-both.sum(axis=1 - axis), kind="stable")[:MOST_SHOWN]) for axis in (0, 1)]
    return {
        "columns": [names[index] for index in pair],
        "down": [labels[pair[0]][cell] for cell in shown[0]],
        "across": [labels[pair[1]][cell] for cell in shown[1]],
        **{name: counts[np.ix_(*shown)].tolist() for name, counts in shares},
    }


def _groups(
    codes: Mapping[str, Codes], sizes: list[int], labels: list[list[str]], schema: Schema
) -> list[dict[str, Any]]:
    """Compare each category of the columns with few: its share, and the mean total variation of other columns in it."""
    rows = []
    for index, column in enumerate(schema.columns):
        if not column.is_categorical or len(column.categories) > MOST_GROUPS:
            continue
        others = [[other] for other in range(len(sizes)) if other != index]
        for cell in range(sizes[index]):
            group = {name: table[table[:, index] == cell] for name, table in codes.items()}
            real = group["held_out"]
            if not len(real):
                continue
            row: dict[str, Any] = {"group": f"{column.name} = {labels[index][cell]}", "rows": len(real)}
            for name in ("synthetic", "real"):
                apart = [total_variation(group[name], real, sizes, other) for other in others if len(group[name])]
                row[name] = float(np.mean(apart)) if apart else None
            shares = {f"{name}_share": len(group[name]) / len(codes[name]) for name in ("synthetic", "held_out")}
            rows.append({**row, **shares})
    return rows


def _rare(codes: Mapping[str, Codes], labels: list[list[str]], schema: Schema) -> list[tuple[str, int, float, float]]:
    """Rare categories: their training rows, their share of these, and their share of the synthetic rows."""
    rows = []
    for index, column in enumerate(schema.columns):
        if column.is_categorical:
            counts = [np.bincount(codes[name][:, index], minlength=column.width) for name in ("real", "synthetic")]
            shares = [count / max(1, count.sum()) for count in counts]
            for cell in np.flatnonzero(shares[0] < RARE):
                of_both = float(shares[0][cell]), float(shares[1][cell])
                rows.append((f"{column.name} = {labels[index][cell]}", int(counts[0][cell]), *of_both))
    return sorted(rows, key=lambda row: (row[2], row[0]))[:MOST_RARE]
