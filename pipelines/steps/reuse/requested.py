"""K by `prefix` of the requests of a log that has their text: identities of blocks from our own tokens."""

from __future__ import annotations

import logging
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.chat.requested import Left, Requested
from pipelines.counting.engines import Counter, begin_ids, exact_counter, fast_counter, rendered_prompts
from pipelines.reuse.given import dense_codes
from pipelines.reuse.identities import BLOCK_TOKENS, Blocks, Ints
from pipelines.reuse.leading import cached_by_blocks, leading_blocks
from pipelines.reuse.requests import Requests, write_requests
from pipelines.sessions.service import Places, read_service
from pipelines.sessions.structures import structures
from pipelines.sessions.writing import SESSIONS
from pipelines.steps.distrust import is_distrusted
from pipelines.steps.fetching import own_tokenizers, tokenizer_file_of
from pipelines.steps.forgetting import with_text
from pipelines.steps.inputs import requested_inputs
from pipelines.steps.product_names import conversations_name, tokenizer_name, turns_name
from pipelines.steps.turn_products import write_turns
from pipelines.turns.derivation import Turns
from pipelines.vocab.files import TokenizerFile
from pipelines.vocab.template_files import chat_template
from pipelines.workloads.declaration import Workload
from warehouse.declared.fields import PREFIX
from warehouse.declared.formats import percent
from warehouse.home.products import Product, identity_of
from warehouse.home.staging import Staging

LOG = logging.getLogger("kappa")


def derive_requested_turns(staging: Staging, workload: Workload, tokenizer: str) -> Product:
    """Derive the turns of logged requests, counted as `chat`, and the identities of the blocks that each leaves."""
    conversations = staging.require(conversations_name(workload.name))
    noted = staging.require(tokenizer_name(tokenizer))
    file = tokenizer_file_of(staging, noted)
    distrusted = is_distrusted(staging, tokenizer, file.fingerprint)
    series = (workload.name, tokenizer, "chat", PREFIX)
    raw, own = conversations.meta["raw"], own_tokenizers(staging)
    name, inputs = turns_name(*series), requested_inputs(raw, noted.meta, own, distrusted=distrusted)
    if (product := staging.reuse(name, identity_of(**inputs))) is not None:
        return product
    conversations = with_text(staging, workload)
    counter = exact_counter(file) if distrusted else fast_counter(file)
    with staging.reading(conversations):
        try:
            left = _left(conversations.folder, file, counter, workload.salt)
        except RuntimeError as error:
            LOG.warning("%s: %s, counting with tokenizers", name, error)
            counter = exact_counter(file)
            left = _left(conversations.folder, file, counter, workload.salt)
        reports = [one.get("reported") for _, one in structures(conversations.folder)]
        places = read_service(conversations.folder)
        sessions = pq.read_table(conversations.file(SESSIONS))
    turns, requests = served([left[place] for place in places.order.tolist()], places, sessions)
    reported = _compared(turns, reports, places.order)
    if reported:
        LOG.info("%s: %s", name, _said(reported))
    with staging.build(name, inputs=inputs) as draft:
        write_turns(draft, turns, sessions, series)
        write_requests(requests, draft.folder)
        draft.meta.update(
            {key: conversations.meta[key] for key in ("is_sample", "uncounted_parts", "reasoning_messages")},
            reported=reported, special_token_messages=0, fingerprint=file.fingerprint,
            engine=counter.engine, engine_version=counter.engine_version,
        )  # fmt: skip
    return staging.require(name)


def _left(folder: Path, file: TokenizerFile, counter: Counter, salt: str) -> list[Left]:
    """Return what each request leaves, in the order of the file."""
    requested = Requested(
        rendered_prompts(file, chat_template(file)),
        counter,
        exact=exact_counter(file),
        end_of_turn=file.spec.template.end_of_turn,
        begin=begin_ids(file),
        salt=salt,
    )
    return [requested.left(request) for _, request in structures(folder)]


def served(left: list[Left], places: Places, sessions: pa.Table) -> tuple[Turns, Requests]:
    """Return requests in order of service as turns, with K = T = 0 where there is no prompt, and without those."""
    prompt = np.array([one.prompt_tokens for one in left], np.int64)
    reply = np.array([one.reply_tokens for one in left], np.int64)
    counts = np.array([len(one.identity) for one in left], np.int64)
    identity, check = (
        np.concatenate([np.empty(0, np.uint64), *lane])
        for lane in ([one.identity for one in left], [one.check for one in left])
    )
    blocks = Blocks(identity, check, np.cumsum(counts))
    lookup = prompt // BLOCK_TOKENS
    # What is asked for begins what is left.
    leading = np.minimum(leading_blocks(blocks, blocks), lookup)
    cached = np.maximum(cached_by_blocks(leading, prompt), 0)
    refused = np.array([one.is_refused for one in left], np.bool_)
    known = reply >= 0
    turns = Turns(
        places.session, places.turn_index, cached, prompt - cached, np.maximum(reply, 0), known, refused=refused
    )
    return turns, _requests(turns, places, sessions, blocks, lookup)


def _requests(turns: Turns, places: Places, sessions: pa.Table, blocks: Blocks, lookup: Ints) -> Requests:
    kept = ~turns.is_empty
    offsets = np.concatenate((np.zeros(1, np.int64), blocks.ends))
    # A request without a prompt leaves no block.
    assert all(stop == start for (start, stop), keep in zip(pairwise(offsets.tolist()), kept, strict=True) if not keep)
    return Requests(
        block_tokens=BLOCK_TOKENS,
        sessions=sessions["session_id"].to_pylist(),
        session=turns.session[kept],
        turn_index=turns.turn_index[kept],
        context_tokens=(turns.cached + turns.prefill)[kept],
        cached_tokens=turns.cached[kept],
        output_tokens=turns.output[kept],
        has_output=turns.has_output[kept],
        arrival_s=None if places.arrival_s is None else places.arrival_s[kept],
        offsets=np.concatenate((np.zeros(1, np.int64), blocks.ends[kept])),
        ids=dense_codes(blocks.identity.view(np.int64))[0],
        lookup_blocks=lookup[kept],
    )


def _compared(turns: Turns, reports: list[list[int] | None], order: Ints) -> dict[str, float]:
    """Return the sums over the requests that the server reported too; nothing where there are none.

    K as reported is bounded as ours: min(cached tokens, n - 1), n as the server counts it.
    """
    served = [reports[place] for place in order.tolist()]
    kept = np.array([one is not None and one[0] > 0 for one in served], np.bool_) & ~turns.is_empty
    if not kept.any():
        return {}
    said = np.array([one for one, keep in zip(served, kept, strict=True) if keep], np.int64)
    context, cached = int((turns.cached + turns.prefill)[kept].sum()), int(turns.cached[kept].sum())
    reported, found = int(said[:, 0].sum()), int(np.minimum(said[:, 1], said[:, 0] - 1).sum())
    return {
        "compared_requests": int(kept.sum()),
        "context_tokens_sum": context,
        "cached_tokens_sum": cached,
        "predicted_hit_ratio": cached / context,
        "reported_context_tokens_sum": reported,
        "reported_cached_tokens_sum": found,
        "reported_hit_ratio": found / reported,
    }


def _said(reported: dict[str, float]) -> str:
    predicted, found = reported["predicted_hit_ratio"], reported["reported_hit_ratio"]
    return (
        f"an unlimited cache would hold {percent(predicted)} of the prompts' tokens, the server reported "
        f"{percent(found)} ({reported['compared_requests']:,} requests have both)"
    )
