"""Cost models `attention` and `full`: figures by hand, and boundness against an implementation turn by turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.hardware import costs
from pipelines.hardware.boundness import boundness
from pipelines.hardware.costs import Machine
from pipelines.hardware.entities import Model, Pair, typed
from pipelines.hardware.machines import read_sources
from pipelines.hardware.prefill.parts import Rates
from pipelines.hardware.ratios import hardware_tables
from pipelines.hardware.served import DEFAULT, serve
from pipelines.hardware.what_if import Setting
from pipelines.hardware.workload_answers import workload_answer
from warehouse.declared.tables import BOUNDNESS
from warehouse.formulas import attention, kv_bytes
from warehouse.hardware_rows.rows import load_reference

SHARES = [name for name in BOUNDNESS.names if name.endswith("_share") or name.startswith("pcie_overhead")]
TURN = st.tuples(st.integers(0, 500_000), st.integers(1, 20_000))
# An H100 that sustains its peaks in every part, with bf16 weights.
PEAKS = Rates(*[989.5e12] * 4, 3350e9, 3350e9, 2.0, 2.0, 300e9, 1, 0.0, 0.0, 0.0)
H100 = Machine(989.5e12, 64e9, 3350e9, rates=PEAKS)


@pytest.fixture(scope="module")
def hardware() -> dict[str, pa.Table]:
    """Return the hardware tables, built once."""
    return hardware_tables()


@pytest.fixture(scope="module")
def models() -> Mapping[str, Model]:
    """Return the models by name."""
    return read_sources().models


def run(turns: list[tuple[int, int]], hardware: dict[str, pa.Table], tokenizer: str = "llama-3.1") -> pa.Table:
    """Return `boundness` of (K, T) pairs."""
    batch = {"cached_tokens": np.array(turns)[:, 0], "prefill_tokens": np.array(turns)[:, 1]}
    names = {"workload": "w", "tokenizer": tokenizer, "counting": "text", "reuse": "history"}
    return boundness([batch], **names, hardware=hardware, headlines=load_reference("headlines"))


def quantile(values: list[float], q: float) -> float:
    """Return the quantile by linear interpolation between neighbours."""
    ordered = sorted(values)
    low = int(q * (len(ordered) - 1))
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (q * (len(ordered) - 1) - low)


def seconds_of_gpu(  # noqa: PLR0913, PLR0917 - a model, a machine and a turn
    model: dict[str, Any], accelerator: dict[str, Any], row: dict[str, Any], matmul: float, between: float,
    cache_bytes: float, turn: tuple[int, int],
) -> float:  # fmt: skip
    """Return t_GPU of one turn, written out from the shapes of the config and not from the formulae of kappa."""
    k, t = turn
    kind, gpus = row["cost_model"], row["tensor_parallel"]
    pairs = k * t + t * (t + 1) // 2
    if model["attention"] == "mla":
        rank, rope, value, nope = model["kv_lora_rank"], model["qk_rope_head_dim"], model["v_head_dim"], 128
        each = 2 * model["layers"] * model["heads"]
        absorbed = each * (rank + rope + rank) * pairs
        expanded = each * (nope + rope + value) * pairs + each * rank * (nope + value) * k
        context = min(absorbed, expanded)
    else:
        context = 2 * model["layers"] * model["heads"] * (model["head_dim"] + model["v_head_dim"]) * pairs
    reads = 0 if kind == "attention" else 1 / (0.82 * accelerator["hbm_bytes_per_s"] * gpus)
    experts, drawn = model["experts"] or 1, model["experts_per_token"] or 0
    each = (model["total_params"] - model["active_params"]) / (experts - drawn) if drawn else 0
    dense = model["layer_params"] - drawn * each
    # Weights in fp8 take a byte and are multiplied at the fp8 peak, where there is one; the head stays in bf16.
    is_fp8 = row["weight_dtype"] == "fp8"
    fast = (
        accelerator["dense_fp8_flop_per_s"] if row["compute_dtype"] == "fp8" else accelerator["dense_bf16_flop_per_s"]
    )
    rate, slow, weight = matmul * fast * gpus, matmul * accelerator["dense_bf16_flop_per_s"] * gpus, 1 if is_fp8 else 2
    read = experts * each * (1 - (1 - drawn / experts) ** t)
    cache = k * cache_bytes * max(1 / gpus, 1 / model["kv_heads"]) * gpus
    parts = [
        max(2 * dense * t / (0.72 * rate), dense * weight * reads),
        max(2 * drawn * each * t / (0.28 * rate), read * weight * reads),
        max(2 * model["head_params"] / (0.72 * slow), 2 * model["head_params"] * reads),
        max(context / (0.75 * slow), cache * reads),
        2 * model["layers"] * 4 * t * model["hidden_size"] * (gpus - 1) / gpus / between,
    ]
    return float(sum(parts))


def naive(turns: list[tuple[int, int]], row: dict[str, Any], hardware: dict[str, pa.Table]) -> dict[str, float]:
    """Return the shares of one row of the table, turn by turn."""
    of = {name: {r[name[:-1]]: r for r in hardware[name].to_pylist()} for name in ("models", "accelerators", "links")}
    model, link = of["models"][row["model"]], of["links"][row["link"]]
    accelerator, block = of["accelerators"][row["accelerator"]], row["block_tokens"]
    measured = accelerator["measured_bf16_flop_per_s"]
    matmul = measured / accelerator["dense_bf16_flop_per_s"] if measured else 0.803
    between = {"a100-sxm-80gb": 200e9, "b200-sxm": 600e9, "gb200": 600e9}.get(row["accelerator"], 300e9)
    token_bytes = model["kv_bytes_per_token"] / (2 if row["kv_dtype"] == "fp8" else 1)
    bandwidth = link["sustained_bytes_per_s"] or link["peak_bytes_per_s"]
    blocked = [(k - k % block, t + k % block) for k, t in turns]
    share = max(1 / row["tensor_parallel"], 1 / model["kv_heads"])
    load = [k * token_bytes * share / bandwidth for k, _ in blocked]
    gpu = [seconds_of_gpu(model, accelerator, row, matmul, between, token_bytes, turn) for turn in blocked]
    bound = [a > b for a, b in zip(load, gpu, strict=True)]
    both = [a + b for a, b in zip(load, gpu, strict=True)]
    overheads = [a / b for a, b in zip(load, gpu, strict=True)]
    return {
        "memory_bound_turn_share": sum(bound) / len(turns),
        "memory_bound_token_share": sum(k + t for (k, t), b in zip(turns, bound, strict=True) if b)
        / sum(k + t for k, t in turns),
        "memory_bound_time_share": sum(s for s, b in zip(both, bound, strict=True) if b) / sum(both),
        "transfer_time_share": sum(load) / sum(both),
        "over_context_turn_share": sum(k + t > model["max_context_tokens"] for k, t in turns) / len(turns),
        "pcie_overhead_p50": quantile(overheads, 0.5),
        "pcie_overhead_p90": quantile(overheads, 0.9),
        "pcie_overhead_p99": quantile(overheads, 0.99),
    }


@settings(deadline=None, max_examples=25)  # the machine may be busy
@given(
    turns=st.lists(TURN, min_size=1, max_size=40),
    picks=st.lists(st.integers(0, 10**6), min_size=6, max_size=6),
    tokenizer=st.sampled_from(["llama-3.1", "qwen3"]),
)
def test_equal_to_turn_by_turn(
    hardware: dict[str, pa.Table], turns: list[tuple[int, int]], picks: list[int], tokenizer: str
) -> None:
    """Random turns, random rows of cost model attention or full: all eight figures agree with the naive ones."""
    names = {row["model"] for row in load_reference("headlines").to_pylist()}
    found = run(turns, hardware, tokenizer).to_pylist()
    rows = [row for row in found if row["cost_model"] != "2n" and row["model"] in names]
    for pick in picks:
        row = rows[pick % len(rows)]
        assert {name: row[name] for name in SHARES} == pytest.approx(naive(turns, row, hardware), rel=1e-9, abs=1e-12)


@settings(deadline=None, max_examples=10)  # the machine may be busy
@given(data=st.data(), turns=st.lists(TURN, min_size=2, max_size=30))
def test_order_does_not_matter(
    hardware: dict[str, pa.Table], data: st.DataObject, turns: list[tuple[int, int]]
) -> None:
    """The table is the same to the last bit however the turns arrive."""
    assert run(turns, hardware).equals(run(data.draw(st.permutations(turns)), hardware))


def test_rows_of_the_headlines(hardware: dict[str, pa.Table]) -> None:
    """Each headline model of the tokenizer on each physical headline platform, at three block sizes, two dtypes."""
    table = run([(1000, 10)], hardware)
    headlines = load_reference("headlines").to_pylist()
    names = {row["model"] for row in headlines}
    rows = [row for row in table.to_pylist() if row["cost_model"] != "2n" and row["model"] in names]
    platforms = [row for row in headlines if row["accelerator"] and row["basis"] != "paper"]
    # 4 models (three Llama, DeepSeek-V3 by proxy) x 6 platforms x 3 blocks x 2 dtypes x 2 cost models
    assert len(rows) == 4 * len(platforms) * 3 * 2 * 2
    assert {row["basis"] for row in rows} == {"physical"}
    assert all(row["kappa_crit"] is None for row in rows)
    keys = {tuple(row[column] for column in BOUNDNESS.key) for row in table.to_pylist()}
    assert len(keys) == table.num_rows


def test_a_model_with_a_window_gets_rows_by_its_own_formula(hardware: dict[str, pa.Table]) -> None:
    """A headline without a kappa_crit is joined by its bytes at each K, under 2n too."""
    extra = {"model": "gpt-oss-120b", "accelerator": None, "link": None, "basis": None}
    headlines = pa.Table.from_pylist([*load_reference("headlines").to_pylist(), extra])
    batch = {"cached_tokens": np.array([100, 100_000]), "prefill_tokens": np.array([10, 10])}
    names = {"workload": "w", "tokenizer": "llama-3.1", "counting": "text", "reuse": "history"}
    rows = boundness([batch], **names, hardware=hardware, headlines=headlines).to_pylist()
    ours = [row for row in rows if row["model"] == "gpt-oss-120b" and row["cost_model"] == "2n"]
    row = next(row for row in ours if (row["accelerator"], row["block_tokens"]) == ("h100-sxm", 1))
    assert row["kv_dtype"] == "bf16"
    # K = 100,000: 100,000 x 36,864 + 128 x 36,864 = 3.6911e9 bytes / 54.4e9 = 0.067852 s
    # t_GPU: 10 x 2 x 5,711,982,912 / (0.25 x 989.5e12) = 4.6181e-4 s; ratio 146.9
    # K = 100: 100 x (36,864 + 36,864) = 7,372,800 bytes -> 1.3553e-4 s; ratio 0.2935; p99 = 0.2935 + 0.99 x 146.63
    assert row["pcie_overhead_p99"] == pytest.approx(0.2935 + 0.99 * (146.926 - 0.2935), rel=1e-3)


def test_no_model_is_silently_absent(hardware: dict[str, pa.Table]) -> None:
    """Each first-hand model with parameters has rows; one without kappa_crit has them at block 1."""
    models = [
        row for row in hardware["models"].to_pylist() if row["active_params"] and row["confidence"] != "secondary"
    ]
    for tokenizer in ("llama-3.1", "qwen3"):
        rows = run([(1000, 10), (50_000, 30)], hardware, tokenizer).to_pylist()
        names = {row["model"] for row in models if row["tokenizer"] == tokenizer}
        assert names <= {row["model"] for row in rows}
        varying = {row["model"] for row in models if row["kv_bytes_per_token"] is None} & names
        assert {row["block_tokens"] for row in rows if row["model"] in varying} == {1}
        complete = {row["model"] for row in models if not costs.unknown(typed(Model, [row])[0], "attention")}
        for name in varying & complete:
            assert {row["cost_model"] for row in rows if row["model"] == name} == {"2n", "attention", "full"}


def test_a_window_by_its_answer_to_the_workload(hardware: dict[str, pa.Table]) -> None:
    """The row of a model that is no headline is what `kappa crit --workload` answers, computed on another path."""
    sources, turns = read_sources(), [(1000, 10), (50_000, 30), (200, 900)]
    model, rows = sources.models["gemma-3-27b"], run(turns, hardware).to_pylist()
    found = [row for row in rows if (row["model"], row["accelerator"]) == ("gemma-3-27b", "h100-sxm")]
    assert len(found) == 6  # 3 cost models x 2 formats
    for row in found:
        pair = Pair(row["accelerator"], row["link"], row["basis"])
        machine = serve(sources, pair, model, DEFAULT, kv_dtype=row["kv_dtype"]).machine
        setting = Setting(model, machine, row["kv_dtype"], row["cost_model"])
        answer = workload_answer(setting, *np.array(turns).T)
        shares = {name: getattr(answer, name) for name in SHARES if name.endswith("_share")}
        overheads = {f"pcie_overhead_{at}": of.pcie_overhead for at, of in answer.percentiles().items()}
        assert {name: row[name] for name in SHARES} == pytest.approx(shares | overheads)


@pytest.mark.parametrize(
    ("model", "params", "percent"),
    [("llama-3.1-405b", 405e9, 33), ("llama-3.1-70b", 70e9, 61), ("qwen3-235b-a22b", 22e9, 229)],
)
def test_attention_is_not_a_tenth(models: Mapping[str, Model], model: str, params: float, percent: int) -> None:
    """At 65K tokens attention adds 33, 61 and 229 % to the paper's 2N, twice that to a token after a cached context."""
    row = models[model]
    fresh = costs.context_flops(row, 0.0, 65536.0) / (65536 * 2 * params)
    # 405b: 4 x 126 x 128 x 128 = 8,257,536; x 65,537 / 2 / (2 x 405e9) = 0.334
    assert round(100 * fresh) == percent
    one_more = costs.context_flops(row, 65536.0, 1.0) / (2 * params)
    # 8,257,536 x 65,537 / (2 x 405e9) = 0.668
    assert one_more == pytest.approx(2 * fresh)


