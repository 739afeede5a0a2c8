"""settings: params.yaml with every default written out, so that DVC sees which settings of which stage changed.

Reads: params.yaml. Writes: data/plan/settings.yaml. Spends: nothing.
"""

import yaml

from likeness.config.load import read_params
from likeness.methods import resolved
from likeness.pipeline.project import Project
from likeness.pipeline.run_stage import run_stage


def main(project: Project) -> None:
    """Write the settings of params.yaml, which an experiment's copy of the project shares."""
    paths = project.paths
    settings = resolved(read_params(paths.params))
    del settings["tracking"]["uri"]  # a place, which may hold a password; the numbers do not depend on it
    paths.settings.parent.mkdir(parents=True, exist_ok=True)
    paths.settings.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    run_stage("settings", main)
