"""Rows from a config.json against the sourced rows, which were computed by others: every figure, to the last digit."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from refusals import refused

from pipelines.hardware.configs.config import parse_config
from pipelines.hardware.configs.shape import model_of
from pipelines.hardware.entities import Model
from pipelines.hardware.machines import read_sources
from warehouse.errors import ErrorCode

MODELS = read_sources().models
# What a row says of itself; a config.json says nothing of it.
OF_THE_ROW = {"model", "repo_id", "note", "retrieved", "confidence", "source"}


def keys(model_type: str, width: int, layers: int, heads: int, vocabulary: int, **more: object) -> dict[str, Any]:
    """Return keys of a config.json."""
    names = {"model_type": model_type, "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
    return names | {"vocab_size": vocabulary, "max_position_embeddings": 131072} | more


LATENT = {"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
DEEPSEEK = keys(
    "deepseek_v3", 7168, 61, 128, 129280, **LATENT, num_key_value_heads=128, intermediate_size=18432,
    moe_intermediate_size=2048, n_routed_experts=256, num_experts_per_tok=8, n_shared_experts=1,
    first_k_dense_replace=3, moe_layer_freq=1, max_position_embeddings=163840, num_nextn_predict_layers=1,
    quantization_config={"quant_method": "fp8", "fmt": "e4m3"},
)  # fmt: skip
CONFIGS = {
    "llama-3.1-70b": keys("llama", 8192, 80, 64, 128256, num_key_value_heads=8, intermediate_size=28672,
                          tie_word_embeddings=False),
    "llama-3.2-1b": keys("llama", 2048, 16, 32, 128256, num_key_value_heads=8, intermediate_size=8192, head_dim=64,
                         tie_word_embeddings=True),
    "qwen2.5-7b": keys("qwen2", 3584, 28, 28, 152064, num_key_value_heads=4, intermediate_size=18944,
                       use_sliding_window=False, sliding_window=131072, max_window_layers=28),
    "qwen3-8b": keys("qwen3", 4096, 36, 32, 151936, num_key_value_heads=8, head_dim=128, intermediate_size=12288,
                     attention_bias=False, max_position_embeddings=40960),
    "qwen3-30b-a3b": keys("qwen3_moe", 2048, 48, 32, 151936, num_key_value_heads=4, head_dim=128, num_experts=128,
                          num_experts_per_tok=8, moe_intermediate_size=768, intermediate_size=6144,
                          decoder_sparse_step=1, mlp_only_layers=[], max_position_embeddings=40960),
    "qwen3.5-27b": {"model_type": "qwen3_5", "tie_word_embeddings": False, "vision_config": {"depth": 27},
        "text_config": keys("qwen3_5_text", 5120, 64, 24, 248320, num_key_value_heads=4, head_dim=256,
                            intermediate_size=17408, full_attention_interval=4, linear_num_value_heads=48,
                            linear_num_key_heads=16, linear_key_head_dim=128, linear_value_head_dim=128,
                            linear_conv_kernel_dim=4, max_position_embeddings=262144)},
    "deepseek-v3": DEEPSEEK,
    "deepseek-v3.2": DEEPSEEK | {"model_type": "deepseek_v32", "index_n_heads": 64, "index_head_dim": 128,
                                 "index_topk": 2048},
    "gpt-oss-120b": keys("gpt_oss", 2880, 36, 64, 201088, num_key_value_heads=8, head_dim=64, attention_bias=True,
                         num_local_experts=128, num_experts_per_tok=4, experts_per_token=4, intermediate_size=2880,
                         sliding_window=128, layer_types=["sliding_attention", "full_attention"] * 18,
                         quantization_config={"quant_method": "mxfp4"}),
    "llama-4-scout-17b-16e": {"model_type": "llama4", "text_config": keys(
        "llama4_text", 5120, 48, 40, 202048, num_key_value_heads=8, head_dim=128, intermediate_size=8192,
        intermediate_size_mlp=16384, num_local_experts=16, num_experts_per_tok=1, interleave_moe_layer_step=1,
        attention_chunk_size=8192, max_position_embeddings=10485760)},
    "mixtral-8x7b": keys("mixtral", 4096, 32, 32, 32000, num_key_value_heads=8, intermediate_size=14336,
                         num_local_experts=8, num_experts_per_tok=2, sliding_window=None,
                         max_position_embeddings=32768),
    "mistral-7b-v0.1": keys("mistral", 4096, 32, 32, 32000, num_key_value_heads=8, intermediate_size=14336,
                            sliding_window=4096, max_position_embeddings=32768),
    "gemma-2-9b": keys("gemma2", 3584, 42, 16, 256000, num_key_value_heads=8, head_dim=256, intermediate_size=14336,
                       sliding_window=4096, max_position_embeddings=8192, query_pre_attn_scalar=256),
    "gemma-3-27b": {"model_type": "gemma3", "text_config": keys(
        "gemma3_text", 5376, 62, 32, 262208, num_key_value_heads=16, head_dim=128, intermediate_size=21504,
        sliding_window=1024)},
    # 21 of 78 layers have an indexer
    "glm-5.2": keys("glm_moe_dsa", 6144, 78, 64, 154880, kv_lora_rank=512, q_lora_rank=2048, qk_nope_head_dim=192,
                    qk_rope_head_dim=64, v_head_dim=256, num_key_value_heads=64, n_routed_experts=256,
                    num_experts_per_tok=8, n_shared_experts=1, moe_intermediate_size=2048, intermediate_size=12288,
                    first_k_dense_replace=3, moe_layer_freq=1, index_n_heads=32, index_head_dim=128, index_topk=2048,
                    indexer_types=["full"] * 3 + (["shared"] * 3 + ["full"]) * 18 + ["shared"] * 3,
                    index_topk_freq=4, index_skip_topk_offset=3, max_position_embeddings=1048576),
    "glm-4.5": keys("glm4_moe", 5120, 92, 96, 151552, num_key_value_heads=8, head_dim=128, attention_bias=True,
                    use_qk_norm=True, n_routed_experts=160, num_experts_per_tok=8, n_shared_experts=1,
                    moe_intermediate_size=1536, intermediate_size=12288, first_k_dense_replace=3),
}  # fmt: skip


def row_of(config: dict[str, Any], name: str = "mine") -> Model:
    """Return the row of a config."""
    return model_of(parse_config(json.dumps(config).encode(), name), name, name, "a test")


@pytest.mark.parametrize("name", CONFIGS)
def test_every_figure_is_that_of_the_sourced_row(name: str) -> None:
    """Bytes, FLOP, layers and parameters, computed here from keys and there from the vendor's or the papers' counts."""
    ours, theirs = asdict(row_of(CONFIGS[name])), asdict(MODELS[name])
    for column in OF_THE_ROW:
        ours.pop(column), theirs.pop(column)
    # The rows take the nearest tokenizer for some that have another vocabulary.
    for column in ("tokenizer", "is_tokenizer_proxy"):
        ours.pop(column), theirs.pop(column)
    assert ours == theirs


def test_a_vocabulary_decides_the_tokenizer() -> None:
    """128,256 tokens are Llama's, 151,936 Qwen's, 32,000 another one, which llama-3.1 counts in its place."""
    for name, tokenizer, is_proxy in (
        ("llama-3.1-70b", "llama-3.1", False), ("qwen3-8b", "qwen3", False), ("mixtral-8x7b", "llama-3.1", True),
    ):  # fmt: skip
        row = row_of(CONFIGS[name])
        assert (row.tokenizer, row.is_tokenizer_proxy) == (tokenizer, is_proxy)


def test_layers_that_share_an_indexer() -> None:
    """21 of 61 layers have keys of their own: 21 x (128 + 4) bytes, and that many fewer parameters."""
    base = CONFIGS["deepseek-v3.2"]
    shared = row_of(base | {"indexer_types": ["full"] * 21 + ["shared"] * 40, "index_topk_freq": 4})
    assert (shared.index_layers, shared.indexer_bytes_per_token) == (21, 21 * 132)
    # 1,536 x 64 x 128 + 7,168 x (128 + 64) + 2 x 128 a layer
    assert MODELS["deepseek-v3.2"].total_params - shared.total_params == 40 * 13_959_424  # type: ignore[operator]


LLAMA = CONFIGS["llama-3.1-70b"]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (b"", "no JSON"),
        (b"[1]", "no object"),
        (b'{"a": 1, "a": 2}', "a key stands twice"),
        (b"[" * 100_000, "no JSON"),
        (b" " * (2**20 + 1), "longer than 1,048,576 bytes"),
        (LLAMA | {"hidden_size": None}, "hidden_size"),
        (LLAMA | {"hidden_size": -1}, "hidden_size"),
        (LLAMA | {"hidden_size": "8192"}, "hidden_size"),
        (LLAMA | {"hidden_size": 8192.5}, "hidden_size"),
        (LLAMA | {"num_hidden_layers": 10**12}, "num_hidden_layers"),
        (LLAMA | {"model_type": "mamba2"}, "'mamba2'"),
        # a key that may change the cache
        (LLAMA | {"compress_ratios": [4, 4]}, "compress_ratios"),
        (LLAMA | {"num_kv_shared_layers": 20}, "num_kv_shared_layers"),
        (LLAMA | {"layer_types": ["full_attention"] * 79}, "layer_types"),
        (LLAMA | {"layer_types": ["ring_attention"] * 80}, "layer_types"),
        (LLAMA | {"num_key_value_heads": 7}, "kv_heads"),
        (CONFIGS["gpt-oss-120b"] | {"num_experts_per_tok": None, "experts_per_token": None}, "num_experts_per_tok"),
        (DEEPSEEK | {"qk_rope_head_dim": None}, "qk_rope_head_dim"),
        (CONFIGS["deepseek-v3.2"] | {"indexer_types": ["full", "shared"]}, "indexer_types"),
        ({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}}, "hidden_size"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood(config: dict[str, Any] | bytes, words: str) -> None:
    """One error that names the key; nothing is guessed."""
    data = config if isinstance(config, bytes) else json.dumps(config).encode()
    with refused(ErrorCode.BAD_CONFIG, words):
        model_of(parse_config(data, "mine"), "mine", "mine", "a test")


def test_indexers_follow_from_their_frequency() -> None:
    """Without `indexer_types` the first three layers have one, then every fourth: 3 + 18 of 78."""
    config = {key: value for key, value in CONFIGS["glm-5.2"].items() if key != "indexer_types"}
    assert row_of(config) == row_of(CONFIGS["glm-5.2"])
    assert row_of(config).index_layers == 21
    # A pattern of letters is a list: 20 of the 78
    assert row_of(config | {"index_topk_pattern": "F" * 20 + "S" * 58}).index_layers == 20


@pytest.mark.parametrize(
    ("quantised", "dtype"),
    [
        (None, None),
        ({"quant_method": "fp8", "activation_scheme": "dynamic"}, "fp8"),
        ({"quant_algo": "NVFP4", "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float"}}}}, "nvfp4"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"config_groups": {"a": {"weights": {"num_bits": 4, "type": "int"}}}}, "int4"),
        ({"config_groups": {"a": {"weights": {"type": "int", "group_size": 128, "num_bits": 4}}}}, "int4"),
        ({"config_groups": {"a": {"weights": {"num_bits": 8, "type": "int"}}}}, None),
        ({"quant_method": "other"}, None),
    ],
)  # fmt: skip
def test_the_served_format(quantised: dict[str, Any] | None, dtype: str | None) -> None:
    """What quantization_config says of the weights."""
    assert row_of(LLAMA | {"quantization_config": quantised}).weight_dtype == dtype


def test_harmless_keys_change_nothing() -> None:
    """Rates of training, names, formats and modules for drafts."""
    more = {"attention_dropout": 0.1, "torch_dtype": "bfloat16", "num_nextn_predict_layers": 1, "rope_theta": 5e5,
            "auto_map": {"AutoModel": "evil.py--Evil"}, "num_kv_shared_layers": 0}  # fmt: skip
    assert row_of(LLAMA | more) == row_of(LLAMA)
