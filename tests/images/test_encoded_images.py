"""PNG and JPEG images in Parquet files and folders: read one by one, and what is refused in which words.

Images as tables: the schema's pixels, .npz files, what is refused and in which words.
"""

import io
import struct
import zlib
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from pytest import MonkeyPatch
from toys import schema_with

from likeness.config.params import Split
from likeness.core.errors import ArtifactError, DataError, SchemaError
from likeness.data import private_tables as tables
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import Layout
from likeness.data.private_tables import iter_private, read_private, write_private_chunks
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_frame, read_source
from likeness.data.source.row_digests import SourceDigest, row_hashes, typed_digest
from likeness.pipeline.ingest import IngestedRows, typed_rows
from likeness.pipeline.private_rows import SPLIT
from likeness.pipeline.sources import Sources
from likeness_images.encoded_images import decode_images
from likeness_images.image_forms import npz_bytes, write_png
from tests.engine.test_streaming import settings_of

COLOR, GRAY = (4, 6, 3), (4, 6)


def schema(shape: tuple[int, ...] = COLOR, **changes: Any) -> Schema:
    label = {"animal": {"kind": "categorical", "categories": ["cat", "dog"]}}
    content = {"name": "t", "source": "made up", "task": "classification", "label": "animal", "columns": label}
    return Schema.from_dict({**content, "image": {"shape": list(shape)}, **changes}, "t")


def encoded(values: np.ndarray, kind: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(values).save(out, kind, **options)
    return out.getvalue()


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (6, *COLOR), dtype=np.uint8)


LABELS = ["cat", "dog", "dog", "cat", "dog", "cat"]
PARTS = ["train"] * 4 + ["test"] * 2


def parquet(path: Path, cells: list[Any], **more: Any) -> Path:
    pq.write_table(pa.table({"animal": LABELS, "part": PARTS, "picture": cells, **more}), path)
    return path


@pytest.mark.parametrize("records", [False, True])
def test_a_column_of_bytes_becomes_pixels(tmp_path: Path, images: np.ndarray, records: bool) -> None:
    cells: list[Any] = [encoded(image) for image in images]
    cells = [{"bytes": cell, "path": "a.png"} for cell in cells] if records else cells
    digest = SourceDigest()
    table, parts, _ = read_source(parquet(tmp_path / "t.parquet", cells), schema(), "part", source=digest)
    assert (table.iloc[:, :-1].to_numpy() == images.reshape(6, -1)).all()
    assert table["animal"].tolist() == LABELS and parts is not None and parts.tolist() == PARTS
    # The digest of the source's rows sees the images.
    other = SourceDigest()
    cells = [cells[1], cells[0], *cells[2:]]
    read_source(parquet(tmp_path / "t.parquet", cells), schema(), "part", source=other)
    assert digest.digest(b"k" * 32) != other.digest(b"k" * 32)


def test_folders_by_part_and_class_are_the_same_table_as_a_column(tmp_path: Path, images: np.ndarray) -> None:
    order = sorted(range(6), key=lambda place: (PARTS[place], LABELS[place], place))
    for place in order:
        folder = tmp_path / "pets" / PARTS[place] / LABELS[place]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{place}.png").write_bytes(encoded(images[place]))
        (folder / ".hidden").write_bytes(b"of the file system")
    table, parts, _ = read_source(tmp_path / "pets", schema(), "part")
    cells = [encoded(image) for image in images]
    expected, whole, _ = read_source(parquet(tmp_path / "t.parquet", cells), schema(), "part")
    assert parts is not None and whole is not None and parts.tolist() == whole.iloc[order].tolist()
    pd.testing.assert_frame_equal(table, expected.iloc[order].reset_index(drop=True))
    with pytest.raises(DataError, match=r"pets: its images must lie in folders as \[animal\]/FILE. Move them"):
        read_source(tmp_path / "pets", schema(), None)
    with pytest.raises(DataError, match="does not name people"):
        read_source(tmp_path / "pets", schema(), None, "person")


def test_a_folder_without_classes(tmp_path: Path, images: np.ndarray) -> None:
    (tmp_path / "pets").mkdir()
    for place in range(3):
        (tmp_path / "pets" / f"{place}.PNG").write_bytes(encoded(images[place]))
    table, *_ = read_source(tmp_path / "pets", schema(task="none", label=None, columns=None), None)
    assert (table.to_numpy() == images[:3].reshape(3, -1)).all()


