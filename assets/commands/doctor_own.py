"""What `kappa doctor` says of a user's own workloads and tokenizers, a line each, read without the network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from pipelines.records.places import files_of
from pipelines.vocab.files import fetch_tokenizer
from pipelines.vocab.specs import tokenizer_spec
from pipelines.workloads.own.declared import FOLDER, read_declaration
from warehouse.declared.formats import quantity
from warehouse.errors import ErrorCode, KappaError
from warehouse.hardware_rows.tokenizer_names import own_tokenizer_folder, tokenizer_names
from warehouse.home.home import Home


def own_checks(home: Home) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the subject and the check of each declaration in a home folder; a check raises KappaError."""
    for path in _declared(home.path / FOLDER):
        yield f"own workload: {path.stem}", partial(_workload, home.path, path)
    for path in _declared(own_tokenizer_folder(home.path)):
        yield f"own tokenizer: {path.stem}", partial(_tokenizer, path)


def _declared(folder: Path) -> list[Path]:
    paths = sorted(folder.glob("*.toml")) if folder.is_dir() else []
    return [path for path in paths if not path.name.startswith(".")]


def _workload(home: Path, path: Path) -> str:
    """Return the format and the files of a declared workload.

    Raises:
        KappaError: the declaration is not usable, or its files are not there.
    """
    declared = read_declaration(path)
    if declared.path is None:
        return f"{declared.format}, {declared.repo} on the Hub"
    files = files_of(str(home / declared.path))
    size = quantity(sum(file.stat().st_size for file in files.values()), "B")
    return f"{declared.format}, {len(files):,} file{'s' * (len(files) != 1)} of {size}, {declared.path}"


def _tokenizer(path: Path) -> str:
    """Return what a declared tokenizer counts.

    Raises:
        KappaError: the declaration is not usable, its file is not as it was, or a built-in one has its name.
    """
    if path.stem in tokenizer_names():
        what, why = f"{path} is not read", f"{path.stem} is a built-in tokenizer"
        raise KappaError(what, why, "give it another name", code=ErrorCode.NAME_CLASH)
    spec = tokenizer_spec(path.stem, own=path.parent)
    if spec.file is not None:
        fetch_tokenizer(spec, path.parent)
    models = f", for {', '.join(spec.models)}" if spec.models else ""
    return f"{spec.max_context_tokens:,} tokens of context{models}"
