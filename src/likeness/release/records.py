"""How records become contributions to a sum, and how many contributions one record can touch (stability)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol

import numpy as np

from likeness.core.errors import PlanError, ReleaseError
from likeness.core.hashing import json_value
from likeness.core.rng import public, secret_bytes
from likeness.features.base import CellMap
from likeness.features.cells import Inputs
from likeness.privacy.adjacency import Adjacency, Stability


@dataclass(frozen=True)
class Records:
    """Consecutive private rows.

    Attributes:
        x: encoded features, shape (n, d), float64, in the unit cube; an array, or made where a map asks for it.
        labels: class of each row, shape (n,), int64.
        persons: whose row each is, shape (n,), int64, numbers from 0 on; None where a row is a person.
        shared_by: how many rows share the contribution of each row's person, shape (n,), int64; None: one.
    """

    x: Inputs
    labels: np.ndarray
    persons: np.ndarray | None = None
    shared_by: np.ndarray | None = None

    def __getitem__(self, rows: slice) -> "Records":
        """Consecutive rows."""
        persons, shared_by = (None if values is None else values[rows] for values in (self.persons, self.shared_by))
        return Records(self.x[rows], self.labels[rows], persons, shared_by)


class Contributions(Protocol):
    """Turns a stream of records into a stream of contributions.

    ``splits``: the contributions of a table are those of its parts together, however it is cut. ``terms`` is its
    name in a specification.
    """

    splits: ClassVar[bool]
    terms: ClassVar[str]

    def change(self, adjacency: Adjacency) -> Stability:
        """Say what one record can do to the contributions of any table under this adjacency.

        A person of k rows is k changes, one after the other: see
        :func:`likeness.privacy.adjacency.lattice_sensitivity_squared`.
        """

    def stream(self, records: Iterable[Records]) -> Iterator[Records]:
        """The contributions, in one pass, in memory that does not grow with the number of records."""

    def spec(self) -> dict[str, Any]:
        """Public specification: the name, and the fields that equality looks at."""
        names = [item.name for item in fields(self) if item.compare]  # type: ignore[arg-type]
        return {"terms": self.terms, **{name: json_value(getattr(self, name)) for name in names}}


@dataclass(frozen=True)
class EachRecord(Contributions):
    """One contribution a record, of its class: adding or replacing a record adds or replaces its contribution.

    Records of classes beyond the query's groups count nothing. :class:`AllRecords` takes all classes together.
    """

    terms: ClassVar[str] = "each_record"
    splits: ClassVar[bool] = True

    def change(self, adjacency: Adjacency) -> Stability:
        """One contribution appears, or one is replaced."""
        return Stability.ONE_APPEARS if adjacency is Adjacency.ADD_REMOVE_ONE else Stability.ONE_REPLACED

    def stream(self, records: Iterable[Records]) -> Iterator[Records]:
        """The records themselves."""
        return iter(records)


@dataclass(frozen=True)
class AllRecords(EachRecord):
    """All classes together: every contribution belongs to the only group."""

    terms: ClassVar[str] = "all_records"

    def stream(self, records: Iterable[Records]) -> Iterator[Records]:
        """The records without their classes."""
        for chunk in records:
            yield Records(chunk.x, np.zeros(len(chunk.x), dtype=np.int64), chunk.persons)


@dataclass(frozen=True)
class EachCluster(EachRecord):
    """One contribution a record, of its cluster within its class.

    The groups are the M clusters of class 0, then those of class 1, and so on. A public map of cells has one part of M
    cells for each class. A record of class y that lies in cell k of part y belongs to group M y + k.

    Bound: only the group changes, and no vector does. The group depends on the record and on public numbers alone, not
    on other records. So a record is exactly one contribution, as in :class:`EachRecord`, whatever the map returns. A
    place outside its part counts as the nearest cell. Records of other classes are in no group.

    Neighbors: adding or removing a record adds or removes its contribution. Replacing a record replaces one
    contribution by another, maybe of another group. :func:`~likeness.privacy.adjacency.lattice_sensitivity_squared`
    counts that wherever there is more than one group.

    Attributes:
        clusters: the map; what it names may be released numbers.

    Raises:
        ReleaseError: its parts differ.
    """

    terms: ClassVar[str] = "each_cluster"

    clusters: CellMap

    def __post_init__(self) -> None:
        if len({part.width for part in self.clusters.bounded_parts}) != 1:
            raise ReleaseError("clusters need a map with one part a class, and as many cells in each")

    @property
    def num_groups(self) -> int:
        """Clusters of all classes together."""
        return sum(part.width for part in self.clusters.bounded_parts)

    def stream(self, records: Iterable[Records]) -> Iterator[Records]:
        """The records, with their groups as labels."""
        classes = len(self.clusters.bounded_parts)
        size = self.num_groups // classes
        for chunk in records:
            inside = (chunk.labels >= 0) & (chunk.labels < classes)
            labels = np.where(inside, chunk.labels, 0)
            cells = self.clusters.cell_indices(np.asarray(chunk.x))[np.arange(len(labels)), labels].clip(0, size - 1)
            yield Records(chunk.x, np.where(inside, labels * size + cells, -1), chunk.persons)


@dataclass(frozen=True)
class WithClass(EachRecord):
    """Contributions of single records. The inputs of a record end with its class: one column a class, a 1 in its own.

    So a map can use the class, as it uses any other value of the record. ``contributions`` still says the group.

    Bound: only inputs change, and these of a record depend on that record alone. Its group is that of the others, and
    the map bounds its vector at every input. So a record is exactly one contribution, as in :class:`EachRecord`, and
    adding, removing or replacing it does what it does there. A record of another class has no 1.

    Attributes:
        classes: their number.
        contributions: what says the group of a record.

    Raises:
        ReleaseError: these are not contributions of single records, or there is no class.
    """

    terms: ClassVar[str] = "with_class"

    classes: int
    contributions: EachRecord = EachRecord()

    def __post_init__(self) -> None:
        single = isinstance(self.contributions, EachRecord) and not isinstance(
            self.contributions, EachPerson | WithClass
        )
        if not (single and type(self.classes) is int and self.classes > 0):
            raise ReleaseError("inputs with a class need contributions of single records, and at least one class")

    def stream(self, records: Iterable[Records]) -> Iterator[Records]:
        """The records, with more inputs and the groups of the others."""
        for chunk in records:
            (grouped,) = self.contributions.stream([chunk])
            one_hot = (chunk.labels[:, None] == np.arange(self.classes)).astype(np.float64)
            yield Records(np.hstack([np.asarray(chunk.x), one_hot]), grouped.labels, chunk.persons)


@dataclass(frozen=True)
class EachPerson(EachRecord):
    r"""One contribution a person, which the rows of the person share evenly.

    Only sums over cells (:class:`likeness.features.base.CellMap`) can share. A part has the bound L and
    :math:`S = \lfloor \sqrt L \rfloor` lattice steps. Each of a person's m rows adds
    :math:`\lfloor S / m \rfloor` steps to one cell of the part, or nothing.

    Bound: all that a person adds to a part is a vector of whole numbers of at least 0, over the cells of all classes.
    They sum to at most :math:`m \lfloor S / m \rfloor \le S`. A non-negative vector has an L2 norm of at most its sum.
    So its squared norm is at most :math:`S^2 \le L`, for any m, and floors only shrink it. The parts together have at
    most the squared norm of one contribution. m rows in one cell reach the bound if m divides S. The weight
    :math:`1/\sqrt m` would break it there: m rows in one cell would add :math:`\sqrt m \, S`.

    Neighbors: adding or removing a person adds or removes one such vector. Replacing a person replaces one vector by
    another, or by none. Two non-negative vectors a and b of norm at most S have
    :math:`\|a - b\|^2 \le \|a\|^2 + \|b\|^2 \le 2 S^2`, and :math:`S^2` in a part of one cell and one class. So the
    sensitivity is that of one record, and no factor for the number of rows stands before it.

    The stream itself counts the rows of each person, so no caller can break the bound. The numbers of people ascend,
    so the rows of a person are consecutive: a person who comes again later is refused. Of rows that stay in a database
    the statement that counts the cells says m, see :mod:`likeness.release.sums.backends`.
    """

    terms: ClassVar[str] = "each_person"
    splits: ClassVar[bool] = False

    def stream(self, records: Iterable[Records]) -> Iterator[Records]:
        """The rows, each with the number of rows of its person. Memory: a chunk, and the rows of one person.

        Raises:
            ReleaseError: a row has no person, or the numbers of people do not ascend.
        """
        waiting: Records | None = None
        for chunk in records:
            persons = chunk.persons
            if persons is None or persons.shape != (len(chunk.x),) or persons.dtype != np.int64 or (persons < 0).any():
                raise ReleaseError("each row must have the number of its person, an int64 from 0 on. Run: likeness run")
            rows = chunk if waiting is None else _join_records(waiting, chunk)
            assert rows.persons is not None
            if (np.diff(rows.persons) < 0).any():
                raise ReleaseError("the rows of a person must be together, in the order of people. Run: likeness run")
            complete = int(np.searchsorted(rows.persons, rows.persons[-1:], side="left").sum())  # the last may go on
            yield _number_shares(rows[:complete])
            waiting = rows[complete:]
        if waiting is not None:
            yield _number_shares(waiting)


def _join_records(first: Records, second: Records) -> Records:
    assert first.persons is not None and second.persons is not None
    pairs = (np.asarray(first.x), np.asarray(second.x)), (first.labels, second.labels), (first.persons, second.persons)
    return Records(*(np.concatenate(pair) for pair in pairs))


def _number_shares(rows: Records) -> Records:
    """Complete people, each row with the number of rows of its person."""
    assert rows.persons is not None
    _, indices, counts = np.unique(rows.persons, return_inverse=True, return_counts=True)
    return Records(rows.x, rows.labels, None, counts[indices].astype(np.int64))


def _secret_words(count: int) -> np.ndarray:
    return np.frombuffer(secret_bytes(8 * count), dtype="<u8")


@dataclass(frozen=True)
class BucketPairs(Contributions):
    """The pairs of records, at most one a bucket, for ``add_remove_one``.

    Every record throws a secret 64-bit die of its own: the low bits choose its bucket, the whole die its rank there.
    The two lowest ranks of a bucket are its pair; the others of the bucket are left out.

    Stability: fix the dice of all other records (they are independent of each other and of who is in the table; the
    guarantee then holds for the mixture over dice as well, because Rényi divergence is jointly quasi-convex: that of
    two mixtures with the same weights is at most the largest of the parts; van Erven and Harremoës 2014; for Gaussian
    differential privacy see :mod:`likeness.privacy.lattice_error`). Adding or
    removing a record touches its own bucket only, whose pair appears, disappears, or becomes another pair.
    The dice are never stored: their number is the number of records. A person's rows throw a die each; every one of
    them that is added or removed touches one bucket, and two of them may meet in one.

    Attributes:
        num_buckets: power of two; the largest number of pairs. Public.
        dice: source of dice, replaced in tests only.
    """

    terms: ClassVar[str] = "bucket_pairs"
    splits: ClassVar[bool] = False

    num_buckets: int
    dice: Callable[[int], np.ndarray] = field(default=_secret_words, compare=False)

    def change(self, adjacency: Adjacency) -> Stability:
        """One pair appears or is replaced.

        Raises:
            PlanError: under ``replace_one`` two buckets would change; :class:`PositionPairs` is meant for that.
        """
        if adjacency is not Adjacency.ADD_REMOVE_ONE:
            raise PlanError("bucket pairs need privacy.adjacency add_remove_one. Use position pairs with replace_one.")
        return Stability.ONE_APPEARS_OR_REPLACED

    def stream(self, records: Iterable[Records]) -> Iterator[Records]:
        """All pairs at once, after the pass; memory holds two records a bucket."""
        lowest: np.ndarray | None = None
        ranks = np.empty(0, dtype=np.uint64)
        for chunk in records:
            dice = self.dice(len(chunk.x))
            x = np.asarray(chunk.x)
            lowest = x if lowest is None else np.concatenate([lowest, x])
            ranks = np.concatenate([ranks, dice])
            order, position = self._ranks_in_bucket(ranks)
            first_two = order[position < 2]
            lowest, ranks = lowest[first_two], ranks[first_two]
        if lowest is None:
            return
        order, position = self._ranks_in_bucket(ranks)
        seconds = np.flatnonzero(position == 1)
        pairs = np.concatenate([lowest[order[seconds - 1]], lowest[order[seconds]]], axis=1)
        yield Records(pairs, np.zeros(len(pairs), dtype=np.int64))

    def _ranks_in_bucket(self, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Order by bucket and rank, and each one's place within its bucket."""
        buckets = ranks & np.uint64(self.num_buckets - 1)
        order = np.lexsort((ranks, buckets))
        return order, _place_in_group(buckets[order])


