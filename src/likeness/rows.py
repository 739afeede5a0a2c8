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

import numpy as np

from likeness.artifacts import ENCODED, TABLE, database, load_schema, open_schema, source_path
from likeness.bounds import Unit
from likeness.data.column import PERSON_COLUMN, SPLIT_COLUMN
from likeness.data.encoding import Encoder
from likeness.data.layout import encoding_digest
from likeness.data.schema import Schema
from likeness.data.tables import iter_private, num_groups, read_card, text_columns
from likeness.errors import ArtifactError, DataError
from likeness.params import Params
from likeness.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from numpy import str_
    from numpy.typing import NDArray
    from pandas import DataFrame, Series

    from likeness.data.digests import SourceDigest
    from likeness.privacy.ledger import Ledger
    from likeness.release.keys import Keys
    from likeness.release.request import Dataset
    from likeness.release.terms import Records

SPLIT, PERSON = SPLIT_COLUMN, PERSON_COLUMN
BESIDE = [SPLIT, PERSON]  # what private tables have beside the schema's columns; the second not always
_MOST_ROWS, _MOST_CELLS = 65_536, 1 << 24  # of a chunk


def source_rows(
    params: Params, schema: Schema, source: "SourceDigest | None" = None
) -> "tuple[DataFrame, Series[str] | None, Series[str] | None]":
    """The typed rows of the source, its split column and whose row each is, where params.yaml names such columns.

    Args:
        source: takes up the rows with all columns of the source.

    Raises:
        DataError: there is no such source, or it does not fit the schema.
    """
    from likeness.data.sources import read_people

    ingest, found = params.ingest, database(params)
    columns = ingest.split.column, None if ingest.unit is None else ingest.unit.column
    if found is not None:
        return found.read(schema, *columns, source)
    return read_people(source_path(params), schema, *columns, source)


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
    from likeness.data.people import bounded, numbered

    assert params.ingest.unit is not None
    keep = bounded(table, schema, people, parts, params.ingest.unit.max_rows)
    return table[keep].assign(**{SPLIT: parts[keep], PERSON: numbered(people[keep])}).reset_index(drop=True)


def split_parts(
    params: Params,
    schema: Schema,
    table: "DataFrame",
    column: "Series[str] | None",
    people: "Series[str] | None" = None,
) -> "NDArray[str_]":
    """``train`` or ``test`` for each row, by the rule that fits the adjacency and the unit of privacy."""
    from likeness.data.people import split_by_person
    from likeness.data.split import split_by_column, split_by_content, split_by_position

    split = params.ingest.split
    if column is not None:
        return split_by_column(column, split.train, split.test)
    if people is not None:
        return split_by_person(people, split.test_fraction, split.seed)
    if params.privacy.adjacency == Adjacency.REPLACE_ONE:
        return split_by_position(len(table), split.test_fraction, split.seed)
    return split_by_content(table, schema, split.test_fraction, split.seed)


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
        "identity": params.privacy.identity,
        "adjacency": params.privacy.adjacency,
        "ledger": ledger_id,
        "digest": digest,
        "rows_digest": rows_digest,
        "num_records": num_records if public else None,
        "unit": _unit(params),
    }


def digest_of_release(
    params: Params, ledger: "Ledger", ordered: Callable[[], str], unordered: Callable[[], str]
) -> str:
    """The digest under which the training rows are asked about.

    Under ``replace_one`` pairs of rows are fixed by their places, so that the order belongs to the question. Else no
    sum depends on it, and the same rows are the same question in any order. Versions that did not record the rows of
    the source knew the digest in order only: what they released stays the answer.
    """
    if params.privacy.adjacency == Adjacency.REPLACE_ONE:
        return ordered()
    reserved = (record.body for record in ledger.records() if record.kind == "reserve")
    older = {str(body["digest"]) for body in reserved if "rows_digest" not in body}
    digest = ordered() if older else ""
    return digest if digest in older else unordered()


