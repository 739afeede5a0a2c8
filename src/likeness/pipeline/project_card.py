"""What the quality card of a project asks."""

from likeness.pipeline.card import CardQuery, card_queries
from likeness.pipeline.project import Project
from likeness.release.released import load_folder


def queries_of_card(project: Project) -> list[CardQuery]:
    """The queries about the synthetic table; none without a card."""
    card = project.params.evaluate.card
    if card is None:
        return []
    from likeness.data.schema.constrained_tables import forward_transform  # which loads pandas

    (table,) = project.tables.values()
    auxiliary, rows = load_folder(project.paths.auxiliary), forward_transform(table, project.schema)
    return card_queries(card, project.written_plan, project.context, auxiliary, rows)
