"""A sheet of all open columns, one row each, that a person fills in with a spreadsheet or an editor.

Its columns are: name, kind, possible values, missing. Values are written as in the terminal. Nothing in a new sheet
comes from the rows but the guesses of the kinds.
"""

import csv
import io

from likeness.core.errors import SchemaError
from likeness.data.schema.answers import read_answer
from likeness.data.schema.column_keys import DROP
from likeness.data.schema.draft import SchemaDraft
from likeness.data.schema.kinds import Boolean, pieces

_HEADER = ("name", "kind", "possible values", "missing: no, yes, or the words for it")


def new_sheet(draft: SchemaDraft) -> str:
    """A sheet without answers, as CSV."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(_HEADER)
    writer.writerows((name, draft[name].kind, "", "") for name in draft if not draft[name].settled)
    return lines.getvalue()


def read_sheet(text: str, draft: SchemaDraft) -> None:
    """Take the answers of a filled-in sheet into a draft, and the kind of each column without one.

    Raises:
        SchemaError: all faults of the sheet, one a line.
    """
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    left, faults = {name for name in draft if not draft[name].settled}, []
    for number, row in enumerate(csv.reader(io.StringIO(text), delimiter=separator), start=1):
        name, kind, values, missing = (*(cell.strip() for cell in row[:4]), "", "", "", "")[:4]
        if number == 1 or not name:
            continue
        try:
            if name not in left:
                raise SchemaError(f"'{name}' is not a column of the table, or stands twice. Remove the row.")
            left.remove(name)
            draft[name].guess(kind)
            if values or kind == Boolean.name:
                spec = read_answer(values, kind).spec
                if missing.casefold() not in ("", "no") and spec["kind"] != DROP:
                    codes = {} if missing.casefold() == "yes" else {"missing_values": pieces(missing)}
                    spec |= {"nullable": True, **codes}
                draft[name].settle(spec)
        except SchemaError as error:
            faults += [f"row {number}: {fault}" for _, fault in error.faults]
    if faults:
        raise SchemaError("\n".join(faults))
