"""Every formula is an SQL macro of the same name, with the same arguments, equal to the last bit."""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.database.build import add_macros
from warehouse.database.engine import fetch, in_memory
from warehouse.formulas import weights
from warehouse.formulas.catalogue import MODULES, first_words, formulas, source_of

FORMULAS = formulas()

TOKENS = st.integers(1, 10**7)
CACHED = st.integers(0, 10**7)
PARAMS = st.integers(10**6, 2 * 10**12)
RATE = st.floats(1e6, 1e16)
BYTES = st.one_of(st.integers(1, 10**7), st.floats(1, 1e7))
SECONDS = st.floats(1e-9, 1e4)
SMALL = st.integers(1, 512)
SHARE = st.floats(0, 1)
PAIR = st.integers(1, 10**8)

# What an argument is drawn from: by its name, or by the formula's and its name where one name has two ranges.
RANGES: dict[str, st.SearchStrategy[Any]] = {
    "cached_tokens": CACHED, "prefill_tokens": TOKENS, "new_tokens": TOKENS, "block": SMALL,
    "full_layers": SMALL, "index_layers": SMALL, "entry_bytes": SMALL, "index_entry_bytes": SMALL,
    "key_heads": SMALL, "key_head_dim": SMALL, "value_heads": SMALL, "value_head_dim": SMALL, "conv_kernel": SMALL,
    "layer_bytes_per_token": st.integers(1, 10**5), "alignment": st.sampled_from([16, 32, 64]),
    "context_tokens": st.integers(1, 10**7),
    "window_tokens": SMALL, "chunk_tokens": SMALL, "pool_tokens": TOKENS,
    "layers": SMALL, "heads": SMALL, "kv_heads": SMALL, "head_dim": SMALL, "v_head_dim": SMALL,
    "nope_head_dim": SMALL, "kv_lora_rank": SMALL, "qk_rope_head_dim": SMALL, "tensor_parallel": SMALL,
    "element_bytes": st.sampled_from([2, 1, 1.125, 0.625]), "bits": st.sampled_from([2, 3, 4, 8]),
    "group_elements": SMALL, "group_bytes": SMALL, "weight_bytes": st.sampled_from([2, 1, 0.5]),
    "active_params": PARAMS, "total_params": PARAMS, "layer_params": PARAMS, "head_params": PARAMS, "params": PARAMS,
    "experts": st.integers(1, 512), "experts_per_token": st.just(1),
    "flops_per_token": RATE, "recompute_flops_per_token": RATE, "attention_flops": RATE, "pairs": TOKENS,
    "index_heads": SMALL, "index_head_dim": SMALL, "indexer_flops_per_pair": PAIR, "attended_pairs": TOKENS,
    "picked_pairs": TOKENS, "flops_per_pair": PAIR, "expanded_flops_per_pair": PAIR, "absorbed_flops_per_pair": PAIR,
    "upprojection_flops_per_token": PARAMS,
    "kv_bytes_per_token": BYTES, "window_bytes_per_token": BYTES, "chunk_bytes_per_token": BYTES,
    "state_bytes": BYTES, "bf16_bytes": BYTES, "kv_bytes": BYTES, "kv_bytes_per_request": st.integers(0, 10**12),
    "bytes_per_s": RATE, "flop_per_s": RATE, "hbm_bytes_per_s": RATE, "to_host_bytes_per_s": RATE,
    "to_device_bytes_per_s": RATE, "duplex_bytes_per_s": RATE,
    "link_bytes_per_s": RATE, "tier_bytes_per_s": RATE, "tier_share": SHARE, "transfer_share": SHARE,
    "kappa_m_flop_per_byte": RATE, "kappa_hw_byte_per_flop": SECONDS, "kappa_ratio": RATE, "kappa_crit": SECONDS,
    "pcie_overhead": RATE, "transfer_s": SECONDS, "compute_s": SECONDS, "weights_s": SECONDS,
    "marginal_kv_bytes": BYTES, "kv_dtype": st.sampled_from(["bf16", "fp8", "int8", "int4"]),
    "bytes": st.floats(0, 1e15), "block_tokens": SMALL, "token_bytes": BYTES,
    "rate_per_s": st.floats(1e-3, 1e3), "service_s": SECONDS, "square_s2": SECONDS, "load_s": SECONDS,
    "hbm_bytes": RATE, "weights_bytes": RATE, "memory_share": SHARE, "cap_w": st.floats(1, 2000),
    "standby_w": st.floats(1, 100), "tdp_w": st.floats(200, 2000), "span_s": SECONDS,
    "computing_s": SECONDS, "usd_p": st.floats(0.1, 5), "usd_q": st.floats(6, 50), "load_s_p": st.floats(1, 5),
    "load_s_q": st.floats(1e-3, 0.05), "compute_s_p": SECONDS, "compute_s_q": SECONDS,
    "idle_w": st.floats(1, 2000), "busy_w": st.floats(1, 2000),
    "expert_params": RATE, "tokens": TOKENS, "quantised_params": PARAMS, "wide_params": PARAMS,
    "quantised_weight_bytes": st.sampled_from([2, 1, 0.5625, 0.53125]), "weight_bytes_of_all": RATE,
    "gpus": SMALL, "used_share": SHARE, "reserved_bytes": RATE, "pieces": SMALL, "copied_bytes": BYTES,
    "copy_latency_s": SECONDS, "node_bytes_per_s": RATE, "loaders": SMALL, "flops": RATE, "read_bytes": RATE,
    "hidden_size": SMALL, "layer_s": SECONDS, "node_layer_s": SECONDS, "floor_s": SECONDS, "token_s": SECONDS,
    "batch": SMALL,
}  # fmt: skip