def encoded_card(ingested: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The card of the ingested table, with the encoding of this schema."""
    return {**ingested, "encoding": encoding_digest(schema)}


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


def private_rows(params: Params, ledger_id: str) -> "tuple[Dataset, EncodedRows]":
    """Whose rows, without opening them; and a function that opens them, called once the cost is on record.

    Raises:
        ArtifactError: the encoded table was made under another identity, adjacency, unit of privacy or encoding than
            params.yaml says, or with the key of another ledger.
        DataError: ``privacy.num_records`` is not the number of training rows.
    """

    schema = load_schema(params)
    dataset, found = _dataset(params, ENCODED, ledger_id, {"encoding": encoding_digest(schema)})
    return dataset, EncodedRows(ENCODED.absolute(), found, schema)


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


def private_keys(params: Params, ledger_id: str) -> "tuple[Dataset, Callable[[str], ColumnKeys]]":
    """The same for the ingested table, whose open columns hold texts: whose rows, and what opens a column.

    Raises:
        ArtifactError: as :func:`private_rows`; or the table was typed by another schema.
        DataError: ``privacy.num_records`` is not the number of training rows.
    """
    schema = open_schema(params)
    dataset, found = _dataset(params, TABLE, ledger_id, {})
    if not {column.name for column in schema.open_columns} <= set(text_columns(TABLE)):
        raise ArtifactError(f"{TABLE} was written under another schema than params.yaml says. Run: dvc repro")
    return replace(dataset, encoding=encoding_digest(schema)), lambda name: ColumnKeys(TABLE.absolute(), found, name)


def _dataset(params: Params, path: Path, ledger_id: str, more: Mapping[str, Any]) -> "tuple[Dataset, dict[str, Any]]":
    """Whose rows a private table holds, and its card; refused where params.yaml says otherwise."""
    from likeness.release.request import Dataset

    found = read_card(path)
    expected = {
        "identity": params.privacy.identity,
        "adjacency": params.privacy.adjacency,
        **more,
        "unit": _unit(params),
    }
    for name, value in expected.items():
        if found.get(name) != value:
            raise ArtifactError(f"{path} was written under another {name} than params.yaml says. Run: dvc repro")
    if found["ledger"] != ledger_id:
        raise ArtifactError(f"{path} was written with the key of another ledger. Run: dvc repro --force ingest")
    _check_number(params, found["num_records"])
    unit = None if found.get("unit") is None else Unit.from_dict(found["unit"])
    rows = found["identity"], found["digest"], params.ledger.slot, found.get("encoding", ""), unit
    return Dataset(*rows, found.get("rows_digest", "")), found


@dataclass(frozen=True)
class RowsInMemory:
    """Typed training rows that are in memory, no more of a person than ``ingest.unit`` says.

    Attributes:
        table: typed with ``schema``, which may have open columns. people: the number of each row's person, if any.
        dataset: whose rows; its encoding is that of ``schema``.
    """

    table: "DataFrame"
    schema: Schema
    people: "NDArray[np.int64] | None"
    dataset: "Dataset"

    def keys(self, column: str) -> "Callable[[], Iterator[Keys]]":
        """What opens an open column."""

        def read() -> "Iterator[Keys]":
            own = self.table[[column]]
            yield _keys(own if self.people is None else own.assign(**{PERSON: self.people}), column)

        return read

    def records(self, schema: Schema) -> "tuple[Dataset, Callable[[], Iterator[Records]]]":
        """The rows as feature maps see them, and whose they are.

        Args:
            schema: the same, with the released categories of its open columns.
        """
        from likeness.data.open_columns import closed

        table = closed(self.table, self.schema, schema)

        def read() -> "Iterator[Records]":
            encoder = Encoder(schema)
            rows = _chunk_rows(encoder)
            for start in range(0, len(table), rows):
                codes = encoder.encode(table.iloc[start : start + rows])
                if self.people is not None:
                    codes = codes.assign(**{PERSON: self.people[start : start + rows]})
                yield _records(encoder, codes)

        return replace(self.dataset, encoding=encoding_digest(schema)), read


def in_memory(
    params: Params,
    schema: Schema,
    train: "DataFrame",
    ledger: "Ledger",
    people: "Series[str] | None" = None,
    rows_digest: str = "",
) -> RowsInMemory:
    """The same for typed training rows that are in memory: the same digest, so the same releases.

    Args:
        train: typed with ``schema``, every row a training row.
        people: whose row each is, where a person may have several: no more of them are used than ``ingest.unit`` says.
        rows_digest: of the rows as they were given, with all columns.

    Raises:
        DataError: ``privacy.num_records`` is not the number of rows, or there is none.
    """
    from likeness.data.digests import typed_digest, unordered_digest
    from likeness.release.request import Dataset

    numbers = None
    if people is not None:
        from likeness.data.people import bounded, numbered

        assert params.ingest.unit is not None
        keep = bounded(train, schema, people, np.full(len(train), "train"), params.ingest.unit.max_rows)
        train, numbers = train[keep], numbered(people[keep])
    digest = digest_of_release(
        params,
        ledger,
        lambda: typed_digest(train, schema, ledger.key),
        lambda: unordered_digest([train], schema, ledger.key),
    )
    own = encoded_card(card(params, ledger.id, digest, len(train), rows_digest), schema)
    rows = own["identity"], digest, params.ledger.slot, own["encoding"], params.ingest.unit
    dataset = Dataset(*rows, rows_digest)
    return RowsInMemory(train, schema, numbers, dataset)


def rows_in_memory(
    params: Params, schema: Schema, train: "DataFrame", ledger: "Ledger", people: "Series[str] | None" = None
) -> "tuple[Dataset, Callable[[], Iterator[Records]]]":
    """Whose rows, and what opens them, by a schema without open columns; see :func:`in_memory`."""
    return in_memory(params, schema, train, ledger, people).records(schema)


def _check_number(params: Params, found: int | None) -> None:
    """The number of training rows, where it is public, is what the settings say."""
    if found != params.privacy.num_records:
        raise DataError(
            f"privacy.num_records is {params.privacy.num_records}, the training table has {found} rows. Under "
            "replace_one the number of records is public and must be right; correct params.yaml."
        )


def _chunk_rows(encoder: Encoder) -> int:
    return max(1, min(_MOST_ROWS, _MOST_CELLS // encoder.layout.width))


def _keys(rows: "DataFrame", column: str) -> "Keys":
    from likeness.release.keys import Keys

    texts = rows[column].astype("object")
    people = rows[PERSON].to_numpy() if PERSON in rows else None
    return Keys(texts.where(texts.notna(), None).tolist(), people)


def _records(encoder: Encoder, codes: "DataFrame") -> "Records":
    from likeness.release.terms import Records

    people = codes[PERSON].to_numpy() if PERSON in codes else None
    return Records(encoder.expand(codes), encoder.labels(codes), people)


def _unit(params: Params) -> dict[str, Any] | None:
    return None if params.ingest.unit is None else params.ingest.unit.to_dict()
