"""Sightings that are known but not written yet: they are collected for a moment, and then written together.

1. Recording a sighting waits for no other process and no disk. What is recorded is known to this store at once.
2. It is written a moment later by a thread of its own, before the store closes, and before the process ends.
3. A transaction that is under way anyway, such as the end of a change, takes what waits with it.
4. What could not be written stays known, and is tried again with the next sighting.
5. After a fork the child knows nothing of what its parent has not written: the parent writes it.
6. A store that records faster than it can write waits, so that the memory stays bounded.
"""

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress

from surehold.errors import SureholdError
from surehold.stores.base import Blob, Sighting
from surehold.stores.sightings import VERSIONS_PER_PATH, merge_sightings, versions_to_forget

_LAST_WRITE_SECONDS = 2.0  # how long the end of a process waits for others
_PAUSE_SECONDS = 0.015  # with the writing itself, sightings are on their way within 20 ms
_MAX_WAITING = 1_000
_MAX_WAITING_BYTES = 32 << 20

ShownSighting = tuple[Sighting, str]
"""A sighting, and the moment it was shown."""
_Batch = dict[tuple[str, str], dict[str, ShownSighting]]
"""By session and path, then by version; oldest first."""

_buffers: "weakref.WeakSet[SightingBuffer]" = weakref.WeakSet()


class SightingBuffer:
    """Collects the sightings of one store, with the bytes that they are of."""

    def __init__(self, write: Callable[[Sequence[ShownSighting], Sequence[Blob]], None]) -> None:
        self._write = write
        self.is_closed = False
        """Whether what is written now is the last of it."""
        self.forget()
        _buffers.add(self)

    def add(self, sightings: Sequence[ShownSighting], blobs: Sequence[Blob]) -> None:
        """Remember sightings, oldest first, whose entry number is filled in."""
        with self._guard:
            for one in sightings:
                self._count += _put(self._waiting, *one)
            self._bytes += sum(len(blob.data) for blob in blobs if blob.sha256 not in self._blobs)
            self._blobs |= {blob.sha256: blob for blob in blobs}
            overflows = self._count > _MAX_WAITING or self._bytes > _MAX_WAITING_BYTES
        if overflows or self.is_closed or not self._has_thread():
            self.flush()
        else:
            self._due.set()

    def sightings_of(self, session: str, path: str) -> list[Sighting]:
        """Return what was not written yet about a path, oldest first."""
        with self._guard:
            batches = [batch.get((session, path), {}) for batch in (self._writing, self._waiting)]
            return [sighting for versions in batches for sighting, _ in versions.values()]

    def find_blob(self, sha256: str) -> bytes | None:
        with self._guard:
            found = self._blobs.get(sha256)
        return found.data if found else None

    def flush(self) -> None:
        """Write everything; when that fails, what fits is still known, and the error is raised."""
        with self._turn:
            with self._guard:
                batch, self._waiting, self._count = self._waiting, {}, 0
                blobs, self._bytes = list(self._blobs.values()), 0
                self._writing = batch
            try:
                if batch or blobs:
                    self._write(_rows(batch), blobs)
            except BaseException:
                self._take_back(batch)
                raise
            with self._guard:
                self._writing = {}
                for blob in blobs:
                    if self._blobs.get(blob.sha256) is blob:
                        del self._blobs[blob.sha256]

    @contextmanager
    def lend(self) -> Generator[list[ShownSighting] | None]:
        """Give what waits to a transaction that writes it on the way; None while another thread writes, or bytes wait too."""
        if not self._turn.acquire(blocking=False):
            yield None
            return
        try:
            with self._guard:
                takes = not self._blobs
                if takes:
                    self._writing, self._waiting, self._count = self._waiting, {}, 0
            batch = self._writing
            try:
                yield _rows(batch) if takes else None
            except BaseException:
                self._take_back(batch)
                raise
            with self._guard:
                self._writing = {}
        finally:
            self._turn.release()

    @property
    def patience(self) -> float | None:
        """How long a write may wait for its turn; None for as long as any other."""
        return _LAST_WRITE_SECONDS if self.is_closed else None

    def close(self) -> None:
        """Write what can be written, and end the thread."""
        self.is_closed = True
        self._due.set()
        with suppress(SureholdError):
            self.flush()

    def forget(self) -> None:
        """Forget everything, as the child of a fork must: it belongs to the process that forked us."""
        self._guard, self._turn, self._due = threading.Lock(), threading.Lock(), threading.Event()
        self._waiting: _Batch = {}
        self._writing: _Batch = {}
        self._blobs: dict[str, Blob] = {}
        self._count = self._bytes = 0
        self._thread: threading.Thread | None = None
        weakref.finalize(self, self._due.set).atexit = False

    def flush_when_due(self) -> bool:
        """Write what came in the last moment; tell whether more may come."""
        self._due.clear()
        with suppress(SureholdError):
            self.flush()
        return not self.is_closed

    def _take_back(self, batch: _Batch) -> None:
        with self._guard:
            for one in _rows(self._waiting):
                _put(batch, *one)
            count, size = len(_rows(batch)), sum(len(blob.data) for blob in self._blobs.values())
            if count > _MAX_WAITING or size > _MAX_WAITING_BYTES:
                batch, self._blobs, count, size = {}, {}, 0, 0
            self._waiting, self._writing, self._count, self._bytes = batch, {}, count, size

    def _has_thread(self) -> bool:
        """Tell whether a thread writes what waits; there may be none to be had."""
        with self._guard:
            if self._thread is None:
                thread = threading.Thread(
                    target=_flush_forever, args=(weakref.ref(self), self._due), name="surehold-sightings", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:
                    return False
                self._thread = thread
            return True


def _put(batch: _Batch, sighting: Sighting, shown: str) -> int:
    """Add one sighting to a batch, as the newest of its path, within the bounds of the store; return how many it grew by."""
    place = (sighting.session, sighting.path)
    versions = batch[place] = batch.pop(place, {})
    first = next((one.seq for one, _ in versions.values()), sighting.seq)
    count = len(versions)
    known, _ = versions.pop(sighting.sha256, (None, ""))
    versions[sighting.sha256] = merge_sightings(known, sighting, seq=first), shown
    if len(versions) > VERSIONS_PER_PATH:
        for sha256 in versions_to_forget([one for one, _ in reversed(versions.values())]):
            del versions[sha256]
    return len(versions) - count


def _rows(batch: _Batch) -> list[ShownSighting]:
    return [one for versions in batch.values() for one in versions.values()]


def _flush_forever(buffer_of: "weakref.ref[SightingBuffer]", due: threading.Event) -> None:
    while due.wait():
        time.sleep(_PAUSE_SECONDS)
        buffer = buffer_of()
        if buffer is None or not buffer.flush_when_due():
            return
        del buffer  # else this thread would keep it


def _flush_all() -> None:
    for buffer in tuple(_buffers):
        buffer.close()


def _forget_in_child() -> None:
    for buffer in tuple(_buffers):
        buffer.forget()


atexit.register(_flush_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
