"""Schemas of small tables that are made up, plans about ``people``, and a ledger that knows these people."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from likeness.data.encoding.layout import encoding_digest
from likeness.data.schema.schema import Schema
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.project import Project
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import Plan, QueryShare, make_plan
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.records import Records
from likeness.release.released import Released, from_bytes
from likeness.release.request import Dataset

ADD = Adjacency.ADD_REMOVE_ONE


def schema_with(columns: Any, label: str | None = None, name: str = "toy", **more: Any) -> Schema:
    """A schema of these columns; with a label it is about classification.

    Args:
        columns: as a schema file lists them.
        label: column of the classes; None: there is none.
        name: name of the schema and of its file.
        more: other keys of a schema.
    """
    task = "none" if label is None else "classification"
    content: Mapping[str, Any] = {"name": name, "source": "made up", "task": task, "label": label, "columns": columns}
    return Schema.from_dict({**content, **more}, f"{name}.yaml")


def plan_with(
    shares: Sequence[QueryShare], epsilon: float = 1.0, adjacency: Adjacency = ADD, rows: int | None = None, **more: Any
) -> Plan:
    """A plan about ``people`` at delta 1e-5.

    Args:
        shares: queries and their shares.
        epsilon: ε of the target.
        adjacency: what counts as a neighboring table.
        rows: number of records, which is public under ``replace_one`` only.
        more: other arguments of ``make_plan``.
    """
    public = rows if adjacency is Adjacency.REPLACE_ONE else None
    usual = {"method": "m", "identity": "people", "delta": 1e-5}
    return make_plan(shares=shares, epsilon=epsilon, adjacency=adjacency, num_records=public, **{**usual, **more})


def ledger_of_people(adjacency: Adjacency = ADD, epsilon: float = 1.0, delta: float = 1e-5) -> Ledger:
    """A new ledger with a cap for ``people``."""
    ledger = Ledger.create(locate())
    ledger.declare_population("people", adjacency, epsilon, delta)
    return ledger


def door_to(project: Project, rows: int, epsilon: float) -> tuple[Dataset, Callable[[Query], Released]]:
    """Random records of a project's schema, and the function that releases an answer about them.

    Args:
        project: its plan is that of the releases.
        rows: number of records, all in class 0.
        epsilon: lifetime cap.
    """
    plan, context = project.plan, project.context
    ledger = Ledger.create(locate())
    ledger.declare_population(plan.identity, plan.adjacency, epsilon, 1e-5)
    dataset = Dataset(plan.identity, "digest", encoding=encoding_digest(context.schema))
    records = Records(np.random.default_rng(0).random((rows, context.layout.width)), np.zeros(rows, dtype=np.int64))
    door = Door(plan, ledger, dataset, lambda: [records])
    return dataset, lambda query: from_bytes(door.release(query), query.name)
