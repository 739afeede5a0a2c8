"""A column of the schema as SQL: from a raw cell to its typed value, what is wrong with it, and its text in a row.

The steps are those of :func:`likeness.data.source.cells.typed_column`, and a test compares both on hostile cells. In
the names of a statement, k is the place of the column in the schema:

- ``r_k``: the raw cell, as a text in its normal form, as a float64, or as the number of a date or time
- ``u_k``: its number, or the place of its category; NULL where it is missing or means none; of private categories its
  text
- ``v_k``: the typed value: within the bounds; NULL where it is missing
- ``f_k``: what is wrong with the cell, a place in :data:`FAULTS`; 0: nothing

The *form* of a cell follows from the type that the database declares for its column, which is public: ``text``,
``whole``, ``decimal``, ``single``, ``real``, ``truth``, ``date``, ``moment``, ``zoned``, ``clock``.
"""

from collections.abc import Iterable

import numpy as np
from sqlglot import exp

from likeness.core.text import fold_case
from likeness.data.schema.column import Column
from likeness.data.schema.dtypes import FALSE_WORDS, NUMBERS, TRUE_WORDS
from likeness.data.schema.kinds import day_of
from likeness.data.schema.kinds.categories import whole_text
from likeness_postgres.functions import DAYS, SECONDS

FAULTS = ("", "not whole", "unreadable", "missing")
"""What may be wrong with a cell; of several faults the last counts. See :func:`likeness.data.source.cells.refusal`."""
_UNKNOWN = "\0"  # the text of no category


def quoted_name(identifier: str) -> str:
    """A name in quotes."""
    return str(exp.to_identifier(identifier, quoted=True).sql("postgres"))


def text_literal(text: str) -> str:
    """A text in quotes."""
    return str(exp.Literal.string(text).sql("postgres"))


def float_literal(value: float) -> str:
    """A float64, exact."""
    return f"L_FLOAT('{value!r}')"


def sql_list(values: Iterable[str]) -> str:
    """A list for ``IN``."""
    return f"({', '.join(values)})"


def reason_against(column: Column, form: str | None) -> str:
    """Give the reason why a database cannot type a column of this form exactly; empty where it can."""
    cast = "CAST it in ingest.query"
    if column.format is not None:
        return "it has a format, which SQL does not read as Python does"
    if column.is_categorical:
        if form not in ("text", "whole", "decimal", "truth"):
            return f"its type has no text that is the same in each database. {cast}"
        texts = [*column.categories, *column.missing_values]
        return "" if column.kind == "categorical" or "".join(texts).isascii() else "its two words are not ASCII"
    read = {
        "numeric": ("text", "whole", "decimal", "single", "real"),
        "date": ("text", "date", "moment"),
        "datetime": ("date", "moment", "zoned"),
        "time": ("clock",),
    }
    read["integer"] = read["numeric"]
    if column.kind not in read:
        return f"its kind {column.kind} has no SQL"
    if form not in read[column.kind]:
        return f"its type cannot be read as {column.kind} there. {cast}"
    if any(word.lstrip("+-") in ("inf", "infinity") for word in column.missing_values):
        return "an infinite number means missing"
    return ""


def raw_cell(column: Column, form: str, source: str) -> str:
    """``r_k``.

    Args:
        column: of the schema.
        form: of its cells.
        source: the quoted name of the column in the source.
    """
    if form == "text":
        return person_text(form, source)
    if column.is_categorical:
        texts = {  # as :func:`likeness.data.source.python_cells.text_of`
            "whole": f"CAST({source} AS TEXT)",
            "decimal": f"CASE WHEN CAST({source} AS TEXT) <> 'NaN' THEN L_PLAIN({source}) END",
            "truth": f"CASE WHEN {source} THEN 'True' WHEN NOT {source} THEN 'False' END",
        }
        return texts[form]
    numbers = {
        "whole": f"CAST({source} AS DOUBLE PRECISION)",
        "decimal": f"L_DECIMAL({source})",
        "single": f"L_SINGLE({source})",
        "real": source,
        "date": f"L_DAYS({source})",
        "moment": f"L_SECONDS({source})",
        "zoned": f"L_SECONDS({source})",
        "clock": f"L_CLOCK({source})",
    }
    if column.kind == "date" and form == "moment":  # another time of day than midnight is no date
        day = f"CAST({source} AS DATE)"
        other = f"CAST({day} AS TIMESTAMP) <> {source}"
        return f"CASE WHEN {other} THEN {DAYS[1] + 1} ELSE L_DAYS({day}) END"
    if column.kind == "datetime" and form == "date":
        return f"CAST({numbers[form]} AS BIGINT) * {SECONDS}"
    return numbers[form]


