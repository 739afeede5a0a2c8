"""What receipts claim, from their maps, and what the account makes of them."""

import math

from likeness import bundle as names
from likeness.canonical import sha256_bytes
from likeness.features import EncodedFourier, from_spec
from likeness.methods.merf_ae import ENCODER
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import MOST_GAUSSIAN
from likeness.privacy.fineness import ALLOWANCE, COARSEST, coarseness
from likeness.privacy.receipt import MECHANISM, Receipt
from likeness.release.query import Query
from likeness.release.terms import AllRecords, BucketPairs, EachRecord, PositionPairs, Terms
from likeness.statement import protected
from likeness.verifier import keys
from likeness.verifier.files import Bundle
from likeness.verifier.verdict import Untestable, Wrong, require

_EXACT = 1e-9
_SOLVED, _GRID = 1e-6, 1e-3  # how well dp-accounting solves for an exact Gaussian; searches a grid of orders
_CLOSE = 1e-3


def sensitivity(bundle: Bundle) -> str:
    """Every receipt's sensitivity, noise and cost, from the map's specification and the adjacency."""
    for name, released in bundle.released().items():
        if released.receipt.threshold is not None:
            keys.keys(name, released)
            continue
        receipt, query = released.receipt, query_again(released.receipt)
        squared = query.sensitivity_squared(Adjacency(receipt.adjacency), receipt.unit)
        own = {
            "lattice_bits": (query.lattice_bits, receipt.lattice_bits),
            "dimension": (query.dimension, receipt.dimension),
            "sensitivity": (math.sqrt(squared) * 2.0**-query.lattice_bits, receipt.sensitivity),
            "noise_scale": (receipt.noise_multiplier * math.sqrt(squared), receipt.noise_scale),
            "rho": (squared / (2 * receipt.noise_scale**2), receipt.rho),
        }
        for field, (expected, told) in own.items():
            require(math.isclose(expected, told, rel_tol=_EXACT), f"{name}: {field} is {told:.9g}, not {expected:.9g}")
        require(receipt.change == str(query.terms.change(Adjacency(receipt.adjacency))), f"{name}: change is wrong")
        fine = coarseness(receipt.dimension, receipt.noise_scale) <= COARSEST
        require(fine, f"{name}: the noise is too coarse on its lattice to be accounted as Gaussian")
        require(receipt.mechanism == MECHANISM, f"{name}: mechanism '{receipt.mechanism}' is not known")
        if isinstance(query.feature, EncodedFourier) and query.feature.network is None:
            _with_encoder(bundle, name, query.feature)
    return f"{len(bundle.released())} receipts agree with their maps"


def _with_encoder(bundle: Bundle, name: str, feature: EncodedFourier) -> None:
    """A map whose public encoder is a file: the bundle has that very file, and it fits the map."""
    from likeness.features.encoder import Encoder

    path = bundle.folder / ENCODER
    require(path.is_file(), f"{name}: {ENCODER} is missing")
    require(sha256_bytes(path.read_bytes()) == feature.encoder, f"{name}: {ENCODER} is another encoder")
    feature.with_network(Encoder.load(path))


def epsilon(bundle: Bundle) -> str:
    """ε of all receipts by dp-accounting: exact Gaussians, or Rényi orders if they give less; privacy losses beside."""
    try:
        import dp_accounting
    except ImportError:
        raise Untestable("dp-accounting is not installed: pip install dp-accounting") from None
    privacy = bundle.json(names.PRIVACY)
    total, delta = privacy["total"], float(privacy["total"]["delta"])
    require("epsilon" in total, "privacy.json is of an earlier version, which claimed by Rényi divergence alone")
    require(delta == float(privacy["target"]["delta"]), "the account is at another delta than the target")
    claim = float(total["epsilon"])
    require(claim <= float(privacy["target"]["epsilon"]) * (1 + _EXACT), "the claim exceeds the target")
    multipliers = [released.receipt.noise_multiplier for released in bundle.released().values()]
    require(all(0 < multiplier < math.inf for multiplier in multipliers), "a release has no noise")
    told_keys = math.fsum(released.receipt.delta_keys for released in bundle.released().values())
    require(told_keys < delta, "thresholds cost all of delta")
    require(float(total.get("delta_keys", 0.0)) == told_keys, "the account forgets what thresholds cost of delta")
    whole, delta = delta, delta - told_keys
    orders = [1 + math.exp(step / 100) for step in range(-300, 1500)]
    renyi, tight = dp_accounting.rdp.RdpAccountant(orders), dp_accounting.pld.PLDAccountant()
    for multiplier in multipliers:
        event = dp_accounting.GaussianDpEvent(multiplier)
        renyi.compose(event)
        tight.compose(event)
    together = 1 / math.sqrt(math.fsum(multiplier**-2 for multiplier in multipliers))
    exact = float(dp_accounting.get_epsilon_gaussian(together, delta * math.exp(-ALLOWANCE))) + ALLOWANCE
    by_renyi, by_loss = float(renyi.get_epsilon(delta)), float(tight.get_epsilon(delta))
    gaussian = float(dp_accounting.get_epsilon_gaussian(together, delta))
    if exact > MOST_GAUSSIAN:
        exact = math.inf
    own, least = min(exact, by_renyi), min(exact * (1 - _SOLVED), by_renyi * (1 - _GRID))
    require(claim >= least, f"the claim {claim:.6g} is below what the noise gives, {own:.6g}")
    require(claim <= own * (1 + _CLOSE), f"the claim {claim:.6g} is not what receipts give: {own:.6g}")
    beside = {"epsilon_rdp": (by_renyi, _GRID), "epsilon_gaussian": (gaussian, _CLOSE)}
    for name, (value, tolerance) in beside.items():
        require(math.isclose(float(total[name]), value, rel_tol=tolerance), f"{name} is not what receipts give")
    keys_text = f", {told_keys:.3g} of it for thresholds" if told_keys else ""
    return (
        f"epsilon {claim:.6g} at delta {whole:g}{keys_text}; dp-accounting: {exact:.6g} by exact Gaussians, "
        f"{by_loss:.6g} by privacy loss distributions, {by_renyi:.6g} by Rényi"
    )