@pytest.mark.parametrize(
    ("model", "part", "tokens"), [("llama-3.1-70b", "linear_s", 295.4), ("qwen3-235b-a22b", "expert_s", 4726)]
)
def test_reading_the_weights_bounds_small_prefills(
    models: Mapping[str, Model], model: str, part: str, tokens: float
) -> None:
    """Below some 300 new tokens (dense layers) or 4,700 (experts of Qwen3-235B) a part is as long as its reading."""
    row = models[model]

    def reading_holds(prefill: float) -> bool:
        full, computed = (costs.prefill_parts(row, H100, 0.0, prefill, name) for name in ("full", "attention"))
        return bool(getattr(full, part) > getattr(computed, part))

    # 2 P T / C = 2 P / H: T = 989.5e12 / 3350e9 = 295.4; of experts x 128 / 8
    assert reading_holds(tokens * 0.99)
    assert not reading_holds(tokens * 1.01)


def test_full_by_hand(models: Mapping[str, Model]) -> None:
    """One token of a dense model reads it once; more than the floor is computed."""
    row = models["llama-3.1-70b"]
    # 2 x (68,452,352,000 + 1,050,673,152) / 3350e9 = 0.041494 s
    assert costs.compute_s(row, H100, 0.0, 1.0, "full") == pytest.approx(0.041494, abs=1e-6)
    # 10,000 tokens: (2 x 68,452,352,000 x 10,000 + 2,621,440 x 50,005,000) / 989.5e12 + 2 x 1,050,673,152 / 3350e9
    assert costs.compute_s(row, H100, 0.0, 10_000.0, "full") == pytest.approx(1.516675, abs=1e-5)
    with pytest.raises(ValueError, match="rates of the parts"):
        costs.compute_s(row, Machine(1e15, 1e9), 0.0, 1.0, "full")


