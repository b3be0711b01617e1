"""Turns whose cached tokens lie in tiers of a size: GPU memory needs no link, and what was evicted is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipelines.capacity.distances import Hits, hits_of
from pipelines.capacity.machines.deployment import Deployment, deployment, slowness
from pipelines.capacity.machines.question import Tier
from pipelines.capacity.requests import Floats, Requests, requests_of_turns
from pipelines.capacity.tiers import tier_tokens
from pipelines.hardware.entities import Accelerator
from pipelines.hardware.what_if import Setting
from pipelines.serving.answers.reading import ReadTurns
from pipelines.serving.answers.turns import ServedTurns
from warehouse.declared.fields import HISTORY
from warehouse.errors import ErrorCode, KappaError

# vLLM's block, where none was asked for.
BLOCK_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Tiered:
    """Turns as a cache of a size serves them.

    Attributes:
        turns: K is K_gpu + K_link, T is T_eff: what no tier holds any more is computed.
        loaded_tokens: K_link, each token as many times as its tier is slower than the link; shape (turns,).
        gpu_token_share: Share of all prompt tokens that the GPUs' own memory holds.
        link_token_share: Share of all prompt tokens that come over the link.
    """

    turns: ServedTurns
    loaded_tokens: Floats
    gpu_token_share: float
    link_token_share: float


def tiered(
    found: ReadTurns, tiers: Sequence[Tier], block_tokens: int, setting: Setting, accelerator: Accelerator
) -> Tiered:
    """Return turns as the GPUs' own memory and tiers behind it serve them, least recently used blocks evicted.

    Args:
        found: Turns in the order of service.
        tiers: Behind the GPUs' own memory, the nearest first.
        block_tokens: Tokens that are reused together; `BLOCK_TOKENS` where it is 1.
        setting: Model and machine.
        accelerator: Whose memory is the first tier.

    Raises:
        KappaError: blocks of the turns are not known, or the model has no place on the accelerators.
    """
    placed = deployment(setting.model, accelerator, setting.kv_dtype, setting.machine.tensor_parallel)
    if placed is None:
        raise KappaError(
            f"{setting.model.model} has no place on {accelerator.accelerator}",
            "its size is unknown",
            "leave out --tier",
            code=ErrorCode.NOTHING_FITS,
        )
    return split(found, tiers, block_tokens if block_tokens > 1 else BLOCK_TOKENS, placed, setting.machine.bytes_per_s)


def split(found: ReadTurns, tiers: Sequence[Tier], block_tokens: int, placed: Deployment, bytes_per_s: float) -> Tiered:
    """Return turns as memory of a deployment and tiers serve them; `bytes_per_s` is the rate of each GPU's link.

    Raises:
        KappaError: blocks of the turns are not known.
    """
    requests, hits = _requests(found, block_tokens)
    size = requests.block_tokens
    blocks = [placed.gpu_blocks(size), *(placed.host_blocks(tier.size_bytes, size) for tier in tiers)]
    tokens = tier_tokens(requests, hits, blocks)
    slow = np.array([slowness(placed, bytes_per_s, tier.bytes_per_s) for tier in tiers])
    turns = replace(found.turns, cached_tokens=tokens.gpu_tokens + tokens.k_link, new_tokens=tokens.computed_tokens)
    total = float(requests.context_tokens.sum())
    return Tiered(
        turns, slow @ tokens.link_tokens, float(tokens.gpu_tokens.sum()) / total, float(tokens.k_link.sum()) / total
    )


def _requests(found: ReadTurns, block_tokens: int) -> tuple[Requests, Hits]:
    """Return what each turn looks up and leaves: places in its session, or identities of the log."""
    turns = found.turns
    if found.series.reuse == HISTORY:
        columns = (turns.cached_tokens, turns.new_tokens, turns.output_tokens, turns.session)
        requests = requests_of_turns(*columns, block_tokens)
        return requests, hits_of(requests)
    if found.log is None:
        raise KappaError(
            f"{found.series.workload} has no blocks by {found.series.reuse}",
            "the home folder holds none whose order is that of the turns",
            "ask with --reuse history, or without --tier",
            code=ErrorCode.NOT_BUILT,
        )
    return found.log
