"""Where every artifact of a run lies, and how the stages read and write them."""

from typing import TYPE_CHECKING

from likeness.config.params import Params
from likeness.data.schema.schema import Schema
from likeness.methods import method_from
from likeness.methods.base import Context, Method
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.plan import Plan, SelectionShares, make_plan
from likeness.release.keys import STAGE as KEY_STAGE
from likeness.release.keys import query_name

if TYPE_CHECKING:
    pass
from likeness.core.paths import PLAN, read_json
from likeness.pipeline.released import load_schema
from likeness.pipeline.schema import _checked, foreseen, open_schema


def context(params: Params, schema: Schema | None = None) -> Context:
    """Public facts for the method's recipe. ``schema``: instead of the one that params.yaml names."""
    schema = load_schema(params) if schema is None else _checked(params, schema)
    return Context(schema, params.privacy.adjacency, params.privacy.num_records, params.train.seed)


def plan_of(params: Params, schema: Schema | None = None) -> Plan:
    """The plan, from public settings alone; refused where a later stage could not answer it.

    Args:
        schema: instead of the one that params.yaml names; as it is written.
    """
    recipe, schema = method_from(params), open_schema(params) if schema is None else schema
    facts = context(params, foreseen(params, schema))
    recipe.check(facts)
    own, names = params.categories, tuple(query_name(place) for place, _ in enumerate(schema.open_columns, start=1))
    return make_plan(
        method=params.method,
        identity=params.privacy.population,
        shares=recipe.shares(facts),
        epsilon=params.privacy.epsilon,
        delta=params.privacy.delta,
        adjacency=Adjacency(params.privacy.adjacency),
        num_records=params.privacy.num_records,
        unit=params.ingest.unit,
        selection=SelectionShares(names, KEY_STAGE, own.share, own.delta_share) if names else None,
    )


def load_plan() -> Plan:
    """The plan as it was written.

    Raises:
        ArtifactError: it was not.
    """
    return Plan.from_dict(read_json(PLAN))


def method(params: Params) -> Method:
    """The recipe that params.yaml chooses."""
    return method_from(params)
