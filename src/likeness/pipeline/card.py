"""Whose rows a private table holds."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.config.params import Params
from likeness.core.bounds import PrivacyUnit
from likeness.core.errors import ArtifactError, DataError
from likeness.data.encoding.layout import encoding_digest
from likeness.data.private_tables import read_manifest
from likeness.data.schema.schema import Schema
from likeness.privacy.adjacency import Adjacency

if TYPE_CHECKING:
    from likeness.release.request import Dataset


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


def _dataset(params: Params, path: Path, ledger_id: str, more: Mapping[str, Any]) -> "tuple[Dataset, dict[str, Any]]":
    """Whose rows a private table holds, and its card; refused where params.yaml says otherwise."""
    from likeness.release.request import Dataset

    found = read_manifest(path)
    expected = {
        "identity": params.privacy.population,
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
    unit = None if found.get("unit") is None else PrivacyUnit.from_dict(found["unit"])
    rows = found["identity"], found["digest"], params.ledger.attempt, found.get("encoding", ""), unit
    return Dataset(*rows, found.get("rows_digest", "")), found


def _check_number(params: Params, found: int | None) -> None:
    """The number of training rows, where it is public, is what the settings say."""
    if found != params.privacy.num_records:
        raise DataError(
            f"privacy.num_records is {params.privacy.num_records}, the training table has {found} rows. Under "
            "replace_one the number of records is public and must be right; correct params.yaml."
        )


def _unit(params: Params) -> dict[str, Any] | None:
    return None if params.ingest.unit is None else params.ingest.unit.to_dict()
