"""Every test gets a ledger of its own: the user's is never touched. Property tests repeat unless told to search.

`make quick` leaves out what starts a program or trains a network. Markers say which tests do, and each run checks it.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Two workers share two cores: more threads would only wait for each other. Read when numpy and torch are imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Every machine tries the same examples, so that a change is judged by what it changed. `make fuzz` looks for new ones.
# A busy machine is no failure: there is no deadline, also for making examples.
SLOW = [HealthCheck.too_slow]
settings.register_profile("repeat", derandomize=True, deadline=None, max_examples=50, suppress_health_check=SLOW)
settings.register_profile("search", deadline=None, suppress_health_check=SLOW)
settings.load_profile("search" if "LIKENESS_FUZZ" in os.environ else "repeat")

# Whoever uses one of these fixtures works with programs that the fixture starts; these folders run whole pipelines.
pytest_plugins = ["projects", "toy_stages"]  # fixtures
STARTING = {"toy", "short", "outside", "prefect_server", "cluster", "socket", "finished", "alone", "another"}
WHOLE = ("evidence/tests", "tests/flows", "tests/orchestration", "tests/pipeline")
CHEAP = {"git", "uname"}
LONGEST = ("slow", "process", "long", "")  # markers
MOST_STEPS = 100  # of an optimizer, in a test that is about one step or two
GROUP = pytest.StashKey[str]()
started: list[str] = []
steps = [0]


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note every program that this process starts, but for those that cost nothing."""
    if event == "subprocess.Popen" and Path(os.fsdecode(arguments[0])).name not in CHEAP:
        started.append(os.fsdecode(arguments[0]))
    elif event in ("os.fork", "os.posix_spawn"):
        started.append(event)


sys.addaudithook(watch)
gc.disable()  # no module that is imported for a test becomes garbage: looking for some is a sixth of all imports


def pytest_collection_finish() -> None:
    """Look for garbage from now on, among what the tests make."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts programs. A worker has a file, all flows, or all of the finished project. The longest begin."""
    ranks: dict[str, int] = {}
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        folder = item.path.parent.relative_to(item.config.rootpath).as_posix()
        if folder in WHOLE or STARTING & fixtures:
            item.add_marker("process")
        group = folder if folder == "tests/orchestration" else item.nodeid.partition("::")[0]
        group = "finished" if "finished" in fixtures else group
        item.add_marker(pytest.mark.xdist_group(group))
        item.stash[GROUP] = group
        rank = next(place for place, mark in enumerate(LONGEST) if not mark or item.get_closest_marker(mark))
        ranks[group] = min(rank, ranks.get(group, rank))
    items.sort(key=lambda item: ranks[item.stash[GROUP]])  # short ones fill the cores at the end


@pytest.fixture(autouse=True)
def as_marked(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that starts a program or trains a network says so by a marker."""
    if getattr(request.config.option, "loadgroup", False):  # of a worker
        name = request.node.nodeid
        assert name.rfind("@") > name.rfind("]"), "this pytest and pytest-xdist do not keep groups of tests together"
    watch_optimizers()
    programs, before = len(started), steps[0]
    yield
    if not {"process", "long", "slow"} & {mark.name for mark in request.node.iter_markers()}:
        assert not started[programs:], f"mark this test `process`: it starts {started[programs:]}"
        assert steps[0] - before <= MOST_STEPS, f"mark this test `long`: it trains for {steps[0] - before} steps"


def watch_optimizers() -> None:
    """Count the steps of every optimizer, as soon as there is one: torch takes seconds to import."""
    if "torch.optim" in sys.modules and not hasattr(watch_optimizers, "hook"):
        from torch.optim.optimizer import register_optimizer_step_post_hook

        def count(*_: Any) -> None:
            steps[0] += 1

        watch_optimizers.hook = register_optimizer_step_post_hook(count)  # type: ignore[attr-defined]


@pytest.fixture(scope="session", autouse=True)
def home_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fixtures that outlive a test see none of the user's ledgers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIKENESS_HOME", str(tmp_path_factory.mktemp("ledger")))
        patch.setenv("LIKENESS_ANCHOR", str(tmp_path_factory.mktemp("anchor")))
        yield


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point ledger, anchor and tracking at temporary folders."""
    monkeypatch.setenv("LIKENESS_HOME", str(tmp_path / "ledger"))
    monkeypatch.setenv("LIKENESS_ANCHOR", str(tmp_path / "anchor"))
    monkeypatch.setenv("LIKENESS_MLFLOW_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.delenv("LIKENESS_LEDGER", raising=False)
    return tmp_path


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command line in this process: words in; exit code, output and errors out."""
    from likeness.cli import app

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["likeness", *words])
        code = 0
        try:
            app.main()
        except SystemExit as end:
            code = int(end.code or 0)
        return (code, *capsys.readouterr())

    return run
