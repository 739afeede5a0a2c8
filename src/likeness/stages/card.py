"""card: release a few numbers about this synthetic table against the training rows, with noise.

Reads: data/plan, data/released (categories, auxiliary), data/synthetic, data/private/encoded.
Writes: data/released/card. Spends: evaluate.card.share of rho, for each table once; nothing without a card.
"""

from likeness.core.paths import write_json
from likeness.pipeline.card import check_tables
from likeness.pipeline.doors import door
from likeness.pipeline.project import Project


def main(project: Project) -> None:
    """Ask the door for each query of the card, if the settings have one."""
    paths = project.paths
    for old in paths.card.glob("*.safetensors"):
        old.unlink()
    queries, card = project.card_queries, project.params.evaluate.card
    write_json(paths.card / "queries.json", [query.name for query in queries])
    if card is None:
        return
    project.check_known([*paths.category_files, *paths.auxiliary_files])
    opened = door(project)
    for query in queries:
        check_tables(opened, query, card.tables)
    for query in queries:
        (paths.card / f"{query.name}.safetensors").write_bytes(opened.release(query))
