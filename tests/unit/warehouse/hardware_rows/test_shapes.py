"""What the columns of a model say about each other: figures that follow from its shape, and contradictions."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from pipelines.hardware import costs
from pipelines.hardware.machines import read_sources
from warehouse.declared.hardware_fields import INDEXED_BYTES
from warehouse.errors import KappaError
from warehouse.formulas import attention, kappa, kv_bytes
from warehouse.hardware_rows.reference_tables import REFERENCE
from warehouse.hardware_rows.rows import FOLDER, load_reference, user_folder
from warehouse.hardware_rows.shapes import check_shape, indexer_bytes

MODELS = {row["model"]: row for row in load_reference("models").to_pylist()}
LATENT, WINDOWED, LINEAR, INDEXED, PLAIN = (
    "deepseek-v3", "gemma-3-27b", "qwen3-next-80b-a3b", "deepseek-v3.2", "llama-3.1-8b",
)  # fmt: skip


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """Return an empty folder of a user's rows."""
    folder = user_folder(tmp_path)
    folder.mkdir()
    return folder


def put(user: Path, model: str, **cells: object) -> Path:
    """Write one of kappa's models under another name with some cells changed."""
    row: dict[str, Any] = MODELS[model] | {"model": "ours"} | cells
    path = user / "models.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, REFERENCE["models"].names)
        writer.writeheader()
        writer.writerow({c: str(v).lower() if isinstance(v, bool) else v for c, v in row.items()})
    return path


def refused(user: Path, model: str, **cells: object) -> str:
    """Return why a model with these cells is refused, once file and row are told; the first cell is meant."""
    path = put(user, model, **cells)
    with pytest.raises(KappaError) as caught:
        load_reference("models", user=user)
    start = f"row 2, column {next(iter(cells))}: "
    assert caught.value.what == f"{path} is not usable"
    assert caught.value.why.startswith(start)
    return caught.value.why.removeprefix(start)


def test_the_formulae_are_those_of_the_steps() -> None:
    """Each figure of kappa's rows follows from its shape by the functions that the steps use."""
    seen = 0
    for row in MODELS.values():
        full, sliding, heads = row["full_attention_layers"], row["sliding_layers"], row["heads"]
        widths = row["head_dim"], row["v_head_dim"]
        expected = {
            "attention_flops_per_token_pair": attention.attention_flops_per_pair(full, heads, *widths),
            "sliding_attention_flops_per_token_pair": attention.attention_flops_per_pair(sliding, heads, *widths),
        }
        if row["attention"].startswith("mla"):
            rank, rope = row["kv_lora_rank"], row["qk_rope_head_dim"]
            held = kappa.mla_kv_bytes_per_token(full, rank, rope, 2)
            nope = row["head_dim"] - rope
            expected |= {
                "absorbed_attention_flops_per_token_pair": attention.absorbed_flops_per_pair(full, heads, rank, rope),
                "mla_upprojection_flops_per_cached_token": attention.upprojection_flops_per_token(
                    full, heads, rank, nope, row["v_head_dim"]
                ),
            }
        else:
            held = kappa.gqa_kv_bytes_per_token(full, row["kv_heads"], *widths, 2)
        if row["attention"] not in INDEXED_BYTES:
            expected |= {"kv_bytes_per_token": held, "marginal_kv_bytes_per_token": held}
        if row["sliding_window_tokens"] and row["attention"] not in INDEXED_BYTES:
            window = row["sliding_window_tokens"]
            a_token = kappa.gqa_kv_bytes_per_token(sliding, row["kv_heads"], *widths, 2)
            expected["fixed_state_bytes"] = kv_bytes.windowed_kv_bytes(window, 0, a_token, window)
        for column, value in expected.items():
            assert row[column] in (value, None), (row["model"], column)
            if row[column] not in (None, 0):
                broken = check_shape(row | {column: row[column] * 2})
                assert broken is not None, (row["model"], column)
                seen += 1
    # two columns of bytes and one of FLOP in each model, and more
    assert seen > 2 * len(MODELS)


@pytest.mark.parametrize("model", MODELS)
def test_no_false_alarm(model: str) -> None:
    """Kappa's own rows fit."""
    assert check_shape(MODELS[model]) is None


