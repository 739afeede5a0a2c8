"""The results of the releases: texts for people, generator, table."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeness.bundle import contents as names
from likeness.bundle.data_card import data_card
from likeness.config.params import Sample
from likeness.core.errors import ReleaseError
from likeness.data.schema.schema import Schema
from likeness.report.statement import statement
from likeness.verify.files import Bundle
from likeness.verify.verdict import MOST_WORDS, VERSION, Untestable, Wrong, require

if TYPE_CHECKING:
    from pandas import DataFrame, Series
    from pyarrow.parquet import ParquetFile

    from likeness.data.schema.column import Column
    from likeness.methods.base import Context
    from likeness.methods.saved_generator import SavedGenerator
    from likeness.release.released import Released

_ROUNDING = 1e-3  # share of a column's categories that may differ on another processor
_DIGITS = 1e-5  # part of a column's range by which a number may differ on another processor
_ROWS = 4_000  # rows for the comparison of two generators
_WRITER = re.compile(r"parquet-cpp-arrow version ([0-9]{1,4}(?:\.[0-9]{1,4}){0,3})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_MOST_CURATOR = 5 * MOST_WORDS
_ORIGIN = {
    "device": "cpu|cuda|mps",
    "processor": r"[0-9A-Za-z_]{1,20} [0-9A-Za-z_ ]{1,20}",
    "processes": "[1-9][0-9]{0,5}",
}
_TRAINERS = ("numpy", "torch")
"""What a generator may be trained with; its origin names the version of one."""
_SAVED = "synthesizer.json"
_CHANCE = 0.9  # largest mean distance of drawn cells, as a part of that of independent rows


def texts(bundle: Bundle) -> str:
    """The texts for people are those that the account gives, to the letter.

    The curator's words in them stand on one line each. No check can compute them, so this one repeats them.
    """
    privacy, schema = bundle.json(names.PRIVACY), bundle.written_schema
    one_line = not any(_CONTROL.search(text) for text in [schema.name, schema.source, *_texts_in(privacy)])
    require(one_line, f"a text of {names.SETTINGS} or {names.SCHEMA} has several lines")
    require(bundle.text(names.STATEMENT) == statement(privacy), f"{names.STATEMENT} is not that of {names.PRIVACY}")
    require(bundle.text(names.CARD) == data_card(privacy, schema), f"{names.CARD} is not that of {names.PRIVACY}")
    words = bundle.params.privacy.population, bundle.params.privacy.unit, schema.name, schema.source
    short = all(len(text) <= _MOST_CURATOR for text in words)
    require(short, f"a text of {names.SETTINGS} or {names.SCHEMA} is too long")
    listed = ", ".join(repr(text) for text in words)
    return f"statement and data card are those of the account; words that only their author can vouch for: {listed}"


def _texts_in(value: Any) -> Iterator[str]:
    """All texts in a JSON value, keys too."""
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
    elif isinstance(value, str):
        yield value


def generator(bundle: Bundle) -> str:
    """The generator's specification follows from settings and releases. The training check covers its weights."""
    from likeness.methods.saved_generator import SavedGenerator

    saved = SavedGenerator.load(bundle.folder / "generator")
    spec = _untrained(bundle, saved).spec()
    require(saved.spec() == spec, "the generator is not the one that these settings and releases give")
    where = saved.provenance["environment"]
    ours = any(_is_origin(where, {name: VERSION, **_ORIGIN}) for name in _TRAINERS)
    require(ours, "the generator has an origin that is not a machine")
    return f"specification of {bundle.params.method}, computed again; weights: see training"


def _untrained(bundle: Bundle, saved: "SavedGenerator") -> "SavedGenerator":
    """The generator that the settings give, without memory for its weights."""
    from likeness.methods.fit import with_provenance

    receipts, where = [one.receipt for one in bundle.training_answers], saved.provenance["environment"]
    method = bundle.project.method
    blueprint = method.blueprint(bundle.facts, bundle.auxiliary)
    return replace(with_provenance(blueprint, method, bundle.auxiliary, receipts, where), sampler=saved.sampler)


