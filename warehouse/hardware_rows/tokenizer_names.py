"""Which tokenizers there are: the names of their TOML files. What the files say is read in `pipelines`."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
# In a wheel, and in a checkout.
_FOLDERS = (_ROOT / "pipelines" / "_tokenizers", _ROOT / "tokenizers")


def tokenizer_names() -> list[str]:
    """Return the name of every tokenizer, in their order."""
    place = next((folder for folder in _FOLDERS if folder.is_dir()), _FOLDERS[-1])
    return sorted(path.stem for path in place.glob("*.toml"))
