"""K and T of every turn for `counting = 'chat'`: each message tokenised once, a sample compared with real prompts."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import logging
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from pipelines.chat.documents import question_prompts
from pipelines.chat.layout import Bools, Ints, Layout, read_layout
from pipelines.chat.official import Official, require_facts
from pipelines.chat.pieces import count_pieces
from pipelines.chat.prompts import PromptTurns, prompt_turns
from pipelines.chat.rendered import Prompts, rendered_questions, rendered_turns
from pipelines.chat.spot_checks import choose_turns
from pipelines.chat.structured import session_turns
from pipelines.counting.engines import (
    Counter,
    Rendered,
    exact_counter,
    fast_counter,
    official_prompts,
    rendered_prompts,
)
from pipelines.io.arrow_text import byte_lengths
from pipelines.sessions.messages import Messages
from pipelines.sessions.writing import DOCUMENT
from pipelines.turns.derivation import Turns, document_turns
from pipelines.vocab.files import TokenizerFile
from pipelines.vocab.own import RENDERED
from pipelines.vocab.template_files import chat_template

_LOG = logging.getLogger("kappa")
Structure = tuple[int, dict[str, Any]]
CHECK_TOKENS = 500_000
_NEVER = 1 << 40
Kind = Literal["chat", "documents", "requests"]


@dataclasses.dataclass(frozen=True, slots=True)
class TurnDifference:
    """A turn whose summed count differs from that of its real prompt.

    Attributes:
        sha256: Hex digest of the turn's last message in UTF-8.
        session: Number of its session.
        turn_index: Its index in the session, from 0.
        counted: K and T from the sum.
        exact: K and T of the real prompts.
    """

    sha256: str
    session: int
    turn_index: int
    counted: tuple[int, int]
    exact: tuple[int, int]


@dataclasses.dataclass(frozen=True, slots=True)
class ChatCounted:
    """The turns of a workload as a server sees them, and the result of the comparison with real prompts.

    Attributes:
        turns: K, T and output of every turn, sorted by session and turn_index; no turn is empty.
        template_tokens: For each turn, K + T minus the tokens of the bare message texts (K + T of `text`, 0 where that
            turn is empty). Negative where a template drops more than it adds.
        engine: The engine of the final counts.
        engine_version: Its version.
        checked_turns: Number of turns that were compared.
        rendered_turns: Number of turns that the sum does not cover: their counts come from the real prompts.
        direct_messages: Number of messages that were also tokenised as pieces of a prompt.
        differences: Turns where the sum differed; everything was then counted again with the exact engine.
        wrong_texts: Messages whose bare text the exact engine then counted differently from `text_tokens`.
        is_exact: False where the second count differs from the real prompts too.
    """

    turns: Turns
    template_tokens: Ints
    engine: str
    engine_version: str
    checked_turns: int
    rendered_turns: int
    direct_messages: int
    differences: list[TurnDifference]
    wrong_texts: int
    is_exact: bool


@dataclasses.dataclass(frozen=True, slots=True)
class _Prompts:
    """The result of one count of a workload; `is_direct` has one element a message by session and position."""

    found: PromptTurns
    is_direct: Bools
    rendered_turns: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class _Workload:
    """The inputs that two counts of a workload share."""

    messages: Messages
    file: TokenizerFile
    kind: Kind
    layout: Layout
    official: Official
    render: Rendered
    structured: Callable[[], Iterator[Structure]]
    on_progress: Callable[[int], None] | None


def _none() -> Iterator[Structure]:
    return iter(())


def count_chat(  # noqa: PLR0913 - three inputs, the rest are for tests and progress
    messages: Messages,
    file: TokenizerFile,
    kind: Kind,
    *,
    text_tokens: Ints,
    fast: Counter | None = None,
    exact: Counter | None = None,
    check_tokens: int = CHECK_TOKENS,
    structured: Callable[[], Iterator[Structure]] = _none,
    on_progress: Callable[[int], None] | None = None,
) -> ChatCounted:
    """Return K, T and output of every turn by the tokenizer's own chat template (docs/turns.md).

    Memory is bounded by a batch of texts and some numbers a message; time is linear in the text. A message's tokens
    come from `text_tokens`; text that a template changes is tokenised again, and a sample is compared with real
    prompts.

    Args:
        messages: The messages of a conversations product.
        file: The tokenizer.
        kind: `chat` or `documents`, the workload's kind.
        text_tokens: Tokens of every message's bare text, in file order.
        fast: The engine to use, by default `fast_counter(file)`; it must be able to encode.
        exact: The engine of the second count, by default `exact_counter(file)`.
        check_tokens: Budget of the comparison in tokens of prompts; a million takes one or two seconds.
        structured: The conversations with tools, calls or reasoning, each with the number of its session.
        on_progress: Called after each batch with the bytes of text done; restarts at 0 in a second count.

    Raises:
        KappaError: There is no chat template, or the TOML's facts do not match it.
        ValueError: `text_tokens` do not belong to the messages.
    """
    official = _official(file)
    reference = official.exact
    render = rendered_prompts(file, chat_template(file))
    work = _Workload(messages, file, kind, read_layout(messages), official, render, structured, on_progress)
    engine = fast or fast_counter(file)
    try:
        prompts = _count(work, engine, text_tokens)
    except RuntimeError as error:
        _LOG.warning("%s failed (%s), counting all with tokenizers", engine.engine, error)
        engine = exact or reference
        prompts = _count(work, engine, text_tokens)
    chosen = _choose(work, prompts, check_tokens)
    differences, wrong_texts, is_exact = _differences(work, prompts, chosen), 0, True
    differences += _structured_differences(work, prompts.found, check_tokens)
    if differences:
        _LOG.warning(
            "%s and real prompts differ on %d turns, counting all again; the first is turn %d of session %d, sha256 %s",
            engine.engine, len(differences), differences[0].turn_index, differences[0].session, differences[0].sha256,
        )  # fmt: skip
        engine = exact or reference
        again = np.concatenate([np.empty(0, np.int64), *map(engine.count, messages.texts())])
        wrong_texts = int((again != text_tokens).sum())
        prompts = _count(work, engine, again)
        again_differing = _structured_differences(work, prompts.found, check_tokens)
        is_exact = not _differences(work, prompts, chosen) and not again_differing
    return ChatCounted(
        turns=prompts.found.turns,
        template_tokens=prompts.found.template_tokens,
        engine=engine.engine,
        engine_version=engine.engine_version,
        checked_turns=len(chosen),
        rendered_turns=prompts.rendered_turns,
        direct_messages=int(prompts.is_direct.sum()),
        differences=differences,
        wrong_texts=wrong_texts,
        is_exact=is_exact,
    )


@functools.lru_cache(maxsize=2)
def _official(file: TokenizerFile) -> Official:
    """Return the official template, checked against the TOML; cached, because loading takes seconds a workload."""
    reference = exact_counter(file)
    prompt = official_prompts(file, chat_template(file))
    official = Official(prompt, reference, reference.encode(file.spec.template.end_of_turn))
    if file.spec.template.family != RENDERED:
        require_facts(file.spec, official)
    return official


def _count(work: _Workload, engine: Counter, tokens: Ints) -> _Prompts:
    facts, layout = work.file.spec.template, work.layout
    batches = _told(work.messages.texts(), work.on_progress)
    if facts.family == RENDERED:
        return _all_rendered(work, batches, engine, tokens[layout.order])
    if work.kind == "chat":
        pieces = count_pieces(batches, layout, facts, engine, tokens).taken(layout.order)
        found = prompt_turns(layout.sorted_session, layout.sorted_role, tokens[layout.order], pieces)
        return _structured(work, engine, found, pieces.is_direct)
    cached, prefill = question_prompts(batches, layout, facts, engine, tokens)
    return _Prompts(
        _documents(layout, tokens[layout.order], cached[layout.order], prefill[layout.order]),
        layout.sorted_role != DOCUMENT,
    )


def _all_rendered(work: _Workload, batches: Iterator[pa.Array], engine: Counter, tokens: Ints) -> _Prompts:
    """Return the turns by a template of which only the text is known; a refused turn has K = T = 0."""
    prompts = Prompts(work.file, chat_template(work.file), engine)
    derive = rendered_turns if work.kind == "chat" else rendered_questions
    turns, first, end, _ = derive(batches, work.layout, prompts, tokens)
    before = np.concatenate(([0], np.cumsum(tokens)))
    added = np.where(turns.is_empty, 0, turns.cached + turns.prefill - (before[end] - before[first]))
    found = PromptTurns(turns, added, first, end, np.zeros(len(end), np.bool_))
    none = np.zeros(len(tokens), np.bool_)
    return _structured(work, engine, found, none) if work.kind == "chat" else _Prompts(found, none, len(end))


def _documents(layout: Layout, tokens: Ints, cached: Ints, prefill: Ints) -> PromptTurns:
    """Return the turns of the questions from arrays by session and position."""
    text = document_turns(layout.sorted_session, layout.sorted_role, tokens)
    asks = np.flatnonzero(layout.sorted_role != DOCUMENT)
    turns = dataclasses.replace(text, cached=cached[asks], prefill=prefill[asks])
    added = turns.cached + turns.prefill - text.cached - text.prefill
    return PromptTurns(turns, added, asks - text.turn_index - 1, asks + 1, np.zeros(len(asks), np.bool_))


def _structured(work: _Workload, engine: Counter, found: PromptTurns, is_direct: Bools) -> _Prompts:
    """Return the turns with those of structured conversations from their real prompts, counted by the engine."""
    turns = found.turns
    names = ("cached", "prefill", "output")
    values = {name: getattr(turns, name).copy() for name in names}
    is_structured = np.zeros(len(found.end), np.bool_)
    refused = is_structured.copy() if turns.refused is None else turns.refused.copy()
    end_of_turn = work.file.spec.template.end_of_turn
    for number, conversation in work.structured():
        rows = _rows_of(turns, number)
        one = session_turns(conversation, work.render, engine, end_of_turn)
        for name in names:
            values[name][rows] = getattr(one, name)
        is_structured[rows], refused[rows] = True, one.prefill == 0
    plain = _rendered(work, dataclasses.replace(found, is_open=found.is_open & ~is_structured))
    mixed = {name: np.where(is_structured, values[name], getattr(plain.turns, name)) for name in names}
    grown = (mixed["cached"] + mixed["prefill"]) - (plain.turns.cached + plain.turns.prefill)
    changed = dataclasses.replace(plain.turns, **mixed, refused=refused)
    result = dataclasses.replace(
        plain, turns=changed, template_tokens=plain.template_tokens + np.where(refused, 0, grown),
        is_structured=is_structured,
    )  # fmt: skip
    return _Prompts(result, is_direct, int((plain.is_open | is_structured).sum()))


def _rows_of(turns: Turns, session: int) -> slice:
    return slice(*np.searchsorted(turns.session, [session, session + 1]).tolist())


def _structured_differences(work: _Workload, found: PromptTurns, check_tokens: int) -> list[TurnDifference]:
    """Compare some structured conversations with the reference engine over whole prompts."""
    turns, left, differences = found.turns, check_tokens // 4, []
    for number, conversation in work.structured():
        rows = _rows_of(turns, number)
        cost = int((turns.cached[rows] + turns.prefill[rows]).sum())
        # The cheapest way to look everywhere: each conversation that still fits, in the order of the file.
        if cost > left:
            continue
        left -= cost
        one = session_turns(conversation, work.render, work.official.exact, work.file.spec.template.end_of_turn)
        wrong = (one.cached != turns.cached[rows]) | (one.prefill != turns.prefill[rows])
        for turn in np.flatnonzero(wrong).tolist():
            at = rows.start + turn
            pairs = (int(turns.cached[at]), int(turns.prefill[at])), (int(one.cached[turn]), int(one.prefill[turn]))
            sha256 = hashlib.sha256(str(conversation["messages"][-1]).encode("utf-8", "replace")).hexdigest()
            differences.append(TurnDifference(sha256, number, int(turns.turn_index[at]), *pairs))
    return differences


def _rendered(work: _Workload, found: PromptTurns) -> PromptTurns:
    """Replace K and T of turns that the sum does not cover by those of their real prompts."""
    at = np.flatnonzero(found.is_open)
    if not len(at):
        return found
    cached, prefill, added = found.turns.cached.copy(), found.turns.prefill.copy(), found.template_tokens.copy()
    for turn in at.tolist():
        text_tokens = cached[turn] + prefill[turn] - added[turn]
        cached[turn], prefill[turn] = _real_turn(work, found, turn)[:2]
        added[turn] = cached[turn] + prefill[turn] - text_tokens
    return dataclasses.replace(
        found, turns=dataclasses.replace(found.turns, cached=cached, prefill=prefill), template_tokens=added
    )


def _real_turn(work: _Workload, found: PromptTurns, turn: int) -> tuple[int, int, str]:
    """Return K and T of the real prompts of a turn, and its last message."""
    first, end = int(found.first[turn]), int(found.end[turn])
    if work.kind == "documents":
        document, question = work.messages.texts_at(work.layout.order[[first, end - 1]])
        return *work.official.question(document, question), question
    rows = work.layout.order[first:end]
    texts = work.messages.texts_at(rows)
    chat = list(zip(work.layout.role[rows].tolist(), texts, strict=True))
    is_next = turn > 0 and found.first[turn - 1] == first
    before = int(found.end[turn - 1]) - first if is_next else None
    return *work.official.chat_turn(chat, end - first, before), texts[-1]


def _choose(work: _Workload, prompts: _Prompts, check_tokens: int) -> list[int]:
    """Return the turns to compare by the cost of their real prompts: three for a question, two for a chat turn."""
    found = prompts.found
    length = found.turns.cached + found.turns.prefill
    cost = 3 * length
    if work.kind == "chat":
        cost = length + np.where(found.turns.turn_index > 0, np.concatenate(([0], length))[: len(length)], 0)
    # A turn that the template refuses has no prompt, and the next one nothing before it.
    refused = found.turns.is_empty
    cost = np.where(refused | np.concatenate(([False], refused))[: len(refused)], _NEVER, cost)
    if found.is_structured is not None:
        cost = np.where(found.is_structured, np.iinfo(np.int64).max, cost)
    direct = np.concatenate(([0], np.cumsum(prompts.is_direct)))
    is_direct = direct[found.end] > direct[np.maximum(found.end - 2, found.first)]
    return choose_turns(cost, work.layout.order[found.end - 1], is_direct, check_tokens)


def _differences(work: _Workload, prompts: _Prompts, chosen: list[int]) -> list[TurnDifference]:
    turns, differences = prompts.found.turns, []
    for turn in chosen:
        counted = int(turns.cached[turn]), int(turns.prefill[turn])
        *exact, last = _real_turn(work, prompts.found, turn)
        if counted != tuple(exact):
            sha256 = hashlib.sha256(last.encode()).hexdigest()
            place = int(turns.session[turn]), int(turns.turn_index[turn])
            differences.append(TurnDifference(sha256, *place, counted, (exact[0], exact[1])))
    return differences


def _told(batches: Iterator[pa.Array], on_progress: Callable[[int], None] | None) -> Iterator[pa.Array]:
    """Yield each batch and report the bytes done after its use."""
    done = 0
    for texts in batches:
        yield texts
        done += int(byte_lengths(texts).sum())
        if on_progress is not None:
            on_progress(done)
