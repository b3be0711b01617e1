r"""The effect of a chat template from the facts in a tokenizer's TOML: the text of each message's piece of a prompt.

A prompt is the pieces of its messages in order, then the generation header. Each piece begins at or after a special
token, so its tokens do not depend on its neighbours, and a prompt's tokens are the sum over its pieces.
No tokens here: `pieces` counts them, `counting.engines.official_prompts` renders the real template.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable

from pipelines.sessions.writing import ASSISTANT, SYSTEM, TOOL, USER
from pipelines.vocab.specs import TemplateFacts

# A document with its question is one user message.
ROLE_OF = {ASSISTANT: "assistant", SYSTEM: "system", TOOL: "tool"}
_THINK, _END_THINK = "<think>", "</think>"
_RESPONSE, _END_RESPONSE = "<tool_response>", "</tool_response>"


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """One message, and the facts about its neighbours that change its piece of a prompt.

    Attributes:
        role: As in `pipelines.sessions.writing`.
        text: As stored.
        is_first: It is the first of its conversation.
        after_tool: The message before it is a tool's.
        before_tool: The message after it is a tool's.
    """

    role: int
    text: str
    is_first: bool = False
    after_tool: bool = False
    before_tool: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Family:
    """The behaviour of one template family beyond the facts.

    Attributes:
        tool: The piece of a tool's message.
        has_thinking: The part of a reply up to the last `</think>` is shown only after the last query.
    """

    tool: Callable[[TemplateFacts, Message], str]
    has_thinking: bool


def header(facts: TemplateFacts, role: str) -> str:
    """Return the text before a message's text; with `assistant` it is the generation header."""
    return facts.header.replace("{role}", role)


def piece(facts: TemplateFacts, message: Message, *, is_late: bool = False) -> str:
    """Return a message's piece of a prompt; the first message's includes the start of the template.

    Args:
        facts: The facts of the template.
        message: The message.
        is_late: It comes after the last query of the prompt, see `is_query`: thinking is then shown.
    """
    end = facts.end_of_turn + facts.separator
    opening = ""
    if message.is_first:
        opening = facts.begin
        if facts.system_text:
            told = shown(facts, message) if message.role == SYSTEM else ""
            opening += header(facts, "system") + facts.system_text.replace("{date}", facts.date_string) + told + end
            if message.role == SYSTEM:
                return opening
    if message.role == TOOL:
        return opening + FAMILIES[facts.family].tool(facts, message)
    text = shown(facts, message)
    if is_late and (reasoning := _reasoning(facts, message)):
        reasoning, text = reasoning.strip("\n"), text.lstrip("\n")
        text = f"{_THINK}\n{reasoning}\n{_END_THINK}\n\n{text}"
    return opening + header(facts, ROLE_OF.get(message.role, "user")) + text + end


def shown(facts: TemplateFacts, message: Message) -> str:
    """Return the part of a message's text that a prompt shows before the last query."""
    text = message.text.strip() if facts.is_trimmed else message.text
    if has_thinking(facts, message.role) and _END_THINK in text:
        text = text.rpartition(_END_THINK)[2].lstrip("\n")
    return text


def has_thinking(facts: TemplateFacts, role: int) -> bool:
    """Return whether the template looks for thinking in messages of this role."""
    return role == ASSISTANT and FAMILIES[facts.family].has_thinking


def _reasoning(facts: TemplateFacts, message: Message) -> str:
    if not has_thinking(facts, message.role) or _END_THINK not in message.text:
        return ""
    return message.text.partition(_END_THINK)[0].rstrip("\n").rpartition(_THINK)[2].lstrip("\n")


def is_query(facts: TemplateFacts, role: int, text: str) -> bool:
    """Return whether a message moves the point after which thinking is shown: a user's, and no tool response."""
    if role != USER:
        return False
    wrapped = text.startswith(_RESPONSE) and text.endswith(_END_RESPONSE)
    return not (FAMILIES[facts.family].has_thinking and wrapped)


def is_separable(text: str) -> bool:
    """Return whether a text after a header with line breaks has the same tokens as the bare text.

    It has unless its leading blanks include a line break: the header's own would then be in one match with it.
    """
    blanks = text[: len(text) - len(text.lstrip())]
    return "\n" not in blanks and "\r" not in blanks


def template_fingerprint(facts: TemplateFacts) -> str:
    """Return a hash of the template's text and facts, which decide its counts."""
    values = {**dataclasses.asdict(facts), "file": None, "licence": None}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _quoted_tool(facts: TemplateFacts, message: Message) -> str:
    quoted = json.dumps(message.text, ensure_ascii=False)
    return header(facts, "ipython") + quoted + facts.end_of_turn + facts.separator


def _tool_in_run(facts: TemplateFacts, message: Message) -> str:
    """Return one tool message of a run; the template renders the run as one user message."""
    begin = "" if message.after_tool else header(facts, "user").rstrip("\n")
    end = "" if message.before_tool else facts.end_of_turn + facts.separator
    return f"{begin}\n{_RESPONSE}\n{message.text}\n{_END_RESPONSE}{end}"


FAMILIES: dict[str, Family] = {"llama-3.1": Family(_quoted_tool, False), "qwen3": Family(_tool_in_run, True)}