def person_text(form: str, source: str) -> str:
    """The text of a cell that names a person.

    Args:
        form: of the cells: ``text`` or ``whole``.
        source: the quoted name of the column in the source.
    """
    return f"L_TEXT(L_ORDER(CAST({source} AS TEXT)))" if form == "text" else f"CAST({source} AS TEXT)"


def cell_value(column: Column, form: str, cell: str) -> str:
    """``u_k``, from the name of ``r_k``."""
    if column.open:
        return f"CASE WHEN L_ODD({cell}) THEN {text_literal(str(column.other))} ELSE {cell} END"
    if column.is_categorical:
        return _category_index(column, cell)
    number = cell
    if form == "text":
        number = f"L_DAYS_OF({cell})" if column.kind == "date" else f"L_PARSE({cell})"
    if column.type.numeric_source:
        return f"{number} + 0.0"  # one zero, whatever its sign
    first, last = DAYS if column.kind == "date" else (day * SECONDS for day in (DAYS[0], DAYS[1] + 1))
    if column.kind == "time":
        first, last = 0, SECONDS - 1
    elif column.kind == "datetime":
        last -= 1
    return f"CASE WHEN {number} BETWEEN {first} AND {last} THEN CAST({number} AS DOUBLE PRECISION) END"


def _category_index(column: Column, cell: str) -> str:
    """The place of a category by the text of a cell: every text that means one is listed."""
    rest = float(column.type.read([_UNKNOWN], column)[0])
    otherwise = "CAST(NULL AS INTEGER)" if np.isnan(rest) else f"{rest:.0f}"
    if column.kind == "boolean":
        pairs = [(column.categories[:1], FALSE_WORDS, "0.0"), (column.categories[1:], TRUE_WORDS, "1.0")]
        cases = " ".join(f"WHEN {cell} = {text_literal(names[0])} THEN {at}" for at, (names, _, _) in enumerate(pairs))
        usual = " ".join(
            f"WHEN {cell} = '{decimal}' OR L_FOLD({cell}) IN "
            f"{sql_list(map(text_literal, dict.fromkeys([*usual, *map(fold_case, names)])))} THEN {at}"
            for at, (names, usual, decimal) in enumerate(pairs)
        )
        assert {*NUMBERS} == {"0.0", "1.0"}
        return f"CASE {cases} {usual} ELSE {otherwise} END"
    texts = list(column.categories)
    days = dict.fromkeys(day for day in map(day_of, texts) if day)
    texts += [f"{day}{end}" for day in days for end in ("", " 00:00:00", " 00:00:00Z")]
    indices = {text: column.categories.index(column.type.spelling(text, column)) for text in texts}
    cases = " ".join(f"WHEN {text_literal(text)} THEN {index}" for text, index in indices.items())
    return f"CASE {cell} {cases} ELSE {otherwise} END"


def released_category_index(column: Column, value: str) -> str:
    """The place of a released category, or of the rest, from the name of the text; NULL where it is missing."""
    cases = " ".join(f"WHEN {text_literal(text)} THEN {index}" for index, text in enumerate(column.categories))
    rest = column.categories.index(str(column.other))
    return f"CASE WHEN {value} IS NOT NULL THEN CASE {value} {cases} ELSE {rest} END END"


