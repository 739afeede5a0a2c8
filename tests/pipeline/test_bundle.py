"""Bundle and verifier: nothing private inside, everything recomputed, every planted fault found."""

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_project import Project
from typer.testing import CliRunner

from likeness import bundle
from likeness.canonical import canonical_json, sha256_bytes
from likeness.cli import app
from likeness.errors import ArtifactError
from likeness.privacy.records import Record, digest_of
from likeness.release.released import load_released, to_bytes
from likeness.verifier import CHECKS, verify


@pytest.fixture(scope="module")
def whole(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the finished run."""
    target = tmp_path_factory.mktemp("bundles") / "bundle"
    assert "Verify it anywhere" in finished.run("likeness", "bundle", str(target))
    return target


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """A bundle to spoil."""
    return Path(shutil.copytree(whole, tmp_path / "bundle"))


def verdicts(path: Path, retrain: bool = False) -> dict[str, bool | None]:
    return {check.name: check.passed for check in verify(path, retrain)}


def text_of(path: Path, name: str) -> str:
    return next(check.text for check in verify(path) if check.name == name)


def test_a_bundle_is_right_and_holds_nothing_private(finished: Project, whole: Path) -> None:
    verdict = verdicts(whole, retrain=True)
    assert set(verdict.values()) == {True}, [check for check in verify(whole, True) if not check.passed]
    assert {name for name, passed in verdicts(whole).items() if passed is None} == {"training"}
    names = {str(path.relative_to(whole)) for path in whole.rglob("*") if path.is_file()}
    assert names == {
        *bundle.ALWAYS,
        "released/class_counts.safetensors",
        "released/embedding.safetensors",
        "released/mean_pairwise_distance.safetensors",
        "released/mixture_1.safetensors",
        "released/mixture_2.safetensors",
    }
    everything = b"".join((whole / name).read_bytes() for name in names)
    assert b"table.csv" not in everything and str(finished.root).encode() not in everything
    assert (whole / "README.md").read_text().startswith("---\npretty_name:")


def test_verify_and_sample_from_the_command_line(finished: Project, whole: Path, tmp_path: Path) -> None:
    output = finished.run("likeness", "verify", "--retrain", str(whole))
    assert "verdict: everything was recomputed and is right" in output
    believed = CliRunner().invoke(app, ["verify", "--json", str(whole)])
    assert believed.exit_code == 3 and [check["name"] for check in json.loads(believed.stdout)] == list(CHECKS)
    assert "not everything was tested (training)" in believed.stderr
    out = tmp_path / "more.csv"
    finished.run("likeness", "sample", str(whole), "--rows", "50", "--where", "income=>50K", "--out", str(out))
    more = pd.read_csv(out)
    assert len(more) == 50 and set(more["income"]) == {">50K"}
    for arguments, message in (
        (["--where", "income"], "write COLUMN=CATEGORY"),
        (["--where", "income=rich"], "must be one of <=50K, >50K"),
    ):
        words = ["likeness", "sample", str(whole), "--rows", "5", "--out", str(out), *arguments]
        assert message in finished.run(*words, ok=False)


def test_the_same_run_gives_the_same_zip_file(finished: Project, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.zip", "b.zip")]
    for path in paths:
        finished.run("likeness", "bundle", str(path))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert set(verdicts(paths[0]).values()) == {True, None}
    assert "exists" in finished.run("likeness", "bundle", str(paths[0]), ok=False)


def reseal(folder: Path) -> None:
    """Make the checksums right again, as a forger would."""
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.name != "SHA256SUMS")
    (folder / "SHA256SUMS").write_text("".join(f"{sha256_bytes((folder / n).read_bytes())}  {n}\n" for n in names))


def edit_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


def edit_release(folder: Path, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a receipt, and everything in privacy.json and the chain that would tell."""
    path = folder / "released" / f"{name}.safetensors"
    released = load_released(path)
    value = released.receipt.to_dict()
    change(value)
    lattice = released.lattice
    from safetensors.numpy import save

    path.write_bytes(save({"lattice": lattice}, metadata={"receipt": canonical_json(value)}))


def replace_lattice(folder: Path, name: str, lattice: np.ndarray) -> None:
    path = folder / "released" / f"{name}.safetensors"
    released = load_released(path)
    path.write_bytes(to_bytes(type(released)(lattice, released.receipt)))


def add_a_private_file(folder: Path) -> None:
    (folder / "table.parquet").write_bytes(b"rows")


def lose_the_plan(folder: Path) -> None:
    (folder / "plan.json").unlink()


def change_a_row(folder: Path) -> None:
    """The forger changes one column and reseals all that names the table."""
    path = folder / "synthetic.parquet"
    table = pd.read_parquet(path)
    table["age"] = table["age"].to_numpy()[::-1].copy()
    table.to_parquet(path, index=False)
    digest = sha256_bytes(path.read_bytes())
    edit_json(folder / "privacy.json", lambda v: v["outputs"].update({"data/synthetic/synthetic.parquet": digest}))


def halve_the_sensitivity(folder: Path) -> None:
    edit_release(folder, "embedding", lambda v: v.update(sensitivity=v["sensitivity"] / 2))


def claim_more_noise(folder: Path) -> None:
    edit_release(folder, "embedding", lambda v: v.update(noise_multiplier=2 * v["noise_multiplier"]))


def another_adjacency(folder: Path) -> None:
    edit_release(folder, "embedding", lambda v: v.update(adjacency="replace_one"))


def an_unknown_mechanism(folder: Path) -> None:
    edit_release(folder, "embedding", lambda v: v.update(mechanism="laplace"))


def a_smaller_claim(folder: Path) -> None:
    edit_json(folder / "privacy.json", lambda v: v["total"].update(epsilon=0.5))


def a_claim_without_the_lattice(folder: Path) -> None:
    edit_json(folder / "privacy.json", lambda v: v["total"].update(epsilon=v["total"]["epsilon"] - 1e-4))


def another_claim_beside(folder: Path) -> None:
    edit_json(folder / "privacy.json", lambda v: v["total"].update(epsilon_rdp=0.5))


def a_larger_target(folder: Path) -> None:
    edit_json(folder / "privacy.json", lambda v: v["target"].update(epsilon=0.9))


def a_forgotten_query(folder: Path) -> None:
    edit_json(folder / "privacy.json", lambda v: v["queries"].pop())


def another_plan(folder: Path) -> None:
    edit_json(folder / "plan.json", lambda v: v["queries"][0].update(noise_multiplier=99.0))


def other_noise_bits(folder: Path) -> None:
    """Exact sums rounded to whole units: no noise in the low bits."""
    lattice = load_released(folder / "released/embedding.safetensors").lattice
    replace_lattice(folder, "embedding", lattice & ~np.int64(2**20 - 1))


def edit_the_chain(folder: Path) -> None:
    path = folder / "ledger.jsonl"
    path.write_text(path.read_text().replace("uci-adult-1994", "uci-adult-1995"))


def cut_the_chain(folder: Path) -> None:
    path = folder / "ledger.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:1] + lines[2:]))


def forget_what_was_spent(folder: Path) -> None:
    edit_json(folder / "privacy.json", lambda v: v["ledger"]["lifetime"].update(spent_rho=0.001))


def rebuild_the_chain_without_a_commit(folder: Path) -> None:
    """A forger who can compute digests leaves the last commit out."""
    path = folder / "ledger.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    last = max(place for place, record in enumerate(records) if record.get("kind") == "commit")
    del records[last:]
    path.write_text("".join(json.dumps(record, sort_keys=True) + "\n" for record in records))


def another_generator(folder: Path) -> None:
    edit_json(folder / "generator/spec.json", lambda v: v["provenance"].update(releases=["0" * 64]))


def another_statement(folder: Path) -> None:
    path = folder / "PRIVACY_STATEMENT.md"
    path.write_text(path.read_text().replace("ε = 1 ", "ε = 0.1 "))


def another_card(folder: Path) -> None:
    path = folder / "README.md"
    path.write_text(path.read_text().replace("ε = 1 ", "ε = 0.1 "))


def a_larger_cap(folder: Path) -> None:
    edit_json(folder / "privacy.json", lambda v: v["ledger"]["lifetime"].update(cap_epsilon=99.0))


def a_smaller_lifetime(folder: Path) -> None:
    edit_json(folder / "privacy.json", lambda v: v["ledger"]["lifetime"].update(spent_epsilon=0.1))


def another_schema(folder: Path) -> None:
    path = folder / "schema.yaml"
    path.write_text(path.read_text().replace("[Female, Male]", "[Male, Female]"))


def weights_of_another_run(folder: Path) -> None:
    edit_json(folder / "generator/spec.json", lambda v: v["provenance"].update(private=False))


def broken_json(folder: Path) -> None:
    (folder / "privacy.json").write_text("{")


FAULTS: list[tuple[Callable[[Path], None], str]] = [
    (add_a_private_file, "files"),
    (lose_the_plan, "files"),
    (change_a_row, "table"),
    (halve_the_sensitivity, "sensitivity"),
    (claim_more_noise, "sensitivity"),
    (claim_more_noise, "epsilon"),
    (another_adjacency, "sensitivity"),
    (an_unknown_mechanism, "sensitivity"),
    (a_smaller_claim, "epsilon"),
    (a_claim_without_the_lattice, "epsilon"),
    (another_claim_beside, "epsilon"),
    (a_larger_target, "epsilon"),
    (a_forgotten_query, "account"),
    (another_plan, "plan"),
    (other_noise_bits, "noise"),
    (edit_the_chain, "ledger chain"),
    (cut_the_chain, "ledger chain"),
    (forget_what_was_spent, "account"),
    (rebuild_the_chain_without_a_commit, "ledger entries"),
    (another_generator, "generator"),
    (another_statement, "statement"),
    (another_card, "statement"),
    (a_larger_cap, "account"),
    (a_smaller_lifetime, "account"),
    (another_schema, "ledger entries"),
    (weights_of_another_run, "generator"),
    (broken_json, "account"),
]


@pytest.mark.parametrize(("fault", "check"), FAULTS, ids=[f"{fault.__name__}-{check}" for fault, check in FAULTS])
def test_a_planted_fault_is_found_even_when_resealed(copy: Path, fault: Callable[[Path], None], check: str) -> None:
    fault(copy)
    reseal(copy)
    assert verdicts(copy)[check] is False, text_of(copy, check)


def test_an_unsealed_change_is_found_by_its_checksum(copy: Path) -> None:
    (copy / "PRIVACY_STATEMENT.md").write_text("trust me")
    assert verdicts(copy)["checksums"] is False


def test_links_between_records_hide_other_peoples_entries(finished: Project, whole: Path) -> None:
    records = [json.loads(line) for line in (whole / "ledger.jsonl").read_text().splitlines()]
    for record in records:
        if "body" in record:
            assert record["digest"] == digest_of(Record(**record))
        else:
            assert set(record) == {"seq", "previous", "digest", "population", "content"}


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="does not exist"):
        verify(tmp_path / "nothing")
    (tmp_path / "text.zip").write_text("no zip file")
    with pytest.raises(ArtifactError, match="neither a folder nor a zip file"):
        verify(tmp_path / "text.zip")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("../escape.txt", "x")
    (tmp_path / "evil.zip").write_bytes(buffer.getvalue())
    with pytest.raises(ArtifactError, match="does not belong in a bundle"):
        verify(tmp_path / "evil.zip")
    assert not (tmp_path / "escape.txt").exists()
    empty = tmp_path / "empty"
    empty.mkdir()
    assert [check.passed for check in verify(empty)] == [False, *[None] * (len(CHECKS) - 1)]
