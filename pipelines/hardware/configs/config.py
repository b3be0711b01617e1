"""The keys of a config.json that decide a model's shape, checked by pydantic. No figure is computed here.

Names are those of the files; what several families call differently has one name here. A key that may change the shape
and is not known here is refused, so that no answer rests on half of a config.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from warehouse.errors import ErrorCode, KappaError

MOST_BYTES = 2**20
_MOST = 10**9
# As many as a row of `models` may have.
Layers = Annotated[int, Field(strict=True, ge=1, le=2000)]
Count = Annotated[int, Field(strict=True, ge=1, le=_MOST)]
Some = Annotated[int, Field(strict=True, ge=0, le=_MOST)]
# The language model of a config that describes several.
_TEXT_PARTS = ("text_config", "llm_config", "language_config")
# Words of keys that may change the cache, the parameters or the compute.
_SHAPE = re.compile(
    r"attn|attention|kv|lora|window|expert|moe|ssm|mamba|linear|conv|index|compress|sparse|chunk|share|state|mlp|gate|"
    r"head|layer|hidden_size|latent|_dim|block|altup|laurel|cache"
)
# Keys with such a word that change none of it: rates of training, names, formats, modules for drafts and for pictures.
_HARMLESS = re.compile(
    r"attention_(dropout|value_scale)|attn_(logit|temperature).*|.*attn_implementation.*|attn_scale|floor_scale|"
    r"attention_(invariants|multiplier)|query_pre_attn_scalar|attn_logit_softcapping|.*layer_?norm_eps.*|.*layernorm_epsilon|"
    r"router_.*|output_(router_logits|attentions|hidden_states)|moe_router_.*|use_moe_router_bias|moe_layer_init|"
    r"num_nextn_predict_layers|num_mtp_modules|mtp_.*|.*mtp.*|ep_size|index_share_for_mtp_iteration|"
    r"add_cross_attention|cross_attention_hidden_size|chunk_size_feed_forward|use_cache|cache_implementation|"
    r"pruned_heads|use_sliding_window_attention|num_(attention_)?logits_.*|pretraining_tp|swiglu_limit|"
    r"mamba_ssm_dtype|output_gate_type|moe_renormalize|moe_layer_scale|sliding_window_size|.*initializer.*|"
    r"experts_per_token|num_experts|image_token_index|.*(vision|image|audio|video).*|for_llm_class|expert_dtype|.*_head_pad.*|"
    r"rope_interleave|indexer_rope_interleave|qk_head_dim|num_logits_to_keep|max_window_layers|head_type|rotary_dim|"
    r"moe_router_dtype|layer_scale|"
    r"use_bidirectional_attention|quantization_config|.*_dropout"
)
_INT4 = r'awq|gptq|int4|w4a16|(?=.*"num_bits": 4\b)(?=.*"type": "int")'
# Signs of a format in `quantization_config`, by its name in `models`.
_FORMATS = {"mxfp4": "mxfp4", "nvfp4": "nvfp4", "int4": _INT4, "fp8": "fp8|float8"}


class Config(BaseModel):
    """The language model that a config.json describes; None where a key is not there."""

    model_config = ConfigDict(extra="allow", frozen=True)

    model_type: Annotated[str, Field(strict=True, max_length=64)]
    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    vocab_size: Count
    num_key_value_heads: Count | None = None
    head_dim: Count | None = None
    intermediate_size: Count | None = None
    max_position_embeddings: Count | None = None
    tie_word_embeddings: bool | None = None
    attention_bias: bool | None = None
    mlp_bias: bool = False
    use_qk_norm: bool = False
    attn_output_gate: bool | None = None
    attn_type_list: list[int] | None = None

    layer_types: list[str] | None = None
    sliding_window: Some | None = None
    use_sliding_window: bool | None = None
    max_window_layers: Some | None = None
    sliding_window_pattern: Annotated[
        int | None, Field(validation_alias=AliasChoices("sliding_window_pattern", "_sliding_window_pattern"))
    ] = None
    attention_chunk_size: Count | None = None
    no_rope_layers: list[int] | None = None
    full_attention_interval: Count | None = None

    experts: Annotated[
        Count | None, Field(validation_alias=AliasChoices("n_routed_experts", "num_local_experts", "num_experts"))
    ] = None
    experts_per_token: Annotated[
        Count | None,
        Field(validation_alias=AliasChoices("num_experts_per_tok", "experts_per_token", "num_experts_per_token")),
    ] = None
    n_shared_experts: Some | None = None
    moe_intermediate_size: Count | None = None
    shared_expert_intermediate_size: Some | None = None
    intermediate_size_mlp: Count | None = None
    first_k_dense_replace: Some = 0
    moe_layer_freq: int | list[int] = 1
    mlp_only_layers: list[int] = []
    decoder_sparse_step: Count = 1
    interleave_moe_layer_step: Count = 1
    mlp_layer_types: list[str] | None = None

    q_lora_rank: Count | None = None
    kv_lora_rank: Count | None = None
    qk_nope_head_dim: Count | None = None
    qk_rope_head_dim: Count | None = None
    v_head_dim: Count | None = None
    index_n_heads: Count | None = None
    index_head_dim: Count | None = None
    index_topk: Count | None = None
    indexer_types: list[str] | None = None
    index_topk_pattern: str | list[str] | None = None
    index_topk_freq: Count | None = None
    index_skip_topk_offset: int | None = None

    linear_num_value_heads: Count | None = None
    linear_num_key_heads: Count | None = None
    linear_key_head_dim: Count | None = None
    linear_value_head_dim: Count | None = None
    linear_conv_kernel_dim: Count | None = None

    quantization_config: dict[str, Any] | None = None

    def weight_dtype(self) -> str | None:
        """Return the format of the weights, as `models` calls it; None for bf16 and for a format that is not known."""
        words = json.dumps(self.quantization_config or {}).lower()
        return next((name for name, sign in _FORMATS.items() if re.search(sign, words)), None)

    def indexers(self) -> list[str]:
        """Return `full` or `shared` for each layer: whether it has an indexer of its own.

        A list or a pattern of letters (F, S) says so; else the layers up to `index_skip_topk_offset` have one, and then
        every `index_topk_freq`-th, as transformers reads glm_moe_dsa.
        """
        if self.indexer_types is not None:
            return self.indexer_types
        if self.index_topk_pattern is not None:
            return ["shared" if one[:1].upper() == "S" else "full" for one in self.index_topk_pattern]
        every, offset = self.index_topk_freq or 1, self.index_skip_topk_offset or 0
        after = [max(layer - offset + 1, 0) for layer in range(self.num_hidden_layers)]
        return ["shared" if past % every else "full" for past in after]


def parse_config(data: bytes, place: str) -> Config:
    """Return the language model of a config.json.

    Args:
        data: The bytes of the file, at most `MOST_BYTES`.
        place: The file, for messages.

    Raises:
        KappaError: it is no such file, lacks a key, or has a key that may change the shape and is not known.
    """
    if len(data) > MOST_BYTES:
        raise not_understood(place, f"it is longer than {MOST_BYTES:,} bytes")
    try:
        whole = json.loads(data, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise not_understood(place, f"it is no JSON ({str(error)[:80] or 'too deep'})") from error
    if not isinstance(whole, dict):
        raise not_understood(place, "it holds no object")
    part = next((whole[name] for name in _TEXT_PARTS if isinstance(whole.get(name), dict)), None)
    keys = whole if part is None else {"model_type": whole.get("model_type"), **_shared(whole), **part}
    try:
        config = Config.model_validate(keys)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise not_understood(place, f"key {key}: {first['msg'][:80].lower()}") from error
    unknown = sorted(key for key, value in (config.model_extra or {}).items() if _matters(key, value))
    if unknown:
        raise not_understood(place, f"what {', '.join(unknown[:4])} means for {config.model_type} is not known here")
    return config


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _shared(whole: dict[str, Any]) -> dict[str, Any]:
    """Return the keys that a config of several models states once for all."""
    return {name: whole[name] for name in ("tie_word_embeddings",) if name in whole}


def _matters(key: str, value: object) -> bool:
    """Return whether a key that is not known may change the shape: it is set, and its name has a word of one."""
    is_set = value not in (None, False, 0, [], {}, "")
    return is_set and _SHAPE.search(key) is not None and _HARMLESS.fullmatch(key) is None


def not_understood(place: str, why: str) -> KappaError:
    """Return the error for a config.json that gives no shape."""
    remedy = "name a model of `kappa sql 'FROM models'`, or add a row, see docs/own-rows.md"
    return KappaError(f"{place} is not understood", why, remedy, code=ErrorCode.BAD_CONFIG)
