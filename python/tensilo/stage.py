"""Python work on items in parallel, delivered in their order. Private: transforms of `DataLoader` run here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

#: Seconds that `close` waits for work that does not come back.
_PATIENCE = 2.0
#: Seconds between two looks at signals while waiting.
_POLL = 0.1


class Stage:
    """Threads that take items one after the other, work on them, and put the results in order.

    Parameters
    ----------
    take : callable
        Gives the next item, or None at the end; called by one thread at a time.
    work : callable
        Turns an item into a result.
    threads : int
        Number of threads.
    depth : int
        Items that may be taken and not yet delivered.
    stop : callable
        Makes `take` return None; called by `close`.
    """

    def __init__(
        self,
        take: Callable[[], Any],
        work: Callable[[Any], Any],
        *,
        threads: int,
        depth: int,
        stop: Callable[[], None],
    ) -> None:
        self._take, self._work, self._stop = take, work, stop
        self._depth = depth
        self._turn = threading.Lock()
        self._changed = threading.Condition()
        self._results: dict[int, tuple[Any, BaseException | None]] = {}
        self._taken = 0
        self._delivered = 0
        self._ended = False
        self._closed = False
        self._threads = [
            threading.Thread(target=self._run, name=f"tensilo-transform-{i}", daemon=True) for i in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        while True:
            with self._turn:
                with self._changed:
                    while self._taken - self._delivered >= self._depth and not self._closed:
                        self._changed.wait()
                    if self._closed or self._ended:
                        return
                try:
                    item, failed = self._take(), None
                except BaseException as e:
                    item, failed = None, e
                with self._changed:
                    if item is None and failed is None:
                        self._ended = True
                        self._changed.notify_all()
                        return
                    ticket = self._taken
                    self._taken += 1
            result = None
            if failed is None:
                try:
                    result = self._work(item)
                except BaseException as e:
                    failed = e
            with self._changed:
                if self._closed:
                    return
                self._results[ticket] = (result, failed)
                self._changed.notify_all()
            # Nothing is kept alive while the thread waits.
            del item, result, failed

    def next(self) -> Any:
        """The next result, or None at the end; raises what the work raised."""
        with self._changed:
            while self._delivered not in self._results:
                if self._closed or (self._ended and self._delivered == self._taken):
                    return None
                self._changed.wait(_POLL)
            result, failed = self._results.pop(self._delivered)
            self._delivered += 1
            self._changed.notify_all()
        if failed is not None:
            raise failed
        return result

    def close(self) -> None:
        """End the threads. Work that does not come back within two seconds is left to itself."""
        with self._changed:
            self._closed = True
            self._results.clear()
            self._changed.notify_all()
        self._stop()
        until = time.monotonic() + _PATIENCE
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))