def test_experts_drawn(models: Mapping[str, Model]) -> None:
    """One token reads the active parameters, many read all of them, without the embedding."""
    row = models["qwen3-235b-a22b"]
    # 20,946,099,712 + 622,329,856 = 21,568,429,568; + 235,093,634,560 - 22,190,763,520 = 234,471,300,608
    assert costs.read_s(row, H100, 1.0) * 3350e9 / 2 == pytest.approx(21_568_429_568)
    assert costs.read_s(row, H100, 5000.0) * 3350e9 / 2 == pytest.approx(234_471_300_608)


@given(cached=st.integers(0, 60), prefill=st.integers(1, 40), window=st.integers(1, 50))
def test_pairs_are_what_each_token_sees(cached: int, prefill: int, window: int) -> None:
    """Every closed form against a count, token by token."""
    places = range(cached, cached + prefill)
    # the token at place p sees p + 1 tokens, itself included
    assert attention.attended_pairs(cached, prefill) == sum(p + 1 for p in places)
    assert attention.windowed_pairs(cached, prefill, window) == sum(min(p + 1, window) for p in places)
    assert attention.chunked_pairs(cached, prefill, window) == sum(p % window + 1 for p in places)


@settings(deadline=None, max_examples=20)  # the machine may be busy
@given(turns=st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**5)), min_size=1, max_size=20))
def test_arrays_give_what_numbers_give(models: Mapping[str, Model], turns: list[tuple[int, int]]) -> None:
    """A formula over arrays is the formula element by element, for every kind of attention."""
    cached, prefill = np.array(turns, float).T
    for row in {row.attention: row for row in models.values()}.values():
        loaded = costs.kv_bytes(row, cached, "int4")
        assert loaded.tolist() == [costs.kv_bytes(row, float(k), "int4") for k, _ in turns]
        if costs.is_known(row, "full"):
            gpu = costs.compute_s(row, H100, cached, prefill, "full")
            assert gpu.tolist() == pytest.approx([costs.compute_s(row, H100, k, t, "full") for k, t in turns])


