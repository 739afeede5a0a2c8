"""evaluate: compare the synthetic table with real held-out rows. What it writes to reports/internal is NOT private.

A night of a series may have nobody to compare with: a run that failed then would show it. So would hash and size of the
comparison in dvc.lock, of any night. DVC records random bytes in their place.
"""

from likeness.config.params import NONE
from likeness.core.errors import DataError
from likeness.core.paths import write_json, write_random
from likeness.data.private_tables import read_manifest
from likeness.pipeline.counts import COUNTED
from likeness.pipeline.project import Project
from likeness.pipeline.written_tables import synthetic_tables
from likeness.report.pages import make_internal, write_internal, write_without_rows


def main(project: Project) -> None:
    """Compare with real training rows and with shuffled ones, where nothing depends on anything.

    Rows that stay in their database are compared with nothing, and the page says so.
    """
    paths, params = project.paths, project.params
    make_internal(paths)
    try:
        if COUNTED in read_manifest(paths.table):
            write_without_rows(project.root, params.privacy.population)
        else:
            halved = not params.ingest.split.holds_out
            project.model.evaluate(project.written_schema, synthetic_tables(project), params.evaluate, paths, halved)
            write_internal(project.root, params.privacy.population)
    except DataError:
        if params.privacy.series == NONE:
            raise
        write_json(paths.internal_metrics, {})
        paths.internal_report.write_bytes(b"<p>This night asked about too few people to compare.</p>")
    write_random(paths.compared)
