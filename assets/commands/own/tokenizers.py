"""`kappa add-tokenizer`: a tokenizer of the user's own, for `kappa run` and `kappa crit`."""

from __future__ import annotations

import argparse
from pathlib import Path

from pipelines.own_tokenizers.adding import add_tokenizer as add
from warehouse.errors import ErrorCode, UsageError
from warehouse.hardware_rows.names import find_name, nearest_names
from warehouse.hardware_rows.rows import FOLDER, load_reference, user_folder
from warehouse.hardware_rows.tokenizer_names import own_tokenizer_folder
from warehouse.home.home import home_path


def add_tokenizer(options: argparse.Namespace) -> int:
    """Copy, prove and declare a tokenizer; print what was understood."""
    home = home_path(options.home)
    added = add(
        own_tokenizer_folder(home),
        options.name,
        options.source,
        template=Path(options.template) if options.template else None,
        max_context_tokens=_tokens(options.max_context),
        models=_models(home, options.model),
    )
    spec = added.file.spec
    print(f"tokenizer {spec.name}: sha256 {spec.sha256}, {spec.max_context_tokens:,} tokens of context")
    print(f"engine: {added.engine}")
    print(f"end of turn: {spec.template.end_of_turn}" if added.has_chat else "no chat template: it counts `text` only")
    if spec.models:
        print(f"no proxy any more: {', '.join(spec.models)}")
    return 0


def _tokens(given: str | None) -> int | None:
    if given is None:
        return None
    if not given.isdecimal() or int(given) == 0:
        what, why = f"--max-context {given}", "it is no number of tokens"
        raise UsageError(what, why, "give a whole number above 0", code=ErrorCode.USAGE)
    return int(given)


def _models(home: Path, given: list[str]) -> list[str]:
    """Return the models as the tables spell them."""
    names = load_reference("models", FOLDER, user_folder(home))["model"].to_pylist()
    found = [(name, find_name(name, names)) for name in given]
    for name, known in found:
        if known is None:
            why = f"nearest are {', '.join(nearest_names(name, names))}"
            raise UsageError(
                f"unknown model {name!r}", why, "choose one of the table models", code=ErrorCode.UNKNOWN_NAME
            )
    return [known for _, known in found if known is not None]
