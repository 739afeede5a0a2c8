"""The release bundle: one folder or zip file with everything that may be published about a run, and nothing else."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from likeness.bundle import contents
from likeness.bundle.chain import chain_extract, chain_text
from likeness.bundle.contents import CHECKSUMS, LEDGER, PLAN_FILE, PRIVACY, SETTINGS, STATEMENT, settings_of
from likeness.bundle.files import pack, sums
from likeness.core.errors import ArtifactError, ReleaseError
from likeness.core.files import naming
from likeness.core.hashing import sha256_bytes
from likeness.core.paths import read_json, write_json
from likeness.core.remote import ending
from likeness.core.text import escape_markdown
from likeness.data.schema.schema import Schema
from likeness.data.schema.yaml import schema_text
from likeness.pipeline.project import Project
from likeness.report.statement import statement


def data_card(privacy: dict[str, Any], schema: Schema) -> str:
    """A data card as Hugging Face writes it: YAML front matter, then Markdown."""
    rows = privacy["sample"]["rows"]
    sizes = [(10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M")]
    size = next((name for most, name in sizes if rows < most), "n>10M")
    total = privacy["total"]
    tables = [Path(path).stem for path in privacy["outputs"] if path.endswith(".parquet")]
    linked = len(tables) > 1  # people with histories
    things = "rows" if schema.image is None else "images"
    lines = [
        "---",
        f"pretty_name: {json.dumps(f'{schema.name} (synthetic, differentially private)')}",
        "tags: [synthetic, tabular, differential-privacy]",
        f"size_categories: [{json.dumps(size)}]",
        "configs:",
        *(f"- config_name: {name if linked else 'default'}\n  data_files: {name}.parquet" for name in tables),
        "---",
        "",
        f"# {escape_markdown(schema.name)}: synthetic {'people' if linked else things}",
        "",
        f"{rows:,} synthetic {'people with their events' if linked else things}; none of them is a person. "
        f"Made by the method `{privacy['method']}` of {privacy.get('plugin', 'Likeness')} from "
        f"{len(privacy['queries'])} noisy statistics, ε = {total['epsilon']:.6g} at δ = {total['delta']:g} "
        f"({privacy['adjacency']}, unit: {escape_markdown(privacy['unit'])}). "
        f"[{STATEMENT}]({STATEMENT}) says what that promises and what it does not.",
        "",
        f"Source of the public schema: {escape_markdown(schema.source)}",
        "",
        "| file | what |",
        "| --- | --- |",
        *(f"| {_files(privacy, name)} | {f'table {name}' if linked else 'the table'} |" for name in tables),
        "| `generator/` | the generator: `likeness sample` draws more rows, at no cost of privacy |",
        "| `released/` | the noisy statistics, each with its receipt |",
        f"| `{PRIVACY}`, `{PLAN_FILE}`, `{SETTINGS}` | the account, the plan and the settings, for machines |",
        f"| `{LEDGER}` | the ledger's chain: entries about these people (who asked, which day); of others hashes |",
        f"| `{CHECKSUMS}` | `sha256sum --check {CHECKSUMS}` |",
        "",
        f"Do not trust this bundle. Recompute it: `pip install likeness-dp=={privacy['software']['likeness']}` (not "
        "`likeness`, which is another project), then `likeness verify --retrain --page page.html BUNDLE`. Exit code 0 "
        "says that everything was recomputed. `page.html` draws each column, the pairs and some rows.",
        "",
    ]
    return "\n".join(lines)


def _files(privacy: dict[str, Any], table: str) -> str:
    """The files of a table; images are arrays as Keras stores MNIST, their classes numbers in the schema's order."""
    files = sorted((Path(path) for path in privacy["outputs"] if Path(path).stem == table), reverse=True)
    arrays = " (`x_train`, `y_train`)" if any(file.suffix == ".npz" for file in files) else ""
    return ", ".join(f"`{file.name}`" for file in files) + arrays


def write_bundle(project: Project, privacy: dict[str, Any], target: Path, open_others: bool = False) -> list[str]:
    """Write the bundle of a project's last run; a target that ends in .zip becomes a zip file.

    The ledger records the SHA-256 of the published files, once for equal files.

    Args:
        project: the project.
        privacy: a new :func:`likeness.pipeline.account.account` of it: that one proves that all files belong together
            and that the ledger knows them.
        target: a new folder or a new .zip file.
        open_others: publish the names of other populations in the ledger, see :func:`chain_extract`.

    Returns:
        names of the files in it.

    Raises:
        ReleaseError: the run is not private.
        ArtifactError: the target exists, or a file is missing.
    """
    if target.exists():
        raise ArtifactError(f"{target} exists and is not overwritten. Delete it, or give another name.")
    if not privacy["private"]:
        fault = "privacy.epsilon is inf, so the run is NOT PRIVATE"
        raise ReleaseError(f"params.yaml: {fault}. To publish, run with a finite epsilon.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with naming(target), tempfile.TemporaryDirectory(dir=target.parent, prefix=".bundle") as temporary:
        folder = Path(temporary) / "bundle"
        _copy(project, folder)
        ledger, schema, population = project.ledger, project.public_schema, project.params.privacy.population
        write_json(folder / contents.SETTINGS, settings_of(project))
        write_json(folder / contents.PLAN_FILE, project.written_plan.to_dict())
        write_json(folder / contents.PRIVACY, privacy)
        spec = project.output(project.outputs.generator_files[0])
        releases = read_json(spec)["provenance"]["releases"]
        # Without comments and dropped columns, which nobody can check.
        (folder / contents.SCHEMA).write_bytes(schema_text(schema.published_schema).encode())
        (folder / contents.STATEMENT).write_bytes(statement(privacy).encode())
        (folder / contents.CARD).write_bytes(data_card(privacy, project.written_schema).encode())
        files = {name: sha256_bytes((folder / name).read_bytes()) for name in contents.recorded_files(project.outputs)}
        ledger.publish(population, files, releases)
        extract = chain_extract(ledger.records(), population, open_others)
        (folder / contents.LEDGER).write_bytes(chain_text(extract).encode())
        names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        if stray := [name for name in names if not contents.allowed_name(name)]:
            raise ReleaseError(f"{stray[0]} must not be in a bundle. Please report this line.")
        (folder / contents.CHECKSUMS).write_bytes(sums(folder).encode())
        names = sorted([*names, contents.CHECKSUMS])
        if ending(target) == ".zip":
            packed = Path(temporary) / "bundle.zip"
            pack(folder, names, packed)
            packed.replace(target)
        else:
            folder.replace(target)
    return names


def _copy(project: Project, folder: Path) -> None:
    """Copy the artifacts that may be published."""
    sources = {
        **{name: project.output(name) for name in project.outputs.files},
        **{f"{contents.RELEASED}/{path.name}": path for path in project.paths.released_files},
    }
    for name, source in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / name)
        (folder / name).chmod(0o644)  # a copy of the read-only store would be read-only too
