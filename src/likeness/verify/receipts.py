"""Receipts against their maps and the plan, and the account against the receipts."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

from scipy.special import erfcx

from likeness.bundle import contents as names
from likeness.bundle.files import Bundle
from likeness.bundle.verdict import VERSION, Untestable, Wrong, require
from likeness.config.params import MOST_ROWS
from likeness.core.bounds import rows_per_unit
from likeness.core.errors import ReleaseError
from likeness.core.hashing import canonical_json, sha256_bytes
from likeness.core.paths import Outputs, json_text
from likeness.core.text import normal_text
from likeness.features.base import CellMap, FeatureMap, Map
from likeness.ledger.budget import budget_of
from likeness.ledger.reservation import REDRAW
from likeness.methods import METHODS, distribution_of, method_named
from likeness.methods.maps import from_spec, known_maps
from likeness.pipeline.account import Standing, notes, privacy_json
from likeness.pipeline.card import STAGE as CARD
from likeness.pipeline.card import card_figures
from likeness.pipeline.consistency import check_plan, queries_of
from likeness.pipeline.synthetic_table import sample_request
from likeness.privacy.accountant import ORDERS, Account, compose, curves_of
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import MOST_GAUSSIAN
from likeness.privacy.lattice_error import ALLOWANCE, MOST_ERROR, discretization_error
from likeness.privacy.receipt import MECHANISM, THRESHOLDED, Receipt
from likeness.release.distances import DISTANCES, DistanceQuery
from likeness.release.partition_selection import STAGE as SELECTION_STAGE
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
from likeness.release.request import check_answer

_EXACT = 1e-9
_FIELDS = {"map", "column", "other", "most", "terms"}
_KEYS = "keys"
SPECIAL = {_KEYS, DISTANCES}
"""Names of what has a cost and is no feature map."""
_SOLVED, _GRID = 1e-6, 1e-3  # precision of dp-accounting: exact Gaussians, and a grid of Rényi orders
_CLOSE = 1e-3
_AGAIN = 1e-8  # precision of our solver on two machines
_LAST_DIGITS = 1e-14  # of a product or quotient of floats


def sensitivity(bundle: Bundle) -> str:
    """Sensitivity, noise and cost of each receipt follow from the map's specification and the adjacency."""
    for name, released in bundle.released.items():
        query = check_claim(name, released.receipt)
        if query is None:
            check_keys(name, released)
        elif isinstance(query.feature, Map):
            _with_files(bundle, name, query.feature)
    return f"{len(bundle.released)} receipts agree with their maps"


def check_claim(name: str, receipt: Receipt) -> Query | DistanceQuery | None:
    """Compute sensitivity, noise and cost of a release again, from its specification, noise, adjacency and unit.

    Args:
        name: of the receipt or record, for messages.
        receipt: what a release, or its reservation in the ledger, states.

    Returns:
        the query; None for a partition selection.

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

    Raises:
        Wrong: one of them does not hold.
    """
    spec = dict(receipt.feature)
    require(set(spec) == _FIELDS and spec["map"] == _KEYS and spec["terms"] == "each_record", f"{name}: another map")
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
_DRAW = re.compile(f"{REDRAW}[1-9][0-9]{{0,3}}$")  # number of the draw after a lost one
_SAMPLER = re.compile(f"opendp {VERSION} discrete gaussian")


def _with_files(bundle: Bundle, name: str, feature: Map) -> None:
    """Check that the bundle has the public files of a map, and that they fit the map."""
    for file, sha256 in feature.files.items():
        path = bundle.folder / file
        require(path.is_file(), f"{name}: {file} is missing")
        require(sha256_bytes(path.read_bytes()) == sha256, f"{name}: {file} is another {path.stem}")
    feature.with_files(bundle.folder)


class Opinion(NamedTuple):
    """ε of some receipts by a library that is not ours.

    Attributes:
        exact: with the allowance for the lattice; infinite where that is not used.
        gaussian: by continuous Gaussians.
        renyi: by Rényi divergence.
        words: all of it, in words.
    """

    exact: float
    gaussian: float
    renyi: float
    words: str


