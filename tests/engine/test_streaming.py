"""A table that passes through in chunks gives the rows, the split, the digest and the file that it gives whole."""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pytest import MonkeyPatch
from toys import schema_with

from likeness.config.load import load_params
from likeness.config.params import Ingest, Params, Split
from likeness.core.bounds import PrivacyUnit
from likeness.core.engine import LOCAL, Engine, Threads
from likeness.core.errors import DataError
from likeness.core.hashing import keyed_digest
from likeness.core.paths import ProjectPaths
from likeness.data import private_tables as tables
from likeness.data.private_tables import iter_private, read_manifest, read_private, sample_private, write_private_chunks
from likeness.data.schema.schema import Schema
from likeness.data.schema.yaml import schema_text
from likeness.data.source import files as sources
from likeness.data.source.cells import typed_column
from likeness.data.source.files import parquet_rows, raw_chunks, read_frame, read_source, source_parts, typed_chunk
from likeness.data.source.header import header_of
from likeness.data.source.row_digests import SourceDigest, row_hashes, typed_digest
from likeness.data.source.split import SplitByContent, SplitByPosition
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.pipeline.doors import rows_of
from likeness.pipeline.ingest import IngestedRows, typed_rows
from likeness.pipeline.private_rows import SPLIT
from likeness.pipeline.project import Project
from likeness.pipeline.sources import Sources
from likeness.stages import ingest, preprocess

ROOT = Path(__file__).parents[2]
KEY = b"k" * 32
COLUMNS = {
    "age": {"kind": "integer", "lower": 0, "upper": 90},
    "gain": {"kind": "integer", "lower": 0, "upper": 9, "nullable": True},
    "height": {"kind": "numeric", "lower": -2, "upper": 2},
    "weight": {"kind": "numeric", "lower": 0, "upper": 1e20, "nullable": True},
    "seen": {"kind": "date", "lower": "2000-01-01", "upper": "2020-12-31", "nullable": True},
    "smoker": {"kind": "boolean", "nullable": True},
    "grade": {"kind": "categorical", "categories": ["low", "high"], "ordered": True},
    "city": {"kind": "categorical", "categories": ["Rome", "else"], "other": "else", "nullable": True},
}
SCHEMA = schema_with(COLUMNS, name="kinds")

# The same, with the categories of a column left to a release.
OPEN = replace(SCHEMA, columns=(*SCHEMA.columns[:-1], replace(SCHEMA.columns[-1], categories=(), open=True)))


def raw(rows: int, seed: int = 0) -> pa.Table:
    """Cells of every kind: beyond bounds, missing, unknown, spelled in other ways."""
    g = np.random.default_rng(seed)
    gaps = g.random((4, rows)) < 0.2
    return pa.table(
        {
            "age": g.integers(-5, 100, rows),
            "gain": pa.array(g.integers(0, 12, rows), mask=gaps[0]),
            "height": g.choice([-0.0, 1.0, 0.1, -3.5, 1e300, 1 / 3], rows),
            "weight": pa.array(g.choice([0.3, 2.0**53, 1e19, 7.0], rows), mask=gaps[1]),
            "seen": pa.array(g.choice(["2001-02-03", "1999-01-01", "2001-02-03 00:00:00"], rows), mask=gaps[2]),
            "smoker": g.choice(["yes", "F", "1", ""], rows),
            "grade": pa.array(g.choice(["low", "high"], rows)).dictionary_encode(),
            "city": pa.array(g.choice(["Rome", " Rome ", "Oslo", ""], rows), mask=gaps[3]),
            "part": g.choice(["train", "test"], rows),
        }
    )


