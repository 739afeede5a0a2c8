"""The list of the papers' experiments: each has rows, a command or a reason, and names what exists."""

import pytest

from evidence.common import NAMES
from evidence.papers import CONTROLS, RESULTS, RUN
from evidence.papers_list import ENTRIES, PAPERS, Entry, listing


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.paper}, {entry.place}, {entry.what}"[:60])
def test_an_experiment_has_rows_a_command_or_a_reason(entry: Entry) -> None:
    assert set(entry.data.split()) <= set(NAMES)
    assert not entry.data or set(entry.methods.split(" | ")) <= {*RUN, *CONTROLS}
    line = entry.line(RESULTS.rows)
    assert "no row" not in line or entry.command or entry.reason
    assert "not run" not in line or (" hours " in line and "about 0 hours" not in line)


def test_each_paper_s_experiments_are_listed() -> None:
    assert {entry.paper for entry in ENTRIES} == {"DP-MERF", "DP-HP", "DP-HP preprint", "PEARL", "DP-NTK", "all"}
    assert len(listing(RESULTS.rows).splitlines()) == len(ENTRIES) + 1  # and the command of a row


def test_numbers_of_papers_name_their_table_and_a_method_that_runs() -> None:
    for (data, method, *_), text in PAPERS.items():
        assert data in NAMES and method in {*RUN, *CONTROLS} and ("table" in text or "figure" in text)
