"""The account of all receipts: the plan, every total, and ε by libraries that are not ours."""

import json
import math
import re
import unicodedata
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

from likeness.bundle import contents as names
from likeness.bundle.files import Bundle
from likeness.bundle.verdict import VERSION, Untestable, Wrong, require
from likeness.core.paths import Outputs, json_text
from likeness.ledger.budget import budget_of
from likeness.methods import METHODS, distribution_of
from likeness.pipeline.account import SOFTWARE, LedgerState, account_of
from likeness.pipeline.consistency import faults_of, first_difference
from likeness.privacy.accountant import compose
from likeness.privacy.calibration import MOST_GAUSSIAN
from likeness.privacy.lattice_error import ALLOWANCE
from likeness.privacy.receipt import Receipt

_EXACT = 1e-9
_SOLVED, _GRID = 1e-6, 1e-3  # precision of dp-accounting: exact Gaussians, and a grid of Rényi orders
_CLOSE = 1e-3
_SAMPLER = re.compile(f"opendp {VERSION} discrete gaussian")
_SOLVED_KEYS = ("total: epsilon", "epsilon_rdp", "epsilon_gaussian", "spent_epsilon")
"""Numbers of an account that a solver finds."""
_LAST_DIGITS = 1e-14  # of a product or quotient of floats


class Opinion(NamedTuple):
    """ε of some receipts by a library that is not ours.

    Attributes:
        exact: with the allowance for the lattice; infinite where that is not used.
        gaussian: by continuous Gaussians.
        renyi: by Rényi divergence.
        text: all of it, in words.
    """

    exact: float
    gaussian: float
    renyi: float
    text: str


def _epsilon_from_dp_accounting(receipts: Sequence[Receipt], delta: float) -> Opinion:
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
    text = f"dp-accounting: {exact:.6g} by exact Gaussians, {by_renyi:.6g} by Rényi"
    if math.isfinite(exact):  # the memory of a privacy loss distribution grows with ε, and a bundle may be hostile
        tight = dp_accounting.pld.PLDAccountant()
        for event in events:
            tight.compose(event)
        text += f", {tight.get_epsilon(delta):.6g} by privacy loss distributions"
    return Opinion(exact, gaussian, by_renyi, text)


def _epsilon_from_autodp(receipts: Sequence[Receipt], delta: float) -> Opinion:
    """ε by autodp and our solver, which must agree: where dp-accounting is not installed."""
    account = compose(receipts, delta)
    text = f"autodp: {account.epsilon_gaussian:.6g} by exact Gaussians, {account.epsilon_rdp:.6g} by Rényi"
    remedy = "One more opinion: pip install 'likeness-dp[verify]'"
    return Opinion(account.epsilon, account.epsilon_gaussian, account.epsilon_rdp, f"{text}. {remedy}")


def epsilon(bundle: Bundle) -> str:
    """ε of all receipts by dp-accounting, else by autodp: the smaller one of exact Gaussians and Rényi orders."""
    privacy = bundle.json(names.PRIVACY)
    total, target, delta = privacy["total"], privacy["target"], float(privacy["total"]["delta"])
    require(delta == float(target["delta"]), f"{names.PRIVACY}: the account is at another delta than the target")
    claim = float(total["epsilon"])
    require(claim <= float(target["epsilon"]) * (1 + _EXACT), f"{names.PRIVACY}: the claim exceeds the target")
    receipts = [released.receipt for released in bundle.released_files.values()]
    require(all(0 < receipt.noise_multiplier < math.inf for receipt in receipts), "a release has no noise")
    selection = math.fsum(receipt.delta_keys for receipt in receipts)
    require(selection < delta, "partition selection costs all of delta")
    require(float(total.get("delta_keys", 0.0)) == selection, "the account leaves out the delta of partition selection")
    if find_spec("dp_accounting") is None:
        opinion = _epsilon_from_autodp(receipts, delta)
    else:
        opinion = _epsilon_from_dp_accounting(receipts, delta - selection)
    best = min(opinion.exact, opinion.renyi)
    least = min(opinion.exact * (1 - _SOLVED), opinion.renyi * (1 - _GRID))
    require(claim >= least, f"the claim {claim:.6g} is below what the noise gives, {best:.6g}")
    require(claim <= best * (1 + _CLOSE), f"the claim {claim:.6g} is not what receipts give, {best:.6g}")
    for name, value, tolerance in (("rdp", opinion.renyi, _GRID), ("gaussian", opinion.gaussian, _CLOSE)):
        same = math.isclose(float(total[f"epsilon_{name}"]), value, rel_tol=tolerance)
        require(same, f"epsilon_{name} is not what receipts give")
    part = f", {selection:.3g} of it for private categories" if selection else ""
    return f"epsilon {claim:.6g} at delta {delta:g}{part}; {opinion.text}"


