"""Images as tables: the schema's pixels, .npz files, what is refused and in which words."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from toys import schema_with

from likeness.config.params import Split
from likeness.core.errors import DataError, SchemaError
from likeness.data import private_tables as tables
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import Layout
from likeness.data.private_tables import iter_private, read_private, write_private_chunks
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_source
from likeness.data.source.row_digests import SourceDigest, row_hashes, typed_digest
from likeness.pipeline.ingest import IngestedRows, typed_rows
from likeness.pipeline.private_rows import SPLIT
from likeness.pipeline.sources import Sources
from tests.engine.test_streaming import settings_of

ROOT, KEY = Path(__file__).resolve().parents[2], b"k" * 32
CLASSES = {"kind": "categorical", "categories": ["cat", "dog", "eel"]}


def schema(**changes: Any) -> Schema:
    base = {"name": "t", "source": "made up", "task": "classification", "label": "animal"}
    return Schema.from_dict({**base, "image": {"shape": [2, 3]}, "columns": {"animal": CLASSES}, **changes}, "t")


def arrays(**changes: Any) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    x = generator.integers(0, 256, (9, 2, 3), dtype=np.uint8)
    y = generator.integers(0, 3, 9, dtype=np.uint8)
    return {"x_train": x[:6], "y_train": y[:6], "x_test": x[6:], "y_test": y[6:], **changes}


def test_pixels_come_first_and_the_json_form_reads_back() -> None:
    own = schema()
    assert own.names == (*(f"pixel_{place}" for place in range(1, 7)), "animal")
    assert own.image == (2, 3) and Layout.from_schema(own).width == 6
    assert Schema.from_dict(own.to_dict(), "t") == own
    assert [column["name"] for column in own.to_dict()["columns"]] == ["animal"]
    alone = schema(task="none", label=None, columns=None)
    assert len(alone.feature_columns) == 6 and Schema.from_dict(alone.to_dict(), "t") == alone


@pytest.mark.parametrize(
    "image",
    [
        [28, 28],
        {"shape": 28},
        {"shape": [28, 28, 4]},
        {"shape": [28, 28, 3, 1]},
        {"shape": [28, 28, True]},
        {"shape": [0, 2]},
        {"shape": [2, True]},
        {"size": [2, 2]},
    ],
)
def test_other_shapes_are_refused(image: Any) -> None:
    with pytest.raises(SchemaError, match=r"image must be \{shape: \[height, width\]\}"):
        schema(image=image)


def test_huge_images_and_columns_named_like_a_pixel_are_refused() -> None:
    with pytest.raises(SchemaError, match="1,000,000 values"):
        schema(image={"shape": [1000, 1000]})
    with pytest.raises(SchemaError, match="'pixel_2' is listed twice"):
        schema(columns={"animal": CLASSES, "pixel_2": {"kind": "integer", "lower": 0, "upper": 1}})


def test_nothing_but_a_class_stands_beside_an_image() -> None:
    age = {"kind": "integer", "lower": 0, "upper": 9}
    for changes in (
        {"columns": {"animal": CLASSES, "age": age}},
        {"columns": {"age": age}, "task": "regression", "label": "age"},
        {"columns": {"age": age}, "task": "none", "label": None},
    ):
        with pytest.raises(SchemaError, match="'age' cannot stand beside an image"):
            schema(**changes)


def test_an_npz_file_becomes_rows_in_order(tmp_path: Path) -> None:
    made = arrays()
    np.savez(tmp_path / "t.npz", **made)
    table, split, _ = read_source(tmp_path / "t.npz", schema(), "part")
    assert split is not None and split.tolist() == ["train"] * 6 + ["test"] * 3
    x, y = np.concatenate([made["x_train"], made["x_test"]]), np.concatenate([made["y_train"], made["y_test"]])
    assert (table.iloc[:, :6].to_numpy() == x.reshape(9, 6)).all()
    assert table["animal"].tolist() == [CLASSES["categories"][place] for place in y]
    encoder = Encoder(schema())
    codes = encoder.encode(table)
    assert np.array_equal(encoder.expand(codes), x.reshape(9, 6) / 255)
    decoded = encoder.decode(encoder.expand(codes), encoder.labels(codes))
    assert (decoded.iloc[:, :6].to_numpy() == x.reshape(9, 6)).all()  # every gray level comes back


def test_the_same_images_from_text_are_the_same_table(tmp_path: Path) -> None:
    """The shortcut for whole numbers and the way over text give one table."""
    np.savez(tmp_path / "t.npz", **arrays())
    table, *_ = read_source(tmp_path / "t.npz", schema(), None)
    table.to_csv(tmp_path / "t.csv", index=False)
    again, *_ = read_source(tmp_path / "t.csv", schema(), None)
    pd.testing.assert_frame_equal(again, table)


def test_color_is_three_columns_a_pixel_side_by_side(tmp_path: Path) -> None:
    color = schema(image={"shape": [2, 3, 3]})
    assert len(color.names) == 19 and Schema.from_dict(color.to_dict(), "t") == color
    x = np.random.default_rng(1).integers(0, 256, (6, 2, 3, 3), dtype=np.uint8)
    np.savez(tmp_path / "t.npz", x_train=x, y_train=np.zeros(6, np.uint8))
    table, *_ = read_source(tmp_path / "t.npz", color, None)
    assert (table.iloc[:, 3:6].to_numpy() == x[:, 0, 1]).all()  # red, green and blue of the second pixel
    with pytest.raises(DataError, match=r"shape \(n, 2, 3\)"):
        read_source(tmp_path / "t.npz", schema(), None)


def test_bytes_are_a_shortcut_with_the_digests_of_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", **arrays())
    table, *_ = read_source(tmp_path / "t.npz", schema(), None)
    assert [str(dtype) for dtype in table.dtypes] == ["uint8"] * 6 + ["category"]
    wide = table.astype({name: "int64" for name in schema().pixels})
    assert (row_hashes(table, schema()) == row_hashes(wide, schema())).all()
    # Names between those of pixels, in the order of the digest, and two columns of one name.
    raw = table.assign(animal=table["animal"].astype(str), pixel_2b=["a", None] * 4 + ["b"])
    raw = pd.concat([raw, raw["pixel_2b"]], axis=1)
    assert source_digest(raw) == source_digest(raw.astype({name: "int64" for name in schema().pixels}))
    assert source_digest(raw) != source_digest(raw.assign(pixel_1=255 - raw["pixel_1"]))


def source_digest(raw: pd.DataFrame) -> str:
    digest = SourceDigest()
    digest.add_frame(raw)
    return digest.digest(KEY)


def test_a_private_file_holds_an_image_as_one_cell(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", **arrays())
    table, *_ = read_source(tmp_path / "t.npz", schema(), None)
    path = tmp_path / "private/table.arrow"
    write_private_chunks([table.iloc[:4], table.iloc[4:]], path, lambda: {"whose": "ours"})
    assert pa.ipc.open_file(str(path)).schema.names == ["animal", "__image__"]
    pd.testing.assert_frame_equal(read_private(path), table)
    chunks = list(iter_private(path, ["pixel_3", "animal"], 2))
    assert [len(chunk) for chunk in chunks] == [2, 2, 2, 2, 1]
    pd.testing.assert_frame_equal(pd.concat(chunks, ignore_index=True), table)
    assert read_private(path, ["animal"]).columns.tolist() == ["animal"]
    write_private_chunks([table.iloc[:0]], path, lambda: {})
    assert read_private(path).dtypes.tolist() == table.dtypes.tolist() and not len(read_private(path))


def test_compact_codes_are_the_codes_of_the_door(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", **arrays())
    table, *_ = read_source(tmp_path / "t.npz", schema(), None)
    encoder = Encoder(schema())
    compact, plain = encoder.encode(table, compact=True), encoder.encode(table)
    assert [str(dtype) for dtype in compact.dtypes[:6]] == ["uint8"] * 6 and (plain.dtypes[:6] == "float64").all()
    assert (encoder.expand(compact) == encoder.expand(plain)).all()
    pd.testing.assert_frame_equal(encoder.decode_codes(compact), encoder.decode_codes(plain))
    with pytest.raises(DataError, match="'pixel_2' has a missing value"):
        encoder.encode(table.assign(pixel_2=[None, *range(8)]).astype({"pixel_2": "Float64"}))


def test_whole_numbers_beyond_the_bounds_are_clipped(tmp_path: Path) -> None:
    table = pd.DataFrame({f"pixel_{place}": [-5, 300] for place in range(1, 7)} | {"animal": ["cat", "dog"]})
    table.to_parquet(tmp_path / "t.parquet")
    typed, *_ = read_source(tmp_path / "t.parquet", schema(), None)
    assert (typed.iloc[:, :6].to_numpy() == [[0], [255]]).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x_train": np.zeros((6, 3, 2), np.uint8)}, r"x_train: must hold whole numbers of shape \(n, 2, 3\)"),
        ({"x_test": np.zeros((3, 2, 3))}, r"x_test: must hold whole numbers"),
        ({"y_train": np.full(6, 3, np.uint8)}, "y_train: has a number that is not a class. Classes: 0 to 2"),
        ({"y_train": np.full(6, -1, np.int8)}, "y_train: has a number that is not a class"),
        ({"y_test": np.zeros(2, np.uint8)}, "y_test: must hold one class number for each image"),
        ({"x_train": np.array([{}], dtype=object)}, "cannot be read as images"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    np.savez(tmp_path / "t.npz", **arrays(**changes))
    with pytest.raises(DataError, match=words):
        read_source(tmp_path / "t.npz", schema(), "part")


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.npz").write_bytes(b"PK no zip file")
    with pytest.raises(DataError, match="cannot be read as images"):
        read_source(tmp_path / "t.npz", schema(), None)
    with pytest.raises(DataError, match="no such file"):
        read_source(tmp_path / "absent.npz", schema(), None)
    np.savez(tmp_path / "t.npz", **arrays())
    with pytest.raises(DataError, match="schema t has none"):
        read_source(tmp_path / "t.npz", schema(image=None, columns={"animal": CLASSES, "b": CLASSES}), None)


def test_images_in_a_file_of_arrays_have_no_owner(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not name people"):
        read_source(tmp_path / "t.npz", schema(), None, "pid")


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove_one"])
def test_images_have_the_digest_of_their_columns(
    adjacency: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_GROUP_BYTES", 6 * 16)
    label = {"y": {"kind": "categorical", "categories": ["0", "1"]}}
    own = schema_with(label, "y", name="toy images", image={"shape": [2, 3]})
    g, path = np.random.default_rng(0), tmp_path / "images.npz"
    np.savez(path, x_train=g.integers(0, 256, (60, 2, 3), dtype=np.uint8), y_train=g.integers(0, 2, 60))
    params = settings_of(path, adjacency, Split(test_fraction=0.3, seed=1))
    rows = IngestedRows(params, own)
    chunks = typed_rows(Sources(tmp_path, params), own, rows)
    write_private_chunks(chunks, tmp_path / "private/table.arrow", lambda: {})
    table = read_private(tmp_path / "private/table.arrow")
    train = table[table[SPLIT] == "train"].astype(dict.fromkeys(own.pixels, "int64"))
    expected = typed_digest(train, own, KEY, ordered=adjacency == "replace_one")
    assert (rows.training.digest(KEY), rows.training.count) == (expected, len(train)) and len(train) > 30
