"""Turns of a log that has the tokens itself: K and T as they were read, by no tokenizer; and its requests as arrays."""

from __future__ import annotations

import pyarrow.parquet as pq

from pipelines.reuse.requests import REQUESTS, Requests, read_requests
from pipelines.sessions.writing import SESSIONS
from pipelines.steps.inputs import logged_inputs
from pipelines.steps.product_names import conversations_name, turns_name
from pipelines.steps.turn_products import write_turns
from pipelines.workloads.declaration import Workload
from pipelines.workloads.formats.logged import turns_of
from warehouse.declared.fields import LOGGED
from warehouse.home.products import Product, identity_of
from warehouse.home.staging import Staging


def logged_turns(staging: Staging, workload: Workload) -> Product:
    """Make the turns of a workload whose log has the tokens of each request."""
    conversations = staging.require(conversations_name(workload.name))
    series = (workload.name, LOGGED, LOGGED, workload.reuse)
    name, inputs = turns_name(*series), logged_inputs(conversations.identity, workload.reuse)
    if (product := staging.reuse(name, identity_of(**inputs))) is not None:
        return product
    with staging.build(name, inputs=inputs) as draft:
        sessions = pq.read_table(conversations.file(SESSIONS))
        write_turns(draft, turns_of(read_requests(conversations.folder)), sessions, series)
        draft.meta.update(
            is_sample=conversations.meta["is_sample"], special_token_messages=0, uncounted_parts=0,
            reasoning_messages=0, fingerprint=LOGGED,
            engine=LOGGED, engine_version=LOGGED,
        )  # fmt: skip
    return staging.require(name)


def requests_of(staging: Staging, workload: str, turns: Product | None = None) -> Requests | None:
    """Return the requests of a log in order of service; None where reuse is `history` and follows from `turns`.

    Args:
        staging: The products.
        workload: Its name.
        turns: The turns of a series; a log with text has other identities by each tokenizer, which are with them.
    """
    if turns is not None and turns.file(REQUESTS).is_file():
        return read_requests(turns.folder)
    conversations = staging.require(conversations_name(workload))
    return read_requests(conversations.folder) if conversations.file(REQUESTS).is_file() else None
