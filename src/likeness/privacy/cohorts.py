r"""Cohorts: releases about disjoint groups of people, night after night, and what all of them cost together.

*Series.* On night t = 1, 2, ... the source has a table. The *first night* f of a person is the first one of the series
whose table names the person. A *cohort* [a, b] is the people with a ≤ f ≤ b. A release about it sums their rows as they
are on night b, at most as many of a person as its unit says. Rows of others are left out.

*Neighbors.* Two sequences of tables that differ in one person: with all rows of all nights, or without any of them.

*First nights depend on a person's own rows only.* f follows from the nights whose table names this person, under a
keyed hash of 128 bits of the name. Which night it is, and its cohort, follow from the ledger. So with or without one
person all others have the same first nights. If a cohort were filled up to a size, or cut by a quantile, one person
could push another into the next cohort, and two sums would change for each one who is pushed.

*Theorem.* Releases 1, 2, ... are each a Gaussian sum of cost ρ_i about a cohort I_i. Each may depend on earlier
answers. Let ``c(f) = Σ_{i: f ∈ I_i} ρ_i``, and let c(f) ≤ ρ_K for each f, for all answers, with ρ_K fixed beforehand.
Then all releases together have the guarantee of Gaussian sums of total cost ρ_K.

*Proof.* Take neighbors D and D' that differ in a person of first night f. Given the earlier answers, a release with
f ∉ I_i sums the same rows of the same people in D and in D'. So it has the same law, and costs 0. A release with
f ∈ I_i costs at most ρ_i, by its sensitivity under adding or removing this person. So for this pair all releases are an
adaptive composition of costs ``ρ_i·[f ∈ I_i]``, which sum to c(f) ≤ ρ_K on every transcript. Such compositions have
ρ_K-zero-concentrated differential privacy (Whitehouse, Ramdas, Rogers and Wu 2023, Theorem 1), and are at most one
Gaussian mechanism of ``μ = sqrt(2 ρ_K)`` (Smith and Thakurta 2022, fully adaptive composition). The pair was any. ∎

*Partition selection.* A step with f ∉ I_i fails on neither side, so its δ_i counts for nobody else either. The proof of
:mod:`likeness.privacy.thresholds` holds with ``Σ_{i: f ∈ I_i} δ_i ≤ δ_K``. So both limits hold apart: the largest c(f)
of ρ, and that of δ.

*Several series, and releases about everybody.* A person has one first night in each series. Their costs add up: c of
everybody, and the largest c(f) of each series.

*A night may stop.* A source with fewer than half of the people on record stops a night until a person agrees, and a
broken cell stops one too. The proof holds where both tables stop alike.

*Replace-one is refused.* One person there becomes another, of another first night. Then two cohorts change, so the cost
could be the sum of two c(f). The number of people of each cohort would have to be public.

*The tree.* Night t asks about the cohort ``[t − lowbit(t) + 1, t]``: lowbit(t) is the largest power of 2 that divides
t. Its size is that power, and cohorts of one size are disjoint. So each f is in at most one cohort of each size: in at
most ``⌊log₂ T⌋ + 1`` of T nights (Chan, Shi and Song 2011; Dwork, Naor, Pitassi and Rothblum 2010). The people of all
nights until t are the disjoint union of at most as many cohorts: that of t, that of ``t − lowbit(t)``, and so on. So
noise of a running total has at most ``sqrt(⌊log₂ T⌋ + 1)`` times the standard deviation of one cohort's.
"""

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from likeness.core.format import COHORT

MOST_NIGHTS = 1 << 15
"""Nights of a series: 89 years. It bounds the memory of a reader of a stranger's ledger."""


@dataclass(frozen=True)
class Cohort:
    """People by their first night.

    Attributes:
        first, last: nights, from 1 on, both included.
    """

    first: int
    last: int

    @classmethod
    def from_group(cls, group: str) -> Self | None:
        """The cohort of a composition group; None for a release about everybody.

        Raises:
            ValueError: the text names no cohort.
        """
        if group == "":
            return None
        if not re.fullmatch(COHORT, group):
            raise ValueError(group)
        cohort = cls(*map(int, group.split("-")))
        if not cohort.first <= cohort.last <= MOST_NIGHTS:
            raise ValueError(group)
        return cohort

    @classmethod
    def from_night(cls, night: int, ends: Collection[int]) -> Self:
        """The cohort of a night of the tree.

        Args:
            night: t, from 1 on.
            ends: 0, and the last nights of cohorts that are released, which together with cohorts before them hold all
                people until then. If night ``t − lowbit(t)`` is not among them, the cohort begins earlier: after the
                last one before it. Then nobody is left out of the totals, and the nights between cost more.
        """
        return cls(1 + max(end for end in ends if end <= night - (night & -night)), night)

    def __str__(self) -> str:
        """Write it as a composition group."""
        return f"{self.first}-{self.last}"


@dataclass
class Composition:
    """Costs of releases, all together. Numbers of two kinds, ρ and δ, are each composed.

    Costs only grow. So the largest of each series, and the total, are kept as they grow: a stranger's ledger may have
    many series.

    Attributes:
        total: ρ and δ of all releases together.
        series: costs by kind and first night, shape (2, at least last night + 1), of each series by its name.
        most: the largest ρ and δ of each series.
    """

    total: tuple[float, float] = (0.0, 0.0)
    series: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    most: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, rho: float, delta: float, series: str = "", cohort: Cohort | None = None) -> Self:
        """Take the cost of a release.

        Args:
            rho: its ρ.
            delta: its δ.
            series: name of the series; nothing for a release about everybody.
            cohort: whom it is about; None: everybody.

        Returns:
            itself.
        """
        if cohort is not None:
            costs = self.series.get(series, np.zeros((2, 0)))
            if (short := cohort.last + 1 - costs.shape[1]) > 0:
                costs = np.pad(costs, ((0, 0), (0, max(short, costs.shape[1]))))  # doubled: few copies in years
            people = costs[:, cohort.first : cohort.last + 1]
            people += [[rho], [delta]]
            before, now = self.most.get(series, (0.0, 0.0)), people.max(axis=1).tolist()
            after = max(before[0], now[0]), max(before[1], now[1])
            self.series[series], self.most[series] = costs, after
            rho, delta = (new - old if new > old else 0.0 for old, new in zip(before, after, strict=True))
        self.total = math.fsum([self.total[0], rho]), math.fsum([self.total[1], delta])
        return self
