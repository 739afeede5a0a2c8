"""The release bundle: everything that may be published about a run, in one folder or zip file, and nothing else."""

import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from likeness.bundle.contents import (
    CARD,
    CHECKSUMS,
    LEDGER,
    PLAN_FILE,
    PRIVACY,
    PUBLISHED,
    RELEASED,
    SCHEMA,
    SETTINGS,
    SPEC,
    STATEMENT,
    TABLE,
    TABLE_CSV,
    WEIGHTS,
    allowed_name,
)
from likeness.bundle.data_card import data_card
from likeness.bundle.extract import chain_extract, chain_text
from likeness.bundle.settings import settings_of
from likeness.core.errors import ArtifactError, ReleaseError
from likeness.core.hashing import sha256_bytes
from likeness.core.paths import read_json, write_json
from likeness.data.schema.schema import schema_text
from likeness.pipeline.account import account
from likeness.pipeline.project import Project
from likeness.report.statement import statement


def write_bundle(project: Project, target: Path, open_others: bool = False) -> list[str]:
    """Write the bundle of a project's last run; a target that ends in .zip becomes a zip file.

    The account is made anew, so that nothing is bundled that does not belong together or that the ledger does not know.
    The ledger records the SHA-256 of what is published, once for the same files.

    Args:
        project: the project.
        target: a new folder or a new .zip file.
        open_others: tell the names of other populations in the ledger, see :func:`chain_extract`.

    Returns:
        names of the files in it.

    Raises:
        ReleaseError: the run is not private, or its files do not belong together.
        ArtifactError: the target exists, or a file is missing.
    """
    if target.exists():
        raise ArtifactError(f"{target} exists. Delete it, or give another name.")
    privacy = account(project)
    if not privacy["private"]:
        raise ReleaseError("epsilon is inf: the run is NOT PRIVATE, there is nothing that may be published.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".bundle") as temporary:
        folder = Path(temporary) / "bundle"
        _copy(project, folder)
        ledger, schema, population = project.ledger, project.written_schema, project.params.privacy.population
        plan = project.written_plan.to_dict()
        for name, value in {SETTINGS: settings_of(project), PLAN_FILE: plan, PRIVACY: privacy}.items():
            write_json(folder / name, value)
        releases = read_json(project.paths.generator_spec)["provenance"]["releases"]
        (folder / SCHEMA).write_text(schema_text(schema))  # without comments: they are nobody's to check
        (folder / STATEMENT).write_text(statement(privacy))
        (folder / CARD).write_text(data_card(privacy, schema))
        files = {name: sha256_bytes((folder / name).read_bytes()) for name in PUBLISHED}
        ledger.publish(population, files, releases)
        extract = chain_extract(ledger.records(), population, open_others)
        (folder / LEDGER).write_text(chain_text(extract))
        names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        stray = [name for name in names if not allowed_name(name)]
        if stray:
            raise ReleaseError(f"{stray[0]} may not be in a bundle")
        sums = "".join(f"{sha256_bytes((folder / name).read_bytes())}  {name}\n" for name in names)
        (folder / CHECKSUMS).write_text(sums)
        names = sorted([*names, CHECKSUMS])
        if target.suffix == ".zip":
            packed = Path(temporary) / "bundle.zip"
            _zip(folder, names, packed)
            packed.replace(target)
        else:
            folder.replace(target)
    return names


def _copy(project: Project, folder: Path) -> None:
    """Copy the artifacts that may be published.

    Raises:
        ReleaseError: a public file is another one than the settings declare.
    """
    paths, public = project.paths, project.method.public_files()
    sources = {
        TABLE: paths.synthetic,
        TABLE_CSV: paths.synthetic_csv,
        SPEC: paths.generator_spec,
        WEIGHTS: paths.generator_weights,
        **{name: file.path for name, file in public.items()},
        **{f"{RELEASED}/{path.name}": path for path in paths.released_files},
    }
    for name, source in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / name)
        (folder / name).chmod(0o644)  # the ledger's store is read-only, and so would be its copy
    for name, file in public.items():
        if sha256_bytes((folder / name).read_bytes()) != file.sha256:
            raise ReleaseError(f"{file.path} is not the file that was released with, whose SHA-256 is {file.sha256}")


def _zip(folder: Path, names: Sequence[str], target: Path) -> None:
    """The same files give the same zip file: no times, fixed order."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), (folder / name).read_bytes(), zipfile.ZIP_DEFLATED)
