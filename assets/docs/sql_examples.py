"""The queries of docs/sql.md with their real output; `python -m assets.docs.sql_examples HOME` writes the page."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from assets.commands.querying import BATCH_ROWS
from assets.commands.screen import text_table
from assets.docs.pages import FOLDER
from warehouse.database.engine import read_only, stream
from warehouse.home.home import Home

PAGE = FOLDER / "sql.md"
_EXAMPLE = re.compile(r"```sql\n(?P<query>.*?)```\n(?:\n```text\n.*?```\n)?", re.DOTALL)


def with_output(text: str, home: Home) -> str:
    """Return the page with each query's output from the home's current generation below the query."""
    with read_only(home.database()) as connection:

        def rendered(match: re.Match[str]) -> str:
            rows = stream(connection, match["query"], BATCH_ROWS, "table").read_all()
            return f"```sql\n{match['query']}```\n\n```text\n{text_table(rows)}\n```\n"

        return _EXAMPLE.sub(rendered, text)


def main() -> int:
    """Rewrite the page from the given home."""
    PAGE.write_text(with_output(PAGE.read_text("utf8"), Home(Path(sys.argv[1]))), "utf8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