@pytest.mark.parametrize(
    ("model", "cached", "expected"),
    [
        # 36,864 x 100 in 18 full layers + 36,864 x 100 in 18 windows that are not full
        ("gpt-oss-120b", 100, 36_864 * 100 + 36_864 * 100),
        # beyond 128 tokens a window holds 128: + 4,718,592
        ("gpt-oss-120b", 10_000, 36_864 * 10_000 + 4_718_592),
        # 10,000 mod 8,192 = 1,808 tokens of the open chunk; 1,207,959,552 / 8,192 = 147,456 bytes each
        ("llama-4-scout-17b-16e", 10_000, 49_152 * 10_000 + 147_456 * 1_808),
        # the recurrent state stands beside the 12 full layers
        ("qwen3-next-80b-a3b", 10_000, 24_576 * 10_000 + 77_266_944),
        ("qwen3-next-80b-a3b", 0, 0),
        # latent and indexer keys: (70,272 + 8,052) x 10,000
        ("deepseek-v3.2", 10_000, 78_324 * 10_000),
        # no full layer at all: 4,096 tokens of window, whatever K is
        ("mistral-7b-v0.1", 20_000, 536_870_912),
        ("llama-3.1-70b", 10_000, 3_276_800_000),
        # 24 layers x (512 + 64) x 2 bytes, and the state of 69 layers
        ("kimi-k3", 10_000, 27_648 * 10_000 + 449_372_160),
    ],
)
def test_bytes_that_are_not_constant(models: Mapping[str, Model], model: str, cached: int, expected: int) -> None:
    """Each kind of cache has its own formula."""
    assert costs.kv_bytes(models[model], float(cached), "bf16") == expected


