"""categories: release the categories of columns where the schema calls them private.

Reads: data/plan, data/private/table.parquet. Writes: data/released/categories. Spends: categories.share of rho and
categories.delta_share of delta; nothing where the schema lists all categories.
"""

from likeness.core.paths import write_json
from likeness.pipeline.project import Project
from likeness.pipeline.run_stage import run_stage
from likeness.release.keys import key_queries


def main(project: Project) -> None:
    """Ask the door for the keys of each open column."""
    queries = key_queries(project.written_schema, project.written_plan, project.params.categories.most)
    folder = project.paths.categories
    for old in folder.glob("*.safetensors"):
        old.unlink()
    write_json(folder / "columns.json", {query.name: query.column for query in queries})
    for query in queries:
        data = project.key_door(query.column).release(query)
        (folder / f"{query.name}.safetensors").write_bytes(data)


if __name__ == "__main__":
    run_stage("categories", main)
