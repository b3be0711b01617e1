"""Random text for the sample: sentences, code, tables, headings, other scripts. None comes from a book or data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import accumulate
from random import Random
from typing import NamedTuple

# Common words first: words are drawn by rank (Zipf), so that token frequencies are like those of real text.
# real text.
WORDS = """
the of and to in a is that for it was on with as be by this are from at or have an not which but we you they one can
all their has there will more when if so would about what some other into than them time only new may these who two
its first then any also after use work how our made over such through where most should each many must between same
because before like well down much good own here under long even back make way still while both against without during
year public place number part small great every around another system world set again group point however state given
different high large often early order case change need help problem form line result value model question answer next
open water light hand house short company service level power process control interest report cost plan area data
increase period possible school market program study sound person simple human common example field river letter
mountain window garden morning evening winter summer village bridge captain sister brother mother father master
servant journey silence shadow memory promise silver golden narrow distant gentle sudden bitter ancient careful listen
wander follow remember believe discover gather return whisper tremble carry measure build design improve compare
explain describe consider develop include provide require support manage reduce expect receive record operate revenue
income balance agreement customer product contract share director property employee equipment payment account capital
asset liability loss margin quarter segment inventory purchase estimate obligation regulation insurance network
software database function variable parameter interface module version library request response server storage
language message document paragraph sequence structure pattern average percentage difference approximately significant
additional financial operating statement management performance information environment requirement development
consolidated technology experience relationship opportunity community knowledge strategy analysis method theory energy
material surface temperature pressure machine engine signal circuit travel recipe kitchen flavor vegetable exercise
muscle doctor patient treatment history culture music picture color story character chapter author audience website
budget schedule project meeting summary benefit
""".split()  # noqa: SIM905 -- a page of words, not a page of quotes
_CUMULATIVE = list(accumulate(1 / (rank + 12) for rank in range(len(WORDS))))
_SYLLABLES = "ka lo ri ven mar tu sel do bran eth ol wyn dar mi su pel gor an ti zo fen hal ru".split()  # noqa: SIM905

# First and last code point of the letters drawn, one alphabet a row.
SCRIPTS = {
    "han": (0x4E00, 0x56FF),
    "hiragana": (0x3042, 0x3093),
    "hangul": (0xAC00, 0xB4FF),
    "cyrillic": (0x0430, 0x044F),
    "arabic": (0x0628, 0x064A),
    "devanagari": (0x0915, 0x0939),
    "greek": (0x03B1, 0x03C9),
}
EMOJI = (0x1F600, 0x1F64F)
# Messages of fewer characters are plain prose.
_PLAIN_BELOW = 500
_ZERO_WIDTH_JOINER = 0x200D
_HTML_ROOT = '<div class="markdown prose w-full break-words dark:prose-invert light">'


class Block(NamedTuple):
    """A block of text: `kind` is prose, list, code or heading; `lines` are its lines without markup."""

    kind: str
    lines: list[str]


def name(rng: Random) -> str:
    """Return an invented proper name of two or three syllables."""
    return "".join(rng.choices(_SYLLABLES, k=rng.randint(2, 3))).capitalize()


def amount(rng: Random) -> str:
    """Return a sum of money or a share as filings print them, such as `$ 12,345` or `7.4 %`."""
    return f"$ {rng.randint(100, 99_999):,}" if rng.random() < 0.7 else f"{rng.uniform(0, 60):.1f} %"  # noqa: PLR2004 -- a share


def sentence(rng: Random, words: int, end: str = ".") -> str:
    """Return `words` words with an initial capital, an occasional comma or name, and `end`."""
    drawn = rng.choices(WORDS, cum_weights=_CUMULATIVE, k=max(words, 1))
    if words > 8:  # noqa: PLR2004 -- short ones stay plain, their length is what counts
        drawn[words // 2] += ","
        if rng.random() < 0.4:  # noqa: PLR2004 -- a share
            drawn[words - 2] = name(rng)
    drawn[0] = drawn[0].capitalize()
    return " ".join(drawn) + end


def prose(rng: Random, characters: int, figures: float = 0.0) -> str:
    """Return sentences of about `characters` in total; a share `figures` of them ends with a year and an amount."""
    parts: list[str] = []
    room = characters
    while room > 0:
        words = max(1, min(rng.randint(6, 22), round(room / 5.7)))
        end = f" in {rng.randint(1995, 2019)}, or {amount(rng)}." if rng.random() < figures else "."
        parts.append(sentence(rng, words, end))
        room -= len(parts[-1]) + 1
    return " ".join(parts)


def foreign(rng: Random) -> str:
    """Return a sentence of random letters of one other script, with an emoji, sometimes joined from two."""
    first, last = SCRIPTS[rng.choice(list(SCRIPTS))]
    words = [
        "".join(chr(rng.randint(first, last)) for _ in range(rng.randint(2, 7))) for _ in range(rng.randint(4, 12))
    ]
    faces = [chr(rng.randint(*EMOJI)) for _ in range(rng.randint(1, 2))]
    return " ".join(words) + " " + chr(_ZERO_WIDTH_JOINER).join(faces)


def code(rng: Random) -> list[str]:
    """Return the lines of a small invented function, indented by four spaces."""
    noun, verb, thing = rng.choices(WORDS[60:], k=3)
    lines = [f"def {verb}_{noun}({thing}, limit={rng.randint(2, 500)}):", f"    # {sentence(rng, 6)}"]
    lines += [f"    if {thing} < {rng.randint(2, 99)} and {verb} > 0:", "        return None"]
    for _ in range(rng.randint(1, 10)):
        left, right = rng.choices(WORDS[60:], k=2)
        lines.append(rng.choice(["    ", "        "]) + f"{left} = {thing}['{right}'] + {rng.randint(0, 4096)}")
    return [*lines, f"    return {noun}"]


def table(rng: Random) -> str:
    """Return a table as in filings: a heading row of years, then rows of amounts, cells separated by bars."""
    last = rng.randint(1997, 2019)
    years = [str(last - back) for back in range(3)]
    rows = [" | ".join(["( in thousands )", *years])]
    for _ in range(rng.randint(4, 14)):
        label = sentence(rng, rng.randint(1, 4), "")
        rows.append(" | ".join([label, *(amount(rng) for _ in years)]))
    return "\n".join(rows)


def blocks(rng: Random, characters: int) -> list[Block]:
    """Return the blocks of a chat message of about `characters`: prose, some lists, code, headings, other scripts."""
    made: list[Block] = []
    room = characters
    while room > 0:
        kind = (
            rng.choices(["prose", "list", "code", "heading", "foreign"], [70, 12, 9, 6, 3])[0]
            if room > _PLAIN_BELOW
            else "prose"
        )
        made.append(_block(rng, kind, min(room, rng.randint(150, 700))))
        room -= sum(len(line) + 1 for line in made[-1].lines) + 1
    return made


def _block(rng: Random, kind: str, characters: int) -> Block:
    if kind == "list":
        return Block(kind, [sentence(rng, rng.randint(4, 14)) for _ in range(rng.randint(3, 7))])
    if kind == "code":
        return Block(kind, code(rng))
    if kind == "heading":
        return Block(kind, [sentence(rng, rng.randint(2, 6), "")])
    return Block("prose", [foreign(rng) if kind == "foreign" else prose(rng, characters)])


def render_plain(parts: Sequence[Block]) -> str:
    """Return the blocks as the cleaned edition writes them: Markdown."""
    shown: dict[str, Callable[[list[str]], str]] = {
        "prose": "\n".join,
        "list": lambda lines: "\n".join(f"{place}. {line}" for place, line in enumerate(lines, 1)),
        "code": lambda lines: "\n".join(["```python", *lines, "```"]),
        "heading": lambda lines: "## " + lines[0],
    }
    return "\n\n".join(shown[part.kind](part.lines) for part in parts)


def render_html(parts: Sequence[Block]) -> str:
    """Return the blocks as the 90k edition writes them: the markup of a chat page."""
    shown: dict[str, Callable[[list[str]], str]] = {
        "prose": lambda lines: f"<p>{'<br>'.join(lines)}</p>",
        "list": lambda lines: "<ol>" + "".join(f"<li><p>{line}</p></li>" for line in lines) + "</ol>",
        "code": lambda lines: (
            '<pre><code class="hljs language-python">' + escape("\n".join(lines), quote=False) + "\n</code></pre>"
        ),
        "heading": lambda lines: f"<h2>{lines[0]}</h2>",
    }
    return _HTML_ROOT + "\n".join(shown[part.kind](part.lines) for part in parts) + "</div>"
