"""What the columns of a model say about each other: figures that follow from its shape, and contradictions."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

from pipelines.hardware import costs
from pipelines.hardware.machines import named, read_sources
from warehouse.errors import ErrorCode
from warehouse.formulas import kappa
from warehouse.hardware_rows.reference_tables import REFERENCE
from warehouse.hardware_rows.rows import FOLDER, load_reference, user_folder
from warehouse.hardware_rows.shapes import broken_shape, indexer_bytes

MODELS = {row["model"]: row for row in load_reference("models").to_pylist()}
LATENT, WINDOWED, LINEAR, INDEXED, PLAIN, COMPRESSED = (
    "deepseek-v3", "gemma-3-27b", "qwen3-next-80b-a3b", "deepseek-v3.2", "llama-3.1-8b", "deepseek-v4-flash",
)  # fmt: skip
FOLLOWING = (
    "kv_bytes_per_token", "marginal_kv_bytes_per_token", "fixed_state_bytes", "attention_flops_per_token_pair",
    "sliding_attention_flops_per_token_pair", "absorbed_attention_flops_per_token_pair",
    "mla_upprojection_flops_per_cached_token",
)  # fmt: skip


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """Return an empty folder of a user's rows."""
    folder = user_folder(tmp_path)
    folder.mkdir()
    return folder


