"""The classes Field and Table. The declarations are in `fields`, `hardware_fields` and `tables`.

Arrow schemas, DDL, checks, labels and the data dictionary are all derived from these two classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import pyarrow as pa

# The units that a column can have: a closed set, so that a misspelt one is a type error. A column with quantities of
# several kinds takes its unit from another column: `metric`, `rate_unit`, `dtype`.
Unit = Literal[
    "", "1", "%", "UTC", "tokens", "bytes", "bytes/s", "bytes/token", "FLOP", "FLOP/s", "FLOP/token", "FLOP/byte",
    "byte/FLOP", "W", "s", "1/s", "USD", "USD/h", "h", "blocks", "of the metric", "of rate_unit", "bytes or rows",
]  # fmt: skip
DUCKDB_TYPES = {
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.timestamp("us", tz="UTC"): "TIMESTAMPTZ",
}


@dataclass(frozen=True)
class Field:
    """One column: its name, type, unit and allowed values.

    `meanings` explain `values`, in the same order; `why_bounds` is the reason for the least and the greatest value.
    """

    name: str
    type: pa.DataType
    unit: Unit
    description: str
    nullable: bool = False
    minimum: float | None = None
    maximum: float | None = None
    values: tuple[str, ...] = ()
    meanings: tuple[str, ...] = ()
    why_bounds: str = ""

    def or_null(self, description: str = "") -> Field:
        """Return the same field, nullable; `description` says when it is empty."""
        return replace(self, nullable=True, description=description or self.description)

    def arrow(self) -> pa.Field:
        """Return the Arrow field with unit and description in its metadata."""
        return pa.field(self.name, self.type, self.nullable, {"unit": self.unit, "description": self.description})

    def ddl(self) -> str:
        """Return the column's line in CREATE TABLE."""
        return f'"{self.name}" {DUCKDB_TYPES[self.type]}{"" if self.nullable else " NOT NULL"}'

    def bounds(self) -> str:
        """Return the allowed values: the least and the greatest, or a list; empty if any value is allowed.

        >>> Field("share", pa.float64(), "1", "", minimum=0, maximum=1).bounds()
        '>= 0, <= 1'
        """
        low = "" if self.minimum is None else f">= {self.minimum:g}"
        high = "" if self.maximum is None else f"<= {self.maximum:g}"
        return ", ".join(part for part in (low, high, " / ".join(self.values)) if part)

    def limits(self) -> str:
        """Return the bounds with their reason.

        >>> Field("tdp_w", pa.float64(), "W", "", minimum=5, why_bounds="cards").limits()
        '>= 5: cards'
        """
        return ": ".join(part for part in (self.bounds(), self.why_bounds) if part)

    def comment(self) -> str:
        """Return the column's comment in the database: everything declared except name and type.

        >>> Field("cached_tokens", pa.int64(), "tokens", "K", minimum=0).comment()
        'K [tokens] (>= 0)'
        """
        explained = "; ".join(f"{value}: {why}" for value, why in zip(self.values, self.meanings, strict=False))
        bounds = " or ".join(part for part in (explained or self.limits(), "NULL" if self.nullable else "") if part)
        parts = (self.description, f"[{self.unit}]" if self.unit else "", f"({bounds})" if bounds else "")
        return " ".join(part for part in parts if part)

    def label(self) -> str:
        """Return an axis or column label: the name in words, and the unit.

        >>> Field("cached_tokens", pa.int64(), "tokens", "").label()
        'cached tokens'
        """
        words = self.name.replace("_", " ")
        return words if self.unit in ("", "1") or words.endswith(self.unit) else f"{words} ({self.unit})"


@dataclass(frozen=True)
class Table:
    """One table: its grain (one row is ...), its key columns, and the layout of its Parquet."""

    name: str
    grain: str
    key: tuple[str, ...]
    fields: tuple[Field, ...]
    partition_by: tuple[str, ...] = ()
    is_view: bool = False

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """Arrow schema in declared column order, with the table's grain and key in the metadata."""
        metadata = {"grain": self.grain, "key": ",".join(self.key)}
        return pa.schema([field.arrow() for field in self.fields], metadata=metadata)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in declared order."""
        return tuple(field.name for field in self.fields)

    def field(self, name: str) -> Field:
        """Return one field; KeyError if the table has no such column."""
        return {field.name: field for field in self.fields}[name]

    def ddl(self) -> str:
        """Return CREATE TABLE with the columns, NOT NULL where declared."""
        columns = ",\n  ".join(field.ddl() for field in self.fields)
        return f'CREATE TABLE "{self.name}" (\n  {columns}\n)'

    def comments(self) -> list[str]:
        """Return the COMMENT ON statements: the table's grain, each column's description, unit and bounds."""
        kind = "VIEW" if self.is_view else "TABLE"
        of_columns = ((f'COLUMN "{self.name}"."{field.name}"', field.comment()) for field in self.fields)
        comments = [(f'{kind} "{self.name}"', f"one row: {self.grain}"), *of_columns]
        return [f"COMMENT ON {what} IS {quoted(text)}" for what, text in comments]

    def dictionary(self) -> str:
        """Return the columns as a Markdown table, for docs and Dagster."""
        head = "| column | type | unit | NULL | bounds | description |\n|---|---|---|---|---|---|"
        return "\n".join([head, *(_dictionary_line(field) for field in self.fields)])

    def conform(self, data: pa.Table) -> pa.Table:
        """Return `data` with the declared columns, order, types and metadata.

        Raises:
            KeyError: a declared column is missing.
            pa.ArrowInvalid: a value does not fit the declared type.
        """
        return data.select(list(self.names)).cast(self.arrow_schema).replace_schema_metadata(self.arrow_schema.metadata)

    def rows(self, rows: list[dict[str, object]]) -> pa.Table:
        """Return `rows` as a table of this schema; an undeclared key is an error."""
        unknown = {key for row in rows for key in row} - set(self.names)
        if unknown:
            raise KeyError(f"table {self.name} declares no column {sorted(unknown)}")
        return pa.Table.from_pylist(rows, schema=self.arrow_schema)


def _dictionary_line(field: Field) -> str:
    null = "yes" if field.nullable else ""
    kind = DUCKDB_TYPES[field.type]
    return f"| `{field.name}` | {kind} | {field.unit} | {null} | {field.limits()} | {field.description} |"


def quoted(text: str) -> str:
    """Return an SQL string literal.

    >>> quoted("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"
