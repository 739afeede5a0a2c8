"""Build .npz files of public images, in the layout of Keras: x_train, y_train, x_test, y_test.

Run: ``python scripts/build_images.py digits`` writes data/raw/digits.npz from scikit-learn (shipped with this
project); ``python scripts/build_images.py idx FOLDER OUT.npz`` converts the four idx files of MNIST or Fashion-MNIST,
such as those of Debian's package dataset-fashion-mnist in /usr/share/datasets/fashion-mnist; ``python
scripts/build_images.py celeba FOLDER OUT.parquet --size 64`` crops and resizes the aligned faces of CelebA. Each image
is cut by itself, at a public place, so this step costs no privacy.
"""

import argparse
import gzip
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

PARTS = {"train": "train", "test": "t10k"}
CELEBA = ("img_align_celeba", "list_attr_celeba.txt", "list_eval_partition.txt")
BATCH = 4096


def digits(out: Path) -> None:
    """Scikit-learn's digits (UCI, Alpaydin and Kaynak 1998), 0 to 16 scaled to 0 to 255; last fifth for tests."""
    from sklearn.datasets import load_digits

    found = load_digits()
    x, y = np.rint(found.images * 255 / 16).astype(np.uint8), found.target.astype(np.uint8)
    train = len(x) * 4 // 5
    np.savez_compressed(out, x_train=x[:train], y_train=y[:train], x_test=x[train:], y_test=y[train:])


def idx(folder: Path, out: Path) -> None:
    """Four idx files, gzipped or not."""
    arrays = {}
    for part, name in PARTS.items():
        arrays[f"x_{part}"] = read_idx(folder / f"{name}-images-idx3-ubyte")
        arrays[f"y_{part}"] = read_idx(folder / f"{name}-labels-idx1-ubyte")
    np.savez_compressed(out, **arrays)


def read_idx(path: Path) -> np.ndarray:
    """An array of bytes with its sizes before it, big-endian (LeCun)."""
    zipped = path.with_name(path.name + ".gz")
    if not path.exists() and not zipped.exists():
        raise SystemExit(
            f"{path} (or .gz) is missing. Get it from the data set's page, or apt-get install its package."
        )
    data = path.read_bytes() if path.exists() else gzip.decompress(zipped.read_bytes())
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise SystemExit(f"{path} is no idx file of bytes.")
    sizes = np.frombuffer(data, ">u4", data[3], 4).astype(int)
    start = 4 + 4 * len(sizes)
    if len(data) != start + sizes.prod():
        raise SystemExit(f"{path} is cut off: it should hold {sizes.prod()} bytes after its header.")
    return np.frombuffer(data, np.uint8, offset=start).reshape(sizes)


def celeba(folder: Path, out: Path, size: int, crop: int = 178) -> None:
    """The faces of CelebA (Liu et al. 2015) as PNG files in one Parquet file, with the label Male of its attributes.

    Args:
        folder: holds :data:`CELEBA`, as the data set's page has them.
        out: the Parquet file: columns split (train, test), label (female, male) and image.
        size: pixels of a side.
        crop: pixels of the square in the middle of each image that is kept, of 178 x 218.
    """
    images, attributes, partition = (folder / name for name in CELEBA)
    missing = [path for path in (images, attributes, partition) if not path.exists()]
    if missing:
        raise SystemExit(f"{missing[0]} is missing. Get it from the data set's page.")
    lines = attributes.read_text().splitlines()[1:]
    male = 1 + lines[0].split().index("Male")
    labels = {line.split()[0]: ("female", "male")[line.split()[male] == "1"] for line in lines[1:]}
    tests = {line.split()[0] for line in partition.read_text().splitlines() if line.split()[1] != "0"}
    schema = pa.schema([("split", pa.string()), ("label", pa.string()), ("image", pa.binary())])
    with pq.ParquetWriter(out, schema) as writer:
        for start in range(0, len(labels), BATCH):
            names = list(labels)[start : start + BATCH]
            columns = [["test" if name in tests else "train" for name in names], [labels[name] for name in names]]
            cells = [_cropped(images / name, size, crop) for name in names]
            writer.write_table(pa.table([*columns, cells], schema=schema))


def _cropped(path: Path, size: int, crop: int) -> bytes:
    """The square in the middle of an image, resized, as PNG."""
    with Image.open(path) as image:
        left, top = (image.width - crop) // 2, (image.height - crop) // 2
        square = image.convert("RGB").crop((left, top, left + crop, top + crop))
    out = io.BytesIO()
    square.resize((size, size), Image.Resampling.BILINEAR).save(out, "PNG")
    return out.getvalue()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("digits").add_argument("--out", type=Path, default=Path("data/raw/digits.npz"))
    convert = commands.add_parser("idx")
    convert.add_argument("folder", type=Path)
    convert.add_argument("out", type=Path)
    faces = commands.add_parser("celeba")
    faces.add_argument("folder", type=Path)
    faces.add_argument("out", type=Path)
    faces.add_argument("--size", type=int, default=64, help="pixels of a side; the papers have 32 too")
    arguments = parser.parse_args()
    if arguments.command == "digits":
        digits(arguments.out)
    elif arguments.command == "celeba":
        celeba(arguments.folder, arguments.out, arguments.size)
    else:
        idx(arguments.folder, arguments.out)
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
