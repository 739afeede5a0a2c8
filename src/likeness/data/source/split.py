"""The public split into training and test rows. Only training rows reach the door."""

import hashlib
import math
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from likeness.core.errors import DataError
from likeness.core.rng import public
from likeness.data.source.row_digests import Hashes, hashes_of, last_bits, leading

Parts = pd.Categorical
Words = NDArray[np.uint64]
_NAMES = pd.CategoricalDtype(["train", "test"])
WORDS = 2**32
"""Words: numbers of 32 bits."""
COPIES_STEP = 2_654_435_769
""":data:`WORDS` divided by the golden ratio: its multiples lie evenly among all words."""
_WIDER = 4  # times as long as the next one is each sorted array of rows, so there are few


def split_by_column(column: "pd.Series[str]", train: str, test: str) -> Parts:
    """Split by a public column of the source.

    Raises:
        DataError: the column holds another value.
    """
    if not column.isin([train, test]).all():
        raise DataError(
            f"split column '{column.name}' has a value other than '{train}' and '{test}'. Correct ingest.split."
        )
    return _names(column.to_numpy() != train)


class SplitByContent:
    """A split by content and copy of each row, for ``add_remove_one``: a row that comes or goes moves no other row.

    Let a table have k rows with the text t, copies 0 to k - 1. Let w be the last word of SHA-256(t), and let the seed
    give a factor and a start. Copy c is a test row if (factor · w + step · c + start) mod 2^32 is below a threshold.
    That follows from t, c and public numbers. So of these rows n(k) = #{c < k: not below} are training rows, whatever
    other rows there are. Without one of them there are k - 1 such rows, and n(k) - n(k - 1) is 0 or 1. Equal rows are
    interchangeable. So either the training rows lose that row, or the test rows do, and all other rows stay. A split by
    position would move all rows behind a removed one. One by content alone would put all equal rows on one side.

    The factor is odd, so it only permutes the words: different rows are test rows as if drawn. Copies of a row lie
    evenly, because of the step.

    In SQL the copy is ``ROW_NUMBER() OVER (PARTITION BY t) - 1``, and no number reaches 2^63. Rows are equal here if
    the first 128 bits of their hashes are. Memory holds 16 bytes of each row, and four times as many for moments. If no
    row is held out, it holds nothing.
    """

    def __init__(self, test_fraction: float, seed: int) -> None:
        """Start without rows.

        Args:
            test_fraction: share of the test rows.
            seed: public.
        """
        self._fraction, (self._factor, self._start) = test_fraction, factor_and_start(seed)
        self._passed: list[tuple[Words, Words]] = []  # the first 64 bits of rows, and the next: sorted

    def assign_parts(self, hashes: Hashes) -> Parts:
        """``train`` or ``test`` for each row of the next chunk, by the hashes of the rows."""
        if not self._fraction:
            return _names(np.zeros(len(hashes), bool))
        numbers = last_bits(hashes) * self._factor + self._copies(hashes) * np.uint64(COPIES_STEP) + self._start
        return _part_names(numbers, self._fraction)

    def _copies(self, hashes: Hashes) -> NDArray[np.uint64]:
        """The number of each row of a chunk among the rows so far that equal it, shape (n,)."""
        heads, seconds = leading(hashes), leading(hashes[:, 8:])
        order = _order(heads, seconds)
        heads, seconds, positions = heads[order], seconds[order], np.arange(len(heads))
        starts = np.append(True, (heads[1:] != heads[:-1]) | (seconds[1:] != seconds[:-1]))[: len(heads)]
        numbers = positions - np.maximum.accumulate(np.where(starts, positions, 0))
        for passed in self._passed:
            numbers += _times(*passed, heads, seconds)
        while self._passed and len(self._passed[-1][0]) < _WIDER * len(heads):
            heads, seconds = map(np.concatenate, zip(self._passed.pop(), (heads, seconds), strict=True))
            again = _order(heads, seconds, "stable")  # which joins two sorted arrays in one pass
            heads, seconds = heads[again], seconds[again]
        if len(heads):
            self._passed.append((heads, seconds))
        copies = np.empty(len(numbers), np.uint64)
        copies[order] = numbers
        return copies


