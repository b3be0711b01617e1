"""`kappa cache`: how much of a workload a cache of a given size keeps, and what of it crosses the link."""

from __future__ import annotations

import argparse
from dataclasses import asdict, fields

import pyarrow as pa

from assets.commands.output import output_path
from assets.commands.terminal import chosen_format, write_rows
from kappa.asking import cache_answer_of
from pipelines.capacity.machines.answer import CacheAnswer, CacheRow
from pipelines.capacity.machines.question import CacheQuestion, parse_tier
from pipelines.capacity.machines.workload_requests import order_words
from warehouse.declared.formats import cell, number, percent, quantity
from warehouse.home.home import Home, home_path

SHOWN = ("cache", "hit ratio", "of endless", "best", "GPU", "link", "computed", "kappa_link p50", "p99", "link bound",
         "compute bound", "no load", "link bytes/request", "link bytes/s")  # fmt: skip


def cache(options: argparse.Namespace) -> int:
    """Print what caches of several sizes give, and the verdict.

    Raises:
        KappaError: the question cannot be answered; see `pipelines.capacity.machines.answering`.
    """
    home, output = home_path(options.home), output_path(options)
    given = {field.name: getattr(options, field.name) for field in fields(CacheQuestion) if field.name != "tiers"}
    given["workload"] = options.workload or options.place
    question = CacheQuestion(**given, tiers=tuple(map(parse_tier, options.tier)))
    chosen = chosen_format(options.format, output)
    answer = cache_answer_of(question, home, Home(home).database)
    if chosen == "table" and output is None:
        print(heading(answer))
        shown = pa.Table.from_pylist([dict(zip(SHOWN, _cells(row), strict=True)) for row in answer.rows])
        write_rows(shown.to_batches(), shown.schema, chosen, output, cell)
        print(verdict(answer))
        for note in answer.notes:
            print(f"note: {note}")
        return 0
    common = {name: value for name, value in asdict(answer).items() if name not in ("rows", "verdict_row")}
    common["notes"] = "; ".join(answer.notes)
    table = pa.Table.from_pylist([common | asdict(row) for row in answer.rows])
    write_rows(table.to_batches(), table.schema, chosen, output, cell)
    return 0


def heading(answer: CacheAnswer) -> str:
    """Return the lines above the table: what is served, and on what."""
    sample = "sample: generated text, not the data set\n" if answer.is_sample else ""
    proxy = f" (proxy: {answer.model} has another vocabulary)" if answer.is_tokenizer_proxy else ""
    pool = quantity(answer.gpu_pool_bytes, "B")
    return (
        f"{sample}{answer.workload}, counted by {answer.tokenizer}{proxy}, {answer.counting}, reuse {answer.reuse}: "
        f"{answer.requests:,} requests {order_words(answer.interleaving)}, blocks of {answer.block_tokens}\n"
        f"{answer.model}, {answer.kv_dtype} keys and values, on {answer.gpus} x {answer.accelerator} + {answer.link}: "
        f"{pool} of their memory left for the cache, {quantity(answer.kv_token_bytes, 'B')} a token, "
        f"kappa_crit {number(answer.kappa_crit)}"
    )


def verdict(answer: CacheAnswer) -> str:
    """Return the verdict in sentences, and the knee of the curve."""
    row = answer.rows[answer.verdict_row]
    what = row.tiers or "The accelerators' own memory"
    keeps = "keep" if row.tiers else "keeps"
    bound = "with it" if not row.tiers else "with them"
    waits = "" if row.link_bound_turn_share is None else (
        f"; {bound} {percent(row.link_bound_turn_share, 0)} of the turns wait for the link"
    )  # fmt: skip
    exact = "" if answer.is_best_exact else " at most"
    return (
        f"{what} {keeps} {percent(row.share_of_endless, 0)} of what an endless cache keeps{waits}; "
        f"the next {quantity(row.next_bytes, 'B')} bring {percent(row.next_hit_ratio)} of all tokens.\n"
        f"An endless cache keeps {percent(answer.endless_hit_ratio)} of all tokens, "
        f"{percent(answer.across_share, 0)} of that from other sessions. A policy that knows the future keeps{exact} "
        f"{percent(row.best_hit_ratio)} in the same size, this one {percent(row.hit_ratio)}.\n"
        f"Knee: from {quantity(answer.knee_bytes, 'B')} on the next 100 GB never bring 1 % of all tokens."
    )


def _cells(row: CacheRow) -> tuple[str, ...]:
    return (
        row.tiers or "none", *(percent(share) for share in (
            row.hit_ratio, row.share_of_endless, row.best_hit_ratio, row.gpu_token_share, row.link_token_share,
            row.computed_token_share)),
        number(row.kappa_link_p50), number(row.kappa_link_p99),
        *map(percent, (row.link_bound_turn_share, row.compute_bound_turn_share, row.no_link_turn_share)),
        quantity(row.link_bytes_per_request, "B"), quantity(row.link_bytes_per_s, "B/s"),
    )  # fmt: skip
