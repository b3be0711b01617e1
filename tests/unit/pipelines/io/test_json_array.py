"""The reader of JSON arrays and JSON lines: exact on odd bytes, whole before a truncation, bounded in memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.io import json_array, json_deep
from pipelines.io.json_array import Cut, Element, read_elements
from pipelines.io.json_bytes import byte_length
from pipelines.io.json_deep import MAX_DEPTH, is_deep

TOO_DEEP_WORDS = "more than 500 arrays and objects inside each other"
Elements = Callable[[bytes], list[Element | Cut]]
ANY_SIZE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(
    st.characters(exclude_categories=()), max_size=8
)  # fmt: skip
RECORD = st.dictionaries(st.text("ab\n\u00e9", max_size=3), LEAF | st.lists(LEAF, max_size=3), max_size=3)


@pytest.fixture
def elements(tmp_path: Path) -> Elements:
    """Return a function that reads bytes."""

    def reading(raw: bytes) -> list[Element | Cut]:
        path = tmp_path / "file.json"
        path.write_bytes(raw)
        return list(read_elements(path))

    return reading


def values(found: list[Element | Cut]) -> list[Any]:
    """Return the values of what is whole."""
    return [element.value for element in found if isinstance(element, Element)]


@pytest.mark.parametrize("raw", [b"", b" \n", b"[]", b" [ ] \n", b"\xef\xbb\xbf[]", b"\xef\xbb\xbf"])
def test_nothing(elements: Elements, raw: bytes) -> None:
    """An empty file and an empty array have no element, with or without a byte order mark."""
    # 0 elements, 0 cuts
    assert elements(raw) == []


@pytest.mark.parametrize(
    "raw",
    [
        b'[{"a":1},{"a":2}]',
        b'\xef\xbb\xbf [ {"a" : 1} ,\r\n {"a":2}\n]\n',
        b'{"a":1}\n{"a":2}\n',
        b'{"a":1}\r\n{"a":2}',
        b'\xef\xbb\xbf{"a":1}\n\n\n{"a":2}',
        b'{"a":1} {"a":2}',
    ],
)
def test_array_and_lines(elements: Elements, raw: bytes) -> None:
    """An array, lines with either line end, blank lines and a byte order mark give the same two elements."""
    # elements are numbered 0 and 1
    assert elements(raw) == [Element(0, {"a": 1.0}), Element(1, {"a": 2.0})]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b'"\\ud800"', "\ud800"),
        (b'"\xed\xa0\x80x"', "\ud800x"),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\xff\xfe"', "\udcff\udcfe"),
        (b'"a\xe2\x82"', "a\udce2\udc82"),
        (b'"\x00\x01\t\n\x1f\x7f"', "\x00\x01\t\n\x1f\x7f"),
        (b'"\xe2\x80\xa8\xc2\x85"', "\u2028\x85"),
        (b'"\xef\xbb\xbfx"', "\ufeffx"),
    ],
)
def test_odd_characters(elements: Elements, raw: bytes, text: str) -> None:
    """Lone surrogates, bare control characters, and invalid bytes, each as a surrogate that tells it, come out."""
    # one element before, one behind: nothing is lost around the odd one
    assert values(elements(b"[1," + raw + b",2]")) == [1.0, text, 2.0]


def test_numbers_of_any_length(elements: Elements) -> None:
    """Integers beyond Python's 4,300 digits, NaN and infinities do not stop the reader."""
    raw = b'[{"n":' + b"9" * 5000 + b'},{"n":-Infinity},{"n":1e999},{"n":NaN},{"n":7}]'
    found = values(elements(raw))
    # 10^5000 is beyond a double: infinite
    assert [row["n"] for row in found[:3]] == [float("inf"), float("-inf"), float("inf")]
    assert (found[3]["n"] != found[3]["n"], found[4]["n"]) == (True, 7.0)


