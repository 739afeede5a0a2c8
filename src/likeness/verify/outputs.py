"""What was made from the releases: texts for people, generator, table."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.bundle import contents as names
from likeness.bundle.data_card import data_card
from likeness.data.schema.schema import Schema
from likeness.report.statement import statement
from likeness.verify.files import Bundle
from likeness.verify.verdict import MOST_WORDS, VERSION, Untestable, Wrong, require

if TYPE_CHECKING:
    from pandas import DataFrame, Series
    from pyarrow.parquet import ParquetFile
    from torch import Tensor

    from likeness.data.schema.column import Column
    from likeness.methods.saved_generator import SavedGenerator

_ROUNDING = 1e-3  # share of the cells of a column of categories that another processor may draw otherwise
_DIGITS = 1e-5  # of a column's range, by which another processor may draw a number otherwise
_ROWS = 4_000  # that two generators are compared by
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_MOST_CURATOR = 5 * MOST_WORDS
_ORIGIN = {
    "torch": VERSION,
    "device": "cpu|cuda|mps",
    "processor": r"[0-9A-Za-z_]{1,20} [0-9A-Z_ ]{1,20}",
    "processes": "[1-9][0-9]{0,5}",
}
_CHANCE = 0.9  # mean distance of drawn cells, to that of rows with nothing in common


def texts(bundle: Bundle) -> str:
    """The texts for people say what the account for machines says, to the letter.

    What the curator says in words stands in them, on one line each, and nobody can compute it: the check repeats it.
    """
    privacy, schema = bundle.json(names.PRIVACY), bundle.written_schema
    one_line = not any(_CONTROL.search(text) for text in [schema.name, schema.source, *_texts_in(privacy)])
    require(one_line, f"a text of {names.SETTINGS} or {names.SCHEMA} has more than one line")
    require(bundle.text(names.STATEMENT) == statement(privacy), f"{names.STATEMENT} is not that of {names.PRIVACY}")
    require(bundle.text(names.CARD) == data_card(privacy, schema), f"{names.CARD} is not that of {names.PRIVACY}")
    words = bundle.params.privacy.population, bundle.params.privacy.unit, schema.name, schema.source
    require(all(len(text) <= _MOST_CURATOR for text in words), "the curator has more words than a line")
    told = ", ".join(repr(text) for text in words)
    return f"statement and data card as written from the account; in words that only their writer answers for: {told}"


def _texts_in(value: Any) -> Iterator[str]:
    """Every text in a JSON value, keys too."""
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
    elif isinstance(value, str):
        yield value


def generator(bundle: Bundle) -> str:
    """All of its specification follows from settings and releases; its weights are those of the training check."""
    from likeness.methods.saved_generator import SavedGenerator

    saved = SavedGenerator.load(bundle.folder / "generator")
    spec = _untrained(bundle, saved).spec()
    require(saved.spec() == spec, "the generator is not one that these settings and releases give")
    where = saved.provenance["environment"]
    ours = set(where) == set(_ORIGIN) and all(re.fullmatch(form, str(where[key])) for key, form in _ORIGIN.items())
    require(ours, "the generator names another origin than a machine")
    return f"specification of {bundle.params.method}, computed again; weights: see training"


def _untrained(bundle: Bundle, saved: "SavedGenerator") -> "SavedGenerator":
    """The generator that the settings give, without memory for its weights."""
    import torch

    from likeness.methods.fit import untrained

    receipts, where = [one.receipt for one in bundle.answers], saved.provenance["environment"]
    with torch.device("meta"):
        return untrained(bundle.project.method, bundle.facts, bundle.auxiliary, receipts, where)


def training(bundle: Bundle) -> str:
    """The generator, trained again from the released values: the same weights, to the bit.

    Rounding depends on the processor. Hundreds of steps make other weights of another rounding, which are as good, and
    their difference has no small bound. Then the check says so and does not pass. A generator that names a machine like
    this one, and draws rows that have nothing in common with those of the one trained here, is wrong.
    """
    if not bundle.retrain:
        raise Untestable("not done: the weights of the generator are believed. Run: likeness verify --retrain")
    from likeness.methods.base import EMBEDDING
    from likeness.methods.fit import fit
    from likeness.methods.saved_generator import SavedGenerator
    from likeness.release.keys import STAGE as KEY_STAGE

    saved, train = SavedGenerator.load(bundle.folder / "generator"), bundle.params.train
    where = saved.provenance["environment"]
    embedding = next(one for one in bundle.answers if one.receipt.query == EMBEDDING)
    beside = [one for one in bundle.answers if one.receipt.stage == KEY_STAGE]
    how = "cpu", train.threads, train.precision, beside
    again, _ = fit(bundle.project.method, bundle.facts, bundle.auxiliary, embedding, *how)
    there, here = saved.network.state_dict(), again.network.state_dict()
    if all(_bits(there[name]) == _bits(value) for name, value in here.items()):
        return f"trained again: {sum(value.numel() for value in here.values()):,} weights, equal to the bit"
    drawn, same, other = (one.draw(_ROWS, seed)[0] for one, seed in ((saved, 0), (again, 0), (again, 1)))
    distance, chance = (abs(one - same).mean() for one in (drawn, other))
    alike = distance < _CHANCE * chance or where != again.provenance["environment"]
    require(alike, "the generator draws other rows than the one that was trained here")
    raise Untestable(
        f"trained again, and other weights came out. It was trained on {_told(where)}; here is "
        f"{_told(again.provenance['environment'])}. Processors round differently. Run it on one like that"
    )


def _bits(weights: "Tensor") -> bytes:
    """Weights as bytes: minus zero is another number than zero here."""
    return bytes(weights.contiguous().numpy().tobytes())


def _told(where: Mapping[str, Any]) -> str:
    return f"{where['processor']} ({where['device']}), torch {where['torch']}, processes: {where['processes']}"


def table(bundle: Bundle) -> str:
    """Both files of the table are what the generator draws with the public seed, to the byte."""
    from likeness.pipeline.synthetic_table import csv_bytes, parquet_bytes, sample_request

    privacy, sample = bundle.json(names.PRIVACY), bundle.params.sample
    columns, csv = len(bundle.schema.columns), bundle.folder / names.TABLE_CSV
    # A row of a CSV has a byte for each column at least: nothing is drawn that could not be in the file.
    require(sample.rows * columns <= csv.stat().st_size, f"{names.TABLE_CSV} has fewer rows than the account says")
    again = draw(bundle.folder, sample.rows, sample.seed, sample.where)
    files = {path: digest for path, digest in privacy["outputs"].items() if not path.endswith(".parquet")}
    parquet = (bundle.folder / names.TABLE).read_bytes()
    same_csv = csv.read_bytes() == csv_bytes(again)
    if same_csv and parquet == parquet_bytes(again, files, sample_request(sample)):
        return f"{len(again):,} rows, drawn again from the generator; both files equal to the byte"
    stated = _read(bundle, again, files)
    require(csv.read_bytes() == csv_bytes(stated), f"{names.TABLE_CSV} is not the table of {names.TABLE}")
    if same_csv:
        raise Untestable(f"drawn again, and every cell is equal; {names.TABLE} is of another pyarrow, byte by byte")
    different = sum(_differences(stated[column.name], again[column.name], column) for column in bundle.schema.columns)
    raise Untestable(
        f"drawn again; {different:,} of {again.size:,} cells differ, none by more than another processor's rounding. "
        "Run it on a machine like that of the training"
    )


def _read(bundle: Bundle, again: "DataFrame", files: Mapping[str, str]) -> "DataFrame":
    """The Parquet file, read only where its header is that of the table drawn again."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    from likeness.pipeline.synthetic_table import parquet_bytes, sample_request

    expected = pq.ParquetFile(pa.BufferReader(parquet_bytes(again, files, sample_request(bundle.params.sample))))
    with pq.ParquetFile(bundle.folder / names.TABLE) as file:
        stated = file.metadata
        groups = [stated.row_group(place) for place in range(stated.num_row_groups)]
        rows = stated.num_rows == sum(group.num_rows for group in groups) == len(again)
        same = rows and file.schema_arrow.equals(expected.schema_arrow)
        require(same, f"{names.TABLE} has other columns or rows than the table drawn again")
        columns = [group.column(place) for group in groups for place in range(group.num_columns)]
        packed = sum(column.total_compressed_size for column in columns)
        whole = packed + stated.serialized_size + 12 == (bundle.folder / names.TABLE).stat().st_size
        bare = all(not field.metadata for field in file.schema_arrow)
        same = whole and bare and _lineage(file) == _lineage(expected)
        require(same, f"{names.TABLE} carries more than the table")
    return pd.read_parquet(bundle.folder / names.TABLE)


