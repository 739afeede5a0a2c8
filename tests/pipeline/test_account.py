"""What the account refuses: a statement must be about the table beside it."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from small_project import Clone

from likeness.core.errors import ArtifactError, DataError, ReleaseError
from likeness.core.paths import ProjectPaths, read_json, write_json
from likeness.data.encoding.encoder import Encoder
from likeness.data.encoding.layout import encoding_digest
from likeness.data.private_tables import read_manifest, read_private, write_private
from likeness.data.schema.schema import Schema
from likeness.ledger.home import locate
from likeness.ledger.ledger import Ledger
from likeness.methods.saved_generator import SavedGenerator
from likeness.pipeline import account as statement
from likeness.pipeline.account import account
from likeness.pipeline.consistency import check_run
from likeness.pipeline.doors import rows_of
from likeness.pipeline.ingest import manifest_of
from likeness.pipeline.project import Project
from likeness.privacy.accountant import compose
from likeness.release.released import load_released
from likeness.stages import preprocess

COUNTS = Path("data/released/auxiliary/class_counts.safetensors")


@pytest.fixture
def copy(
    tmp_path: Path, finished: Clone, environment: Callable[[Path], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> Clone:
    """A finished run to spoil, as the working folder of this process."""
    root = tmp_path / "copy"
    shutil.copytree(finished.root, root, ignore=shutil.ignore_patterns(".dvc", ".git", "private"))
    project = Clone(root, environment(root))
    monkeypatch.chdir(root)
    for name in ("LIKENESS_HOME", "LIKENESS_ANCHOR"):
        monkeypatch.setenv(name, project.environment[name])
    return project


def stated() -> dict[str, Any]:
    return account(Project.load())


def test_a_whole_run_is_stated_with_the_digests_of_its_files(copy: Clone) -> None:
    outputs = stated()["outputs"]
    assert sorted(Path(name).name for name in outputs) == [
        "spec.json",
        "synthetic.csv",
        "synthetic.parquet",
        "weights.safetensors",
    ]
    assert outputs["data/synthetic/synthetic.csv"] in copy.bytes("reports/PRIVACY_STATEMENT.md").decode()


def test_an_account_that_the_ledger_contradicts_is_seen(copy: Clone) -> None:
    def is_stated() -> bool:
        return Project.load().ledger_session.is_stated(ProjectPaths.privacy)

    assert is_stated()
    said = read_json(ProjectPaths.privacy)
    ledger, query = said["ledger"], said["queries"][0]
    edits = [
        {"ledger": {**ledger, "id": "0" * 32}},
        {"ledger": ledger | {"lifetime": ledger["lifetime"] | {"spent_rho": 1}}},
    ]
    edits += [{"queries": [queries]} for queries in ({}, query | {"sha256": "0" * 64}, query | {"ledger_seq": 0})]
    for edit in edits:
        write_json(ProjectPaths.privacy, said | edit)
        assert not is_stated()


def plan_by_hand(copy: Clone) -> None:
    copy.run("stages.plan")


CASES: dict[str, tuple[dict[str, Any], bool, str]] = {
    "target": ({"privacy__epsilon": 0.5}, False, "is not the plan of the settings"),
    "noise": ({"privacy__epsilon": 0.5}, True, "released with another noise"),
    "people": ({"privacy__population": "others"}, True, "another privacy.population"),
    "adjacency": (
        {"privacy__adjacency": "replace_one", "privacy__num_records": 1000},
        True,
        "another privacy.adjacency",
    ),
    "unit": (
        {"ingest__unit": {"column": "person", "max_rows": 2}, "privacy__unit": "one person"},
        True,
        "another ingest.unit",
    ),
    "slot": ({"ledger__attempt": "2"}, False, "another ledger.attempt"),
    "method": ({"method": "merf"}, True, "but the plan has"),
    "map": ({"marginals__privatize__bins": 9}, False, "answers another question"),
    "rows": ({"sample__rows": 500}, False, "was not drawn with section sample"),
    "conditions": ({"sample__where": {"sex": "Male"}}, False, "was not drawn with section sample"),
}


@pytest.mark.parametrize("name", CASES)
def test_changed_settings_are_not_stated_over_old_files(copy: Clone, name: str) -> None:
    values, planned, message = CASES[name]
    copy.set(**values)
    if planned:
        plan_by_hand(copy)
    with pytest.raises((ReleaseError, ArtifactError), match=message):
        stated()


def test_another_order_of_categories_is_another_schema(copy: Clone) -> None:
    path = copy.root / "data/schema/adult.yaml"
    path.write_text(path.read_text().replace("[Female, Male]", "[Male, Female]"))
    with pytest.raises(ReleaseError, match="another schema"):
        stated()


def lose_the_embedding() -> None:
    ProjectPaths.embedding.unlink()


def lose_a_statistic() -> None:
    COUNTS.unlink()


def train_on_others() -> None:
    path = Path("data/models/generator/spec.json")
    spec = read_json(path)
    spec["provenance"]["releases"][0] = "0" * 64
    write_json(path, spec)


def train_by_another_method() -> None:
    path = Path("data/models/generator/spec.json")
    spec = read_json(path)
    spec["provenance"]["method"] = "merf"
    write_json(path, spec)


def lose_the_generator() -> None:
    Path("data/models/generator/weights.safetensors").unlink()


def edit_the_csv() -> None:
    path = Path("data/synthetic/synthetic.csv")
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")


def replace_the_weights() -> None:
    path = Path("data/models/generator/weights.safetensors")
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def weights_of_another_run() -> None:
    """As an interrupted training leaves them; then the table is drawn again, so that it belongs to them."""
    folder, other = Path("data/models/generator"), Path("other")
    shutil.copytree(folder, other)
    spec = read_json(other / "spec.json")
    spec["provenance"]["private"] = False
    write_json(other / "spec.json", spec)
    SavedGenerator(SavedGenerator.load(folder).network, tuple(spec["class_weights"]), spec["provenance"]).save(other)
    shutil.copy(other / "weights.safetensors", folder / "weights.safetensors")


def edit_the_parquet() -> None:
    """Rows changed, metadata kept."""
    path = "data/synthetic/synthetic.parquet"
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 10), path)


def replace_the_table() -> None:
    pd.DataFrame({"x": [1]}).to_parquet("data/synthetic/synthetic.parquet")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        *((lose_the_embedding, "embedding.safetensors is missing"), (lose_a_statistic, "but the plan has")),
        (train_on_others, "was trained on other releases"),
        (train_by_another_method, "was trained on other releases"),
        (lose_the_generator, "weights.safetensors is missing"),
        (edit_the_csv, "does not belong to data/synthetic/synthetic.csv"),
        *(
            (spoil, "does not belong to data/models/generator/w")
            for spoil in (replace_the_weights, weights_of_another_run)
        ),
        (edit_the_parquet, "hold different rows"),
        (replace_the_table, "was not drawn with section sample"),
    ],
)
def test_lost_and_replaced_files_are_not_stated(copy: Clone, spoil: Callable[[], None], message: str) -> None:
    spoil()
    with pytest.raises((ReleaseError, ArtifactError), match=message):
        stated()


def test_releases_of_different_rows_are_not_stated_together(copy: Clone) -> None:
    project = Project.load()
    plan = project.written_plan
    released = {path: load_released(path) for path in [*sorted(COUNTS.parent.iterdir()), ProjectPaths.embedding]}
    check_run(project, plan, released)
    receipt = dataclasses.replace(released[COUNTS].receipt, digest="other rows")
    with pytest.raises(ReleaseError, match="different rows"):
        check_run(project, plan, {**released, COUNTS: dataclasses.replace(released[COUNTS], receipt=receipt)})


def test_more_than_the_target_is_not_stated(copy: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    def more(receipts: Any, delta: float) -> Any:
        total = compose(receipts, delta)
        return dataclasses.replace(total, epsilon=total.epsilon * 1.01)

    monkeypatch.setattr(statement, "compose", more)
    with pytest.raises(ReleaseError, match=r"composes to epsilon 1\.0.* more than privacy\.epsilon, 1"):
        stated()


def test_a_refusal_leaves_no_statement_of_an_earlier_run(copy: Clone) -> None:
    copy.set(privacy__epsilon=0.5)
    assert "is not the plan of the settings" in copy.run("stages.account", ok=False)
    assert not (copy.root / "reports/privacy.json").exists() and not (copy.root / "reports/index.html").exists()
    assert not (copy.root / "reports/PRIVACY_STATEMENT.md").exists()


def test_rows_of_other_people_never_go_through_the_door_under_this_name(alone: Clone) -> None:
    """Encoded rows made under one name, settings changed to another, no stage in between."""
    alone.stages("preprocess")
    alone.set(privacy__population="somebody else")
    alone.run("stages.plan")
    assert "written under another privacy.population" in alone.run("stages.auxiliary", ok=False)
    alone.set(privacy__population="uci-adult-1994", privacy__adjacency="replace_one", privacy__num_records=1000)
    alone.run("stages.plan")
    output = alone.run("stages.auxiliary", ok=False)
    assert "written under another privacy.adjacency" in output or "is accounted under" in output


def test_rows_and_card_come_from_one_file(another: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other people's rows ingested while these are encoded: the encoded file must not carry their card."""
    another.stages("ingest")
    monkeypatch.chdir(another.root)
    ours, theirs = read_manifest(ProjectPaths.table), {**read_manifest(ProjectPaths.table), "identity": "others"}
    encode = Encoder.encode

    def slow(self: Encoder, table: Any, compact: bool) -> Any:
        codes = encode(self, table, compact)
        write_private(read_private(ProjectPaths.table).head(10), ProjectPaths.table, theirs)
        return codes

    monkeypatch.setattr(Encoder, "encode", slow)
    preprocess.main(Project.load())
    assert {key: read_manifest(ProjectPaths.encoded)[key] for key in ours} == ours


