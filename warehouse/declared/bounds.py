"""Bounds of the figures of models and machines, each with its reason. A figure outside is in another unit."""

from __future__ import annotations

from typing import NamedTuple


class Range(NamedTuple):
    """The least and the greatest accepted figure, and the reason."""

    low: float
    high: float
    why: str


PARAMS = Range(1e6, 1e14, "the smallest language models have millions, and none has 10^14")
HEAD_PARAMS = Range(1e4, 1e12, "a small vocabulary times a narrow model, to far above any")
LAYERS = Range(1, 2000, "models have one to some hundred")
SOME_LAYERS = Range(0, 2000, "a part of the layers")
HEADS = Range(1, 4096, "models have one to some hundred")
WIDTH = Range(8, 65536, "heads and latents are 64 to 576 wide")
KERNEL = Range(2, 64, "convolutions of linear layers are 4 tokens wide")
EXPERTS = Range(1, 100_000, "models have 8 to some thousand")
CONTEXT = Range(512, 1e9, "contexts are thousands to 10^7 tokens; 128K are 131,072")
WINDOW = Range(16, 1e8, "windows are 128 to some thousand tokens")
KV_BYTES = Range(32, 1e8, "a layer with one narrow head takes 32 bytes, 126 layers of eight take 516,096")
GROWING_KV_BYTES = Range(0, 1e8, "0 where no layer grows; 126 layers with eight heads take 516,096")
INDEXER_BYTES = Range(0, 1e6, "132 bytes a layer")
STATE_BYTES = Range(0, 1e12, "states and windows are megabytes to some gigabytes")
PAIR_FLOPS = Range(0, 1e11, "0 where no layer is of that kind; 126 layers with 128 heads take 8e6")
TOKEN_FLOPS = Range(1, 1e13, "61 layers with 128 heads take 2e9")
FLOP_RATE = Range(1e12, 2e17, "a small accelerator does 1e12, a whole wafer 1e17; 989.5 TFLOP/s are 9.895e14")
MEASURED_FLOP_RATE = Range(1e10, 2e17, "emulated formats are slow; no accelerator does more than 1e17")
MEMORY = Range(1e9, 1e14, "a small accelerator has 1e9 bytes; 80 GB are 8e10")
MEMORY_RATE = Range(1e10, 1e14, "slow memory brings 1e10, the fastest stacks 2e13; 3.35 TB/s are 3.35e12")
POWER = Range(5, 20_000, "a card takes tens of watts, a liquid-cooled module some thousand")
LINK_RATE = Range(1e8, 3e13, "a slow disk brings 1e8, memory in common 8e12; 64 GB/s are 6.4e10")
MEASURED_LINK_RATE = Range(
    1e6, 6e13, "small blocks through an engine bring 1e8; both directions at most twice the peak"
)
COPY_RATE = Range(1e6, 3e13, "small pageable copies bring 1e7, memory in common 8e12")
RATE = Range(1e3, 2e17, "bytes/s of the smallest copy to FLOP/s of the largest accelerator")
SIZE = Range(1, 1e12, "one byte or row to a terabyte")
HOURLY_PRICE = Range(1e-4, 1e4, "an accelerator costs cents to some hundred USD an hour")
SHARE = Range(0, 1, "a share")
REQUESTS = Range(1, 1e11, "traces have thousands to 10^8 requests")
TOKENS = Range(1, 1e9, "prompts are some to 10^7 tokens")
LATENCY = Range(1e-9, 1, "a copy, a kernel or a token takes 1e-7 to 1e-2 s; 14 us are 1.4e-5")
FITTED = Range(1e-9, 1e13, "a share, seconds of a layer or a token, or bytes/s between GPUs")
MEASURED_VALUE = Range(1e-9, 1e15, "seconds of a request to bytes/s of a link")
POINTS = Range(1, 1e6, "measurements are some to thousands")
GPUS = Range(1, 1e5, "one to some thousand")
KAPPA_M = Range(1e2, 1e9, "FLOP/byte; the paper prints 7e4 to 1.42e6")