def _lineage(file: "ParquetFile") -> dict[bytes, Any]:
    """What the header says beside the columns, but for versions of the software that wrote it."""
    found = dict(file.schema_arrow.metadata)
    pandas = json.loads(found[b"pandas"])
    versions = [str(pandas.pop("pandas_version")), str(pandas["creator"].pop("version"))]
    versions.append(str(file.metadata.created_by).removeprefix("parquet-cpp-arrow version "))
    require(all(re.fullmatch(VERSION, text) for text in versions), f"{names.TABLE} names software without a version")
    return {**found, b"pandas": pandas}


def _differences(stated: "Series[Any]", again: "Series[Any]", column: "Column") -> int:
    """How many cells differ: each only by rounding, numbers in their last digits, categories to a neighbor, seldom.

    Raises:
        Wrong: a difference that rounding does not explain.
    """
    import numpy as np

    if column.is_categorical:
        if list(stated.cat.categories) != list(again.cat.categories):
            raise Wrong(f"column '{column.name}' has other categories than the schema")
        codes, others = stated.cat.codes.to_numpy(int), again.cat.codes.to_numpy(int)
        distance, most = np.abs(codes - others).astype(float), 1.0
        rare = int((distance > 0).sum()) <= max(1, _ROUNDING * len(codes))
    else:
        numbers, drawn = (column.number.numbers(values, column) for values in (stated, again))
        missing = np.isnan(numbers) != np.isnan(drawn)
        distance, rare = np.where(missing, np.inf, np.abs(np.nan_to_num(numbers - drawn))), True
        low, high = column.bounds
        most = max(_DIGITS * (high - low), float(column.is_whole))
        if int(missing.sum()) <= max(1, _ROUNDING * len(numbers)):
            distance[missing] = most
    if not rare or (distance > most).any():
        raise Wrong(f"column '{column.name}': cells are drawn otherwise here, and not by rounding")
    return int((distance > 0).sum())


def draw(folder: Path, rows: int, seed: int, where: Mapping[str, Any]) -> "DataFrame":
    """Rows from the generator of a bundle, or of a project's folder, as a typed pandas DataFrame."""
    from likeness.core.paths import ProjectPaths
    from likeness.methods.saved_generator import SavedGenerator
    from likeness.pipeline import synthetic_table as synthetic
    from likeness.pipeline.project import Project
    from likeness.release.keys import STAGE, completed
    from likeness.release.released import load_released

    generator, paths = folder / "generator", ProjectPaths(folder)
    if not generator.exists() and paths.params.exists():
        generator, schema = paths.generator, Project.load(folder).schema
    else:
        schema = Schema.load(folder / names.SCHEMA, aliases=False)
        if schema.open_columns:
            files = sorted((folder / names.RELEASED).glob(f"{STAGE}_*.safetensors"))
            schema = completed(schema, [load_released(path) for path in files])
    return synthetic.draw(SavedGenerator.load(generator), schema, rows, seed, where)
