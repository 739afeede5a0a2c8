"""Noise of several processes: whole, in order, drawn once, independent; and what a lost process does: nothing."""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from likeness.privacy import noise, noise_processes
from likeness.privacy.noise import add_discrete_gaussian
from likeness.privacy.noise_processes import NoiseProcess, shares

PROCESSES, EACH = 3, 3_000
SCALE = 3.7 * 2**20
ALARM = 1e-8  # of each of the 10 comparisons below: a right sampler fails a test with probability below 1e-7
ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def drawn_here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Short vectors are divided among three processes; the numbers of coordinates that this one draws are kept."""
    monkeypatch.setattr(noise_processes, "_WORTH", EACH)
    monkeypatch.setattr(noise_processes, "_usable_processors", lambda: PROCESSES)
    own, counted = noise._add_here, []

    def added(values: np.ndarray, scale: float) -> np.ndarray:
        counted.append(len(values))
        return own(values, scale)

    monkeypatch.setattr(noise, "_add_here", added)
    return counted


def faults() -> list[str]:
    """What is wrong with one vector's noise: place by place, process by process, and between them."""
    values = np.arange(PROCESSES * EACH, dtype=np.int64) << 40
    noisy = add_discrete_gaussian(values, SCALE)
    found = [] if noisy.dtype == np.int64 and noisy.shape == values.shape else ["shape"]
    # σ is 2**-18 of the distance between values: no honest noise reaches half of it.
    if not np.array_equal((noisy + (1 << 39)) >> 40, np.arange(len(values))):
        return [*found, "order"]
    parts = ((noisy - values) / SCALE).reshape(PROCESSES, EACH)
    low, high = chi2.ppf([ALARM / 2, 1 - ALARM / 2], EACH)
    for part in parts:
        found += [] if low <= np.square(part).sum() <= high else ["scale"]
        found += [] if abs(part.mean()) < 6 / math.sqrt(EACH) else ["mean"]  # six standard errors: below 1e-8
    for first in range(PROCESSES):
        for second in range(first):
            product = (parts[first] * parts[second]).mean()
            found += [] if abs(product) < 6 / math.sqrt(EACH) else ["dependent"]
    return found + ([] if len(np.unique(parts)) > 0.99 * parts.size else ["repeated"])


def test_three_processes_draw_independent_noise_of_the_right_scale_in_order(drawn_here: list[int]) -> None:
    assert faults() == []
    assert drawn_here == [EACH]  # the rest was drawn elsewhere


SENT = noise_processes._PROGRAM
SPOILED = {
    "killed": "import os; os.kill(os.getpid(), 9)",
    "killed at the end": SENT + "import os; os.kill(os.getpid(), 9)",
    "failed at the end": SENT + "sys.exit(3)",
    "said something before": "print('a greeting')" + SENT,
    "one coordinate short": SENT.replace("int(count)", "int(count) - 1"),
    "another scale": SENT.replace("fromhex(scale)", "fromhex(scale) / 2"),
    "another library": SENT.replace("send(", "import likeness.privacy.noise as n; n.version = lambda name: '0'\nsend("),
    "zeros": "import sys; sys.stdout.buffer.write(bytes(8 * int(sys.argv[1]) + 32))",
    "nothing": "",
    "without packages": SENT.replace("*sys.path = ", "*_ = ").replace("import sys", "import sys; sys.path = []"),
}