def account(bundle: Bundle) -> str:
    """All keys of privacy.json, and no others, follow from settings, plan, receipts, ledger, generators and files."""
    privacy, project, answers = bundle.json(names.PRIVACY), bundle.project, bundle.answers
    require(project.written_plan.private, "the run is not private: privacy.epsilon is inf")
    budget = budget_of(bundle.records, project.params.privacy.population)
    require(budget is not None, "the ledger has no cap of this population")
    assert budget is not None
    digests = {answer.receipt.key: bundle.sha256(name) for name, answer in bundle.released_files.items()}
    ledger = LedgerState(str(bundle.records[0].body["ledger_id"]), budget, digests)
    outputs = {str(Outputs.project_path(name)): bundle.sha256(name) for name in project.outputs.files}
    software = privacy["software"]
    versions = all(re.fullmatch(VERSION, str(text)) for text in software.values())
    require(set(software) == {*SOFTWARE, "likeness"} and versions, "the account names unknown software")
    again = json.loads(json_text({**account_of(project, answers, ledger, outputs), "software": software}))
    different = first_difference(again, privacy, names.PRIVACY, _SOLVED_KEYS)
    require(different is None, f"{different} is not what receipts, settings, generator and ledger give")
    rho = math.fsum(answer.receipt.rho for answer in answers)
    return f"{len(answers)} queries, total rho {rho:.6g}; all keys agree"


def plan(bundle: Bundle) -> str:
    """The plan follows from the settings. Its queries are exactly the releases, at its noise.

    A release of an earlier plan, of any method, answers an equal query at no further cost. Each query is built again
    from settings, schema and earlier released values. So bins, scales and clipping bounds come from public settings or
    released statistics alone.
    """
    stated, released, method = bundle.project.written_plan, bundle.released_files, bundle.project.params.method
    installed = distribution_of(method)
    if stated.plugin != installed:
        require(not METHODS.is_ours(method), f"{names.PLAN_FILE} names a distribution for a method of Likeness")
        raise Untestable(f"{method} was that of {stated.plugin}. Here is {installed}: install the same version")
    for fault in faults_of(bundle.project, stated, released):
        raise Wrong(fault)
    rounded = all(float(f"{query.noise_multiplier:.12g}") == query.noise_multiplier for query in stated.queries)
    costs = ((query.rho, 1 / (2 * query.noise_multiplier**2)) for query in stated.queries if query.noise_multiplier)
    exact = rounded and all(math.isclose(*pair, rel_tol=_LAST_DIGITS) for pair in costs)
    require(exact, f"{names.PLAN_FILE} has numbers of another form than Likeness writes")
    for name, answer in released.items():
        named = bool(_SAMPLER.fullmatch(answer.receipt.sampler))
        require(named, f"{name}: the receipt lacks the name of the sampler")
    earlier = sum(answer.receipt.plan != stated.digest for answer in released.values())
    reused = f"; {earlier} of them are releases of an earlier plan" if earlier else ""
    return f"the plan is that of the settings, and its {len(released)} queries are the releases{reused}"


_MOST_NAMES = 9  # of other people in one sentence
_NO_INK = "\u115f\u1160"  # fillers of Hangul, which are letters
_TWINS = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u03b1\u03b9\u03bd\u03bf\u03c1\u03c4\u03c5\u0251\u0131",
    "aeopcyxijshdqwaivoptuai",
)
"""Letters of Cyrillic and Greek, and of IPA and Turkish, that look like a letter of ASCII."""


def lifetime(bundle: Bundle) -> str:
    """All records about this population are shown: each other record proves that it is about others."""
    identity, hidden, others = bundle.project.params.privacy.population, 0, dict[str, None]()
    for number, record in enumerate(bundle.chain, start=1):
        if "body" in record:
            continue
        if "hash" in record:
            hidden += 1
            continue
        named = isinstance(record["identity"], str) and record["identity"].strip() != ""
        require(named, f"record {number} is about nobody, and is hidden")
        require(record["identity"] != identity, f"record {number} is about this population, and is hidden")
        others[record["identity"]] = None
    if hidden:
        remedy = "Ask for a bundle that names them: likeness bundle --open-others"
        raise Untestable(f"by the word of the bundler, {hidden} records of the ledger are about others. {remedy}")
    alike = [ascii(other) for other in others if _may_be(_plain(other), _plain(identity))]
    if alike:
        raise Untestable(f"records are about {', '.join(alike)}. Nobody can compute whether these are other people")
    head = bundle.chain[-1]["digest"][:16]
    listing = ", ".join(map(ascii, [*others][:_MOST_NAMES])) + (", ..." if len(others) > _MOST_NAMES else "")
    listed = f"; its other records are about {listing}" if others else ""
    return f"all records of this ledger about the population are here{listed}; a witness of head {head} shows that"


def _plain(name: str) -> str:
    """A name without case, marks and blanks: names that agree in the rest may be one."""
    letters = unicodedata.normalize("NFKD", name).casefold().translate(_TWINS)
    return "".join(letter for letter in letters if letter.isalnum() and letter not in _NO_INK)


def _may_be(first: str, second: str) -> bool:
    """Tell whether two names look alike: where they differ, one has a letter beside ASCII, in less than half of it."""
    different = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
    foreign = all(pair[0].isascii() is not pair[1].isascii() for pair in different)
    return len(first) == len(second) and foreign and 2 * len(different) < max(1, len(first))
