"""privatize: release the embedding of each row set, in one pass."""

from likeness.core.paths import row_set_file
from likeness.pipeline.doors import door
from likeness.pipeline.project import Project
from likeness.release.released import load_answers


def main(project: Project) -> None:
    """Ask the door for the embedding."""
    paths = project.paths
    project.check_known([*paths.category_files, *paths.auxiliary_files])
    auxiliary = load_answers(paths.auxiliary_files)
    for index, rows in enumerate(project.row_sets):
        query = project.method.embedding_query(rows.context, rows.auxiliary(auxiliary))
        target = row_set_file(paths.embedding, rows.prefix)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(door(project, index).release(rows.scope(query)))
