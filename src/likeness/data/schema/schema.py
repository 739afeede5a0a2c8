"""The public schema: columns, kinds, bounds and categories. A person writes it; no program reads it off records.

All facts that shape an encoding are here, so that the encoding of one row never depends on another row. It needs yaml
only, and no table library.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice
from pathlib import Path
from typing import Any

from likeness.core.errors import SchemaError
from likeness.core.text import (
    LONGEST,
    choices,
    code_points,
    excerpt,
    fault_of,
    normal_text,
    normal_texts,
    small_table,
    texts_in,
)
from likeness.data.schema.column import Column
from likeness.data.schema.column_keys import DROP, Dropped, column_from
from likeness.data.schema.rule import Rule
from likeness.data.schema.rules import ConstrainedTable, rules_from, rules_section, thresholds
from likeness.data.schema.yaml import read_mapping

TASKS = ("classification", "regression", "none")
KEYS = ("name", "source", "task", "label", "image", "columns", "rules", "derived")
BRIGHTEST = 255
_MOST_VALUES = 1 << 14  # of an image: pixels, three times as many in color; and columns of any table
_MOST_WORDS = 5 * LONGEST  # characters of a source or a reason


MOST_WORDS = 8
"""Categories of a column that a notebook shows."""


@dataclass(frozen=True)
class Schema:
    """Public knowledge of a table.

    Attributes:
        name: short name of the table.
        source: origin of the public knowledge (a codebook, a law, a questionnaire).
        task: ``classification`` (the label is a class, apart from the features), ``regression`` (the label is one of
            the numeric features) or ``none``.
        label: name of the label column; None for task ``none``.
        columns: in table order.
        image: height and width where each record is a gray image, and 3 for one in color; its pixels are then the first
            columns.
        dropped: columns of the source that nobody reads.
        rules: between columns, see :mod:`likeness.data.schema.rules`.

    Raises:
        SchemaError: a rule is broken.
    """

    name: str
    source: str
    task: str
    label: str | None
    columns: tuple[Column, ...]
    image: tuple[int, ...] | None = None
    dropped: tuple[Dropped, ...] = ()
    rules: tuple[Rule, ...] = ()

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise SchemaError(f"task '{self.task}' is not a task.{choices(self.task, TASKS, 'Tasks')}")
        listed = [*self.names, *(dropped.name for dropped in self.dropped)]
        twice = sorted(name for name, count in Counter(listed).items() if count > 1)
        if twice:
            raise SchemaError(f"column '{twice[0]}' is listed twice. Keep one.")
        if self.task != "none":
            self._check_label()
        elif self.label is not None:
            raise SchemaError("task none has no label. Remove label, or set task to classification or regression.")
        if self.image is not None:
            pixels = pixel_columns(self.image)
            if self.columns[: len(pixels)] != pixels:
                raise SchemaError("image: columns must list the label only. Remove the pixels.")
            others = [name for name in self.names[len(pixels) :] if name != self.label or self.task == "regression"]
            if others:
                raise SchemaError(
                    f"column '{others[0]}' cannot stand beside an image; only a class label can. Remove it, or list "
                    "the pixels as columns instead of image."
                )
        if len(self.columns) > _MOST_VALUES + 1:
            raise SchemaError(f"columns has {len(self.columns):,} columns. A table may have {_MOST_VALUES + 1:,}.")
        if not self.feature_columns:
            raise SchemaError("columns has no feature. Give at least one column beside the label.")

    def with_categories(self, released: Mapping[str, Sequence[str]]) -> "Schema":
        """The schema with the released categories of each open column, and then its ``other``.

        Raises:
            SchemaError: the names are not those of the open columns.
        """
        if set(released) != {column.name for column in self.open_columns}:
            raise SchemaError("the released categories are not those of the schema's columns. Run: likeness run")
        columns = tuple(
            replace(column, open=False, categories=(*released[column.name], str(column.other)))
            if column.open
            else column
            for column in self.columns
        )
        return replace(self, columns=columns)

    def with_bounds(self, released: Mapping[str, tuple[float, float, str]]) -> "Schema":
        """The schema with the released lower and upper bound of each unbounded column, and its transform.

        Raises:
            SchemaError: the names are not those of the unbounded columns.
        """
        if set(released) != {column.name for column in self.unbounded_columns}:
            raise SchemaError("the released bounds are not those of the schema's columns. Run: likeness run")
        columns = list[Column]()
        for column in self.columns:
            if column.unbounded:
                lower, upper, transform = released[column.name]
                column = replace(column, unbounded=False, lower=lower, upper=upper, transform=transform)
            columns.append(column)
        return replace(self, columns=tuple(columns))

    def with_stand_ins(self, most: int) -> "Schema":
        """The schema with ``most`` stand-ins in each open column, the largest possible release, and widest bounds."""
        released = {}
        for column in self.open_columns:
            taken = {column.other, *column.missing_values}
            names = (name for name in (f"category {index}" for index in count(1)) if name not in taken)
            released[column.name] = list(islice(names, most))
        bounds = {column.name: (*column.bounds, column.transform) for column in self.unbounded_columns}
        return self.with_categories(released).with_bounds(bounds)

    def _check_label(self) -> None:
        if self.label is None:
            raise SchemaError(f"task {self.task} has no label. Give label: the name of one column.")
        if self.label in [dropped.name for dropped in self.dropped]:
            raise SchemaError(f"label '{self.label}' has kind drop. Give it another kind, or set another label.")
        if self.label not in self.names:
            raise SchemaError(f"label '{self.label}' is not a column.{choices(self.label, self.names, 'Columns')}")
        column = self.column(self.label)
        if column.is_categorical is not (self.task == "classification"):
            wanted = "categorical" if self.task == "classification" else "numeric or integer"
            raise SchemaError(f"label '{self.label}' is {column.kind}, but task {self.task} needs a {wanted} column.")
        if column.open:
            raise SchemaError(f"label '{self.label}' has private categories. Classes must be public: list them.")
        if column.is_categorical and len(column.categories) < 2:
            raise SchemaError(f"label '{self.label}' has one category. A class label needs at least two.")
        if column.nullable:
            raise SchemaError(f"label '{self.label}' is nullable, but a label is never missing. Drop nullable.")

    @classmethod
    def load(cls, path: str | Path, aliases: bool = True) -> "Schema":
        """Read a file, see :meth:`from_dict`. ``aliases`` of YAML are not allowed in the file of a stranger."""
        return cls.from_dict(read_mapping(path, aliases), Path(path).name)

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any], where: str) -> "Schema":
        """Check and build a schema from the content of its file; ``where`` is its name in messages.

        Raises:
            SchemaError: naming file, column and rule.
        """
        if not isinstance(mapping, Mapping):
            raise SchemaError(f"{where}: must hold a mapping with the keys {', '.join(KEYS)}.")
        check_texts(mapping, where)
        try:
            for key in mapping:
                if key not in KEYS:
                    raise SchemaError(f"{key} is not a key of a schema.{choices(key, KEYS, 'Keys')}")
            label, image = normal_texts(mapping.get("label")), image_shape(mapping.get("image"))
            pixels = () if image is None else pixel_columns(image)
            listed = [column_from(name, spec) for name, spec in entries(mapping.get("columns"), image)]
            columns = tuple(column for column in listed if isinstance(column, Column))
            return cls(
                name=_text(mapping, "name"),
                source=_text(mapping, "source"),
                task=_text(mapping, "task"),
                label=None if label is None else str(label),
                columns=pixels + columns,
                image=image,
                dropped=tuple(column for column in listed if isinstance(column, Dropped)),
                rules=rules_from(mapping.get("rules") or (), mapping.get("derived") or {}, pixels + columns, label),
            )
        except SchemaError as error:
            raise SchemaError(f"{where}: {error}", error.faults) from None

    @property
    def published_schema(self) -> "Schema":
        """The schema for others: without dropped columns, whose names and reasons are about the source alone."""
        return replace(self, dropped=())

    def _repr_html_(self) -> str:
        """Show a table in a notebook: a row a column."""
        rows = [
            (item.name, item.kind, _values(item), "may be missing" if item.nullable else "") for item in self.columns
        ]
        return small_table(f"{self.name}, label {self.label or '–'}", rows, ("column", "kind", "values", "missing"))

    def to_dict(self) -> dict[str, Any]:
        """JSON form; :meth:`from_dict` reads it back. Columns are a list, whose order survives sorted keys."""
        listed = self.columns if self.image is None else self.columns[math.prod(self.image) :]
        return {
            "name": self.name,
            "source": self.source,
            "task": self.task,
            "label": self.label,
            **({} if self.image is None else {"image": {"shape": list(self.image)}}),
            "columns": [
                *({"name": column.name, **column.to_dict()} for column in listed),
                *({"name": dropped.name, "kind": DROP, "reason": dropped.reason} for dropped in self.dropped),
            ],
            **rules_section(self.rules),
        }

    def column(self, name: str) -> Column:
        """The column of that name."""
        normal = normal_text(name)
        for column in self.columns:
            if column.name == normal:
                return column
        hint = choices(name, self.names, "Columns")
        raise SchemaError(f"'{name}'{code_points(name)} is not a column of {self.name}.{hint}")

    def select(self, names: Iterable[str]) -> "Schema":
        """A schema of some of the columns, without label, rules and image."""
        columns = tuple(column for column in self.columns if column.name in set(names))
        return replace(self, columns=columns, task="none", label=None, image=None, dropped=(), rules=())

    @cached_property
    def constrained_table(self) -> ConstrainedTable:
        """The columns under the rules."""
        return ConstrainedTable(self.columns, self.rules)

    @cached_property
    def model_schema(self) -> "Schema":
        """The schema that a method sees: without computed columns, and with cells that end where a rule's values do."""
        if not self.rules:
            return self
        table = self.constrained_table
        columns = tuple(
            column
            if column.is_categorical
            else replace(column, cuts=tuple(sorted({*column.cuts, *thresholds(self.rules, column.name)})))
            for column in table.modeled_columns
        )
        return replace(self, columns=columns, rules=table.modeled_rules)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in table order."""
        return tuple(column.name for column in self.columns)

    @property
    def row_sets(self) -> dict[str, "Schema"]:
        """Schemas of the rows that a method is asked about, by the beginning of the names of their queries."""
        return {"": self}

    @cached_property
    def pixels(self) -> tuple[str, ...]:
        """Names of the columns of an image, pixel by pixel; empty without one, or if rules compute some of them."""
        names = () if self.image is None else tuple(column.name for column in pixel_columns(self.image))
        return names if names == self.names[: len(names)] else ()

    @property
    def open_columns(self) -> tuple[Column, ...]:
        """Columns with private categories that are not released yet."""
        return tuple(column for column in self.columns if column.open)

    @property
    def unbounded_columns(self) -> tuple[Column, ...]:
        """Columns with private bounds that are not released yet."""
        return tuple(column for column in self.columns if column.unbounded)

    @property
    def feature_columns(self) -> tuple[Column, ...]:
        """All columns but a class label. A regression label is a numeric feature."""
        skip = self.label if self.task == "classification" else None
        return tuple(column for column in self.columns if column.name != skip)

    @property
    def label_column(self) -> Column | None:
        """The label of either task; None for task ``none``."""
        return None if self.label is None else self.column(self.label)

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names in order of their index; one empty name for other tasks than classification."""
        if self.task != "classification" or self.label is None:
            return ("",)
        return self.column(self.label).categories


