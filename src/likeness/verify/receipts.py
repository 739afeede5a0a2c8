"""Each receipt against the specification of its map."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from scipy.special import erfcx

from likeness.bundle.files import Bundle
from likeness.bundle.verdict import Wrong, require
from likeness.config.params import MOST_ROWS
from likeness.core.bounds import rows_per_unit
from likeness.core.hashing import canonical_json
from likeness.core.text import normal_text
from likeness.features.base import CellMap
from likeness.methods.maps import from_spec
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.lattice_error import MOST_ERROR, discretization_error
from likeness.privacy.receipt import CHOICE, MECHANISM, SCORE, THRESHOLDED, Receipt
from likeness.release.query import Query
from likeness.release.records import (
    AllRecords,
    BucketPairs,
    EachCluster,
    EachPerson,
    EachRecord,
    PositionPairs,
    WithClass,
)
from likeness.release.released import Released

_EXACT = 1e-9
_FIELDS = {"map", "column", "other", "most", "terms"}
_CHOICE_FIELDS = {"map", "number", "candidates", "rounds", SCORE, "terms"}
_CHOICE_BITS = 20  # steps of the noise scale in a row, as a power of two
KEYS = "keys"
"""Name of what has a cost and is no feature map."""
_LAST_DIGITS = 1e-14  # of a product or quotient of floats


def sensitivity(bundle: Bundle) -> str:
    """Sensitivity, noise and cost of each receipt follow from the map's specification and the adjacency."""
    for name, released in bundle.released_files.items():
        query = check_claim(name, released.receipt)
        if query is None and released.receipt.threshold is not None:
            check_keys(name, released)
    return f"{len(bundle.released_files)} receipts agree with their maps"


def check_claim(name: str, receipt: Receipt) -> Query | None:
    """Compute sensitivity, noise and cost of a release again, from its specification, noise, adjacency and unit.

    Args:
        name: of the receipt or record, for messages.
        receipt: what a release, or its reservation in the ledger, states.

    Returns:
        the query; None for a partition selection and for choices.

    Raises:
        Wrong: a number is not what the specification gives.
        LikenessError: the specification is none of this version.
    """
    _check_sizes(name, receipt.feature)
    require(type(receipt.num_groups) is int and receipt.num_groups > 0, f"{name}: has no number of groups")
    require(rows_per_unit(receipt.unit) <= MOST_ROWS, f"{name}: people of too many rows")
    require(receipt.noise_multiplier > 0 and receipt.noise_scale > 0, f"{name}: no noise")
    if receipt.threshold is not None:
        _check_selection(name, receipt)
        return None
    if SCORE in receipt.feature:
        _check_choices(name, receipt)
        return None
    query, adjacency = query_again(receipt), Adjacency(receipt.adjacency)
    squared = query.sensitivity_squared(adjacency, receipt.unit)
    numbers = {
        "lattice_bits": (query.lattice_bits, receipt.lattice_bits),
        "dimension": (query.dimension, receipt.dimension),
        "sensitivity": (math.sqrt(squared) * 2.0**-query.lattice_bits, receipt.sensitivity),
        "noise_scale": (receipt.noise_multiplier * math.sqrt(squared), receipt.noise_scale),
        "rho": (squared / (2 * receipt.noise_scale**2), receipt.rho),
        "delta_keys": (0.0, receipt.delta_keys),
    }
    for field, pair in numbers.items():
        _check_close(f"{name}: {field}", *pair)
    require(receipt.change == str(query.contributions.change(adjacency)), f"{name}: change is wrong")
    _check_lattice(name, receipt)
    require(receipt.mechanism == MECHANISM, f"{name}: mechanism '{receipt.mechanism}' is unknown")
    return query


def maps_in(spec: Mapping[str, Any]) -> Iterator[str]:
    """Names of the map of a specification, and of the maps inside it."""
    for key, value in spec.items():
        if isinstance(value, Mapping):
            yield from maps_in(value)
        elif key == "map":
            yield str(value)


