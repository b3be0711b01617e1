"""K by `prefix` of every turn as a server sees it, from its turns by `history` and the texts that sessions share."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.chat.layout import Ints, Layout, read_layout
from pipelines.chat.rendered import Prompts
from pipelines.chat.shared import Known, Rendered, Source, prefix_of_chats, prefix_of_documents, shared_with_earlier
from pipelines.chat.structured import left_by_turns
from pipelines.counting.engines import Counter, exact_counter, fast_counter, rendered_prompts
from pipelines.sessions.messages import Messages
from pipelines.sessions.rejects import REJECTED
from pipelines.sessions.structures import structures
from pipelines.sessions.writing import SESSIONS
from pipelines.steps.counts import COUNTS
from pipelines.steps.distrust import is_distrusted
from pipelines.steps.fetching import tokenizer_file_of
from pipelines.steps.forgetting import with_text
from pipelines.steps.inputs import prefix_inputs
from pipelines.steps.product_names import tokenizer_name, turns_name
from pipelines.steps.turn_products import TURNS_FILE, counted
from pipelines.turns.derivation import Turns, chat_turns, document_turns
from pipelines.vocab.files import TokenizerFile
from pipelines.vocab.own import RENDERED
from pipelines.vocab.template_files import chat_template
from pipelines.workloads.declaration import Workload
from warehouse.declared.fields import HISTORY, PREFIX
from warehouse.declared.tables import REJECTS, TURNS
from warehouse.home.products import Product, identity_of
from warehouse.home.staging import Staging

LOG = logging.getLogger("kappa")


def derive_prefix_turns(staging: Staging, workload: Workload, tokenizer: str) -> Product:
    """Derive the turns by `prefix`, counted as `chat`: those by `history` with another split in K and T."""
    counts, conversations = counted(staging, workload, tokenizer)
    history = staging.require(turns_name(workload.name, tokenizer, "chat", HISTORY))
    name, inputs = turns_name(workload.name, tokenizer, "chat", PREFIX), prefix_inputs(history.identity)
    if (product := staging.reuse(name, identity_of(**inputs))) is not None:
        return product
    file = tokenizer_file_of(staging, staging.require(tokenizer_name(tokenizer)))
    counter = exact_counter(file) if is_distrusted(staging, tokenizer, file.fingerprint) else fast_counter(file)
    tokens = pq.read_table(counts.file(COUNTS), columns=["tokens"])["tokens"].to_numpy()
    table = pq.read_table(history.file(TURNS_FILE))
    conversations = with_text(staging, workload)
    messages = Messages(conversations.folder)
    with staging.reading(conversations):
        layout = read_layout(messages)
        turns, rows = _turns(layout, tokens, workload, table, pq.read_table(conversations.file(SESSIONS)))
        try:
            cached = _cached(messages, layout, turns, tokens, workload, file, counter, conversations.folder)
        except RuntimeError as error:
            LOG.warning("%s: %s, counting with tokenizers", name, error)
            exact = exact_counter(file)
            cached = _cached(messages, layout, turns, tokens, workload, file, exact, conversations.folder)
    with staging.build(name, inputs=inputs) as draft:
        pq.write_table(_with_cached(table, cached[rows]), draft.folder / TURNS_FILE, compression="zstd")
        pq.write_table(REJECTS.rows([]), draft.folder / REJECTED)
        draft.meta.update(
            {key: value for key, value in history.meta.items() if key not in draft.meta and key in _TAKEN},
            reuse=PREFIX, turns=table.num_rows, rejected=0,
        )  # fmt: skip
    LOG.info("%s: %s turns", name, f"{table.num_rows:,}")
    return staging.require(name)


_TAKEN = (
    "workload", "tokenizer", "counting", "fingerprint", "special_token_messages", "is_sample", "engine",
    "engine_version", "uncounted_parts", "reasoning_messages",
)  # fmt: skip


def _turns(layout: Layout, tokens: Ints, workload: Workload, table: pa.Table, sessions: pa.Table) -> tuple[Turns, Ints]:
    """Return every turn with K and T by `history`, 0 where there is no prompt, and the turn of each row."""
    derive = chat_turns if workload.kind == "chat" else document_turns
    turns = derive(layout.sorted_session, layout.sorted_role, tokens[layout.order])
    names = sessions["session_id"].combine_chunks()
    session = pc.index_in(table["session_id"].combine_chunks(), names).to_numpy().astype(np.int64)
    most = int(turns.turn_index.max(initial=0)) + 1
    rows = np.searchsorted(turns.session * most + turns.turn_index, session * most + table["turn_index"].to_numpy())
    cached, prefill = np.zeros(len(turns.session), np.int64), np.zeros(len(turns.session), np.int64)
    cached[rows], prefill[rows] = table["cached_tokens"].to_numpy(), table["prefill_tokens"].to_numpy()
    return Turns(turns.session, turns.turn_index, cached, prefill, turns.output, turns.has_output), rows


def _cached(  # noqa: PLR0913, PLR0917 - what the step holds
    messages: Messages,
    layout: Layout,
    turns: Turns,
    tokens: Ints,
    workload: Workload,
    file: TokenizerFile,
    counter: Counter,
    folder: Path,
) -> Ints:
    facts = file.spec.template
    is_rendered = facts.family == RENDERED
    source: Source
    if is_rendered:
        source = Rendered(Prompts(file, chat_template(file), counter), facts.end_of_turn)
    else:
        source = Known(facts, counter, exact_counter(file))
    if workload.kind == "chat":
        render = rendered_prompts(file, chat_template(file))
        known = (
            (number, left_by_turns(conversation, render, counter, facts.end_of_turn))
            for number, conversation in structures(folder)
        )
        return prefix_of_chats(messages, layout, turns, tokens[layout.order], source, known)
    own = np.zeros(len(turns.session), np.int64)
    if not is_rendered:
        own = shared_with_earlier(messages, layout, facts, counter, tokens)
    return prefix_of_documents(messages, layout, turns, own, source)


def _with_cached(table: pa.Table, cached: Ints) -> pa.Table:
    """Return the rows with another K: T is the rest of the same prompt."""
    prefill = table["cached_tokens"].to_numpy() + table["prefill_tokens"].to_numpy() - cached
    columns = {name: table[name] for name in table.column_names}
    columns |= {
        "reuse": pa.repeat(pa.scalar(PREFIX), len(cached)),
        "cached_tokens": pa.array(cached),
        "prefill_tokens": pa.array(prefill),
        "kappa_ratio": pa.array(cached / prefill),
    }
    return TURNS.conform(pa.table(columns))
