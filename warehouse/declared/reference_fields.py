"""The columns of sourced rows other than models and machines: rules of thumb about copies, published traces."""

from __future__ import annotations

import pyarrow as pa

from warehouse.declared import bounds as p
from warehouse.declared.schema import Field, Unit

# The subject of a rule of thumb. Neither makes a link, because no machine was measured.
RULE_SUBJECTS = ("transfer-size", "pageable")


def _figure(name: str, unit: Unit, description: str, can_be: p.Range) -> Field:
    return Field(
        name, pa.float64(), unit, description, nullable=True, minimum=can_be.low, maximum=can_be.high,
        why_bounds=can_be.why,
    )  # fmt: skip


# The numbers of the timing model, and the unit of each.
NUMBERS = {
    "linear_fraction": "1", "expert_fraction": "1", "attention_fraction": "1", "hbm_fraction": "1",
    "matmul_fraction": "1", "layer_s": "s", "token_s": "s", "node_layer_s": "s", "copy_latency_s": "s",
    "tensor_parallel_bytes_per_s": "bytes/s", "link_bytes_per_s": "bytes/s",
}  # fmt: skip
NUMBER = Field(
    "number", pa.string(), "", "name of a number of the timing model; its unit is in its name, else it is a share",
    values=tuple(NUMBERS),
)  # fmt: skip
VALUE = Field(
    "value", pa.float64(), "of the metric", "its value", minimum=p.FITTED.low, maximum=p.FITTED.high,
    why_bounds=p.FITTED.why,
)  # fmt: skip
LEAST = _figure("least", "of the metric", "least value that the measurements leave open; NULL where none was fitted",
                p.FITTED)  # fmt: skip
MOST = _figure("most", "of the metric", "greatest such value; NULL where the measurements give none", p.FITTED)
TRUST = Field(
    "trust", pa.string(), "", "how far the measurements settle it",
    values=("good", "fair", "lower bound", "weak", "order", "one machine", "measured", "assumed"),
)  # fmt: skip
IS_IDENTIFIABLE = Field("is_identifiable", pa.bool_(), "", "whether the measurements settle it within a factor of 1.5")
POINTS = Field("points", pa.int64(), "1", "measurements that it was fitted on", minimum=p.POINTS.low,
               maximum=p.POINTS.high, why_bounds=p.POINTS.why)  # fmt: skip

# The classes of error: what an answer's band is taken from. Bytes are counts; the others have no formula here.
ERROR_CLASSES = (
    "load", "c2c-blackwell", "small-copies", "dense-prefill", "moe-prefill", "short-prefill-two-nodes", "ttft-hit",
    "gain", "paper", "bytes", "not-predicted",
)  # fmt: skip
QUANTITIES = (
    "load_s", "prefill_s", "ttft_s", "ttft_gain", "host_to_device_bytes_per_s", "pcie_overhead", "kappa_crit",
    "kv_bytes_per_token", "gpu_kv_bytes_per_token", "loaded_bytes", "not-predicted",
)  # fmt: skip
POINT = Field("point", pa.string(), "", "name of a public measurement")
ERROR_CLASS = Field("error_class", pa.string(), "", "what was measured, as errors are summed up", values=ERROR_CLASSES)
POINT_QUANTITY = Field("quantity", pa.string(), "", "the measured quantity; units are in the names", values=QUANTITIES)
MEASURED_AT = Field("measured", pa.float64(), "of the metric", "the measured value", minimum=p.MEASURED_VALUE.low,
                    maximum=p.MEASURED_VALUE.high, why_bounds=p.MEASURED_VALUE.why)  # fmt: skip
POINT_GPUS = Field("gpus", pa.int64(), "1", "GPUs that shared the model", nullable=True, minimum=p.GPUS.low,
                   maximum=p.GPUS.high, why_bounds=p.GPUS.why)  # fmt: skip
POINT_CACHED = Field("cached_tokens", pa.int64(), "tokens", "K; NULL where there is none", nullable=True, minimum=0,
                     maximum=p.TOKENS.high, why_bounds=p.TOKENS.why)  # fmt: skip
POINT_NEW = Field("new_tokens", pa.int64(), "tokens", "T; NULL where it plays no part", nullable=True, minimum=1,
                  maximum=p.TOKENS.high, why_bounds=p.TOKENS.why)  # fmt: skip