def test_the_digest_is_of_the_training_rows_only(another: Clone) -> None:
    another.run("stages.ingest")
    path, before = another.root / "table.csv", read_manifest(another.root / ProjectPaths.table)
    lines = path.read_text().splitlines()
    for kind, same in (("test", True), ("train", False)):
        place = max(place for place, line in enumerate(lines) if line.endswith(kind))
        del lines[place]
        path.write_text("\n".join(lines) + "\n")
        another.run("stages.ingest")
        assert (read_manifest(another.root / ProjectPaths.table)["digest"] == before["digest"]) is same


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"identity": "others"}, "another privacy.population"),
        *(({"adjacency": "replace_one"}, "another privacy.adjacency"), ({"encoding": "0"}, "another encoding")),
        *(({"ledger": "0"}, "the key of another ledger"), ({"num_records": 3}, "num_records is None")),
    ],
)
def test_a_card_that_does_not_fit_is_refused(
    another: Clone, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(another.root)
    project, ledger = Project.load(), Ledger.create(locate())
    encoding = {"encoding": encoding_digest(project.schema)}
    right = {**manifest_of(project.params, ledger.id, "digest", 5), **encoding}
    assert right["num_records"] is None  # private under add_remove_one
    (another.root / ProjectPaths.encoded).parent.mkdir(parents=True)
    write_private(pd.DataFrame({"x": [1]}), ProjectPaths.encoded, right)
    _, read = rows_of(project)
    write_private(pd.DataFrame({"x": [1]}), ProjectPaths.encoded, {**right, **change})
    with pytest.raises(ArtifactError, match="was replaced while it was in use"):
        next(read())
    with pytest.raises((ArtifactError, DataError), match=message):
        rows_of(project)


def test_the_encoding_names_everything_that_shapes_a_row(finished: Clone) -> None:
    schema = Schema.load(finished.root / "data/schema/adult.yaml")
    columns = schema.columns
    changed = [
        dataclasses.replace(schema, columns=(dataclasses.replace(columns[0], upper=91.0), *columns[1:])),
        dataclasses.replace(schema, columns=(dataclasses.replace(columns[0], spikes=(20.0,)), *columns[1:])),
        dataclasses.replace(schema, columns=columns[1:]),
        dataclasses.replace(schema, label="sex"),
    ]
    assert len({encoding_digest(one) for one in [schema, *changed]}) == 5