def image_shape(spec: Any) -> tuple[int, ...] | None:
    """Height and width in pixels, and 3 for color, from a schema's ``image`` section; None without one.

    Raises:
        SchemaError: it is no such section, or the image is too large for a table.
    """
    if spec is None:
        return None
    shape: Any = spec.get("shape") if isinstance(spec, Mapping) and set(spec) == {"shape"} else None
    sizes = list(shape) if isinstance(shape, list | tuple) else []
    if (
        any(type(size) is not int or size < 1 for size in sizes)
        or len(sizes) not in (2, 3)
        or sizes[2:] not in ([], [3])
    ):
        raise SchemaError(
            "image must be {shape: [height, width]} for gray images, or [height, width, 3] for color. Correct it."
        )
    values = math.prod(sizes)
    if values > _MOST_VALUES:
        raise SchemaError(f"image has {values:,} values, more than {_MOST_VALUES:,}. Scale the images down.")
    return tuple(sizes)


def pixel_columns(shape: tuple[int, ...]) -> tuple[Column, ...]:
    """Columns ``pixel_1`` ... of images, row by row from the top left, in the layout of MNIST at OpenML.

    A pixel is an integer column from 0 to 255, so that all rules for tables hold for images. In color it is three
    columns: red, green and blue.
    """
    return tuple(Column(f"pixel_{index + 1}", "integer", 0.0, float(BRIGHTEST)) for index in range(math.prod(shape)))