def _by_dp_accounting(receipts: Sequence[Receipt], delta: float) -> Opinion:
    """ε by dp-accounting."""
    import dp_accounting

    multipliers = [receipt.noise_multiplier for receipt in receipts]
    orders = [1 + math.exp(step / 100) for step in range(-300, 1500)]
    renyi, events = dp_accounting.rdp.RdpAccountant(orders), list(map(dp_accounting.GaussianDpEvent, multipliers))
    for event in events:
        renyi.compose(event)
    together = 1 / math.sqrt(math.fsum(multiplier**-2 for multiplier in multipliers))
    exact = float(dp_accounting.get_epsilon_gaussian(together, delta * math.exp(-ALLOWANCE))) + ALLOWANCE
    by_renyi = float(renyi.get_epsilon(delta))
    gaussian = float(dp_accounting.get_epsilon_gaussian(together, delta))
    if exact > MOST_GAUSSIAN:
        exact = math.inf
    words = f"dp-accounting: {exact:.6g} by exact Gaussians, {by_renyi:.6g} by Rényi"
    if math.isfinite(exact):  # the memory of a privacy loss distribution grows with ε, and a bundle may be hostile
        tight = dp_accounting.pld.PLDAccountant()
        for event in events:
            tight.compose(event)
        words += f", {tight.get_epsilon(delta):.6g} by privacy loss distributions"
    return Opinion(exact, gaussian, by_renyi, words)


def _by_autodp(receipts: Sequence[Receipt], delta: float) -> Opinion:
    """ε by autodp and our solver, which must agree: where dp-accounting is not installed."""
    account = compose(receipts, delta)
    words = f"autodp: {account.epsilon_gaussian:.6g} by exact Gaussians, {account.epsilon_rdp:.6g} by Rényi"
    remedy = "One more opinion: pip install 'likeness[verify]'"
    return Opinion(account.epsilon, account.epsilon_gaussian, account.epsilon_rdp, f"{words}. {remedy}")


def epsilon(bundle: Bundle) -> str:
    """ε of all receipts by dp-accounting, else by autodp: the smaller one of exact Gaussians and Rényi orders."""
    privacy = bundle.json(names.PRIVACY)
    total, delta = privacy["total"], float(privacy["total"]["delta"])
    require(
        delta == float(privacy["target"]["delta"]), f"{names.PRIVACY}: the account is at another delta than the target"
    )
    claim = float(total["epsilon"])
    require(
        claim <= float(privacy["target"]["epsilon"]) * (1 + _EXACT), f"{names.PRIVACY}: the claim exceeds the target"
    )
    receipts = [released.receipt for released in bundle.released.values()]
    require(all(0 < receipt.noise_multiplier < math.inf for receipt in receipts), "a release has no noise")
    selection = math.fsum(receipt.delta_keys for receipt in receipts)
    require(selection < delta, "partition selection costs all of delta")
    require(float(total.get("delta_keys", 0.0)) == selection, "the account leaves out the delta of partition selection")
    if find_spec("dp_accounting") is None:
        opinion = _by_autodp(receipts, delta)
    else:
        opinion = _by_dp_accounting(receipts, delta - selection)
    best = min(opinion.exact, opinion.renyi)
    least = min(opinion.exact * (1 - _SOLVED), opinion.renyi * (1 - _GRID))
    require(claim >= least, f"the claim {claim:.6g} is below what the noise gives, {best:.6g}")
    require(claim <= best * (1 + _CLOSE), f"the claim {claim:.6g} is not what receipts give, {best:.6g}")
    others = {"epsilon_rdp": (opinion.renyi, _GRID), "epsilon_gaussian": (opinion.gaussian, _CLOSE)}
    for name, (value, tolerance) in others.items():
        require(math.isclose(float(total[name]), value, rel_tol=tolerance), f"{name} is not what receipts give")
    again = compose(receipts, delta)  # the same library gives the same digits, of which a claim shows six
    for name in ("epsilon", *others):
        same = math.isclose(float(total[name]), getattr(again, name), rel_tol=_AGAIN)
        require(same, f"{name} is {total[name]!r}, not {getattr(again, name)!r}")
    part = f", {selection:.3g} of it for private categories" if selection else ""
    return f"epsilon {claim:.6g} at delta {delta:g}{part}; {opinion.words}"


