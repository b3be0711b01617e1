"""The content of a report for every output format: sections of paragraphs, tables and figures, in plain text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Paragraph:
    """One paragraph; `is_warning` marks a warning."""

    text: str
    is_warning: bool = False
    kind: Literal["paragraph"] = "paragraph"


@dataclass(frozen=True)
class Grid:
    """One table with formatted cells.

    Attributes:
        name: anchor of the table, and its key in tests.
        columns: headings.
        rows: one cell per column.
        words: how many of the first columns hold words (left-aligned), not numbers; all columns if negative.
        note: explanation of the table.
        words_at: indices of further columns that hold words.
    """

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    words: int = 1
    note: str = ""
    words_at: tuple[int, ...] = ()
    kind: Literal["grid"] = "grid"

    def is_word(self, column: int) -> bool:
        """Return whether the column at index `column` holds words and is left-aligned."""
        return self.words < 0 or column < self.words or column in self.words_at


@dataclass(frozen=True)
class Picture:
    """One figure: `name` is its file name without suffix, `alt` its alternative text."""

    name: str
    alt: str
    caption: str
    svg: bytes
    png: bytes
    kind: Literal["picture"] = "picture"


Block = Paragraph | Grid | Picture


@dataclass(frozen=True)
class Section:
    """One section with its heading; the first screen has none."""

    heading: str
    blocks: list[Block]

    @property
    def anchor(self) -> str:
        """The anchor made from the heading.

        >>> Section("What was left out", []).anchor
        'section-what-was-left-out'
        """
        return "-".join(["section", *"".join(c if c.isalnum() else " " for c in self.heading.lower()).split()])


@dataclass(frozen=True)
class Page:
    """The report."""

    title: str
    sentence: str
    sections: list[Section]
    is_sample: bool

    @property
    def pictures(self) -> list[Picture]:
        """Every figure, in page order."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, Picture)]

    @property
    def grids(self) -> dict[str, Grid]:
        """Every table by its name."""
        return {block.name: block for section in self.sections for block in section.blocks if isinstance(block, Grid)}
