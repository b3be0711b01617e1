"""`kappa serve-sim`: TTFT over the request rate, policies, and the cheapest fleet."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, fields

import pyarrow as pa

from assets.commands.output import output_path
from assets.commands.terminal import chosen_format, write_rows
from kappa.serving import answers_of
from pipelines.capacity.machines.question import parse_tier
from pipelines.hardware.bandwidth import parse_bytes_per_s
from pipelines.serving.answers.answer import FleetAnswer, ServeAnswer
from pipelines.serving.answers.question import ServeQuestion
from pipelines.serving.answers.words import legend, routing_words
from warehouse.declared.formats import cell
from warehouse.home.home import Home, home_path

# Options that have another name than the field of the question.
_NAMED = {
    "chunk_tokens": "chunk", "bandwidth_bytes_per_s": "bandwidth", "rates_per_s": "rate", "slo_s": "slo",
    "policies": "policy", "prices": "price", "is_fleet": "fleet", "tiers": "tier",
}  # fmt: skip
# Fields without an option: what they change is a matter of the tables.
_OWN = ("load_shares", "has_knee")
SHOWN = (
    "model", "accelerator", "link", "policy", "rate_per_s", "load_share", "ttft_p50_s", "ttft_p90_s", "ttft_p99_s",
    "limit", "link_busy_share", "compute_busy_share", "tokens_per_iteration", "knee_per_s",
)  # fmt: skip
SHOWN_FLEET = (
    "model", "cached_from_tokens", "new_from_tokens", "turns", "accelerator", "link", "turn_share", "load_s",
    "compute_s", "machine_hours",
)  # fmt: skip


def serve_sim(options: argparse.Namespace) -> int:
    """Print what happens when the turns of a workload meet.

    Raises:
        KappaError: the question cannot be answered; see `pipelines.serving.answers.answering`.
    """
    home, output = home_path(options.home), output_path(options)
    question = question_of(options)
    chosen = chosen_format(options.format, output)
    found = answers_of(question, home, Home(home).database)
    table = pa.Table.from_pylist([asdict(answer) for answer in found])
    if chosen != "table" or output is not None:
        write_rows(table.to_batches(), table.schema, chosen, output, cell)
        return 0
    shown = table.select(_shown(question, found))
    write_rows(shown.to_batches(), shown.schema, chosen, output, cell)
    fleets = [answer for answer in found if isinstance(answer, FleetAnswer)]
    runs = [answer for answer in found if isinstance(answer, ServeAnswer)]
    print("\n".join(routing_words(fleets) if fleets else legend(question, runs)))
    return 0


def _shown(question: ServeQuestion, found: Sequence[ServeAnswer | FleetAnswer]) -> list[str]:
    if question.is_fleet:
        return list(SHOWN_FLEET)
    more = ["goodput_per_s"] if question.slo_s else []
    more += ["ttft_p90_low_s", "ttft_p90_high_s"] if question.seeds > 1 else []
    more += ["average_power_w"] if question.cap_w else []
    has_policies = len(question.policies) > 1
    more += ["bound_ttft_p90_s", "other_ttft_p90_s", "longest_wait_s", "jain_index"] if has_policies else []
    return [name for name in SHOWN if any(getattr(one, name) is not None for one in found)] + more


def question_of(options: argparse.Namespace) -> ServeQuestion:
    """Return the question that the options ask; what is not given has the question's default.

    Raises:
        UsageError: the bandwidth cannot be parsed.
    """
    given = {
        field.name: getattr(options, _NAMED.get(field.name, field.name))
        for field in fields(ServeQuestion)
        if field.name not in _OWN
    }
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    given["tiers"] = tuple(map(parse_tier, options.tier))
    if options.bandwidth:
        given["bandwidth_bytes_per_s"] = parse_bytes_per_s(options.bandwidth)
    return ServeQuestion(**{name: value for name, value in given.items() if value is not None})
