"""The tables that hold turns against hardware: which turns are bound by what, and the design questions."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.hardware.boundness import boundness
from pipelines.hardware.design_questions import design_questions
from pipelines.hardware.machines import read_sources
from pipelines.hardware.ratios import hardware_tables
from pipelines.steps.makers.hardware import user_rows
from pipelines.steps.series import some
from pipelines.steps.turn_products import TURNS_FILE
from warehouse.declared.turn_tables import SERIES
from warehouse.hardware_rows.rows import FOLDER, load_reference
from warehouse.home.products import Product
from warehouse.home.staging import Staging


def boundness_rows(staging: Staging, parts: list[Product]) -> pa.Table:
    """Return which share of every series is bound by memory, on the machines of the headlines."""
    user = user_rows(staging)
    hardware, headlines = hardware_tables(FOLDER, user), load_reference("headlines", FOLDER, user)
    tables = []
    for part in some(parts):
        turns = pq.read_table(part.file(TURNS_FILE), columns=["cached_tokens", "prefill_tokens"])
        names = {name: part.meta[name] for name in SERIES}
        tables.append(boundness([turns], **names, hardware=hardware, headlines=headlines))
    return pa.concat_tables(tables)


def design_question_rows(staging: Staging, parts: list[Product]) -> pa.Table:
    """Return the answers to the design questions over every series."""
    user = user_rows(staging)
    headlines = load_reference("headlines", FOLDER, user).to_pylist()
    models, sources = [row["model"] for row in headlines if row["model"]], read_sources(FOLDER, user)
    tables = []
    for part in some(parts):
        turns = pq.read_table(part.file(TURNS_FILE), columns=["cached_tokens", "prefill_tokens"])
        names = {name: part.meta[name] for name in SERIES}
        tables.append(design_questions([turns], **names, sources=sources, models=models))
    return pa.concat_tables(tables)
