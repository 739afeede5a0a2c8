"""What the library and the commands say: nothing unasked, fixed steps in a file, and what fits a terminal.

One normal form of texts: what looks equal is equal, and a mistyped word gets the right one.
"""

import io
import logging
import re
import sys
import unicodedata
from collections.abc import Iterator

import pytest
from pytest import MonkeyPatch

from likeness.cli.bars import stage_bars
from likeness.cli.console import say, table
from likeness.core.messages import LOG, REPORT, Report, progress, show_messages
from likeness.core.text import code_points, did_you_mean, fold_case, normal_text


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    handlers, level = LOG.handlers, LOG.level
    yield
    LOG.handlers = handlers
    LOG.setLevel(level)


def work(total: int) -> None:
    with progress("train pearl", total) as step:
        for done in range(1, total + 1):
            step(done, f"loss {1 / done:.3g}")


def test_a_file_gets_a_line_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    show_messages()
    work(400)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10 and lines[0] == "train pearl: 40 of 400, loss 0.025" and "400 of 400" in lines[-1]
    work(3)
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == [
        f"train pearl: {done} of 3" for done in (1, 2, 3)
    ]


def terminal_of(monkeypatch: MonkeyPatch) -> io.StringIO:
    """Standard error as a terminal of a hundred columns."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr", screen)
    return screen


def reports(monkeypatch: MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[Report]:
    """What a stage with 400 steps, a message and a line of somebody else says to the process that started it."""
    monkeypatch.setenv(REPORT, "1")
    show_messages()
    work(400)
    LOG.info("the message")
    monkeypatch.delenv(REPORT)
    lines = capsys.readouterr().err.rstrip("\n").split("\n")
    return [*map(Report.read, lines), Report.read("chatter\n")]


def test_another_process_gets_hundred_steps_and_ten_lines(
    monkeypatch: MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    *steps, message, chatter = reports(monkeypatch, capsys)
    assert [(step.done, step.total) for step in steps] == [(4 * part, 400) for part in range(1, 101)]
    lines = [step.text for step in steps if step.text]
    assert len(lines) == 10 and lines[0] == "train pearl: 40 of 400, loss 0.025" and steps[0].note == "loss 0.25"
    assert (message, chatter) == (Report("the message", safe=True), Report("chatter"))
    with stage_bars() as bars, bars("train", None) as listen:  # no terminal
        for report in [*steps, message, chatter]:
            listen(report)
    assert capsys.readouterr().err.splitlines() == [*lines, "the message", "chatter"]


def test_a_terminal_gets_a_bar_for_each_stage(monkeypatch: MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    said = reports(monkeypatch, capsys)
    terminal = terminal_of(monkeypatch)
    show_messages()
    with stage_bars() as bars:
        with bars("plan", 3_600.0) as listen:  # as long as the last run
            listen(Report("[ 4/14] plan: of the noise", safe=True))
        with bars("train", None) as listen:
            for report in said:
                listen(report)
        with bars("sample", None):
            pass
    text = terminal.getvalue()
    assert "sample" not in text.rpartition("train")[2]  # it is up to date
    assert "plan" in text and "1:00:00 left" in text and "━" in text and "train" in text
    assert "the message" in text and "chatter" in text and "40 of 400" not in text and "[ 4/14]" not in text


@pytest.mark.parametrize("level", ["NOTSET", "ERROR"])
def test_a_library_user_sees_nothing_unasked_and_may_silence_it(monkeypatch: MonkeyPatch, level: str) -> None:
    terminal = terminal_of(monkeypatch)
    if level == "NOTSET":
        LOG.handlers = []
    else:
        show_messages()
    logging.getLogger("likeness").setLevel(level)
    work(20)
    assert terminal.getvalue() == ""


ROWS = [("[red]scores[/red] of " + "a long name " * 8, "0.5"), ("f1", "12.25")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: MonkeyPatch, stream: io.StringIO) -> list[str]:
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout", stream)
    say(f"  {'words ' * 20}end\n{table(('score', 'value'), ROWS)}")
    return stream.getvalue().splitlines()


def test_a_terminal_gets_lines_that_fit(monkeypatch: MonkeyPatch) -> None:
    lines = [re.sub("\x1b.*?m", "", line) for line in shown(monkeypatch, Terminal())]
    assert max(map(len, lines)) <= 80 and len(lines) > 6
    assert lines[1].startswith("    words") and any("─" in line for line in lines)


def test_a_pipe_gets_one_line_a_row_without_colors(monkeypatch: MonkeyPatch) -> None:
    lines = shown(monkeypatch, io.StringIO())
    assert len(lines) == 4 and lines[0].endswith("end") and not {"\x1b", "─"} & set("".join(lines))
    assert lines[2].split("  ")[0] == ROWS[0][0].strip() and lines[3].split() == ["f1", "12.25"]
    assert len(lines[1]) == len(lines[2]) == len(lines[3])  # numbers end at the right


def test_no_sign_moves_the_cursor_or_turns_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    say("one\x1b[2J\n\ttwo\u202ethree\x9b")
    assert capsys.readouterr().out == "one\\x1b[2J\n\ttwo\\u202ethree\\x9b\n"


def test_every_space_is_a_plain_one() -> None:
    every_space = [sign for sign in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(sign) == "Zs"]
    forms = {space: normal_text(f"{space}São{space}Paulo{space}") for space in every_space}
    assert len(forms) > 1 and forms == dict.fromkeys(every_space, "São Paulo")


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        *(("gro\u0308ße", "größe"), ("o\u200b\u0308", "ö"), ("\ufeffage", "age"), ("north\u00adeast", "northeast")),
        *(("a\u2060b\u200ec", "abc"), ("می\u200cخواهم", "می\u200cخواهم"), ("क\u094d\u200dष", "क\u094d\u200dष")),
        *(("\u212b", "\u00c5"), (" plain\t", "plain"), ("ﬁ", "ﬁ")),
    ],
)
def test_normal_form(text: str, normal: str) -> None:
    assert normal_text(text) == normal == normal_text(normal)


def test_a_normal_form_is_its_own_for_every_sign() -> None:
    for code in range(0x20000):
        text = f"a{chr(code)}b"
        assert normal_text(normal_text(text)) == normal_text(text)


def test_one_letter_i() -> None:
    assert fold_case("HAYIR") == fold_case("hayır") and fold_case("İYİ") == fold_case("iyi")


def test_a_mistyped_word_gets_the_right_one() -> None:
    known = ("epsilon", "delta", "missing_values", "lower")
    assert did_you_mean("epsilonn", known) == " Did you mean epsilon?"
    assert did_you_mean("Missing-Values", known) == " Did you mean missing_values?"
    assert did_you_mean("colour", known) == ""


def test_signs_that_others_look_like_are_named() -> None:
    assert code_points("age") == "" and code_points("größe") == " (ö U+00F6, ß U+00DF)"