def test_an_fp8_cache_that_is_not_half(models: Mapping[str, Model]) -> None:
    """DeepSeek-V4 keeps a part of each entry in bf16: its fp8 bytes are its own, and others are half."""
    row = models["deepseek-v4-flash"]
    # 21 x (584 + 132) / 4 + 20 x 584 / 128 = 3,850.25 a token and not 6,880 / 2; full windows: 5,636,096 / 2
    assert costs.kv_bytes(row, 10_000.0, "fp8") == 3_850.25 * 10_000 + 2_818_048
    assert costs.kv_bytes(row, 10_000.0, "bf16") == 6_880 * 10_000 + 5_636_096
    # sparse MLA: 61 x (512 fp8 + 16 of scales + 128 of bf16 rope + 132 of the indexer)
    assert costs.kv_bytes(models["deepseek-v3.2"], 1.0, "fp8") == 61 * (656 + 132)
    # 327,680 / 2; 4.5 bits an element: 327,680 x 9 / 32
    assert costs.kv_bytes(models["llama-3.1-70b"], 1.0, "fp8") == 163_840
    assert costs.kv_bytes(models["llama-3.1-70b"], 1.0, "nvfp4") == 92_160


def test_what_the_tables_do_not_know_is_not_computed(models: Mapping[str, Model]) -> None:
    """A model without parameters has no 2N, one without its indexer no attention; what is missing is named."""
    assert costs.is_known(models["deepseek-v3.2"], "full")
    bare = replace(models["deepseek-v3.2"], index_heads=None, index_picked_tokens=None)
    assert costs.is_known(bare, "2n")
    assert costs.unknown(bare, "attention") == ("index_heads", "index_picked_tokens")
    assert costs.unknown(replace(models["kimi-k3"], active_params=None), "2n") == ("active_params",)
    assert "attention" in costs.unknown(models["deepseek-v4-pro"], "full")
    assert costs.is_known(models["gpt-oss-20b"], "full")


