"""The private rows of a run: whose they are, how they are encoded, and how the door opens them.

Every private table carries a *card* with its rows: identity, adjacency, keyed digest of the training rows, the ledger
whose key that is, their number where it is public, and, once encoded, the digest of the encoding. A card and its rows
are one file, so that no stage, run by hand or out of order, can charge one people's rows to another.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from likeness.artifacts import ENCODED, load_schema
from likeness.data.column import SPLIT_COLUMN
from likeness.data.encoding import Encoder
from likeness.data.layout import encoding_digest
from likeness.data.schema import Schema
from likeness.data.tables import iter_private, read_card
from likeness.errors import ArtifactError, DataError
from likeness.params import Params
from likeness.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from numpy import str_
    from numpy.typing import NDArray
    from pandas import DataFrame, Series

    from likeness.release.request import Dataset
    from likeness.release.terms import Records

SPLIT = SPLIT_COLUMN
_MOST_ROWS, _MOST_CELLS = 65_536, 1 << 24  # of a chunk


def split_parts(params: Params, schema: Schema, table: "DataFrame", column: "Series[str] | None") -> "NDArray[str_]":
    """``train`` or ``test`` for each row, by the rule that fits the adjacency."""
    from likeness.data.split import split_by_column, split_by_content, split_by_position

    split = params.ingest.split
    if column is not None:
        return split_by_column(column, split.train, split.test)
    if params.privacy.adjacency == Adjacency.REPLACE_ONE:
        return split_by_position(len(table), split.test_fraction, split.seed)
    return split_by_content(table, schema, split.test_fraction, split.seed)


def card(params: Params, ledger_id: str, digest: str, num_records: int) -> dict[str, Any]:
    """What later stages may know of the training rows without opening them; their number only where it is public."""
    public = params.privacy.adjacency == Adjacency.REPLACE_ONE
    return {
        "identity": params.privacy.identity,
        "adjacency": params.privacy.adjacency,
        "ledger": ledger_id,
        "digest": digest,
        "num_records": num_records if public else None,
    }


def encoded_card(ingested: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The card of the ingested table, with the encoding of this schema."""
    return {**ingested, "encoding": encoding_digest(schema)}


def private_rows(params: Params, ledger_id: str) -> "tuple[Dataset, Callable[[], Iterator[Records]]]":
    """Whose rows, without opening them; and a function that opens them, called once the cost is on record.

    Raises:
        ArtifactError: the encoded table was made under another identity, adjacency or encoding than params.yaml says,
            or with the key of another ledger.
        DataError: ``privacy.num_records`` is not the number of training rows.
    """
    from likeness.release.request import Dataset
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
    if found["ledger"] != ledger_id:
        raise ArtifactError(f"{ENCODED} was written with the key of another ledger. Run: dvc repro --force ingest")
    if found["num_records"] != params.privacy.num_records:
        raise DataError(
            f"privacy.num_records is {params.privacy.num_records}, the training table has {found['num_records']} "
            "rows. Under replace_one the number of records is public and must be right; correct params.yaml."
        )

    def read() -> Iterator["Records"]:
        encoder = Encoder(schema)
        rows = max(1, min(_MOST_ROWS, _MOST_CELLS // encoder.layout.width))
        for chunk in iter_private(ENCODED, None, rows, card=found):
            codes = chunk[(chunk[SPLIT] == "train").to_numpy()]
            yield Records(encoder.expand(codes), encoder.labels(codes))

    return Dataset(found["identity"], found["digest"], params.ledger.slot, found["encoding"]), read
