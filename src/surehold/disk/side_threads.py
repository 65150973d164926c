"""Threads for what can be done beside something else: waiting for the disk, hashing, freeing the blocks of an old file.

1. No one waits for a thread that is not there yet: whoever needs a result that was not begun works it out itself.
2. They are daemons. What is left when the program ends has no one who waits for it.
3. A forked child begins without any.
"""

import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

_MAX_SIDE_THREADS = 4
_MAX_BACKLOG = 16

_Result = TypeVar("_Result")


class WorkerThreads:
    """Does things at once in other threads; the program ends without waiting for them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._work = queue.SimpleQueue[Callable[[], None]]()
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0
        """Threads without work; negative while work waits for a thread."""

    def start(self, work: Callable[[], None]) -> None:
        with self._lock:
            self._idle -= 1
            is_short = self._idle < 0 and self._threads < self._limit
            if is_short:
                self._threads += 1
                self._idle += 1
        if is_short:
            self._add_thread()
        self._work.put(work)

    @property
    def backlog(self) -> int:
        """How much work waits for a thread."""
        return max(-self._idle, 0)

    def _add_thread(self) -> None:
        """`RuntimeError` when there is none, and none can be had."""
        try:
            threading.Thread(target=self._run, name=f"call-{self._threads}", daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._threads -= 1
                self._idle -= 1
                if not self._threads:
                    self._idle = 0
                    raise

    def _run(self) -> None:
        while True:
            self._work.get()()
            with self._lock:
                self._idle += 1


_side = WorkerThreads(_MAX_SIDE_THREADS)


class _SideWork(Generic[_Result]):
    """Something that is worked out once, by a side thread or by whoever waits for it."""

    def __init__(self, work: Callable[[], _Result]) -> None:
        self._work = work
        self._begun, self._done = threading.Lock(), threading.Lock()
        self._done.acquire()
        self._found = list[_Result]()
        self._error: BaseException | None = None

    def run(self) -> None:
        if self._begun.acquire(blocking=False):
            try:
                self._found.append(self._work())
            except BaseException as error:  # noqa: BLE001 - raised where the result is wanted
                self._error = error
            finally:
                self._done.release()

    def wait(self) -> _Result:
        self.run()
        with self._done:
            if self._error is not None:
                raise self._error
            return self._found[0]


def begin_aside(work: Callable[[], _Result]) -> Callable[[], _Result]:
    """Begin something in another thread; return what waits for its result, or its error."""
    one = _SideWork(work)
    with suppress(RuntimeError):  # no thread can be had
        _side.start(one.run)
    return one.wait


def leave_aside(work: Callable[[], None]) -> None:
    """Have something done that no one waits for; too much of it is done at once."""
    try:
        if _side.backlog < _MAX_BACKLOG:
            _side.start(work)
            return
    except RuntimeError:  # no thread can be had
        pass
    work()


def _begin_anew() -> None:
    global _side  # noqa: PLW0603 - the threads of the parent are not here
    _side = WorkerThreads(_MAX_SIDE_THREADS)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