def test_an_indexer_scores_every_pair_and_attention_computes_those_it_picks(models: Mapping[str, Model]) -> None:
    """DeepSeek-V3.2: 64 heads of 128 pick 2,048 tokens for each new one; GLM-5 has 32 heads."""
    row = models["deepseek-v3.2"]
    # a score: 2 x 61 x 64 x 129 = 1,007,232; pairs 2 x 10,000 + 3 = 20,003; picked 2 x 2,048 = 4,096, absorbed
    expected = 1_007_232 * 20_003 + 16_990_208 * 4_096
    assert costs.context_flops(row, 10_000.0, 2.0) == expected
    # while fewer than 2,048 tokens stand, every pair is picked: T = 1,000 after K = 500 has 1,000,500 pairs,
    # expanded 4,997,120 x 1,000,500 + 2,046,820,352 x 500 = 6.023e12 < absorbed 1.700e13
    pairs = 1000 * 500 + 1000 * 1001 // 2
    assert costs.context_flops(row, 500.0, 1000.0) == 4_997_120 * pairs + 2_046_820_352 * 500 + 1_007_232 * pairs
    # beyond, one by one: token i of 600 sees min(K + i, 2,048)
    picked = sum(min(1800 + i, 2048) for i in range(1, 601))
    glm = models["glm-5"]
    seen = 600 * 1800 + 600 * 601 // 2
    # 2 x 78 x 32 x 129 = 643,968
    mla = min(5_111_808 * picked + 2_290_089_984 * 1800, 10_862_592 * picked)
    assert costs.context_flops(glm, 1800.0, 600.0) == mla + 643_968 * seen


