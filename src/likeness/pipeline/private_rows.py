"""The private rows of a run: whose they are, how they are encoded, and how the door opens them.

Every private table carries a *card* with its rows: identity, adjacency, keyed digests of the training rows and of the
rows of the source, the ledger whose key that is, their number where it is public, for whom they were bounded where a
person may have several, and, once encoded, the digest of the encoding. A card and its rows are one file, so that no
stage, run by hand or out of order, can charge one people's rows to another.

Where a person may have several rows, each carries the number of its person, so that the door can count for itself; the
names of the people stay in the source.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.config.params import Params
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import ArtifactError, DataError
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import encoding_digest
from likeness.data.private_tables import iter_private, num_groups, read_manifest
from likeness.data.schema.column import PERSON_COLUMN, SPLIT_COLUMN
from likeness.data.schema.schema import Schema
from likeness.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from numpy import str_
    from numpy.typing import NDArray
    from pandas import DataFrame, Series

    from likeness.data.source.row_digests import SourceDigest
    from likeness.ledger.ledger import Ledger
    from likeness.pipeline.project import Project
    from likeness.release.keys import Keys
    from likeness.release.records import Records
    from likeness.release.request import Dataset

SPLIT, PERSON = SPLIT_COLUMN, PERSON_COLUMN
BESIDE = [SPLIT, PERSON]  # what private tables have beside the schema's columns; the second not always
_MOST_ROWS, _MOST_CELLS = 65_536, 1 << 24  # of a chunk


def card(params: Params, ledger_id: str, digest: str, num_records: int, rows_digest: str = "") -> dict[str, Any]:
    """What later stages may know of the training rows without opening them; their number only where it is public.

    Args:
        digest: of the training rows.
        rows_digest: of the rows of the source.

    Raises:
        DataError: that public number is another than the settings say. (The door insists on it by itself.) Or there is
            no training row: noise on nothing would cost as much as noise on rows.
    """
    if not num_records:
        raise DataError("the training table has no rows, and nothing was spent. Give a source with training rows.")
    public = params.privacy.adjacency == Adjacency.REPLACE_ONE
    _check_number(params, num_records if public else None)
    return {
        "identity": params.privacy.population,
        "adjacency": params.privacy.adjacency,
        "ledger": ledger_id,
        "digest": digest,
        "rows_digest": rows_digest,
        "num_records": num_records if public else None,
        "unit": _unit(params),
    }


def encoded_card(ingested: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The card of the ingested table, with the encoding of this schema."""
    return {**ingested, "encoding": encoding_digest(schema)}


def dataset_of(params: Params, path: Path, ledger_id: str, more: Mapping[str, Any]) -> "tuple[Dataset, dict[str, Any]]":
    """Whose rows a private table holds, and its card.

    Args:
        params: the settings.
        path: of the table.
        ledger_id: of the ledger that is open.
        more: what the card must say beside what the settings say.

    Raises:
        ArtifactError: the card says otherwise.
        DataError: ``privacy.num_records`` is not the number of training rows.
    """
    from likeness.release.request import Dataset

    card = read_manifest(path)
    expected = {
        "identity": params.privacy.population,
        "adjacency": params.privacy.adjacency,
        **more,
        "unit": _unit(params),
    }
    for name, value in expected.items():
        if card.get(name) != value:
            raise ArtifactError(f"{path} was written under another {name} than params.yaml says. Run: dvc repro")
    if card["ledger"] != ledger_id:
        raise ArtifactError(f"{path} was written with the key of another ledger. Run: dvc repro --force ingest")
    _check_number(params, card["num_records"])
    unit = None if card.get("unit") is None else PrivacyUnit.from_dict(card["unit"])
    rows = card["identity"], card["digest"], params.ledger.attempt, card.get("encoding", ""), unit
    return Dataset(*rows, card.get("rows_digest", "")), card


def _check_number(params: Params, count: int | None) -> None:
    """The number of training rows, where it is public, is what the settings say."""
    if count != params.privacy.num_records:
        raise DataError(
            f"privacy.num_records is {params.privacy.num_records}, the training table has {count} rows. Under "
            "replace_one the number of records is public and must be right; correct params.yaml."
        )


def _unit(params: Params) -> dict[str, Any] | None:
    return None if params.ingest.unit is None else params.ingest.unit.to_dict()


def source_rows(
    project: "Project", source: "SourceDigest | None" = None
) -> "tuple[DataFrame, Series[str] | None, Series[str] | None]":
    """The typed rows of the source, its split column and whose row each is, where params.yaml names such columns.

    Args:
        source: takes up the rows with all columns of the source.

    Raises:
        DataError: there is no such source, or it does not fit the schema.
    """
    from likeness.data.source.files import read_people

    ingest, schema, database = project.params.ingest, project.written_schema, project.database
    columns = ingest.split.column, None if ingest.unit is None else ingest.unit.column
    if database is not None:
        return database.read(schema, *columns, source)
    return read_people(project.source, schema, *columns, source)