def _is_origin(where: Mapping[str, Any], forms: Mapping[str, str]) -> bool:
    """Whether an origin has exactly these facts, in their forms."""
    return set(where) == set(forms) and all(re.fullmatch(form, str(where[key])) for key, form in forms.items())


def training(bundle: Bundle) -> str:
    """A second training from the released values gives equal weights, to the bit.

    Rounding depends on the processor. Over hundreds of steps another rounding gives other weights, which are as good,
    and no small bound holds for their difference. Then the check says so and does not pass. A generator is wrong if it
    names a machine like this one and draws rows that are unrelated to those of the second training.
    """
    if not bundle.retrain:
        raise Untestable("not done: the weights of the generator are believed. Run: likeness verify --retrain")
    from likeness.generators.base import Compute
    from likeness.methods.base import EMBEDDING
    from likeness.methods.fit import fit
    from likeness.methods.saved_generator import SavedGenerator
    from likeness.release.partition_selection import STAGE as SELECTION_STAGE

    saved, train = SavedGenerator.load(bundle.folder / "generator"), bundle.params.train
    where = saved.provenance["environment"]
    embedding = next(one for one in bundle.answers if one.receipt.query == EMBEDDING)
    beside = [one for one in bundle.answers if one.receipt.stage == SELECTION_STAGE]
    compute = Compute("cpu", train.threads, train.precision)
    again, _ = fit(bundle.project.method, bundle.facts, bundle.auxiliary, embedding, compute, beside)
    there, here = saved.network.arrays(), again.network.arrays()
    if all(there[name].tobytes() == array.tobytes() for name, array in here.items()):  # minus zero is not zero
        return f"trained again: {sum(array.size for array in here.values()):,} weights, equal to the bit"
    drawn, same, other = (one.draw(_ROWS, seed)[0] for one, seed in ((saved, 0), (again, 0), (again, 1)))
    distance, chance = (abs(one - same).mean() for one in (drawn, other))
    alike = distance < _CHANCE * chance or where != again.provenance["environment"]
    require(alike, "the generator draws other rows than the one trained here")
    raise Untestable(
        f"trained again: other weights. The generator was trained on {_machine(where)}; here is "
        f"{_machine(again.provenance['environment'])}. Processors round differently: run the check on one like that"
    )


def _machine(where: Mapping[str, Any]) -> str:
    trainer = next(f"{name} {where[name]}" for name in _TRAINERS if name in where)
    return f"{where['processor']} ({where['device']}), {trainer}, processes: {where['processes']}"


def written_by(path: Path) -> str:
    """The version of pyarrow that a Parquet file names. Its author may have written anything there."""
    from pyarrow.parquet import read_metadata

    stated = _WRITER.fullmatch(read_metadata(path).created_by or "")
    return f"pyarrow {stated[1]}" if stated else "another writer"


def table(bundle: Bundle) -> str:
    """Both files of the table are the generator's draw with the public seed, to the byte."""
    from likeness.data.encoding.dtypes import in_dtypes, typed_again
    from likeness.methods.saved_generator import SAMPLER, SavedGenerator
    from likeness.pipeline.synthetic_table import csv_bytes, parquet_bytes, sample_request

    privacy, sample = bundle.json(names.PRIVACY), bundle.sample
    columns, csv = len(bundle.schema.columns), bundle.folder / names.TABLE_CSV
    # A row of a CSV has at least a byte a column: never draw more rows than the file can hold.
    require(
        sample.rows * columns <= csv.stat().st_size, f"{names.TABLE_CSV} has fewer rows than {names.SETTINGS} states"
    )
    again = draw(bundle.folder, sample.rows, sample.seed, sample.where)
    files = {path: digest for path, digest in privacy["outputs"].items() if not path.endswith(".parquet")}
    parquet = (bundle.folder / names.TABLE).read_bytes()
    same_csv = csv.read_bytes() == csv_bytes(again)
    if same_csv and parquet == parquet_bytes(again, files, sample_request(sample)):
        return f"{len(again):,} rows, drawn again from the generator; both files equal to the byte"
    stated, again = _read(bundle, again, files), typed_again(again, bundle.schema)
    same_tables = csv.read_bytes() == csv_bytes(in_dtypes(stated, bundle.schema))
    require(same_tables, f"{names.TABLE_CSV} is not the table of {names.TABLE}")
    # Any bundle may say that: nothing here could tell such a table from private rows.
    ours = SavedGenerator.load(bundle.folder / "generator").sampler == SAMPLER
    require(
        ours, "the generator names an earlier sampler, so the table cannot be drawn again. Draw it with this version"
    )
    if same_csv:
        writer = written_by(bundle.folder / names.TABLE)
        raise Untestable(
            f"drawn again: all cells are equal. {names.TABLE} has the bytes of {writer}. Run the check with it"
        )
    different = sum(_differences(stated[column.name], again[column.name], column) for column in bundle.schema.columns)
    raise Untestable(
        f"drawn again: {different:,} of {again.size:,} cells differ, none by more than the rounding of another "
        "processor. Run the check on a machine like that of the training"
    )


