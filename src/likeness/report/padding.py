"""Padding for files from real rows: their hash says nothing of them, their size only its order of magnitude.

``dvc.lock`` records hash and size of all that DVC tracks, also of ``reports/internal``. So each file there gets random
text up to a power of two, at least :data:`SMALLEST`: the next one that leaves room for a salt. Text of random length
would not do: over many runs of a stage its mean shows the size. One function a format says where the text goes; readers
of the format skip it or see the name ``salt``.
"""

import json
import struct
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from likeness.core.rng import secret_bytes

if TYPE_CHECKING:
    import pandas as pd

SMALLEST = 1 << 16
"""The least size of a padded file, in bytes."""

_SALT = 64  # hexadecimal digits in every file: 256 bits
_CELL = 32_000  # characters of a cell that any spreadsheet holds
_IHDR_END = 33  # signature and first chunk of every PNG


def filler(size: int) -> str:
    """At least 64 random hexadecimal digits that bring ``size`` to a power of two, at least :data:`SMALLEST`."""
    count = max(SMALLEST, 1 << (size + _SALT - 1).bit_length()) - size
    return secret_bytes((count + 1) // 2).hex()[:count]


def pad_png(data: bytes) -> bytes:
    """Add a text chunk ``Salt`` to a picture, right after its header chunk."""
    text = b"tEXtSalt\0"
    text += filler(len(data) + 8 + len(text)).encode("ascii")  # 8: length and checksum of the chunk
    chunk = struct.pack(">I", len(text) - 4) + text + struct.pack(">I", zlib.crc32(text))
    return data[:_IHDR_END] + chunk + data[_IHDR_END:]


def padded_json(value: Mapping[str, Any]) -> bytes:
    """A mapping as JSON with a last key ``salt``, a list of one text: DVC shows no lists among metrics."""
    bare = len(_json({**value, "salt": [""]}))
    return _json({**value, "salt": [filler(bare)]})


def padded_csv(table: "pd.DataFrame") -> bytes:
    """A table as CSV with a last column ``salt``, which only the last rows fill.

    A spreadsheet holds at most 32,767 characters a cell. Where the rows are too few for that, the text is spread evenly
    over them. In a table without rows the text stands in the name of the column.
    """
    bare = _csv(table.assign(salt=""))
    if table.empty:
        return _csv(table.assign(**{f"salt {filler(len(bare) + 1)}": ""}))
    text = filler(len(bare))
    size = max(_CELL, -(-len(text) // len(table)))
    cells = [text[start : start + size] for start in range(0, len(text), size)]
    return _csv(table.assign(salt=[""] * (len(table) - len(cells)) + cells))


def padded_html(page: str) -> bytes:
    """A page with a comment after its end."""
    bare = page.encode("utf-8")
    before, after = b"<!-- salt ", b" -->\n"
    return bare + before + filler(len(bare + before + after)).encode("ascii") + after


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode("ascii")


def _csv(table: "pd.DataFrame") -> bytes:
    text: str = table.to_csv(index=False, lineterminator="\n")
    return text.encode("utf-8")
