"""The words of Spark's SQL, and statements that read its rows once.

Spark runs them on its executors, without Python. Three things that its SQL lacks it finds in Java classes of its own
distribution, by ``reflect``: NFC in ICU, and in Jackson the fewest digits of a float64 and of a float32 that are read
back. Java before version 19 prints more digits of some.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType

import sqlglot

from likeness.core.text import _SPACES, _UNSEEN
from likeness.data.source.cells import MOST_LETTERS
from likeness.data.source.row_digests import MIXING
from likeness.data.warehouse.dialects import (
    _DATE,
    _END,
    _HARMFUL,
    _NUMBER,
    _TEXTS,
    Dialect,
    _of_re2,
    _person,
    _started,
    whole_or,
)
from likeness.data.warehouse.statements import LIMBS, Statements, flat, limbs

_WIDE = "DECIMAL(38, 0)"
_BLANKS = "".join(letter for letter in map(chr, range(0x3000)) if letter.isspace() and letter not in _SPACES)
_FEWEST = "com.fasterxml.jackson.core.io.schubfach."
# The least float64 and float32 numbers, of which Java prints two digits though one is read back.
_DOUBLES = {"4.9E-324": "5E-324", "9.9E-324": "1E-323", "9.9E-323": "1E-322"}
_DOUBLES |= {f"{digit}.9E-323": f"{digit + 1}E-323" for digit in range(4, 9)}
_FLOATS = {"1.4E-45": "1E-45", "2.8E-45": "3E-45", "4.2E-45": "4E-45", "5.6E-45": "6E-45"} | {
    "8.4E-45": "8E-45",
    "9.8E-45": "1E-44",
    "2.9E-44": "3E-44",
    "4.1E-44": "4E-44",
    "9.9E-44": "1E-43",
}


def _digits(kind: str, tiny: Mapping[str, str]) -> str:
    """The text of a number with the fewest digits that are read back; NULL of NULL."""
    text = reduce(
        lambda text, pair: f"REPLACE({text}, '{pair[0]}', '{pair[1]}')",
        tiny.items(),
        f"REFLECT('{_FEWEST}{kind}ToDecimal', 'toString', @0)",
    )
    return f"CASE WHEN @0 IS NOT NULL THEN {text} END"


def _written(letters: str) -> str:
    """Letters as a text of Spark."""
    return "'" + "".join(f"\\u{ord(letter):04x}" for letter in letters) + "'"


def _mixed(shift: int, factor: int) -> str:
    """A step of :func:`likeness.data.source.row_digests.mixed`, in two halves of 32 bits: a product has 38 digits."""
    signed = f"CAST(CASE WHEN @0 >= {2**63} THEN @0 - {_END} ELSE @0 END AS BIGINT)"
    bits = f"({signed} ^ SHIFTRIGHTUNSIGNED({signed}, {shift}))"
    high, low = f"CAST(SHIFTRIGHTUNSIGNED({bits}, 32) AS {_WIDE})", f"CAST({bits} & 4294967295 AS {_WIDE})"
    return f"(({high} * {factor} % 4294967296 * 4294967296 + {low} * {factor}) % {_END})"


def _of_spark(text: str) -> str:
    """Words of PostgreSQL in those of Spark."""
    return str(sqlglot.transpile(text.replace("@", "_at"), read="postgres", write="spark")[0]).replace("_at", "@")


_HALF = "CAST(CONV(@0, 16, 10) AS BIGINT)"
_ASCII = f"TRIM(BOTH {_written(_BLANKS)} FROM @0)"
_PLAIN = f"TRANSLATE(@0, {_written(_SPACES + ''.join(_UNSEEN))}, '{' ' * len(_SPACES)}')"
_NFC = f"REFLECT('com.ibm.icu.text.Normalizer', 'compose', {_PLAIN}, FALSE)"
_WORDS = {name: _of_spark(text) for name, text in _TEXTS.items()}
_WORDS |= {
    **dict.fromkeys(
        ("L_EXACT", "L_LARGE"),
        _WORDS["L_EXACT"].replace("CAST(@0 AS STRING)", f"LOWER({_digits('Double', _DOUBLES)})"),
    ),
    "L_TEXT": f"CASE WHEN OCTET_LENGTH(VALIDATE_UTF8(@0)) > CHAR_LENGTH(@0) "
    f"THEN {_ASCII.replace('@0', _NFC)} ELSE {_ASCII} END",
    "L_DECIMAL": "CAST(CAST(@0 AS STRING) AS DOUBLE)",
    "L_SINGLE": whole_or(_digits("Float", _FLOATS), "DOUBLE"),
    "L_PARSE": f"CASE WHEN @0 RLIKE '{_NUMBER}' THEN TRY_CAST(@0 AS DOUBLE) END",
    "L_FLOAT": "CAST(@0 AS DOUBLE)",
    "L_NAN": "ISNAN(@0)",
    "L_NEAR": "RINT(@0)",
    "L_EVEN": "RINT(@0)",
    "L_WHOLE": "CAST(@0 AS BIGINT)",
    "L_DIV": "((@0) DIV (@1))",
    "L_ODD": f"(LENGTH(@0) > {MOST_LETTERS} OR @0 RLIKE r'[{_of_re2(_HARMFUL)}]')",
    "L_BYTES": "OCTET_LENGTH(@0)",
    "L_DAYS": "UNIX_DATE(@0)",
    "L_SECONDS": "UNIX_SECONDS(CAST(@0 AS TIMESTAMP))",
    "L_DAYS_OF": f"CASE WHEN @0 RLIKE '{_DATE}' THEN UNIX_DATE(TRY_CAST(SUBSTRING(@0, 1, 10) AS DATE)) END",
    "L_DAY": "CAST(DATE_FROM_UNIX_DATE(CAST(@0 AS INT)) AS STRING)",
    "L_MOMENT": "CAST(TIMESTAMP_SECONDS(CAST(@0 AS BIGINT)) AS STRING)",
    "L_SHA": "SHA2(@0, 256)",
    "L_ORDER": "(@0 COLLATE UTF8_BINARY)",
    "L_HEX": _HALF,
    "L_PERSON": _person("@0 RLIKE '@1'"),
    "L_START": _started(_HALF, _WIDE),
    **{f"L_MIX_{shift}": _mixed(shift, factor) for shift, factor in MIXING},
}
SPARK = Dialect(
    "spark",
    MappingProxyType(_WORDS),
    MappingProxyType(
        {
            r"string( collate .*)?|(var)?char\(.*\)": "text",
            "tinyint|smallint|int|bigint": "whole",
            r"decimal\(.*\)": "decimal",
            "float": "single",
            "double": "real",
            "boolean": "truth",
            "date": "date",
            "timestamp_ntz": "moment",
            "timestamp": "zoned",
        }
    ),
)


class SparkStatements(Statements):
    """Statements for Spark, which would compute a step anew for each of its uses. Each statement reads the rows once.

    Each row gives a list: a 1 for its cell of each table, the limbs of its hash, and a 1. The answer is their sum.
    Executors add up their rows first. Rows go from one to another only where equal rows, or those of a person, are
    numbered: for a split by content, and for people.
    """

    held_steps = ""
    beside = ("h",)

    def _question(
        self, steps: Sequence[tuple[str, str]], start: int, tables: Sequence[Sequence[tuple[str, int]]]
    ) -> str:
        places = [(place, flat(axes)) for place, axes in enumerate(tables, start)]
        rows = self._written(steps, f"SELECT *, {', '.join(named_limbs())} FROM likeness_cells")
        return self._summed(rows, places, "BIGINT")

    def texts(self, name: str) -> str:
        """As :meth:`Statements.texts`, in one pass over the rows."""
        hashed = [f"L_SHA({self._text(name)[0]}) AS g", *named_limbs()]
        rows = self._written([], f"SELECT {', '.join(hashed)} FROM likeness_parts WHERE train = 1")
        return self._summed(rows, [(0, "g")], "STRING")

    def rows(self) -> str:
        """A statement whose answer is the training rows as a method sees them. It must not leave the executors.

        Its columns are each modeled column as a number, or the place of its category, and the limbs of the hash.
        """
        steps, modeled = self.modeled()
        cells = [f"L_FLOAT({value}) AS c_{k}" for k, value in enumerate(modeled.values())]
        return self._written(steps, f"SELECT {', '.join([*cells, *named_limbs()])} FROM likeness_units")

    def _summed(self, rows: str, places: Sequence[tuple[int, str]], cell_type: str) -> str:
        """The statement of the sums.

        Args:
            rows: query of the training rows.
            places: of each table its place and the cell.
            cell_type: type of a cell.
        """
        parts = [*((place, cell, "1") for place, cell in places), (-2, "0", "1")]
        parts += [(-1, str(k), f"l_{k}") for k in range(LIMBS)]
        sums = added([given(rows, parts, cell_type)])
        if self.unit is None:
            return sums
        return f"{sums} UNION ALL {added([self._written([], self._most_rows())])}"


def given(rows: str, parts: Iterable[tuple[int, str, str]], cell_type: str) -> str:
    """A query that makes rows of table, cell and count of each row.

    Args:
        rows: query of the rows.
        parts: what each row gives: table, cell and count.
        cell_type: type of a cell.
    """
    listed = ",\n".join(
        f"NAMED_STRUCT('part', {place}, 'cell', CAST({cell} AS {cell_type}), 'count', CAST({count} AS BIGINT))"
        for place, cell, count in parts
    )
    return f"SELECT INLINE(ARRAY(\n{listed}\n)) FROM (\n{rows}\n)"


def added(queries: Iterable[str]) -> str:
    """A statement that adds up the counts of queries for table, cell and count."""
    rows = "\nUNION ALL\n".join(queries)
    counts = "SELECT part, CONCAT(cell, ' ', SUM(count)) AS counts"
    return f"{counts} FROM (\n{rows}\n) GROUP BY part, cell HAVING cell IS NOT NULL"


def named_limbs() -> list[str]:
    """The limbs of a hash, as columns ``l_k``."""
    return [f"{limb} AS l_{k}" for k, limb in enumerate(limbs())]
