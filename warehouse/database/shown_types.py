"""Results as text: DuckDB casts the values that Arrow and Python would write differently."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
    from duckdb.sqltypes import DuckDBPyType

_INTEGERS = {f"{sign}{size}" for sign in ("", "u") for size in ("tinyint", "smallint", "integer", "bigint")}
_PLAIN = _INTEGERS | {"double", "varchar", "null"}
# The types that a format takes uncast; all others are cast to VARCHAR.
_KEPT = {
    "csv": _PLAIN,
    "table": _PLAIN | {"boolean", "hugeint", "decimal"},
    "json": _PLAIN | {"boolean", "float", "hugeint", "decimal", "blob"},
}


def shown(relation: duckdb.DuckDBPyRelation, form: str) -> duckdb.DuckDBPyRelation:
    """Return the relation with its values cast to VARCHAR by DuckDB, as far as the format needs it.

    Args:
        relation: any result.
        form: `table`, `csv`, `json` (lists, structs and maps stay, their values are cast) or `parquet` (no cast).
    """
    if form not in _KEPT:
        return relation
    casts = [_target(kind, form) for kind in relation.types]
    if not any(casts):
        return relation
    names = ['"' + name.replace('"', '""') + '"' for name in relation.columns]
    return relation.project(
        ", ".join(
            f"CAST(#{n} AS {cast}) AS {name}" if cast else f"#{n} AS {name}"
            for n, (cast, name) in enumerate(zip(casts, names, strict=True), 1)
        )
    )


def _target(kind: DuckDBPyType, form: str) -> str | None:
    """Return the type to cast to; None if the values stay as they are."""
    if kind.id in _KEPT[form]:
        return None
    from duckdb import sqltypes  # noqa: PLC0415 - half a second

    if form != "json" or kind.id not in ("list", "array", "struct", "map"):
        return "VARCHAR"
    parts = {name: part for name, part in kind.children if isinstance(part, sqltypes.DuckDBPyType)}
    cast = {name: _target(part, form) for name, part in parts.items()}
    if not any(cast.values()):
        return None
    inner = {name: cast[name] or str(part) for name, part in parts.items()}
    if kind.id == "struct":
        return (
            "STRUCT("
            + ", ".join(f'"{name.replace(chr(34), chr(34) * 2)}" {part}' for name, part in inner.items())
            + ")"
        )
    if kind.id == "map":
        return f"MAP({inner['key']}, {inner['value']})"
    return f"{inner['child']}[{dict(kind.children).get('size', '')}]"
