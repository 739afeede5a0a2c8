"""The results of the releases: texts for people, generator, table."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.parquet import read_metadata

from likeness.bundle import contents as names
from likeness.bundle.files import Bundle
from likeness.bundle.verdict import MOST_WORDS, VERSION, Untestable, Wrong, require
from likeness.bundle.write import data_card
from likeness.core.errors import ParamsError
from likeness.core.messages import LOG
from likeness.core.text import fault_of, texts_in
from likeness.data.encoding.dtypes import to_dtypes, typed_again
from likeness.generators.base import Compute
from likeness.methods import METHODS
from likeness.methods.fit import fit_all, with_provenance
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline.consistency import auxiliary_of
from likeness.pipeline.project import Project
from likeness.pipeline.synthetic_table import parquet_bytes, read_synthetic
from likeness.pipeline.written_tables import origin_of, plain_file, synthetic_tables, table_request
from likeness.preflight.forecast import training_seconds
from likeness.report.statement import statement

if TYPE_CHECKING:
    from pandas import DataFrame, Series
    from pyarrow.parquet import ParquetFile

    from likeness.data.schema.column import Column
    from likeness.methods.base import Method
    from likeness.methods.row_set import RowSet

_ROUNDING = 1e-3  # share of a column's categories that may differ on another processor
_DIGITS = 1e-5  # part of a column's range by which a number may differ on another processor
_ROWS = 4_000  # rows for the comparison of two generators
_WRITER = re.compile(r"parquet-cpp-arrow version ([0-9]{1,4}(?:\.[0-9]{1,4}){0,3})")
_MOST_TEXT = 5 * MOST_WORDS  # a rule or a note repeats words of the schema
_ORIGIN = {"device": "cpu|cuda|mps", "processor": r"[0-9A-Za-z_]{1,20} [0-9A-Za-z_ ]{1,20}"}
_CARD = {"gpu": r"[0-9A-Za-z_ ]{1,40}", "cuda": VERSION, "cudnn": "[0-9]{1,9}"}
_TRAINERS = ("numpy", "torch")
"""What a generator may be trained with; its origin names the version of one."""
_CHANCE = 0.9  # largest mean distance of drawn cells, as a part of that of independent rows


def texts(bundle: Bundle) -> str:
    """The texts for people are those that the account gives, to the letter.

    The curator's words in them stand on one line each. No check can compute them, so this one repeats them.
    """
    privacy, schema = bundle.json(names.PRIVACY), bundle.project.written_schema
    short = not any(fault_of(text, _MOST_TEXT) for _, text in texts_in(privacy))
    require(short, f"a text of {names.PRIVACY} has several lines, or is too long")
    require(bundle.text(names.STATEMENT) == statement(privacy), f"{names.STATEMENT} is not that of {names.PRIVACY}")
    require(bundle.text(names.CARD) == data_card(privacy, schema), f"{names.CARD} is not that of {names.PRIVACY}")
    phrases = bundle.project.params.privacy.population, bundle.project.params.privacy.unit, schema.name, schema.source
    listed = ", ".join(repr(text) for text in phrases)
    rest = sum(len(text) for _, text in texts_in(bundle.project.public_schema.to_dict()))
    return (
        f"statement and data card are those of the account; words that only their author can vouch for: {listed}, "
        f"and {rest:,} characters of names and categories in {names.SCHEMA}"
    )


def generator(bundle: Bundle) -> str:
    """The generator's specification follows from settings and releases. The training check covers its weights."""
    generators = [SavedGenerator.load(bundle.folder / rows.generator) for rows in bundle.project.row_sets]
    for rows, saved in zip(bundle.project.row_sets, generators, strict=True):
        spec = _blueprint(bundle, rows, saved).spec()
        require(saved.spec() == spec, "the generator is not the one that these settings and releases give")
        where = saved.provenance["environment"]
        is_origin = _is_origin(where, _trainers(bundle.project.params.method, saved))
        require(is_origin, "the generator has an origin that is not a machine")
        device = where["device"] if "torch" in where else bundle.project.params.train.device
        same = bundle.project.params.train.device in ("auto", device)
        require(same, f"the generator was trained on another device than {names.SETTINGS} asks for")
    return f"specification of {bundle.project.params.method}, computed again; weights: see training"


