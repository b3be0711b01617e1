"""The page as Markdown, to read in a repository or a terminal; figures are links to their files."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reports.figures.style import SAMPLE_MARK
from reports.page import Block, Grid, Page, Picture

_MARKUP = re.compile(r"[\\`*\[\]<>&|~#$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|://|@|(?<=www)\.")


def markdown(page: Page) -> str:
    """Return the page as GitHub-flavoured Markdown."""
    parts = [f"# {escape(page.title)}"]
    if page.is_sample:
        parts.append(f"**{SAMPLE_MARK}**")
    parts.append(f"**{escape(page.sentence)}**")
    for section in page.sections:
        if section.heading:
            parts.append(f"## {escape(section.heading)}")
        parts += [_block(block, is_sample=page.is_sample) for block in section.blocks]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    r"""Return text escaped for Markdown and for the HTML in it.

    >>> escape("a|b <i> kappa_ratio *x*")
    'a&#124;b &lt;i&gt; kappa_ratio \\*x\\*'
    """
    line = " ".join(text.split())
    return _MARKUP.sub(lambda found: "".join(map(_escaped, found.group())), line)


def _escaped(letter: str) -> str:
    if letter in "<>&":
        return {"<": "&lt;", ">": "&gt;", "&": "&amp;"}[letter]
    # A backslash reads best, but some renderers still split a cell at an escaped bar, or link an escaped address.
    return f"&#{ord(letter)};" if letter in "|:/@." else f"\\{letter}"


def _block(block: Block, *, is_sample: bool) -> str:
    mark = f" ({SAMPLE_MARK})" if is_sample else ""
    if isinstance(block, Grid):
        return table(block, mark)
    if isinstance(block, Picture):
        link = f"![{escape(block.alt)}{mark}](figures/{block.name}.png)"
        return f"{link}\n\n{escape(block.caption)}{mark} ([SVG](figures/{block.name}.svg))"
    return f"> {escape(block.text)}" if block.is_warning else escape(block.text)


def table(grid: Grid, mark: str = "") -> str:
    """Return one table with its caption, the mark after the caption, and its note."""
    rule = ["---" if grid.is_word(i) else "---:" for i in range(len(grid.columns))]
    lines = [f"**{escape(grid.caption)}**{mark}", "", _line([escape(c) for c in grid.columns]), _line(rule)]
    lines += [_line([escape(cell) for cell in row]) for row in grid.rows]
    return "\n".join(lines + (["", escape(grid.note)] if grid.note else []))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