def source(folder: Path, rows: int = 60) -> Path:
    """A folder of Parquet files, of several row groups and of none."""
    path, table = folder / "source", raw(rows)
    path.mkdir()
    pq.write_table(table.slice(0, rows // 3), path / "a.parquet", row_group_size=7)
    pq.write_table(table.slice(rows // 3), path / "b.parquet", row_group_size=9)
    pq.write_table(table.slice(0, 0), path / "c.parquet")
    (path / "_SUCCESS").touch()
    return path


def settings_of(path: Path, adjacency: str = "add_remove_one", split: Split | None = None) -> Params:
    params = load_params(ROOT / "params.yaml")
    rule = split or Split(test_fraction=0.3, seed=1)
    own = replace(params.privacy, adjacency=adjacency)
    return replace(params, privacy=own, ingest=Ingest(str(path), "kinds.yaml", rule))


def joined(chunks: Any) -> pd.DataFrame:
    return pd.concat(list(chunks), ignore_index=True)


@pytest.mark.long
@pytest.mark.parametrize("size", [7, 50])
@pytest.mark.parametrize("form", ["folder", "csv", "parquet"])
def test_cells_are_typed_alike_in_chunks_of_any_size(
    tmp_path: Path, monkeypatch: MonkeyPatch, form: str, size: int
) -> None:
    path = source(tmp_path)
    if form != "folder":
        path = tmp_path / f"t.{form}"
        table = raw(60)
        pq.write_table(table, path) if form == "parquet" else table.to_pandas().to_csv(path, index=False)
    whole, parts, _ = read_source(path, SCHEMA, "part")
    assert len(whole) == 60 and parts is not None and whole["gain"].isna().any()
    monkeypatch.setattr(sources, "_MOST_ROWS", size)
    chunks = [typed_chunk(raw, path.name, SCHEMA, "part") for raw in raw_chunks(path, SCHEMA, ["part"])]
    assert max(len(table) for table, *_ in chunks) <= size
    pd.testing.assert_frame_equal(joined(table for table, *_ in chunks), whole)
    assert joined(column for _, column, _ in chunks if column is not None).tolist() == parts.tolist()


def test_numbers_and_words_need_no_detour_over_text(tmp_path: Path) -> None:
    """The short ways of Parquet's own numbers and words give what the same cells give as text."""
    path = source(tmp_path)
    direct = read_source(path, SCHEMA)[0]
    slow = replace(SCHEMA, columns=tuple(replace(c, missing_values=("none",)) for c in SCHEMA.columns))
    for column in SCHEMA.columns:
        texts = raw(60)[column.name].to_pandas().astype("object")
        pd.testing.assert_series_equal(
            direct[column.name], typed_column(texts, slow.column(column.name), "t"), check_names=False
        )
    assert not np.signbit(direct["height"][direct["height"] == 0]).any()


def test_rows_of_parquet_are_counted_in_footers(tmp_path: Path) -> None:
    path = source(tmp_path)
    assert parquet_rows(path) == 60 and parquet_rows(tmp_path / "source/a.parquet") == 20
    assert [part.path.name for part in source_parts(path)] == ["a.parquet", "b.parquet", "c.parquet"]


def test_folders_that_might_hide_rows_are_refused(tmp_path: Path) -> None:
    path = source(tmp_path)
    for name in ("backup", "year=2001"):  # the second would give only some rows a year
        (path / name).mkdir()
        (path / name / "c.parquet").write_bytes((path / "a.parquet").read_bytes())
        with pytest.raises(DataError, match=r"source: a folder as a source must hold \.parquet files"):
            read_source(path, SCHEMA)
        shutil.rmtree(path / name)
    (tmp_path / "inner").mkdir()
    path.rename(tmp_path / "inner/backup")
    with pytest.raises(DataError, match=r"inner: a folder as a source must hold"):
        read_source(tmp_path / "inner", SCHEMA)
    (tmp_path / "inner/backup").rename(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="at least one"):
        read_source(tmp_path / "empty", SCHEMA)
    (path / "d.parquet").write_bytes((path / "a.parquet").read_bytes()[:-20])
    with pytest.raises(DataError, match=r"^source: cannot be read as a table"):
        read_source(path, SCHEMA)


def test_a_long_row_is_refused_in_any_chunk(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    text = raw(60).to_pandas().to_csv(index=False).splitlines()
    text[40] += ",8675309"
    path.write_text("\n".join(text) + "\n")
    for size in (5, 1000):
        monkeypatch.setattr(sources, "_MOST_ROWS", size)
        with pytest.raises(DataError, match=r"t\.csv: a row has more cells") as caught:
            read_source(path, SCHEMA)
        assert "8675309" not in str(caught.value) and caught.value.__context__ is None


@pytest.mark.long
@pytest.mark.parametrize("rule", ["column", "content", "position"])
def test_the_split_and_the_digest_are_those_of_the_whole_table(
    tmp_path: Path, monkeypatch: MonkeyPatch, rule: str
) -> None:
    path, split = source(tmp_path), Split(column="part") if rule == "column" else Split(test_fraction=0.3, seed=1)
    adjacency = "replace_one" if rule == "position" else "add_remove_one"
    whole, column, _ = read_source(path, SCHEMA, split.column)
    expected = {
        "column": lambda _: np.asarray(column, dtype=str),
        "content": SplitByContent(0.3, 1).assign_parts,
        "position": SplitByPosition(60, 0.3, 1).assign_parts,
    }[rule](row_hashes(whole, SCHEMA))
    monkeypatch.setattr(sources, "_MOST_ROWS", 13)
    monkeypatch.setattr(tables, "_ROW_GROUP", 16)
    written = tmp_path / "private/table.arrow"
    params = settings_of(path, adjacency, split)
    rows = IngestedRows(params, SCHEMA)
    write_private_chunks(typed_rows(Sources(tmp_path, params), SCHEMA, rows), written, lambda: {})
    table = read_private(written)
    pd.testing.assert_frame_equal(table.drop(columns=SPLIT), whole)
    assert table[SPLIT].tolist() == expected.tolist() and set(expected) == {"train", "test"}
    train = whole[expected == "train"]
    turned = typed_digest(train.iloc[::-1], SCHEMA, KEY, ordered=False)
    assert turned == typed_digest(train, SCHEMA, KEY, ordered=False) != typed_digest(train, SCHEMA, b"", ordered=False)
    expected_digest = typed_digest(train, SCHEMA, KEY, ordered=True) if rule == "position" else turned
    assert rows.training.digest(KEY) == expected_digest
    assert (rows.training.count, rows.held_out) == (len(train), 60 - len(train))


def digest_of(params: Params, schema: Schema = SCHEMA, engine: Engine = LOCAL, key: bytes = KEY) -> str:
    """Of the source, as ``ingest`` takes it up."""
    own = IngestedRows(params, schema)
    assert sum(len(chunk) for chunk in typed_rows(Sources(Path(), params), schema, own, engine)) == 60
    return own.source.digest(key)


@pytest.mark.long
def test_the_rows_of_a_source_are_known_whatever_is_asked_of_them(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    path = source(tmp_path)
    expected = digest_of(settings_of(path))
    fewer = replace(SCHEMA, columns=SCHEMA.columns[:0:-1])
    assert digest_of(settings_of(path, split=Split(test_fraction=0.5, seed=9)), fewer) == expected
    assert digest_of(settings_of(path, "replace_one", Split(column="part"))) == expected
    assert digest_of(settings_of(path), key=b"q" * 32) != expected
    monkeypatch.setattr(sources, "_MOST_ROWS", 13)
    assert digest_of(settings_of(path), engine=Threads(3)) == expected
    table = pa.concat_tables([pq.read_table(path / "b.parquet"), pq.read_table(path / "a.parquet")])
    other = table.select(table.column_names[::-1]).append_column("lists", [[[1]] * 60])  # lists are not read
    pq.write_table(other, tmp_path / "other.parquet")
    assert digest_of(settings_of(tmp_path / "other.parquet")) == expected
    for number, changed in enumerate(
        [
            table.set_column(0, "age", [[*table["age"].to_pylist()[:-1], 17]]),
            table.set_column(8, "part", [["train"] * 60]),
            table.rename_columns([*table.column_names[:-1], "past"]),
            pa.concat_tables([table.slice(1), table.slice(1, 1)]),
            table.drop_columns("part"),
        ]
    ):
        pq.write_table(changed, tmp_path / f"{number}.parquet")
        assert digest_of(settings_of(tmp_path / f"{number}.parquet")) != expected


def test_a_csv_and_its_frame_have_the_digest_of_their_rows_too(tmp_path: Path) -> None:
    """The digest of people is about a whole file, also where a person has several rows."""
    table, path = raw(60).to_pandas(), tmp_path / "t.csv"
    table.to_csv(path, index=False)
    expected = digest_of(settings_of(path))
    table[table.columns[::-1]].sample(frac=1, random_state=1).to_csv(path, index=False)
    assert digest_of(settings_of(path)) == expected
    own = settings_of(path)
    unit = PrivacyUnit("age", 60)
    people = replace(own, ingest=replace(own.ingest, unit=unit), privacy=replace(own.privacy, unit="person"))
    without = replace(SCHEMA, columns=tuple(column for column in SCHEMA.columns if column.name != "age"))
    assert digest_of(people, without) == expected
    texts = pd.read_csv(path, dtype="str", na_filter=False)
    found = SourceDigest()
    read_frame(texts, SCHEMA, source=found)
    assert found.digest(KEY) == expected
    assert SourceDigest().digest(KEY) == ""  # no rows, nobody's


@pytest.mark.long
def test_ingest_puts_the_rows_of_the_source_on_the_card_and_refuses_none(
    tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kinds.yaml").write_text(schema_text(SCHEMA))
    project, ledger = Project(tmp_path, settings_of(source(tmp_path))), Ledger.create(locate())
    ingest.main(project)
    preprocess.main(project)
    expected = digest_of(project.params, key=ledger.key)
    table = read_private(ProjectPaths.table)
    assert len(read_private(ProjectPaths.encoded)) == (table[SPLIT] == "train").sum() < len(table)
    typed = typed_digest(table, SCHEMA, ledger.key, ordered=False)  # of both parts
    assert rows_of(project)[0].rows_digests == (expected, typed) and expected != ""
    ProjectPaths.table.unlink()
    for name in "ab":
        pq.write_table(raw(0), tmp_path / f"source/{name}.parquet")
    with pytest.raises(DataError, match="has no training rows"):
        ingest.main(project)
    assert not ProjectPaths.table.exists() and Ledger.open(locate()).head() == ledger.head()


@pytest.mark.long
@pytest.mark.parametrize(("fraction", "part"), [(1e-9, "test"), (1 - 1e-9, "training")])
@pytest.mark.parametrize("adjacency", ["add_remove_one", "replace_one"])
def test_a_split_that_leaves_no_rows_of_a_part_stops_before_anything_is_spent(
    tmp_path: Path, monkeypatch: MonkeyPatch, adjacency: str, fraction: float, part: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kinds.yaml").write_text(schema_text(SCHEMA))
    params = settings_of(source(tmp_path), adjacency, Split(test_fraction=fraction, seed=1))
    ledger = Ledger.create(locate())
    with pytest.raises(DataError, match=f"has no {part} rows. Nothing was spent. .* change ingest.split"):
        ingest.main(Project(tmp_path, params))
    assert not ProjectPaths.table.exists() and Ledger.open(locate()).head() == ledger.head()


def test_all_rows_train_where_none_are_held_out(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kinds.yaml").write_text(schema_text(SCHEMA))
    Ledger.create(locate())
    ingest.main(Project(tmp_path, settings_of(source(tmp_path), split=Split())))
    parts = read_private(ProjectPaths.table)[SPLIT]
    assert set(parts) == {"train"} and len(parts) == 60


def test_a_csv_without_split_column_is_split_by_position_too(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    raw(60).to_pandas().to_csv(path, index=False)
    params = settings_of(path, "replace_one")
    rows = joined(typed_rows(Sources(tmp_path, params), SCHEMA, IngestedRows(params, SCHEMA)))
    assert rows[SPLIT].tolist() == SplitByPosition(60, 0.3, 1).assign_parts(np.empty((60, 32), np.uint8)).tolist()


@pytest.mark.parametrize("size", [5, 16, 60])
def test_a_private_file_does_not_tell_how_its_rows_came(tmp_path: Path, monkeypatch: MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(tables, "_ROW_GROUP", 16)
    table = read_source(source(tmp_path), SCHEMA)[0]
    path = tmp_path / "private/t.arrow"
    chunks = [table.iloc[start : start + size].reset_index(drop=True) for start in range(0, 60, size)]
    write_private_chunks(chunks, path, lambda: {"whose": "ours"})
    file = pa.ipc.open_file(str(path))
    assert [file.get_batch(place).num_rows for place in range(file.num_record_batches)] == [16, 16, 16, 12, 0]
    assert path.stat().st_mode & 0o777 == 0o600
    pd.testing.assert_frame_equal(read_private(path), table)
    assert read_manifest(path) == {"whose": "ours"}
    parts = [joined(iter_private(path, None, 10, groups=groups)) for groups in ([0], [1, 2], [3])]
    pd.testing.assert_frame_equal(joined(parts), table)


def test_a_sample_of_a_private_table_is_public_in_its_choice_and_bounded(
    tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_ROW_GROUP", 300)
    path = tmp_path / "private/t.arrow"
    table = pd.DataFrame({"x": np.arange(1000)})
    write_private_chunks([table], path, lambda: {})
    assert len(sample_private(path, 1000, 0)) == len(sample_private(path, None, 0)) == 1000
    one, other = (sample_private(path, 100, seed)["x"].tolist() for seed in (0, 1))
    assert one == sorted(set(one)) and 80 < len(one) <= 100 and one != other
    assert one == sample_private(path, 100, 0)["x"].tolist()
    assert {0, 300, 600, 900} <= {row for seed in range(9) for row in sample_private(path, 999, seed)["x"]}


def test_a_folder_has_the_header_of_its_files(tmp_path: Path) -> None:
    assert header_of(source(tmp_path)) == raw(1).column_names
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="at least one"):
        header_of(tmp_path / "empty")


@pytest.mark.parametrize("make", ["fifo", "broken link", "loop", "link to a folder above"])
def test_a_folder_with_an_item_that_nobody_can_read_is_refused(tmp_path: Path, make: str) -> None:
    """A reader would wait for a pipe, and go round in a loop."""
    path = source(tmp_path)
    within = path / "year=2024"
    within.mkdir()
    item = within / "part=1.parquet"
    if make == "fifo":
        os.mkfifo(item)
    else:
        item.symlink_to({"broken link": "absent", "loop": item.name, "link to a folder above": ".."}[make])
    for read in (lambda: keyed_digest(path, KEY), lambda: header_of(path), lambda: source_parts(path)):
        what = "a link to a folder that holds it" if make == "link to a folder above" else "neither a file nor a folder"
        with pytest.raises(DataError, match=rf"^source: holds an item that is {what}\. Remove it"):
            read()
    if make == "fifo":
        with pytest.raises(DataError, match="no such file"):
            header_of(item)


def test_a_changed_folder_is_noticed(tmp_path: Path) -> None:
    path = source(tmp_path)
    seen = {keyed_digest(path, KEY), keyed_digest(path, b"q" * 32)}
    (path / "b.parquet").rename(path / "0.parquet")  # another order of rows
    seen.add(keyed_digest(path, KEY))
    with (path / "a.parquet").open("r+b") as file:
        file.write(b"X")
    seen.add(keyed_digest(path, KEY))
    assert len(seen) == 4


@pytest.mark.long
def test_a_wrong_public_number_of_rows_is_refused_while_the_table_is_written(tmp_path: Path) -> None:
    written = tmp_path / "private/table.arrow"
    Ledger.create(locate())
    usual = settings_of(source(tmp_path), "replace_one")

    def write(number: int) -> None:
        params = replace(usual, privacy=replace(usual.privacy, num_records=number))
        rows = IngestedRows(params, SCHEMA)
        chunks = typed_rows(Sources(tmp_path, params), SCHEMA, rows)
        write_private_chunks(chunks, written, lambda: rows.manifest(params, "id", KEY))

    write(42)
    assert read_manifest(written)["num_records"] == 42
    written.unlink()
    with pytest.raises(DataError, match="num_records is 60, the training table has 42 rows"):
        write(60)
    assert not list(written.parent.iterdir())


def test_a_folder_may_begin_with_a_file_without_rows(tmp_path: Path) -> None:
    path, written = source(tmp_path), tmp_path / "private/table.arrow"
    (path / "c.parquet").rename(path / "0.parquet")
    params = settings_of(path)
    rows = typed_rows(Sources(tmp_path, params), SCHEMA, IngestedRows(params, SCHEMA))
    write_private_chunks(rows, written, lambda: {})
    assert len(read_private(written)) == 60
