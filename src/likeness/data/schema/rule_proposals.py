"""Rules that may hold, by the names of columns and the codebook alone. A person must confirm each; no row is read."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby, pairwise, permutations
from typing import Any

import yaml

from likeness.core.errors import SchemaError
from likeness.data.schema import name_words as known
from likeness.data.schema.column import Column
from likeness.data.schema.name_words import rest, words
from likeness.data.schema.rule import Rule, family
from likeness.data.schema.rules import rules_from

OPEN = "?"
"""What only a person can list."""
_NUMBERED = re.compile(r"(.*\D)\d+")
_FEWEST = 3  # numbered columns that make a group
_MEN = {"husband", "father", "son", "widower", "ehemann", "vater", "sohn", "witwer"}
_WOMEN = {"wife", "mother", "daughter", "widow", "ehefrau", "mutter", "tochter", "witwe"}
_SEXES = {
    **dict.fromkeys(("female", "woman", "weiblich", "frau"), _MEN),
    **dict.fromkeys(("male", "man", "männlich", "mann"), _WOMEN),
}
_HEIGHTS = ((1, 3, None), (40, 110, 0.0014225), (120, 300, 0.0001), (1200, 3000, 0.000001))
"""Least and largest upper bound of a height in meters, inches, centimeters and millimeters, and what makes a body mass
index of it: inches go with pounds."""
_YEARS = 1800, 2100
_RANGE = re.compile(r"\D*?(\d+)\s*(?:-|–|to|bis|\.\.)\s*(\d+)\D*")
_BELOW = re.compile(r"(?:<|under|below|less than|unter)\s*(\d+)\D*", re.IGNORECASE)
_ABOVE = re.compile(
    r"(?:>=|≥|from|ab)\s*(\d+)\D*|\D*(\d+)\s*(?:\+|(?:and|or) (?:over|above|older|more)|und (?:älter|mehr|darüber)).*",
    re.IGNORECASE,
)


def proposed(
    columns: Sequence[Column], rules: Sequence[Rule], label: str | None, guessed: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Candidates of rules that a schema does not have, as they stand in a schema file. Together they may be rules.

    What only a person can list is ``?``. Columns with private categories and the label are left out, where a rule
    would compute them.

    Args:
        columns: as the codebook says.
        rules: of the schema.
        label: the column to be predicted.
        guessed: columns whose bounds or categories the codebook does not say yet.
    """
    candidates = _Candidates([column for column in columns if not column.open], set(guessed), label)
    ruled = [set(rule.columns) for rule in rules]
    accepted: list[dict[str, Any]] = []
    for spec, names in candidates.all():
        if any(names <= one for one in ruled) or (is_open(spec) and label == _computed(spec)):
            continue
        specs = [*(rule.spec for rule in rules), *(one for one in (*accepted, spec) if not is_open(one))]
        said = sections(specs)
        try:
            rules_from(said.get("rules", []), said.get("derived", {}), columns, label)
        except SchemaError:
            continue
        accepted.append(spec)
        ruled.append(names)
    return accepted


def _computed(spec: Mapping[str, Any]) -> str:
    """The column that a rule with an open part computes."""
    return str(spec["determines"][1] if "determines" in spec else spec["equal"][0])


