"""categories: release the categories and bounds of columns where the schema calls them private."""

from likeness.core.paths import write_json
from likeness.pipeline.doors import bounds_door, partition_door
from likeness.pipeline.project import Project
from likeness.release.partition_selection import partition_queries
from likeness.release.private_bounds import bounds_query


def main(project: Project) -> None:
    """Ask the door for the categories of each open column, and for the bounds of all unbounded ones."""
    queries = partition_queries(project.written_schema, project.written_plan, project.params.categories.most)
    folder = project.paths.categories
    for old in folder.glob("*.safetensors"):
        old.unlink()
    write_json(folder / "columns.json", {query.name: query.column for query in queries})
    for query in queries:
        data = partition_door(project, query.column).release(query)
        (folder / f"{query.name}.safetensors").write_bytes(data)
    if project.written_schema.unbounded_columns:
        bounds = bounds_query(project.written_schema)
        (folder / f"{bounds.name}.safetensors").write_bytes(bounds_door(project).release(bounds))
