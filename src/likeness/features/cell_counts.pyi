from typing import Any

def find_cells(values: Any, edges: Any, firsts: Any, /) -> bytes:
    """Count the edges that are at most each value: uint16; other threads run meanwhile.

    Args:
        values: buffer of float64.
        edges: buffer of float64, ascending, at most 65,535, and NaN, which no value reaches.
        firsts: buffer of int64: how many edges are at most the lower end of each of 4,096 intervals of [0, 1].

    Raises:
        ValueError: edges or intervals are others.
    """

def count_cells(cells: tuple[Any, ...], sizes: tuple[int, ...], counts: Any, /) -> None:
    """Add one for each row to the count of its cell in a table of columns; other threads run meanwhile.

    Args:
        cells: buffers of uint16, of one length: of each column the cell of each row.
        sizes: cells of each column; those of the last one are side by side.
        counts: buffer of int64 that can be written, as long as the table has cells, below 2^32.

    Raises:
        ValueError: a row is in no cell of the table. Some rows may be counted.
    """
