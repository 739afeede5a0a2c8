"""``likeness sql``: what a database is asked, for a reviewer."""

from collections.abc import Iterator
from functools import cache, partial

from likeness.cli.console import say
from likeness.core.errors import DataError
from likeness.pipeline.project import Project
from likeness.release.partition_selection import query_name
from likeness.release.query import Query
from likeness.release.released import Released, load_folder
from likeness.release.sums.backends import counted_tables

_WHAT_LEAVES = """-- These statements read, and write nothing. Each begins with the same steps, which hash rows.
-- Answers hold the largest fault of each column, numbers of rows, sums of their hashes, and counts of cells. They hold
-- no row, and only those texts of private categories that are released. Names and types of columns come too.
-- Above a query stands SHA-256 of its statements, without the last semicolon.
"""


def sql() -> None:
    """Print the SQL that types, hashes and counts the rows where they are. It runs none of it and spends nothing.

    First the statement of the stages fingerprint and ingest, then those of each query. Before a run only queries that
    depend on no answer are known. Receipts have the SHA-256 that stands above each. Exit code 2 if
    rows come.
    """
    project = Project.load()
    if (rows := project.rows_there) is None:
        raise DataError("ingest.rows is come, so the rows of the source are read here. Set ingest.rows: stay.")
    say(_WHAT_LEAVES)
    say("-- fingerprint and ingest\n" + "\n".join(f"{survey};" for survey in rows.surveys))
    for place, column in enumerate(project.written_schema.open_columns, start=1):
        say(f"\n-- {query_name(place)}: {rows.digest_of_texts(column.name)}\n{rows.statements.texts(column.name)};")
        say(f"-- and of the hashes that are released:\n{rows.statements.texts_of(column.name, ())};")
    if project.written_schema.open_columns and not project.paths.category_files:
        say("\n-- Later queries depend on the released categories.")
        return
    there = cache(partial(project.written_model.there, project.sources, project.schema))
    for place, query in _queries(project):
        rows = there(place)
        counted = counted_tables(query)
        say(f"\n-- {query.name}: {rows.digest_of_statements(*counted)}")
        for statement in rows.statements.counts(*counted):
            say(f"{statement};")


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
