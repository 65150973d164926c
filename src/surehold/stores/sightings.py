"""What sessions were shown: how sightings are merged and forgotten, and how they are collected and written together.

1. Recording a sighting waits for no other process and no disk. What is recorded is known to this store at once. Only
   what would be misread if it were lost is written before the answer leaves: anchors of a path that the session knows
   in another version too (`must_be_written_at_once`), so that a killed server costs a read, never a wrong line.
2. It is written a moment later by a thread of its own, before the store closes, and before the process ends.
3. A transaction that is under way anyway, such as the end of a change, takes what waits with it; a database that is away
   over a network takes what waits of the paths of the change.
4. What could not be written stays known, and is tried again with the next sighting.
5. After a fork the child knows nothing of what its parent has not written: the parent writes it.
6. A store that records faster than it can write waits, so that the memory stays bounded.
"""

import atexit
import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import overload

from surehold.errors import SureholdError
from surehold.stores.base import Blob, Sighting
from surehold.text.snapshot import LineRanges, merge_ranges

VERSIONS_PER_PATH = 8
PATHS_PER_SESSION = 2_000
FORGOTTEN_AFTER = timedelta(days=30)

SightingRow = tuple[str, str, int, str, int]
"""A sighting as it is stored: its sha256, its lines, whether it is whole, the lines with anchors, and its first entry."""


def merge_sightings(known: Sighting | None, shown: Sighting, *, seq: int) -> Sighting:
    earlier, anchored = (known.spans, known.anchored) if known else ((), ())
    return replace(
        shown,
        spans=merge_ranges((*earlier, *shown.spans)),
        whole=shown.whole or (known is not None and known.whole),
        anchored=merge_ranges((*anchored, *shown.anchored)),
        seq=known.seq if known else seq,
    )


def must_be_written_at_once(shown: Sighting, known: Sequence[Sighting]) -> bool:
    """Tell whether a lost sighting could make its anchors mean lines of another version that was shown.

    `known`: what the session was shown of the path before, newest version first. A session without any sighting of a
    path only has to read it again.
    """
    if not shown.anchored or all(one.sha256 == shown.sha256 for one in known):
        return False
    newest = known[0]
    return newest.sha256 != shown.sha256 or merge_sightings(newest, shown, seq=newest.seq) != newest


def with_later_sightings(versions: Sequence[Sighting], later: Sequence[Sighting]) -> Sequence[Sighting]:
    """Return the versions of one path, newest first, as they are after later sightings (merged ones) were added."""
    if not later:
        return versions
    found = {one.sha256: one for one in reversed(versions)}
    first = min((one.seq for one in versions), default=None)
    for one in later:
        first = one.seq if first is None else first
        known = found.pop(one.sha256, None)
        found[one.sha256] = one if known is None and one.seq == first else merge_sightings(known, one, seq=first)
        for sha256 in versions_to_forget([*reversed(found.values())]):
            del found[sha256]
    return tuple(reversed(found.values()))


def versions_to_forget(versions: Sequence[Sighting]) -> list[str]:
    """Name the versions of one path that are too many; they come newest first."""
    best = max(versions, key=lambda one: (one.whole, sum(last - first + 1 for first, last in one.spans)), default=None)
    return [one.sha256 for one in versions[VERSIONS_PER_PATH:] if one is not best]


def rows_to_forget(rows: Sequence[SightingRow]) -> list[str]:
    """Name the versions of one path that are too many, as `versions_to_forget` does, from rows that come newest first."""
    best = max(rows, key=_weigh_row, default=None)
    return [row[0] for row in rows[VERSIONS_PER_PATH:] if row is not best]


def _weigh_row(row: SightingRow) -> tuple[int, int]:
    return row[2], _count_lines(row[1])


@lru_cache(maxsize=512)
def _count_lines(spans: str) -> int:
    return sum(last - first + 1 for first, last in ranges_from_text(spans))


@lru_cache(maxsize=512)
def ranges_to_text(ranges: LineRanges) -> str:
    return json.dumps(ranges)


