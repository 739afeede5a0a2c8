"""The verifier: believes nothing in a bundle that it can compute.

It needs no ledger, no private file and no autodp: sensitivities come from the maps' specifications, ε from
dp-accounting, the table from the generator. A check that cannot be made says so and is not counted as passed.
"""

import json
import math
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from likeness import bundle
from likeness.canonical import sha256_bytes, sha256_json
from likeness.data.layout import encoding_digest
from likeness.data.schema import Schema
from likeness.errors import ArtifactError, LikenessError
from likeness.features import PairMarginals, from_spec
from likeness.privacy.adjacency import Adjacency
from likeness.privacy.calibration import epsilon_of_rho
from likeness.privacy.receipt import MECHANISM, Receipt
from likeness.release.query import Query
from likeness.release.released import Released, load_released
from likeness.release.request import REQUEST_KEYS
from likeness.release.terms import BucketPairs, EachRecord, PositionPairs, Terms
from likeness.statement import statement

_EXACT = 1e-9
_CLOSE = 1e-3  # dp-accounting searches a grid of orders
_FALSE_ALARM = 1e-9  # of each statistical test
_LOW_BITS = 6
_MOST_BYTES = 1 << 34
_ROUNDING = 0.01  # share of cells that another processor may draw otherwise


@dataclass(frozen=True)
class Check:
    """One line of the verdict. ``passed`` is None where the check could not be made."""

    name: str
    passed: bool | None
    text: str


class _Wrong(Exception):
    """A check that did not pass, with the reason."""


class _Untestable(Exception):
    """A check that cannot be made here, with the reason."""


def verify(path: Path) -> list[Check]:
    """All checks of a bundle, a folder or a zip file.

    Raises:
        ArtifactError: there is nothing at the path, or it is neither.
    """
    with opened(path) as folder:
        return _Verifier(folder).run()


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """A bundle as a folder; a zip file is unpacked for as long, names that do not belong refused.

    Raises:
        ArtifactError: there is nothing at the path, or it is no bundle.
    """
    if path.is_dir():
        yield path
        return
    if not path.exists():
        raise ArtifactError(f"{path} does not exist")
    with tempfile.TemporaryDirectory() as temporary:
        try:
            with zipfile.ZipFile(path) as archive:
                for item in archive.infolist():
                    if not bundle.allowed_name(item.filename) or item.file_size > _MOST_BYTES:
                        raise ArtifactError(f"{path}: '{item.filename}' does not belong in a bundle")
                    target = Path(temporary) / item.filename
                    target.parent.mkdir(exist_ok=True)
                    target.write_bytes(archive.read(item))
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError):
            raise ArtifactError(f"{path} is neither a folder nor a zip file that can be read") from None
        yield Path(temporary)


