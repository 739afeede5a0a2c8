"""What a stranger may write: no private text leaves, no text moves a terminal, and no bundle is believed or runs on."""

import json
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from harmful_texts import HARMFUL, PRIVATE, refuse_harmful_texts
from toys import schema_with

from likeness import Schema, Synthesizer
from likeness.bundle.files import Bundle, form, open_bundle, sums
from likeness.bundle.verdict import Untestable, Wrong, run_check
from likeness.bundle.write import data_card
from likeness.core.errors import ArtifactError, ParamsError, SchemaError
from likeness.core.text import escape_controls, excerpt
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods import METHODS
from likeness.methods.marginals.method import Marginals
from likeness.methods.saved_generator import SavedGenerator
from likeness.release.released import load_released, to_bytes
from likeness.report.statement import statement
from likeness.synthesizer.published import Published
from likeness.verify import verify
from likeness.verify.checks import CHECKS
from likeness.verify.outputs import _is_origin, _refuse_elsewhere, _trainers, training
from tests.campaigns.hostile_files import files_of, packed_zip

pytestmark = pytest.mark.long

Command = Callable[..., tuple[int, str, str]]
COLUMNS: dict[str, Any] = {name: {"kind": "categorical", "categories": list("abc")} for name in "xyz"}
VERDICT = "\nverdict: everything was recomputed and is right\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A bundle and a saved synthesizer of a frame with columns that no schema has, and of a schema that drops one."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR"):
            patch.setenv(name, str(folder / name))
        Ledger.create(locate())
        rows = pd.DataFrame(np.random.default_rng(0).choice(list("abc"), (300, 3)), columns=list("xyz"))
        rows = rows.assign(**{"Anna Muster": 1.5, "secret": "s"}).set_index(pd.RangeIndex(300, name="Berta Huber"))
        dropped = {"secret": {"kind": "drop", "reason": "HIV status of Carla"}}
        schema = Schema.from_dict(schema_with(COLUMNS).to_dict() | {"columns": COLUMNS | dropped}, "schema")
        settings = {"train": {"iterations": 20, "num_components": 5}}
        fitted = Synthesizer(schema=schema, population="toys", cap=(1.0, 1e-5), settings=settings).fit(rows)
        fitted.bundle(folder / "bundle", n=20)
        fitted.save(folder / "saved")
    yield folder


