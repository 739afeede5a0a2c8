"""fingerprint: notice a changed source without publishing a hash of it, and a ledger that the account does not state.

It reads the private source and the ledger, and writes a keyed hash. Each day of a series is a night of its own, also
without a change: a missing night would show that nobody came. New random bytes make the stage ``account`` run.
"""

from likeness.config.params import NONE
from likeness.core.files import make_private_folder
from likeness.core.paths import write_json, write_random
from likeness.ledger.series import Series
from likeness.pipeline.project import Project


def main(project: Project) -> None:
    """Hash the source with the ledger's secret key, where this ledger may answer about these people."""
    project.ledger_session.check_ready(project.sources)
    digest, target, day = project.source_digest(), project.paths.source, {}
    if project.params.privacy.series != NONE:
        ledger, params = project.ledger, project.params
        series = Series.from_records(ledger.records(), params.privacy.population, params.ledger.attempt)
        day = {"day": series.day_of_night(ledger.records())}
    make_private_folder(target.parent)
    write_json(target, {"hmac": digest, **day})
    if not (project.paths.unstated.exists() and project.ledger_session.is_stated(project.paths.privacy)):
        write_random(project.paths.unstated)