def _blueprint(bundle: Bundle, rows: "RowSet", saved: "SavedGenerator") -> "SavedGenerator":
    """The generator that the settings give, without memory for its weights."""
    receipts, where = [answer.receipt for answer in bundle.answers], saved.provenance["environment"]
    method = bundle.project.method
    auxiliary = rows.auxiliary(auxiliary_of(bundle.answers))
    blueprint = method.blueprint(rows.context, auxiliary)
    return with_provenance(blueprint, method, auxiliary, receipts, where)


def _trainers(method: str, saved: "SavedGenerator") -> tuple[str, ...]:
    """Name what may have trained a generator: PyTorch its own modules, numpy any other; a plug-in's either."""
    modules = {base.__module__ for base in type(saved.network).__mro__}
    return _TRAINERS if method not in METHODS else ("torch",) if "torch.nn.modules.module" in modules else ("numpy",)


def _is_origin(where: Mapping[str, Any], trainers: Collection[str] = _TRAINERS) -> bool:
    """Tell whether a training by one of the trainers can have exactly these facts.

    numpy trains on the CPU, and a PyTorch for CPUs has no GPU.
    """
    trainer, device = next((name for name in trainers if name in where), ""), where.get("device")
    texts = {trainer: VERSION, **_ORIGIN, **(_CARD if device == "cuda" else {})}
    if set(where) != set(texts):
        return False
    if not all(isinstance(where[key], str) and re.fullmatch(form, where[key]) for key, form in texts.items()):
        return False
    if trainer == "numpy":
        return device == "cpu"
    return not (device == "cuda" and where[trainer].endswith("+cpu"))


def training(bundle: Bundle) -> str:
    """A second training from the released values gives equal weights, to the bit.

    Rounding depends on the processor. Over hundreds of steps another rounding gives other weights, which are as good,
    and no small bound holds for their difference. Then the check says so and does not pass. A generator is wrong if it
    names a machine like this one and draws rows that are unrelated to those of the second training.
    """
    if not bundle.retrain:
        raise Untestable("not done: the weights of the generator are believed. Run: likeness verify --retrain")

    where = SavedGenerator.load(bundle.folder / bundle.project.row_sets[0].generator).provenance["environment"]
    _refuse_elsewhere(bundle.project.method, where)
    minutes, work = _work(bundle)
    LOG.info("training again: %s", work)
    if minutes > bundle.most_minutes:
        raise Untestable(f"not done: {work}. Allow more: likeness verify --retrain --most-minutes {minutes + 1:.0f}")
    train, weights = bundle.project.params.train, 0
    compute = Compute(where["device"], train.threads, train.precision)
    trained, _ = fit_all(bundle.project.method, bundle.project.row_sets, bundle.answers, compute)
    for rows, again in zip(bundle.project.row_sets, trained, strict=True):
        weights += _trained_again(SavedGenerator.load(bundle.folder / rows.generator), again)
    return f"trained again: {weights:,} weights, equal to the bit"


def _refuse_elsewhere(method: "Method", where: Mapping[str, Any]) -> None:
    """Say that a training cannot be made again here, because this machine lacks the device."""
    try:
        if where["device"] != "cpu":
            method.check_device(where["device"])
    except ParamsError:
        machine = _machine(where)
        raise Untestable(f"not done: the generator was trained on {machine}. This machine has no such") from None


def _work(bundle: Bundle) -> tuple[float, str]:
    """The forecast minutes of a second training, and the work in words: its numbers are those of a stranger."""
    seconds, recipe = 0.0, bundle.project.method
    train: Any = vars(recipe)["train"]
    coordinates = {answer.receipt.query: answer.lattice.size for answer in bundle.answers}
    for rows in bundle.project.row_sets:
        ours = [name for name in coordinates if name.startswith(rows.prefix)]
        sizes = {name.removeprefix(rows.prefix): coordinates[name] for name in ours}
        seconds += training_seconds(recipe, rows.context, sizes) or 0.0
    steps = recipe.training
    seconds *= steps.iterations / max(1, steps.usual_iterations)  # a stranger's numbers may need them all
    listed = "".join(f"{name} {value:,}, " for name, value in _sizes(asdict(train)))
    return seconds / 60, f"{listed}about {max(1, seconds / 60):,.0f} min on one core"


