"""Tables and text in a terminal of eighty columns, and plain lines in a pipe."""

import io
import re

import pytest

from likeness.cli.console import say, table

ROWS = [("[red]scores[/red] of " + "a long name " * 8, "0.5"), ("f1", "12.25")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> list[str]:
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout", stream)
    say(f"  {'words ' * 20}end\n{table(('score', 'value'), ROWS)}")
    return stream.getvalue().splitlines()


def test_a_terminal_gets_lines_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [re.sub("\x1b.*?m", "", line) for line in shown(monkeypatch, Terminal())]
    assert max(map(len, lines)) <= 80 and len(lines) > 6
    assert lines[1].startswith("    words") and any("─" in line for line in lines)


def test_a_pipe_gets_one_line_a_row_without_colors(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, io.StringIO())
    assert len(lines) == 4 and lines[0].endswith("end") and not {"\x1b", "─"} & set("".join(lines))
    assert lines[2].split("  ")[0] == ROWS[0][0].strip() and lines[3].split() == ["f1", "12.25"]
    assert len(lines[1]) == len(lines[2]) == len(lines[3])  # numbers end at the right


def test_no_sign_moves_the_cursor_or_turns_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    say("one\x1b[2J\n\ttwo\u202ethree\x9b")
    assert capsys.readouterr().out == "one\\x1b[2J\n\ttwo\\u202ethree\\x9b\n"
