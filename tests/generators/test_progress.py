"""What training tells while it runs."""

import pytest

from likeness.methods import fit


def test_time_left_is_guessed_from_the_steps_after_the_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A slow start of 20 s, then a step each 2 s: the start says nothing of the rest.
    times = iter([0.0, 20.0, 26.0, 36.0])
    monkeypatch.setattr(fit.time, "monotonic", lambda: next(times))
    progress = fit._Progress("pearl", every=5.0)
    for iteration in (1, 4, 9):
        progress(iteration, 9, 0.5)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("loss 0.5")[2] for line in lines] == ["", ", 10 s left", ", 0 s left"]