POINT_RATE = _figure("bytes_per_s", "bytes/s", "link of one GPU as the prediction takes it", p.LINK_RATE)
COPIED = _figure("copied_bytes", "bytes", "size of one copy; NULL where copies are large", p.SIZE)
IS_SCORED = Field("is_scored", pa.bool_(), "", "whether its error counts: not of bytes, nor where no formula answers")
POINT_ORIGIN = Field("origin", pa.string(), "", "source that is left out as a whole when its points are predicted")
HELD_OUT = Field("held_out", pa.float64(), "of the metric", "predicted by numbers fitted without its origin",
                 minimum=p.MEASURED_VALUE.low, maximum=p.MEASURED_VALUE.high,
                 why_bounds=p.MEASURED_VALUE.why)  # fmt: skip

PREDICTED = Field("predicted", pa.float64(), "of the metric", "by the model with its default numbers; NULL where no "
                  "formula answers", nullable=True, minimum=0)  # fmt: skip
ERROR_FACTOR = Field("factor", pa.float64(), "1", "how many times the prediction is off, either way", nullable=True,
                     minimum=1)  # fmt: skip
HELD_OUT_FACTOR = Field("held_out_factor", pa.float64(), "1", "the same, predicted without its origin", nullable=True,
                        minimum=1)  # fmt: skip
CLASS_POINTS = Field("points", pa.int64(), "1", "scored measurements of the class", minimum=1)
MEAN_FACTOR = Field("mean_factor", pa.float64(), "1", "geometric mean of their factors", minimum=1)
WORST_FACTOR = Field("worst_factor", pa.float64(), "1", "the greatest of them", minimum=1)
HELD_OUT_MEAN = Field("held_out_mean_factor", pa.float64(), "1", "geometric mean, predicted without their origin",
                      minimum=1)  # fmt: skip
HELD_OUT_WORST = Field("held_out_worst_factor", pa.float64(), "1", "the greatest of those: the band of an answer",
                       minimum=1)  # fmt: skip

RULE = Field("rule", pa.string(), "", "name of the rule of thumb")
ABOUT = Field(
    "about", pa.string(), "", "what the rule is about: size of a copy, or host memory that is not pinned",
    values=RULE_SUBJECTS,
)  # fmt: skip
LEAST_COPY = _figure("least_copy_bytes", "bytes", "smallest copy that the rule is for; NULL for any", p.SIZE)
MOST_COPY = _figure("most_copy_bytes", "bytes", "largest copy that the rule is for; NULL for any", p.SIZE)
LEAST_RATE = _figure("least_bytes_per_s", "bytes/s", "lower end of the rate", p.COPY_RATE)
MOST_RATE = _figure("most_bytes_per_s", "bytes/s", "upper end of the rate; NULL where none is said", p.COPY_RATE)
LEAST_SHARE = _figure("least_share_of_pinned", "1", "lower end, as a share of pinned copies", p.SHARE)
MOST_SHARE = _figure("most_share_of_pinned", "1", "upper end, as a share of pinned copies", p.SHARE)

TRACE = Field("trace", pa.string(), "", "name of a trace or data set that others measured")
ORIGIN = Field("origin", pa.string(), "", "paper or repository that it comes from")
REQUESTS = _figure("requests", "1", "requests in it; NULL where the size is told otherwise, see note", p.REQUESTS)
INPUT_MEAN = _figure("input_tokens_mean", "tokens", "prompt tokens of a request, mean", p.TOKENS)
INPUT_P50 = _figure("input_tokens_p50", "tokens", "the same, median", p.TOKENS)
INPUT_P90 = _figure("input_tokens_p90", "tokens", "the same, 90th percentile", p.TOKENS)
INPUT_P99 = _figure("input_tokens_p99", "tokens", "the same, 99th percentile", p.TOKENS)
REPLY_MEAN = _figure("reply_tokens_mean", "tokens", "tokens of a reply, mean", p.TOKENS)
REPLY_P50 = _figure("reply_tokens_p50", "tokens", "the same, median", p.TOKENS)
REUSE = Field(
    "reuse", pa.string(), "", "share of prompt tokens that is reused, in the words of its source", nullable=True
)
NEW_P50 = _figure("new_tokens_p50", "tokens", "new tokens of a request, median", p.TOKENS)
REUSED_P50 = _figure("reused_tokens_p50", "tokens", "reused tokens of a request, median", p.TOKENS)
TRACE_BLOCK = _figure("trace_block_tokens", "tokens", "block in which reuse was counted", p.TOKENS)
