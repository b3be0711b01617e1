"""What the TOML of a user's own tokenizer may leave out."""

from __future__ import annotations

from typing import Any

# A template that is only rendered, and none at all: counting `text` alone.
RENDERED, NO_TEMPLATE = "rendered", "none"
# The facts of a template are for code that sums pieces, which needs a family.
_OWN: dict[str, Any] = {
    "repositories": ["local"],
    "revision": "main",
    "path": "tokenizer.json",
    "licence": "not stated",
}
_OWN_TEMPLATE = {
    "family": RENDERED, "licence": "not stated", "begin": "", "header": "{role}", "separator": "", "is_trimmed": False,
    "date_string": "26 Jul 2024", "system_text": "",
}  # fmt: skip
_TEXT_ALONE = {**_OWN_TEMPLATE, "family": NO_TEMPLATE, "sha256": "0" * 64, "end_of_turn": "none"}


def filled(values: dict[str, Any]) -> dict[str, Any]:
    """Return a user's own TOML with what it may leave out."""
    template = values.get("template")
    if isinstance(template, dict):
        template = {**_OWN_TEMPLATE, **template}
    return {**_OWN, **values, "template": _TEXT_ALONE if template is None else template}
