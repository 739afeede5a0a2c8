from typing import Any

def hash_rows(columns: list[tuple[Any, Any, Any]], rows: int, portable: bool = False, /) -> bytes:
    """SHA-256 of the joined cells of each row, 32 bytes a row; other threads run meanwhile.

    Args:
        columns: buffers of each: the place of each row's text among its texts (int32), where each text begins and the
            last one ends (int64), and the texts.
        rows: their number.
        portable: without the processor's own instructions.

    Raises:
        ValueError: a row names a text that its column does not have.
    """
