"""What a neighboring table is, and how far a lattice sum moves between two of them.

A *term* is one integer vector inside a sum. It is made of *parts*: consecutive coordinates whose Euclidean norm the
door enforces, and whose sign it enforces where the part is declared non-negative. The functions below use nothing
that the door does not enforce, so a feature map that lies about itself cannot change the guarantee.
"""

from collections.abc import Sequence
from enum import StrEnum

from likeness.core.bounds import Part
from likeness.core.errors import PlanError


class Adjacency(StrEnum):
    """Which two tables count as neighbors.

    ``ADD_REMOVE_ONE``: one record is added or removed; the number of records is private (Dwork et al. 2006,
    "unbounded"). ``REPLACE_ONE``: one record is replaced; the number of records is public ("bounded").

    Where a person may have several rows (:class:`likeness.core.bounds.Unit`), ``ADD_REMOVE_ONE`` adds or removes one
    person with all rows. ``REPLACE_ONE`` is refused there: one person has more rows than another, so that the number of
    records would change with a replacement, and could not be public.
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
    parts: Sequence[Part], lattice_bits: int, change: TermChange, num_groups: int = 1, rows: int = 1
) -> int:
    """Square of the L2 sensitivity of a sum of integer terms, in lattice units; an exact integer.

    Let ``L_p`` be the integer bound that the door enforces on the squared norm of part ``p`` of every term *after*
    truncation to the lattice, so that rounding is already counted.

    - One term appears: the sum moves by that term, ``Δ² ≤ Σ_p L_p``.
    - One term replaced by another in the same group: ``Δ² ≤ Σ_p factor_p · L_p`` (:attr:`Part.replacement_factor`).
    - One term replaced by one in another group (another class): the two stand in different coordinates, so
      ``Δ² ≤ 2 Σ_p L_p``. With more than one group the larger of the two counts.

    A person of several rows. ``change`` says what one record does to the terms *of any table*; let Δ be the bound
    above. Tables that differ in one person of at most ``rows`` = k rows are the ends of a chain of tables T_0, ...,
    T_m, m ≤ k, each with one record more than the one before it. Every link moves the sum by at most Δ, whatever the
    other records are, so by the triangle inequality the ends are at most ``m Δ ≤ k Δ`` apart: ``Δ_k² = k² Δ²``, an
    integer again. It is reached where the k rows are equal and a term stands for a record. Nothing is assumed of the
    rows: they may be equal, of different classes, and anywhere in the table. For terms that are made with secret dice
    (:class:`likeness.release.records.BucketPairs`) the dice of *all* records are fixed first, those of the person's
    too; the chain is then one of tables with the same dice. A chain of replacements would prove as much for a person
    who is replaced by one of exactly as many rows, which is no neighbor that anybody means: persons are added or
    removed.

    Args:
        rows: k, the most rows of one person.

    Raises:
        PlanError: no parts, a bound of zero, or several rows a person where a record is replaced.
    """
    if rows < 1:
        raise PlanError(f"a person has at least one row, got {rows}. Set ingest.unit.max_rows to 1 or more.")
    if rows > 1 and change is TermChange.ONE_REPLACED:
        raise PlanError("several rows a person are protected under add_remove_one only: see ingest.unit in params.yaml")
    bounds = [part.lattice_bound_squared(lattice_bits) for part in parts]
    if not bounds or min(bounds) <= 0:
        raise PlanError("a query needs at least one part, and every part a positive norm bound")
    appears = sum(bounds)
    replaced = sum(part.replacement_factor * bound for part, bound in zip(parts, bounds, strict=True))
    if num_groups > 1:
        replaced = max(replaced, 2 * appears)
    one = {TermChange.ONE_APPEARS: appears, TermChange.ONE_REPLACED: replaced}.get(change, max(appears, replaced))
    return rows**2 * one
