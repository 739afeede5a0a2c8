"""Whether settings, plan, releases and generator belong together: of a project, and of a stranger's bundle.

A statement is true of a table only under three conditions. A generator drew the table. The generator was trained on
exactly the releases that the statement composes. The settings ask for these releases. A stage that somebody runs by
hand, out of order or with changed settings may break that. Then nothing is stated.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from likeness.config.params import GROWING, NONE
from likeness.core.errors import ReleaseError
from likeness.core.paths import json_text, read_json
from likeness.ledger.records import REDRAW
from likeness.methods.row_set import RowSet
from likeness.pipeline.project import Project
from likeness.privacy.plan import Plan
from likeness.release.partition_selection import partition_queries
from likeness.release.private_bounds import BOUNDS, bounds_query
from likeness.release.released import Released
from likeness.release.request import AnyQuery, check_answer

_SOLVED = 1e-8  # part of a root by which two machines may solve for it otherwise
_DRAW = re.compile(f"{REDRAW}[1-9][0-9]{{0,3}}$")  # number of the draw after a lost one


def check_run(project: Project, plan: Plan, released: Mapping[Path, Released]) -> None:
    """Refuse plan, releases or generator that are not of these settings.

    Args:
        project: the project of the run.
        plan: as it was written.
        released: every released file of the run.

    Raises:
        ReleaseError: saying which file contradicts which setting.
    """
    for fault in faults_of(project, plan, released):
        raise ReleaseError(f"{fault}. Run: likeness run")


def faults_of(project: Project, plan: Plan, released: Mapping[Any, Released]) -> Iterator[str]:
    """Say what in plan, releases or generator is not of the settings, each as a sentence without its end.

    Args:
        project: of the run.
        plan: as it was written.
        released: every released file of the run, by its path or name.
    """
    written, again = (json.loads(json_text(each.to_dict())) for each in (plan, project.plan))
    if different := first_difference(again, written, "plan.json", ("noise_multiplier", "rho")):
        yield f"plan.json is not the plan of the settings, see {different}"
        return
    answered, planned = sorted(map(_name, released.values())), sorted(query.query for query in plan.queries)
    # Released bounds may leave no number of which a step or finer cells have to be asked.
    spared = {name for name in planned if project.written_schema.unbounded_columns and name not in answered}
    if answered != [name for name in planned if name not in spared]:
        yield f"the releases answer the queries {answered}, but the plan has {planned}"
        return
    for path, release in released.items():
        for field, (stated, expected) in _facts(project, plan, release).items():
            if stated != expected:
                yield f"{path}: released under another {field} than the plan's"
        planned_noise = plan.query(_name(release)).noise_multiplier
        if not math.isclose(release.receipt.noise_multiplier, planned_noise, rel_tol=_SOLVED):
            yield f"{path}: released with another noise than the plan's"
    if len({(release.receipt.digest, release.receipt.group) for release in released.values()}) > 1:
        yield "the releases are of different rows"
    queries = queries_of(project, plan, project.row_sets, auxiliary_of(released.values()))
    if unanswered := sorted(queries.keys() - {*answered}):
        yield f"no release answers the queries {unanswered}"
    for path, release in released.items():
        try:
            check_answer(*queries[_name(release)], release, str(path))
        except ReleaseError as fault:
            yield str(fault)
    keys = sorted(release.receipt.key for release in released.values())
    for folder in map(project.output, project.outputs.generators):
        provenance = read_json(folder / "spec.json").get("provenance", {})
        if (provenance.get("method"), provenance.get("releases")) != (project.params.method, keys):
            yield f"{folder} was trained on other releases, so no statement is true of it"


def _name(release: Released) -> str:
    return release.receipt.query


def _facts(project: Project, plan: Plan, release: Released) -> dict[str, tuple[Any, Any]]:
    """Give what a receipt states beside what the plan has, by its name in the settings."""
    receipt, planned = release.receipt, plan.query(_name(release))
    facts: dict[str, tuple[Any, Any]] = {
        "privacy.adjacency": (receipt.adjacency, str(plan.adjacency)),
        "privacy.population": (receipt.identity, plan.identity),
        "privacy.series": (GROWING if receipt.group else NONE, project.params.privacy.series),
        "ingest.unit": (receipt.unit, plan.unit),
        "ledger.attempt": (_DRAW.sub("", receipt.slot), project.params.ledger.attempt),
        "stage": (receipt.stage, planned.stage),
        "delta": (receipt.delta_keys, planned.delta_keys),
        "privacy": (receipt.private, plan.private),
    }
    if receipt.plan == plan.digest:  # a release of an earlier plan, of any method, answers an equal query
        facts["method"] = (receipt.method, receipt.plugin), (plan.method, plan.plugin)
    return facts


def first_difference(expected: Any, stated: Any, where: str, solved: tuple[str, ...] = ()) -> str | None:
    """The first place where two JSON values differ; None if they agree.

    Args:
        expected: a value.
        stated: another one.
        where: name of the file, for messages.
        solved: keys of numbers that a solver finds. They may differ in their last digits.
    """
    if isinstance(expected, Mapping) and isinstance(stated, Mapping):
        if set(expected) != set(stated):
            return f"{where}: {sorted(set(expected) ^ set(stated))[0]}"
        items = [(expected[key], stated[key], f"{where}: {key}") for key in sorted(expected)]
    elif isinstance(expected, list) and isinstance(stated, list) and len(expected) == len(stated):
        items = [(*pair, where) for pair in zip(expected, stated, strict=True)]
    else:
        same = type(expected) is type(stated) and repr(expected) == repr(stated)  # 0.0 is not -0.0
        if (
            isinstance(expected, float)
            and isinstance(stated, float)
            and where.endswith(tuple(f": {k}" for k in solved))
        ):
            same = math.isclose(expected, stated, rel_tol=_SOLVED)
        return None if same else where
    return next(filter(None, (first_difference(*item, solved) for item in items)), None)


def auxiliary_of(released: Iterable[Released]) -> dict[str, Released]:
    """Answers of the auxiliary stage, by the name of their query, of all releases of a run."""
    return {_name(release): release for release in released if release.receipt.stage == "auxiliary"}


def queries_of(
    project: Project, plan: Plan, row_sets: Iterable[RowSet], auxiliary: Mapping[str, Released]
) -> dict[str, tuple[AnyQuery, str]]:
    """Every query of the settings by name, with the digest of the encoding of its rows.

    Args:
        project: with the settings.
        plan: of these settings.
        row_sets: the rows, with the schema completed by the released categories.
        auxiliary: answers of the auxiliary stage, by the name of their query.
    """
    written, recipe = project.written_schema, project.method
    encoding = project.written_model.encoding(written)
    selections = partition_queries(written, plan, project.params.categories.most)
    queries: dict[str, tuple[AnyQuery, str]] = {query.name: (query, encoding) for query in selections}
    queries |= {BOUNDS: (bounds_query(written), encoding)} if written.unbounded_columns else {}
    for rows in row_sets:
        answers = rows.queries(recipe, rows.auxiliary(auxiliary))
        queries |= {query.name: (query, rows.encoding) for query in answers}
    return queries
