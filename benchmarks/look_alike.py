"""A table like Adult made from UCI Census-Income, on which ``marginals`` is tuned, and its measures there."""

import contextlib
import dataclasses
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from benchmarks.common import Table, load
from likeness.config.params import Params
from likeness.core.rng import public
from likeness.data.schema.schema import Schema
from likeness.evaluation.marginals import marginal_table
from likeness.evaluation.utility import train_on_synthetic_test_on_real

CLASSIFIERS = ("logistic_regression", "decision_tree", "random_forest", "xgboost")
CENSUS = [
    *("age", "class_of_worker", "education", "marital_stat", "major_industry_code", "major_occupation_code", "race"),
    *("sex", "capital_gains", "capital_losses", "dividends_from_stocks", "weeks_worked_in_year"),
    *("country_of_birth_self", "tax_filer_stat", "income_gt_50k"),
]


def like_adult(census: Table) -> tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]:
    """A table like Adult from Census-Income: content of its schema, training and test rows."""
    content = yaml.safe_load(Path(census.params.ingest.schema).read_text(encoding="utf-8"))
    content["columns"] = {name: spec for name, spec in content["columns"].items() if name in CENSUS}
    return content, _adults(census.train, 32_561, "a"), _adults(census.test, 16_281, "b")


@contextlib.contextmanager
def look_alike() -> Iterator[tuple[Params, Path, pd.DataFrame, pd.DataFrame]]:
    """Census-Income's settings; schema, as a file that is there meanwhile, training and test rows of the look-alike."""
    census = load("census")
    content, train, test = like_adult(census)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schema.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        yield census.params, path, train, test


def _adults(rows: pd.DataFrame, number: int, name: str) -> pd.DataFrame:
    """Working adults with the share of the rarer label that Adult has, by a public draw."""
    adults = rows[(rows["age"] >= 17) & (rows["weeks_worked_in_year"] > 0)][CENSUS]
    rare, generator = adults["income_gt_50k"] == "50000+.", public(0, f"benchmarks.quantiles.{name}")
    count = int(0.24 * number)
    chosen = [
        own.iloc[generator.choice(len(own), size, replace=False)]
        for own, size in ((adults[rare], count), (adults[~rare], number - count))
    ]
    both = pd.concat(chosen)
    return both.iloc[generator.permutation(number)].reset_index(drop=True)


def with_marginals(params: Params, schema: Path, epsilon: float, changes: Mapping[str, Mapping[str, object]]) -> Params:
    """Settings as shipped, method ``marginals``, but for schema, ε and some keys of its sections."""
    sections = json.loads(json.dumps(params.sections))
    for section, keys in changes.items():
        sections["marginals"][section] |= keys
    return dataclasses.replace(
        params,
        method="marginals",
        privacy=dataclasses.replace(params.privacy, epsilon=epsilon),
        ingest=dataclasses.replace(params.ingest, schema=str(schema)),
        sections=sections,
    )


def fidelity(
    params: Params, schema: Schema, train: pd.DataFrame, test: pd.DataFrame, synthetic: pd.DataFrame
) -> dict[str, float]:
    """:func:`total_variation`, and AUC of four classifiers."""
    scores = train_on_synthetic_test_on_real(synthetic, test, schema, params.evaluate.seed, CLASSIFIERS, max_workers=2)
    return {
        **total_variation(params, schema, train, synthetic),
        "auc_hard": float(scores["roc_auc_hard"].mean()),
        "auc_score": float(scores["roc_auc_score"].mean()),
    }


def total_variation(params: Params, schema: Schema, train: pd.DataFrame, synthetic: pd.DataFrame) -> dict[str, float]:
    """Mean total variation of pairs and of sets of three columns against the training rows."""
    own = params.evaluate
    rows = marginal_table(train, synthetic, schema, (2, 3), own.bins, own.max_tuples, own.seed)
    return {f"tv_{order}": float(mean) for order, mean in rows.groupby("order")["total_variation"].mean().items()}