@pytest.mark.parametrize("program", SPOILED.values(), ids=SPOILED)
def test_noise_that_does_not_arrive_whole_is_drawn_here(
    program: str, monkeypatch: pytest.MonkeyPatch, drawn_here: list[int], capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(noise_processes, "_usable_processors", lambda: 2)
    monkeypatch.setattr(noise_processes, "_PROGRAM", program)
    values = np.arange(2 * EACH, dtype=np.int64) << 40
    noisy = add_discrete_gaussian(values, SCALE)
    assert drawn_here == [EACH, EACH] and np.array_equal((noisy + (1 << 39)) >> 40, np.arange(len(values)))
    low, high = chi2.ppf([ALARM / 2, 1 - ALARM / 2], EACH)
    assert low <= np.square((noisy - values)[EACH:] / SCALE).sum() <= high and capfd.readouterr() == ("", "")


@pytest.mark.parametrize("executable", ["", None, "/nowhere/python3", "/bin/sh", __file__])
def test_where_no_process_can_be_started_all_is_drawn_here(
    executable: str | None, monkeypatch: pytest.MonkeyPatch, drawn_here: list[int]
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    noisy = add_discrete_gaussian(np.zeros(PROCESSES * EACH, dtype=np.int64), SCALE)
    assert drawn_here == [EACH] * PROCESSES and (noisy != 0).mean() > 0.99


def test_a_process_that_hangs_is_given_up_and_ended(monkeypatch: pytest.MonkeyPatch, drawn_here: list[int]) -> None:
    monkeypatch.setattr(noise_processes, "_PROGRAM", "import time; time.sleep(1000)")
    monkeypatch.setattr(noise_processes, "_PATIENCE", 0.2)
    monkeypatch.setattr(noise_processes, "_SLOWER", 0.0)
    running = []
    monkeypatch.setattr(
        NoiseProcess, "end", lambda process, end=NoiseProcess.end: running.append(process) or end(process)
    )
    add_discrete_gaussian(np.zeros(PROCESSES * EACH, dtype=np.int64), SCALE)
    assert drawn_here == [EACH] * PROCESSES and [process._process.poll() for process in running] == [-9, -9]


def test_an_interruption_here_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(values: np.ndarray, scale: float) -> np.ndarray:
        raise KeyboardInterrupt

    begun: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **more: begun.append(popen(*words, **more)) or begun[-1])
    monkeypatch.setattr(noise, "_add_here", interrupted)
    with pytest.raises(KeyboardInterrupt):
        add_discrete_gaussian(np.zeros(PROCESSES * EACH, dtype=np.int64), SCALE)
    assert [process.poll() for process in begun] == [-9, -9]


def test_a_process_is_told_a_number_and_a_scale_and_nothing_of_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[Any, dict[str, Any]]] = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **more: told.append((words, more)) or popen(*words, **more))
    add_discrete_gaussian(np.full(PROCESSES * EACH, 123_456_789_012_345, dtype=np.int64), SCALE)
    assert len(told) == PROCESSES - 1
    for (command,), more in told:
        assert command[1:6] == ["-I", "-c", SENT, str(EACH), SCALE.hex()] and set(command[6:]) == set(sys.path)
        assert more == {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}


SCRIPT = """
print("begun")
import sys
sys.path.insert(0, {source!r})
import numpy as np
from likeness.privacy import noise, noise_processes
noise_processes._WORTH, noise_processes._usable_processors = 1_000, lambda: 2
own, drawn = noise._add_here, []
noise._add_here = lambda values, scale: drawn.append(len(values)) or own(values, scale)
noisy = noise.add_discrete_gaussian(np.zeros(2_000, dtype=np.int64), 2.0**20)
print(drawn, bool((noisy != 0).mean() > 0.99), {{"pandas", "sklearn", "torch", "scipy"}} & set(sys.modules))
"""


def test_a_plain_script_without_a_guard_runs_once_and_what_lies_in_its_folder_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(SCRIPT.format(source=str(ROOT / "src")))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("hashlib.py", "opendp.py", "numpy.py"):
        (elsewhere / name).write_text("raise SystemExit(1)")
    command = [sys.executable, "-E", str(tmp_path / "plain.py")]
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("begun\n[1000] True set()\n", "")


@pytest.mark.parametrize(("processors", "count", "processes"), [
    (1, 10**7, 1), (2, 0, 1), (2, 2 * EACH - 1, 1), (2, 2 * EACH, 2), (2, 10**7 + 1, 2), (3, 10**6 + 1, 3),
    (64, 10**7, 16),
])  # fmt: skip
def test_shares(processors: int, count: int, processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_processes, "_usable_processors", lambda: processors)
    found = shares(count)
    assert len(found) == processes and sum(found) == count and max(found) - min(found) <= 1


def test_noise_that_might_not_fit_is_added_by_the_library_alone(drawn_here: list[int]) -> None:
    """Noise that was cut off at the largest integer before it is added would not hide a value.

    False alarm: noise of σ = 2**100 lies within 2**63 of 0 with probability below 1e-11 a coordinate.
    """
    noisy = add_discrete_gaussian(np.full(PROCESSES * EACH, -5, dtype=np.int64), 2.0**100)
    assert drawn_here == [PROCESSES * EACH] and set(np.unique(noisy)) == {-(2**63), 2**63 - 1}
    assert add_discrete_gaussian(np.zeros(0, dtype=np.int64), 2.0).shape == (0,)
