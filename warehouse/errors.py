"""KappaError, the errors that a user reads. Errors for a programmer stay ordinary exceptions."""

from __future__ import annotations

from warehouse.masking import masked


class KappaError(Exception):
    """A failure in one line: what happened, why, and what to do about it."""

    def __init__(self, what: str, why: str, remedy: str) -> None:
        """Keep the three parts, each a phrase without a final full stop."""
        super().__init__(what, why, remedy)
        self.what = what
        self.why = why
        self.remedy = remedy

    def __str__(self) -> str:
        """Return `what, why, what to do` on one line, without secrets or control characters."""
        text = masked(", ".join(" ".join(part.split()) for part in (self.what, self.why, self.remedy)))
        return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


class UsageError(KappaError):
    """A wrong use of a command: an option is missing, contradicts another, or has an invalid value."""
