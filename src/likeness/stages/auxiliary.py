"""auxiliary: release the private statistics that the method asks for first."""

from likeness.methods.row_set import RowSet
from likeness.pipeline.doors import door
from likeness.pipeline.project import Project
from likeness.release.door import Door
from likeness.release.query import Query
from likeness.release.released import Released, from_bytes


def main(project: Project) -> None:
    """Ask the door for each auxiliary query in turn. A query may depend on earlier answers."""
    project.check_known(project.paths.category_files)
    folder = project.paths.auxiliary
    folder.mkdir(parents=True, exist_ok=True)
    for index, rows in enumerate(project.row_sets):
        opened = door(project, index)

        def answer(query: Query, rows: RowSet = rows, door: Door = opened) -> Released:
            query = rows.scope(query)
            data = door.release(query)
            (folder / f"{query.name}.safetensors").write_bytes(data)
            return from_bytes(data, query.name)

        project.method.ask(rows.context, answer)
