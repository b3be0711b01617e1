"""The names of the tokenizers, from the names of their TOML files. The files are read in `pipelines`."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
# The folder in a wheel, and in a checkout.
_FOLDERS = (_ROOT / "pipelines" / "_tokenizers", _ROOT / "tokenizers")


def tokenizer_folder() -> Path:
    """Return the folder of the TOML files: the wheel's copy, else the checkout's `tokenizers/`."""
    return next((folder for folder in _FOLDERS if folder.is_dir()), _FOLDERS[-1])


def tokenizer_names(folder: Path | None = None) -> list[str]:
    """Return the name of every tokenizer, sorted."""
    return sorted(path.stem for path in (folder or tokenizer_folder()).glob("*.toml"))