@pytest.mark.parametrize(("tensor_parallel", "bytes_factor"), [(1, 1), (8, 8), (16, 8)])
def test_tensor_parallel(models: Mapping[str, Model], tensor_parallel: int, bytes_factor: int) -> None:
    """Eight key-value heads spread over at most eight GPUs; what is computed spreads over all."""
    machine = costs.share_between(H100, tensor_parallel)
    # share of a GPU: max(1 / 16, 1 / 8) = 1 / 8; K = 1000 at 327,680 bytes over a link of 64 GB/s
    load = 1000 * 327_680 / 64e9
    assert costs.transfer_s(models["llama-3.1-70b"], machine, 1000.0, "bf16") == pytest.approx(load / bytes_factor)
    assert (machine.flop_per_s, machine.bytes_per_s) == (989.5e12 * tensor_parallel, 64e9)
    # a latent is on every GPU: no byte is spared
    assert costs.transfer_s(models["deepseek-v3"], machine, 1000.0, "bf16") == pytest.approx(1000 * 70_272 / 64e9)


@pytest.mark.parametrize(
    ("model", "gpus", "share_of_tokens", "share_of_state"),
    [
        ("qwen3-next-80b-a3b", 8, 1 / 2, 1 / 8),  # 2 KV heads, 32 value heads of its linear layers
        ("qwen3-next-80b-a3b", 64, 1 / 2, 1 / 32),  # no finer than those
        ("kimi-k3", 8, 1, 1 / 8),  # a latent on each GPU, a state that is shared
        ("gpt-oss-120b", 8, 1 / 8, 1 / 8),  # windows are keys and values too
        ("gpt-oss-120b", 16, 1 / 8, 1 / 8),
    ],
)
def test_a_state_is_shared_by_its_own_heads(
    models: Mapping[str, Model], model: str, gpus: int, share_of_tokens: float, share_of_state: float
) -> None:
    """Each GPU loads its part of the recurrent state, whatever KV heads are repeated."""
    row = models[model]
    per_token, state = costs.held_bytes(row, "bf16")
    expected = 10_000 * per_token * share_of_tokens + state * share_of_state
    assert costs.gpu_kv_bytes(row, 10_000.0, "bf16", gpus) == pytest.approx(expected)
    # all bytes counted once, however many GPUs
    assert costs.kv_bytes(row, 10_000.0, "bf16") == pytest.approx(10_000 * per_token + state)


def test_mla_takes_the_cheaper_form(models: Mapping[str, Model]) -> None:
    """One token over a long context is absorbed, a long prefill is expanded."""
    row = models["deepseek-v3"]
    # absorbed: 16,990,208 x 10,001 = 1.699e11; expanded: 4,997,120 x 10,001 + 2,046,820,352 x 10,000 = 2.05e13
    assert costs.context_flops(row, 10_000.0, 1.0) == 16_990_208 * 10_001
    # T = 10,000: pairs 1.50005e8; expanded 7.496e14 + 2.047e13 = 7.701e14 < absorbed 2.549e15
    assert costs.context_flops(row, 10_000.0, 10_000.0) == 4_997_120 * 150_005_000 + 2_046_820_352 * 10_000


def test_recomputing_is_a_prefill_of_everything(models: Mapping[str, Model]) -> None:
    """Without the cache K and T are computed together."""
    row = models["llama-3.1-8b"]
    assert costs.recompute_s(row, H100, 90.0, 10.0, "attention") == costs.compute_s(row, H100, 0.0, 100.0, "attention")


@pytest.mark.parametrize(
    ("dtype", "bytes_"), [("bf16", 327_680), ("fp8", 163_840), ("int8", 184_320), ("int4", 102_400)]
)
def test_quantised_bytes(models: Mapping[str, Model], dtype: str, bytes_: int) -> None:
    """Groups of 32 share four bytes: 8 bits take 1.125 bytes an element, 4 bits 0.625."""
    # 327,680 x 1.125 / 2 = 184,320; x 0.625 / 2 = 102,400
    assert costs.kv_bytes(models["llama-3.1-70b"], 1.0, dtype) == bytes_
    assert kv_bytes.KV_ELEMENT_BYTES[dtype] == bytes_ * 2 / 327_680