def test_truncated_at_every_byte(elements: Elements) -> None:
    """Whatever the byte, every whole element before the cut comes out, and one Cut says where the broken one begins."""
    parts = [b'{"id":"a_0","v":[1,-2.5e3,true,null]}', b'{"t":"q\\"\\\\\\u00e9\\n"}', b'{"x":{"y":[]}}']
    raw = b"[" + b",".join(parts) + b"]"
    ends = [1 + sum(map(len, parts[: n + 1])) + n for n in range(3)]
    starts = [1, ends[0] + 1, ends[1] + 1]
    for cut in range(1, len(raw)):
        found = elements(raw[:cut])
        whole = sum(end <= cut for end in ends)
        assert values(found) == [json.loads(part) for part in parts[:whole]], raw[:cut]
        last = found[-1]
        assert isinstance(last, Cut)
        assert (last.index, last.is_end, len(found)) == (whole, True, whole + 1)
        # the rest begins at the broken element, or at the cut where only the comma or the bracket is missing
        assert last.byte == (min(cut, starts[whole]) if whole < 3 else cut)


def test_truncated_inside_a_character(elements: Elements) -> None:
    """A cut inside a multi-byte character is a truncation like any other, and the whole elements are kept."""
    raw = '[{"a":"x"},{"a":"\u20ac\U0001f600"}]'.encode()
    for cut in range(11, len(raw) - 1):
        found = elements(raw[:cut])
        assert values(found) == [{"a": "x"}]
        assert (len(found), found[-1].index) == (2, 1)


def test_broken_line_in_the_middle(elements: Elements) -> None:
    """Behind a line that is not JSON the next lines are read, and the broken one has its number and its place."""
    raw = b'{"a":1}\nnot JSON at all\n{"a":"' + b"x" * 40 + b'"}\n{"a":3}\n'
    found = elements(raw)
    # 7 bytes and a line end: the second line begins at byte 8
    assert found[1] == Cut(1, 8, "not JSON", "not_an_object")
    assert [element.index for element in found] == [0, 1, 2, 3]
    assert values(found)[2] == {"a": 3.0}


def test_last_line_cut(elements: Elements) -> None:
    """A file of lines that ends inside one is truncated there."""
    found = elements(b'{"a":1}\n{"a":"xy')
    assert found == [Element(0, {"a": 1.0}), Cut(1, 8, "the file ends inside an element")]


def test_broken_line_near_the_end(elements: Elements) -> None:
    """A broken line is one reject wherever it stands; the two lines behind it are whole."""
    # 3 lines: 1 broken + 2 whole
    assert values(elements(b'{"a":1\n{"b":2}\n{"c":3}\n')) == [{"b": 2.0}, {"c": 3.0}]


@pytest.mark.parametrize("rest", [b"\xff\xff\xff", b"\xf0\x9f\x98"])
def test_place_before_invalid_bytes(elements: Elements, rest: bytes) -> None:
    """The place of a cut is a byte of the file, also where invalid bytes or a cut character stand behind it."""
    found = elements(b'[{"a":1},{"b":"' + rest)
    # [ + 7 bytes + comma = 9
    assert isinstance(found[-1], Cut)
    assert found[-1].byte == 9


@pytest.mark.parametrize("rest", [b'[{"a":2}]', b',{"a":2}]', b"garbage"])
def test_rest_behind_the_array(elements: Elements, rest: bytes) -> None:
    """What is left out is told: a second array or garbage behind the first one is not passed over in silence."""
    # 1 element of the first array, and at least one element or Cut for the rest
    assert len(elements(b'[{"a":1}]' + rest)) > 1


def test_surrogate_at_the_edge_of_a_block(elements: Elements) -> None:
    """Where a block ends does not change what is read."""
    for step in range(1, 16):
        with mock.patch.object(json_array, "STEP_BYTES", step):
            # 1 lone surrogate is 1 character
            assert values(elements(b'["\xed\xa0\x80"]')) == ["\ud800"]


def test_no_comma(elements: Elements) -> None:
    """Two elements without a comma are the end of what can be read."""
    # [ + 7 bytes + 1 space = 9
    found = elements(b'[{"a":1} {"a":2}]')
    assert found == [Element(0, {"a": 1.0}), Cut(1, 9, "no comma between two elements")]


