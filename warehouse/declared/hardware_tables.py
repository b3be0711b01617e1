"""Tables of models and machines, and of workloads run on them."""

from __future__ import annotations

from dataclasses import replace

from warehouse.declared import fields as f
from warehouse.declared import hardware_fields as h
from warehouse.declared import reference_fields as r
from warehouse.declared.schema import Table
from warehouse.declared.turn_tables import SERIES, SERIES_FIELDS

_PLATFORM = (h.ACCELERATOR, h.LINK, h.BASIS)
MODELS = Table(
    "models",
    "one model",
    ("model",),
    (
        h.MODEL, f.REPO_ID, h.ATTENTION, h.TOTAL_PARAMS, h.ACTIVE_PARAMS, h.LAYERS, h.HEADS, h.KV_HEADS,
        h.HEAD_DIM, h.KV_BYTES_PER_TOKEN, h.FLOPS_PER_TOKEN, h.MODEL_CONTEXT, f.TOKENIZER,
        h.IS_TOKENIZER_PROXY, h.IS_MOE, h.EXPERTS, h.EXPERTS_PER_TOKEN, h.LAYER_PARAMS, h.HEAD_PARAMS,
        h.FULL_LAYERS, h.SLIDING_LAYERS, h.LINEAR_LAYERS, h.KV_SHARED_LAYERS, h.SLIDING_WINDOW, h.SLIDING_KV_HEADS,
        h.SLIDING_HEAD_DIM, h.V_HEAD_DIM, h.KV_LORA_RANK, h.QK_ROPE_HEAD_DIM, *h.LINEAR_STATE,
        h.MARGINAL_KV_BYTES, h.MARGINAL_FP8_KV_BYTES, h.FIXED_STATE_BYTES, h.INDEXER_BYTES,
        *(field.or_null() for field in h.INDEXER), h.ATTENTION_FLOPS,
        h.SLIDING_ATTENTION_FLOPS, h.ABSORBED_ATTENTION_FLOPS, h.MLA_UPPROJECTION_FLOPS, h.HIDDEN_SIZE, h.SERVED_DTYPE,
        h.NOTE, h.RETRIEVED,
        h.CONFIDENCE, f.SOURCE,
    ),
)  # fmt: skip
ACCELERATORS = Table(
    "accelerators",
    "one accelerator",
    ("accelerator",),
    (
        h.ACCELERATOR,
        h.DENSE_BF16,
        h.SPARSE_BF16,
        h.DENSE_FP8,
        h.SPARSE_FP8,
        h.DENSE_FP4,
        h.HBM_BYTES,
        h.HBM_BYTES_PER_S,
        h.TDP_W,
        h.MEASURED_BF16,
        h.NOTE,
        h.RETRIEVED,
        h.CONFIDENCE,
        f.SOURCE,
    ),
)
LINKS = Table(
    "links",
    "one way between host memory and accelerator",
    ("link",),
    (
        h.LINK,
        h.KIND,
        h.PEAK_BYTES_PER_S,
        h.SUSTAINED_BYTES_PER_S,
        h.TO_HOST_BYTES_PER_S,
        h.DUPLEX_BYTES_PER_S,
        h.COPY_LATENCY,
        h.NODE_BYTES_PER_S,
        h.NOTE,
        h.RETRIEVED,
        h.CONFIDENCE,
        f.SOURCE,
    ),
)
PLATFORMS = Table(
    "platforms",
    "one accelerator with a link that it is really built with, or that the paper assumes",
    ("accelerator", "link", "basis"),
    (
        *_PLATFORM,
        h.NOTE,
        h.RETRIEVED,
        replace(h.CONFIDENCE, description=f"{h.CONFIDENCE.description}; physical: that of its parts at most"),
        f.SOURCE,
    ),
)
KAPPA_CRIT = Table(
    "kappa_crit",
    "one model on one platform with one kv_dtype",
    ("model", "accelerator", "link", "basis", "kv_dtype"),
    (
        h.MODEL,
        *_PLATFORM,
        h.KV_DTYPE,
        h.KAPPA_M,
        h.KAPPA_HW,
        h.KAPPA_CRIT,
        f.TOKENIZER,
        h.GPUS,
        h.WEIGHT_DTYPE,
        h.COMPUTE_DTYPE,
    ),
)
HEADLINES = Table(
    "headlines",
    "one model, or one platform, that figures and coarse blocks are made for",
    ("model", "accelerator", "link", "basis"),
    (h.MODEL.or_null(), h.ACCELERATOR.or_null(), h.LINK.or_null(), h.BASIS.or_null()),
)
BOUNDNESS = Table(
    "boundness",
    "one workload on one model and platform",
    (*SERIES, "block_tokens", "model", "accelerator", "link", "basis", "kv_dtype", "cost_model"),
    (
        *SERIES_FIELDS,
        f.BLOCK,
        h.MODEL,
        *_PLATFORM,
        h.KV_DTYPE,
        h.COST_MODEL,
        h.KAPPA_CRIT,
        f.TURN_SHARE,
        f.TOKEN_SHARE,
        f.TIME_SHARE,
        f.TRANSFER_SHARE,
        f.OVER_CONTEXT_SHARE,
        f.POH_P50,
        f.POH_P90,
        f.POH_P99,
        replace(
            h.IS_TOKENIZER_PROXY,
            description="the model's own vocabulary is another one than that of the counts, or the log has the counts",
        ),
        h.GPUS,
        h.WEIGHT_DTYPE,
        h.COMPUTE_DTYPE,
    ),
    partition_by=SERIES,
)
VALIDATION = Table(
    "validation",
    "one public measurement beside the model's prediction",
    ("point",),
    (
        r.POINT, r.ERROR_CLASS, h.MODEL.or_null(), h.ACCELERATOR.or_null(), r.POINT_GPUS, h.LINK.or_null(),
        r.POINT_CACHED, r.POINT_NEW, r.POINT_QUANTITY, r.MEASURED_AT, r.PREDICTED, r.HELD_OUT.or_null(), r.ERROR_FACTOR,
        r.HELD_OUT_FACTOR, r.IS_SCORED, r.POINT_ORIGIN, h.NOTE, h.RETRIEVED, h.CONFIDENCE, f.SOURCE,
    ),
)  # fmt: skip
VALIDATION_BY_CLASS = Table(
    "validation_by_class",
    "one class of public measurements",
    ("error_class",),
    (r.ERROR_CLASS, r.CLASS_POINTS, r.MEAN_FACTOR, r.WORST_FACTOR, r.HELD_OUT_MEAN, r.HELD_OUT_WORST),
    is_view=True,
)
DESIGN_QUESTIONS = Table(
    "design_questions",
    "one variant of a design question for one workload and model",
    (*SERIES, "model", "basis", "question", "variant"),
    (
        *SERIES_FIELDS,
        h.MODEL,
        h.ACCELERATOR,
        h.BASIS,
        h.QUESTION,
        h.VARIANT,
        h.LINK_BYTES_PER_S,
        h.KV_BYTES_PER_TOKEN,
        h.KAPPA_CRIT,
        h.COMPUTE_BOUND_SHARE,
        h.GAINED_SHARE,
    ),
    partition_by=SERIES,
)
