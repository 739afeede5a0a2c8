"""privatize: release the embedding, in one pass.

Reads: data/plan, data/released/categories, data/released/auxiliary, data/private.
Writes: data/released/embedding.safetensors. Spends: the plan's embedding share.
"""

from likeness.pipeline.project import Project
from likeness.release.released import check_known, load_folder


def main(project: Project) -> None:
    """Ask the door for the embedding."""
    paths = project.paths
    check_known([*paths.category_files, *paths.auxiliary_files], *project.ledger_place)
    query = project.method.embedding_query(project.context, load_folder(paths.auxiliary))
    with project.engine() as engine:
        paths.embedding.write_bytes(project.door(engine).release(query))