def nested(depth: int, inside: bytes = b"") -> bytes:
    """Return a value of so many levels, arrays and objects in turn, with white space, strings and escapes between."""
    opened = b"".join(b'["]\\"", {"}": ' if n % 2 == 0 else b"" for n in range(depth - depth % 2))
    opened += b"[" * (depth % 2)
    closed = b"".join(b"}\n, -1.5e3]" for _ in range(depth // 2))
    return opened + (inside or (b"" if depth % 2 else b"null")) + b"]" * (depth % 2) + closed


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, MAX_DEPTH + 2, 5_000])
@pytest.mark.parametrize("joint", [b",", b"\n"])
def test_depth(elements: Elements, depth: int, joint: bytes) -> None:
    """A value of up to 500 levels is one, a deeper one is passed over, and what is behind it is read."""
    deep = nested(depth).replace(b"\n", b" ")
    parts = [b'{"a":1}', deep, b'{"a":2}', deep, b'{"a":3}']
    raw = joint.join(parts)
    found = elements(b"[" + raw + b"]" if joint == b"," else raw)
    assert [element.index for element in found] == [0, 1, 2, 3, 4]
    assert [found[n] for n in (0, 2, 4)] == [Element(0, {"a": 1.0}), Element(2, {"a": 2.0}), Element(4, {"a": 3.0})]
    if depth > MAX_DEPTH:
        # 7 bytes and a joint, and a bracket before them in an array
        first = 8 + (joint == b",")
        cuts = [Cut(1, first, TOO_DEEP_WORDS, "too_deep"), Cut(3, first + len(deep) + 9, TOO_DEEP_WORDS, "too_deep")]
        assert [found[1], found[3]] == cuts
    else:
        assert [isinstance(found[n], Element) for n in (1, 3)] == [True, True]


@pytest.mark.parametrize("depth", [0, 1, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1])
@pytest.mark.parametrize("leaf", [{}, [], {"a": 1}, [1], {"a": []}])
def test_levels(depth: int, leaf: Any) -> None:  # noqa: ANN401 - any JSON value
    """A value is too deep where it has more than 500 levels, whatever the innermost one holds."""
    value, levels = leaf, 2 if leaf == {"a": []} else 1
    for n in range(depth):
        value = [value] if n % 2 else {"k": "x", "v": value}
    assert is_deep(value) == (levels + depth > MAX_DEPTH)


def test_depth_is_the_same_below_any_caller(elements: Elements) -> None:
    """Behind many callers, where Python has no 500 levels left, the same comes out."""
    raw = b"[" + nested(MAX_DEPTH) + b"," + nested(MAX_DEPTH + 1) + b",7]"

    def below(callers: int) -> list[Element | Cut]:
        return below(callers - 1) if callers else elements(raw)

    # 1 of 500 levels, 1 of 501, 1 of none
    expected = [Element, Cut, Element]
    for callers in (0, 300, 600, 750):
        assert [type(element) for element in below(callers)] == expected


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_a_deep_value_over_many_blocks(elements: Elements, step: int) -> None:
    """Strings, escapes, numbers and literals of a deep value are passed over wherever a block ends."""
    inside = b'[1, -0.5E+10, true, false, null, NaN, -Infinity, "\\u00e9\\\\", "\xc3\xa9\xff", {}, {"a": 0, "b": []}]'
    raw = b"[" + nested(1200, inside) + b',{"a":1}]'
    with mock.patch.object(json_array, "STEP_BYTES", step):
        assert elements(raw) == [Cut(0, 1, TOO_DEEP_WORDS, "too_deep"), Element(1, {"a": 1.0})]


