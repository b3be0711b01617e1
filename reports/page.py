"""What a report is made of, whatever it is written as: sections of paragraphs, tables, figures. Plain text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Paragraph:
    """One paragraph; `is_warning` sets it apart."""

    text: str
    is_warning: bool = False
    kind: Literal["paragraph"] = "paragraph"


@dataclass(frozen=True)
class Grid:
    """One table of cells that are formatted already.

    Attributes:
        name: anchor, and what tests ask for.
        columns: headings.
        rows: as many cells each as there are columns.
        words: the first columns that hold words (left) and not numbers (right); all of them where negative.
        note: what has to be known to read it.
        words_at: places of further columns that hold words.
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
        """Return whether the column at that place is set left."""
        return self.words < 0 or column < self.words or column in self.words_at


@dataclass(frozen=True)
class Picture:
    """One figure: `name` is its file's name without suffix, `alt` is for who cannot see it."""

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
        """The heading as a link's target.

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
        """Every figure, in the order of the page."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, Picture)]

    @property
    def grids(self) -> dict[str, Grid]:
        """Every table by its name."""
        return {block.name: block for section in self.sections for block in section.blocks if isinstance(block, Grid)}
