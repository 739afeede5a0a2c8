"""Folders as a source: a refusal names the source and no file in it, and names that records decide give no order."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image
from toys import schema_with

from likeness.core.errors import DataError, LikenessError, ParamsError
from likeness.core.hashing import keyed_digest
from likeness.core.remote import RemotePath
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_source
from likeness.data.source.header import guesses_of, header_of
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.datasets import MODELS
from likeness.pipeline.project import Project
from likeness.preflight.faults import examine
from likeness.stages import ingest

ROOT = Path(__file__).parents[2]
JANE = "Jane Doe 1971-02-03"  # the name of a file may be a person's
TABLE = schema_with({"v": {"kind": "integer", "lower": 0, "upper": 99}}, name="t")
LABEL = {"year": {"kind": "categorical", "categories": ["2023", "2024"]}}
IMAGES = schema_with(LABEL, "year", name="t", image={"shape": [2, 2]})
NO_LABEL = schema_with({}, name="t", image={"shape": [2, 2]})


def images(folder: Path, depth: int = 1) -> Path:
    """Images in folders by class, or by part and class, or in none."""
    for place in range(4):
        names = (["train", "test"][place % 2], ["2023", "2024"][place // 2])[2 - depth :]
        inner = folder.joinpath(*names)
        inner.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((2, 2), place, np.uint8)).save(inner / f"{JANE} {place}.png")
    return folder


def parquet(folder: Path, cells: Any = ("1", "2"), folders: str = "") -> Path:
    """A good file, and one of Jane."""
    for name, values in (("Adam", ["1"]), (JANE, cells)):
        inner = folder / folders / f"{name}.parquet"
        inner.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame({"v": list(values)}).to_parquet(inner)
    return folder


def damaged(folder: Path) -> Path:
    (parquet(folder) / f"{JANE}.parquet").write_bytes(b"PAR1")
    return folder


def other_columns(folder: Path) -> Path:
    pd.DataFrame({"w": [1]}).to_parquet(parquet(folder) / f"{JANE}.parquet")
    return folder


def with_pipe(folder: Path) -> Path:
    parquet(folder, folders=f"{JANE}=1")
    os.mkfifo(folder / f"{JANE}=1" / f"{JANE}.parquet.tmp")
    return folder


def pictures(folder: Path) -> Path:
    """A column of bytes that are no image."""
    folder.mkdir()
    pd.DataFrame({"picture": [b"\0"], "year": ["2023"]}).to_parquet(folder / f"{JANE}.parquet")
    return folder


def refusal(action: Callable[[], Any]) -> str:
    with pytest.raises(DataError) as caught:
        action()
    return str(caught.value)


WITH_IMAGES = "images" in MODELS
READ_AS_IMAGES = [
    (pictures, IMAGES, "column 'picture' has an image"),
    (lambda folder: images(folder, 2), IMAGES, "must lie in folders as"),
] * WITH_IMAGES


@pytest.mark.parametrize(
    ("make", "schema", "words"),
    [
        (lambda folder: parquet(folder, ["HIV"]), TABLE, "column 'v' has a value that is not a number"),
        (lambda folder: parquet(folder, [[1]]), TABLE, "column 'v'"),
        (other_columns, TABLE, "column 'v' is missing"),
        (damaged, TABLE, "cannot be read as a table"),
        (with_pipe, TABLE, "holds an item that is neither a file nor a folder"),
        *READ_AS_IMAGES,
    ],
)
def test_a_refusal_names_the_source_and_no_file_in_it(
    make: Callable[[Path], Path], schema: Schema, words: str, tmp_path: Path
) -> None:
    told = refusal(lambda: read_source(make(tmp_path / "clinic"), schema))
    assert told.startswith("clinic: ") and words in told and "Jane" not in told


@pytest.mark.parametrize(("make", "schema"), [*[(images, IMAGES)] * WITH_IMAGES, (parquet, TABLE)])
@pytest.mark.parametrize("what", ["open", "iterdir", "is_dir", "is_file"])
def test_what_the_system_refuses_in_a_folder_has_the_name_of_the_source(
    make: Callable[[Path], Path], schema: Schema, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while the folder is hashed, and while its header is read."""
    folder = make(tmp_path / "clinic")
    usual = getattr(Path, what)

    def refused(path: Path, *words: Any) -> Any:
        if folder in path.parents or (what == "iterdir" and path == folder):
            raise PermissionError(13, "Permission denied", str(path / JANE))
        return usual(path, *words)

    monkeypatch.setattr(Path, what, refused)
    actions = [lambda: keyed_digest(folder, b"k")]
    if what != "open" or make is images:  # Arrow opens files itself
        actions.append(lambda: read_source(folder, schema))
    if what != "open":
        actions += [
            lambda: header_of(folder),
            lambda: guesses_of(folder),
            lambda: read_source(folder, TABLE, None, "p"),
        ]
    for action in actions:
        told = refusal(action)
        assert told.startswith("clinic: ") and "cannot be read (PermissionError)" in told and "Jane" not in told


