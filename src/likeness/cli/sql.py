"""``likeness sql``: what a database is asked, for a reviewer."""

from collections.abc import Iterator

from likeness.cli.console import say
from likeness.core.errors import DataError
from likeness.pipeline.project import Project
from likeness.release.query import Query
from likeness.release.released import Released, load_folder


def sql() -> None:
    """Print the SQL that types, hashes and counts the rows where they are. It runs none of it and spends nothing.

    First the statement of the stages fingerprint and ingest, then those of each query. Before a run only queries that
    depend on no answer are known. Receipts have the SHA-256 that stands above each. Exit code 2 if
    rows come.
    """
    project = Project.load()
    if project.counts is None:
        raise DataError("ingest.rows is come, so the rows of the source are read here. Set ingest.rows: stay.")
    known = not project.written_schema.open_columns or bool(project.paths.category_files)
    for text in project.counts.script(project.schema if known else None, _queries(project) if known else ()):
        say(text)
    if not known:
        say("\n-- Later queries depend on the released categories.")


def _queries(project: Project) -> Iterator[tuple[int, Query]]:
    """The queries of a method, each with the place of its row set, up to the first one without an answer."""
    answers = load_folder(project.paths.auxiliary)
    for place, row_set in enumerate(project.row_sets):
        released: dict[str, Released] = {}
        for query in project.method.auxiliary_queries(row_set.context, released):
            asked = row_set.scoped(query)
            yield place, asked
            if asked.name not in answers:
                say(f"\n-- Later queries depend on the answer of {asked.name}.")
                break
            released[query.name] = answers[asked.name]
        else:
            yield place, row_set.scoped(project.method.embedding_query(row_set.context, released))