class _Verifier:
    """One pass over a folder. Each check reads for itself, so that one failure does not hide another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self) -> list[Check]:
        checks: list[tuple[str, Callable[[], str]]] = [
            ("files", self.files),
            ("checksums", self.checksums),
            ("sensitivity", self.sensitivity),
            ("epsilon", self.epsilon),
            ("account", self.account),
            ("statement", self.statement),
            ("ledger chain", self.chain),
            ("ledger entries", self.entries),
            ("noise", self.noise),
            ("generator", self.generator),
            ("table", self.table),
        ]
        return [self._one(name, check) for name, check in checks]

    def _one(self, name: str, check: Callable[[], str]) -> Check:
        try:
            return Check(name, True, check())
        except _Untestable as reason:
            return Check(name, None, str(reason))
        except (_Wrong, LikenessError) as reason:
            return Check(name, False, str(reason))
        except (
            OSError,
            KeyError,
            IndexError,
            ValueError,
            TypeError,
            AttributeError,
            AssertionError,
            OverflowError,
        ) as error:
            return Check(name, False, f"cannot be read ({type(error).__name__}: {error})")

    def files(self) -> str:
        """Exactly the files that a bundle has."""
        found = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if not path.is_dir()}
        links = [path.name for path in self.folder.rglob("*") if path.is_symlink()]
        stray = sorted(name for name in found if not bundle.allowed_name(name))
        lost = sorted(set(bundle.ALWAYS) - found)
        for problem, names in (("is a link", links), ("does not belong in a bundle", stray), ("is missing", lost)):
            _require(not names, f"{names[0] if names else ''} {problem}")
        return f"{len(found)} files, none that does not belong"

    def checksums(self) -> str:
        """SHA256SUMS against the bytes."""
        lines = self._text(bundle.CHECKSUMS).splitlines()
        told = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
        found = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}
        _require(set(told) == found - {bundle.CHECKSUMS}, "the list of files is not that of the bundle")
        for name, digest in told.items():
            _require(sha256_bytes((self.folder / name).read_bytes()) == digest, f"{name} was changed")
        return f"{len(told)} files unchanged"

    def sensitivity(self) -> str:
        """Every receipt's sensitivity, noise and cost, from the map's specification and the adjacency."""
        for name, released in self._released().items():
            receipt, query = released.receipt, _query(released.receipt)
            squared = query.sensitivity_squared(Adjacency(receipt.adjacency))
            own = {
                "lattice_bits": (query.lattice_bits, receipt.lattice_bits),
                "dimension": (query.dimension, receipt.dimension),
                "sensitivity": (math.sqrt(squared) * 2.0**-query.lattice_bits, receipt.sensitivity),
                "noise_scale": (receipt.noise_multiplier * math.sqrt(squared), receipt.noise_scale),
                "rho": (squared / (2 * receipt.noise_scale**2), receipt.rho),
            }
            for field, (expected, told) in own.items():
                _require(
                    math.isclose(expected, told, rel_tol=_EXACT), f"{name}: {field} is {told:.9g}, not {expected:.9g}"
                )
            _require(
                receipt.change == str(query.terms.change(Adjacency(receipt.adjacency))), f"{name}: change is wrong"
            )
            _require(receipt.mechanism == MECHANISM, f"{name}: mechanism '{receipt.mechanism}' is not known")
        return f"{len(self._released())} receipts agree with their maps"

    def epsilon(self) -> str:
        """ε of all receipts by dp-accounting: privacy loss distributions from below, Rényi orders at the same value."""
        try:
            import dp_accounting
        except ImportError:
            raise _Untestable("dp-accounting is not installed: pip install dp-accounting") from None
        privacy = self._json(bundle.PRIVACY)
        claim, delta = float(privacy["total"]["epsilon_rdp"]), float(privacy["total"]["delta"])
        _require(claim <= float(privacy["target"]["epsilon"]) * (1 + _EXACT), "the claim exceeds the target")
        multipliers = [released.receipt.noise_multiplier for released in self._released().values()]
        _require(all(0 < multiplier < math.inf for multiplier in multipliers), "a release has no noise")
        orders = [1 + math.exp(step / 100) for step in range(-300, 900)]
        renyi, tight = dp_accounting.rdp.RdpAccountant(orders), dp_accounting.pld.PLDAccountant()
        for multiplier in multipliers:
            event = dp_accounting.GaussianDpEvent(multiplier)
            renyi.compose(event)
            tight.compose(event)
        upper, lower = float(renyi.get_epsilon(delta)), float(tight.get_epsilon(delta))
        _require(claim >= lower, f"the claim {claim:.6g} is below what the noise gives, {lower:.6g}")
        _require(
            math.isclose(claim, upper, rel_tol=_CLOSE), f"the claim {claim:.6g} is not what receipts give: {upper:.6g}"
        )
        return (
            f"epsilon {claim:.6g} at delta {delta:g}; dp-accounting: {upper:.6g} by Rényi, {lower:.6g} by privacy loss"
        )

    def account(self) -> str:
        """privacy.json says of every query what its receipt says, and the plan is the same."""
        privacy, released = self._json(bundle.PRIVACY), self._released()
        _require(privacy["private"] is True, "the run is not private")
        queries = {query["query"]: query for query in privacy["queries"]}
        _require(set(queries) == {one.receipt.query for one in released.values()}, "other queries than the receipts")
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
                "sha256": sha256_bytes((self.folder / name).read_bytes()),
            }
            for field, value in same.items():
                _require(told[field] == value, f"{receipt.query}: {field} is not that of the receipt")
            for field in ("identity", "adjacency"):
                _require(privacy[field] == getattr(receipt, field), f"{receipt.query}: another {field}")
        _require(len({one.receipt.digest for one in released.values()}) == 1, "releases of different rows")
        _require(math.isclose(privacy["total"]["rho"], rho, rel_tol=_EXACT), "the total rho is not the receipts' sum")
        plan = self._json(bundle.PLAN_FILE)
        planned = {query["query"]: float(query["noise_multiplier"]) for query in plan["queries"]}
        for one in released.values():
            told_noise = planned.get(one.receipt.query, 0.0)
            _require(math.isclose(told_noise, one.receipt.noise_multiplier, rel_tol=_EXACT), "the plan has other noise")
        return f"{len(queries)} queries as in their receipts, total rho {rho:.6g}"

    def statement(self) -> str:
        """The texts for people say what the account for machines says, to the letter."""
        privacy = self._json(bundle.PRIVACY)
        _require(
            self._text(bundle.STATEMENT) == statement(privacy), f"{bundle.STATEMENT} is not that of {bundle.PRIVACY}"
        )
        expected = bundle.data_card(privacy, Schema.load(self.folder / bundle.SCHEMA))
        _require(self._text(bundle.CARD) == expected, f"{bundle.CARD} is not that of {bundle.PRIVACY}")
        return "statement and data card as written from the account"

    def chain(self) -> str:
        """Links and digests of the ledger's extract."""
        records = self._chain()
        previous, whole = "0" * 64, 0
        for place, record in enumerate(records, start=1):
            linked = record["seq"] == place and record["previous"] == previous
            _require(linked, f"the chain is broken at record {place}")
            if "body" in record:
                parts = [record[name] for name in ("seq", "time", "kind", "body", "previous")]
                _require(sha256_json(parts) == record["digest"], f"record {place} was edited")
                whole += 1
            previous = record["digest"]
        return f"{len(records)} records linked, {whole} of them whole; head {previous[:16]}"

    def entries(self) -> str:
        """Each release was reserved at its cost before it was committed, under a key that says what was asked."""
        records = [record for record in self._chain() if "body" in record]
        privacy = self._json(bundle.PRIVACY)
        reserved = {r["body"]["key"]: r for r in records if r["kind"] == "reserve"}
        committed = {r["body"]["key"]: r for r in records if r["kind"] == "commit"}
        encoding = encoding_digest(Schema.load(self.folder / bundle.SCHEMA))
        for name, one in self._released().items():
            receipt = one.receipt
            _require(receipt.key in reserved and receipt.key in committed, f"{name}: no entry in the ledger")
            entry, commit = reserved[receipt.key], committed[receipt.key]
            _require(entry["seq"] == receipt.ledger_seq < commit["seq"], f"{name}: entries in another order")
            _require(
                commit["body"]["sha256"] == sha256_bytes((self.folder / name).read_bytes()), f"{name}: other bytes"
            )
            _require(math.isclose(entry["body"]["rho"], receipt.rho, rel_tol=_EXACT), f"{name}: another cost")
            _require(
                sha256_json({key: entry["body"][key] for key in REQUEST_KEYS}) == receipt.key,
                f"{name}: another request",
            )
            same = all(
                entry["body"][key] == getattr(receipt, key) for key in ("identity", "digest", "slot", "adjacency")
            )
            _require(same and entry["body"]["feature"] == dict(receipt.feature), f"{name}: reserved for something else")
            _require(entry["body"]["encoding"] == encoding, f"{name}: released for another schema than {bundle.SCHEMA}")
        spent = math.fsum(
            float(r["body"]["rho"]) for r in reserved.values() if r["body"]["identity"] == privacy["identity"]
        )
        told = float(privacy["ledger"]["lifetime"]["spent_rho"])
        _require(math.isclose(spent, told, rel_tol=_EXACT), f"lifetime rho is {spent:.6g}, the account says {told:.6g}")
        lifetime = privacy["ledger"]["lifetime"]
        cap = [r["body"] for r in records if r["kind"] == "cap" and r["body"]["identity"] == privacy["identity"]][-1]
        told_cap = {"epsilon": float(lifetime["cap_epsilon"]), "delta": float(lifetime["cap_delta"])}
        _require(all(float(cap[key]) == told_cap[key] for key in told_cap), "another lifetime cap than the ledger's")
        epsilon = epsilon_of_rho(spent, told_cap["delta"])
        _require(math.isclose(epsilon, float(lifetime["spent_epsilon"]), rel_tol=_CLOSE), "another lifetime epsilon")
        return f"{len(self._released())} releases entered; lifetime rho of these people {spent:.6g}"

    def noise(self) -> str:
        """Whether the released integers look like values with the noise that their receipts claim.

        The lowest bits of a sum with so wide a noise are uniform (without noise they are zeros or repeat); and where a
        map's cells must add up to the same number of records in every pair, they may differ by the noise only. Two
        tests a release, false alarm 1e-9 each. A smaller noise in a map without such redundancy cannot be seen.
        """
        from scipy.stats import chi2

        tested = []
        for name, one in self._released().items():
            if one.receipt.noise_scale < 2 ** (_LOW_BITS + 2):
                continue
            low = np.bincount((one.lattice & (2**_LOW_BITS - 1)).ravel(), minlength=2**_LOW_BITS)
            expected = one.lattice.size / 2**_LOW_BITS
            if expected >= 5:
                statistic = float(((low - expected) ** 2).sum() / expected)
                _require(
                    chi2.sf(statistic, 2**_LOW_BITS - 1) > _FALSE_ALARM, f"{name}: the low bits are not those of noise"
                )
                tested.append(f"{one.receipt.query} (bits)")
            feature = _query(one.receipt).feature
            if isinstance(feature, PairMarginals) and len(feature.parts) > 1:
                statistic, freedom = _block_sums(feature, one)
                tails = chi2.cdf(statistic, freedom), chi2.sf(statistic, freedom)
                _require(min(tails) > _FALSE_ALARM, f"{name}: the noise is not of the scale that the receipt claims")
                tested.append(f"{one.receipt.query} (scale)")
        if not tested:
            raise _Untestable("no release is large enough to test its noise")
        return "as claimed where it can be tested: " + ", ".join(tested)

    def generator(self) -> str:
        """Trained, as it says, on exactly these releases; loads without code of its own."""
        from likeness.generators.saved import SavedGenerator

        saved = SavedGenerator.load(self.folder / "generator")
        keys = sorted(one.receipt.key for one in self._released().values())
        _require(saved.provenance["releases"] == keys, "the generator names other releases")
        _require(
            saved.provenance["method"] == self._json(bundle.PRIVACY)["method"], "the generator names another method"
        )
        outputs = {Path(path).name: digest for path, digest in self._json(bundle.PRIVACY)["outputs"].items()}
        for name in (bundle.SPEC, bundle.WEIGHTS, bundle.TABLE, bundle.TABLE_CSV):
            digest = sha256_bytes((self.folder / name).read_bytes())
            _require(outputs[Path(name).name] == digest, f"the statement is about another {name}")
        return f"method {saved.provenance['method']}, {len(keys)} releases"

    def table(self) -> str:
        """The table is what the generator draws with the public seed: nothing else went into it."""
        import pandas as pd

        table = pd.read_parquet(self.folder / bundle.TABLE)
        sample = self._json(bundle.PRIVACY)["sample"]
        again = draw(self.folder, int(sample["rows"]), int(sample["seed"]), sample["where"])
        _require(list(table.columns) == list(again.columns) and len(table) == len(again), "other columns or rows")
        if not table.equals(again):
            changed = sum((~_same(table[name], again[name])).sum() for name in table.columns) / table.size
            made, here = str(self._json(bundle.PRIVACY)["software"]["torch"]), version("torch")
            text = f"{changed:.2%} of the cells are drawn otherwise here"
            # Another processor may round a probability otherwise, and a row in ten thousand falls on the other side.
            _require(made.split("+")[0] != here.split("+")[0] or changed < _ROUNDING, text)
            raise _Untestable(f"{text}, with torch {here}; the table was made with torch {made}")
        return f"{len(table):,} rows, drawn again from the generator and equal"

    def _text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def _json(self, name: str) -> dict[str, Any]:
        value = json.loads(self._text(name))
        _require(isinstance(value, dict), f"{name} is no mapping")
        result: dict[str, Any] = value
        return result

    def _chain(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._text(bundle.LEDGER).splitlines()]

    def _released(self) -> dict[str, Released]:
        paths = sorted((self.folder / bundle.RELEASED).glob("*.safetensors"))
        _require(bool(paths), "nothing is released")
        return {f"{bundle.RELEASED}/{path.name}": load_released(path) for path in paths}


