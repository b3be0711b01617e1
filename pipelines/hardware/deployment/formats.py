"""The number formats of weights, and the format in which an engine multiplies them."""

from __future__ import annotations

# Bytes of a quantised weight: MXFP4 shares an 8-bit scale between 32 of 4 bits, NVFP4 between 16; int4 a scale and a
# zero point of 16 bits between 32.
QUANTISED_BYTES = {"bf16": 2.0, "fp8": 1.0, "mxfp4": 17 / 32, "nvfp4": 9 / 16, "int4": 5 / 8}
# Formats that quantise the experts (all layers of a dense model) and leave the rest of the layers in bf16.
EXPERTS_ONLY = ("mxfp4", "nvfp4", "int4")
COMPUTE_DTYPES = ("bf16", "fp8", "fp4")
# The format of the matrix products that engines use for weights of a format, where the accelerator has its peak: vLLM
# multiplies MXFP4 and int4 in bf16 on every GPU.
_COMPUTED_IN = {"fp8": "fp8", "nvfp4": "fp4"}


def compute_dtype(weight_dtype: str, peaks: dict[str, float | None]) -> str:
    """Return the format in which an engine multiplies weights of a format, by the peaks that an accelerator has.

    >>> compute_dtype("fp8", {"fp8": None}), compute_dtype("fp8", {"fp8": 2e15}), compute_dtype("mxfp4", {"fp4": 9e15})
    ('bf16', 'fp8', 'bf16')
    """
    wanted = _COMPUTED_IN.get(weight_dtype, "bf16")
    return wanted if peaks.get(wanted) else "bf16"


def linear_bytes(weight_dtype: str, *, is_moe: bool) -> float:
    """Return the bytes of a weight of the dense layers: of a mixture, MXFP4 and its like quantise only the experts."""
    return 2.0 if is_moe and weight_dtype in EXPERTS_ONLY else QUANTISED_BYTES[weight_dtype]


def linear_dtype(weight_dtype: str, compute: str, *, is_moe: bool) -> str:
    """Return the format in which the dense layers are multiplied: bf16 where they are kept in it."""
    return "bf16" if is_moe and weight_dtype in EXPERTS_ONLY else compute
