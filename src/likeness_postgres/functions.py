"""The SQL of PostgreSQL, with functions ``L_...`` that stand for longer expressions.

sqlglot parses a text, puts the expressions in, and writes the text in lines that a reviewer can read. It needs no
other package and no connection.

=====================================  =============================================================================
``L_TEXT(x)``                          the normal form of a text (:func:`likeness.core.text.normal_text`)
``L_PLAIN(x)``                         a decimal as text, without zeros at the end of its fraction
``L_DECIMAL(x)``, ``L_PARSE(t)``       the float64 nearest to a decimal, to a text; NULL where a text is no number
``L_SINGLE(x)``                        the float64 of a float32 (:func:`likeness.data.source.python_cells.text_of`)
``L_FLOAT('0.1')``, ``L_NAN(v)``       a float64 by its text; whether one is not a number
``L_NEAR(v)``                          a nearest whole number
``L_EVEN(v)``                          the nearest whole number, of two the even one
``L_WHOLE(v)``                         the whole part of a number
``L_DIV(n, n)``                        the whole part of a quotient of whole numbers from 0 on
``L_EXACT(v)``                         the text of a float64 below 1e16 in a row (``Numeric.exact_texts``)
``L_LARGE(v)``                         the same of any float64
``L_ODD(t)``                           whether a normal text can be no category that is released
``L_BYTES(t)``                         the number of bytes of a text
``L_FOLD(t)``                          a text in lower case, where ASCII has it (:func:`likeness.core.text.fold_case`)
``L_DAYS(x)``, ``L_SECONDS(x)``        the number of a date, of a timestamp
``L_CLOCK(x)``                         the number of a time of day
``L_DAYS_OF(t)``                       the number of a text that is a date, or midnight of one; NULL where it is none
``L_DAY(n)``, ``L_MOMENT(n)``,         the text of a number of days, of seconds, of seconds of a day
``L_TIME(n)``
``L_ORDER(t)``                         hexadecimal digits that are compared as they are, whatever the language
``L_SHA(t)``, ``L_HEX(t)``             the 64 hexadecimal digits of SHA-256; the number of eight of them
``L_PERSON(t)``                        the name of a person; NULL where the text names nobody
``L_START(t, t, n)``, ``L_MIX_30(n)``  the sum of the first 64 bits of two hashes and a copy; steps that mix its bits
=====================================  =============================================================================
"""

import re
from functools import reduce

import sqlglot
from sqlglot import exp

from likeness.core.text import HARMFUL
from likeness.data.source.cells import MOST_LETTERS
from likeness.data.source.row_digests import MIXING

_SPACES = r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
_UNSEEN = r"[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\ufeff\u202a-\u202e\u2060-\u206f]"
_BLANKS = r"[\u0009-\u000d\u001c-\u0020\u0085\u2028\u2029]+"
_HARMFUL = re.sub("[^-]", lambda sign: rf"\U{ord(sign[0]):08x}", re.sub("[\ud800-\udfff]-?", "", f"\t\n{HARMFUL}"))
_NUMBER = "^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$"
_DATE = "^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]00:00(:00([.,]0+)?)?)?$"

