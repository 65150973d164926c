"""Refused calls that are known but not written yet: nothing waits for them but those who read the ledger.

1. Recording a refusal waits for no database. A thread writes it a moment later, in the order in which calls were refused.
2. What could not be written is tried again while the process lives, within a bound; then the oldest are given up.
3. Whoever lists or checks entries in this process has them written first, so a caller finds its own refusal; in a database
   that can only be read, they are listed without it.
4. A call that was under way after all, or has an entry already, is not recorded as refused.
"""

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from surehold.errors import DiskFull, StateUnavailable, SureholdError
from surehold.stores.base import Call, Change, Entry

_MAX_WAITING = 1_000
_PAUSE_SECONDS, _PAUSE_AFTER_FAILURE_SECONDS = 0.01, 0.5

_buffers: "weakref.WeakSet[RefusalBuffer]" = weakref.WeakSet()


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCall:
    """One call that was refused, and what it asked for."""

    change_id: str
    call: Call
    error_kind: str
    message: str
    changes: tuple[Change, ...] = ()

    def make_entries(self) -> list[Entry]:
        """Return its entries, without number and moment."""
        drafts = [
            Entry(change_id=self.change_id, timestamp="", call=self.call, change=one, ok=False) for one in self.changes
        ]
        return [replace(one, error_kind=self.error_kind, message=self.message) for one in drafts]


class RefusalBuffer:
    """Collects the refused calls of one store, and writes them a moment later."""

    def __init__(self, write: Callable[[Sequence[RefusedCall]], None]) -> None:
        """`write` makes one attempt, and raises when the database is away."""
        self._write = write
        self._is_closed = False
        self.forget()
        _buffers.add(self)

    def add(self, refused: RefusedCall) -> None:
        with self._guard:
            self._waiting.append(refused)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=_write_forever, args=(weakref.ref(self), self._due), name="surehold-refusals", daemon=True
                )
                self._thread.start()
        self._due.set()

    def flush(self) -> None:
        """Write what waits; when that fails it still waits, and the error is raised."""
        if not self._waiting:
            return
        with self._turn:
            batch = tuple(self._waiting)
            if batch:
                self._write(batch)
            with self._guard:
                for one in batch:
                    if self._waiting and self._waiting[0] is one:
                        self._waiting.popleft()

    def flush_for_reader(self) -> None:
        """Write what waits, if the database takes anything: those who only read go on where it does not."""
        try:
            self.flush()
        except DiskFull:
            return
        except StateUnavailable as error:
            if error.reason != "state_read_only":
                raise

    def close(self) -> None:
        """Write what can be written, and end the thread."""
        self._is_closed = True
        self._due.set()
        with suppress(SureholdError):
            self.flush()

    def forget(self) -> None:
        """Forget everything, as the child of a fork must: it belongs to the process that forked us."""
        self._guard, self._turn, self._due = threading.Lock(), threading.RLock(), threading.Event()
        self._waiting = deque[RefusedCall](maxlen=_MAX_WAITING)
        self._thread: threading.Thread | None = None
        weakref.finalize(self, self._due.set).atexit = False

    def flush_when_due(self) -> float | None:
        """Write what came in the last moment; return how long to wait before the next attempt, None for no more."""
        self._due.clear()
        try:
            self.flush()
        except SureholdError:
            self._due.set()  # it is tried again, though nothing new comes
            return None if self._is_closed else _PAUSE_AFTER_FAILURE_SECONDS
        return None if self._is_closed else _PAUSE_SECONDS


def _write_forever(buffer_of: "weakref.ref[RefusalBuffer]", due: threading.Event) -> None:
    pause: float | None = _PAUSE_SECONDS
    sleeper = threading.Event()
    while due.wait():
        sleeper.wait(pause)
        buffer = buffer_of()
        if buffer is None or (pause := buffer.flush_when_due()) is None:
            return
        del buffer  # else this thread would keep it


def _forget_in_child() -> None:
    for buffer in tuple(_buffers):
        buffer.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