def used_rows(
    params: Params,
    schema: Schema,
    table: "DataFrame",
    column: "Series[str] | None",
    people: "Series[str] | None" = None,
) -> "DataFrame":
    """The typed rows that are used, each with its part and, where a person may have several, the number of its person.

    Args:
        column: the public split column, if there is one. people: whose row each is, where ``ingest.unit`` says so.
    """
    parts = split_parts(params, schema, table, column, people)
    if people is None:
        return table.assign(**{SPLIT: parts})
    from likeness.data.source.contribution_bounding import bound_contributions, numbered

    assert params.ingest.unit is not None
    keep = bound_contributions(table, schema, people, parts, params.ingest.unit.max_rows)
    return table[keep].assign(**{SPLIT: parts[keep], PERSON: numbered(people[keep])}).reset_index(drop=True)


def split_parts(
    params: Params,
    schema: Schema,
    table: "DataFrame",
    column: "Series[str] | None",
    people: "Series[str] | None" = None,
) -> "NDArray[str_]":
    """``train`` or ``test`` for each row, by the rule that fits the adjacency and the unit of privacy."""
    from likeness.data.source.split import split_by_column, split_by_content, split_by_person, split_by_position

    split = params.ingest.split
    if column is not None:
        return split_by_column(column, split.train, split.test)
    if people is not None:
        return split_by_person(people, split.test_fraction, split.seed)
    if params.privacy.adjacency == Adjacency.REPLACE_ONE:
        return split_by_position(len(table), split.test_fraction, split.seed)
    return split_by_content(table, schema, split.test_fraction, split.seed)


def digest_of_release(
    adjacency: str, ledger: "Ledger", ordered: Callable[[], str], unordered: Callable[[], str]
) -> str:
    """The digest under which the training rows are asked about.

    Under ``replace_one`` pairs of rows are fixed by their places, so that the order belongs to the question. Else no
    sum depends on it, and the same rows are the same question in any order. Versions that did not record the rows of
    the source knew the digest in order only: what they released stays the answer.
    """
    if adjacency == Adjacency.REPLACE_ONE:
        return ordered()
    reserved = (record.body for record in ledger.records() if record.kind == "reserve")
    older = {str(body["digest"]) for body in reserved if "rows_digest" not in body}
    digest = ordered() if older else ""
    return digest if digest in older else unordered()


@dataclass(frozen=True)
class EncodedRows:
    """The training rows of an encoded table: opened when called, here or in another process; holds no row.

    Attributes:
        path: of the table. card: of the table that is meant. groups: its row groups; None: all.
    """

    path: Path
    card: Mapping[str, Any]
    schema: Schema
    groups: tuple[int, ...] | None = None

    def __call__(self) -> "Iterator[Records]":
        """The rows, in order.

        Raises:
            ArtifactError: another table has taken the place of this one.
        """
        encoder = Encoder(self.schema)
        for chunk in iter_private(self.path, None, _chunk_rows(encoder), self.card, self.groups):
            yield _records(encoder, chunk[(chunk[SPLIT] == "train").to_numpy()])

    def parts(self, most: int) -> "list[EncodedRows]":
        """At most so many parts of about the same number of row groups."""
        count = num_groups(self.path)
        most = min(most, count)
        cuts = [count * place // most for place in range(most + 1)] if most else []
        return [replace(self, groups=tuple(range(start, stop))) for start, stop in pairwise(cuts)] or [self]


@dataclass(frozen=True)
class ColumnKeys:
    """The texts of a column in the training rows of an ingested table: opened when called; holds no row.

    Attributes:
        path: of the table. card: of the table that is meant.
    """

    path: Path
    card: Mapping[str, Any]
    column: str

    def __call__(self) -> "Iterator[Keys]":
        """The texts, in order.

        Raises:
            ArtifactError: another table has taken the place of this one.
        """
        people = [] if self.card.get("unit") is None else [PERSON]
        for chunk in iter_private(self.path, [self.column, SPLIT, *people], _MOST_ROWS, self.card):
            yield _keys(chunk[(chunk[SPLIT] == "train").to_numpy()], self.column)


def _chunk_rows(encoder: Encoder) -> int:
    return max(1, min(_MOST_ROWS, _MOST_CELLS // encoder.layout.width))


def _keys(rows: "DataFrame", column: str) -> "Keys":
    from likeness.release.keys import Keys

    texts = rows[column].astype("object")
    people = rows[PERSON].to_numpy() if PERSON in rows else None
    return Keys(texts.where(texts.notna(), None).tolist(), people)


def _records(encoder: Encoder, codes: "DataFrame") -> "Records":
    from likeness.release.records import Records

    people = codes[PERSON].to_numpy() if PERSON in codes else None
    return Records(encoder.expand(codes), encoder.labels(codes), people)
