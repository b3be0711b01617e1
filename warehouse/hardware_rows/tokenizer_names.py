"""The names of the tokenizers, from the names of their TOML files. The files are read in `pipelines`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from warehouse.toml_text import toml_of

_ROOT = Path(__file__).resolve().parents[2]
# The folder in a wheel, and in a checkout.
_FOLDERS = (_ROOT / "pipelines" / "_tokenizers", _ROOT / "tokenizers")
OWN = "tokenizers"


def tokenizer_folder() -> Path:
    """Return the folder of the TOML files: the wheel's copy, else the checkout's `tokenizers/`."""
    return next((folder for folder in _FOLDERS if folder.is_dir()), _FOLDERS[-1])


def own_tokenizer_folder(home: Path) -> Path:
    """Return the folder of a user's own tokenizers, which need not exist."""
    return home / OWN


def tokenizer_names(folder: Path | None = None, own: Path | None = None) -> list[str]:
    """Return the name of every tokenizer, sorted: those of `folder`, then a user's own in `own`."""
    names = sorted(path.stem for path in (folder or tokenizer_folder()).glob("*.toml"))
    return names + (sorted({path.stem for path in own.glob("*.toml")} - set(names)) if own else [])


def own_models(own: Path | None) -> dict[str, str]:
    """Return which models name which of a user's own tokenizers, by the key `models` of their files."""
    found: dict[str, str] = {}
    for path in sorted(own.glob("*.toml")) if own else []:
        # A file that cannot be read is reported where it is used.
        with suppress(OSError, ValueError):
            models = toml_of(path).get("models", [])
            listed = models if isinstance(models, list) else []
            found |= {model: path.stem for model in listed if isinstance(model, str)}
    return found
