"""Lying bundles: each planted lie is found by its check, and each requirement of the verifier is false for one of them.

The lies and the forger's tools are those of ``python -m tests.campaigns.lies``.
"""

import ast
import traceback
import tracemalloc
from pathlib import Path

import pytest
from typer.testing import CliRunner

from likeness import verify as verifier
from likeness.bundle import files
from likeness.bundle.files import Bundle, open_bundle
from likeness.bundle.verdict import Check, Wrong, run_check
from likeness.cli.app import app
from likeness.core.errors import ArtifactError
from likeness.verify import MOST_MINUTES, account
from likeness.verify.checks import CHECKS, checks_of
from tests.campaigns.honest_bundles import bundles
from tests.campaigns.lies import BY_NAME, LIES, OPENED, TOLD, Lie, judged

pytestmark = pytest.mark.long


class Told:
    """What the check of each lie says, asked once; and where in the verifier it was refused, as (file, line)."""

    def __init__(self, honest: dict[str, Path], folder: Path) -> None:
        self.places: set[tuple[str, int]] = set()
        self._honest, self._folder, self._heard = honest, folder, dict[str, Check]()

    def check(self, name: str) -> Check:
        """What the check says of a lie."""
        if name not in self._heard:
            folder = self._folder / str(len(self._heard))
            folder.mkdir()
            self._heard[name] = _asked(BY_NAME[name], BY_NAME[name].told(self._honest, folder), self.places)
        return self._heard[name]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two honest bundles."""
    return bundles(tmp_path_factory.mktemp("honest"))


@pytest.fixture(scope="module")
def told(honest: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Every lie, told to the check that must not believe it."""
    return Told(honest, tmp_path_factory.mktemp("lies"))


def _asked(lie: Lie, place: Path, places: set[tuple[str, int]]) -> Check:
    """What the check of a lie says."""
    if lie.check == OPENED:
        try:
            with open_bundle(place):
                return Check(OPENED, True, "opened")
        except ArtifactError as refusal:
            return Check(OPENED, False, str(refusal))

    return _noted(lie.check, Bundle(place, lie.retrain, MOST_MINUTES), places)


def _noted(name: str, bundle: Bundle, places: set[tuple[str, int]]) -> Check:
    """What a check says, and where it refuses."""

    def check(bundle: Bundle) -> str:
        try:
            return CHECKS[name](bundle)
        except Wrong as wrong:
            frames = traceback.extract_tb(wrong.__traceback__)
            frame = frames[-2] if frames[-1].name == "require" else frames[-1]
            places.add((Path(frame.filename).name, frame.lineno or 0))
            raise

    return run_check(name, check, bundle)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_lie_is_not_believed(told: Told, name: str) -> None:
    lie, check = BY_NAME[name], told.check(name)
    assert (check.passed, lie.because in check.text) == (lie.verdict, True), check


def test_a_lie_about_epsilon_is_not_believed_without_dp_accounting(
    honest: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "find_spec", lambda _: None)
    for place, lie in enumerate(lie for lie in LIES if lie.check == "epsilon"):
        (tmp_path / str(place)).mkdir()
        told = lie.told(honest, tmp_path / str(place))
        assert run_check("epsilon", CHECKS["epsilon"], Bundle(told)).passed is False, lie.says
    true = run_check("epsilon", CHECKS["epsilon"], Bundle(next(iter(honest.values()))))
    assert true.passed and "autodp:" in true.text


@pytest.mark.skipif(len(TOLD) < len(LIES), reason="a wing is not installed, and lies about it are not told")
def test_every_requirement_is_false_for_some_lie(told: Told) -> None:
    for name in BY_NAME:
        told.check(name)
    never = [place for place, lines in requirements().items() if not lines & told.places]
    assert never == [], "requirements that no lie breaks: plant one in tests/campaigns/lies.py"


def requirements() -> dict[str, set[tuple[str, int]]]:
    """The lines of each requirement of the verifier, but those about choices (``tests/release/test_choices.py``)."""
    found = {}
    for path in [Path(files.__file__), *sorted(Path(verifier.__file__).parent.glob("*.py"))]:
        tree = ast.parse(path.read_text())
        tree.body = [node for node in tree.body if getattr(node, "name", "") != "_check_choices"]
        for node in filter(_refuses, ast.walk(tree)):
            lines = range(node.lineno, (node.end_lineno or 0) + 1)
            found[f"{path.name}:{node.lineno}"] = {(path.name, line) for line in lines}
    return found


def _refuses(node: ast.AST) -> bool:
    """Whether it is a requirement, or raises :class:`Wrong`."""
    call = node.exc if isinstance(node, ast.Raise) else node
    name = getattr(call.func, "id", "") if isinstance(call, ast.Call) else ""
    return name == ("Wrong" if isinstance(node, ast.Raise) else "require")


def test_honest_bundles_are_right_to_the_last_check(honest: dict[str, Path]) -> None:
    for path in honest.values():
        checks = {check.name: check for check in checks_of(path, True, MOST_MINUTES)}
        assert {check.passed for check in checks.values()} == {True}
        # The categories of the second bundle, which the method of the first one paid.
        assert ("1 of them are releases of an earlier plan" in checks["plan"].text) is (path == honest.get("pearl"))


WHOLE = {
    "both files of the table hold other rows": 1,
    "class counts and columns are shown as bare links": 1,
    "plan and settings say epsilon = 0.1": 1,
    "an earlier run of these people is hidden": 3,
    "an earlier run of these people is hidden, and opened": 1,
    "a folder has a name that says something": 1,
    "a pipe instead of a file": 1,
}
"""Exit codes of ``likeness verify``; what is refused is no bundle, and counts as wrong."""


@pytest.mark.parametrize("says", [lie.says for lie in BY_NAME.values() if lie.says in WHOLE])
def test_the_whole_verdict_on_a_lie(honest: dict[str, Path], says: str) -> None:
    passed = [check.passed for check in judged(next(lie for lie in LIES if lie.says == says), honest)]
    assert (1 if False in passed else 3 if None in passed else 0) == WHOLE[says]


def test_the_command_line_says_what_it_did_not_test(honest: dict[str, Path], tmp_path: Path) -> None:
    for says, code in (("the weights hold rows", 3), ("the statement has a note", 1), ("a text of a terabyte", None)):
        lie = next(lie for lie in LIES if lie.says == says)
        (tmp_path / says).mkdir()
        done = CliRunner().invoke(app, ["verify", str(lie.told(honest, tmp_path / says))])
        if code is None:
            assert isinstance(done.exception, ArtifactError)  # which `likeness` tells with exit code 2
        else:
            assert done.exit_code == code
            assert (
                lie.check in done.stderr + done.stdout
            ) and "everything was recomputed and is right" not in done.stdout


@pytest.mark.parametrize("says", ["a thousand times the bytes of the zip", "a packed file that is longer than it says"])
def test_a_zip_bomb_takes_little_memory(honest: dict[str, Path], tmp_path: Path, says: str) -> None:
    place = next(lie for lie in LIES if lie.says == says).told(honest, tmp_path)
    tracemalloc.start()
    try:
        with pytest.raises(ArtifactError), open_bundle(place):
            pass
        assert tracemalloc.get_traced_memory()[1] < 1 << 25
    finally:
        tracemalloc.stop()