def account(bundle: Bundle) -> str:
    """All keys of privacy.json, and no others, follow from settings, plan, receipts, ledger and files."""
    privacy, params = bundle.json(names.PRIVACY), bundle.params
    require(bundle.plan.private, "the run is not private: privacy.epsilon is inf")
    order = [SELECTION_STAGE, "auxiliary", "privatize", CARD]
    answers = sorted(bundle.answers, key=lambda one: (order.index(one.receipt.stage), one.receipt.query))
    receipts = [one.receipt for one in answers]
    budget = budget_of(bundle.records, params.privacy.population)
    require(budget is not None, "the ledger has no cap of this population")
    assert budget is not None
    digests = {one.receipt.key: _digest(bundle, name) for name, one in bundle.released.items()}
    again = privacy_json(
        params,
        bundle.plan,
        receipts,
        _account(receipts, privacy["total"], params.privacy.delta),
        Standing(str(bundle.records[0].body["ledger_id"]), budget, digests),
        sample_request(bundle.sample),
        {str(Outputs.place(name)): _digest(bundle, name) for name in bundle.project.outputs.files},
        notes(bundle.project.method, bundle.row_sets, bundle.auxiliary),
        {one.receipt.query: len(one.keys) for one in answers},
        bundle.schema.rules,
        card_figures(bundle.facts, {one.receipt.query: one for one in answers}),
    )
    software = privacy["software"]
    ours = set(software) == set(again["software"])
    known = ours and all(re.fullmatch(VERSION, str(text)) for text in software.values())
    require(known, "the account names unknown software")
    expected = json.loads(json_text({**again, "software": software}))
    different = _first_difference(expected, privacy, names.PRIVACY)
    require(different is None, f"{different} is not what receipts, settings and ledger give")
    return f"{len(receipts)} queries, total rho {math.fsum(receipt.rho for receipt in receipts):.6g}; all keys agree"


def _account(receipts: Sequence[Receipt], total: Mapping[str, Any], delta: float) -> Account:
    """The composition: ρ and its curves from receipts, and the values of ε that :func:`epsilon` checks."""
    curve, stages = curves_of(receipts)
    return Account(
        delta=delta,
        rho=math.fsum(receipt.rho for receipt in receipts),
        epsilon=float(total["epsilon"]),
        epsilon_rdp=float(total["epsilon_rdp"]),
        epsilon_gaussian=float(total["epsilon_gaussian"]),
        orders=ORDERS,
        curve=curve,
        stages=stages,
        delta_keys=math.fsum(receipt.delta_keys for receipt in receipts),
    )


def _first_difference(here: Any, there: Any, where: str) -> str | None:
    """The first place where two JSON values differ beyond the last digits of a solver; None if they agree."""
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        if set(here) != set(there):
            return f"{where}: {sorted(set(here) ^ set(there))[0]}"
        parts = [(here[key], there[key], f"{where}: {key}") for key in sorted(here)]
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        parts = [(one, other, where) for one, other in zip(here, there, strict=True)]
    else:
        same = type(here) is type(there) and repr(here) == repr(there)  # 0.0 is not -0.0
        if isinstance(here, float) and isinstance(there, float) and where.endswith(": spent_epsilon"):
            same = math.isclose(here, there, rel_tol=_EXACT)
        return None if same else where
    return next((place for place in (_first_difference(*part) for part in parts) if place is not None), None)


def _digest(bundle: Bundle, name: str) -> str:
    return sha256_bytes((bundle.folder / name).read_bytes())


def plan(bundle: Bundle) -> str:
    """The plan follows from the settings. Its queries are exactly the releases, at its noise.

    A release of an earlier plan, of any method, answers an equal query at no further cost. Each query is built again
    from settings, schema and earlier released values. So bins, scales and clipping bounds come from public settings or
    released statistics alone.
    """
    params, plan, released = bundle.params, bundle.plan, bundle.released
    here = distribution_of(params.method)
    if plan.plugin != here:
        require(params.method not in METHODS, f"{names.PLAN_FILE} names a distribution for a method of Likeness")
        raise Untestable(f"{params.method} was that of {plan.plugin}. Here is {here}: install the same version")
    try:
        check_plan(bundle.project, plan)
    except ReleaseError:
        raise Wrong(f"{names.PLAN_FILE} is not the plan of {names.SETTINGS}") from None
    spelled = [canonical_json(_spelling(one.to_dict())) for one in (plan, bundle.project.plan)]
    rounded = all(float(f"{query.noise_multiplier:.12g}") == query.noise_multiplier for query in plan.queries)
    costs = ((query.rho, 1 / (2 * query.noise_multiplier**2)) for query in plan.queries if query.noise_multiplier)
    exact = rounded and all(math.isclose(*pair, rel_tol=_LAST_DIGITS) for pair in costs)
    require(spelled[0] == spelled[1] and exact, f"{names.PLAN_FILE} has numbers of another form than Likeness writes")
    answered = sorted(one.receipt.query for one in released.values())
    require(
        answered == sorted(query.query for query in plan.queries),
        f"{names.PLAN_FILE} has other queries than the releases",
    )
    require(len({one.receipt.digest for one in released.values()}) == 1, "the releases are of different rows")
    queries = queries_of(bundle.project, plan, bundle.row_sets, bundle.auxiliary)
    earlier = sum(one.receipt.plan != plan.digest for one in released.values())
    for name, one in released.items():
        receipt, planned = one.receipt, plan.query(one.receipt.query)
        same = {
            "adjacency": (receipt.adjacency, str(plan.adjacency)),
            "identity": (receipt.identity, plan.identity),
            "unit of privacy": (receipt.unit, plan.unit),
            "method": (receipt.method if receipt.plan == plan.digest else plan.method, plan.method),
            "plugin": (receipt.plugin if receipt.plan == plan.digest else plan.plugin, plan.plugin),
            "stage": (receipt.stage, planned.stage),
            "delta": (receipt.delta_keys, planned.delta_keys),
            "slot": (_DRAW.sub("", receipt.slot), params.ledger.attempt),
        }
        for field, (stated, expected) in same.items():
            require(stated == expected, f"{name}: another {field} than the plan's")
        noise = math.isclose(receipt.noise_multiplier, planned.noise_multiplier, rel_tol=_EXACT)
        require(noise, f"{name}: another noise than the plan's")
        require(bool(_SAMPLER.fullmatch(receipt.sampler)), f"{name}: the receipt lacks the name of the sampler")
        if planned.stage == CARD:
            continue  # the check of the card follows that of the table
        try:
            check_answer(*queries[receipt.query], one, name)
        except ReleaseError:
            raise Wrong(f"{name}: answers another query than that of {names.SETTINGS} and {names.SCHEMA}") from None
    reused = f"; {earlier} of them are releases of an earlier plan" if earlier else ""
    return f"the plan is that of the settings, and its {len(released)} queries are the releases{reused}"


