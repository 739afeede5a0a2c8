"""The process of :class:`likeness.flows.dvc_process.DVC`: it reads commands, asks DVC and answers.

DVC decides what is out of date, and its state is loaded anew for each command. ``dvc repro`` runs three stages
every time, because installed code, source and ledger are no files of DVC. Here they are looked at first.
"""

import json
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from dvc.exceptions import DvcException
from dvc.repo import Repo, lock_repo
from dvc.stage import Stage

from likeness.core.errors import LikenessError
from likeness.core.paths import ProjectPaths, read_json, write_json
from likeness.flows.dvc_process import ANSWER
from likeness.pipeline.project import Project
from likeness.stages import code_digests


def main() -> None:
    """Answer commands from standard input until it ends."""
    commands = os.fdopen(os.dup(0), encoding="utf-8")
    with Path(os.devnull).open() as nothing:  # a stage that reads its standard input must not get the commands
        os.dup2(nothing.fileno(), 0)
    logging.getLogger("dvc").setLevel(logging.WARNING)
    repo = Repo(_wait_for_lock=True)  # another dvc may work in this folder, on another stage
    for line in commands:
        command, *stages = json.loads(line)
        answer = stale(repo, stages) if command == "stale" else reproduce(repo, stages[0], command == "force")
        sys.stdout.write(f"{ANSWER}{json.dumps(answer)}\n")
        sys.stdout.flush()


def stale(repo: Repo, names: list[str]) -> list[str]:
    """The stages that are out of date."""
    with lock_repo(repo):
        stages = {stage.addressing: stage for stage in repo.index.stages}
        return [name for name in names if _is_stale(stages[name], name)]


def _is_stale(stage: Stage, name: str) -> bool:
    try:
        always, stage.always_changed = stage.always_changed, False
        return bool(stage.changed() or (always and not (name in _LOOKS and _LOOKS[name](Project.load()))))
    except (DvcException, LikenessError):  # running the stage shows it
        return True


def reproduce(repo: Repo, name: str, force: bool) -> bool:
    """Run a stage; return whether it went well. DVC's words go to standard error."""
    head = _head() if name == ACCOUNT else None
    try:
        repo.reproduce(name, single_item=True, force=force)
    except DvcException as error:
        if not (ProjectPaths().markers / f"{name}.failed").exists():  # else the stage has said it
            sys.stderr.write(f"{name}: {error.__cause__ or error}\n")
            sys.stderr.flush()
        return False
    if head is not None:
        paths = ProjectPaths()
        write_json(paths.accounted, {"head": head, "ended": _ended(paths)})
    return True


def same_code(project: Project) -> bool:
    """Whether the installed code is the one of the last run."""
    paths = project.paths
    files = {path.name: path.read_text(encoding="utf-8") for path in paths.code.iterdir()}
    return files == code_digests()


def same_source(project: Project) -> bool:
    """Whether the source is the one of the fingerprint."""
    return bool(read_json(project.paths.source).get("hmac") == project.source_digest())


def same_ledger(project: Project) -> bool:
    """Whether the ledger ends with the record with which the last account began, and nobody ran that stage since.

    The account follows from the ledger and from files that DVC knows. The ledger is verified here too.
    """
    seen = read_json(project.paths.accounted)
    return (seen["head"], seen["ended"]) == (project.ledger.head().head, _ended(project.paths))


ACCOUNT = "account"
_LOOKS: dict[str, Callable[[Project], bool]] = {"settings": same_code, "fingerprint": same_source, ACCOUNT: same_ledger}


def _head() -> str | None:
    """Digest of the ledger's last record; None where there is no ledger, which the stage will say."""
    try:
        return Project.load().ledger.head().head
    except LikenessError:
        return None


def _ended(paths: ProjectPaths) -> float:
    """When the last account ended."""
    return float(read_json(paths.markers / f"{ACCOUNT}.json")["ended"])


if __name__ == "__main__":
    main()