def is_missing(column: Column, form: str, cell: str, value: str) -> str:
    """The condition that a cell is missing, from the names of ``r_k`` and ``u_k``."""
    conditions = [f"{cell} IS NULL"]
    if column.is_categorical or form == "text":
        conditions.append(f"{cell} IN {sql_list(map(text_literal, ['', *column.missing_values]))}")
    if column.is_categorical:
        alike = [_equals_code(code, cell) for code in sorted({whole_text(word) for word in column.missing_values})]
        if alike:
            others = f" AND {cell} NOT IN {sql_list(map(text_literal, column.categories))}" if column.categories else ""
            conditions.append(f"(({' OR '.join(alike)}){others})")
        return " OR ".join(conditions)
    if form in ("decimal", "single", "real"):
        conditions.append(f"L_NAN({value})")
    if numbers := column.type.missing_numbers(column):
        conditions.append(f"{value} IN {sql_list(map(float_literal, numbers))}")
    return " OR ".join(conditions)


def _equals_code(code: str, cell: str) -> str:
    """The condition that a text is a code, also with decimals that are zeros, or with midnight."""
    ends = (" 00:00:00", " 00:00:00Z") if day_of(code) else ()
    texts = sql_list(map(text_literal, [code, *(f"{code}{end}" for end in ends)]))
    whole = code.lstrip("+-") if code[:1] in "+-" else code
    zeros = f" OR (RTRIM({cell}, '0') = {text_literal(f'{code}.')} AND {cell} <> {text_literal(f'{code}.')})"
    return f"{cell} IN {texts}" + (
        zeros if whole.isdecimal() and whole.isascii() and len(code) - len(whole) < 2 else ""
    )


def cell_fault(column: Column, missing: str, value: str) -> str:
    """``f_k``, from the condition that the cell is missing and the name of ``u_k``."""
    unreadable = f"{value} IS NULL"
    if not column.is_categorical:
        unreadable += f" OR ABS({value}) > {float_literal(np.finfo(np.float64).max.item())}"
    whole = f" WHEN {value} <> L_NEAR({value}) THEN 1" if column.is_integral else ""
    return f"CASE WHEN {missing} THEN {0 if column.nullable else 3} WHEN {unreadable} THEN 2{whole} ELSE 0 END"


def typed_value(column: Column, missing: str, value: str) -> str:
    """``v_k``, from the condition that the cell is missing and the name of ``u_k``."""
    if column.is_categorical:
        return f"CASE WHEN NOT ({missing}) THEN {value} END"
    within = clip(column, value)
    within = f"CAST({within} AS BIGINT)" if column.is_integral else within
    return f"CASE WHEN NOT ({missing}) THEN {within} END"


def clip(column: Column, value: str) -> str:
    """A number within the bounds; NULL of NULL."""
    lower, upper = map(float_literal, column.bounds)
    return f"CASE WHEN {value} < {lower} THEN {lower} WHEN {value} > {upper} THEN {upper} ELSE {value} END"


def row_text(column: Column, value: str) -> str:
    """The cell of a row's text (:mod:`likeness.data.source.row_texts`), from the name of ``v_k``."""
    if column.open:
        return f"COALESCE(CAST(L_BYTES({value}) AS TEXT) || ':' || {value}, '-')"
    if column.is_categorical:
        texts = [f"{len(text.encode())}:{text}" for text in column.categories]
        cases = " ".join(f"WHEN {index} THEN {text_literal(text)}" for index, text in enumerate(texts))
        return f"CASE {value} {cases} ELSE '-' END"
    exact = "L_EXACT" if max(map(abs, column.bounds)) < 1e16 else "L_LARGE"
    function = {"date": "L_DAY", "datetime": "L_MOMENT", "time": "L_TIME", "numeric": exact}.get(column.kind)
    text = f"CAST({value} AS TEXT)" if function is None else f"{function}({value})"
    return f"COALESCE(CAST(LENGTH({text}) AS TEXT) || ':' || {text}, '-')"