@dataclass(frozen=True)
class PositionPairs(Contributions):
    """Disjoint pairs by position, for ``replace_one``.

    A public stream gives every position a waiting room; a record and the one that waits there make a pair.
    Who is paired with whom depends on positions alone. Each record is in at most one pair. The number of pairs depends
    on the public number of records only. Replacing a record replaces one pair.

    Attributes:
        num_rooms: more rooms pair records that are farther apart in the file. Public.
        seed: public.
    """

    terms: ClassVar[str] = "position_pairs"
    splits: ClassVar[bool] = False

    num_rooms: int
    seed: int

    def change(self, adjacency: Adjacency) -> Stability:
        """One pair is replaced.

        Raises:
            PlanError: under ``add_remove_one`` every later pair would shift; :class:`BucketPairs` is meant for that.
        """
        if adjacency is not Adjacency.REPLACE_ONE:
            raise PlanError("position pairs need privacy.adjacency replace_one. Use bucket pairs with add_remove_one.")
        return Stability.ONE_REPLACED

    def stream(self, records: Iterable[Records]) -> Iterator[Records]:
        """Pairs as they complete; memory holds one record a room."""
        generator = public(self.seed, "position_pairs")
        waiting: np.ndarray | None = None
        waiting_rooms = np.empty(0, dtype=np.int64)
        for chunk in records:
            rooms = np.concatenate([waiting_rooms, generator.integers(0, self.num_rooms, size=len(chunk.x))])
            x = np.asarray(chunk.x)
            x = x if waiting is None else np.concatenate([waiting, x])
            order = np.argsort(rooms, kind="stable")
            position = _place_in_group(rooms[order])
            seconds = np.flatnonzero(position % 2 == 1)
            pairs = np.concatenate([x[order[seconds - 1]], x[order[seconds]]], axis=1)
            unpaired = np.ones(len(x), dtype=bool)
            unpaired[seconds] = unpaired[seconds - 1] = False
            waiting, waiting_rooms = x[order[unpaired]], rooms[order[unpaired]]
            yield Records(pairs, np.zeros(len(pairs), dtype=np.int64))


def _place_in_group(groups: np.ndarray) -> np.ndarray:
    """Place of each element within its run of equal values; ``groups`` is sorted."""
    starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])[: len(groups)]
    lengths = np.diff(np.r_[starts, len(groups)])
    return np.arange(len(groups)) - np.repeat(starts, lengths)