@pytest.mark.parametrize(
    "inside",
    [b"[1,]", b"[,1]", b'{"a"}', b'{"a":}', b"{1:2}", b'{"a":1,}', b"01", b"1.", b"-", b"tru", b'"\\x"', b'"\\u12g4"',
     b"]", b"}"],
)  # fmt: skip
def test_a_deep_value_that_is_not_json(elements: Elements, inside: bytes) -> None:
    """It is the end of an array as any other, at its first byte; a bad line is a bad line."""
    deep = nested(1200, inside).replace(b"\n", b" ")
    assert elements(b"[1," + deep + b",2]") == [Element(0, 1.0), Cut(1, 3, "not JSON")]
    # 1, a line end
    assert elements(b"1\n" + deep + b"\n2")[1:] == [Cut(1, 2, "not JSON", "not_an_object"), Element(2, 2.0)]


def test_a_deep_value_that_ends_with_the_file(elements: Elements) -> None:
    """Brackets that are never closed are a truncation, and are read in blocks of a bounded size."""
    # [ + 7 bytes + comma = 9
    why = f"{TOO_DEEP_WORDS}, and the file ends inside an element"
    assert elements(b'[{"a":1},' + b"[" * 50_000)[1] == Cut(1, 9, why)
    found = elements(b'{"a":1}\n' + b"[" * 50_000 + b'\n{"a":2}\n')
    assert found[1:] == [Cut(1, 8, "not JSON", "not_an_object"), Element(2, {"a": 2.0})]


@pytest.mark.parametrize("begin", [b"[", b'{"a":'])
def test_more_levels_than_anyone_writes(elements: Elements, begin: bytes) -> None:
    """Beyond 100,000 levels nothing is looked for: the steps of 10 million brackets are those of 100,000."""
    words = "more than 100,000 arrays and objects inside each other"
    deep = begin * 200_000
    with mock.patch.object(json_deep, "_kind", mock.Mock(side_effect=json_deep._kind)) as steps:
        # [ + 7 bytes + comma = 9; the end of an element in an array would have to be found
        assert elements(b'[{"a":1},' + deep)[1:] == [Cut(1, 9, f"{words}, the rest is not read")]
        # a level of an object is a brace, a key and a colon
        assert steps.call_count <= 3 * (json_deep.MOST_SKIPPED + 1)
    # the next line is another record
    found = elements(b'{"a":1}\n' + deep + b'\n{"a":2}\n')
    assert found[1:] == [Cut(1, 8, words, "too_deep"), Element(2, {"a": 2.0})]


JUNK = [
    b"x",
    b"}",
    b'{"a":',
    b'"',
    b"\xff",
    b"\xed\xa0\x80",
    b"\xed\xb2\x80",
    b"\xe2\x82",
    "\u20ac".encode(),
    "\U0001f600".encode(),
]
PIECE = st.sampled_from([*JUNK, b" ", b"\r", b"\xef\xbb\xbf", b'{"a":"\xc3\xa9"}', b"[]", b"1"])


def places(raw: bytes) -> list[tuple[int, bool]]:
    """Return the first byte of each line's first value that is not JSON, slowly; and whether the file ends there."""
    found = []
    begin = 0
    for line in raw.split(b"\n"):
        at = begin
        while rest := raw[at : begin + len(line)].lstrip(b" \t\r"):
            at = begin + len(line) - len(rest)
            if rest.startswith(b"\xef\xbb\xbf"):
                at += 3
                continue
            try:
                text = rest.decode("utf-8", "surrogateescape")
                _, end = json.JSONDecoder(strict=False).raw_decode(text)
            except json.JSONDecodeError:
                found.append((at, begin + len(line) == len(raw)))
                break
            at += len(text[:end].encode("utf-8", "surrogateescape"))
        begin += len(line) + 1
    return found


@settings(ANY_SIZE, max_examples=400)
@given(
    lines=st.lists(st.lists(PIECE, max_size=6).map(b"".join), max_size=8), step=st.integers(1, 30), crlf=st.booleans()
)
def test_places_are_those_of_a_slow_reader(elements: Elements, lines: list[bytes], step: int, crlf: bool) -> None:
    """Whatever stands in lines, and wherever a block ends, the byte of each that is not JSON is the file's byte."""
    raw = b"x\n" + (b"\r\n" if crlf else b"\n").join(lines)
    with mock.patch.object(json_array, "STEP_BYTES", step):
        cuts = [element for element in elements(raw) if isinstance(element, Cut)]
    assert [(cut.byte, cut.is_end) for cut in cuts] == places(raw)