@lru_cache(maxsize=512)  # most versions of a file were shown in the same lines as the one before
def ranges_from_text(text: str) -> LineRanges:
    return tuple((first, last) for first, last in json.loads(text))


def sighting_from_row(session: str, path: str, row: SightingRow) -> Sighting:
    sha256, spans, whole, anchored, seq = row
    return Sighting(
        session=session,
        path=path,
        sha256=sha256,
        spans=ranges_from_text(spans),
        whole=bool(whole),
        anchored=ranges_from_text(anchored),
        seq=seq,
    )


class StoredSightings(Sequence[Sighting]):
    """What a session was shown of one path, newest first; each row is decoded when it is first asked for."""

    __slots__ = ("_decoded", "_path", "_rows", "_session")

    def __init__(self, session: str, path: str, rows: Sequence[SightingRow]) -> None:
        self._session, self._path, self._rows = session, path, rows
        self._decoded = list[Sighting]()  # those of the first rows, as far as they were asked for

    @overload
    def __getitem__(self, index: int) -> Sighting: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Sighting, ...]: ...
    def __getitem__(self, index: int | slice) -> Sighting | tuple[Sighting, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        return sighting_from_row(self._session, self._path, self._rows[index])

    def __iter__(self) -> Iterator[Sighting]:
        for index, row in enumerate(self._rows):
            if index == len(self._decoded):
                self._decoded.append(sighting_from_row(self._session, self._path, row))
            yield self._decoded[index]

    def __len__(self) -> int:
        return len(self._rows)


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

    def add(self, sightings: Sequence[ShownSighting], blobs: Sequence[Blob], *, at_once: bool = False) -> None:
        """Remember sightings, oldest first, whose entry number is filled in; write them before the answer, or later."""
        with self._guard:
            for one in sightings:
                self._count += _put(self._waiting, *one)
            self._bytes += sum(len(blob.data) for blob in blobs if blob.sha256 not in self._blobs)
            self._blobs |= {blob.sha256: blob for blob in blobs}
            overflows = self._count > _MAX_WAITING or self._bytes > _MAX_WAITING_BYTES
        if at_once:
            with suppress(SureholdError):  # the answer comes first; it is tried again with the next sighting
                self.flush()
        elif overflows or self.is_closed or not self._has_thread():
            self.flush()
        else:
            self._due.set()

    def sightings_of(self, session: str, path: str) -> list[Sighting]:
        """Return what was not written yet about a path, oldest first."""
        with self._guard:
            batches = [batch.get((session, path), {}) for batch in (self._writing, *self._lent, self._waiting)]
            return [sighting for versions in batches for sighting, _ in versions.values()]

    def find_blob(self, sha256: str) -> bytes | None:
        with self._guard:
            found = self._blobs.get(sha256)
        return found.data if found else None

    def drop_blobs(self, names: Collection[str]) -> None:
        """Forget bytes that were stored on another way."""
        with self._guard:
            for name in self._blobs.keys() & names:
                self._bytes -= len(self._blobs.pop(name).data)

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

    @contextmanager
    def lend_places(self, places: Collection[tuple[str, str]]) -> Generator[list[ShownSighting] | None]:
        """Give what waits of some paths of sessions to a transaction that writes of them; None where `lend` would."""
        with self._guard:
            is_free = not any(place in batch for batch in (self._writing, *self._lent) for place in places)
            is_free = is_free and not any(
                name in self._blobs for place in places for name in self._waiting.get(place, ())
            )
            taken = {place: self._waiting.pop(place) for place in places if is_free and place in self._waiting}
            self._count -= len(_rows(taken))
            self._lent.append(taken)
        try:
            yield _rows(taken) if is_free else None
        except BaseException:
            with self._guard:
                for one in _rows(taken):
                    self._count += _put(self._waiting, *one)
            raise
        finally:
            with self._guard:
                self._lent = [batch for batch in self._lent if batch is not taken]

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
        self._lent: list[_Batch] = []
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
