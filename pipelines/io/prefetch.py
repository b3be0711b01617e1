"""Work done ahead in threads, given out in order: for what leaves Python while it works (files, the engines)."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Full, Queue
from typing import TypeVar

T = TypeVar("T")

THREADS = 2
_POLL_S = 0.1


def in_order(
    sources: Sequence[Callable[[], Iterator[T]]], held: int, threads: int = THREADS
) -> Generator[T, None, None]:
    """Yield the items of every source, the sources one after the other, while later ones are read ahead.

    Args:
        sources: each begins a reading.
        held: so many items of each source are read ahead; it bounds the memory.
        threads: so many sources are read at once.

    Raises:
        Exception: whatever a source raised, at its place in the order.
    """
    stop, waiting = threading.Event(), deque(sources)
    running: deque[tuple[Queue[tuple[T] | None], Future[None]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            while waiting or running:
                while waiting and len(running) < threads:
                    items: Queue[tuple[T] | None] = Queue(held)
                    running.append((items, pool.submit(_read, waiting.popleft(), items, stop)))
                yield from _items(*running[0])
                running.popleft()
        finally:
            stop.set()


def _read(source: Callable[[], Iterator[T]], items: Queue[tuple[T] | None], stop: threading.Event) -> None:
    """Hand over every item, then None, whatever happens; leave where nobody takes them any more."""
    try:
        for item in source():
            if not _is_handed_over((item,), items, stop):
                return
    finally:
        _is_handed_over(None, items, stop)


def _is_handed_over(item: tuple[T] | None, items: Queue[tuple[T] | None], stop: threading.Event) -> bool:
    while not stop.is_set():
        with contextlib.suppress(Full):
            items.put(item, timeout=_POLL_S)
            return True
    return False


def _items(items: Queue[tuple[T] | None], reading: Future[None]) -> Iterator[T]:
    while (item := items.get()) is not None:
        yield item[0]
    reading.result()