def _times(heads: Words, seconds: Words, some: Words, others: Words) -> NDArray[np.int64]:
    """Count each of some rows among sorted rows, shape (n,). A row is its first 64 bits, and the next."""
    firsts = np.searchsorted(heads, some)
    matches = np.flatnonzero(heads[np.minimum(firsts, len(heads) - 1)] == some)
    firsts, ends = firsts[matches], np.searchsorted(heads, some[matches], "right")
    times = ends - firsts
    # Nearly always the next bits are equal too: then those of the first and of the last such row are.
    for at in np.flatnonzero((seconds[firsts] != others[matches]) | (seconds[ends - 1] != others[matches])):
        alike, other = seconds[firsts[at] : ends[at]], others[matches[at]]
        times[at] = np.searchsorted(alike, other, "right") - np.searchsorted(alike, other)
    result = np.zeros(len(some), np.int64)
    result[matches] = times
    return result


def _order(heads: Words, seconds: Words, kind: Literal["quicksort", "stable"] = "quicksort") -> NDArray[np.int64]:
    """The places of rows in ascending order, equal rows as they come: by their first 64 bits, then by the next."""
    order = np.argsort(heads, kind=kind)
    equal = heads[order[1:]] == heads[order[:-1]]
    tied = np.append(equal, False)[: len(order)] | np.append(False, equal)[: len(order)]
    some = np.sort(order[tied])
    order[tied] = some[np.lexsort((seconds[some], heads[some]))]
    return order


def factor_and_start(seed: int) -> tuple[np.uint64, np.uint64]:
    """The public numbers of a split by content: an odd one below 2^31, and a word."""
    factor, start = np.frombuffer(hashlib.sha256(f"likeness split {seed}".encode()).digest()[:8], ">u4")
    return np.uint64(factor >> 1 | 1), np.uint64(start)


def held_out_words(fraction: float) -> int:
    """Count the words, from 0 on, that mean a test row."""
    return math.ceil(fraction * WORDS)


class SplitByPosition:
    """A split by a public permutation, for ``replace_one``: both sizes are public, and a replaced row stays."""

    def __init__(self, count: int, test_fraction: float, seed: int) -> None:
        """Start before the first row. A mask takes a byte a row, and names would take twenty.

        Args:
            count: number of rows of all chunks.
            test_fraction: share of the test rows.
            seed: public.
        """
        self._mask, self._start = np.zeros(count, dtype=bool), 0
        self._mask[public(seed, "split").permutation(count)[: round(count * test_fraction)]] = True

    def assign_parts(self, hashes: Hashes) -> Parts:
        """``train`` or ``test`` for each row of the next chunk, by the hashes of the rows."""
        start, self._start = self._start, self._start + len(hashes)
        return _names(self._mask[start : self._start])


def halves(count: int, seed: int) -> Parts:
    """``train`` or ``test`` for each of some rows that were not held out: two halves, by a public permutation."""
    mask = np.zeros(count, dtype=bool)
    mask[public(seed, "halves").permutation(count)[: count // 2]] = True
    return _names(mask)


def split_by_person(people: "pd.Series[str]", test_fraction: float, seed: int) -> Parts:
    """Split by a public hash of the person's name, so that all rows of a person are on one side."""
    codes, names = pd.factorize(people)
    hashes = hashes_of(f"likeness person {seed} {name}".encode() for name in names)
    return _part_names(last_bits(hashes), test_fraction)[codes]


def _part_names(numbers: NDArray[np.uint64], fraction: float) -> Parts:
    """``train`` or ``test`` for each row, by a number whose last 32 bits count."""
    return _names(numbers % np.uint64(WORDS) < held_out_words(fraction))


def _names(is_test: NDArray[np.bool_]) -> Parts:
    """``train`` or ``test`` for each row."""
    return pd.Categorical.from_codes(is_test.astype(np.int8), dtype=_NAMES)
