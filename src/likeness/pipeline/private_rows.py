"""The private rows of a run: whose they are, how they are encoded, and how the door opens them.

Every private table carries a *dataset manifest*: population, adjacency, unit of privacy, the number of rows where it is
public, and the digest of the encoding. It has keyed digests of the training rows and of the source's rows, and the
ledger whose key made them. Manifest and rows are one file. So no stage, run by hand or out of order, can charge one
population's rows to another.

If a person may have several rows, each row carries the number of its person, so that the door can count. The names of
the people stay in the source.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.config.params import FileFormat, Params
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import ArtifactError, DataError
from likeness.core.hashing import plain
from likeness.data.beside import with_columns
from likeness.data.encoding.encoder import Encoder
from likeness.data.private_tables import iter_private, num_groups, read_manifest
from likeness.data.schema.column import PERSON_COLUMN, SPLIT_COLUMN
from likeness.data.schema.schema import Schema
from likeness.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from numpy import int64, str_
    from numpy.typing import NDArray
    from pandas import DataFrame, Series

    from likeness.core.remote import Place
    from likeness.data.source.databases import Database
    from likeness.data.source.row_digests import Hashes, SourceDigest, TypedDigest
    from likeness.release.partition_selection import Partitions
    from likeness.release.records import Records
    from likeness.release.request import Dataset

SPLIT, PERSON = SPLIT_COLUMN, PERSON_COLUMN
BESIDE = [SPLIT, PERSON]  # columns of private tables that no schema has; the second only under ingest.unit
_SETTINGS = {"identity": "privacy.population", "adjacency": "privacy.adjacency", "unit": "ingest.unit"}
_MOST_ROWS, _MOST_CELLS = 65_536, 1 << 22  # of a chunk


def manifest_of(
    params: Params,
    ledger_id: str,
    digest: str,
    count: int,
    rows_digests: Sequence[str] = (),
    held_out: int | None = None,
) -> dict[str, Any]:
    """The manifest of an ingested table; it holds the number of training rows only where that is public.

    Args:
        params: the settings.
        ledger_id: of the ledger whose key made the digests.
        digest: of the training rows.
        count: number of training rows.
        rows_digests: of the rows of each table of the source.
        held_out: number of test rows; None: there is no split.

    Raises:
        DataError: the public number of rows is not that of the settings (the door insists on it too). Or there is no
            training row: noise on nothing would cost as much as noise on rows. Or the split leaves no test row, which
            a stage after the release needs.
    """
    for part, rows in (("training", count), ("test", held_out)):
        if rows == 0:
            raise DataError(
                f"ingest.source has no {part} rows. Nothing was spent. Give a source with more rows, or change "
                "ingest.split."
            )
    public = params.privacy.adjacency == Adjacency.REPLACE_ONE
    _check_number(params, count if public else None)
    return {
        "identity": params.privacy.population,
        "adjacency": params.privacy.adjacency,
        "ledger": ledger_id,
        "digest": digest,
        "rows_digests": [digest for digest in rows_digests if digest],
        "num_records": count if public else None,
        "unit": plain(params.ingest.unit),
    }


def dataset_of(params: Params, path: Path, ledger_id: str, more: Mapping[str, Any]) -> "tuple[Dataset, dict[str, Any]]":
    """Whose rows a private table holds, and its manifest.

    Args:
        params: the settings.
        path: of the table.
        ledger_id: of the ledger that is open.
        more: further facts that the manifest must have.

    Raises:
        ArtifactError: the manifest contradicts the settings or the ledger.
        DataError: ``privacy.num_records`` is not the number of training rows.
    """
    from likeness.release.request import Dataset

    manifest = read_manifest(path)
    expected = {
        "identity": params.privacy.population,
        "adjacency": params.privacy.adjacency,
        **more,
        "unit": plain(params.ingest.unit),
    }
    for name, value in expected.items():
        if manifest.get(name) != value:
            key = _SETTINGS.get(name, name)
            raise ArtifactError(f"{path} was written under another {key} than params.yaml has. Run: dvc repro")
    if manifest["ledger"] != ledger_id:
        raise ArtifactError(f"{path} was written with the key of another ledger. Run: dvc repro --force ingest")
    _check_number(params, manifest["num_records"])
    unit = None if manifest.get("unit") is None else PrivacyUnit.from_dict(manifest["unit"])
    rows = manifest["identity"], manifest["digest"], params.ledger.attempt, manifest.get("encoding", ""), unit
    return Dataset(*rows, tuple(manifest["rows_digests"])), manifest


def _check_number(params: Params, count: int | None) -> None:
    """Insist on the number of training rows of the settings; None where it is not public."""
    if count != params.privacy.num_records:
        raise DataError(
            f"params.yaml: privacy.num_records is {params.privacy.num_records}, the training table has {count} rows. "
            "Under replace_one the number of records is public and must be right. Correct it."
        )


def read_place(
    place: "Place | Database",
    schema: Schema,
    split: str | None,
    person: str | None,
    source: "SourceDigest | None",
    layout: FileFormat,
) -> "tuple[DataFrame, Series[str] | None, Series[str] | None]":
    """The typed rows of a file, a folder or a query, and the columns of split and person.

    Raises:
        DataError: the source is missing or does not fit the schema.
    """
    from likeness.data.source.databases import Database
    from likeness.data.source.files import read_source

    if isinstance(place, Database):
        return place.read(schema, split, person, source)
    return read_source(place, schema, split, person, source, layout)


def used_rows(
    params: Params,
    schema: Schema,
    table: "DataFrame",
    column: "Series[str] | None",
    persons: "Series[str] | None" = None,
) -> "tuple[DataFrame, Hashes]":
    """The typed rows that are used, each with its part and, under ``ingest.unit``, the number of its person.

    The second value are their hashes.

    Args:
        params: the settings.
        schema: the written schema.
        table: the typed rows of the source.
        column: the public split column, if there is one.
        persons: whose row each is, under ``ingest.unit``.
    """
    from likeness.data.source.contribution_bounding import bound_contributions, numbered
    from likeness.data.source.row_digests import row_hashes
    from likeness.data.source.split import split_by_person

    hashes, unit, split = row_hashes(table, schema), params.ingest.unit, params.ingest.split
    if persons is not None and column is None:
        parts = split_by_person(persons, split.test_fraction, split.seed)
    else:
        parts = split_of(params, len(table))(hashes, column)
    if persons is None or unit is None:
        return with_columns(table, {SPLIT: parts}), hashes
    keep = bound_contributions(hashes, persons, parts, unit.max_rows)
    used = with_columns(table[keep], {SPLIT: parts[keep], PERSON: numbered(persons[keep])})
    return used.reset_index(drop=True), hashes[keep]


def split_of(params: Params, count: int) -> "Callable[[Hashes, Series[str] | None], NDArray[str_]]":
    """The rule that fits the adjacency: from hashes and split column of each chunk in order to its parts.

    Args:
        params: the settings; a row is a person.
        count: number of rows of all chunks. It counts under ``replace_one`` without a split column only.
    """
    from likeness.data.source.split import SplitByContent, SplitByPosition, split_by_column

    split = params.ingest.split
    if split.column is not None:
        return lambda _, column: split_by_column(column, split.train, split.test)  # type: ignore[arg-type]
    if params.privacy.adjacency == Adjacency.REPLACE_ONE:
        by_position = SplitByPosition(count, split.test_fraction, split.seed)
        return lambda hashes, _: by_position.parts(hashes)
    by_content = SplitByContent(split.test_fraction, split.seed)
    return lambda hashes, _: by_content.parts(hashes)


def training_digest(params: Params, schema: Schema) -> "TypedDigest":
    """The digest of the training rows in a request, without rows yet.

    Under ``replace_one`` the places of rows fix their pairs, so the order belongs to the request. Else no sum depends
    on the order, and rows in any order are one request.
    """
    from likeness.data.source.row_digests import TypedDigest

    return TypedDigest(schema, ordered=params.privacy.adjacency == Adjacency.REPLACE_ONE)


@dataclass(frozen=True)
class EncodedRows:
    """The training rows of an encoded table: opened when called, here or in another process; holds no row.

    Attributes:
        path: of the table.
        manifest: of the table that is meant.
        schema: of the modeled columns.
        groups: its row groups; None: all.
    """

    path: Path
    manifest: Mapping[str, Any]
    schema: Schema
    groups: tuple[int, ...] | None = None

    def __call__(self) -> "Iterator[Records]":
        """The rows, in order.

        Raises:
            ArtifactError: the table has another manifest.
        """
        encoder = Encoder(self.schema)
        for chunk in iter_private(self.path, None, _chunk_rows(encoder), self.manifest, self.groups):
            yield _records(encoder, chunk[(chunk[SPLIT] == "train").to_numpy()])

    def parts(self, most: int) -> "list[EncodedRows]":
        """At most ``most`` parts with about equal numbers of row groups."""
        count = num_groups(self.path)
        most = min(most, count)
        cuts = [count * place // most for place in range(most + 1)] if most else []
        return [replace(self, groups=tuple(range(start, stop))) for start, stop in pairwise(cuts)] or [self]


@dataclass(frozen=True)
class ColumnPartitions:
    """The texts of a column in the training rows of an ingested table: opened when called; holds no row.

    Attributes:
        path: of the table.
        manifest: of the table that is meant.
    """

    path: Path
    manifest: Mapping[str, Any]
    column: str

    def __call__(self) -> "Iterator[Partitions]":
        """The texts, in order.

        Raises:
            ArtifactError: the table has another manifest.
        """
        persons = [] if self.manifest.get("unit") is None else [PERSON]
        for chunk in iter_private(self.path, [self.column, SPLIT, *persons], _MOST_ROWS, self.manifest):
            yield _texts(chunk[(chunk[SPLIT] == "train").to_numpy()], self.column)


def _chunk_rows(encoder: Encoder) -> int:
    return max(1, min(_MOST_ROWS, _MOST_CELLS // encoder.layout.width))


def _texts(rows: "DataFrame", column: str) -> "Partitions":
    from likeness.release.partition_selection import Partitions

    texts = rows[column].astype("object")
    persons = rows[PERSON].to_numpy() if PERSON in rows else None
    return Partitions(texts.where(texts.notna(), None).tolist(), persons)


def encoded_chunks(table: "DataFrame", schema: Schema, persons: "NDArray[int64] | None" = None) -> "Iterator[Records]":
    """Rows in memory as feature maps see them.

    Args:
        table: typed rows, private or synthetic.
        schema: of the table.
        persons: the number of each row's person, if a person may have several rows.
    """
    encoder = Encoder(schema)
    rows = _chunk_rows(encoder)
    for start in range(0, len(table), rows):
        codes = encoder.encode(table.iloc[start : start + rows])
        if persons is not None:
            codes = with_columns(codes, {PERSON: persons[start : start + rows]})
        yield _records(encoder, codes)


def _records(encoder: Encoder, codes: "DataFrame") -> "Records":
    from likeness.release.records import Records

    persons = codes[PERSON].to_numpy() if PERSON in codes else None
    return Records(encoder.expand(codes), encoder.labels(codes), persons)