def put(user: Path, name: str, row: dict[str, Any]) -> None:
    """Write one row."""
    with (user / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([row, [str(v).lower() if isinstance(v, bool) else v for v in row.values()]])


@pytest.mark.parametrize("model", MODELS)
def test_twice_a_figure_is_refused(model: str) -> None:
    """Kappa's own rows fit; twice a figure that follows does not, in whatever column it is."""
    row, seen = MODELS[model], 0
    assert broken_shape(row) is None
    for column in FOLLOWING:
        is_given = "+linear" in row["attention"] and column == "fixed_state_bytes"
        is_compressed = row["attention"] == "compressed+swa" and column != "fixed_state_bytes"
        if row[column] and not is_given and not is_compressed:
            broken = broken_shape(row | {column: row[column] * 2})
            assert broken is not None
            assert (broken[0], " is not (" in broken[1]) == (column, True)
            seen += 1
    assert seen


MISSING, FOREIGN = "has to be given with attention ", "has to be 0 or empty with attention "
BROKEN: list[tuple[str, dict[str, object], str]] = [
    # 2 x 32 x 8 x (128 + 128) = 131,072; 131 KB, and the bytes at fp8
    (
        PLAIN,
        {"kv_bytes_per_token": 131},
        "is not (full_attention_layers) x 2 x kv_heads x (head_dim + v_head_dim), 131072",
    ),
    (PLAIN, {"kv_bytes_per_token": 65536}, "v_head_dim), 131072"),
    (PLAIN, {"kv_bytes_per_token": None}, MISSING + "gqa"),
    # 2 x 32 x 32 x (128 + 128) = 524,288
    (PLAIN, {"attention_flops_per_token_pair": 262144}, "2 x heads x (head_dim + v_head_dim), 524288"),
    # 2 x 0 sliding layers = 0
    (PLAIN, {"fixed_state_bytes": 1000}, "x sliding_window_tokens, 0"),
    # 32 / 6 is no whole number
    (PLAIN, {"kv_heads": 6}, "6 does not divide the 32 query heads"),
    (PLAIN, {"layers": 31}, "31 is below full + sliding + linear layers, 32"),
    (PLAIN, {"full_attention_layers": 0}, MISSING + "gqa"),
    (PLAIN, {"experts": 8}, "has to be 0 or empty with is_moe false"),
    (PLAIN, {"experts_per_token": 8}, "has to be 0 or empty with is_moe false"),
    (PLAIN, {"indexer_bytes_per_token": 132}, FOREIGN + "gqa"),
    (PLAIN, {"sliding_window_tokens": 1024}, FOREIGN + "gqa"),
    (PLAIN, {"sliding_layers": 4, "layers": 36}, FOREIGN + "gqa"),
    (PLAIN, {"linear_layers": 4, "layers": 36}, FOREIGN + "gqa"),
    *((PLAIN, {c: 512}, FOREIGN + "gqa") for c in ("kv_lora_rank", "qk_rope_head_dim", *FOLLOWING[-2:])),
    # 2 x 61 x (512 + 64) = 70,272; num_key_value_heads of the config is 128
    (LATENT, {"kv_bytes_per_token": 131072}, "x 2 x (kv_lora_rank + qk_rope_head_dim), 70272"),
    (LATENT, {"kv_heads": 128}, "128 is not 1: heads of MLA share one latent, whatever num_key_value_heads"),
    (LATENT, {"kv_lora_rank": None}, MISSING + "mla"),
    (LATENT, {"qk_rope_head_dim": None}, MISSING + "mla"),
    (LATENT, {"qk_rope_head_dim": 192}, "192 is not below head_dim 192"),
    (LATENT, {"experts_per_token": None}, "has to be given with is_moe true"),
    # 2 x 61 x 128 x (2 x 512 + 64) = 16,990,208; 2 x 61 x 128 x 512 x (192 - 64 + 128) = 2,046,820,352
    (LATENT, {FOLLOWING[-2]: None}, "is empty beside attention_flops_per_token_pair: it is (full_attention_layers)"),
    (LATENT, {FOLLOWING[-2]: 8495104}, "2 kv_lora_rank + qk_rope_head_dim), 16990208"),
    (LATENT, {FOLLOWING[-1]: 1}, "(head_dim - qk_rope_head_dim + v_head_dim), 2046820352"),
    (INDEXED, {"indexer_bytes_per_token": 0}, MISSING + "mla+indexer"),
    (WINDOWED, {"sliding_window_tokens": None}, MISSING + "gqa+swa"),
    (WINDOWED, {"sliding_layers": 0}, MISSING + "gqa+swa"),
    (WINDOWED, {"kv_bytes_per_token": 81920}, FOREIGN + "gqa+swa"),
    # 2 x 52 x 16 x (128 + 128) x 1024 = 436,207,616; 2 x 52 x 32 x (128 + 128) = 851,968
    (WINDOWED, {"fixed_state_bytes": 0}, "x sliding_window_tokens, 436207616"),
    (WINDOWED, {"sliding_attention_flops_per_token_pair": None}, "(head_dim + v_head_dim), 851968"),
    # 2 x 43 x 512 x 128 = 5,636,096
    (COMPRESSED, {"fixed_state_bytes": 524288}, "x sliding_window_tokens, 5636096"),
    (COMPRESSED, {"sliding_window_tokens": None}, MISSING + "compressed+swa"),
    (LINEAR, {"fixed_state_bytes": 0}, MISSING + "gqa+linear"),
    (LINEAR, {"linear_layers": 0}, MISSING + "gqa+linear"),
]


@pytest.mark.parametrize(("model", "cells", "why"), BROKEN)
def test_a_contradiction_is_refused(model: str, cells: dict[str, object], why: str) -> None:
    """The first column of `cells` is named, with what it has to be."""
    broken = broken_shape(MODELS[model] | cells)
    assert broken is not None
    assert broken[0] == next(iter(cells))
    assert why in broken[1]


def test_a_contradiction_has_its_place(user: Path) -> None:
    """In a file it is named with row and column."""
    put(user, "models", MODELS[PLAIN] | {"model": "ours", "kv_heads": 6})
    with refused(ErrorCode.BAD_ROW, user / "models.csv", "row 2, column kv_heads: 6 "):
        load_reference("models", user=user)


@pytest.mark.parametrize("layers", [32, 40, 48])
def test_layers_that_share_a_cache_may_attend(layers: int) -> None:
    """32 of 48 layers have a cache of their own; the others attend too, and may be counted."""
    # 2 x 32 x (128 + 128) = 16,384 a layer
    row, column = MODELS[PLAIN] | {"layers": 48}, "attention_flops_per_token_pair"
    assert broken_shape(row | {column: layers * 16_384}) is None
    for wrong in (31 * 16_384, 49 * 16_384, layers * 16_384 + 1):
        assert broken_shape(row | {column: wrong}) is not None


def test_a_latent_is_not_split() -> None:
    """num_key_value_heads 128 would divide the bytes by the GPUs, which each hold the whole latent."""
    # 1 / 8 / max(1 / 8, 1 / 128) = 1, but the latent is not split: 1 / 8 / 1 = 0.125
    assert kappa.tensor_parallel_factor(8, 128) == 8 * kappa.tensor_parallel_factor(8, 1)


def test_an_accepted_model_has_an_answer(user: Path) -> None:
    """What `is_known` says can be computed is computed, for a row without any figure of attention too."""
    put(user, "models", MODELS[LATENT] | {"model": "ours"} | dict.fromkeys(FOLLOWING[3:]))
    model = named(read_sources(FOLDER, user).models, "ours")
    assert model is not None
    assert costs.unknown(model, "attention") == ("attention_flops_per_token_pair",)


@pytest.mark.parametrize(
    ("model", "width", "why"),
    [
        # 61 x (64 + 4) = 4148; 61 x (128 + 4) = 8052
        (INDEXED, 64, "row 2, column index_head_dim: 64 makes 4148 indexer_bytes_per_token, ours has 8052"),
        (PLAIN, 128, "row 2, column model: the attention of ours is gqa"),
    ],
)
def test_an_indexer_is_its_model_s(user: Path, model: str, width: int, why: str) -> None:
    """Its keys are as wide as the bytes of its model say; plain attention has none."""
    put(user, "models", MODELS[model] | {"model": "ours"})
    put(user, "indexers", load_reference("indexers").to_pylist()[0] | {"model": "ours", "index_head_dim": width})
    with refused(ErrorCode.BAD_ROW, user / "indexers.csv", why):
        load_reference("indexers", user=user)


def test_kappa_s_own_indexers_follow_from_the_formula() -> None:
    """Bytes of an indexer are those of its shape, and every column that follows is one of `models`."""
    for row in load_reference("indexers").to_pylist():
        model = MODELS[row["model"]]
        # 61 x 132 = 8052, 78 x 132 = 10,296
        assert indexer_bytes(model["layers"], row["index_head_dim"]) == model["indexer_bytes_per_token"]
    assert set(FOLLOWING) < set(REFERENCE["models"].names)
