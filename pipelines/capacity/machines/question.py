"""A question about the cache of a workload for a model on a machine, and its tiers as people write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.hardware.bandwidth import parse_bytes_per_s
from pipelines.hardware.deployment.fitting import MOST_GPUS
from warehouse.errors import ErrorCode, UsageError
from warehouse.hardware_rows.units import parse_quantity

MOST_BYTES = 1e18
# Of a whole fleet; bytes a second then stay far below the largest number.
MOST_REQUESTS_PER_S = 1e12


@dataclass(frozen=True, slots=True)
class Tier:
    """A part of the cache that tokens are loaded from.

    Attributes:
        name: Such as dram, nvme, remote.
        size_bytes: Its size, for all accelerators of the model together.
        bytes_per_s: What it gives to all of them together; None where only their links limit.
    """

    name: str
    size_bytes: float
    bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class CacheQuestion:
    """How much of a workload a cache of a given size keeps, and what of it crosses the link.

    Attributes:
        workload: A workload of the home folder.
        model: Its name in any case.
        accelerator: Its name in any case.
        link: Of the accelerators to host memory; None for the one that the accelerator is built with.
        tiers: Behind the accelerators' own memory, the nearest first; none for a list of sizes of host memory.
        kv_dtype: A key of `KV_ELEMENT_BYTES`.
        gpus: Accelerators that share each layer; None for the fewest that hold weights and a pool.
        counting: None for that of the log, else text.
        reuse: None for what the workload has; prefix before history.
        sessions: Sessions served at a time, a turn each in turn, where the workload has no times.
        block_tokens: Tokens of a block where the workload has text: 16 is vLLM's, 256 LMCache's.
        requests_per_s: Rate of requests for the bytes a second; None for the log's own.
    """

    workload: str
    model: str
    accelerator: str
    link: str | None = None
    tiers: tuple[Tier, ...] = ()
    kv_dtype: str = "bf16"
    gpus: int | None = None
    counting: str | None = None
    reuse: str | None = None
    sessions: int = 256
    block_tokens: int = 16
    requests_per_s: float | None = None


def parse_tier(text: str) -> Tier:
    """Return a tier from NAME=SIZE or NAME=SIZE@BANDWIDTH.

    Raises:
        UsageError: the text is no such thing.

    >>> parse_tier("nvme=8TB@14GB/s")
    Tier(name='nvme', size_bytes=8000000000000.0, bytes_per_s=14000000000.0)
    """
    name, has_size, rest = text.partition("=")
    size, has_rate, rate = rest.partition("@")
    try:
        held = parse_quantity(size, "bytes")
    except ValueError:
        held = -1.0
    if not (name.strip() and has_size and 0 <= held < MOST_BYTES):
        raise UsageError(
            f"tier {text!r} is not understood",
            "it is a name, a size with its unit, and maybe a bandwidth",
            "write it like dram=512GB or nvme=8TB@14GB/s",
            code=ErrorCode.USAGE,
        )
    return Tier(name.strip(), held, parse_bytes_per_s(rate) if has_rate else None)


def checked(question: CacheQuestion) -> CacheQuestion:
    """Return the question.

    Raises:
        UsageError: a number is not possible, or a tier is named twice.
    """
    check_tiers(question.tiers)
    wrong = [
        (question.sessions < 1, f"--sessions {question.sessions}", "a session is served at a time, or more"),
        (question.block_tokens < 1, f"--block-tokens {question.block_tokens}", "a block holds a token, or more"),
        (
            question.gpus is not None and not 1 <= question.gpus <= MOST_GPUS,
            f"--tensor-parallel {question.gpus}", f"it is a number of GPUs from 1 to {MOST_GPUS:,}",
        ),
        (
            question.requests_per_s is not None and not 0 < question.requests_per_s <= MOST_REQUESTS_PER_S,
            f"--rate {question.requests_per_s}", f"it is above 0 and at most {MOST_REQUESTS_PER_S:g} a second",
        ),
    ]  # fmt: skip
    for is_wrong, what, why in wrong:
        if is_wrong:
            raise UsageError(f"{what} is not possible", why, "see `kappa cache --help`", code=ErrorCode.USAGE)
    return question


def check_tiers(tiers: Sequence[Tier]) -> None:
    """Raise UsageError where a tier is named twice."""
    names = [tier.name for tier in tiers]
    if len(set(names)) < len(names):
        raise UsageError(
            f"tiers {', '.join(names)} are not possible", "one is named twice", "give each its own name",
            code=ErrorCode.USAGE,
        )  # fmt: skip
