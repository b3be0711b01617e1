"""`kappa export`: a workload of the home folder as a trace without text."""

from __future__ import annotations

import argparse
import sys

from assets.commands.output import output_path
from assets.commands.terminal import write_lines
from kappa.warehouse import open_warehouse
from pipelines.exporting.question import ExportQuestion

STDOUT = "-"


def export(options: argparse.Namespace) -> int:
    """Write the trace to a file or to standard output, and say on standard error what it holds."""
    if options.output == STDOUT:
        options.output = None
    output = output_path(options)
    question = ExportQuestion(
        workload=options.name, form=options.form, block_tokens=options.block_tokens, tokenizer=options.tokenizer,
        counting=options.counting, reuse=options.reuse, salt=options.salt,
    )  # fmt: skip
    with open_warehouse(options.home) as warehouse:
        trace = warehouse.export(question)
        write_lines(trace.lines, output)
    found = trace.written
    print(
        f"{' '.join(trace.series)}: {found.requests:,} requests in blocks of {trace.block_tokens:,} tokens, "
        f"K {found.cached_tokens:,} and T {found.prefill_tokens:,} tokens",
        file=sys.stderr,
    )
    if found.lesser:
        print(
            f"note: {found.lesser:,} requests have {found.lost_tokens:,} tokens of K less in the trace: no earlier "
            "request of it left their blocks",
            file=sys.stderr,
        )
    return 0
