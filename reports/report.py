"""Writes the report: one HTML page, one Markdown file, and every figure as PNG and SVG."""

from __future__ import annotations

from pathlib import Path

from reports.data import read_report_data
from reports.html import html
from reports.markdown import markdown
from reports.sections.order import build_page


def write_report(database: Path, folder: Path) -> list[Path]:
    """Write the report of a warehouse. The same database gives the same bytes.

    Args:
        database: the DuckDB file.
        folder: the folder of `report.html`, `report.md` and `figures/`; made if missing, its other files stay.

    Returns:
        The files written.

    Raises:
        KappaError: the database cannot be opened.
    """
    page = build_page(read_report_data(database))
    figures = folder / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    contents = {folder / "report.html": html(page).encode(), folder / "report.md": markdown(page).encode()}
    for picture in page.pictures:
        contents[figures / f"{picture.name}.png"] = picture.png
        contents[figures / f"{picture.name}.svg"] = picture.svg
    for path, content in contents.items():
        path.write_bytes(content)
    return list(contents)
