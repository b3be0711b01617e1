"""Adds a tokenizer of one's own: its file and template are copied into HOME/tokenizers, where a TOML declares them."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.chat.rendered import Prompts
from pipelines.counting.engines import added_tokens, exact_counter, fast_counter, rendered_prompts
from pipelines.fetch.cache import download
from pipelines.io.verified import sha256_of
from pipelines.vocab.files import TokenizerFile, fetch_tokenizer
from pipelines.vocab.specs import tokenizer_spec
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.tokenizer_names import tokenizer_names

FILE, CONFIG, TEMPLATE, MODEL = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "config.json"
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")
_NO_LIMIT = 10**9
_SAID = "Xyzzy."


@dataclass(frozen=True)
class Added:
    """A tokenizer that was added: its file, the engine that counts with it, and whether prompts can be counted."""

    file: TokenizerFile
    engine: str
    has_chat: bool


@dataclass(frozen=True)
class _Source:
    file: Path
    config: dict[str, Any]
    template: str | None
    max_context_tokens: int | None
    repository: str | None


def add_tokenizer(  # noqa: PLR0913 - two inputs, the rest overrules what the source says
    own: Path,
    name: str,
    source: str,
    *,
    template: Path | None = None,
    max_context_tokens: int | None = None,
    models: Sequence[str] = (),
) -> Added:
    """Copy a tokenizer into a user's own, prove it, and declare it; an earlier one of that name is replaced.

    Args:
        own: The folder, HOME/tokenizers.
        name: Its name in every table.
        source: A `tokenizer.json`, a folder with one, or a Hub repository, `org/name` or `org/name@revision`. A
            `tokenizer_config.json` and a `chat_template.jinja` in the same place are read.
        template: A file with the chat template, in place of the source's.
        max_context_tokens: Longest context of its models, in place of the source's.
        models: Models that use it.

    Raises:
        KappaError: the name is taken or not usable, or the source holds no usable tokenizer or template.
    """
    _require_name(name)
    found = _source(source)
    tokens = max_context_tokens or found.max_context_tokens
    if tokens is None:
        why = f"{source} does not say how long a context may be"
        raise KappaError(f"tokenizer {name} is not usable", why, "give --max-context TOKENS", code=ErrorCode.BAD_FILE)
    text = _read(template) if template else found.template
    own.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=own, prefix=".adding-") as folder:
        draft = Path(folder)
        (draft / name).mkdir()
        shutil.copyfile(found.file, draft / name / FILE)
        values = {"file": f"{name}/{FILE}", "sha256": sha256_of(found.file), "max_context_tokens": tokens}
        values |= {"repositories": [found.repository]} if found.repository else {}
        values |= {"models": list(models)} if models else {}
        added = _proved(draft, name, values, found.config, text)
        _put(draft, own, name)
    return Added(fetch_tokenizer(tokenizer_spec(name, own), own), added.engine, added.has_chat)


def _require_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        why = "a name is lower case letters, digits, dots and hyphens"
        raise KappaError(f"{name!r} is no name for a tokenizer", why, "choose another", code=ErrorCode.USAGE)
    if name in tokenizer_names():
        what = f"tokenizer {name} comes with kappa"
        raise KappaError(what, "a name means one thing", "choose another", ErrorCode.NAME_CLASH)


def _source(source: str) -> _Source:
    place = Path(source).expanduser()
    if place.exists():
        folder, file = (place, place / FILE) if place.is_dir() else (place.parent, place)
        if not file.is_file():
            why = f"the folder has no {FILE}"
            raise KappaError(f"{source} is no tokenizer", why, f"give the path of a {FILE}", code=ErrorCode.MISSING)
        return _described(file, {name: folder / name for name in (CONFIG, TEMPLATE, MODEL)}, None)
    if not _REPOSITORY.fullmatch(source):
        why, remedy = "there is no such file or folder", "give a path, or a repository as org/name"
        raise KappaError(f"{source} cannot be found", why, remedy, code=ErrorCode.MISSING)
    repository, _, revision = source.partition("@")
    return _from_hub(repository, revision or "main")


def _from_hub(repository: str, revision: str) -> _Source:
    paths: dict[str, Path] = {}
    for name in (FILE, CONFIG, TEMPLATE, MODEL):
        try:
            paths[name] = download(repository, name, revision=revision, repo_type="model")
        except KappaError:
            raise
        except Exception as error:  # the library's HTTP client has its own errors
            if name == FILE:
                what, why = f"{repository} gives no {FILE}", type(error).__name__
                remedy = "check the name, the connection and HF_TOKEN, or give a local file"
                raise KappaError(what, why, remedy, code=ErrorCode.NO_TOKENIZER) from error
    return _described(paths.pop(FILE), paths, repository)


def _described(file: Path, paths: dict[str, Path], repository: str | None) -> _Source:
    config, model = (_json(paths.get(name)) for name in (CONFIG, MODEL))
    own = paths.get(TEMPLATE)
    text = _read(own) if own is not None and own.is_file() else _template_of(config)
    limits = (model.get("max_position_embeddings"), config.get("model_max_length"))
    tokens = next((int(n) for n in limits if isinstance(n, int | float) and 0 < n < _NO_LIMIT), None)
    return _Source(file, config, text, tokens, repository)


def _json(path: Path | None) -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads(path.read_bytes()) if path is not None else {}
        return found if isinstance(found, dict) else {}
    return {}


def _template_of(config: dict[str, Any]) -> str | None:
    """Return the template in a config: a text, or the default one of several."""
    found = config.get("chat_template")
    if isinstance(found, list):
        named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
        found = named.get("default")
    return found if isinstance(found, str) else None


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise KappaError(f"{path} cannot be read", why, "give another template", code=ErrorCode.NOT_READABLE) from error


def _proved(draft: Path, name: str, values: dict[str, Any], config: dict[str, Any], text: str | None) -> Added:
    """Declare the tokenizer in the draft, load it with both engines, and render its template."""
    toml = draft / f"{name}.toml"
    toml.write_text(_toml(values), "utf-8")
    file = fetch_tokenizer(tokenizer_spec(name, draft), draft)
    try:
        counter = exact_counter(file)
    except Exception as error:
        why, remedy = f"Hugging Face's engine refuses it ({error})", "give a tokenizer.json of Hugging Face's form"
        raise KappaError(f"{name}/{FILE} is no tokenizer", why, remedy, code=ErrorCode.BAD_FILE) from error
    if text is not None:
        place, eos = draft / f"{name}.jinja", _token(config, "eos_token")
        place.write_bytes(text.encode())
        facts = {"file": place.name, "sha256": sha256_of(place), "begin": _token(config, "bos_token")}
        toml.write_text(_toml(values, {**facts, "end_of_turn": eos or "\n"}), "utf-8")
        ends = _end_of_turn(fetch_tokenizer(tokenizer_spec(name, draft), draft), text) or eos or "\n"
        toml.write_text(_toml(values, {**facts, "end_of_turn": ends}), "utf-8")
        file = fetch_tokenizer(tokenizer_spec(name, draft), draft)
        Prompts(file, text, counter)
    return Added(file, fast_counter(file).engine, text is not None)


def _end_of_turn(file: TokenizerFile, template: str) -> str | None:
    """Return the added token that the template puts after a reply, None where there is none."""
    with suppress(Exception):  # a template may raise anything; `Prompts` says what it refuses
        chat = [("user", "a"), ("assistant", _SAID), ("user", "b")]
        text = rendered_prompts(file, template)([{"role": role, "content": said} for role, said in chat], None, True)
        after = text.partition(_SAID)[2].lstrip()
        return next((token for token in added_tokens(file) if after.startswith(token)), None)
    return None


def _token(config: dict[str, Any], name: str) -> str:
    found = config.get(name)
    found = found.get("content") if isinstance(found, dict) else found
    return found if isinstance(found, str) else ""


def _toml(values: dict[str, Any], template: dict[str, str] | None = None) -> str:
    # A JSON string or list of strings is one of TOML too.
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    if template:
        lines += ["", "[template]", *(f"{key} = {json.dumps(value)}" for key, value in template.items())]
    return "\n".join(lines) + "\n"


def _put(draft: Path, own: Path, name: str) -> None:
    """Move what was proved into its place, the TOML last."""
    shutil.rmtree(own / name, ignore_errors=True)
    (own / f"{name}.jinja").unlink(missing_ok=True)
    for part in (name, f"{name}.jinja", f"{name}.toml"):
        if (draft / part).exists():
            (draft / part).replace(own / part)