def account(bundle: Bundle) -> str:
    """privacy.json says of every query what its receipt says, and the plan is the same."""
    privacy, released = bundle.json(names.PRIVACY), bundle.released()
    require(privacy["private"] is True, "the run is not private")
    queries = {query["query"]: query for query in privacy["queries"]}
    require(set(queries) == {one.receipt.query for one in released.values()}, "other queries than the receipts")
    rho = 0.0
    for name, one in released.items():
        receipt, told = one.receipt, queries[one.receipt.query]
        rho += receipt.rho
        same = {
            "map": dict(receipt.feature),
            "sensitivity": receipt.sensitivity,
            "noise_multiplier": receipt.noise_multiplier,
            "rho": receipt.rho,
            "ledger_seq": receipt.ledger_seq,
            "sha256": sha256_bytes((bundle.folder / name).read_bytes()),
            **keys.told(one),
        }
        for field, value in same.items():
            require(told[field] == value, f"{receipt.query}: {field} is not that of the receipt")
        for field in ("identity", "adjacency"):
            require(privacy[field] == getattr(receipt, field), f"{receipt.query}: another {field}")
        unit = None if receipt.unit is None else receipt.unit.to_dict()
        require(privacy.get("rows_of_a_person") == unit, f"{receipt.query}: another number of rows a person")
        words = protected(receipt.unit, "")
        require(privacy["unit"].endswith(words), f"{receipt.query}: the account says otherwise who is protected")
    require(len({one.receipt.digest for one in released.values()}) == 1, "releases of different rows")
    require(math.isclose(privacy["total"]["rho"], rho, rel_tol=_EXACT), "the total rho is not the receipts' sum")
    plan = bundle.json(names.PLAN_FILE)
    planned = {query["query"]: float(query["noise_multiplier"]) for query in plan["queries"]}
    planned_keys = {query["query"]: float(query.get("delta_keys", 0.0)) for query in plan["queries"]}
    for one in released.values():
        told_noise = planned.get(one.receipt.query, 0.0)
        require(math.isclose(told_noise, one.receipt.noise_multiplier, rel_tol=_EXACT), "the plan has other noise")
        same_delta = planned_keys.get(one.receipt.query, 0.0) == one.receipt.delta_keys
        require(same_delta, f"{one.receipt.query}: the plan has another delta")
    return f"{len(queries)} queries as in their receipts, total rho {rho:.6g}"


def query_again(receipt: Receipt) -> Query:
    """The query again, from its public specification."""
    spec = dict(receipt.feature)
    kind = spec.pop("terms", None)
    terms: Terms
    if kind == "each_record":
        terms = EachRecord()
    elif kind == "all_records":
        require(receipt.num_groups == 1, f"{receipt.query}: records of all classes together are one group")
        terms = AllRecords()
    elif kind == "bucket_pairs":
        terms = BucketPairs(int(spec.pop("num_buckets")))
    elif kind == "position_pairs":
        terms = PositionPairs(int(spec.pop("num_rooms")), int(spec.pop("seed")))
    else:
        raise Wrong(f"{receipt.query}: terms '{kind}' are not known")
    query = Query(receipt.query, receipt.stage, from_spec(spec), receipt.num_groups, terms)
    require(query.spec() == dict(receipt.feature), f"{receipt.query}: the specification does not build itself again")
    return query
