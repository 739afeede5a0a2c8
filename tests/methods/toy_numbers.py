"""A table of numbers, few of which lie where equal bins would want them, and its method."""

from typing import Any

import numpy as np
import pandas as pd
from toys import ledger_of_people, plan_with, schema_with

from likeness.config.typed import build
from likeness.data.encoding.encoder import Encoder
from likeness.methods.base import Context
from likeness.methods.marginals.method import Marginals
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import Plan
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released, from_bytes
from likeness.release.request import Dataset

SCHEMA = schema_with(
    {
        "c": {"kind": "categorical", "categories": ["u", "v"]},
        "wide": {"kind": "numeric", "lower": 0, "upper": 1_000_000, "spikes": [0]},
        "gaps": {"kind": "integer", "lower": 0, "upper": 999, "nullable": True},
        "few": {"kind": "integer", "lower": 0, "upper": 6},
    }
)
CONTEXT = Context(SCHEMA, "add_remove_one", None, 0)
BINS = 8
LEARNED = (
    "Bins of `wide`, `gaps`: between quantiles of the noisy histogram `quantiles`, and values within them as it says."
)


def section(share: float = 0.1, **quantiles: Any) -> dict[str, Any]:
    shares = {"class_counts": 0.03, "quantiles": share, "embedding": 0.97 - share}
    others = {"privatize": {"bins": BINS}, "train": {"num_components": 20, "iterations": 50}}
    quantiles = {"columns": "none", "edges": "learned", **quantiles}
    return {"plan": {"shares": shares}, "auxiliary": {"quantiles": quantiles}, **others}


def marginals(share: float = 0.1, **quantiles: Any) -> Marginals:
    return build(Marginals, section(share, **quantiles), "marginals")


def plan_of(method: Marginals, epsilon: float, adjacency: Adjacency = Adjacency.ADD_REMOVE_ONE, n: int = 1_000) -> Plan:
    return plan_with(method.shares(CONTEXT), epsilon, adjacency, n, method="marginals")


def table(rows: int) -> pd.DataFrame:
    """Amounts within a thousandth of their bounds, a third of them 0; a column with a gap and missing values."""
    generator = np.random.default_rng(0)
    amounts = np.where(generator.random(rows) < 1 / 3, 0, generator.lognormal(6.5, 1.0, rows)).clip(0, 1e6)
    gaps = np.where(generator.random(rows) < 0.5, generator.integers(0, 100, rows), generator.integers(900, 950, rows))
    return pd.DataFrame(
        {
            "c": pd.Categorical(np.where(amounts > 500, "u", "v"), ["u", "v"]),
            "wide": amounts,
            "gaps": pd.array(np.where(generator.random(rows) < 0.1, None, gaps), dtype="Int64"),
            "few": generator.integers(0, 7, rows),
        }
    )


def encoded(rows: int) -> np.ndarray:
    encoder = Encoder(SCHEMA)
    return encoder.expand(encoder.encode(table(rows)))


def through_the_door(method: Marginals, plan: Plan, rows: int) -> dict[str, Released]:
    ledger = ledger_of_people(plan.adjacency, plan.epsilon, plan.delta)
    x = encoded(rows)

    def answer(query: Query) -> Released:
        records = [Records(x, np.zeros(len(x), dtype=np.int64))]
        return from_bytes(Door(plan, ledger, Dataset("people", "digest"), lambda: records).release(query), query.name)

    released = method.ask(CONTEXT, answer)
    return {**released, "embedding": answer(method.embedding_query(CONTEXT, released))}
