from typing import Any

def hash_rows(columns: list[Any], rows: int, portable: bool = False, /) -> bytes | int:
    """SHA-256 of the joined cells of each row, 32 bytes a row; other threads run meanwhile.

    A number of more than four decimals or fifteen digits is not written: the place of its column comes back.

    Args:
        columns: buffers of each: the place of each row's text among its texts (int8, int16 or int32; below 0: the last
            one), where each text begins and the last one ends (int64), and the texts. Or one buffer of numbers
            (float64), NaN where one is missing.
        rows: their number.
        portable: without the processor's own instructions.

    Raises:
        ValueError: a row names a text or a number that its column does not have.
    """

def add_texts(numbers: Any, weights: Any, /) -> bytes | None:
    """Sum the bytes of the text of each number, each by one more and times the weight of its place: uint64.

    None where a number has more than four decimals or ten digits before them, is not finite, or is a negative zero.

    Args:
        numbers: buffer of float64.
        weights: buffer of uint64, at least 24.

    Raises:
        ValueError: there are fewer weights.
    """
