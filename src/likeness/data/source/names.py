"""Names that a table of the source must have."""

from collections import Counter
from collections.abc import Iterable, Sequence

from likeness.core.errors import DataError
from likeness.core.text import code_points

IN_FILE = "The first row must be a header with the columns that the schema and ingest.split name"


def check_names(present: Sequence[str], wanted: Iterable[str], where: str, rule: str) -> None:
    """Refuse a table that lacks wanted columns, or has two of one name. One error lists all of them.

    Without a header, the first line of a file is a row. So other names are counted, and not shown.

    Args:
        present: names of the table's columns.
        wanted: names that it must have, each once.
        where: name of the table in messages.
        rule: a sentence that says which columns the table must have; an end without a point.

    Raises:
        DataError: a wanted column is missing, or occurs twice.
    """
    wanted, counts = dict.fromkeys(wanted), Counter(present)
    missing = [name for name in wanted if not counts[name]]
    twice = [name for name in wanted if counts[name] > 1]
    faults = []
    if missing:
        named = ", ".join(f"{name}{code_points(name)}" for name in wanted)
        faults.append(f"{_columns(missing)} {'are' if missing[1:] else 'is'} missing. {rule}: {named}.")
        if others := sum(name not in wanted for name in present):
            faults.append(f"the schema does not name {others} of the table's columns.")
    if twice:
        faults.append(f"{_columns(twice)} {'occur' if twice[1:] else 'occurs'} twice. Give each column its own name.")
    if faults:
        raise DataError(f"{where}: {' Also: '.join(faults)}")


def _columns(names: Sequence[str]) -> str:
    return f"column{'s' if names[1:] else ''} " + ", ".join(f"'{name}'" for name in names)
