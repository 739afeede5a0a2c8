"""Build .npz files of public images, in the layout of Keras: x_train, y_train, x_test, y_test.

Run: ``python scripts/build_images.py digits`` writes data/raw/digits.npz from scikit-learn (shipped with this
project); ``python scripts/build_images.py idx FOLDER OUT.npz`` converts the four idx files of MNIST or Fashion-MNIST,
such as those of Debian's package dataset-fashion-mnist in /usr/share/datasets/fashion-mnist.
"""

import argparse
import gzip
from pathlib import Path

import numpy as np

PARTS = {"train": "train", "test": "t10k"}


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


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("digits").add_argument("--out", type=Path, default=Path("data/raw/digits.npz"))
    convert = commands.add_parser("idx")
    convert.add_argument("folder", type=Path)
    convert.add_argument("out", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "digits":
        digits(arguments.out)
    else:
        idx(arguments.folder, arguments.out)
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
