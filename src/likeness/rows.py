"""The private rows of a run: whose they are, how they are encoded, and how the door opens them.

Every private table carries a *card* with its rows: identity, adjacency, keyed digest of the training rows, their number
where it is public, and, once encoded, the digest of the encoding. A card and its rows are one file, so that no stage,
run by hand or out of order, can charge one people's rows to another.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from likeness.artifacts import ENCODED, TABLE, load_schema
from likeness.canonical import sha256_json
from likeness.data.column import SPLIT_COLUMN
from likeness.data.encoding import ENCODER_VERSION, Encoder
from likeness.data.schema import Schema
from likeness.data.tables import iter_private, read_card
from likeness.errors import ArtifactError, DataError
from likeness.params import Params
from likeness.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from numpy import str_
    from numpy.typing import NDArray
    from pandas import DataFrame, Series

    from likeness.release.door import Dataset
    from likeness.release.terms import Records

SPLIT = SPLIT_COLUMN
_CHUNK_ROWS = 65_536


def split_parts(params: Params, schema: Schema, table: "DataFrame", column: "Series[str] | None") -> "NDArray[str_]":
    """``train`` or ``test`` for each row, by the rule that fits the adjacency."""
    from likeness.data.split import split_by_column, split_by_content, split_by_position

    split = params.ingest.split
    if column is not None:
        return split_by_column(column, split.train, split.test)
    if params.privacy.adjacency == Adjacency.REPLACE_ONE:
        return split_by_position(len(table), split.test_fraction, split.seed)
    return split_by_content(table, schema, split.test_fraction, split.seed)


def card(params: Params, digest: str, num_records: int) -> dict[str, Any]:
    """What later stages may know of the training rows without opening them; their number only where it is public."""
    public = params.privacy.adjacency == Adjacency.REPLACE_ONE
    return {
        "identity": params.privacy.identity,
        "adjacency": params.privacy.adjacency,
        "digest": digest,
        "num_records": num_records if public else None,
    }


def encoded_card(schema: Schema) -> dict[str, Any]:
    """The card of the ingested table, with the encoding of this schema."""
    return {**read_card(TABLE), "encoding": encoding_digest(schema)}


def encoding_digest(schema: Schema) -> str:
    """Digest of all that shapes encoded rows: change a bound or the label, and it is another release."""
    columns = [{"name": column.name, **column.to_dict()} for column in schema.columns]
    label = schema.label if schema.task == "classification" else None
    return sha256_json({"version": ENCODER_VERSION, "columns": columns, "label": label})


def private_rows(params: Params) -> "tuple[Dataset, Callable[[], Iterator[Records]]]":
    """Whose rows, without opening them; and a function that opens them, called once the cost is on record.

    Raises:
        ArtifactError: the encoded table was made under another identity, adjacency or encoding than params.yaml says.
        DataError: ``privacy.num_records`` is not the number of training rows.
    """
    from likeness.release.door import Dataset
    from likeness.release.terms import Records

    schema, found = load_schema(params), read_card(ENCODED)
    expected = {
        "identity": params.privacy.identity,
        "adjacency": params.privacy.adjacency,
        "encoding": encoding_digest(schema),
    }
    for name, value in expected.items():
        if found.get(name) != value:
            raise ArtifactError(f"{ENCODED} was written under another {name} than params.yaml says. Run: dvc repro")
    if found["num_records"] != params.privacy.num_records:
        raise DataError(
            f"privacy.num_records is {params.privacy.num_records}, the training table has {found['num_records']} "
            "rows. Under replace_one the number of records is public and must be right; correct params.yaml."
        )

    def read() -> Iterator["Records"]:
        encoder = Encoder(schema)
        for chunk in iter_private(ENCODED, None, _CHUNK_ROWS, card=found):
            codes = chunk[(chunk[SPLIT] == "train").to_numpy()]
            yield Records(encoder.expand(codes), encoder.labels(codes))

    return Dataset(found["identity"], found["digest"], params.ledger.slot, found["encoding"]), read
