"""Neighboring tables, and the L2 distance of a lattice sum between two of them.

A *contribution* is one integer vector inside a sum. It has *parts*: consecutive coordinates whose Euclidean norm the
door enforces. The door also enforces the sign of a part that is declared non-negative. The functions below use only
enforced properties, so a feature map with a false specification cannot change the guarantee.
"""

from collections.abc import Sequence
from enum import StrEnum

from likeness.core.bounds import Part
from likeness.core.errors import PlanError


class Adjacency(StrEnum):
    """The rule that says which two tables are neighbors.

    ``ADD_REMOVE_ONE``: one record is added or removed; the number of records is private (Dwork et al. 2006,
    "unbounded"). ``REPLACE_ONE``: one record is replaced; the number of records is public ("bounded").

    Where a person may have several rows (:class:`likeness.core.bounds.PrivacyUnit`), ``ADD_REMOVE_ONE`` adds or removes
    one person with all rows. ``REPLACE_ONE`` is refused there: a replacement would change the number of records, which
    could then not be public.
    """

    ADD_REMOVE_ONE = "add_remove_one"
    REPLACE_ONE = "replace_one"


class Stability(StrEnum):
    """Stability: how one record changes the contributions to a sum.

    ``ONE_APPEARS``: one contribution appears or disappears, the others stay (one a record, add or remove).
    ``ONE_REPLACED``: one contribution becomes another, their number stays (a record, or a fixed pairing, replace).
    ``ONE_APPEARS_OR_REPLACED``: either of the two (buckets of one pair each, add or remove).
    """

    ONE_APPEARS = "one_appears"
    ONE_REPLACED = "one_replaced"
    ONE_APPEARS_OR_REPLACED = "one_appears_or_replaced"


def lattice_sensitivity_squared(
    parts: Sequence[Part], lattice_bits: int, change: Stability, num_groups: int = 1, rows: int = 1
) -> int:
    """Square of the L2 sensitivity of a sum of integer contributions, in lattice units; an exact integer.

    Let ``L_p`` be the integer bound that the door enforces on the squared norm of part ``p`` of each contribution
    *after* truncation to the lattice. So rounding is counted.

    - One contribution appears: the sum moves by it, ``Δ² ≤ Σ_p L_p``.
    - One is replaced by another in its group: ``Δ² ≤ Σ_p factor_p · L_p`` (:attr:`Part.replacement_factor`).
    - One is replaced by one in another group (another class): the two stand in different coordinates, so
      ``Δ² ≤ 2 Σ_p L_p``. With more than one group the larger of the two counts.

    *A person of several rows.* ``change`` says what one record does to the contributions *of any table*; let Δ be the
    bound above. Let two tables differ in one person of at most ``rows`` = k rows. They are the ends of a chain of
    tables T_0, ..., T_m, m ≤ k, each with one record more than the one before. Each link moves the sum by at most Δ,
    for any other records. By the triangle inequality the ends are at most ``m Δ ≤ k Δ`` apart: ``Δ_k² = k² Δ²``, an
    integer. Equal rows reach the bound where each record is one contribution. The rows may be of different classes, and
    anywhere in the table.

    *Secret dice* (:class:`likeness.release.records.BucketPairs`). Fix the dice of *all* records first, also the
    person's. The chain then consists of tables with equal dice. A chain of replacements would prove the bound for a
    person who is replaced by one of exactly as many rows. That is not the neighbor of :class:`Adjacency`.

    Args:
        parts: bounds of a contribution.
        lattice_bits: one unit of the feature is ``2**lattice_bits`` lattice steps.
        change: what one record does to the contributions.
        num_groups: number of classes.
        rows: k, the most rows of one person.

    Raises:
        PlanError: no parts, a bound of zero, or several rows a person where a record is replaced.
    """
    if rows < 1:
        raise PlanError(f"ingest.unit.max_rows must be at least 1, got {rows}. Correct it in params.yaml.")
    if rows > 1 and change is Stability.ONE_REPLACED:
        raise PlanError(
            "ingest.unit.max_rows above 1 needs privacy.adjacency: add_remove_one. Correct one of them in params.yaml."
        )
    bounds = [part.lattice_bound_squared(lattice_bits) for part in parts]
    if not bounds or min(bounds) <= 0:
        raise PlanError(
            "a feature map needs at least one part, and each part a positive norm bound. Correct its parts."
        )
    appears = sum(bounds)
    replaced = sum(part.replacement_factor * bound for part, bound in zip(parts, bounds, strict=True))
    if num_groups > 1:
        replaced = max(replaced, 2 * appears)
    squared = {Stability.ONE_APPEARS: appears, Stability.ONE_REPLACED: replaced}.get(change, max(appears, replaced))
    return rows**2 * squared