@pytest.fixture
def bundle(made: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return shutil.copytree(made / "bundle", tmp_path / "bundle")


def test_no_name_and_no_reason_leaves_that_the_schema_does_not_need(made: Path) -> None:
    for kind in ("bundle", "saved"):
        files = [path for path in (made / kind).rglob("*") if path.is_file()]
        assert len(files) > 8
        for path in files:
            for private in (b"Anna", b"Berta", b"Carla", b"secret"):
                assert private not in path.read_bytes(), (path, private)
    assert Synthesizer.load(made / "saved").frame_.dtypes.keys() == set("xyz")


def test_the_verifier_refuses_a_schema_with_a_dropped_column(bundle: Path) -> None:
    text = (bundle / "schema.yaml").read_text()
    (bundle / "schema.yaml").write_text(text.replace("columns:\n", "columns:\n  w: {kind: drop, reason: why}\n"))
    with pytest.raises(Wrong, match=r"schema\.yaml is not written as"):
        form(Bundle(bundle))


def schema_of(**changes: Any) -> Callable[[Any], object]:
    """Makes a schema, one part of which is a text."""

    def make(text: Any) -> object:
        filled = json.loads(json.dumps(changes).replace('"?"', json.dumps(text)))
        return Schema.from_dict({"name": "t", "source": "s", "task": "none", "columns": COLUMNS, **filled}, "s.yaml")

    return make


def column(**spec: Any) -> Callable[[Any], object]:
    return schema_of(columns={**COLUMNS, "w": {"kind": "categorical", "categories": ["a", "b"], **spec}})


def settings_of(**changes: Any) -> Callable[[Any], object]:
    return lambda text: Synthesizer(
        schema=schema_with(COLUMNS), **{name: text if value == "?" else value for name, value in changes.items()}
    ).params()


PLACES: dict[str, Callable[[Any], object]] = {
    "name": schema_of(name="?"),
    "source": schema_of(source="?"),
    "reason": schema_of(columns={**COLUMNS, "w": {"kind": "drop", "reason": "?"}}),
    "dropped": lambda text: schema_of(columns={**COLUMNS, text: {"kind": "drop", "reason": "r"}})(""),
    "column": lambda text: schema_of(columns={**COLUMNS, text: COLUMNS["x"]})(""),
    "category": column(categories=["a", "?"]),
    "other": column(categories="private", other="?"),
    "missing": column(missing_values=["?"]),
    "dtype": column(dtype="?"),
    "format": schema_of(columns={**COLUMNS, "w": {"kind": "date", "lower": "2000-01-01", "format": "?"}}),
    "rule": schema_of(rules=[{"if": {"x": "?"}, "then": {"y": "a"}}]),
    "key": lambda text: schema_of(**{text: 1})(""),
    "population": settings_of(population="?"),
    "unit": settings_of(unit="?"),
    "attempt": settings_of(attempt="?"),
    "unit_column": settings_of(unit_column="?", max_rows=2),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_no_text_that_is_published_is_long_or_moves_a_terminal(place: str) -> None:
    refuse_harmful_texts(PLACES[place])


def test_lists_of_a_schema_are_short() -> None:
    codes = [f"{place}: Anna" for place in range(51)]
    spikes = {"kind": "numeric", "lower": 0, "upper": 100, "spikes": [place / 7 for place in range(51)]}
    for spec in ({**COLUMNS["x"], "missing_values": codes}, spikes):
        with pytest.raises(SchemaError, match=r"has 51 .* List at most 50"):
            schema_of(columns={**COLUMNS, "w": spec})("")
    with pytest.raises(SchemaError, match=r"1,001 rules"):
        schema_of(rules=[{"if": {"x": "a"}, "then": {"y": "a"}}] * 1_001)("")


def test_texts_are_shown_as_one_line_without_controls() -> None:
    for sign in HARMFUL:
        assert excerpt(f"a{sign}{VERDICT}").isprintable() and escape_controls(f"a\n{sign}").count("\n") == 1
        assert escape_controls(f"a\n{sign}").replace("\n", "").isprintable()
    assert excerpt("größe 東京 العربية") == "größe 東京 العربية" and len(excerpt(PRIVATE)) < 250


@pytest.mark.process
@pytest.mark.parametrize("words", [("verify",), ("estimate", "--columns", "x"), ("sample", "--out", "out.csv")])
def test_no_command_prints_what_a_stranger_wrote_as_it_is(
    bundle: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    evil = f"\x1b[2J\u202e\n{VERDICT.strip()}\n\u202e"
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo(evil), "x")
    (bundle / evil).write_text("x")
    (tmp_path / f"{evil}.zip").write_text("no zip")
    for place in (tmp_path / "evil.zip", bundle, tmp_path / f"{evil}.zip"):
        name, *options = words
        code, out, err = command(name, str(place), *options)
        assert code in (1, 2), (code, out, err)
        assert (out + err).replace("\n", "").isprintable()
        assert not any(line.startswith(VERDICT.strip()) for line in (out + err).splitlines())


def test_a_text_inside_a_file_is_refused_or_shown_escaped(bundle: Path) -> None:
    evil = f"\x1b[2J{VERDICT}"
    for name in ("settings.json", "privacy.json", "plan.json"):
        content = json.loads((bundle / name).read_text())
        for changed in ({**content, evil: 1}, {key: evil for key in content}, evil, [evil]):
            (bundle / name).write_text(json.dumps(changed))
            said = [run_check(one, CHECKS[one], Bundle(bundle)) for one in ("form", "account", "plan", "statement")]
            assert False in {check.passed for check in said}
            assert all(check.text.isprintable() for check in said)
        (bundle / name).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    (bundle / "privacy.json").write_text("[" * 100_000)
    (bundle / "schema.yaml").write_text("a: " + "[" * 5_000)
    for name in ("account", "form"):
        assert run_check(name, CHECKS[name], Bundle(bundle)).passed is False


def test_a_bundle_that_fails_its_own_checksums_is_not_believed(made: Path, bundle: Path, tmp_path: Path) -> None:
    assert len(Published.read(bundle).released) > 1
    path = bundle / "released/embedding.safetensors"
    one = load_released(path)
    lie = replace(one, receipt=replace(one.receipt, noise_scale=one.receipt.noise_scale / 1_000))
    path.write_bytes(to_bytes(lie))
    with pytest.raises(ArtifactError, match=r"embedding\.safetensors was changed"):
        Published.read(bundle)
    (bundle / "params.yaml").write_text("method: marginals")  # no project: the generator is here
    with pytest.raises(ArtifactError, match=r"params\.yaml does not belong"):
        Published.read(bundle)
    saved = shutil.copytree(made / "saved", tmp_path / "saved")
    (saved / "released/embedding.safetensors").write_bytes(to_bytes(lie))
    for read in (Published.read, Synthesizer.load):
        with pytest.raises(ArtifactError, match=r"embedding\.safetensors was changed"):
            read(saved)


def test_a_padded_bundle_is_not_read(bundle: Path) -> None:
    path = bundle / "settings.json"
    path.write_text(path.read_text() + "\n")
    (bundle / "SHA256SUMS").write_text(sums(bundle))
    with pytest.raises(ArtifactError, match=r"settings\.json is not written as"):
        Published.read(bundle)


@pytest.mark.process
def test_checks_end_with_their_time(made: Path) -> None:
    said = verify(made / "bundle", retrain=True, most_minutes=0.0001)  # no check ends within 6 ms
    assert [check.name for check in said] == list(CHECKS) and {check.passed for check in said} == {None}
    assert any(
        "stopped after 0.0001 minutes. Allow more: likeness verify --most-minutes" in check.text for check in said
    )


@pytest.mark.process
def test_checks_are_made_in_a_process_of_their_own(made: Path, bundle: Path) -> None:
    assert {check.passed for check in verify(made / "bundle", retrain=True)} == {True}
    (bundle / "README.md").write_text("no README")
    assert {check.name for check in verify(bundle) if check.passed is False} == {"checksums", "statement"}


def long(made: Path, **train: int) -> Bundle:
    """The bundle with another training, as a forger's settings would say it."""
    changed = Bundle(made / "bundle", retrain=True, most_minutes=60)
    params = changed.project.params
    marginals = params.sections["marginals"]
    sections = {"marginals": {**marginals, "train": {**marginals["train"], **train}}}
    vars(changed)["project"] = replace(changed.project, params=replace(params, sections=sections))
    return changed


@pytest.mark.parametrize("train", [{"iterations": 10**8}, {"num_components": 10**12}])
def test_the_work_of_a_training_is_said_and_bounded(made: Path, train: dict[str, int]) -> None:
    ((name, value),) = train.items()
    with pytest.raises(Untestable, match=rf"{name} {value:,}.*min on one core\. Allow more: likeness"):
        training(long(made, **train))


@pytest.mark.parametrize(
    ("change", "possible"),
    [
        *(({}, True), ({"device": "cuda"}, False), ({"device": "mps"}, False)),
        *(({"numpy": None, "torch": "2.9.0"}, False), ({"note": "a"}, False)),
    ],
)
def test_an_origin_that_no_machine_has_is_wrong(made: Path, change: dict[str, Any], possible: bool) -> None:
    bundle = Bundle(made / "bundle")
    saved = SavedGenerator.load(bundle.folder / bundle.project.row_sets[0].generator)
    where = {key: value for key, value in {**saved.provenance["environment"], **change}.items() if value is not None}
    assert _is_origin(where, _trainers(bundle.project.params.method, saved)) == possible


@pytest.mark.parametrize(
    ("change", "possible"),
    [
        *(({}, True), ({"note": "a"}, False), ({"device": "cuda"}, False)),
        ({"device": "cuda", "gpu": "NVIDIA H100", "cuda": "12.8", "cudnn": "91002"}, True),
        ({"device": "cuda", "gpu": "NVIDIA H100", "cuda": "12.8", "cudnn": 91002}, False),
        ({"device": "cuda", "gpu": "NVIDIA H100", "cuda": "12.8", "cudnn": "91002", "torch": "2.9.0+cpu"}, False),
    ],
)
def test_an_origin_of_pytorch_is_that_of_one_build(change: dict[str, Any], possible: bool) -> None:
    origin = {"torch": "2.9.0", "device": "cpu", "processor": "x86_64 AVX2"}
    assert _is_origin({**origin, **change}) == possible


@pytest.mark.skipif("merf" not in METHODS, reason="no method that is here trains a network")
@pytest.mark.parametrize(
    ("where", "words"),
    [({"device": "mps"}, r"was trained on x86_64 AVX2 \(mps\), torch 2.9.0. This machine has no such")],
)
def test_a_training_that_cannot_be_made_here_is_not_tested(where: dict[str, Any], words: str) -> None:
    origin = {"torch": "2.9.0", "device": "cpu", "processor": "x86_64 AVX2", **where}
    with pytest.raises(Untestable, match=words):
        _refuse_elsewhere(METHODS["merf"](), origin)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OverflowError("Python int too large to convert to C ssize_t"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        ValueError("Maximum allowed dimension exceeded"),
    ],
)
def test_too_little_memory_is_not_tested_and_never_wrong(
    made: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(Marginals, "fit_generator", fails)
    said = run_check("training", training, Bundle(made / "bundle", retrain=True))
    assert said.passed is None and "more memory than there is" in said.text


def test_a_number_of_rows_that_nobody_asked_for_is_bounded(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = Published.read(made / "bundle")
    counts = published.released["class_counts"]
    published.released["class_counts"] = replace(counts, lattice=counts.lattice * 10**7)
    with pytest.raises(ParamsError, match="rows must be given: the noisy count is larger"):
        published.tables(None, 0, {})


def test_the_texts_for_people_show_markdown_and_html_as_they_are(made: Path) -> None:
    privacy = json.loads((made / "bundle/privacy.json").read_text())
    evil = "[x](http://y) <img src=z> `c` **b** | # h"
    schema = replace(schema_with(COLUMNS), name=evil, source=evil)
    for text in (data_card({**privacy, "unit": evil}, schema), statement({**privacy, "unit": evil, "identity": evil})):
        lines = [line for line in text.splitlines() if "img src" in line and not line.startswith("pretty_name")]
        assert len(lines) >= 1 and not any(
            sign in line for line in lines for sign in ("<img", "[x](", " **b**", " `c`")
        )


def test_no_byte_of_a_zip_is_free(made: Path, tmp_path: Path) -> None:
    """Empty blocks before a packed file, or bits behind its end, could hold a text; the files are as before."""
    folder = shutil.copytree(made / "bundle", tmp_path / "bundle")
    with open_bundle(packed_zip(folder, files_of(folder))) as unpacked:
        assert sums(unpacked) == sums(folder)

    def spelled(content: bytes) -> bytes:
        packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        return b"\0\0\0\xff\xff" * 8 + packer.compress(content) + packer.flush()

    with (
        pytest.raises(ArtifactError, match="or somebody packed it again"),
        open_bundle(packed_zip(folder, files_of(folder), spelled)),
    ):
        pass


@pytest.mark.long
def test_a_key_that_a_file_lacks_is_said_in_words(made: Path, tmp_path: Path) -> None:
    """A bundle of another version is wrong by file and key; no error of Python is shown."""
    shutil.copytree(made / "bundle", tmp_path / "bundle")
    checks = {
        "settings.json": "form",
        "plan.json": "form",
        "privacy.json": "account",
        "generator/spec.json": "generator",
    }
    for name, check in checks.items():
        text = (tmp_path / "bundle" / name).read_text()
        for key in json.loads(text):
            (tmp_path / "bundle" / name).write_text(json.dumps({k: v for k, v in json.loads(text).items() if k != key}))
            said = run_check(check, CHECKS[check], Bundle(tmp_path / "bundle"))
            assert "cannot be read" not in said.text, (name, key, said)
            assert said.passed is False or key == "relations", (name, key, said)  # that is for the generator's check
        (tmp_path / "bundle" / name).write_text(text)
