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
from warehouse.hardware_rows.shapes import broken_shape
from warehouse.hardware_rows.worked_out import ASSUMED, completed, figures

MODELS = {row["model"]: row for row in load_reference("models").to_pylist()}
LATENT, WINDOWED, LINEAR, INDEXED, PLAIN, COMPRESSED = (
    "deepseek-v3", "gemma-3-27b", "qwen3-next-80b-a3b", "deepseek-v3.2", "llama-3.1-8b", "deepseek-v4-flash",
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
def test_kappa_s_own_rows_fit(model: str) -> None:
    """No row contradicts its shape."""
    assert broken_shape(MODELS[model]) is None


MISSING, FOREIGN = "has to be given with attention ", "has to be 0 or empty with attention "
BROKEN: list[tuple[str, dict[str, object], str]] = [
    # 32 / 6 is no whole number
    (PLAIN, {"kv_heads": 6}, "6 does not divide the 32 query heads"),
    (PLAIN, {"layers": 31}, "31 is below full + sliding + linear + sharing layers, 32"),
    (PLAIN, {"layers": 33, "kv_shared_layers": 2}, "33 is below full + sliding + linear + sharing layers, 34"),
    (PLAIN, {"full_attention_layers": 0}, MISSING + "gqa"),
    (PLAIN, {"experts": 8}, "has to be 0 or empty with is_moe false"),
    (PLAIN, {"experts_per_token": 8}, "has to be 0 or empty with is_moe false"),
    (PLAIN, {"sliding_window_tokens": 1024}, FOREIGN + "gqa"),
    (PLAIN, {"sliding_layers": 4, "layers": 36}, FOREIGN + "gqa"),
    (PLAIN, {"linear_layers": 4, "layers": 36}, FOREIGN + "gqa"),
    *((PLAIN, {column: 128}, FOREIGN + "gqa") for column in (
        "kv_lora_rank", "qk_rope_head_dim", "sliding_kv_heads", "sliding_head_dim", "linear_key_heads",
        "linear_conv_kernel", "index_layers", "index_heads", "index_head_dim", "index_picked_tokens",
    )),
    (LATENT, {"kv_heads": 128}, "128 is not 1: heads of MLA share one latent, whatever num_key_value_heads"),
    (LATENT, {"kv_lora_rank": None}, MISSING + "mla"),
    (LATENT, {"qk_rope_head_dim": None}, MISSING + "mla"),
    (LATENT, {"qk_rope_head_dim": 192}, "192 is not below head_dim 192"),
    (LATENT, {"experts_per_token": None}, "has to be given with is_moe true"),
    (INDEXED, {"index_layers": None}, MISSING + "mla+indexer"),
    (INDEXED, {"index_head_dim": None}, MISSING + "mla+indexer"),
    (INDEXED, {"index_layers": 62}, "62 is above full_attention_layers, 61"),
    (WINDOWED, {"sliding_window_tokens": None}, MISSING + "gqa+swa"),
    (WINDOWED, {"sliding_layers": 0}, MISSING + "gqa+swa"),
    (WINDOWED, {"sliding_kv_heads": 5}, "5 does not divide the 32 query heads"),
    (COMPRESSED, {"sliding_window_tokens": None}, MISSING + "compressed+swa"),
    (COMPRESSED, {"index_layers": None}, MISSING + "compressed+swa"),
    (LINEAR, {"linear_layers": 0}, MISSING + "gqa+linear"),
    (LINEAR, {"linear_value_heads": None}, MISSING + "gqa+linear"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "cells", "why"), BROKEN)
def test_a_contradiction_is_refused(model: str, cells: dict[str, object], why: str) -> None:
    """The first column of `cells` is named, with what it has to be."""
    broken = broken_shape(MODELS[model] | cells)
    assert broken is not None
    assert broken[0] == next(iter(cells))
    assert why in broken[1]


def test_a_contradiction_has_its_place(user: Path) -> None:
    """In a file it is named with row and column."""
    put(user, "models", row_of(PLAIN, model="ours", kv_heads=6))
    with refused(ErrorCode.BAD_ROW, user / "models.csv", "row 2, column kv_heads: 6 "):
        load_reference("models", user=user)


def row_of(like: str, /, **changed: object) -> dict[str, Any]:
    """Return the columns of a row that are not worked out, some of them changed."""
    return {name: MODELS[like][name] for name in REFERENCE["models"].names} | changed


WORKED: list[tuple[str, dict[str, Any], dict[str, float | None]]] = [
    # 2 x 32 x 8 x (128 + 128); pairs 2 x 32 x 32 x (128 + 128)
    (PLAIN, {}, {"kv_bytes_per_token": 131_072, "attention_flops_per_token_pair": 524_288, "fixed_state_bytes": 0}),
    # 2 x 61 x (512 + 64); 2 x 61 x 128 x (2 x 512 + 64); 2 x 61 x 128 x 512 x (192 - 64 + 128)
    (
        LATENT,
        {},
        {
            "kv_bytes_per_token": 70_272,
            "absorbed_attention_flops_per_token_pair": 16_990_208,
            "mla_upprojection_flops_per_cached_token": 2_046_820_352,
        },
    ),
    # 21 of 78 layers have an indexer: 21 x 132, and 78 x 656 at fp8
    (
        "glm-5",
        {"index_layers": 21},
        {"kv_bytes_per_token": None, "indexer_bytes_per_token": 2_772, "marginal_fp8_kv_bytes_per_token": 51_168},
    ),
    # 2 x 52 x 16 x (128 + 128) x 1024; 2 x 52 x 32 x (128 + 128)
    (WINDOWED, {}, {"fixed_state_bytes": 436_207_616, "sliding_attention_flops_per_token_pair": 851_968}),
    # sliding layers of their own heads and widths: 2 x 52 x 8 x (64 + 64) x 1024; 2 x 52 x 32 x (64 + 64)
    (
        WINDOWED,
        {"sliding_kv_heads": 8, "sliding_head_dim": 64},
        {"fixed_state_bytes": 109_051_904, "sliding_attention_flops_per_token_pair": 425_984},
    ),
    # 20 full and 104 sliding layers attend with the caches of 10 and 52
    (
        WINDOWED,
        {"layers": 124, "kv_shared_layers": 62},
        {
            "fixed_state_bytes": 436_207_616,
            "attention_flops_per_token_pair": 2 * 20 * 32 * 256,
            "sliding_attention_flops_per_token_pair": 2 * 104 * 32 * 256,
        },
    ),
    # 36 x (32 x 128 x 128 x 4 + (2 x 16 x 128 + 32 x 128) x 3 x 2)
    (LINEAR, {}, {"fixed_state_bytes": 77_266_944, "marginal_kv_bytes_per_token": 24_576}),
    # 21 x (1024 + 256) / 4 + 20 x 1024 / 128; at fp8 21 x (584 + 132) / 4 + 20 x 584 / 128; 2 x 43 x 512 x 128
    (
        COMPRESSED,
        {},
        {
            "marginal_kv_bytes_per_token": 6_880,
            "marginal_fp8_kv_bytes_per_token": 3_850.25,
            "fixed_state_bytes": 5_636_096,
            "attention_flops_per_token_pair": None,
        },
    ),
]


@pytest.mark.parametrize(("model", "cells", "expected"), WORKED)
def test_figures_follow_from_the_shape(model: str, cells: dict[str, Any], expected: dict[str, float | None]) -> None:
    """Bytes and FLOP of a row are worked out from what its config has."""
    row = row_of(model, **cells)
    assert broken_shape(row) is None
    found = figures(row)
    assert {column: found[column] for column in expected} == expected


def test_columns_that_a_config_leaves_open_are_filled(user: Path) -> None:
    """A row without kinds of layers and width of values is one of full layers, with values as wide as keys."""
    left = {name: value for name, value in row_of(PLAIN, model="ours").items() if name not in ASSUMED}
    put(user, "models", left)
    ours = load_reference("models", user=user).to_pylist()[-1]
    assert ours == MODELS[PLAIN] | {"model": "ours"}
    bare = row_of(WINDOWED, full_attention_layers=None, linear_layers=None)
    # 62 - 52
    assert completed(bare)["full_attention_layers"] == 10


def test_a_latent_is_not_split() -> None:
    """num_key_value_heads 128 would divide the bytes by the GPUs, which each hold the whole latent."""
    # 1 / 8 / max(1 / 8, 1 / 128) = 1, but the latent is not split: 1 / 8 / 1 = 0.125
    assert kappa.tensor_parallel_factor(8, 128) == 8 * kappa.tensor_parallel_factor(8, 1)


def test_an_accepted_model_has_an_answer(user: Path) -> None:
    """What `is_known` says can be computed is computed, for an indexer of which the width alone is known too."""
    put(user, "models", row_of(INDEXED, model="ours", index_heads=None))
    model = named(read_sources(FOLDER, user).models, "ours")
    assert model is not None
    assert costs.unknown(model, "attention") == ("index_heads",)
