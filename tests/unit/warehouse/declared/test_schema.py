"""Declared tables: one declaration, and everything that follows from it, through Arrow, DuckDB and Parquet."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warehouse.declared import fields
from warehouse.declared.schema import DUCKDB_TYPES, Field, Table, quoted
from warehouse.declared.tables import TABLES, tables_identity

DESIGN = {
    "sources": "workload repo_id revision path bytes sha256 records licence fetched_at is_sample",
    "tokenizers": "tokenizer repo_id revision path sha256 fingerprint engine engine_version max_context_tokens",
    "generations": "generation run_id started_at finished_at code_version workload revision tokenizer fingerprint",
    "rejects": "workload path record level session_id turn_index reason detail",
    "turns": "workload tokenizer counting reuse session_id turn_index cached_tokens prefill_tokens output_tokens "
    "kappa_ratio is_first_turn",
    "platforms": "accelerator link basis",
    "kappa_crit": "model accelerator link basis kv_dtype kappa_m_flop_per_byte kappa_hw_byte_per_flop kappa_crit",
    "percentiles": "workload tokenizer counting reuse population block_tokens metric percentile value",
    "summary": "workload tokenizer counting reuse sessions turns first_turns cached_tokens_sum prefill_tokens_sum "
    "output_tokens_sum cached_tokens_mean prefill_tokens_mean kappa_ratio_mean pooled_kappa_ratio "
    "special_token_messages uncounted_parts is_sample",
    "boundness": "workload tokenizer counting reuse block_tokens model accelerator link basis kv_dtype cost_model "
    "kappa_crit memory_bound_turn_share memory_bound_token_share memory_bound_time_share transfer_time_share "
    "over_context_turn_share pcie_overhead_p50 pcie_overhead_p90 pcie_overhead_p99 is_tokenizer_proxy "
    "tensor_parallel weight_dtype compute_dtype",
    "published": "quantity workload metric statistic population tokenizer counting block_tokens value tolerance "
    "is_asserted source",
    "paper_comparison": "quantity workload metric statistic population tokenizer counting block_tokens value tolerance "
    "is_asserted source ours ratio is_full_set within_tolerance",
    "accelerators": "accelerator dense_bf16_flop_per_s sparse_bf16_flop_per_s dense_fp8_flop_per_s "
    "sparse_fp8_flop_per_s dense_fp4_flop_per_s hbm_bytes hbm_bytes_per_s tdp_w confidence source",
    "links": "link kind peak_bytes_per_s sustained_bytes_per_s confidence source",
    "models": "model repo_id attention total_params active_params layers heads kv_heads head_dim kv_bytes_per_token "
    "flops_per_token max_context_tokens tokenizer is_tokenizer_proxy confidence source",
}
STORED = [table for table in TABLES.values() if not table.is_view]


def test_tables_of_the_design() -> None:
    """Names and columns are public: each table of the design has its columns; some have more, and there are more."""
    assert set(DESIGN) <= set(TABLES)
    for name, columns in DESIGN.items():
        assert set(columns.split()) <= set(TABLES[name].names), name
    exact = {"turns", "percentiles", "summary", "boundness", "rejects", "sources", "paper_comparison"}
    for name in exact:
        assert TABLES[name].names == tuple(DESIGN[name].split())


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_declarations(table: Table) -> None:
    """Names are lower case with underscores and unique, keys and partitions exist, flags begin with is_ or has_."""
    assert len(set(table.names)) == len(table.names)
    assert set(table.key) | set(table.partition_by) <= set(table.names)
    for field in table.fields:
        assert field.name == field.name.lower().strip("_")
        assert field.description
        assert field.type in DUCKDB_TYPES
        if field.type == pa.bool_() and field.name != "within_tolerance":
            assert field.name.startswith(("is_", "has_"))
        if field.name.endswith("_tokens") or field.name.endswith("_tokens_sum"):
            assert field.unit == "tokens"


def test_one_name_one_thing() -> None:
    """The same column has the same type and unit in every table."""
    kinds: dict[str, set[tuple[object, str]]] = {}
    for table in TABLES.values():
        for field in table.fields:
            kinds.setdefault(field.name, set()).add((field.type, field.unit))
    # metric and value are of the metric wherever they stand
    assert {name for name, found in kinds.items() if len(found) > 1} == set()


def _value(field: Field) -> st.SearchStrategy[Any]:
    kinds: dict[pa.DataType, st.SearchStrategy[Any]] = {
        pa.string(): st.sampled_from(field.values) if field.values else st.text(max_size=5),
        pa.bool_(): st.booleans(),
        pa.int32(): st.integers(int(field.minimum or 0), 2**31 - 1),
        pa.int64(): st.integers(int(field.minimum or 0), 2**63 - 1),
        pa.float64(): st.floats(field.minimum, field.maximum, allow_nan=False, allow_infinity=False),
        pa.timestamp("us", tz="UTC"): st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)).map(  # noqa: DTZ001
            lambda value: value.replace(tzinfo=UTC)
        ),
    }
    return st.none() | kinds[field.type] if field.nullable else kinds[field.type]


@pytest.mark.parametrize("table", STORED, ids=lambda table: table.name)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_rows_survive_arrow_duckdb_arrow_parquet(table: Table, data: st.DataObject, tmp_path: Path) -> None:
    """Rows with NULLs and extreme values, and the schema with units, come back as they were."""
    row = st.fixed_dictionaries({field.name: _value(field) for field in table.fields})
    before = table.rows(data.draw(st.lists(row, max_size=4)))
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(table.ddl())
        connection.register("given", before)
        connection.execute(f'INSERT INTO "{table.name}" SELECT * FROM given')  # noqa: S608
        for comment in table.comments():
            connection.execute(comment)
        after = table.conform(connection.sql(f'FROM "{table.name}"').to_arrow_table())
    pq.write_table(after, tmp_path / "t.parquet")
    again = pq.read_table(tmp_path / "t.parquet")
    assert again.schema.equals(table.arrow_schema, check_metadata=True)
    assert before.to_pylist() == after.to_pylist() == again.to_pylist()


def test_ddl_and_comments() -> None:
    """DDL has types and NOT NULL; comments have grain, unit, and their quotes doubled."""
    table = Table("t", "one day's turn", ("a",), (Field("a", pa.int64(), "tokens", "it's K"),
                  Field("b", pa.float64(), "", "none", nullable=True)))  # fmt: skip
    assert table.ddl() == 'CREATE TABLE "t" (\n  "a" BIGINT NOT NULL,\n  "b" DOUBLE\n)'
    assert table.comments() == [
        "COMMENT ON TABLE \"t\" IS 'one row: one day''s turn'",
        "COMMENT ON COLUMN \"t\".\"a\" IS 'it''s K [tokens]'",
        'COMMENT ON COLUMN "t"."b" IS \'none (NULL)\'',
    ]


def test_bounds_and_meanings() -> None:
    """The comment of a column holds unit, bounds, values and what the values mean; no part is left dangling."""
    share = Field("s", pa.float64(), "1", "share", minimum=0, maximum=1)
    assert (share.bounds(), share.comment()) == (">= 0, <= 1", "share [1] (>= 0, <= 1)")
    assert share.or_null("or none").comment() == "or none [1] (>= 0, <= 1 or NULL)"
    reason = Field("r", pa.string(), "", "why", values=("a", "b"), meanings=("first", "second"))
    assert reason.comment() == "why (a: first; b: second)"
    assert Field("n", pa.string(), "", "name").comment() == "name"


def test_meanings_are_those_of_the_values() -> None:
    """Where values have meanings, each has one."""
    for table in TABLES.values():
        for field in table.fields:
            assert not field.meanings or len(field.meanings) == len(field.values), field.name
    # 7 reasons of the design, too_deep; of own workloads bad_row, template, hash_mismatch and bad_number
    assert len(TABLES["rejects"].field("reason").meanings) == 12


def test_tables_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of another name, type, unit or NULL makes other tables; other words, bounds and values do not."""
    before = tables_identity()
    field = fields.SESSION_ID
    others = {"name": "sid", "type": pa.int64(), "unit": "1", "nullable": True}
    same = {"description": "x", "minimum": 1, "maximum": 2, "values": ("a",), "meanings": ("b",)}
    for is_other, changes in ((True, others), (False, same)):
        for name, value in changes.items():
            table = replace(TABLES["turns"], fields=(replace(field, **{name: value}), *TABLES["turns"].fields))
            base = replace(TABLES["turns"], fields=(field, *TABLES["turns"].fields))
            found = []
            for variant in (base, table):
                monkeypatch.setitem(TABLES, "turns", variant)
                found.append(tables_identity())
            assert (found[0] != found[1]) == is_other, name
    monkeypatch.undo()
    assert tables_identity() == before