def encoded(raw: bytes, elements: Elements, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many characters are encoded to find places while `raw` is read."""
    lengths = []

    def counted(text: str) -> int:
        lengths.append(len(text))
        return byte_length(text)

    monkeypatch.setattr(json_array, "byte_length", counted)
    elements(raw)
    return sum(lengths)


@pytest.mark.parametrize("line", [b"x", b"\xff\xff", '"\u20ac'.encode(), b'{"a":1} y', b"[" * 2000 + b"]" * 2000])
def test_many_lines_that_are_not_json(elements: Elements, monkeypatch: pytest.MonkeyPatch, line: bytes) -> None:
    """Each character is encoded once at most, however many lines need their place."""
    raw = b"y\n" + (line + b"\n") * min(5000, 2_000_000 // len(line))
    assert encoded(raw, elements, monkeypatch) <= len(raw)


def test_a_long_line_is_searched_once(elements: Elements, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over many blocks the line end is looked for in what is new, and no place is encoded again."""
    monkeypatch.setattr(json_array, "STEP_BYTES", 1000)
    raw = b'x\n{"a":"' + "\u00e9".encode() * 500_000 + b'"}\nx\n'
    assert encoded(raw, elements, monkeypatch) <= len(raw)


def test_an_element_of_five_megabytes(elements: Elements) -> None:
    """A value over many blocks comes out whole, in a few times its size, and the next one too."""
    big = b'{"v":"' + b"x" * 5_000_000 + b'"}'
    tracemalloc.start()
    found = values(elements(b"[" + big + b"," + big + b',{"v":1}]'))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len(str(row["v"])) for row in found] == [5_000_000, 5_000_000, 1]
    # the file of 10 MB, two values of 5 MB, and a buffer of at most 1 + 2 + 4 + 8 MB twice
    assert peak < 60_000_000


def test_every_byte_is_reported(tmp_path: Path) -> None:
    """The calls of on_bytes add up to the size of the file."""
    path = tmp_path / "f"
    path.write_bytes(b"[" + b'{"a":"' + b"z" * 3_000_000 + b'"}]')
    seen: list[int] = []
    list(read_elements(path, seen.append))
    # 1 + 6 + 3,000,000 + 2 + 1
    assert sum(seen) == path.stat().st_size == 3_000_010


@ANY_SIZE
@given(records=st.lists(RECORD, max_size=4), step=st.integers(1, 40), is_lines=st.booleans(), is_ascii=st.booleans())
def test_any_block_size_gives_what_json_gives(
    elements: Elements, records: list[Any], step: int, is_lines: bool, is_ascii: bool
) -> None:
    """The standard library on the whole text is the reference, whatever the size of a block."""
    texts = [json.dumps(record, ensure_ascii=is_ascii) for record in records]
    whole = "\n".join(texts) if is_lines else "[" + ", ".join(texts) + "]"
    with mock.patch.object(json_array, "STEP_BYTES", step):
        found = elements(whole.encode("utf-8", "surrogatepass"))
    # ints are read as floats: no number of a record is used
    assert found == [Element(n, json.loads(text, parse_int=float)) for n, text in enumerate(texts)]


@ANY_SIZE
@given(raw=st.binary(max_size=60) | st.text('[]{}",:\\ \n0e', max_size=30).map(str.encode))
def test_garbage_never_raises(elements: Elements, raw: bytes) -> None:
    """Any bytes give elements and cuts with rising numbers, and at most one end."""
    found = elements(raw)
    assert [element.index for element in found] == list(range(len(found)))
    ends = [element for element in found if isinstance(element, Cut) and element.is_end]
    assert ends in ([], found[-1:])