class TestLatent:
    """MLA has one latent, whatever the config calls its heads."""

    def test_heads_of_the_config(self, user: Path) -> None:
        """num_key_value_heads 128 would divide the bytes by the GPUs, which each hold the whole latent."""
        # 1 / 8 / max(1 / 8, 1 / 128) = 1, but the latent is not split: 1 / 8 / 1 = 0.125
        assert kappa.tensor_parallel_factor(8, 128) == 8 * kappa.tensor_parallel_factor(8, 1)
        told = refused(user, LATENT, kv_heads=128)
        assert told.startswith("128 is not 1: heads of MLA share one latent")
        assert told.endswith("whatever num_key_value_heads of the config says")

    @pytest.mark.parametrize(
        ("cells", "told"),
        [
            ({"kv_lora_rank": ""}, "is empty: MLA has one"),
            ({"qk_rope_head_dim": ""}, "is empty: MLA has one"),
            ({"qk_rope_head_dim": 192}, "192 is not below head_dim 192"),
            # 2 x 61 x 128 x (2 x 512 + 64) = 16,990,208
            ({"absorbed_attention_flops_per_token_pair": ""}, "is empty beside attention_flops_per_token_pair: it is"),
            ({"absorbed_attention_flops_per_token_pair": 8495104}, "2 kv_lora_rank + qk_rope_head_dim), 16990208"),
            # 2 x 61 x 128 x 512 x (192 - 64 + 128) = 2,046,820,352
            ({"mla_upprojection_flops_per_cached_token": 1}, "head_dim - qk_rope_head_dim + v_head_dim), 2046820352"),
        ],
    )
    def test_figures(self, user: Path, cells: dict[str, object], told: str) -> None:
        """Rank, rotary part and the two forms of its attention."""
        assert told in refused(user, LATENT, **cells)

    @pytest.mark.parametrize("column", ["kv_lora_rank", "qk_rope_head_dim", "absorbed_attention_flops_per_token_pair"])
    def test_of_another_kind(self, user: Path, column: str) -> None:
        """A model without a latent has none of its columns."""
        assert refused(user, PLAIN, **{column: 512}) == "only MLA has one (attention gqa)"


class TestWindows:
    """Sliding layers, their window and what it holds come together."""

    @pytest.mark.parametrize(
        ("model", "cells", "told"),
        [
            (WINDOWED, {"sliding_window_tokens": ""}, "is empty beside 52 sliding layers (attention gqa+swa)"),
            (WINDOWED, {"sliding_layers": 0}, "is 0 beside a window"),
            (PLAIN, {"sliding_window_tokens": 1024}, "only +swa and +chunked have a window (attention gqa)"),
            (PLAIN, {"sliding_layers": 4, "layers": 36, "sliding_window_tokens": ""}, None),
            # 2 x 52 x 16 x (128 + 128) x 1024 = 436,207,616
            (WINDOWED, {"fixed_state_bytes": 0}, "x sliding_window_tokens, 436207616"),
            (WINDOWED, {"fixed_state_bytes": 1000}, "1000 is not 2 bytes x sliding layers x kv_heads"),
            # 2 x 52 x 32 x (128 + 128) = 851,968
            (WINDOWED, {"sliding_attention_flops_per_token_pair": ""}, "(head_dim + v_head_dim), 851968"),
            (WINDOWED, {"sliding_attention_flops_per_token_pair": 425984}, "(head_dim + v_head_dim), 851968"),
            (WINDOWED, {"kv_bytes_per_token": 81920}, "are not constant, leave it empty (attention gqa+swa)"),
            # 2 x 43 x 512 x 128 = 5,636,096
            ("deepseek-v4-flash", {"fixed_state_bytes": 524288}, "x sliding_window_tokens, 5636096"),
            ("deepseek-v4-flash", {"sliding_window_tokens": ""}, "is empty beside 2 sliding layers"),
        ],
    )
    def test_contradictions(self, user: Path, model: str, cells: dict[str, object], told: str | None) -> None:
        """Each is told with its column; sliding layers in a model of another kind are told by their window."""
        if told is None:
            with pytest.raises(KappaError, match=r"sliding_window_tokens: is empty beside 4 sliding layers"):
                load_reference("models", user=put(user, model, **cells).parent)
            return
        assert told in refused(user, model, **cells)

    def test_a_state_without_layers(self, user: Path) -> None:
        """Every token of plain attention costs the same."""
        # 2 x 0 sliding layers = 0
        assert refused(user, PLAIN, fixed_state_bytes=1000).endswith("sliding_window_tokens, 0")


class TestLinear:
    """Linear layers keep a state."""

    @pytest.mark.parametrize(
        ("model", "cells", "told"),
        [
            (LINEAR, {"fixed_state_bytes": 0}, "is 0 beside 36 linear layers"),
            (LINEAR, {"linear_layers": 0}, "is 0: +linear has linear layers (attention gqa+linear)"),
            (PLAIN, {"linear_layers": 4, "layers": 36}, "only +linear has linear layers (attention gqa)"),
        ],
    )
    def test_contradictions(self, user: Path, model: str, cells: dict[str, object], told: str) -> None:
        """The state cannot be worked out, but it is there where the layers are."""
        assert refused(user, model, **cells) == told


