"""Documents with questions: each document is stored once, however many rows repeat it."""

from __future__ import annotations

from pipelines.sessions.writing import DOCUMENT, QUESTION, SessionsWriter


class DocumentSessions:
    """Turns rows of (document, question) into sessions: each document at its first row, the questions in row order."""

    def __init__(self, writer: SessionsWriter) -> None:
        """Write into `writer`."""
        self._writer = writer
        self._sessions: dict[str | bytes, int] = {}
        self._next: list[int] = []

    def knows(self, key: str | bytes) -> bool:
        """Return whether the document was seen."""
        return key in self._sessions

    def add_document(self, key: str | bytes, session_id: str, text: str, origin: tuple[str, int]) -> None:
        """Store a new document; `origin` is the file and record of its first row."""
        session = self._writer.session(session_id, *origin)
        self._sessions[key] = session
        self._next.append(1)
        self._writer.message(session, 0, DOCUMENT, text)

    def add_question(self, key: str | bytes, text: str) -> None:
        """Append a question to its document and count the record as kept."""
        session = self._sessions[key]
        self._writer.message(session, self._next[session], QUESTION, text)
        self._next[session] += 1
        self._writer.kept += 1
