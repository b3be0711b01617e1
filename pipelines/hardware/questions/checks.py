"""What `kappa crit` is not asked: options that contradict each other or change nothing, and numbers that cannot be."""

from __future__ import annotations

import argparse

from warehouse.errors import UsageError

# Beyond every context and every cluster, and far from where numbers stop being exact.
MOST = 10**12
_OF_A_TURN = ("output_tokens", "pool_tokens", "idle_w", "busy_w")


def is_question(options: argparse.Namespace) -> bool:
    """Return whether a turn or a workload was asked for."""
    return any(value is not None for value in (options.cached_tokens, options.new_tokens, options.workload))


def check_question(options: argparse.Namespace) -> None:
    """Raise UsageError where an option cannot be, or says nothing beside the others."""
    for is_broken, what, why in (*_numbers(options), *_together(options)):
        if is_broken:
            raise UsageError(what, why, "see `kappa crit --help`")
    if not is_question(options):
        _check_alone(options)
    if options.workload:
        _refuse(options, _OF_A_TURN, "a turn", "it is not told of a workload", "give --cached-tokens and --new-tokens")


def _numbers(options: argparse.Namespace) -> tuple[tuple[bool, str, str], ...]:
    return (
        (_below(options.new_tokens, 1), f"--new-tokens {options.new_tokens} is not possible", "a turn computes one"),
        (_below(options.cached_tokens, 0), f"--cached-tokens {options.cached_tokens} is not possible", "below 0"),
        (options.chunk < 1, f"--chunk {options.chunk} is not possible", "a chunk holds at least one token"),
        (
            options.sustained_fraction is not None and not 0 < options.sustained_fraction <= 1,
            f"--sustained-fraction {options.sustained_fraction} is not possible",
            "it is a share of the dense peak, above 0 and at most 1",
        ),
        (not _is_share(options.tier_share), f"--tier-share {options.tier_share} is not possible", "not in 0 to 1"),
        (_below(options.output_tokens, 0), f"--output-tokens {options.output_tokens} is not possible", "below 0"),
        (_below(options.pool_tokens, 1), f"--pool-tokens {options.pool_tokens} is not possible", "no room for a token"),
        (
            options.tensor_parallel < 1,
            f"--tensor-parallel {options.tensor_parallel} is not possible",
            "it is a number of GPUs, at least 1",
        ),
        (
            not _are_watts(options.idle_w, options.busy_w),
            "--idle-w or --busy-w is not possible",
            "no power in watts",
        ),
        (_is_huge(options), "a number of tokens or GPUs is not possible", f"it is above {MOST:,}"),
    )


def _together(options: argparse.Namespace) -> tuple[tuple[bool, str, str], ...]:
    turn = (options.cached_tokens, options.new_tokens)
    powers = (options.idle_w, options.busy_w)
    return (
        (None in turn and turn != (None, None), "--cached-tokens and --new-tokens go together", "one is missing"),
        (options.workload and turn != (None, None), "a turn and a workload are two questions", "both were given"),
        (None in powers and powers != (None, None), "--idle-w and --busy-w go together", "one is missing"),
        (
            None not in powers and options.idle_w > options.busy_w,
            f"--idle-w {options.idle_w} is not possible",
            "it is above --busy-w",
        ),
        (options.tier_share is not None and not options.tier, "--tier-share needs --tier", "no tier was named"),
        (
            options.sustained_fraction is not None and options.basis not in (None, "physical"),
            f"--sustained-fraction is not of the basis {options.basis}",
            "only the physical basis takes a share of the dense peak",
        ),
        (options.counting is not None and not options.workload, "--counting needs --workload", "there is none"),
    )


def _check_alone(options: argparse.Namespace) -> None:
    """Raise UsageError for an option that says something of a turn or a workload where there is none."""
    alone = ("cost_model", "tier", *_OF_A_TURN)
    given = [*alone, *(["chunk"] if options.chunk != 1 else [])]
    why, remedy = "kappa_crit alone does not depend on it", "add --cached-tokens and --new-tokens, or --workload"
    _refuse(options, tuple(given), "a turn or a workload", why, remedy)


def _refuse(options: argparse.Namespace, names: tuple[str, ...], needs: str, why: str, remedy: str) -> None:
    given = [name for name in names if getattr(options, name) is not None]
    if given:
        named = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{named} need{'s' * (len(given) == 1)} {needs}", why, remedy)


def _is_share(value: float | None) -> bool:
    return value is None or 0 <= value <= 1


def _are_watts(*powers: float | None) -> bool:
    return all(power is None or 0 <= power < float("inf") for power in powers)


def _is_huge(options: argparse.Namespace) -> bool:
    names = ("cached_tokens", "new_tokens", "chunk", "output_tokens", "pool_tokens", "tensor_parallel")
    return any((getattr(options, name) or 0) > MOST for name in names)


def _below(value: int | None, least: int) -> bool:
    return value is not None and value < least