class TestEveryModel:
    """Attention, heads, experts and parameters."""

    @pytest.mark.parametrize(
        ("model", "cells", "told"),
        [
            # 2 x 32 x 32 x (128 + 128) = 524,288
            (PLAIN, {"attention_flops_per_token_pair": 262144}, "(head_dim + v_head_dim), 524288"),
            (PLAIN, {"kv_bytes_per_token": ""}, "is empty: they are constant (attention gqa)"),
            # 32 / 6 is no whole number
            (PLAIN, {"kv_heads": 6}, "6 does not divide the 32 query heads"),
            (PLAIN, {"full_attention_layers": 0}, "is 0: no other layer has a cache (attention gqa)"),
            (PLAIN, {"experts_per_token": 8}, "a mixture of experts, and no other model"),
            (LATENT, {"experts_per_token": ""}, "a mixture of experts, and no other model"),
            (LATENT, {"experts_per_token": 257}, "257 is above the number of experts"),
            (LATENT, {"active_params": "1e13"}, "1e+13 is above the total"),
            (PLAIN, {"indexer_bytes_per_token": 132}, "only +indexer has one (attention gqa)"),
            (INDEXED, {"indexer_bytes_per_token": 0}, "is 0: it has one (attention mla+indexer)"),
        ],
    )
    def test_contradictions(self, user: Path, model: str, cells: dict[str, object], told: str) -> None:
        """Each is told with its column."""
        assert told in refused(user, model, **cells)

    @pytest.mark.parametrize("layers", [32, 40, 48])
    def test_layers_that_share_a_cache_may_attend(self, user: Path, layers: int) -> None:
        """32 of 48 layers have a cache of their own; the others attend too, and may be counted."""
        # 2 x 32 x (128 + 128) = 16,384 a layer
        put(user, PLAIN, layers=48, attention_flops_per_token_pair=layers * 16_384)
        assert load_reference("models", user=user).num_rows == len(MODELS) + 1
        for wrong in (31 * 16_384, 49 * 16_384, 40 * 16_384 + 1):
            cells = {"attention_flops_per_token_pair": wrong, "layers": 48}
            assert "is not 2 x full layers x heads" in refused(user, PLAIN, **cells)

    def test_an_accepted_model_has_an_answer(self, user: Path) -> None:
        """What `is_known` says can be computed is computed, for a row without any figure of attention too."""
        put(user, LATENT, **dict.fromkeys((c for c in REFERENCE["models"].names if "attention_flops" in c), ""),
            mla_upprojection_flops_per_cached_token="")  # fmt: skip
        model = read_sources(FOLDER, user).named("models", "ours")
        assert model is not None
        assert costs.unknown(model, "attention") == ("attention_flops_per_token_pair",)


class TestIndexers:
    """An indexer's keys are as wide as the bytes of its model say."""

    def told(self, user: Path, **cells: object) -> str:
        """Return why a user's indexer is refused."""
        row = {"model": "ours", "index_heads": 64, "index_head_dim": 128, "index_picked_tokens": 2048,
               "retrieved": "2024-05-01", "confidence": "high", "source": "us"} | cells  # fmt: skip
        (user / "indexers.csv").write_text(f"{','.join(row)}\n{','.join(map(str, row.values()))}\n", "utf8")
        with pytest.raises(KappaError) as caught:
            load_reference("indexers", user=user)
        return caught.value.why

    def test_width(self, user: Path) -> None:
        """64 wide makes half of the bytes."""
        put(user, INDEXED)
        # 61 x (64 + 4) = 4148; 61 x (128 + 4) = 8052
        told = self.told(user, index_head_dim=64)
        assert told == "row 2, column index_head_dim: 64 makes 4148 indexer_bytes_per_token, ours has 8052"

    def test_a_model_without_one(self, user: Path) -> None:
        """Plain attention reads no indexer."""
        put(user, PLAIN)
        assert self.told(user) == "row 2, column model: the attention of ours is gqa"

    def test_own_rows(self) -> None:
        """Kappa's rows follow from the formula."""
        for row in load_reference("indexers").to_pylist():
            model = MODELS[row["model"]]
            # 61 x 132 = 8052, 78 x 132 = 10,296
            assert indexer_bytes(model["layers"], row["index_head_dim"]) == model["indexer_bytes_per_token"]