def check_texts(mapping: Mapping[str, Any], where: str) -> None:
    """Refuse controls and long texts: a schema is published, and others read it in a terminal.

    Raises:
        SchemaError: naming the file, the key and the rule.
    """
    for name, text in texts_in(mapping):
        fault = fault_of(text, _MOST_WORDS if name.rpartition(".")[2] in ("source", "reason") else LONGEST)
        if fault:
            raise SchemaError(f"{where}: {excerpt(name) or 'a key'} {fault}")


def _text(mapping: Mapping[str, Any], key: str) -> str:
    value = mapping.get(key)
    if value is None or not str(value).strip():
        raise SchemaError(f"{key} is missing. Give it a text.")
    return str(value)


def entries(columns: Any, image: tuple[int, ...] | None = None) -> Iterable[tuple[str, Any]]:
    """Names and mappings of section ``columns``, a mapping or a list with names. An image makes the section optional.

    Raises:
        SchemaError: the section is neither.
    """
    if columns is None and image is not None:
        return []
    if isinstance(columns, Mapping):
        return [(_name(name), spec) for name, spec in columns.items()]
    if isinstance(columns, list | tuple) and all(isinstance(item, Mapping) and "name" in item for item in columns):
        return [(_name(item["name"]), {key: item[key] for key in item if key != "name"}) for item in columns]
    raise SchemaError("columns is missing or not a mapping. Give NAME: {kind: ...} for each column.")


def _name(value: Any) -> str:
    if value is None or isinstance(value, bool):
        raise SchemaError("columns: a name is null, true or false. Put it in quotes, as in the header.")
    return str(value)


def _values(column: Column) -> str:
    """The categories of a column in short, or its bounds."""
    if column.is_categorical:
        texts, more = column.categories[:MOST_WORDS], len(column.categories) - MOST_WORDS
        return ", ".join(texts) + (f" and {more:,} more" if more > 0 else "")
    return column.range_text
