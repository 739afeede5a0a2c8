"""A small typed table with a label, made by a public law."""

from typing import Any

import numpy as np
import pandas as pd

from likeness.data.schema.schema import Schema


def make_schema(task: str = "classification") -> Schema:
    """Two numbers, one of them nullable; two categories, one of them nullable; a label that fits the task."""
    columns: dict[str, Any] = {
        "height": {"kind": "numeric", "lower": 0, "upper": 8, "nullable": True},
        "visits": {"kind": "integer", "lower": 0, "upper": 99, "transform": "log1p"},
        "color": {"kind": "categorical", "categories": ["red", "green", "blue"], "nullable": True},
        "size": {"kind": "categorical", "categories": ["s", "m", "l"], "ordered": True},
    }
    if task == "classification":
        columns["sick"] = {"kind": "categorical", "categories": ["no", "yes"]}
    elif task == "regression":
        columns["cost"] = {"kind": "numeric", "lower": -10, "upper": 10}
    label = {"classification": "sick", "regression": "cost", "none": None}[task]
    return Schema.from_dict(
        {"name": "tiny", "source": "made up", "task": task, "label": label, "columns": columns}, "tiny.yaml"
    )


def make_table(rows: int, seed: int, task: str = "classification") -> pd.DataFrame:
    """Rows whose label follows from height and size, with some noise."""
    draw = np.random.default_rng(seed)
    height = draw.uniform(0, 8, rows)
    size = draw.integers(0, 3, rows)
    signal = height / 4 - 1 + size - 1 + draw.normal(0, 0.3, rows)
    table = pd.DataFrame(
        {
            "height": np.where(draw.uniform(size=rows) < 0.1, np.nan, height),
            "visits": draw.geometric(0.2, rows).clip(0, 99).astype("int64"),
            "color": pd.Categorical.from_codes(draw.integers(-1, 3, rows), ["red", "green", "blue"]),
            "size": pd.Categorical.from_codes(size, ["s", "m", "l"], ordered=True),
        }
    )
    if task == "classification":
        table["sick"] = pd.Categorical.from_codes((signal > 0.6).astype(int), ["no", "yes"])
    elif task == "regression":
        table["cost"] = (3 * signal).clip(-10, 10)
    return table
