"""The page as one HTML file: figures inlined, all other text escaped, no script, nothing fetched."""

from __future__ import annotations

from pathlib import Path

from reports.figures.style import SAMPLE_MARK
from reports.page import Page

SHORT = 24
FEW_ROWS, MANY_COLUMNS = 14, 7
_TEMPLATE = Path(__file__).with_name("template.html")


def html(page: Page) -> str:
    """Return the page as HTML."""
    import jinja2  # noqa: PLC0415

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(_TEMPLATE.read_text("utf8"))
    return (
        template.render(
            page=page, mark=SAMPLE_MARK, inline=inline_svg, cell_class=cell_class, few=FEW_ROWS, many=MANY_COLUMNS
        )
        + "\n"
    )


def cell_class(text: str, *, is_word: bool) -> str:
    """Return the CSS classes of a table cell: they decide where its text may break.

    >>> cell_class("llama-3.1-405b", is_word=True), cell_class("5,129", is_word=False)
    ('word short', 'short')
    >>> cell_class("f" * 64, is_word=True)
    'word long'
    """
    if not is_word:
        return "short"
    if len(text) <= SHORT:
        return "word short"
    return "word long" if max(map(len, text.split())) > SHORT else "word"


def inline_svg(svg: bytes, name: str) -> str:
    """Return our own SVG for inlining in HTML: without prolog, with ids made unique by the figure's name.

    The result is markup and must not be escaped; Matplotlib escaped its texts.
    """
    import re  # noqa: PLC0415

    from markupsafe import Markup  # noqa: PLC0415

    text = svg.decode("utf8")
    text = text[text.index("<svg") :]
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
    return Markup(text)  # noqa: S704 - drawn by reports, not taken from data