def _check_selection(name: str, receipt: Receipt) -> None:
    """Check a partition selection: sensitivity, noise and threshold.

    The formulas come from the receipt, and are not those that chose the threshold.
    """
    spec = dict(receipt.feature)
    require(set(spec) == _FIELDS and spec["map"] == KEYS and spec["terms"] == "each_record", f"{name}: another map")
    typed = type(spec["column"]) is type(spec["other"]) is str and type(spec["most"]) is int
    require(typed, f"{name}: the query is not written as this version writes it")
    require(receipt.mechanism == THRESHOLDED, f"{name}: mechanism '{receipt.mechanism}' is unknown")
    require(receipt.num_groups == 1, f"{name}: the receipt is not one of a partition selection")
    rows = rows_per_unit(receipt.unit)
    # A person's k rows may all have one key. A replaced row leaves one key and joins another.
    replaced = receipt.adjacency == "replace_one"
    require(receipt.adjacency in ("add_remove_one", "replace_one"), f"{name}: adjacency is unknown")
    require(not replaced or rows == 1, f"{name}: people of several rows cannot be replaced")
    step, distance = 2.0**receipt.lattice_bits, math.sqrt(2) if replaced else float(rows)
    expected = {
        "dimension": (2 if replaced else rows, receipt.dimension),
        "sensitivity": (distance, receipt.sensitivity),
        "noise_scale": (receipt.noise_multiplier * distance * step, receipt.noise_scale),
        "rho": ((distance * step / receipt.noise_scale) ** 2 / 2, receipt.rho),
    }
    for field, pair in expected.items():
        _check_close(f"{name}: {field}", *pair)
    require(receipt.change == ("one_replaced" if replaced else "one_appears"), f"{name}: change is wrong")
    _check_lattice(name, receipt)
    threshold = receipt.threshold
    require(type(threshold) is int and 0 < receipt.delta_keys < 1, f"{name}: no threshold, or no delta for it")
    assert threshold is not None
    least = _log_delta(threshold, receipt.noise_scale, rows, step)
    passes = f"{name}: the threshold lets a value of one person pass with probability {math.exp(min(0.0, least)):.3g}"
    require(least <= math.log(receipt.delta_keys) + _EXACT, f"{passes}, more than delta {receipt.delta_keys:.3g}")


def _check_choices(name: str, receipt: Receipt) -> None:
    """Check choices: range, noise and cost. The formulas come from the receipt."""
    spec, replaced = dict(receipt.feature), receipt.adjacency == "replace_one"
    known = set(spec) == _CHOICE_FIELDS and spec["terms"] in ("each_record", "all_records")
    require(known and spec[SCORE] == "monotone", f"{name}: other scores than this version has")
    counts = [spec["rounds"], spec["number"]]
    require(all(type(count) is int and count > 0 for count in counts), f"{name}: no number of choices or candidates")
    require(bool(re.fullmatch("[0-9a-f]{64}", str(spec["candidates"]))), f"{name}: no digest of its candidates")
    require(receipt.mechanism == CHOICE, f"{name}: mechanism '{receipt.mechanism}' is unknown")
    require(
        (receipt.num_groups, receipt.lattice_bits) == (1, _CHOICE_BITS), f"{name}: the receipt is not one of choices"
    )
    rows = rows_per_unit(receipt.unit)
    require(receipt.adjacency in ("add_remove_one", "replace_one"), f"{name}: adjacency is unknown")
    require(not replaced or rows == 1, f"{name}: people of several rows cannot be replaced")
    # Where a record is replaced, one score may fall by 1 and another one grow by 1.
    equal = (2 if replaced else rows) * math.sqrt(math.pi / 8 * spec["rounds"])
    expected = {
        "dimension": (spec["rounds"], receipt.dimension),
        "sensitivity": (equal, receipt.sensitivity),
        "noise_scale": (receipt.noise_multiplier * equal * 2.0**_CHOICE_BITS, receipt.noise_scale),
        "rho": ((equal * 2.0**_CHOICE_BITS / receipt.noise_scale) ** 2 / 2, receipt.rho),
        "delta_keys": (0.0, receipt.delta_keys),
    }
    for field, pair in expected.items():
        _check_close(f"{name}: {field}", *pair)
    require(receipt.change == ("one_replaced" if replaced else "one_appears"), f"{name}: change is wrong")
    _check_lattice(name, receipt)


def check_keys(name: str, released: Released) -> None:
    """Check the values of a partition selection against its threshold.

    Raises:
        Wrong: a key is not one that it releases.
    """
    receipt, counts = released.receipt, released.lattice.ravel()
    require(bool((counts >= receipt.threshold).all()), f"{name}: a key below the threshold")
    require(len(counts) <= int(receipt.feature["most"]), f"{name}: more keys than the query allows")
    other = str(receipt.feature["other"])
    require(other not in released.keys, f"{name}: '{other}' is not a key")
    require(all(key == normal_text(key) for key in released.keys), f"{name}: a key is not in its normal form")