def rules(bundle: Bundle) -> str:
    """No row of the table breaks a rule of the schema."""
    from likeness.data.rules.tables import contradictions
    from likeness.pipeline.synthetic_table import read_synthetic

    schema = bundle.schema
    if not schema.rules:
        return "the schema has none"
    broken = contradictions(read_synthetic(bundle.folder / names.TABLE, schema), schema)
    worst = max(broken, key=lambda text: broken[text])
    require(not broken[worst], f"{broken[worst]:,} rows of {names.TABLE} break the rule {worst}")
    return f"{len(broken)} of the schema; no row of the table breaks one"


def card(bundle: Bundle) -> str:
    """The card is about this table: the questions, computed again from the table, are those that were answered."""
    from likeness.data.encoding.layout import encoding_digest
    from likeness.data.rules.tables import to_model
    from likeness.pipeline.card import STAGE, card_queries
    from likeness.pipeline.synthetic_table import read_synthetic
    from likeness.release.request import check_answer

    answers = {one.receipt.query: one for one in bundle.answers if one.receipt.stage == STAGE}
    settings = bundle.params.evaluate.card
    if settings is None:
        return "the settings ask for no card"
    rows = to_model(read_synthetic(bundle.folder / names.TABLE, bundle.schema), bundle.schema)
    queries = card_queries(settings, bundle.plan, bundle.facts, bundle.auxiliary, rows)
    require(
        sorted(answers) == sorted(query.name for query in queries), "the card answers other queries than the plan's"
    )
    for query in queries:
        try:
            check_answer(query, encoding_digest(bundle.schema), answers[query.name], query.name)
        except ReleaseError:
            raise Wrong(f"{query.name}: answers a question about another table than {names.TABLE}") from None
    return f"{len(queries)} queries, made again from {names.TABLE}, are those that were answered"


