"""Choices among public candidates by their secret scores. :mod:`likeness.privacy.choices` proves the cost.

Nobody can compute again that a choice was made from the rows: scores never leave this module. A verifier computes
again the candidates, what each choice left of them, the range, the scale and the cost.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeness.core.bounds import PrivacyUnit, rows_per_unit
from likeness.core.errors import DataError, ReleaseError
from likeness.core.hashing import sha256_json
from likeness.features.base import Candidate, CandidatesMap
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.choices import CHOICE_BITS, dominating_sensitivity_squared, range_of
from likeness.privacy.receipt import SCORE
from likeness.release.query import MAX_SUMMED, Query
from likeness.release.records import Records

MONOTONE = "monotone"
"""The kind of all scores: they only grow with a record."""
NONE_LEFT = -1
"""Stands for a choice where no candidate was left."""


@dataclass(frozen=True)
class ChoiceQuery(Query):
    """Choose some of the candidates, one after the other, by their scores.

    Attributes:
        feature: the candidates.
        rounds: number of choices.
    """

    feature: CandidatesMap
    rounds: int = 1

    @property
    def dimension(self) -> int:
        """One number a choice."""
        return self.rounds

    @property
    def lattice_bits(self) -> int:
        """Steps of the noise scale in a row, as a power of two."""
        return CHOICE_BITS

    def sensitivity_squared(self, adjacency: Adjacency, unit: PrivacyUnit | None = None) -> float:
        """The squared sensitivity of the Gaussian that dominates the choices, in steps."""
        return dominating_sensitivity_squared(self.rounds, range_of(adjacency, rows_per_unit(unit)))

    def spec(self) -> dict[str, Any]:
        """Public specification, with the digest of the candidates: thousands would not fit each entry of a ledger."""
        listed = self.feature.spec()
        digest = {"map": listed["map"], "number": len(self.feature.candidates), "candidates": sha256_json(listed)}
        return {**digest, "rounds": self.rounds, SCORE: MONOTONE, **self.contributions.spec()}

    def allows(self, chosen: NDArray[np.int64]) -> bool:
        """Tell whether these may be the choices: each is one of those that the ones before it left."""
        before: list[int] = []
        for choice in chosen.ravel().tolist():
            left = self.feature.remaining(before)
            if choice not in (left or [NONE_LEFT]):
                return False
            before += [choice] * bool(left)
        return chosen.shape == (1, self.rounds)


def scores_of(query: ChoiceQuery, records: Iterable[Records]) -> tuple[list[int], int]:
    """Exact scores of all candidates, and the number of records. Private.

    Sensitivity. A record lies in one cell of a table or in none, whatever the map returns, because a place outside
    counts nothing. Where it is added, each window's count grows by 0 or 1, in at most one group. So the largest window
    of that group grows by 0 or 1, and that of no other group changes. The offset is public. So every score grows by 0
    or 1: they are monotone, with a sensitivity of 1.

    Raises:
        DataError: more rows than fit 64 bits.
        ReleaseError: the map returns other places than the candidates have.
    """
    tables, count = query.feature.tables, 0
    counts = [np.zeros(groups * cells + 1, np.int64) for groups, cells in tables]
    for chunk in query.contributions.stream(records):
        count += len(chunk.x)
        if count > MAX_SUMMED:
            raise DataError(f"{query.name}: over {MAX_SUMMED} rows overflow a 64-bit sum. Split the table.")
        for total, cells in zip(counts, query.feature.cells_of_rows(chunk.x), strict=True):
            if cells.shape != (len(chunk.x),) or cells.dtype != np.int64:
                raise ReleaseError(f"{query.name}: the candidates must return one int64 place a row")
            last = len(total) - 1
            total += np.bincount(np.where((cells < 0) | (cells > last), last, cells), minlength=last + 1)
    below = []
    for total, size in zip(counts, tables, strict=True):
        below.append(np.zeros((size[0], size[1] + 1), np.int64))
        below[-1][:, 1:] = np.cumsum(total[:-1].reshape(size), axis=1)
    return [_score(candidate, below[candidate.table]) for candidate in query.feature.candidates], count


def _score(candidate: Candidate, below: NDArray[np.int64]) -> int:
    """The score of a candidate from the records before each cell of a group, and before its end."""
    firsts, ends = np.array(candidate.windows, np.int64).T
    return int((below[:, ends] - below[:, firsts]).max(axis=1).sum()) - candidate.offset


def draw_choices(query: ChoiceQuery, scores: list[int], choose: Callable[[list[int]], int]) -> NDArray[np.int64]:
    """The numbers of the chosen candidates, shape (1, rounds).

    Args:
        query: the query.
        scores: of all candidates. Private.
        choose: from scores to the index of one, with fresh noise.
    """
    chosen: list[int] = []
    for _ in range(query.rounds):
        left = query.feature.remaining(chosen)
        if not left:
            break
        chosen.append(left[choose([scores[candidate] for candidate in left])])
    return np.array([chosen + [NONE_LEFT] * (query.rounds - len(chosen))], np.int64)
