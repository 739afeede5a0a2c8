"""The private rows of people with histories: two row sets, of files or frames, and their digest.

The unit of privacy is a person with all rows of both tables. The method is asked twice: about one row a
person, and about one row a pair of events that follow each other. Both releases count people
(:class:`likeness.release.records.EachPerson`), so the noise does not grow with the number of events.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core.errors import ArtifactError, DataError
from likeness.core.hashing import sha256_json
from likeness.core.paths import ProjectPaths
from likeness.data.beside import with_columns
from likeness.data.histories.rows import HistoryRows, history_rows
from likeness.data.histories.schema import HistorySchema
from likeness.data.private_tables import read_private, write_private
from likeness.data.source.files import read_frame_people
from likeness.data.source.row_digests import SourceDigest, unordered_digest
from likeness.data.source.split import split_by_person
from likeness.pipeline.private_rows import PERSON, SPLIT, manifest_of, read_place

if TYPE_CHECKING:
    from likeness.pipeline.project import Project


def read_histories(
    schema: HistorySchema, events: pd.DataFrame, people: pd.DataFrame | None, key: bytes
) -> tuple[HistoryRows, list[str]]:
    """Both row sets of two frames, and the digest of the rows of each frame.

    Raises:
        DataError: a frame does not fit the schema, or there is no person.
    """
    tables: list[Any] = []
    sources = []
    for name, frame, columns in (("events", events, schema.events), ("people", people, schema.people)):
        if frame is not None and columns is not None:
            sources.append(SourceDigest(SourceDigest.key_of(key)))
            tables += read_frame_people(frame, columns, schema.person, name, sources[-1])
    rows = history_rows(schema, *tables)
    if rows.people.empty:
        raise DataError("the frames hold no person. Nothing was spent. Give training rows.")
    return rows, [source.digest() for source in sources]


def write_histories(project: "Project", schema: HistorySchema) -> None:
    """Write both row sets of the source, each row with its person and with the part of that person.

    Raises:
        ArtifactError: dvc.yaml is that of one table. A later stage would fail, after the release.
        DataError: a source does not fit the schema, or there is no person.
    """
    paths, ledger, ingest = project.paths, project.ledger, project.params.ingest
    if paths.stages.exists() and str(ProjectPaths.next_table) not in paths.stages.read_text(encoding="utf-8"):
        raise ArtifactError(
            f"{paths.stages} is that of one table, and the schema has two. Run: likeness new . --upgrade"
        )
    tables, sources = [], []
    for place, columns in ((project.database or project.source, schema.events), (project.people_source, schema.people)):
        if place is not None and columns is not None:
            sources.append(SourceDigest(SourceDigest.key_of(ledger.key)))
            table, _, names = read_place(place, columns, None, schema.person, sources[-1], ingest.format)
            assert names is not None
            tables.append((table, names, split_by_person(names, ingest.split.test_fraction, ingest.split.seed)))
    parts = {}
    for part in ("train", "test"):
        chosen = [(table[of == part].reset_index(drop=True), names[of == part]) for table, names, of in tables]
        parts[part] = history_rows(schema, *(one for pair in chosen for one in pair))
    count = len(parts["train"].people)
    digest = digest_of_histories(schema, parts["train"], ledger.key)
    manifest = manifest_of(project.complete_params, ledger.id, digest, count, [source.digest() for source in sources])
    ledger.check_owner(manifest["identity"], digest, manifest["rows_digests"])  # the door does it too, but later
    people = [_marked(rows.people, part, np.arange(len(rows.people))) for part, rows in parts.items()]
    following = [_marked(rows.transitions, part, rows.numbers) for part, rows in parts.items()]
    write_private(pd.concat(people, ignore_index=True), paths.table, manifest)
    write_private(pd.concat(following, ignore_index=True), paths.next_table, manifest)


def _marked(table: pd.DataFrame, part: str, people: NDArray[np.int64]) -> pd.DataFrame:
    """Rows with their part, and with the number of each person."""
    return with_columns(table, {SPLIT: part, PERSON: people})


def written_histories(project: "Project") -> dict[str, HistoryRows]:
    """What :func:`write_histories` wrote, by part."""
    people, following = (read_private(path) for path in (project.paths.table, project.paths.next_table))

    def rows(table: pd.DataFrame, part: str) -> pd.DataFrame:
        return table[table[SPLIT] == part].drop(columns=[SPLIT, PERSON]).reset_index(drop=True)

    return {
        part: HistoryRows(
            rows(people, part), rows(following, part), following[PERSON][following[SPLIT] == part].to_numpy(np.int64)
        )
        for part in ("train", "test")
    }


def digest_of_histories(schema: HistorySchema, rows: HistoryRows, key: bytes) -> str:
    """Keyed digest of both row sets, with the number of rows that share a contribution; people in any order."""
    shared = np.bincount(rows.numbers, minlength=len(rows.people))[rows.numbers]
    parts = [unordered_digest([rows.people], schema.first_rows, key)]
    for share in range(1, schema.most):
        parts.append(unordered_digest([rows.transitions[shared == share]], schema.next_rows, key))
    return sha256_json(parts)