def _spelling(value: Any) -> Any:
    """A JSON value with the types of its floats in their place, but for zeros, which have a sign."""
    if isinstance(value, Mapping):
        return {key: _spelling(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_spelling(item) for item in value]
    return "a float" if isinstance(value, float) and value else repr(value)


def _clusters(receipt: Receipt, clusters: FeatureMap) -> EachCluster:
    """Records by cluster, whose groups are those of the receipt."""
    if not isinstance(clusters, CellMap):
        raise Wrong(f"{receipt.query}: its clusters are no map of cells")
    contributions = EachCluster(clusters)
    require(contributions.num_groups == receipt.num_groups, f"{receipt.query}: has other groups than its clusters")
    return contributions


def _contributions(receipt: Receipt, spec: dict[str, Any]) -> Any:
    """How records become contributions, by their public specification, which is taken out of that of the query."""
    kind = spec.pop("terms", None)
    if kind == "each_record":
        return EachRecord()
    if kind == "all_records":
        require(receipt.num_groups == 1, f"{receipt.query}: records of all classes are one group")
        return AllRecords()
    if kind == "each_cluster":
        return _clusters(receipt, from_spec(spec.pop("clusters")))
    if kind == "with_class":
        grouped = dict(spec.pop("contributions"))
        alone = grouped.get("terms") in ("each_record", "all_records", "each_cluster")
        require(alone, f"{receipt.query}: its contributions are not those of single records")
        return WithClass(int(spec.pop("classes")), _contributions(receipt, grouped))
    if kind == "each_person":
        require(receipt.unit is not None, f"{receipt.query}: rows share a contribution, and no person has several")
        return EachPerson()
    if kind == "bucket_pairs":
        return BucketPairs(int(spec.pop("num_buckets")))
    if kind == "position_pairs":
        return PositionPairs(int(spec.pop("num_rooms")), int(spec.pop("seed")))
    raise Wrong(f"{receipt.query}: contributions '{kind}' are unknown")


def query_again(receipt: Receipt) -> Query | DistanceQuery:
    """Build a query again from its public specification.

    Raises:
        MissingPackageError: it has a map of a plug-in that nobody here trusts.
    """
    spec = dict(receipt.feature)
    if set(maps_in(spec)) - known_maps().keys() - SPECIAL:
        method_named(receipt.method)
    if spec.get("map") == DISTANCES:
        distances = DistanceQuery.from_spec(receipt.query, receipt.stage, spec)
        require(_same(distances.spec(), spec) and receipt.num_groups == 1, f"{receipt.query}: another map")
        return distances
    contributions = _contributions(receipt, spec)
    query = Query(receipt.query, receipt.stage, from_spec(spec), receipt.num_groups, contributions)
    same = _same(query.spec(), receipt.feature)
    require(same, f"{receipt.query}: the map does not have the specification of the receipt")
    return query


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two JSON values are equal to the letter: 1 is not true, and not 1.0."""
    return canonical_json(one) == canonical_json(dict(other))