def _log_delta(threshold: int, scale: float, rows: int, step: float) -> float:
    """Logarithm of a bound on the probability that a key of one person alone passes, for each way to split k rows.

    With c rows a key there are at most ``k/c`` keys: the union bound. The scaled complementary error function gives
    tails of the Gaussian that do not round to 0.
    """
    worst = -math.inf
    for count in range(1, rows + 1):
        distance = (threshold - count * step - 0.5) / scale / math.sqrt(2)
        near = distance <= 0
        tail = math.log1p(-math.erfc(-distance) / 2) if near else math.log(erfcx(distance) / 2) - distance**2
        worst = max(worst, tail + math.log(rows / count))
    return worst


def _check_close(what: str, expected: float, stated: float) -> None:
    """Compare numbers of one type: a text or a truth value is no number, and free digits could carry a message."""
    same = type(stated) is type(expected) and math.isclose(expected, stated, rel_tol=_LAST_DIGITS)
    signs = same and math.copysign(1, stated) == math.copysign(1, expected)  # minus zero is a bit for a message
    require(signs, f"{what} is {stated!r}, not {expected!r}")


def _check_lattice(name: str, receipt: Receipt) -> None:
    fine = discretization_error(receipt.dimension, receipt.noise_scale) <= MOST_ERROR
    require(fine, f"{name}: the noise is too coarse on its lattice for exact accounting")


def _check_sizes(name: str, spec: Mapping[str, Any]) -> None:
    """Refuse a map that needs more memory than a map of Likeness, before it is built."""
    sizes = sorted(_sizes_in(spec))
    require(math.prod(sizes[-2:]) <= _MOST_DRAWN, f"{name}: the map is larger than any map of Likeness")


def _sizes_in(spec: Mapping[str, Any]) -> Iterator[int]:
    """Numbers in a map's specification that give the size of its draws."""
    for key, value in spec.items():
        if isinstance(value, Mapping):
            yield from _sizes_in(value)
        elif key in _SIZES:
            numbers = value if isinstance(value, list | tuple) else [value]
            require(all(type(number) is int for number in numbers), f"{key} is not a whole number")
            yield math.prod(numbers) if key == "shape" else max(numbers, default=1)


_SIZES = ("cells", "channels", "code", "dimension", "levels", "num_categorical", "num_coefficients", "num_frequencies",
          "order", "product_order", "shape", "widths")  # fmt: skip
_MOST_DRAWN = 1 << 31  # numbers


def _contributions(receipt: Receipt, spec: dict[str, Any]) -> Any:
    """Build the contributions of records from their public specification, which is taken out of that of the query."""
    kind = spec.pop("terms", None)
    if kind == "each_record":
        return EachRecord()
    if kind == "all_records":
        require(receipt.num_groups == 1, f"{receipt.query}: records of all classes are one group")
        return AllRecords()
    if kind == "each_cluster":
        clusters = from_spec(spec.pop("clusters"), receipt.method)
        if not isinstance(clusters, CellMap):
            raise Wrong(f"{receipt.query}: its clusters are no map of cells")
        of_clusters = EachCluster(clusters)
        require(of_clusters.num_groups == receipt.num_groups, f"{receipt.query}: has other groups than its clusters")
        return of_clusters
    if kind == "with_class":
        grouped = dict(spec.pop("contributions"))
        of_records = grouped.get("terms") in ("each_record", "all_records", "each_cluster")
        require(of_records, f"{receipt.query}: its contributions are not those of single records")
        return WithClass(int(spec.pop("classes")), _contributions(receipt, grouped))
    if kind == "each_person":
        require(receipt.unit is not None, f"{receipt.query}: rows share a contribution, and no person has several")
        return EachPerson()
    if kind == "bucket_pairs":
        return BucketPairs(int(spec.pop("num_buckets")))
    if kind == "position_pairs":
        return PositionPairs(int(spec.pop("num_rooms")), int(spec.pop("seed")))
    raise Wrong(f"{receipt.query}: contributions '{kind}' are unknown")


def query_again(receipt: Receipt) -> Query:
    """Build a query again from its public specification."""
    spec = dict(receipt.feature)
    contributions = _contributions(receipt, spec)
    query = Query(receipt.query, receipt.stage, from_spec(spec, receipt.method), receipt.num_groups, contributions)
    same = canonical_json(query.spec()) == canonical_json(dict(receipt.feature))  # to the letter: 1 is not true or 1.0
    require(same, f"{receipt.query}: the map does not have the specification of the receipt")
    return query