def _read(bundle: Bundle, again: "DataFrame", files: Mapping[str, str]) -> "DataFrame":
    """The typed rows of the Parquet file, only if its header is that of the table drawn again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from likeness.pipeline.synthetic_table import parquet_bytes, read_synthetic, sample_request

    expected = pq.ParquetFile(pa.BufferReader(parquet_bytes(again, files, sample_request(bundle.sample))))
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
    return read_synthetic(bundle.folder / names.TABLE, bundle.schema)


def _lineage(file: "ParquetFile") -> dict[bytes, Any]:
    """Content of the header beside the columns, without versions of the software that wrote it."""
    header = dict(file.schema_arrow.metadata)
    pandas = json.loads(header[b"pandas"])
    versions = [str(pandas.pop("pandas_version")), str(pandas["creator"].pop("version"))]
    versions.append(str(file.metadata.created_by).removeprefix("parquet-cpp-arrow version "))
    require(all(re.fullmatch(VERSION, text) for text in versions), f"{names.TABLE} names software without a version")
    return {**header, b"pandas": pandas}


def _differences(stated: "Series[Any]", again: "Series[Any]", column: "Column") -> int:
    """Number of cells that differ by rounding: numbers in their last digits, few categories to a neighbor.

    Raises:
        Wrong: rounding does not explain a difference.
    """
    import numpy as np

    if column.is_categorical:
        if list(stated.cat.categories) != list(again.cat.categories):
            raise Wrong(f"{names.TABLE}: column '{column.name}' has other categories than the schema")
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
        raise Wrong(f"{names.TABLE}: column '{column.name}' differs from the draw here by more than rounding")
    return int((distance > 0).sum())


def draw(folder: Path, rows: int | None, seed: int, where: Mapping[str, Any]) -> "DataFrame":
    """Draw rows from the generator of a bundle, or of a project's folder, as a typed pandas DataFrame.

    Args:
        folder: of a bundle, a saved synthesizer or a project.
        rows: how many; None: as many as the noisy count of training rows, or the public number, says.
        seed: public.
        where: which rows, see :func:`likeness.pipeline.synthetic_table.conditions`.
    """
    from likeness.methods.saved_generator import SavedGenerator
    from likeness.pipeline import synthetic_table as synthetic

    context, released, generator = public_facts(folder)
    if rows is None:
        rows = synthetic.numbered(Sample(), context, released).rows
    return synthetic.draw(SavedGenerator.load(generator), context.schema, rows, seed, where, _dtypes(folder))


def draw_replicates(
    folder: Path, rows: int | None, seed: int, where: Mapping[str, Any], count: int
) -> "Iterator[DataFrame]":
    """Draw tables as :func:`draw` does, each from a model that is fitted to a new draw of the noise.

    Args:
        folder: of a bundle, a saved synthesizer or a project.
        rows: of each table.
        seed: public.
        where: which rows.
        count: how many tables.
    """
    from likeness.bundle.settings import params_of
    from likeness.core.paths import read_json
    from likeness.generators.base import Compute
    from likeness.methods import method_from
    from likeness.methods.replicates import replicates
    from likeness.methods.saved_generator import SavedGenerator
    from likeness.pipeline import synthetic_table as synthetic
    from likeness.pipeline.project import Project
    from likeness.synthesizer import Synthesizer

    context, released, generator = public_facts(folder)
    if (folder / names.SETTINGS).exists():
        params = params_of(read_json(folder / names.SETTINGS))
    elif (folder / _SAVED).exists():
        params = Synthesizer.load(folder).params()
    else:
        params = Project.load(folder).params
    if rows is None:
        rows = synthetic.numbered(Sample(), context, released).rows
    compute = Compute(params.train.device, params.train.threads, params.train.precision)
    saved = SavedGenerator.load(generator)
    models = replicates(method_from(params).at(folder), context, released, saved, compute, count, seed)
    for model, rows_seed in models:
        yield synthetic.draw(model, context.schema, rows, rows_seed, where, _dtypes(folder))


def _dtypes(folder: Path) -> dict[str, str] | None:
    """What a saved synthesizer remembers of its frame."""
    from likeness.core.paths import read_json

    settings = folder / _SAVED
    return read_json(settings).get("frame", {}).get("dtypes") if settings.exists() else None


def public_facts(folder: Path) -> "tuple[Context, dict[str, Released], Path]":
    """Schema, adjacency and number of records, releases by query, and the place of the generator.

    Args:
        folder: of a bundle, a saved synthesizer or a project.
    """
    from likeness.core.paths import ProjectPaths, read_json
    from likeness.methods.base import Context
    from likeness.pipeline.project import Project
    from likeness.release.partition_selection import STAGE, completed
    from likeness.release.released import load_folder, load_released

    generator, paths = folder / "generator", ProjectPaths(folder)
    if not generator.exists() and paths.params.exists():
        releases = [load_released(path) for path in paths.released_files if path.exists()]
        project = Project.load(folder)
        context = replace(project.context, schema=project.schema)
        return context, {one.receipt.query: one for one in releases}, paths.generator
    schema, released = Schema.load(folder / names.SCHEMA, aliases=False), load_folder(folder / names.RELEASED)
    if schema.open_columns:
        schema = completed(schema, [one for one in released.values() if one.receipt.stage == STAGE])
    facts = read_json(folder / names.PRIVACY)
    return Context(schema, facts["adjacency"], facts["num_records"], 0), released, generator
