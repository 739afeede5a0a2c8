"""A new project: the files of the package, and settings with their questions.

The files are those of the repository: setup.py puts them into the package, and an editable install takes them from the
clone. Stages and flows of a project only start those of the package, so an upgrade upgrades every project.
"""

import shutil
import subprocess
import tomllib
from pathlib import Path

from likeness.config.explain import with_help
from likeness.config.params import Params
from likeness.core.errors import LikenessError
from likeness.core.paths import ProjectPaths
from likeness.methods import DEFAULT, METHODS
from likeness.pipeline.provenance import git

_PACKAGE = Path(__file__).parents[1]
_OF_EVERY_PROJECT = "# Of every project: `likeness new` writes what follows.\n"
_ONCE = (str(ProjectPaths.dvc), ".gitignore", ".dvcignore")
"""What a folder may have already, and what stays after an upgrade."""
_QUESTIONS = {
    "method": DEFAULT,
    "privacy": {"epsilon": 1.0, "delta": 1e-5, "population": None},
    # DVC reads dvc.yaml only where the schema has a name; `init` writes another.
    "ingest": {"source": None, "schema": f"{ProjectPaths.schemas.as_posix()}/table.yaml"},
}
_PARAMS = (
    "# What differs from the defaults, and what a person must decide. `likeness params` prints every setting.\n"
    "# `likeness init TABLE` drafts the schema of a table and points here to both. Then: likeness check.\n"
)


def project_files() -> dict[str, str]:
    """Text of every file that the package gives to a project, by name."""
    root, patterns = _PACKAGE / "template", ["**/*"]
    if not root.is_dir():  # a clone
        root = _PACKAGE.parents[1]
        patterns = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["likeness"][
            "project-files"
        ]
    paths = {path for pattern in patterns for path in root.glob(pattern) if path.is_file() and path.suffix != ".pyc"}
    files = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    files[".gitignore"] = files[".gitignore"].partition(_OF_EVERY_PROJECT)[2]
    return files


def write_project(folder: Path) -> None:
    """Make a project in a folder, which may exist. Git starts here unless the folder is in a repository.

    Raises:
        LikenessError: the folder has a file that a project would have.
    """
    files = project_files()
    files[str(ProjectPaths.params)] = f"{_PARAMS}\n{with_help(Params, _QUESTIONS, METHODS)}\n"
    existing = [name for name in files if (folder / name).exists() and Path(name).parts[0] not in _ONCE]
    if existing:
        raise LikenessError(f"{folder / min(existing)} exists and is not overwritten. Give another FOLDER.")
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / ProjectPaths.dvc).exists():
        files = {name: text for name, text in files.items() if not name.startswith(str(ProjectPaths.dvc))}
    elif git(folder, "rev-parse", "--is-inside-work-tree") != "true":
        if shutil.which("git"):
            subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
        else:
            files[ProjectPaths.dvc_config.as_posix()] += "    no_scm = true\n"
    (folder / ProjectPaths.schemas).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with (folder / name).open("a", encoding="utf-8") as file:  # a .gitignore of the folder grows
            file.write(text)


def upgrade_project(folder: Path) -> list[str]:
    """Write again what differs from the installed package: all but settings, data and what git and DVC ignore.

    Raises:
        LikenessError: the folder is no project.
    """
    if not (folder / ProjectPaths.params).exists():
        raise LikenessError(f"{folder / ProjectPaths.params} is missing: only a project can be upgraded.")
    old, files = outdated_files(folder), project_files()
    for name in old:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(files[name], encoding="utf-8")
    return old


def outdated_files(folder: Path) -> list[str]:
    """Files of a project that the installed package has in another version."""
    files = {name: text for name, text in project_files().items() if Path(name).parts[0] not in _ONCE}
    existing = {name: (folder / name).read_text(encoding="utf-8") for name in files if (folder / name).exists()}
    return sorted(name for name in files if existing.get(name) != files[name])
