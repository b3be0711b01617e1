"""Sessions of requests that name none: a request continues the longest earlier one whose messages it begins with."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence

_ROOT = b""


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where a request belongs.

    Attributes:
        session: The name it gives, else the number of the request that began its session, as text.
        turn_index: Its index in the session in order of service, from 0.
        before: The request that it continues, None where it begins a session or names one.
    """

    session: str
    turn_index: int
    before: int | None


class Chains:
    """Places requests one after the other, in their order of service.

    A chain is a hash over all messages up to one. Only requests that name no session take part; memory holds 16 bytes a
    message at most, and a session's names.
    """

    def __init__(self) -> None:
        """Begin with no request."""
        self._latest: dict[tuple[str, bytes], int] = {}
        self._session: dict[int, str] = {}
        self._turns: dict[tuple[bool, str], int] = {}
        self._placed = 0

    def place(self, messages: Sequence[bytes], *, model: str = "", session: str | None = None) -> Place:
        """Return the place of the next request.

        Args:
            messages: What identifies each message: role and everything in it.
            model: Chains never lead from one model to another.
            session: The name that the request gives, or None.
        """
        number, before = self._placed, None
        self._placed += 1
        if session is None:
            chain = list(_chain(messages))
            before = next(
                (self._latest[model, one] for one in reversed(chain[:-1]) if (model, one) in self._latest), None
            )
            self._session[number] = self._session[before] if before is not None else str(number)
            if chain:
                self._latest[model, chain[-1]] = number
        name = self._session[number] if session is None else session
        key = (session is None, name)
        index = self._turns.get(key, 0)
        self._turns[key] = index + 1
        return Place(name, index, before)


def _chain(messages: Iterable[bytes]) -> Iterable[bytes]:
    last = _ROOT
    for message in messages:
        last = hashlib.blake2b(last + message, digest_size=16).digest()
        yield last