def sections(specs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rules as the sections ``rules`` and ``derived`` of a schema."""
    listed = [dict(spec) for spec in specs if "derived" not in spec]
    derived = {name: content for spec in specs for name, content in spec.get("derived", {}).items()}
    return {**({"rules": listed} if listed else {}), **({"derived": derived} if derived else {})}


def rule_text(spec: Mapping[str, Any]) -> str:
    """A rule on one line, as it stands in a schema file."""
    return yaml.safe_dump(dict(spec), default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True).strip()


def is_open(spec: Mapping[str, Any]) -> bool:
    """Whether a person must list a part of a rule."""
    return OPEN in _leaves(spec)


_Specs = Iterator[tuple[dict[str, Any], set[str]]]


def _leaves(value: Any) -> list[Any]:
    """Texts and numbers in a rule."""
    if isinstance(value, Mapping | list | tuple):
        inner = value.values() if isinstance(value, Mapping) else value
        return [leaf for one in inner for leaf in _leaves(one)]
    return [value]


class _Candidates:
    """Rules that names suggest, each with the columns that it is about."""

    def __init__(self, columns: Sequence[Column], guessed: set[str], label: str | None) -> None:
        self.columns, self.guessed, self.label = columns, guessed, label
        self.numbers = [column for column in columns if family(column) == "number"]

    def all(self) -> _Specs:
        """The surest first: of two that compute one column, the first counts."""
        for kind in (
            self._groups, self._indices, self._totals, self._sums, self._classes, self._codes, self._places,
            self._stays, self._orders, self._kin,
        ):  # fmt: skip
            yield from kind()

    def _named(self, concept: frozenset[str], others: frozenset[str] = frozenset()) -> dict[tuple[str, ...], Column]:
        """Numbers that name a concept and none of others, by the rest of their names; the first of equal ones."""
        named: dict[tuple[str, ...], Column] = {}
        for column in self.numbers:
            left = rest(column.name, concept)
            if left is not None and not others & set(words(column.name)):
                named.setdefault(left, column)
        return named

    def _groups(self) -> _Specs:
        """Numbered columns of two values, as ``soil_1`` to ``soil_40``."""
        stems = {column.name: match[1] for column in self.columns if (match := _NUMBERED.fullmatch(column.name))}
        for stem, members in groupby(sorted(stems, key=lambda name: stems[name]), key=lambda name: stems[name]):
            names = list(members)
            every = [column.name for column in self.columns if column.name.startswith(stem)]
            if len(names) >= _FEWEST:
                yield {"one_of": [f"{stem}*"] if len(every) == len(names) else names}, set(names)

    def _indices(self) -> _Specs:
        """A body mass index, with weight and height."""
        weights, heights = self._named(known.WEIGHT), self._named(known.HEIGHT)
        for left, index in self._named(known.BMI).items():
            if left not in weights or left not in heights:
                continue
            weight, height = weights[left].name, heights[left].name
            factor = [OPEN] if height in self.guessed else _factor(heights[left].bounds[1])
            if factor is not None:
                parts = [weight, height, height, *factor]
                yield {"equal": [index.name, parts], "kind": "ratio"}, {index.name, weight, height}

    def _totals(self) -> _Specs:
        """A quantity times a price."""
        totals = self._named(known.TOTAL)
        prices, quantities = (
            self._named(known.PRICE, known.TOTAL),
            self._named(known.QUANTITY, known.TOTAL | known.PRICE),
        )
        for left, total in totals.items():
            price, quantity = (
                named.get(left) or (next(iter(named.values())) if len(named) == len(totals) == 1 else None)
                for named in (prices, quantities)
            )
            if price and quantity and total.bounds[1] >= price.bounds[1] and quantity.bounds[0] >= 0:
                names = [quantity.name, price.name]
                yield {"equal": [total.name, names], "kind": "product"}, {total.name, *names}

    def _sums(self) -> _Specs:
        """A total and its parts, as ``income_total`` with ``income_work`` and ``income_rent``."""
        for left, total in self._named(known.TOTAL).items():
            named = [(words(column.name), column) for column in self.numbers if column is not total]
            parts = [
                column
                for name, column in named
                if left and left in (name[: len(left)], name[-len(left) :]) and len(name) > len(left)
            ]
            uppers = [column.bounds[1] for column in parts]
            if len(parts) > 1 and max(uppers) <= total.bounds[1] <= sum(uppers):
                names = [column.name for column in parts]
                yield {"equal": [total.name, names]}, {total.name, *names}

    def _classes(self) -> _Specs:
        """A number and its class, as ``age`` and ``age_group``: the names of the classes may say their ranges."""
        for column in self.columns:
            left = rest(column.name, known.CLASS)
            for number in self.numbers if column.is_categorical and left else ():
                if rest(number.name, frozenset(left or ())) == () and not known.CLASS & set(words(number.name)):
                    table = {} if column.name in self.guessed else _ranges(column, number)
                    yield {"determines": [number.name, column.name], "table": table or OPEN}, {number.name, column.name}

    def _codes(self) -> _Specs:
        """A column of categories and its code, as ``education`` and ``education-num``."""
        by_words: dict[tuple[str, ...], Column] = {}
        for column in self.columns:
            by_words.setdefault(tuple(word for word in words(column.name) if word not in known.TEXT), column)
        for name, column in by_words.items():
            first = by_words.get(name[:-1])
            if name[-1:] and name[-1] in known.CODE and first is not None and first.is_categorical:
                yield self._function(first, column)

    def _places(self) -> _Specs:
        """A small place that lies in a larger one, as ``town`` and ``county``."""
        named = [
            (level, left, column)
            for level, concept in enumerate(known.LEVELS)
            for column in self.columns
            if (left := rest(column.name, concept)) is not None
        ]
        for level, left, column in named:
            larger = [one for above, rest_of, one in named if above > level and rest_of == left]
            if column.is_categorical and not any(one[1] == left and one[0] < level for one in named):
                yield from (self._function(column, one) for one in larger if one.is_categorical)

    def _function(self, first: Column, second: Column) -> tuple[dict[str, Any], set[str]]:
        """A function of a column of categories; learned where each value may have a cell of its own."""
        spec: dict[str, Any] = {"determines": [first.name, second.name]}
        try:
            rules_from([spec], {}, [first, second], None)
        except SchemaError:
            spec["table"] = OPEN
        return spec, {first.name, second.name}

    def _pairs(self) -> Iterator[tuple[Column, Column, bool]]:
        """Columns of one family that differ in a word for earlier and later, and whether these are moments."""
        listed = [column for column in self.columns if not column.is_categorical]
        for first, second in permutations(listed, 2):
            for pair in known.EARLIER:
                lefts = [rest(column.name, concept) for column, concept in zip((first, second), pair, strict=True)]
                timed = all(column.type.day or known.TIME & set(words(column.name)) for column in (first, second))
                strong = pair in known.EARLIER[:10] and not known.CODE & {*words(first.name), *words(second.name)}
                if (
                    lefts[0] is not None
                    and lefts[0] == lefts[1]
                    and family(first) == family(second)
                    and (timed or pair == known.EXTREMES or (strong and first.is_integral and second.is_integral))
                ):
                    yield first, second, timed or pair != known.EXTREMES

    def _stays(self) -> _Specs:
        """A last day that is the first one and a number of days."""
        stays = [column for column in self.numbers if known.STAY & set(words(column.name)) and column.kind == "integer"]
        for first, second, _ in self._pairs():
            if len(stays) == 1 and first.type.day in (None, 1):
                spec = {"equal": [second.name, [first.name, stays[0].name]]}
                yield spec, {first.name, second.name, stays[0].name}

    def _orders(self) -> _Specs:
        """Two moments, the later of which is not before the earlier one; and two extremes."""
        for first, second, timed in self._pairs():
            derived = {"is": f"{second.name} - {first.name}", "lower": 0}
            if timed:
                yield {"derived": {f"{first.name} to {second.name}": derived}}, {first.name, second.name}
            yield {"order": [first.name, second.name]}, {first.name, second.name}

    def _kin(self) -> _Specs:
        """A word for a relative and the other sex, as ``Husband`` and ``Female``."""
        listed = [column for column in self.columns if column.is_categorical and column.name not in self.guessed]
        for first, second in permutations(listed, 2):
            for sex in second.categories:
                for relative in first.categories:
                    if relative.casefold() in _SEXES.get(sex.casefold(), ()):
                        yield {"never": {first.name: relative, second.name: sex}}, {first.name, second.name}


def _factor(upper: float) -> list[float] | None:
    """What divides weight over squared height into a body mass index, by the upper bound of a height; None: unknown."""
    for least, most, factor in _HEIGHTS:
        if least <= upper <= most:
            return [] if factor is None else [factor]
    return None


def is_year(column: Column) -> bool:
    """Whether a column may hold years, by its bounds."""
    return column.is_integral and _YEARS[0] <= column.bounds[0] and column.bounds[1] <= _YEARS[1]


def _ranges(column: Column, number: Column) -> dict[str, str]:
    """A table from ranges of a number to classes, by their names; empty if these do not say them."""
    lower, upper = number.bounds
    ends: list[tuple[float, float, str]] = []
    for name in column.categories:
        if match := _RANGE.fullmatch(name):
            ends.append((float(match[1]), float(match[2]), name))
        elif match := _BELOW.fullmatch(name):
            ends.append((lower, float(match[1]) - 1, name))
        elif match := _ABOVE.fullmatch(name):
            ends.append((float(match[1] or match[2]), upper, name))
    ends.sort()
    joined = all(before + 1 == after for (_, before, _), (after, _, _) in pairwise(ends))
    if len(ends) != len(column.categories) or not ends or not joined or not number.is_integral:
        return {}
    ends[0], ends[-1] = (lower, *ends[0][1:]), (ends[-1][0], upper, ends[-1][2])
    return {f"{low:.0f}..{high:.0f}": name for low, high, name in ends}