@pytest.fixture(scope="module")
def sql() -> Iterator[Callable[..., Any]]:
    """Return a function that computes a formula in DuckDB."""
    with in_memory() as connection:
        add_macros(connection)

        def call(name: str, *values: float) -> Any:  # noqa: ANN401 - a number, or a struct of two
            arguments = ", ".join(f"${n}" for n in range(1, len(values) + 1))
            return connection.execute(f"SELECT {name}({arguments})", list(values)).fetchall()[0][0]

        yield call


def test_every_formula_has_its_macro() -> None:
    """Same names and same arguments in the same order, on both sides: no formula without macro, no macro without."""
    with in_memory() as connection:
        add_macros(connection)
        query = "SELECT function_name, parameters FROM duckdb_functions() WHERE schema_name = 'main' AND NOT internal"
        macros = {row["function_name"]: tuple(row["parameters"]) for row in fetch(connection, query).to_pylist()}
    assert FORMULAS.keys() - macros.keys() == set()
    assert macros.keys() - FORMULAS.keys() == set()
    assert macros == {name: tuple(inspect.signature(f).parameters) for name, f in FORMULAS.items()}


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_docstring_is_complete(name: str) -> None:
    """A formula says what it returns and in which unit, and where it comes from."""
    text = inspect.getdoc(FORMULAS[name]) or ""
    first = text.split("\n\n")[0]
    assert first.startswith("Return ")
    units = r"token|byte|FLOP|seconds|dimensionless|0 to 1|max\(|watts|joules|parameters|requests a second|pairs"
    assert re.search(units, first)
    # one source of its own of at least three words: a publication, a config, or the derivation in a line
    assert text.count("Source: ") == 1
    assert len(source_of(FORMULAS[name]).split()) >= 3


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_sql_equals_python(name: str, sql: Callable[..., Any]) -> None:
    """Random inputs give the same bits."""
    function = FORMULAS[name]
    arguments = st.tuples(*(RANGES[parameter] for parameter in inspect.signature(function).parameters))

    @settings(deadline=None, max_examples=60)
    @given(values=arguments)
    def check(values: tuple[float, ...]) -> None:
        ours, theirs = function(*values), sql(name, *values)
        if isinstance(ours, tuple):
            assert tuple(theirs.values()) == ours
        else:
            # repr shows every bit of a double: 0.1 + 0.2 is not 0.3
            assert repr(float(ours)) == repr(float(theirs))

    check()


@pytest.mark.parametrize("experts_per_token", [1, 2, 8])
def test_touched_experts_in_sql(sql: Callable[..., Any], experts_per_token: int) -> None:
    """The power is the same function on both sides for mixtures as they are built."""
    for tokens in (1, 2, 12, 64, 300, 5000):
        values = (1_774_190_592, 128, experts_per_token, tokens)
        assert weights.touched_expert_params(*values) == sql("touched_expert_params", *values)


def test_no_new_token_is_an_error_in_sql_too(sql: Callable[..., Any]) -> None:
    """T = 0 is never an infinity."""
    with pytest.raises(Exception, match="at least one token"):
        sql("kappa_ratio", 10, 0)
    # no bytes to load: any number of requests
    assert sql("requests_per_s", 50e9, 0) == math.inf


def test_macros_work_in_an_attached_database(tmp_path: Path) -> None:
    """A person who attaches the file reaches them by the name of the database."""
    import duckdb  # noqa: PLC0415

    path = tmp_path / "w.duckdb"
    with in_memory() as connection:
        connection.execute(f"ATTACH '{path}' AS w (STORAGE_VERSION 'v1.4.0')")
        connection.execute("USE w")
        add_macros(connection)
        connection.execute("USE memory")
        connection.execute("DETACH w")
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS w (READ_ONLY)")
        # max(8, 4) + 4 / 4 = 9
        assert connection.execute("SELECT w.layerwise_ttft_s(8, 4, 4)").fetchall() == [(9.0,)]


def test_docs_list_every_formula() -> None:
    """The page on kappa_crit quotes each formula with its arguments and what it returns, and no other."""
    text = (Path(__file__).parents[4] / "docs" / "kappa-crit.md").read_text("utf8")
    quoted = {
        f"| `{name}({', '.join(inspect.signature(function).parameters)})` | {first_words(function)} "
        f"| {source_of(function)} |"
        for name, function in FORMULAS.items()
    }
    assert set(re.findall(r"^\| `\w+\(.+$", text, re.MULTILINE)) == quoted


def test_no_formula_is_left_out() -> None:
    """Every public function of the five modules is a formula, by its own definition and not by an import."""
    for module in MODULES:
        tree = ast.parse(inspect.getsource(module))
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name[0] != "_"}
        assert {name for name, function in FORMULAS.items() if function.__module__ == module.__name__} == defined