@pytest.mark.skipif(not WITH_IMAGES, reason="nothing that is here reads folders of images")
@pytest.mark.parametrize("what", ["open", "ls"])
def test_what_a_server_refuses_in_a_folder_has_the_name_of_the_source(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'likeness-dp[remote]'")
    files = fsspec.filesystem("memory")
    files.store.clear()
    for path in images(tmp_path / "clinic").rglob("*.png"):
        files.pipe_file(f"/box/clinic/{path.parent.name}/{path.name}", path.read_bytes())
    folder, usual = RemotePath("memory://box/clinic"), getattr(type(files), what)

    def refused(system: Any, path: str, *words: Any, **more: Any) -> Any:
        if "20" in path:
            raise PermissionError(13, "Permission denied", path)
        return usual(system, path, *words, **more)

    assert len(read_source(folder, IMAGES)[0]) == 4
    monkeypatch.setattr(type(files), what, refused)
    for action in (lambda: keyed_digest(folder, b"k"), lambda: read_source(folder, IMAGES)):
        told = refusal(action)
        assert told.startswith("clinic: cannot be reached (PermissionError)") and "Jane" not in told


def project(folder: Path, source: Path, schema: Schema, **privacy: Any) -> Project:
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["privacy"] |= {"population": "visitors", **privacy}
    content["ingest"] |= {"source": source.name, "schema": "schema.yaml"}
    content["ingest"]["split"] = {"test_fraction": 0.5}
    (folder / "params.yaml").write_text(yaml.safe_dump(content))
    (folder / "schema.yaml").write_text(yaml.safe_dump(schema.to_dict(), sort_keys=False))
    return Project.load(folder)


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "schema", "refused"),
    [
        *[(images, IMAGES, True), (lambda folder: images(folder, 0), NO_LABEL, True)] * WITH_IMAGES,
        (lambda folder: parquet(folder, folders="year=2024"), TABLE, True),
        (lambda folder: parquet(folder, folders="other=1/year=2024"), schema_with(LABEL, name="t"), True),
        (parquet, TABLE, False),
        (lambda folder: parquet(folder) / "Adam.parquet", TABLE, False),
    ],
)
def test_replace_one_refuses_names_that_a_record_decides(
    make: Callable[[Path], Path], schema: Schema, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image that changes its class, or a row that changes its partition, would move the places of all others."""
    monkeypatch.chdir(tmp_path)
    ledger, source = Ledger.create(locate()), make(tmp_path / "clinic")
    source = source if source.is_dir() else source.rename(tmp_path / source.name)
    asked = project(tmp_path, source, schema, adjacency="replace_one", num_records=1 + (schema is not TABLE))
    words = "privacy.adjacency is replace_one, but ingest.source is a folder of images or of partitions"
    found = [fault for fault in examine(tmp_path).faults if words in fault.text]
    assert [fault.file for fault in found] == ["params.yaml"] * refused
    for action in (
        lambda: asked.ledger_session.check_ready(asked.sources),
        asked.source_digest,
        lambda: ingest.main(asked),
    ):
        told = ""
        try:
            action()
        except LikenessError as error:
            told = str(error)
            assert not refused or isinstance(error, ParamsError)
        assert (words in told) is refused and "Jane" not in told
    assert Ledger.open(locate()).head() == ledger.head()
    usual = project(tmp_path, source, schema)
    assert not any(words in fault.text for fault in examine(tmp_path).faults)
    usual.ledger_session.check_ready(usual.sources)
