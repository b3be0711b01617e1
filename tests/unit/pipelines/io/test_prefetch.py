"""Sources are read at once and given in order; what goes wrong in one comes at its place, and nothing hangs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from pipelines.io.prefetch import in_order


def numbers(start: int, count: int) -> Iterator[int]:
    """Yield so many numbers from `start`."""
    yield from range(start, start + count)


def test_in_order() -> None:
    """Five sources of three items each, one held: all items in the order of the sources."""
    sources = [partial(numbers, 3 * n, 3) for n in range(5)]
    assert list(in_order(sources, held=1)) == list(range(15))


def test_no_source_and_empty_sources() -> None:
    """Nothing comes of nothing."""
    assert list(in_order([], held=1)) == []
    assert list(in_order([partial(numbers, 0, 0)] * 3, held=1)) == []


def test_two_are_read_at_once() -> None:
    """The second source is begun before the first has ended."""
    second_began = threading.Event()

    def first() -> Iterator[bool]:
        yield second_began.wait(10)

    def second() -> Iterator[bool]:
        second_began.set()
        yield True

    assert list(in_order([first, second], held=1)) == [True, True]


def test_an_error_comes_at_its_place() -> None:
    """What was read before an error is given, then the error is raised."""

    def broken() -> Iterator[int]:
        yield 3
        raise ValueError("broken")

    items = in_order([partial(numbers, 0, 3), broken, partial(numbers, 9, 100)], held=2)
    assert [next(items) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="broken"):
        next(items)


def test_a_reader_that_stops_early_ends_the_threads() -> None:
    """Closing in the middle leaves no thread that waits to hand over an item."""
    before = threading.active_count()
    items = in_order([partial(numbers, 0, 1000), partial(numbers, 0, 1000)], held=1)
    assert next(items) == 0
    items.close()
    assert threading.active_count() == before


def test_no_more_than_held_is_read_ahead() -> None:
    """With two held, a source is at most two items, and the one in hand, ahead of its reader."""
    begun: list[int] = []

    def counted() -> Iterator[int]:
        for n in range(100):
            begun.append(n)
            yield n

    for taken, _ in enumerate(in_order([counted], held=2)):
        # the one taken, two in the queue, and one that waits for a place
        assert len(begun) <= taken + 1 + 2 + 1