# The fewest digits that are read back, as a database prints them: without the sign; before the power, and the power.
_BODY = "LTRIM(CAST(@0 AS TEXT), '-')"
_MANTISSA, _POWER = f"SPLIT_PART({_BODY}, 'e', 1)", f"SPLIT_PART({_BODY}, 'e', 2)"
_DIGITS = f"LTRIM(REPLACE({_MANTISSA}, '.', ''), '0')"
_SHIFT = f"LENGTH({_DIGITS}) - LENGTH(RTRIM({_DIGITS}, '0')) - LENGTH(SPLIT_PART({_MANTISSA}, '.', 2))"
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FOLDS = {"ß": "ss", "ẞ": "ss", "ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
"""Letters that folding makes two of ASCII. A test compares them with all of Unicode."""
_TEXTS = {
    "L_FOLD": reduce(
        lambda text, pair: text.replace("@0", f"REPLACE(@0, '{pair[0]}', '{pair[1]}')"),
        [("i\u0307", "i"), *_FOLDS.items()],  # the last is done first
        f"TRANSLATE(@0, '{_CAPITALS}İıſ', '{_CAPITALS.lower()}iis')",
    ),
    "L_EXACT": "CASE WHEN @0 = 0 THEN '0e0' ELSE CASE WHEN @0 < 0 THEN '-' ELSE '' END || "
    f"RTRIM({_DIGITS}, '0') || 'e' || CAST(CAST('0' || LTRIM({_POWER}, '+-') AS INTEGER)"
    f" * CASE WHEN {_POWER} LIKE '-%' THEN -1 ELSE 1 END + {_SHIFT} AS TEXT) END",
    "L_PLAIN": "CASE WHEN CAST(@0 AS TEXT) LIKE '%.%' THEN RTRIM(RTRIM(CAST(@0 AS TEXT), '0'), '.') "
    "ELSE CAST(@0 AS TEXT) END",
}


def _normal_form() -> str:
    """The normal form by regular expressions: spaces, signs without a width, NFC, and no blanks around it."""
    steps = (("@0", _UNSEEN, ""), ("", _SPACES, " "), ("NORMALIZE(@0, NFC)", f"^{_BLANKS}|{_BLANKS}$", ""))
    text = "@0"
    for before, pattern, plain in steps:
        text = before.replace("@0", text) if before else text
        text = f"REGEXP_REPLACE({text}, '{pattern}', '{plain}', 'g')"
    return text


DAYS, SECONDS = (-719_162, 2_932_896), 86_400
"""0001-01-01 and 9999-12-31; in a day."""
_DECIMALS = "^[-+]?([0-9]*[.,][0-9]+|[0-9]+([.,][0-9]*)?[eE][-+][0-9]+)$"
_END = 2**64
_HALF = "CAST(CAST('x' || @0 AS BIT(32)) AS BIGINT)"


def _person_name() -> str:
    """Name a person as :func:`likeness.data.source.contribution_bounding.name_of`, from a normal text; NULL: nobody."""
    whole, decimals = (f"@0 ~ '{pattern}'" for pattern in ("^[-+]?[0-9]{1,15}[.,]0{0,2}$", _DECIMALS))
    plain = "REGEXP_REPLACE(@0, '[.,]0*$', '')"
    return f"CASE WHEN @0 = '' THEN NULL WHEN {whole} THEN {plain} WHEN {decimals} THEN NULL ELSE @0 END"


def _start_number() -> str:
    """The sum of the first 64 bits of two hashes, and a number."""
    terms = [
        f"CAST({_HALF.replace('@0', f'SUBSTRING({name}, 1, 8)')} AS NUMERIC) * 4294967296 + "
        f"CAST({_HALF.replace('@0', f'SUBSTRING({name}, 9, 8)')} AS NUMERIC)"
        for name in ("@0", "@1")
    ]
    return f"(({' + '.join(terms)} + CAST(@2 AS NUMERIC)) % CAST('{_END}' AS NUMERIC))"


def _mix_step(shift: int, factor: int) -> str:
    """A step of :func:`likeness.data.source.row_digests.mix_bits`. Only signed numbers of PostgreSQL have bits."""
    signed = f"CAST(CASE WHEN @0 >= {2**63} THEN @0 - {_END} ELSE @0 END AS BIGINT)"
    bits = f"({signed} # CAST(DIV(@0, CAST({2**shift} AS NUMERIC)) AS BIGINT))"
    return f"(CAST({bits} AS NUMERIC) + CASE WHEN {bits} < 0 THEN {_END} ELSE 0 END) * {factor} % {_END}"


def _shortest_digits() -> dict[str, str]:
    """The words that need the fewest digits of a float which are read back.

    PostgreSQL prints more digits where the shortest decimal lies midway between two floats. Such a decimal is
    c · 10^k with a whole c of few digits, and 5^k divides a whole number of one bit more than a float has. So k is at
    most 10 for a float32, 23 for a float64.
    """

    def digits(kind: str, start: str, end: str, *counts: int) -> str:
        *texts, last = (f"LTRIM(TO_CHAR(@0, '9.{'9' * (count - 1)}EEEE'))" for count in counts)
        cases = " ".join(f"WHEN CAST({text} AS {kind}) = @0 THEN {text}" for text in texts)
        plain = f"WHEN ABS(@0) < {start} OR ABS(@0) >= {end} THEN CAST(@0 AS TEXT)"
        return f"CASE {plain} {cases} ELSE {last} END"  # the last is always read back

    large, single = digits("DOUBLE PRECISION", "1e16", "1e39", 15, 16, 17), digits("REAL", "9e15", "1e19", 6, 7, 8, 9)
    whole = f"ABS(@0) < {2**53} AND @0 = ROUND(@0)"  # such a number is itself, whatever its digits
    return {
        "L_LARGE": _TEXTS["L_EXACT"].replace("CAST(@0 AS TEXT)", large),
        "L_SINGLE": f"CASE WHEN {whole} THEN CAST(@0 AS DOUBLE PRECISION) ELSE CAST({single} AS DOUBLE PRECISION) END",
    }


WORDS = {
    **_TEXTS,
    **_shortest_digits(),
    "L_TEXT": _normal_form(),
    "L_DECIMAL": "CAST(@0 AS DOUBLE PRECISION)",
    "L_PARSE": f"CASE WHEN @0 ~ '{_NUMBER}' THEN CAST(@0 AS DOUBLE PRECISION) END",
    "L_FLOAT": "CAST(@0 AS DOUBLE PRECISION)",
    "L_NAN": "(@0 = CAST('NaN' AS DOUBLE PRECISION))",
    "L_ODD": f"(LENGTH(@0) > {MOST_LETTERS} OR @0 ~ '[{_HARMFUL}]')".replace("U00000000", "U00000001"),
    "L_BYTES": "OCTET_LENGTH(@0)",
    "L_NEAR": "ROUND(@0)",
    "L_EVEN": "ROUND(@0)",
    "L_WHOLE": "TRUNC(CAST(@0 AS DOUBLE PRECISION))",
    "L_DIV": "((@0) / (@1))",
    "L_DAYS": "(@0 - DATE '1970-01-01')",
    "L_SECONDS": "FLOOR(EXTRACT(EPOCH FROM @0))",
    "L_CLOCK": "FLOOR(EXTRACT(EPOCH FROM @0))",
    "L_DAYS_OF": f"CASE WHEN @0 ~ '{_DATE}' THEN CAST(SUBSTRING(@0 FROM 1 FOR 10) AS DATE) - DATE '1970-01-01' END",
    "L_DAY": "TO_CHAR(CAST(DATE '1970-01-01' + CAST(@0 AS INTEGER) AS TIMESTAMP), 'YYYY-MM-DD')",
    "L_MOMENT": "TO_CHAR(TO_TIMESTAMP(CAST(@0 AS DOUBLE PRECISION)) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')",
    "L_TIME": "TO_CHAR(TO_TIMESTAMP(CAST(@0 AS DOUBLE PRECISION)) AT TIME ZONE 'UTC', 'HH24:MI:SS')",
    "L_SHA": "ENCODE(SHA256(CONVERT_TO(@0, 'UTF8')), 'hex')",
    "L_ORDER": '(@0 COLLATE "C")',
    "L_HEX": _HALF,
    "L_PERSON": _person_name(),
    "L_START": _start_number(),
    **{f"L_MIX_{shift}": _mix_step(shift, factor) for shift, factor in MIXING},
}
"""What stands for each function ``L_...``, with ``@0`` for its argument."""
FORMS = {
    **dict.fromkeys(("text", "varchar", "name", "uuid"), "text"),
    **dict.fromkeys(("int2", "int4", "int8"), "whole"),
    "numeric": "decimal",
    "float4": "single",
    "float8": "real",
    "bool": "truth",
    "date": "date",
    "timestamp": "moment",
    "timestamptz": "zoned",
    "time": "clock",
}
"""The forms of cells by the type of their column: see :mod:`likeness_postgres.columns`. Others are not read."""


def expand_functions(sql: str) -> str:
    """The SQL of PostgreSQL for a text with functions ``L_...``."""

    def expand(node: exp.Expression) -> exp.Expression:
        if not (isinstance(node, exp.Anonymous) and node.name in WORDS):
            return node
        text = WORDS[node.name]
        for index, argument in enumerate(node.expressions):
            text = text.replace(f"@{index}", argument.transform(expand, copy=False).sql("postgres", copy=False))
        return exp.Var(this=text)

    tree = sqlglot.parse_one(sql, read="postgres").transform(expand, copy=False)
    return str(tree.sql("postgres", pretty=True, copy=False))
