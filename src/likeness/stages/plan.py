"""plan: split the budget by shares of rho.

It reads no data. It also refuses settings that train, sample or evaluate would refuse later, when the budget is spent,
and a question that a new version asks otherwise.
"""

from likeness.core.messages import LOG
from likeness.core.paths import write_json
from likeness.pipeline.project import Project


def main(project: Project) -> None:
    """Write every noise multiplier, or refuse."""
    from likeness.preflight.downstream_checks import (
        check_ahead,  # here: it is heavy to load where classifiers are named
    )

    plan = project.plan
    check_ahead(project)
    project.ledger_session.check_same_request(plan.rho)
    write_json(project.paths.plan, plan.to_dict())
    for query in plan.queries:
        message = "%s: share %g, rho %.6g, noise multiplier %.6g"
        LOG.info(message, query.query, query.share, query.rho, query.noise_multiplier)