def test_a_jpeg_is_nearly_its_image_and_depends_on_no_other(images: np.ndarray) -> None:
    smooth = np.linspace(0, 200, 24).reshape(4, 6).astype(np.uint8)
    jpeg = encoded(smooth, "JPEG", quality=95)
    alone = decode_images([jpeg], GRAY, "t:")
    assert np.abs(alone[0].astype(int) - smooth.ravel()).max() <= 6
    assert (decode_images([encoded(smooth), jpeg], GRAY, "t:")[1] == alone[0]).all()
    assert (decode_images([encoded(smooth)], COLOR, "t:") == np.repeat(smooth.reshape(1, -1), 3, axis=1)).all()


def bomb(width: int, height: int) -> bytes:
    """A PNG whose header promises many pixels."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def several(kind: str) -> bytes:
    """Two pictures in one file."""
    frames, out = [Image.new("RGB", (6, 4), color) for color in ("red", "blue")], io.BytesIO()
    frames[0].save(out, kind, save_all=True, append_images=frames[1:])
    return out.getvalue()


BLANK = np.zeros(COLOR, np.uint8)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "that is missing"),
        (b"GIF89a", "no PNG or JPEG"),
        (encoded(BLANK, "GIF"), "no PNG or JPEG"),
        (encoded(BLANK, "BMP"), "no PNG or JPEG"),
        (encoded(np.random.default_rng(0).integers(0, 256, COLOR, dtype=np.uint8))[:-40], "is damaged"),
        (
            encoded(np.zeros((6, 4, 3), np.uint8)),
            r"another size than image.shape \[4, 6, 3\]. Images are turned by EXIF, never resized",
        ),
        (bomb(9_000, 9_999), "another size"),
        (bomb(10_000, 10_000), "another size"),
        (bomb(60_000, 60_000), "another size"),
        (several("PNG"), "several frames"),
        (several("MPO"), "several frames"),
        (encoded(np.zeros((4, 6, 4), np.uint8)), "other channels or depths .* gray or RGB"),
        (encoded(np.zeros(GRAY, np.uint16)), "other channels or depths"),
        (encoded(BLANK, transparency=(0, 0, 0)), "not transparent"),
        (encoded(BLANK) + b"\0" * (1 << 20), "more than 1,048,576 bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_and_other_images_are_refused(data: bytes | None, words: str, recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(DataError, match=rf"t.parquet: column 'picture' has an image .*{words}") as refusal:
        decode_images([encoded(BLANK), data], COLOR, "t.parquet: column 'picture' has")
    assert refusal.value.__cause__ is None and refusal.value.__context__ is None and not recwarn.list


def test_an_image_in_color_is_not_gray() -> None:
    with pytest.raises(DataError, match=r"than image.shape \[4, 6\] takes: gray"):
        decode_images([encoded(BLANK)], GRAY, "t:")


def test_what_holds_no_images_is_refused(tmp_path: Path, images: np.ndarray) -> None:
    cells = [encoded(image) for image in images]
    two = parquet(tmp_path / "two.parquet", cells, other=cells)
    with pytest.raises(DataError, match=r"two.parquet: must have columns pixel_1, .*It has 2 columns of bytes"):
        read_source(two, schema(), None)
    (tmp_path / "pets/cat").mkdir(parents=True)
    (tmp_path / "pets/cat/anna.png").write_bytes(cells[0])
    (tmp_path / "pets/cat/bob.txt").write_text("no image")
    with pytest.raises(DataError, match="pets: holds an image that is no PNG or JPEG") as refusal:
        read_source(tmp_path / "pets", schema(), None)
    assert "bob" not in str(refusal.value)
    with pytest.raises(DataError, match="holds images, but schema t has none"):
        columns = {"animal": {"kind": "categorical", "categories": ["a", "b"]}, "b": {"kind": "boolean"}}
        read_source(tmp_path / "pets", schema(image=None, columns=columns), None)


def exif(values: np.ndarray, turn: int, kind: str = "PNG") -> bytes:
    about = Image.Exif()
    about[0x0112] = turn
    return encoded(values, kind, exif=about)


@pytest.mark.parametrize("turn", range(1, 9))
def test_an_image_is_turned_as_a_viewer_turns_it(turn: int) -> None:
    """A camera stores the rows of its sensor, and says how it was held."""
    stored = np.arange(24, dtype=np.uint8).reshape(4, 6)
    flat = [stored, stored[:, ::-1], stored[::-1, ::-1], stored[::-1], stored.T, stored[::-1].T, stored[::-1, ::-1].T]
    seen = [*flat, stored[:, ::-1].T][turn - 1]
    assert decode_images([exif(stored, turn)], seen.shape, "t").reshape(seen.shape).tolist() == seen.tolist()
    if turn > 4:
        with pytest.raises(DataError, match="another size"):
            decode_images([exif(stored, turn)], stored.shape, "t")


def test_no_image_changes_another() -> None:
    """All ordered pairs: an image becomes its own values, or the table is refused."""
    gray, color = np.full(GRAY, 7, np.uint8), np.arange(72, dtype=np.uint8).reshape(COLOR)
    palette = io.BytesIO()
    Image.fromarray(color).quantize(4).save(palette, "PNG")
    images = [
        encoded(gray), encoded(color), encoded(color, "JPEG"), exif(color, 3), exif(color, 3, "JPEG"), exif(color, 6),
        palette.getvalue(), encoded(color, "GIF"), encoded(color, "WEBP"), encoded(color)[:38], b"", None,
        encoded(np.dstack([color, gray])), encoded(color[:3]), encoded(gray.astype(np.uint16)),
    ]  # fmt: skip

    def read(some: "list[bytes | None]") -> "list[list[int]] | None":
        try:
            return decode_images(some, COLOR, "t").tolist()
        except DataError as error:
            assert error.__cause__ is None and error.__context__ is None
            return None

    alone = [read([image]) for image in images]
    assert sum(own is not None for own in alone) == 6
    for (a, own), (b, other) in product(zip(images, alone, strict=True), repeat=2):
        assert read([b, a]) == (None if own is None or other is None else [*other, *own])


@pytest.mark.parametrize("ending", ["GIF", "webp", "Png"])
def test_a_folder_of_other_images_is_refused_in_words(tmp_path: Path, ending: str) -> None:
    (tmp_path / "cat").mkdir()
    kind = ending.upper()
    (tmp_path / "cat" / f"a.{ending}").write_bytes(encoded(np.zeros(COLOR, np.uint8), kind))
    if kind == "PNG":
        assert len(read_source(tmp_path, schema())[0]) == 1
    else:
        with pytest.raises(DataError, match="no PNG or JPEG"):
            read_source(tmp_path, schema())


@pytest.mark.parametrize("shape", [COLOR, GRAY])
def test_arrays_and_png_files_of_images_are_read_as_the_same_images(tmp_path: Path, shape: tuple[int, ...]) -> None:
    images = np.random.default_rng(1).integers(0, 256, (6, *shape), dtype=np.uint8)
    written = schema(shape)
    table = read_frame(pd.DataFrame(images.reshape(6, -1), columns=written.names[:-1]).assign(animal=LABELS), written)
    (tmp_path / "t.npz").write_bytes(npz_bytes(table, written))
    with np.load(tmp_path / "t.npz") as arrays:
        assert (arrays["x_train"] == images).all() and arrays["y_train"].tolist() == [0, 1, 1, 0, 1, 0]
    assert read_source(tmp_path / "t.npz", written)[0].astype(str).equals(table.astype(str))
    write_png(table, written, tmp_path / "png")
    assert {path.parent.name for path in (tmp_path / "png").glob("*/*.png")} == {"cat", "dog"}
    again = read_source(tmp_path / "png", written)[0]
    assert again.astype(str).equals(table.sort_values("animal", kind="stable", ignore_index=True).astype(str))
    with pytest.raises(ArtifactError, match="not overwritten"):
        write_png(table, written, tmp_path / "png")


def test_a_class_cannot_name_a_place_outside_of_the_folder(tmp_path: Path) -> None:
    label = {"animal": {"kind": "categorical", "categories": ["cat", "../dog"]}}
    written = schema(GRAY, columns=label)
    cells = pd.DataFrame(np.zeros((2, 24), np.uint8), columns=written.names[:-1]).assign(animal=["cat", "../dog"])
    write_png(read_frame(cells, written), written, tmp_path / "png")
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.png")} == {"png/0/1.png", "png/1/2.png"}


ROOT, KEY = Path(__file__).resolve().parents[2], b"k" * 32
CLASSES = {"kind": "categorical", "categories": ["cat", "dog", "eel"]}


def schema_of_pixels(**changes: Any) -> Schema:
    base = {"name": "t", "source": "made up", "task": "classification", "label": "animal"}
    return Schema.from_dict({**base, "image": {"shape": [2, 3]}, "columns": {"animal": CLASSES}, **changes}, "t")


def arrays(**changes: Any) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    x = generator.integers(0, 256, (9, 2, 3), dtype=np.uint8)
    y = generator.integers(0, 3, 9, dtype=np.uint8)
    return {"x_train": x[:6], "y_train": y[:6], "x_test": x[6:], "y_test": y[6:], **changes}


def test_pixels_come_first_and_the_json_form_reads_back() -> None:
    own = schema_of_pixels()
    assert own.names == (*(f"pixel_{place}" for place in range(1, 7)), "animal")
    assert own.image == (2, 3) and Layout.from_schema(own).width == 6 and Schema.from_dict(own.to_dict(), "t") == own
    assert [column["name"] for column in own.to_dict()["columns"]] == ["animal"]
    alone = schema_of_pixels(task="none", label=None, columns=None)
    assert len(alone.feature_columns) == 6 and Schema.from_dict(alone.to_dict(), "t") == alone


@pytest.mark.parametrize(
    "image",
    [
        *([28, 28], {"shape": 28}, {"shape": [28, 28, 4]}, {"shape": [28, 28, 3, 1]}, {"shape": [28, 28, True]}),
        *({"shape": [0, 2]}, {"shape": [2, True]}, {"size": [2, 2]}),
    ],
)
def test_other_shapes_are_refused(image: Any) -> None:
    with pytest.raises(SchemaError, match=r"image must be \{shape: \[height, width\]\}"):
        schema_of_pixels(image=image)


def test_huge_images_and_columns_named_like_a_pixel_are_refused() -> None:
    with pytest.raises(SchemaError, match="1,000,000 values"):
        schema_of_pixels(image={"shape": [1000, 1000]})
    with pytest.raises(SchemaError, match="'pixel_2' is listed twice"):
        schema_of_pixels(columns={"animal": CLASSES, "pixel_2": {"kind": "integer", "lower": 0, "upper": 1}})


def test_nothing_but_a_class_stands_beside_an_image() -> None:
    age = {"kind": "integer", "lower": 0, "upper": 9}
    for changes in (
        {"columns": {"animal": CLASSES, "age": age}},
        {"columns": {"age": age}, "task": "regression", "label": "age"},
        {"columns": {"age": age}, "task": "none", "label": None},
    ):
        with pytest.raises(SchemaError, match="'age' cannot stand beside an image"):
            schema_of_pixels(**changes)


def test_an_npz_file_becomes_rows_in_order(tmp_path: Path) -> None:
    made = arrays()
    np.savez(tmp_path / "t.npz", **made)
    table, split, _ = read_source(tmp_path / "t.npz", schema_of_pixels(), "part")
    assert split is not None and split.tolist() == ["train"] * 6 + ["test"] * 3
    x, y = np.concatenate([made["x_train"], made["x_test"]]), np.concatenate([made["y_train"], made["y_test"]])
    assert (table.iloc[:, :6].to_numpy() == x.reshape(9, 6)).all()
    assert table["animal"].tolist() == [CLASSES["categories"][place] for place in y]
    encoder = Encoder(schema_of_pixels())
    codes = encoder.encode(table)
    assert np.array_equal(encoder.expand(codes), x.reshape(9, 6) / 255)
    decoded = encoder.decode(encoder.expand(codes), encoder.labels(codes))
    assert (decoded.iloc[:, :6].to_numpy() == x.reshape(9, 6)).all()  # every gray level comes back


def test_the_same_images_from_text_are_the_same_table(tmp_path: Path) -> None:
    """The shortcut for whole numbers and the way over text give one table."""
    np.savez(tmp_path / "t.npz", **arrays())
    table, *_ = read_source(tmp_path / "t.npz", schema_of_pixels(), None)
    table.to_csv(tmp_path / "t.csv", index=False)
    again, *_ = read_source(tmp_path / "t.csv", schema_of_pixels(), None)
    pd.testing.assert_frame_equal(again, table)


def test_color_is_three_columns_a_pixel_side_by_side(tmp_path: Path) -> None:
    color = schema_of_pixels(image={"shape": [2, 3, 3]})
    assert len(color.names) == 19 and Schema.from_dict(color.to_dict(), "t") == color
    x = np.random.default_rng(1).integers(0, 256, (6, 2, 3, 3), dtype=np.uint8)
    np.savez(tmp_path / "t.npz", x_train=x, y_train=np.zeros(6, np.uint8))
    table, *_ = read_source(tmp_path / "t.npz", color, None)
    assert (table.iloc[:, 3:6].to_numpy() == x[:, 0, 1]).all()  # red, green and blue of the second pixel
    with pytest.raises(DataError, match=r"shape \(n, 2, 3\)"):
        read_source(tmp_path / "t.npz", schema_of_pixels(), None)


def test_bytes_are_a_shortcut_with_the_digests_of_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", **arrays())
    table, *_ = read_source(tmp_path / "t.npz", schema_of_pixels(), None)
    assert [str(dtype) for dtype in table.dtypes] == ["uint8"] * 6 + ["category"]
    wide = table.astype({name: "int64" for name in schema_of_pixels().pixels})
    assert (row_hashes(table, schema_of_pixels()) == row_hashes(wide, schema_of_pixels())).all()
    # Names between those of pixels, in the order of the digest, and two columns of one name.
    raw = table.assign(animal=table["animal"].astype(str), pixel_2b=["a", None] * 4 + ["b"])
    raw = pd.concat([raw, raw["pixel_2b"]], axis=1)
    assert source_digest(raw) == source_digest(raw.astype({name: "int64" for name in schema_of_pixels().pixels}))
    assert source_digest(raw) != source_digest(raw.assign(pixel_1=255 - raw["pixel_1"]))


def source_digest(raw: pd.DataFrame) -> str:
    digest = SourceDigest()
    digest.add_frame(raw)
    return digest.digest(KEY)


def test_a_private_file_holds_an_image_as_one_cell(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", **arrays())
    table, *_ = read_source(tmp_path / "t.npz", schema_of_pixels(), None)
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
    table, *_ = read_source(tmp_path / "t.npz", schema_of_pixels(), None)
    encoder = Encoder(schema_of_pixels())
    compact, plain = encoder.encode(table, compact=True), encoder.encode(table)
    assert [str(dtype) for dtype in compact.dtypes[:6]] == ["uint8"] * 6 and (plain.dtypes[:6] == "float64").all()
    assert (encoder.expand(compact) == encoder.expand(plain)).all()
    pd.testing.assert_frame_equal(encoder.decode_codes(compact), encoder.decode_codes(plain))
    alone = Encoder(schema_of_pixels(task="none", label=None, columns=None))
    assert alone.encode(table.drop(columns="animal"), compact=True).equals(compact.drop(columns="animal"))
    with pytest.raises(DataError, match="'pixel_2' has a missing value"):
        encoder.encode(table.assign(pixel_2=[None, *range(8)]).astype({"pixel_2": "Float64"}))


def test_whole_numbers_beyond_the_bounds_are_clipped(tmp_path: Path) -> None:
    table = pd.DataFrame({f"pixel_{place}": [-5, 300] for place in range(1, 7)} | {"animal": ["cat", "dog"]})
    table.to_parquet(tmp_path / "t.parquet")
    typed, *_ = read_source(tmp_path / "t.parquet", schema_of_pixels(), None)
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
        read_source(tmp_path / "t.npz", schema_of_pixels(), "part")


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.npz").write_bytes(b"PK no zip file")
    with pytest.raises(DataError, match="cannot be read as images"):
        read_source(tmp_path / "t.npz", schema_of_pixels(), None)
    with pytest.raises(DataError, match="no such file"):
        read_source(tmp_path / "absent.npz", schema_of_pixels(), None)
    np.savez(tmp_path / "t.npz", **arrays())
    with pytest.raises(DataError, match="schema t has none"):
        read_source(tmp_path / "t.npz", schema_of_pixels(image=None, columns={"animal": CLASSES, "b": CLASSES}), None)


def test_images_in_a_file_of_arrays_have_no_owner(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not name people"):
        read_source(tmp_path / "t.npz", schema_of_pixels(), None, "pid")


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove_one"])
def test_images_have_the_digest_of_their_columns(adjacency: str, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
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
