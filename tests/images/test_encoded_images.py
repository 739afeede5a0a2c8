"""PNG and JPEG images in Parquet files and folders: read one by one, and what is refused in which words."""

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

from likeness.core.errors import ArtifactError, DataError
from likeness.data.schema.schema import Schema
from likeness.data.source.files import read_frame, read_source
from likeness.data.source.row_digests import SourceDigest
from likeness_images.encoded_images import decode_images
from likeness_images.image_forms import npz_bytes, write_png

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


def animated() -> bytes:
    frames, out = [Image.new("RGB", (6, 4), color) for color in ("red", "blue")], io.BytesIO()
    frames[0].save(out, "PNG", save_all=True, append_images=frames[1:])
    return out.getvalue()


def several_jpegs() -> bytes:
    frames, out = [Image.new("RGB", (6, 4), color) for color in ("red", "blue")], io.BytesIO()
    frames[0].save(out, "MPO", save_all=True, append_images=frames[1:])
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
        (animated(), "several frames"),
        (several_jpegs(), "several frames"),
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
    assert refusal.value.__cause__ is None and refusal.value.__context__ is None
    assert not recwarn.list


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
