"""What is declared is used: fields stand in tables, tables are built, units and names follow the rules."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from pipelines.steps.tables import STAGED
from warehouse.declared import fields, hardware_fields
from warehouse.declared.schema import Field
from warehouse.declared.tables import TABLES
from warehouse.hardware_rows.rows import REFERENCE

ROOT = Path(__file__).resolve().parents[2]
# Tables with columns that people write SQL against; a view is built with the database, the others by steps.
BUILT_ELSEWHERE = {"turns", "generations"}
TABLE_FIELDS = [(name, field) for name, table in TABLES.items() for field in table.fields]


def declared(module: object) -> dict[str, Field]:
    """Return the fields that a module declares by the name of their constant."""
    return {name: value for name, value in vars(module).items() if isinstance(value, Field)}


@pytest.mark.parametrize("module", [fields, hardware_fields])
def test_every_field_is_a_column(module: object) -> None:
    """A field that no table uses does not exist."""
    tables = [*TABLES.values(), *REFERENCE.values()]
    used = {(field.name, field.type, field.unit) for table in tables for field in table.fields}
    assert [n for n, field in declared(module).items() if (field.name, field.type, field.unit) not in used] == []


def test_a_name_has_one_type_and_one_unit() -> None:
    """The same name is the same quantity wherever it stands."""
    kinds: dict[str, set[tuple[str, str]]] = {}
    for _, field in TABLE_FIELDS:
        kinds.setdefault(field.name, set()).add((str(field.type), field.unit))
    assert {name: kind for name, kind in kinds.items() if len(kind) > 1} == {}


def test_names_follow_the_rules() -> None:
    """Lower case with underscores; flags and nothing else are boolean; units are suffixes; descriptions are there."""
    for table, field in TABLE_FIELDS:
        where = f"{table}.{field.name}"
        assert re.fullmatch(r"[a-z][a-z0-9_]*", field.name), where
        assert field.description.strip(), where
        is_flag = field.name.startswith(("is_", "has_")) or field.name == "within_tolerance"
        assert is_flag == (str(field.type) == "bool"), where
        for suffix, unit in (("_tokens", "tokens"), ("_bytes", "bytes"), ("_bytes_per_s", "B/s")):
            if field.name.endswith(suffix):
                assert field.unit.replace("bytes/s", "B/s") == unit, where


def test_keys_and_partitions_are_columns() -> None:
    """Keys and partitions name columns of their table, and key columns other than of views are never NULL."""
    for table in TABLES.values():
        assert set(table.key) | set(table.partition_by) <= set(table.names), table.name
        if not table.is_view:
            assert [name for name in table.partition_by if table.field(name).nullable] == [], table.name


def test_every_table_is_built() -> None:
    """Each declared table is staged, or built with the turns or at publication, or a view with its SQL."""
    views = {name for name, table in TABLES.items() if table.is_view}
    assert set(TABLES) == set(STAGED) | BUILT_ELSEWHERE | views
    assert [name for name in views if not (ROOT / "warehouse" / "sql" / f"{name}.sql").is_file()] == []


def test_every_sql_model_is_used() -> None:
    """No SQL file lies about unused: each is a view or is named by the module that runs it."""
    code = "\n".join(path.read_text("utf8") for path in (ROOT / "warehouse").rglob("*.py"))
    names = [path.stem for path in (ROOT / "warehouse" / "sql").glob("*.sql")]
    views = {name for name, table in TABLES.items() if table.is_view}
    assert [name for name in names if name not in views and f'"{name}"' not in code] == []


def test_no_second_schema() -> None:
    """Arrow schemas of public tables come out of the declarations: no other module spells a table's columns out."""
    public = {"kappa_ratio", "is_first_turn", "memory_bound_turn_share", "pooled_kappa_ratio"}
    found = []
    for package in ("assets", "pipelines", "reports"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf8"))):
                is_field = isinstance(node, ast.Call) and ast.unparse(node.func) in ("pa.field", "Field")
                if is_field and isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                    found += [(path.name, node.args[0].value)] if node.args[0].value in public else []
    assert found == []
