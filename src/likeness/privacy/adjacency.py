"""What a neighboring table is, and how far a lattice sum moves between two of them.

A *term* is one integer vector inside a sum. It is made of *parts*: consecutive coordinates whose Euclidean norm the
door enforces, and whose sign it enforces where the part is declared non-negative. The functions below use nothing
that the door does not enforce, so a feature map that lies about itself cannot change the guarantee.
"""

from collections.abc import Sequence
from enum import StrEnum

from likeness.bounds import Part
from likeness.errors import PlanError


class Adjacency(StrEnum):
    """Which two tables count as neighbors.

    ``ADD_REMOVE_ONE``: one record is added or removed; the number of records is private (Dwork et al. 2006,
    "unbounded"). ``REPLACE_ONE``: one record is replaced; the number of records is public ("bounded").
    """

    ADD_REMOVE_ONE = "add_remove_one"
    REPLACE_ONE = "replace_one"


class TermChange(StrEnum):
    """How one record changes the terms of a sum: the stability of what makes terms out of records.

    ``ONE_APPEARS``: one term appears or disappears, the others stay (one term a record, add or remove).
    ``ONE_REPLACED``: one term becomes another term, their number stays (a record, or a fixed pairing, replace).
    ``ONE_APPEARS_OR_REPLACED``: either of the two (buckets that keep one pair each, add or remove).
    """

    ONE_APPEARS = "one_appears"
    ONE_REPLACED = "one_replaced"
    ONE_APPEARS_OR_REPLACED = "one_appears_or_replaced"


def lattice_sensitivity_squared(
    parts: Sequence[Part], lattice_bits: int, change: TermChange, num_groups: int = 1
) -> int:
    """Square of the L2 sensitivity of a sum of integer terms, in lattice units; an exact integer.

    Let ``L_p`` be the integer bound that the door enforces on the squared norm of part ``p`` of every term *after*
    truncation to the lattice, so that rounding is already counted.

    - One term appears: the sum moves by that term, ``Δ² ≤ Σ_p L_p``.
    - One term replaced by another in the same group: ``Δ² ≤ Σ_p factor_p · L_p`` (:attr:`Part.replacement_factor`).
    - One term replaced by one in another group (another class): the two stand in different coordinates, so
      ``Δ² ≤ 2 Σ_p L_p``. With more than one group the larger of the two counts.

    Raises:
        PlanError: no parts, or a bound of zero.
    """
    bounds = [part.lattice_bound_squared(lattice_bits) for part in parts]
    if not bounds or min(bounds) <= 0:
        raise PlanError("a query needs at least one part, and every part a positive norm bound")
    appears = sum(bounds)
    replaced = sum(part.replacement_factor * bound for part, bound in zip(parts, bounds, strict=True))
    if num_groups > 1:
        replaced = max(replaced, 2 * appears)
    if change is TermChange.ONE_APPEARS:
        return appears
    if change is TermChange.ONE_REPLACED:
        return replaced
    return max(appears, replaced)