def test_conform() -> None:
    """Columns are put in order and typed; what does not fit, is missing, or is a forbidden NULL, is refused."""
    table = Table("t", "one", ("a",), (Field("a", pa.int64(), "", ""), Field("b", pa.string(), "", "", nullable=True)))
    given_columns = pa.table({"c": [1.5], "b": [None], "a": pa.array([3], pa.int32())})
    # int32 3 -> int64 3
    assert table.conform(given_columns).to_pylist() == [{"a": 3, "b": None}]
    with pytest.raises(KeyError):
        table.conform(pa.table({"a": [1]}))
    with pytest.raises(pa.ArrowInvalid):
        table.conform(pa.table({"a": [1.5], "b": ["x"]}))
    with pytest.raises(ValueError, match="null"):
        table.conform(pa.table({"a": [1, None], "b": ["x", "y"]}))


def test_rows_refuses_unknown_columns() -> None:
    """A column that is not declared does not exist."""
    with pytest.raises(KeyError, match="turns declares no column"):
        TABLES["turns"].rows([{"cached": 3}])
    # 0 rows have the schema too
    assert TABLES["turns"].rows([]).schema.equals(TABLES["turns"].arrow_schema)


@pytest.mark.parametrize(
    ("name", "unit", "label"),
    [
        ("cached_tokens", "tokens", "cached tokens"),
        ("kappa_ratio", "1", "kappa ratio"),
        ("is_first_turn", "", "is first turn"),
        ("tdp_w", "W", "tdp w (W)"),
        ("value", "of the metric", "value (of the metric)"),
    ],
)
def test_labels(name: str, unit: str, label: str) -> None:
    """A label is the name in words, and the unit where the words do not end in it."""
    assert Field(name, pa.int64(), unit, "").label() == label


def test_or_null_is_another_field() -> None:
    """The field that it comes from stays as it is."""
    before = fields.SESSION_ID
    after = before.or_null("sometimes")
    assert (before.nullable, after.nullable, after.description) == (False, True, "sometimes")
    assert before.or_null().description == before.description


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=20))
def test_quoted(text: str) -> None:
    """Any text is one SQL literal."""
    with duckdb.connect() as connection:
        # the value comes back
        assert connection.execute(f"SELECT {quoted(text)}").fetchone() == (text,)
