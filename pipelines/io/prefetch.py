"""Work done ahead in threads, returned in order: for work that releases Python's lock (files, the engines)."""

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
    """Yield the items of all sources in order, while later sources are read ahead.

    Args:
        sources: each starts a reading.
        held: number of items of each source that are read ahead; it bounds the memory.
        threads: number of sources that are read at once.

    Raises:
        Exception: any error of a source, at its position in the order.
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
    """Pass on every item, then None in any case; stop when the consumer has gone."""
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