def draw(folder: Path, rows: int, seed: int, where: Mapping[str, Any]) -> Any:
    """Rows from the generator of a bundle, as a typed pandas DataFrame."""
    from likeness import synthetic
    from likeness.generators.saved import SavedGenerator

    saved, schema = SavedGenerator.load(folder / "generator"), Schema.load(folder / bundle.SCHEMA)
    return synthetic.draw(saved, schema, rows, seed, where)


def _same(a: Any, b: Any) -> Any:
    """Equal cells, missing ones included."""
    return (a == b).fillna(False).astype(bool) | (a.isna() & b.isna())


def _query(receipt: Receipt) -> Query:
    """The query again, from its public specification."""
    spec = dict(receipt.feature)
    kind = spec.pop("terms", None)
    terms: Terms
    if kind == "each_record":
        terms = EachRecord()
    elif kind == "bucket_pairs":
        terms = BucketPairs(int(spec.pop("num_buckets")))
    elif kind == "position_pairs":
        terms = PositionPairs(int(spec.pop("num_rooms")), int(spec.pop("seed")))
    else:
        raise _Wrong(f"{receipt.query}: terms '{kind}' are not known")
    query = Query(receipt.query, receipt.stage, from_spec(spec), receipt.num_groups, terms)
    _require(query.spec() == dict(receipt.feature), f"{receipt.query}: the specification does not build itself again")
    return query


def _block_sums(feature: PairMarginals, released: Released) -> tuple[float, int]:
    """Chi-square of the pairs' totals around their mean, class by class, in units of the claimed noise."""
    totals, variances = [], []
    for (_, _, counts), part in zip(feature.blocks(released.values), feature.parts, strict=True):
        totals.append(counts.sum(axis=(1, 2)))
        variances.append(part.width * released.noise_std**2 / float(part.norm_bound_squared))
    precision = 1 / np.array(variances)[:, None]
    values = np.array(totals)
    mean = (values * precision).sum(axis=0) / precision.sum()
    return float(((values - mean) ** 2 * precision).sum()), (len(totals) - 1) * values.shape[1]


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise _Wrong(reason)
