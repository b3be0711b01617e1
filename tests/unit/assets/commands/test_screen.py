"""A terminal gets folded tables, colour and a bar; a pipe gets plain text, and rich is not imported for it."""

from __future__ import annotations

import io
import logging
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from assets.commands.screen import showing_steps, text_table, write_line
from pipelines.io.progress import Progress

ROOT = Path(__file__).parents[4]
DATA = pa.table({"session": ["[red]a[/red] :smile: \x1b[31m" + "word " * 30, None], "n": [12345678901234567, -1]})
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self) -> bool:
        """Return that it is a terminal."""
        return True


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "40")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("columns", [4, 20, 40, 80, 400])
def test_a_narrow_terminal_loses_nothing(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are folded, digits stay together, and every letter is there at any width."""
    monkeypatch.setenv("COLUMNS", str(columns))
    table = ESCAPE.sub("", text_table(DATA, stream=Terminal()))
    assert table.count("12345678901234567") == 1
    # 30 words; what looks like markup or an emoji is text
    letters = re.sub(r"\s", "", table).replace("12345678901234567", "").replace("-1", "")
    assert letters.startswith("sessionn[red]a[/red]:smile:\ufffd[31m")
    assert letters.count("word") == 30
    if columns == 40:
        # 17 digits, 2 blanks and the rest for words
        assert max(map(len, table.splitlines())) <= 40


def test_colour_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The head is bold on a terminal; NO_COLOR, a dumb terminal and a pipe get no escape sequence."""
    assert "\x1b[1m" in text_table(DATA, stream=Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in text_table(DATA, stream=Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in text_table(DATA, stream=Terminal())
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in text_table(DATA, stream=io.StringIO())


def test_a_pipe_gets_a_row_a_line() -> None:
    """Neither wrapped nor cut at any width: a header and two rows."""
    lines = text_table(DATA, stream=io.StringIO()).split("\n")
    assert len(lines) == 3
    assert ("word " * 30).strip() in lines[1]


def test_a_line_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark is coloured on a terminal, one line at any width, and what it says is no markup."""
    parts = [("ok", "green"), ("  [b]disk[/b] \x1b[2J" + "x" * 100, "")]
    for stream, is_coloured in ((Terminal(), True), (io.StringIO(), False)):
        write_line(parts, stream)
        assert ("\x1b[32mok" in stream.getvalue()) == is_coloured
        assert "[b]disk[/b]" in stream.getvalue()
        assert stream.getvalue().count("\n") == 1
    terminal = Terminal()
    monkeypatch.setenv("NO_COLOR", "1")
    write_line(parts, terminal)
    assert "\x1b" not in terminal.getvalue()


def test_steps_on_a_pipe_are_lines() -> None:
    """What is logged is a line that begins with `kappa: `; the logger is as before afterwards."""
    log, stream = logging.getLogger("kappa"), io.StringIO()
    before = (log.handlers[:], log.level, log.propagate)
    with showing_steps(stream):
        log.info("read %s", "\x1b[2Jall")
        Progress("w", 10)(10)
    log.info("unseen")
    assert stream.getvalue() == "kappa: read \ufffd[2Jall\n"
    assert (log.handlers, log.level, log.propagate) == before


def on_a_terminal(command: Callable[[io.TextIOWrapper], None]) -> str:
    """Return what a terminal is given while a command runs."""
    ours, theirs = pty.openpty()
    found: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(ours, 4096):
                found.append(part)
        except OSError:  # Linux answers so when the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(theirs, "w") as stream:
        command(stream)
    reader.join()
    os.close(ours)
    return b"".join(found).decode("utf8")


def test_steps_on_a_terminal_are_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    """The bar shows the step at work, lines are above it, and it goes when all is done; output stays output."""

    def command(stream: io.TextIOWrapper) -> None:
        with showing_steps(stream):
            sys.stdout.write("rows\n")
            step = Progress("[b]w", 10**9)
            step.reach(10**9 // 2)
            logging.getLogger("kappa").info("[i]told")
            step.reach(10**9)

    seen = on_a_terminal(command)
    assert "\x1b[?25l" in seen
    assert seen.rstrip().endswith("\x1b[2K") or "\x1b[?25h" in seen
    assert "kappa: [i]told" in seen
    assert "rows" not in seen
    assert capsys.readouterr().out == "rows\n"


def test_steps_on_a_dumb_terminal_are_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cursor is moved where the terminal cannot."""
    monkeypatch.setenv("TERM", "dumb")

    def command(stream: io.TextIOWrapper) -> None:
        with showing_steps(stream):
            logging.getLogger("kappa").info("told")

    assert on_a_terminal(command) == "kappa: told\r\n"


def test_a_pipe_needs_no_rich() -> None:
    """Rich takes a tenth of the time of a short query: it is imported for a terminal alone."""
    code = (
        "import sys, pyarrow as pa; from assets.commands.screen import text_table, write_line, showing_steps\n"
        "with showing_steps(): print(text_table(pa.table({'a': [1]}), stream=sys.stdout))\n"
        "write_line([('ok', 'green')], sys.stdout); print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    # a header, a row, a mark
    assert done.stdout.split() == ["a", "1", "ok", "False"]
