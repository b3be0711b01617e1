"""The trace of a workload, from what its run left in the home folder: requests with their blocks, or turns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.exporting.forms import FORMS, USUAL_BLOCK, Form, Written, lines
from pipelines.exporting.question import ExportQuestion
from pipelines.exporting.rows import Row, rows_of_requests, rows_of_turns
from pipelines.steps.reuse.logged_turns import requests_of
from pipelines.steps.turn_products import TURNS_FILE
from pipelines.turns.derivation import Turns
from warehouse.declared.fields import COUNTINGS, HISTORY, PREFIX
from warehouse.declared.turn_tables import SERIES
from warehouse.errors import ErrorCode, KappaError, UsageError
from warehouse.hardware_rows.names import listed_names
from warehouse.home.products import Product
from warehouse.home.staging import Staging


@dataclass(frozen=True)
class Exported:
    """A trace while it is written.

    Attributes:
        series: Workload, tokenizer, counting and reuse.
        form: Its form.
        block_tokens: Tokens of a block.
        lines: Its lines without their ends, to be taken once.
        written: What the lines taken so far hold.
    """

    series: tuple[str, str, str, str]
    form: Form
    block_tokens: int
    lines: Iterator[str] = field(repr=False)
    written: Written


def exported(staging: Staging, question: ExportQuestion) -> Exported:
    """Return a workload as a trace without text.

    Raises:
        UsageError: the form, or a size of blocks, that there is not.
        KappaError: the workload was not run here, or its K has no blocks.
    """
    form = next((one for one in FORMS if one == question.form), None)
    if form is None:
        what, why = f"unknown form {question.form!r}", listed_names(question.form, FORMS)
        raise UsageError(what, why, "choose one of them", code=ErrorCode.USAGE)
    if question.block_tokens is not None and question.block_tokens < 1:
        what, why = f"--block-tokens {question.block_tokens} is not possible", "a block holds a token"
        raise UsageError(what, why, "give 1 or more", code=ErrorCode.USAGE)
    turns = _series(staging, question)
    series = (turns.meta["workload"], turns.meta["tokenizer"], turns.meta["counting"], turns.meta["reuse"])
    rows, block = _rows(staging, turns, question.block_tokens, form)
    written = Written()
    return Exported(series, form, block, lines(rows, form, block, question.salt, written), written)


def _series(staging: Staging, question: ExportQuestion) -> Product:
    """Return the turns of the series that is asked about, of several the first as declared."""
    found = []
    for name in staging.names("turns"):
        product = staging.newest(name)
        if product is not None and product.meta.get("workload") == question.workload:
            found.append(product)
    if not found:
        known = sorted({name.split("/")[1] for name in staging.names("turns")})
        what, why = f"{question.workload} has no turns here", listed_names(question.workload, known)
        remedy = f"run `kappa run --workload {question.workload}`"
        raise KappaError(what, why if known else "nothing was counted", remedy, code=ErrorCode.NOT_BUILT)
    asked = {"tokenizer": question.tokenizer, "counting": question.counting, "reuse": question.reuse}
    fits = [one for one in found if all(one.meta[name] == value for name, value in asked.items() if value is not None)]
    usable = [one for one in fits if has_blocks(staging, one)]
    if usable:
        return min(usable, key=_preference)
    if fits:
        what, why = f"{question.workload} cannot be a trace", f"blocks of K by {fits[0].meta['reuse']} are not kept"
        raise KappaError(what, why, "name another --reuse, such as history", code=ErrorCode.NOTHING_FITS)
    there = "; ".join(" ".join(one.meta[name] for name in SERIES[1:]) for one in sorted(found, key=_preference))
    what = f"{question.workload} has no turns by {' '.join(value for value in asked.values() if value)}"
    raise KappaError(what, f"it has {there}", "name one of them", code=ErrorCode.NOT_BUILT)


def has_blocks(staging: Staging, turns: Product) -> bool:
    """Return whether the blocks of a series are known: places in a session, or identities of requests."""
    if turns.meta["reuse"] == HISTORY:
        return True
    requests = requests_of(staging, turns.meta["workload"], turns)
    return requests is not None and requests.block_tokens > 0


def _preference(turns: Product) -> tuple[bool, int, str]:
    meta = turns.meta
    return meta["reuse"] != PREFIX, COUNTINGS.index(meta["counting"]), meta["tokenizer"]


def _rows(staging: Staging, turns: Product, block_tokens: int | None, form: Form) -> tuple[Iterator[Row], int]:
    if turns.meta["reuse"] == HISTORY:
        block = block_tokens or USUAL_BLOCK[form]
        return rows_of_turns(_turns(turns), block), block
    requests = requests_of(staging, turns.meta["workload"], turns)
    assert requests is not None
    block = block_tokens or requests.block_tokens
    return rows_of_requests(requests, block, is_chained=form == "bailian"), block


def _turns(product: Product) -> Turns:
    """Return the turns of a product in their order, sessions by number."""
    columns = ["session_id", "turn_index", "cached_tokens", "prefill_tokens", "output_tokens"]
    table = pq.read_table(product.file(TURNS_FILE), columns=columns)
    session = table["session_id"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    turn, cached, prefill = (table[name].to_numpy().astype(np.int64) for name in columns[1:4])
    output = pc.fill_null(table["output_tokens"], 0).to_numpy().astype(np.int64)
    has_output = np.asarray(table["output_tokens"].is_valid().to_numpy(), bool)
    return Turns(session, turn, cached, prefill, output, has_output)
