"""plan: split the budget by shares of rho.

Reads: params.yaml. Writes: data/plan/plan.json. Spends: nothing; it knows no data. Also refuses settings of sample and
evaluate that these would stop at, when the budget is spent.
"""

from likeness.core.paths import write_json
from likeness.pipeline.project import Project
from likeness.pipeline.run_stage import run_stage


def main(project: Project) -> None:
    """Write every noise multiplier, or refuse."""
    from likeness.preflight.later_stages import check_ahead  # here: it is heavy to load where classifiers are named

    plan = project.plan
    check_ahead(project)
    write_json(project.paths.plan, plan.to_dict())
    for query in plan.queries:
        print(
            f"{query.query}: share {query.share:g}, rho {query.rho:.6g}, noise multiplier {query.noise_multiplier:.6g}"
        )


if __name__ == "__main__":
    run_stage("plan", main)
