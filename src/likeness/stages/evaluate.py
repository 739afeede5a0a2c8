"""evaluate: compare the synthetic table with real held-out rows. What it writes is NOT private.

Reads: data/private/typed, data/synthetic. Writes: reports/internal. Spends: nothing: it stays inside.
A night of a series may have nobody to compare with: a run that failed then would show it.
"""

import shutil

from likeness.config.params import NONE
from likeness.core.errors import DataError
from likeness.core.files import make_private_folder
from likeness.data.private_tables import read_manifest
from likeness.pipeline.project import Project
from likeness.pipeline.staying_rows import COUNTED
from likeness.report.padding import padded_html
from likeness.report.pages import write_internal, write_without_rows


def main(project: Project) -> None:
    """Compare with real training rows and with shuffled ones, where nothing depends on anything.

    Rows that stay in their database are compared with nothing, and the page says so.
    """
    make_private_folder(project.paths.internal)
    if COUNTED in read_manifest(project.paths.table):
        make_private_folder(project.paths.evaluation)
        write_without_rows(project.root, project.params.privacy.population)
        return
    halved = not project.params.ingest.split.holds_out
    paths, params = project.paths, project.params
    try:
        project.model.evaluate(project.written_schema, project.tables, params.evaluate, paths, halved)
    except DataError:
        if params.privacy.series == NONE:
            raise
        shutil.rmtree(paths.evaluation, ignore_errors=True)  # that of another night
        make_private_folder(paths.evaluation)
        paths.internal_report.write_bytes(padded_html("<p>This night asked about too few people to compare.</p>"))
        return
    write_internal(project.root, params.privacy.population)
