"""One SQL for all databases: that of PostgreSQL, with functions ``L_...`` that each database has in its own words.

sqlglot parses the text, takes in the words of the database, and writes its dialect. A trial chose it and not ibis: it
needs no other package and no connection, and shows plain SQL. ibis wants a backend for each database, and none calls
functions of our own process in SQLite.

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
``L_FOLD(t)``                          a text in lower case, where ASCII has it (:func:`likeness.core.text.folded`)
``L_DAYS(x)``, ``L_SECONDS(x)``        the number of a date, of a timestamp
``L_CLOCK(x)``                         the number of a time of day
``L_DAYS_OF(t)``                       the number of a text that is a date, or midnight of one; NULL where it is none
``L_SECONDS_OF(t)``, ``L_CLOCK_OF(t)``  the same of a time, in SQLite only
``L_DAY(n)``, ``L_MOMENT(n)``,         the text of a number of days, of seconds, of seconds of a day
``L_TIME(n)``
``L_ORDER(t)``                         hexadecimal digits that are compared as they are, whatever the language
``L_SHA(t)``, ``L_HEX(t)``             the 64 hexadecimal digits of SHA-256; the number of eight of them
``L_PERSON(t)``                        the name of a person; NULL where the text names nobody
``L_START(t, t, n)``, ``L_MIX_30(n)``  the sum of the first 64 bits of two hashes and a copy; steps that mix its bits
=====================================  =============================================================================
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from types import MappingProxyType
from typing import Any

import numpy as np
import sqlglot
from sqlglot import exp

from likeness.core.text import HARMFUL, fault_of, folded, normal_text
from likeness.data.libraries import pa
from likeness.data.schema.dtypes import NUMBER
from likeness.data.schema.kinds import KINDS
from likeness.data.source.cells import MOST_LETTERS
from likeness.data.source.contribution_bounding import name_of
from likeness.data.source.python_cells import text_of
from likeness.data.source.row_digests import MIXING, mixed

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


def _normal(form: str, replaced: Callable[[str], str] = str) -> str:
    """The normal form by regular expressions: spaces, signs without a width, NFC, and no blanks around it."""
    steps = (("@0", _UNSEEN, ""), ("", _SPACES, " "), (form, f"^{_BLANKS}|{_BLANKS}$", ""))
    text = "@0"
    for before, pattern, plain in steps:
        text = before.replace("@0", text) if before else text
        text = f"REGEXP_REPLACE({text}, '{replaced(pattern)}', '{plain}', 'g')"
    return text


def _of_re2(pattern: str) -> str:
    """A pattern with the signs of Unicode as DuckDB writes them."""
    return re.sub(r"\\(?:u(\w{4})|U(\w{8}))", r"\\x{\1\2}", pattern)


DAYS, SECONDS = (-719_162, 2_932_896), 86_400
"""0001-01-01 and 9999-12-31; in a day."""
LAST_SECOND = (DAYS[1] + 1) * SECONDS - 1
_DECIMALS = "^[-+]?([0-9]*[.,][0-9]+|[0-9]+([.,][0-9]*)?[eE][-+][0-9]+)$"
_END = 2**64


def _person(matches: str) -> str:
    """As :func:`likeness.data.source.contribution_bounding.name_of`, from a normal text; NULL where it names nobody."""
    whole, decimals = (matches.replace("@1", pattern) for pattern in ("^[-+]?[0-9]{1,15}[.,]0{0,2}$", _DECIMALS))
    plain = "REGEXP_REPLACE(@0, '[.,]0*$', '')"
    return f"CASE WHEN @0 = '' THEN NULL WHEN {whole} THEN {plain} WHEN {decimals} THEN NULL ELSE @0 END"


def _started(half: str, wide: str) -> str:
    """The sum of the first 64 bits of two hashes, and a number; from a half of 32 bits, and a type of 128 bits."""
    words = [
        f"CAST({half.replace('@0', f'SUBSTRING({name}, 1, 8)')} AS {wide}) * 4294967296 + "
        f"CAST({half.replace('@0', f'SUBSTRING({name}, 9, 8)')} AS {wide})"
        for name in ("@0", "@1")
    ]
    return f"(({' + '.join(words)} + CAST(@2 AS {wide})) % CAST('{_END}' AS {wide}))"


def _mixed(shift: int, factor: int) -> str:
    """A step of :func:`likeness.data.source.row_digests.mixed`. Only signed numbers of PostgreSQL have bits."""
    signed = f"CAST(CASE WHEN @0 >= {2**63} THEN @0 - {_END} ELSE @0 END AS BIGINT)"
    bits = f"({signed} # CAST(DIV(@0, CAST({2**shift} AS NUMERIC)) AS BIGINT))"
    return f"(CAST({bits} AS NUMERIC) + CASE WHEN {bits} < 0 THEN {_END} ELSE 0 END) * {factor} % {_END}"


def whole_or(text: str, kind: str) -> str:
    """The float64 of a float32: itself where it is a whole number below 2^53, else that of a text.

    Args:
        text: of the float32, with the fewest digits.
        kind: type of a float64.
    """
    whole = f"ABS(@0) < {2**53} AND @0 = ROUND(@0)"
    return f"CASE WHEN {whole} THEN CAST(@0 AS {kind}) ELSE CAST({text} AS {kind}) END"


def _fewest(kind: str, written: Callable[[int], str], least: str) -> dict[str, str]:
    """The words that need the fewest digits of a float which are read back.

    PostgreSQL and DuckDB print more digits where the shortest decimal lies midway between two floats. Such a decimal is
    c · 10^k with a whole c of few digits, and 5^k divides a whole number of one bit more than a float has. So k is at
    most 10 for a float32, 23 for a float64.

    DuckDB prints more digits of a float32 that lies midway between two decimals, too. Such a float is k / 2^j and has
    nine digits. So 5^j is below 10^9, and the float is at least 2^-12.

    Args:
        kind: type of a float64.
        written: the nearest number with so many digits after the first one.
        least: below it no digits of a float32 are too many, unless it is a whole number.
    """

    def digits(kind: str, start: str, end: str, *counts: int) -> str:
        *texts, last = (written(count - 1) for count in counts)  # the last is always read back
        cases = " ".join(f"WHEN CAST({text} AS {kind}) = @0 THEN {text}" for text in texts)
        return f"CASE WHEN ABS(@0) < {start} OR ABS(@0) >= {end} THEN CAST(@0 AS TEXT) {cases} ELSE {last} END"

    return {
        "L_LARGE": _TEXTS["L_EXACT"].replace("CAST(@0 AS TEXT)", digits(kind, "1e16", "1e39", 15, 16, 17)),
        "L_SINGLE": whole_or(digits("REAL", least, "1e19", 6, 7, 8, 9), kind),
    }


def _ended(text: str, first: int, last: int) -> str:
    """The number of a date or time of DuckDB, where an infinite one is the first or last: its driver gives that."""
    return f"CASE WHEN ISINF(@0) THEN CASE WHEN @0 < DATE '1970-01-01' THEN {first} ELSE {last} END ELSE {text} END"


_POSTGRES_HALF, _DUCKDB_HALF = "CAST(CAST('x' || @0 AS BIT(32)) AS BIGINT)", "CAST('0x' || @0 AS BIGINT)"
_POSTGRES = {
    **_TEXTS,
    **_fewest("DOUBLE PRECISION", lambda digits: f"LTRIM(TO_CHAR(@0, '9.{'9' * digits}EEEE'))", "9e15"),
    "L_TEXT": _normal("NORMALIZE(@0, NFC)"),
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
    "L_HEX": _POSTGRES_HALF,
    "L_PERSON": _person("@0 ~ '@1'"),
    "L_START": _started(_POSTGRES_HALF, "NUMERIC"),
    **{f"L_MIX_{shift}": _mixed(shift, factor) for shift, factor in MIXING},
}
_DUCKDB = {
    **_TEXTS,
    **_fewest("DOUBLE", lambda digits: f"PRINTF('%.{digits}e', @0)", "2e-4"),
    "L_TEXT": _normal("NFC_NORMALIZE(REPLACE(@0, CHR(0), CHR(1)))", _of_re2),
    "L_PLAIN": _TEXTS["L_PLAIN"].replace("CAST(@0 AS TEXT)", r"REGEXP_REPLACE(CAST(@0 AS TEXT), '^(-?)[.]', '\10.')"),
    "L_DECIMAL": "CAST(CAST(@0 AS TEXT) AS DOUBLE)",
    "L_PARSE": f"CASE WHEN REGEXP_MATCHES(@0, '{_NUMBER}') THEN CAST(LTRIM(@0, '+') AS DOUBLE) END",
    "L_FLOAT": "CAST(@0 AS DOUBLE)",
    "L_NAN": "ISNAN(@0)",
    "L_ODD": f"(LENGTH(@0) > {MOST_LETTERS} OR REGEXP_MATCHES(@0, '[{_of_re2(_HARMFUL)}]'))",
    "L_BYTES": "STRLEN(@0)",
    "L_NEAR": "ROUND(@0)",
    "L_EVEN": "CASE WHEN ABS(@0 - TRUNC(@0)) = 0.5 THEN 2 * ROUND(@0 / 2) ELSE ROUND(@0) END",
    "L_WHOLE": "TRUNC(CAST(@0 AS DOUBLE))",
    "L_DIV": "((@0) // (@1))",
    "L_DAYS": _ended("DATE_DIFF('day', DATE '1970-01-01', @0)", *DAYS),
    "L_SECONDS": _ended("DATE_DIFF('second', TIMESTAMP '1970-01-01', @0)", DAYS[0] * SECONDS, LAST_SECOND),
    "L_CLOCK": "DATE_DIFF('second', TIME '00:00:00', @0)",
    "L_DAYS_OF": f"CASE WHEN REGEXP_MATCHES(@0, '{_DATE}') THEN "
    "DATE_DIFF('day', DATE '1970-01-01', TRY_CAST(SUBSTRING(@0, 1, 10) AS DATE)) END",
    "L_DAY": "CAST(DATE '1970-01-01' + CAST(@0 AS INTEGER) AS TEXT)",
    "L_MOMENT": "STRFTIME(MAKE_TIMESTAMP(CAST(@0 AS BIGINT) * 1000000), '%Y-%m-%d %H:%M:%S')",
    "L_TIME": "STRFTIME(MAKE_TIMESTAMP(CAST(@0 AS BIGINT) * 1000000), '%H:%M:%S')",
    "L_SHA": "SHA256(@0)",
    "L_ORDER": '(@0 COLLATE "C")',
    "L_HEX": _DUCKDB_HALF,
    "L_PERSON": _person("REGEXP_MATCHES(@0, '@1')"),
    "L_START": _started(_DUCKDB_HALF, "UHUGEINT"),
    **{
        f"L_MIX_{shift}": f"XOR(@0, @0 >> {shift}) * CAST('{factor}' AS UHUGEINT) % CAST('{_END}' AS UHUGEINT)"
        for shift, factor in MIXING
    },
}


def _text(cell: Any) -> str | None:
    """The normal text of a cell of SQLite. Bytes without one stop the statement."""
    text = text_of(cell)
    return None if text is None else normal_text(text)


def _number_of(kind: str) -> Callable[[str | None], float | None]:
    return lambda text: None if text is None else KINDS[kind].number(text)


def _parsed(text: str | None) -> float | None:
    return float(text) if text is not None and NUMBER.fullmatch(text) else None


def _written(kind: str) -> Callable[[float | None], str | None]:
    return lambda number: None if number is None else KINDS[kind].text(number)


def _exact(number: float | None) -> str | None:
    return None if number is None else str(KINDS["numeric"].exact_texts(pa.array([number]))[0])


def _number(row: str, person: str | None, copy: int) -> str:
    """The mixed number of a row, with as many digits as any."""
    start = int(row[:16], 16) + int((person or "0")[:16], 16) + copy
    return f"{int(mixed(np.array([start % _END], np.uint64))[0]):020d}"


_IN_PROCESS: dict[str, Callable[..., Any]] = {
    "L_TEXT": _text,
    "L_PARSE": _parsed,
    "L_FLOAT": float,
    "L_EXACT": _exact,
    "L_LARGE": _exact,
    "L_ODD": lambda text: text is not None and fault_of(text, MOST_LETTERS) != "",
    "L_BYTES": lambda text: None if text is None else len(text.encode()),
    "L_EVEN": lambda number: None if number is None else float(np.rint(number)),
    "L_FOLD": lambda text: None if text is None else folded(text),
    "L_DAYS_OF": _number_of("date"),
    "L_SECONDS_OF": _number_of("datetime"),
    "L_CLOCK_OF": _number_of("time"),
    "L_DAY": _written("date"),
    "L_MOMENT": _written("datetime"),
    "L_TIME": _written("time"),
    "L_SHA": lambda text: None if text is None else hashlib.sha256(text.encode()).hexdigest(),
    "L_HEX": lambda text: None if text is None else int(text, 16),
    "L_PERSON": lambda cell: name_of(_text(cell)) or None,
    "L_START": _number,
}


def sqlite_functions() -> dict[str, Callable[..., Any]]:
    """What SQLite calls in this process. Most cells come again, so answers are kept as long as the functions are."""
    return {name.lower(): lru_cache(1 << 16, typed=True)(function) for name, function in _IN_PROCESS.items()}


@dataclass(frozen=True)
class Dialect:
    """The words of one database.

    Attributes:
        name: as sqlglot knows it.
        words: what stands for each function ``L_...``, with ``@0`` for its argument.
        forms: of the types of columns, by a pattern of their names: see :mod:`likeness.data.warehouse.columns`.
    """

    name: str
    words: Mapping[str, str]
    forms: Mapping[str, str]

    def form(self, type_name: str) -> str | None:
        """The form of cells of a type; None where Likeness does not read it there."""
        forms = (form for pattern, form in self.forms.items() if re.fullmatch(pattern, type_name, re.IGNORECASE))
        return next(forms, None)

    def written(self, sql: str) -> str:
        """The SQL of this database for a text of ours.

        Args:
            sql: in PostgreSQL's words, with functions ``L_...``.
        """

        def in_dialect(node: exp.Expression) -> exp.Expression:
            if not (isinstance(node, exp.Anonymous) and node.name in self.words):
                return node
            words = self.words[node.name]
            for place, argument in enumerate(node.expressions):
                words = words.replace(
                    f"@{place}", argument.transform(in_dialect, copy=False).sql(self.name, copy=False)
                )
            return exp.Var(this=words)

        tree = sqlglot.parse_one(sql, read="postgres").transform(in_dialect, copy=False)
        return str(tree.sql(self.name, pretty=True, copy=False))


_SQLITE_WORDS = {name: f"{name.lower()}(@0)" for name in _IN_PROCESS}
_SQLITE_WORDS |= {"L_START": "l_start(@0, @1, @2)", **{f"L_MIX_{shift}": "@0" for shift, _ in MIXING}}
_SQLITE_WORDS |= {
    "L_NAN": "(@0 <> @0)",
    "L_NEAR": "ROUND(@0)",
    "L_WHOLE": "CAST(@0 AS INTEGER)",
    "L_ORDER": "@0",
    "L_DIV": "((@0) / (@1))",
}  # it knows no NaN
POSTGRES = Dialect(
    "postgres",
    MappingProxyType(_POSTGRES),
    MappingProxyType(
        {
            "text|varchar|name|uuid": "text",
            "int2|int4|int8": "whole",
            "numeric": "decimal",
            "float4": "single",
            "float8": "real",
            "bool": "truth",
            "date": "date",
            "timestamp": "moment",
            "timestamptz": "zoned",
            "time": "clock",
        }
    ),
)
DUCKDB = Dialect(
    "duckdb",
    MappingProxyType(_DUCKDB),
    MappingProxyType(
        {
            r"varchar|uuid|enum\(.*\)": "text",
            "tinyint|smallint|integer|bigint|utinyint|usmallint|uinteger": "whole",
            r"decimal\(.*\)|hugeint|ubigint": "decimal",
            "float": "single",
            "double": "real",
            "boolean": "truth",
            "date": "date",
            "timestamp|timestamp_s|timestamp_ms": "moment",
            "time": "clock",
        }
    ),
)
SQLITE = Dialect(
    "sqlite",
    MappingProxyType(_SQLITE_WORDS),
    MappingProxyType({".*": "any"}),
)
