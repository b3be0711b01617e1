"""The columns of models, accelerators, links and kappa_crit. Rates are per second, sizes in bytes, GB is 10^9."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from warehouse.declared import bounds as p
from warehouse.declared import fields as f
from warehouse.declared.schema import Field, Unit

BASES = ("paper", "physical", "measured")
KV_DTYPES = ("bf16", "fp8")
WEIGHT_DTYPES = ("bf16", "fp8", "mxfp4", "nvfp4", "int4")
COMPUTE_DTYPES = ("bf16", "fp8", "fp4")
COST_MODELS = ("2n", "attention", "full")
CONFIDENCES = ("high", "medium", "low", "secondary")
ATTENTIONS = (
    "gqa", "gqa+swa", "gqa+chunked", "gqa+linear", "gqa+indexer", "mla", "mla+indexer", "mla+linear", "compressed+swa",
)  # fmt: skip
LINK_KINDS = ("pcie", "c2c", "unified", "engine", "pageable", "storage", "network", "memory")


def _text(name: str, description: str, values: tuple[str, ...] = ()) -> Field:
    return Field(name, pa.string(), "", description, values=values)


def _number(name: str, unit: Unit, description: str, can_be: p.Range | None = None) -> Field:
    """Declare a figure; a computed figure has no range of its own."""
    low, high, why = can_be or (0.0, None, "")
    return Field(name, pa.float64(), unit, description, minimum=low, maximum=high, why_bounds=why)


def _count(name: str, unit: Unit, description: str, can_be: p.Range | None = None) -> Field:
    low, high, why = can_be or (0.0, None, "")
    return Field(name, pa.int64(), unit, description, minimum=low, maximum=high, why_bounds=why)


MODEL = _text("model", "name of the model, lower case with hyphens")
ACCELERATOR = _text("accelerator", "name of the accelerator, lower case with hyphens")
LINK = _text("link", "name of the way between host memory and accelerator")
BASIS = _text(
    "basis",
    "paper: the paper's own inputs; physical: dense peak x a stated sustained fraction, one direction; "
    "measured: what `kappa measure` found on a machine",
    BASES,
)
KV_DTYPE = _text("kv_dtype", "number format of the keys and values", KV_DTYPES)
COST_MODEL = _text("cost_model", "what t_GPU counts: 2n (2 x active parameters), attention, full", COST_MODELS)
CONFIDENCE = _text("confidence", "how sure the source is; secondary rows are never a default", CONFIDENCES)
RETRIEVED = _text("retrieved", "day on which the source was read, YYYY-MM-DD")
NOTE = _text("note", "what the numbers alone do not say").or_null()

ATTENTION = _text(
    "attention", "kind of attention; a part after + is what keeps bytes per token from being constant", ATTENTIONS
)
TOTAL_PARAMS = _count("total_params", "1", "all parameters", p.PARAMS).or_null()
ACTIVE_PARAMS = _count(
    "active_params", "1", "parameters that one token passes through, embedding and head included", p.PARAMS
).or_null()
LAYERS = _count("layers", "1", "decoder layers", p.LAYERS)
HEADS = _count("heads", "1", "query heads of a layer", p.HEADS)
KV_HEADS = _count("kv_heads", "1", "key and value heads of a layer; 1 with MLA, whose heads share a latent", p.HEADS)
HEAD_DIM = _count("head_dim", "1", "width of a query or key head", p.WIDTH)
HIDDEN_SIZE = _count("hidden_size", "1", "width of the activations between layers (d_model)", p.WIDTH).or_null(
    "width of the activations between layers (d_model); NULL where no source was read"
)
SERVED_DTYPE = _text("weight_dtype", "number format in which the weights are served", WEIGHT_DTYPES).or_null(
    "number format in which the weights are served; NULL for bf16"
)
KV_BYTES_PER_TOKEN = _number(
    "kv_bytes_per_token", "bytes/token", "KV cache of one token at bf16, all layers", p.KV_BYTES
).or_null("KV cache of one token at bf16, all layers; NULL where it is not constant per token")
FLOPS_PER_TOKEN = _number(
    "flops_per_token", "FLOP/token", "2 x active_params: prefill of one token without attention"
).or_null()
IS_TOKENIZER_PROXY = Field(
    "is_tokenizer_proxy",
    pa.bool_(),
    "",
    "the model's own vocabulary is another one; the counts of `tokenizer` stand in",
)
IS_MOE = Field("is_moe", pa.bool_(), "", "mixture of experts: a token passes through a part of the parameters")
EXPERTS = _count("experts", "1", "routed experts of a layer", p.EXPERTS).or_null(
    "routed experts of a layer; NULL without experts"
)
EXPERTS_PER_TOKEN = _count("experts_per_token", "1", "routed experts that one token passes through", p.EXPERTS).or_null(
    "routed experts that one token passes through; NULL without experts"
)
LAYER_PARAMS = _count("layer_params", "1", "active parameters of the decoder layers alone", p.PARAMS).or_null()
HEAD_PARAMS = _count("head_params", "1", "parameters of the output head", p.HEAD_PARAMS).or_null()
FULL_LAYERS = _count("full_attention_layers", "1", "layers whose cache grows with every token", p.SOME_LAYERS)
SLIDING_LAYERS = _count("sliding_layers", "1", "layers that see a window or a chunk", p.SOME_LAYERS)
LINEAR_LAYERS = _count("linear_layers", "1", "layers with a state of fixed size", p.SOME_LAYERS)
MODEL_CONTEXT = replace(f.MAX_CONTEXT_TOKENS, minimum=p.CONTEXT.low, maximum=p.CONTEXT.high, why_bounds=p.CONTEXT.why)
SLIDING_WINDOW = _count("sliding_window_tokens", "tokens", "width of that window", p.WINDOW).or_null(
    "width of that window; NULL where there is none"
)
SLIDING_KV_HEADS = _count("sliding_kv_heads", "1", "key and value heads of a sliding layer", p.HEADS).or_null(
    "key and value heads of a sliding layer; NULL where they are kv_heads"
)
SLIDING_HEAD_DIM = _count("sliding_head_dim", "1", "width of keys and of values in a sliding layer", p.WIDTH).or_null(
    "width of keys and of values in a sliding layer; NULL where they are head_dim and v_head_dim"
)
KV_SHARED_LAYERS = _count(
    "kv_shared_layers", "1", "layers that attend with the cache of an earlier one", p.SOME_LAYERS
).or_null("layers that attend with the cache of an earlier one, of each kind in the ratio of the others; NULL for none")
LINEAR_STATE = (
    _count("linear_key_heads", "1", "key heads of a linear layer; groups of Mamba2", p.HEADS).or_null(),
    _count("linear_key_head_dim", "1", "width of such a head; state size of Mamba2", p.WIDTH).or_null(),
    _count("linear_value_heads", "1", "value heads of a linear layer; heads of Mamba2", p.HEADS).or_null(),
    _count("linear_value_head_dim", "1", "width of such a head", p.WIDTH).or_null(),
    _count("linear_conv_kernel", "1", "tokens that the convolution of a linear layer spans", p.KERNEL).or_null(),
)
V_HEAD_DIM = _count("v_head_dim", "1", "width of a value head", p.WIDTH)
KV_LORA_RANK = _count("kv_lora_rank", "1", "width of the MLA latent", p.WIDTH).or_null(
    "width of the MLA latent; NULL without MLA"
)
QK_ROPE_HEAD_DIM = _count("qk_rope_head_dim", "1", "width of the rotary part of a latent key", p.WIDTH).or_null(
    "width of the rotary part of a latent key; NULL without a latent"
)
MARGINAL_KV_BYTES = _number(
    "marginal_kv_bytes_per_token",
    "bytes/token",
    "KV at bf16 that one more cached token adds once every window is full, without the indexer unless noted",
    p.GROWING_KV_BYTES,
)
MARGINAL_FP8_KV_BYTES = _number(
    "marginal_fp8_kv_bytes_per_token",
    "bytes/token",
    "the same with an fp8 cache that keeps a part of each entry in another format; NULL where it is half of bf16",
    p.GROWING_KV_BYTES,
).or_null()
FIXED_STATE_BYTES = _count(
    "fixed_state_bytes", "bytes", "full windows and recurrent state at the point of reuse, at bf16", p.STATE_BYTES
)
INDEXER_BYTES = _count(
    "indexer_bytes_per_token",
    "bytes/token",
    "keys of the sparse attention's indexer: fp8 with their scales after mla, bf16 after gqa",
    p.INDEXER_BYTES,
)
INDEX_LAYERS = _count("index_layers", "1", "layers that have an indexer of their own", p.LAYERS)
INDEX_HEADS = _count("index_heads", "1", "heads of the indexer of a layer", p.HEADS)
INDEX_HEAD_DIM = _count("index_head_dim", "1", "width of a head of the indexer", p.WIDTH)
INDEX_PICKED_TOKENS = _count(
    "index_picked_tokens", "tokens", "tokens that the indexer lets a new token attend to", p.WINDOW
)
INDEXER = (INDEX_LAYERS, INDEX_HEADS, INDEX_HEAD_DIM, INDEX_PICKED_TOKENS)
ATTENTION_FLOPS = _count(
    "attention_flops_per_token_pair",
    "FLOP",
    "attention of one new token over one cached token, all full layers",
    p.PAIR_FLOPS,
).or_null()
SLIDING_ATTENTION_FLOPS = _count(
    "sliding_attention_flops_per_token_pair",
    "FLOP",
    "the same in the sliding layers, for a cached token inside the window",
    p.PAIR_FLOPS,
).or_null()
ABSORBED_ATTENTION_FLOPS = _count(
    "absorbed_attention_flops_per_token_pair", "FLOP", "the same for MLA computed on the latent", p.PAIR_FLOPS
).or_null("the same for MLA computed on the latent; NULL without MLA")
MLA_UPPROJECTION_FLOPS = _count(
    "mla_upprojection_flops_per_cached_token",
    "FLOP/token",
    "expanding one cached latent to keys and values",
    p.TOKEN_FLOPS,
).or_null("expanding one cached latent to keys and values; NULL without MLA")

COPY_LATENCY = _number("copy_latency_s", "s", "t_1: fixed seconds of one copy", p.LATENCY).or_null(
    "t_1: fixed seconds of one copy; NULL where the rate is of large copies"
)
NODE_BYTES_PER_S = _number(
    "node_bytes_per_s", "bytes/s", "all GPUs of a host together, where they share its memory or switches", p.LINK_RATE
).or_null("all GPUs of a host together; NULL where each one's link is the limit")

DENSE_BF16 = _number("dense_bf16_flop_per_s", "FLOP/s", "dense bf16 peak", p.FLOP_RATE)
SPARSE_BF16 = _number(
    "sparse_bf16_flop_per_s", "FLOP/s", "bf16 peak with structured sparsity, the vendor's headline", p.FLOP_RATE
).or_null()
DENSE_FP8 = _number("dense_fp8_flop_per_s", "FLOP/s", "dense fp8 peak", p.FLOP_RATE).or_null()
SPARSE_FP8 = _number("sparse_fp8_flop_per_s", "FLOP/s", "fp8 peak with structured sparsity", p.FLOP_RATE).or_null()
DENSE_FP4 = _number("dense_fp4_flop_per_s", "FLOP/s", "dense fp4 peak", p.FLOP_RATE).or_null()
MEASURED_BF16 = _number(
    "measured_bf16_flop_per_s", "FLOP/s", "best bf16 matrix product that was measured", p.MEASURED_FLOP_RATE
).or_null()
HBM_BYTES = _number(
    "hbm_bytes", "bytes", "memory of the accelerator as the vendor's tools report it, else the vendor's GB as 10^9",
    p.MEMORY,
)  # fmt: skip
HBM_BYTES_PER_S = _number("hbm_bytes_per_s", "bytes/s", "peak bandwidth of that memory", p.MEMORY_RATE)
TDP_W = _number("tdp_w", "W", "thermal design power", p.POWER).or_null()

KIND = _text("kind", "what the way is made of; engine: a path through a named serving engine", LINK_KINDS)
PEAK_BYTES_PER_S = _number("peak_bytes_per_s", "bytes/s", "peak of one direction", p.LINK_RATE)
SUSTAINED_BYTES_PER_S = _number(
    "sustained_bytes_per_s",
    "bytes/s",
    "measured host to device: large pinned copies, or what the engine reaches",
    p.MEASURED_LINK_RATE,
).or_null()
TO_HOST_BYTES_PER_S = _number(
    "to_host_bytes_per_s", "bytes/s", "measured device to host", p.MEASURED_LINK_RATE
).or_null()
DUPLEX_BYTES_PER_S = _number(
    "duplex_bytes_per_s", "bytes/s", "measured sum of both directions at once", p.MEASURED_LINK_RATE
).or_null()

KAPPA_M = _number("kappa_m_flop_per_byte", "FLOP/byte", "FLOP per token / KV bytes per token").or_null()
KAPPA_HW = _number("kappa_hw_byte_per_flop", "byte/FLOP", "link bytes per second / accelerator FLOP per second")
GPUS = _count("tensor_parallel", "1", "GPUs that share the model: the least on which weights and pool fit", p.GPUS)
WEIGHT_DTYPE = _text("weight_dtype", "number format of the weights", WEIGHT_DTYPES)
COMPUTE_DTYPE = _text("compute_dtype", "number format of the matrix products, whose dense peak is used", COMPUTE_DTYPES)
KAPPA_CRIT = _number("kappa_crit", "1", "kappa_m x kappa_hw: above it the accelerator waits for the link").or_null(
    "kappa_m x kappa_hw: above it the accelerator waits for the link; NULL where bytes per token are not constant "
    "and, in boundness, where t_GPU depends on the turn (cost models attention and full); "
    "basis paper multiplies kappa_m and kappa_hw as the paper printed them, where it printed them, as the paper did"
)

EFFECTIVE_FLOP_PER_S = _number(
    "effective_flop_per_s", "FLOP/s", "C_eff: the compute that the paper divides by", p.FLOP_RATE
)
BYTES_PER_S = _number("bytes_per_s", "bytes/s", "bandwidth that the paper divides by", p.LINK_RATE)
PRINTED_KAPPA_M = _number(
    "printed_kappa_m_flop_per_byte", "FLOP/byte", "kappa_m as the paper printed it and multiplied it", p.KAPPA_M
)

DEVICE_NAME = _text("device_name", "what the driver calls the accelerator")
MATMUL_BF16 = _number("bf16_flop_per_s", "FLOP/s", "sustained bf16 matrix products", p.MEASURED_FLOP_RATE)
MATMUL_FP16 = _number("fp16_flop_per_s", "FLOP/s", "sustained fp16 matrix products", p.MEASURED_FLOP_RATE).or_null()
MATMUL_FP8 = _number("fp8_flop_per_s", "FLOP/s", "sustained fp8 matrix products", p.MEASURED_FLOP_RATE).or_null(
    "sustained fp8 matrix products; NULL where the device or the library has none"
)
PINNED_TO_DEVICE = _number(
    "pinned_to_device_bytes_per_s", "bytes/s", "host to device, largest pinned copies", p.COPY_RATE
)
PINNED_TO_HOST = _number("pinned_to_host_bytes_per_s", "bytes/s", "device to host, largest pinned copies", p.COPY_RATE)
PAGEABLE_TO_DEVICE = _number(
    "pageable_to_device_bytes_per_s", "bytes/s", "host to device, largest pageable copies", p.COPY_RATE
)
PAGEABLE_TO_HOST = _number(
    "pageable_to_host_bytes_per_s", "bytes/s", "device to host, largest pageable copies", p.COPY_RATE
)
DEVICE_COPY = _number(
    "hbm_bytes_per_s",
    "bytes/s",
    "the accelerator's own memory: bytes read + written by its largest copies",
    p.MEMORY_RATE,
)
TORCH_VERSION = _text("torch_version", "version of PyTorch")
RUNTIME_VERSION = _text("runtime_version", "version of the accelerator's runtime that PyTorch was built for").or_null()
IS_EXAMPLE = Field("is_example", pa.bool_(), "", "true in an example of the format, which no table picks up")
MEASURED_QUANTITY = _text("quantity", "what was timed", ("copy", "matmul"))
MEMORY = _text(
    "memory", "kind of host memory; device for copies inside the accelerator", ("pinned", "pageable", "device")
)
DIRECTION = _text("direction", "way of the copy", ("to_device", "to_host", "inside"))
DTYPE = _text("dtype", "number format")
SIZE = _count("size", "bytes or rows", "bytes copied, or rows of the square matrices", p.SIZE)
RATE = _number("rate", "of rate_unit", "median rate over the repetitions", p.RATE)
RATE_UNIT = _text("rate_unit", "unit of the rate", ("bytes/s", "FLOP/s"))

QUESTION = _text(
    "question",
    "what is changed: the link, one memory for both, a latent cache, or the cache's number format",
    ("nvlink-c2c", "unified-memory", "mla", "kv-quantisation"),
)
VARIANT = _text("variant", "to what it is changed; the first of a question is what the others are compared with")
LINK_BYTES_PER_S = _number("link_bytes_per_s", "bytes/s", "bandwidth of one direction")
COMPUTE_BOUND_SHARE = Field(
    "compute_bound_turn_share",
    pa.float64(),
    "1",
    "share of all turns with t_PCIe <= t_GPU (2n)",
    minimum=0.0,
    maximum=1.0,
)
GAINED_SHARE = Field(
    "gained_turn_share",
    pa.float64(),
    "1",
    "that share less the share of the first variant",
    minimum=-1.0,
    maximum=1.0,
)
PRINTED_DIGIT = _number("printed_digit", "of the metric", "one unit of the last digit that was printed").or_null(
    "one unit of the last digit that was printed; NULL where the figure is not the paper's"
)
WHY = _text("why", "what it was printed from, or why ours differs").or_null(
    "what it was printed from, or why ours differs; NULL where the figure is not the paper's"
)
PRINTED = Field("printed", pa.float64(), "of the metric", "the value that the paper prints")
REPRODUCED = Field(
    "reproduced", pa.float64(), "of the metric", "the same out of the paper's inputs, or of the full set", nullable=True
)
RESIDUAL = Field("residual", pa.float64(), "1", "reproduced / printed - 1", nullable=True)
VERDICT = _text(
    "verdict",
    "within 1 %; equal when rounded to the printed digits; differs; not reproduced: no model gives it, or the full set "
    "was not counted",
    ("within 1 %", "equal when rounded", "differs", "not reproduced"),
)
