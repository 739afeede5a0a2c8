"""A sheet of all columns, one row each, that a person fills in with a spreadsheet or an editor.

Its columns are: name, kind, possible values, missing. Values are written as in the interview. Nothing in a new sheet
comes from the rows but the guesses of the kinds.
"""

import csv
import io
from collections.abc import Mapping
from typing import Any

from likeness.core.errors import SchemaError
from likeness.data.schema.column_keys import DROP, column_from
from likeness.data.schema.kinds import KINDS, KINDS_BY_NAME
from likeness.onboarding.answers import pieces, read_answer

_HEADER = ("name", "kind", "possible values", "missing: no, yes, or the words for it")
_NEVER, _EMPTY = ("", "no"), "yes"


def new_sheet(kinds: Mapping[str, str]) -> str:
    """A sheet without answers, as CSV.

    Args:
        kinds: guessed kind by column.
    """
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(_HEADER)
    writer.writerows((name, kind, "", "") for name, kind in kinds.items())
    return lines.getvalue()


def read_sheet(text: str, kinds: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """What a filled-in sheet says.

    Args:
        text: CSV with commas, semicolons or tabs, as spreadsheets save it.
        kinds: guessed kind by column.

    Returns:
        The mapping of each column with an answer, and the kind of each column without one.

    Raises:
        SchemaError: all faults of the sheet, one a line.
    """
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    answers: dict[str, Any] = {}
    still_open, faults = {}, []
    for number, row in enumerate(csv.reader(io.StringIO(text), delimiter=separator), start=1):
        name, kind, values, missing = (*(cell.strip() for cell in row[:4]), "", "", "", "")[:4]
        if number == 1 or not name:
            continue
        try:
            if name not in kinds or name in answers or name in still_open:
                raise SchemaError(f"'{name}' is not a column of the table, or stands twice. Remove the row.")
            if kind not in (*KINDS, DROP):
                raise SchemaError(f"column '{name}' has kind '{kind}'. Kinds: {', '.join(KINDS)}, drop.")
            if values or (kind != DROP and KINDS_BY_NAME[kind].default_categories):
                answers[name] = _spec(name, kind, values, missing)
            else:
                still_open[name] = kind
        except SchemaError as error:
            faults += [f"row {number}: {fault}" for _, fault in error.faults or [("", str(error))]]
    if faults:
        raise SchemaError("\n".join(faults))
    return answers, still_open


def _spec(name: str, kind: str, values: str, missing: str) -> dict[str, Any]:
    """One row as the column's mapping.

    Raises:
        SchemaError: with every fault of the row.
    """
    try:
        spec = read_answer(values, kind).spec()
    except SchemaError as error:
        raise SchemaError(f"column '{name}': {error}") from None
    if missing.casefold() not in _NEVER and spec["kind"] != DROP:
        codes = {} if missing.casefold() == _EMPTY else {"missing_values": pieces(missing)}
        spec |= {"nullable": True, **codes}
    column_from(name, spec)
    return spec
