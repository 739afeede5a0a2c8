"""fingerprint: notice a changed source without publishing a hash of it.

Reads: the private source, the ledger's key. Writes: data/private/source.json (a keyed hash). Spends: nothing.
"""

from likeness.core.files import make_private_folder
from likeness.core.paths import write_json
from likeness.pipeline.project import Project


def main(project: Project) -> None:
    """Hash the source with the ledger's secret key, where this ledger may answer about these people."""
    project.check_ready()
    digest, target = project.source_digest(), project.paths.source
    make_private_folder(target.parent)
    write_json(target, {"hmac": digest})
