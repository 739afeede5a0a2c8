"""settings: params.yaml with every default written out, and digests of the installed code.

It runs every time, because the package is no file of the project. So DVC sees what changed, by key and by stage.
"""

import yaml

from likeness.config.load import read_params
from likeness.methods import code_of, resolve_settings
from likeness.pipeline.project import Project
from likeness.stages import code_digests


def main(project: Project) -> None:
    """Write the settings of params.yaml, which an experiment's copy of the project shares, and the digests."""
    paths = project.paths
    settings = resolve_settings(read_params(paths.params))
    del settings["tracking"]["uri"]  # a place, which may hold a password; the numbers do not depend on it
    paths.code.mkdir(parents=True, exist_ok=True)
    paths.settings.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    for stage, digests in code_digests(plugin=code_of(settings["method"])).items():
        (paths.code / stage).write_text(digests, encoding="utf-8")