def _sizes(train: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Whole numbers of a method's training, by name."""
    for name, value in train.items():
        if isinstance(value, Mapping):
            yield from _sizes(value)
        elif type(value) is int and value:
            yield name, value


def _trained_again(saved: "SavedGenerator", again: "SavedGenerator") -> int:
    """The number of weights of a generator that equals another to the bit.

    Other weights leave the check undone. They are wrong if they draw unrelated rows, on a machine like this one.
    """
    where, present = saved.provenance["environment"], again.provenance["environment"]
    stated, computed = saved.network.arrays(), again.network.arrays()
    require(set(where) == set(present), "the generator names another trainer than its method's")
    if all(stated[name].tobytes() == array.tobytes() for name, array in computed.items()):  # minus zero is not zero
        return sum(array.size for array in computed.values())
    drawn, same, other = (each.draw(_ROWS, seed)[0] for each, seed in ((saved, 0), (again, 0), (again, 1)))
    distance, chance = (abs(rows - same).mean() for rows in (drawn, other))
    alike = distance < _CHANCE * chance or where != present
    require(alike, "the generator draws other rows than the one trained here")
    machines = f"The generator was trained on {_machine(where)}; here is {_machine(present)}"
    remedy = "Processors round differently: run the check on one like that"
    raise Untestable(f"trained again: other weights. {machines}. {remedy}")


def _machine(where: Mapping[str, Any]) -> str:
    trainer = next(f"{name} {where[name]}" for name in _TRAINERS if name in where)
    device = " ".join(str(where[name]) for name in ("device", *_CARD) if name in where)
    return f"{where['processor']} ({device}), {trainer}"


def written_by(path: Path) -> str:
    """The version of pyarrow that a Parquet file names. Its author may have written anything there."""
    stated = _WRITER.fullmatch(read_metadata(path).created_by or "")
    return f"pyarrow {stated[1]}" if stated else "another writer"


def table(bundle: Bundle) -> str:
    """Both files of each table are the generator's draw with the public seed, to the byte."""
    project = bundle.project
    sample, model = project.sample, project.model
    stem, schema = next(iter(model.tables.items()))
    # A row has at least a byte a column: never draw more rows than the file can hold.
    plain = plain_file(project, stem)
    enough = sample.rows * len(schema.columns) <= plain.stat().st_size
    require(enough, f"{plain.name} has fewer rows than {names.SETTINGS} states")
    drawn = model.draw(model.load_generators(project.paths.generator), *sample)
    others, different = [], 0
    for stem, again in drawn.items():
        content = parquet_bytes(again, origin_of(project, stem), table_request(project))
        if _has_plain(project, stem, again) and content == project.output(f"{stem}.parquet").read_bytes():
            continue
        different += _count_rounded_cells(project, stem, again, content)
        others.append(f"{stem}.parquet")
    if not others:
        counts = ", ".join(f"{len(again):,} rows" for again in drawn.values())
        return f"{counts}, drawn again from the generator; all files equal to the byte"
    if not different:
        writer = written_by(project.output(others[0]))
        fault = f"drawn again: all cells are equal. {others[0]} has the bytes of {writer}"
        raise Untestable(f"{fault}. Run the check with it")
    cells = sum(again.size for again in drawn.values())
    raise Untestable(
        f"drawn again: {different:,} of {cells:,} cells differ, none by more than the rounding of another "
        "processor. Run the check on a machine like that of the training"
    )


def _has_plain(project: Project, stem: str, table: "DataFrame") -> bool:
    """Tell whether the file beside Parquet has the bytes of a table, as the settings say that its source is written."""
    content = project.model.plain_bytes(table, stem, project.params.ingest.format)
    return content == plain_file(project, stem).read_bytes()


def _count_rounded_cells(project: Project, stem: str, drawn: "DataFrame", content: bytes) -> int:
    """Number of cells of a table that differ from the draw by rounding. ``content`` is the draw as Parquet."""
    schema, name = project.model.tables[stem], f"{stem}.parquet"
    stated, again = _read(project, stem, content), typed_again(drawn, schema)
    same = _has_plain(project, stem, to_dtypes(stated, schema))
    require(same, f"{plain_file(project, stem).name} is not the table of {name}")
    if _has_plain(project, stem, drawn):
        return 0
    key = project.model.key
    require(key is None or stated[key].equals(again[key]), f"{name} has other keys than the table drawn again")
    return sum(_differences(stated[column.name], again[column.name], column, name) for column in schema.columns)


def rules(bundle: Bundle) -> str:
    """No row of the table breaks a rule of the schema."""
    model = bundle.project.model
    if model.key is None and not bundle.project.schema.rules:  # linked tables have rules of their own
        return "the schema has none"
    broken = model.count_violations(synthetic_tables(bundle.project))
    worst = max(broken, key=lambda text: broken[text])
    files = ", ".join(f"{stem}.parquet" for stem in model.tables)
    require(not broken[worst], f"{broken[worst]:,} rows of {files} break the rule {worst}")
    return f"{len(broken)} of the schema; no row of the table breaks one"


def _read(project: Project, stem: str, again: bytes) -> "DataFrame":
    """The typed rows of the Parquet file, only if its header is that of the table drawn again."""
    expected, path = pq.ParquetFile(pa.BufferReader(again)), project.output(f"{stem}.parquet")
    with pq.ParquetFile(path) as file:
        stated = file.metadata
        groups = [stated.row_group(index) for index in range(stated.num_row_groups)]
        rows = stated.num_rows == sum(group.num_rows for group in groups) == expected.metadata.num_rows
        same = rows and file.schema_arrow.equals(expected.schema_arrow)
        require(same, f"{path.name} has other columns or rows than the table drawn again")
        columns = [group.column(index) for group in groups for index in range(group.num_columns)]
        packed = sum(column.total_compressed_size for column in columns)
        whole = packed + stated.serialized_size + 12 == path.stat().st_size
        bare = all(not field.metadata for field in file.schema_arrow)
        same = whole and bare and _lineage(file, path.name) == _lineage(expected, path.name)
        require(same, f"{path.name} carries more than the table")
    return read_synthetic(path, project.model.tables[stem])


def _lineage(file: "ParquetFile", name: str) -> dict[bytes, Any]:
    """Content of the header beside the columns, without versions of the software that wrote it."""
    header = dict(file.schema_arrow.metadata)
    pandas = json.loads(header[b"pandas"])
    versions = [str(pandas.pop("pandas_version")), str(pandas["creator"].pop("version"))]
    versions.append(str(file.metadata.created_by).removeprefix("parquet-cpp-arrow version "))
    require(all(re.fullmatch(VERSION, text) for text in versions), f"{name} names software without a version")
    return {**header, b"pandas": pandas}


def _differences(stated: "Series[Any]", again: "Series[Any]", column: "Column", name: str) -> int:
    """Number of cells that differ by rounding: numbers in their last digits, few categories to a neighbor."""
    if column.is_categorical:
        if list(stated.cat.categories) != list(again.cat.categories):
            raise Wrong(f"{name}: column '{column.name}' has other categories than the schema")
        codes, others = stated.cat.codes.to_numpy(int), again.cat.codes.to_numpy(int)
        distance, most = np.abs(codes - others).astype(float), 1.0
        rare = int((distance > 0).sum()) <= max(1, _ROUNDING * len(codes))
    else:
        numbers, drawn = (column.numbers(values) for values in (stated, again))
        missing = np.isnan(numbers) != np.isnan(drawn)
        distance, rare = np.where(missing, np.inf, np.abs(np.nan_to_num(numbers - drawn))), True
        low, high = column.bounds
        most = max(_DIGITS * (high - low), float(column.is_integral))
        if most == 1 == column.is_integral:  # the next whole number is another value, as another category is
            rare = int((distance > 0).sum()) <= max(1, _ROUNDING * len(numbers))
        if int(missing.sum()) <= max(1, _ROUNDING * len(numbers)):
            distance[missing] = most
    if not rare or (distance > most).any():
        raise Wrong(f"{name}: column '{column.name}' differs from the draw here by more than rounding")
    return int((distance > 0).sum())
