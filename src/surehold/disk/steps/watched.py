"""Watches files from the read to the end of their change, so that nothing that another program writes is lost.

Rules of a watch:
1. A shared watch holds a read lease: a program that opens the file for writing waits until the watch ends, and we see
   that it waits. Until then the bytes cannot change.
2. An exclusive watch holds a write lease: no other program has the file open, and none can open it. Such a file is
   written in place.
3. Without a lease (another owner, a file system that has none, too many files at once) the facts of the file are
   compared: identity, size and times.
4. A file that another program has open for writing gets no lease. It keeps its inode: it is written in place, since
   what that program writes next would be lost with the old inode.
5. When a program waits, or the facts differ, the change is not made, and the caller reads the file again.
6. Bytes that were read under a lease are known as long as the facts stay the same and no program has the file open for
   writing: every write changes the ctime, which no program can set, and a mapping counts as an open file. What was changed
   a moment before may be changed once more in the same tick of the clock, and is not known.

Rules of a step that replaces or removes a watched file:
7. Facts and lease are looked at immediately before the file is displaced, so that nothing is shown that is refused.
8. They are looked at first thing afterwards. Bytes are only compared where no lease vouches for them.
9. They are looked at once more when everything is durable: a program that had found the file before it was displaced
   waits by then. After that look no program can reach the displaced file.
"""

import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from surehold.disk.base import Target
from surehold.disk.errno_errors import displaced_error, not_a_file_error, vanished_error
from surehold.disk.kernel import Kernel, Lease, close_after
from surehold.disk.steps.staging import (
    DirectorySlot,
    DisplacedFile,
    StepContext,
    check_displaced,
    hash_entry,
    hash_open_file,
)
from surehold.disk.tree import READ_FLAGS, WRITE_FLAGS, is_regular, is_unchanged, open_entry, open_own, read_pieces
from surehold.errors import SureholdError
from surehold.text.snapshot import sha256_hex

_MAX_WATCHED_FILES = 64  # each watch keeps a descriptor open
_WRITER_WAIT_SECONDS = 0.03
"""How long a program that has the file open is waited for: most write at once and close."""
LATE_WRITER_WAIT_SECONDS = 1.0
_LEASE_WAIT_SECONDS = 5.0
_POLL_SECONDS = 0.0003
SETTLED_SECONDS = 2.0
"""Longer than a tick of the clock of any file system."""

_FileKey = tuple[str, tuple[str, ...]]
OpenWith = Callable[[int], int]
"""Opens the file with the given flags."""
LeaveWork = Callable[[Callable[[], None]], None]
"""Has something done soon, while the caller goes on."""


def file_facts(status: os.stat_result) -> tuple[int, ...]:
    return (*lasting_facts(status), status.st_ctime_ns)


def lasting_facts(status: os.stat_result) -> tuple[int, ...]:
    """Return the facts that a rename leaves as they are; it sets the ctime."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@dataclass(slots=True, kw_only=True)
class FileWatch:
    """One file that is about to be changed."""

    kernel: Kernel
    fd: int
    lease: Lease
    exclusive: bool
    """It is open for writing, and leased so that no one else can open it."""
    in_place: bool
    """The new bytes go into the same inode."""
    status: os.stat_result
    data: bytes | None = None
    """What was read through it."""

    @property
    def is_leased(self) -> bool:
        return self.lease == "held"

    @property
    def is_open_elsewhere(self) -> bool:
        """Whether another program has the file open for writing."""
        return self.lease == "busy"

    def was_disturbed(self) -> bool:
        """Tell whether a program waits to write into the file, or the lease was taken away because that took too long."""
        return self.lease == "held" and not self.kernel.holds_lease(self.fd, exclusive=self.exclusive)

    def let_writers_finish(self) -> None:
        """Let those in who wait, and return when no one has the file open for writing any more, or after a while."""
        self.kernel.drop_lease(self.fd)
        _wait_for_lease(self.kernel, self.fd, exclusive=False, seconds=LATE_WRITER_WAIT_SECONDS)

    def close(self, leave: LeaveWork | None = None) -> None:
        """Stop watching; the facts stay known. A file without a name is left to be closed: its blocks are freed then."""
        if self.fd >= 0:
            if leave is not None and not os.fstat(self.fd).st_nlink:
                self.kernel.drop_lease(self.fd)
                leave(partial(os.close, self.fd))
            else:
                os.close(self.fd)
            self.fd, self.exclusive = -1, False
            self.lease = "none" if self.is_leased else self.lease


@dataclass(slots=True, kw_only=True)
class LeasedFile:
    """A file that is read under a shared lease, which is given up as soon as a program waits for it."""

    kernel: Kernel
    fd: int
    status: os.stat_result
    unstable: SureholdError
    """What is raised if a program comes to write into the file while it is read."""
    is_leased: bool = True
    opened: float = field(default_factory=time.time)

    @property
    def facts(self) -> tuple[int, ...]:
        return file_facts(self.status)

    @property
    def is_settled(self) -> bool:
        return self.status.st_ctime_ns < (self.opened - SETTLED_SECONDS) * 1e9

    def is_steady(self) -> bool:
        if self.is_leased and not (
            self.kernel.holds_lease(self.fd, exclusive=False) and is_unchanged(self.status, os.fstat(self.fd))
        ):
            self.is_leased = False
            self.kernel.drop_lease(self.fd)
        return self.is_leased

    def read_from(self, offset: int) -> Iterator[bytes]:
        os.lseek(self.fd, offset, os.SEEK_SET)
        for piece in read_pieces(self.fd):
            yield piece
            if not self.is_steady():
                raise self.unstable


def open_patiently(open_with: OpenWith, flags: int) -> int:
    """Open a file; if another process holds a lease on it, wait until that has changed the file."""
    deadline = time.monotonic() + _LEASE_WAIT_SECONDS
    while True:
        try:
            return open_with(flags)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_SECONDS)


def watch_file(
    kernel: Kernel, open_with: OpenWith, *, in_place: bool = False, seconds: float = _WRITER_WAIT_SECONDS
) -> FileWatch:
    """Open a file and watch it: exclusively where possible if it is to be written in place.

    A program that has it open for writing is waited for, at most so many seconds.
    """
    if in_place and (watch := _watch_exclusively(kernel, open_with)):
        return watch
    fd = open_patiently(open_with, READ_FLAGS)
    try:
        lease = _wait_for_lease(kernel, fd, exclusive=False, seconds=seconds)
        status = os.fstat(fd)
    except BaseException:
        os.close(fd)
        raise
    in_place = in_place or lease == "busy"
    return FileWatch(kernel=kernel, fd=fd, lease=lease, exclusive=False, in_place=in_place, status=status)


def _watch_exclusively(kernel: Kernel, open_with: OpenWith) -> FileWatch | None:
    try:
        fd = open_with(WRITE_FLAGS)
    except (PermissionError, BlockingIOError):
        return None
    try:
        if _wait_for_lease(kernel, fd, exclusive=True, seconds=_WRITER_WAIT_SECONDS) == "held":
            status = os.fstat(fd)
            return FileWatch(kernel=kernel, fd=fd, lease="held", exclusive=True, in_place=True, status=status)
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None


def _wait_for_lease(kernel: Kernel, fd: int, *, exclusive: bool, seconds: float) -> Lease:
    deadline = time.monotonic() + seconds
    while (lease := kernel.take_lease(fd, exclusive=exclusive)) == "busy" and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return lease


class WatchedFiles:
    """The watches of one disk. Whoever holds the lock of a file begins and ends its watch."""

    def __init__(self, kernel: Kernel, leave: LeaveWork | None = None) -> None:
        self._kernel, self._leave = kernel, leave
        self._watches: dict[_FileKey, FileWatch] = {}
        self._used: dict[_FileKey, FileWatch] = {}

    def begin(self, target: Target, open_with: OpenWith, *, in_place: bool) -> FileWatch:
        watch = watch_file(self._kernel, open_with, in_place=in_place)
        self.end([target])
        self._watches[target.root, target.parts] = watch
        return watch

    def find(self, target: Target) -> FileWatch | None:
        return self._watches.get((target.root, target.parts))

    def take(self, target: Target) -> FileWatch | None:
        """Return the watch for one change; afterwards the file is another one."""
        place = target.root, target.parts
        if watch := self._watches.pop(place, None):
            self._used[place] = watch
        return watch

    def close_used(self, targets: Sequence[Target]) -> None:
        for target in targets:
            if watch := self._used.get((target.root, target.parts)):
                watch.close(self._leave)

    def was_open_elsewhere(self, target: Target) -> bool:
        """Tell whether another program had the file open for writing when it was changed last under this lock."""
        watch = self._used.get((target.root, target.parts))
        return watch is not None and watch.is_open_elsewhere

    def spare_descriptors(self, watch: FileWatch) -> None:
        """Close a watch that is one too many; its facts stay."""
        if len(self._watches) > _MAX_WATCHED_FILES:
            watch.close()

    def end(self, targets: Sequence[Target]) -> None:
        for target in targets:
            for watches in (self._watches, self._used):
                if watch := watches.pop((target.root, target.parts), None):
                    watch.close()


@dataclass(slots=True, kw_only=True)
class WatchedEntry:
    """The entry of a directory that holds a watched file."""

    call: StepContext
    place: DirectorySlot
    watch: FileWatch
    expected: str
    """sha256 of the bytes that must be there."""
    is_own: bool
    """The step began the watch, and ends it."""

    def check_bytes(self, old: bytes | None) -> None:
        """Refuse when the file does not have the expected bytes; `old` are those bytes, if they are at hand."""
        data = self.watch.data
        if data is None:
            # What was opened is looked at: opening it once more may change its facts.
            seen = hash_open_file(self.watch.fd, awaited=(old, self.expected))
            check_displaced(seen, self.expected, self.place.key)
        elif data is not old and sha256_hex(data) != self.expected:
            raise displaced_error(self.place.key, self.expected, sha256_hex(data))

    def check_undisturbed(self) -> None:
        """Refuse when the path leads to another file than the one that was read, or a program waits to write to it."""
        status = self.place.read_status()
        if status is None:
            raise vanished_error(self.place.key, self.expected)
        if file_facts(status) != file_facts(self.watch.status) or self.watch.was_disturbed():
            raise self.disturbed_error()

    def note_link(self, status: os.stat_result | None) -> None:
        """Take over the facts of the file after we gave it a second name, which sets its ctime."""
        if status is not None and lasting_facts(status) == lasting_facts(self.watch.status):
            self.watch.status = status

    def is_displaced_as(self, name: str) -> bool:
        """Tell, by facts and lease alone, whether what has this name now is the file that was read."""
        status = self.place.read_status(name)
        same = status is not None and lasting_facts(status) == lasting_facts(self.watch.status)
        return same and not self.watch.was_disturbed()

    def examine_displaced(self, name: str, old: bytes | None = None) -> DisplacedFile:
        """Return what the file is under its new name; its bytes are read where no lease kept writers away."""
        if self.watch.is_leased:
            return DisplacedFile(sha256=self.expected, status=self.watch.status)
        return self._look_at(name, old)

    def check_settled(self) -> None:
        """Refuse when a program waits to write to the displaced file."""
        if self.watch.was_disturbed():
            raise self.disturbed_error()

    def drop_displaced(self, name: str, seen: DisplacedFile | None) -> None:
        """Remove the displaced file; what was written to it in the last moment is kept."""
        if self.watch.was_disturbed():
            self.watch.let_writers_finish()
        self.call.drop_file(self.place, name, seen)

    def disturbed_error(self, name: str = "") -> SureholdError:
        """Return the refusal, with what is at the path now, or under another name."""
        try:
            found = self._look_at(name or self.place.name, None)
        except OSError:  # gone, or kept from us by a lease
            return displaced_error(self.place.key, self.expected, None)
        if found.sha256 is None:
            return not_a_file_error(found.status.st_mode, self.place.key)
        return displaced_error(self.place.key, self.expected, found.sha256)

    @contextmanager
    def open_original(self) -> Generator[int]:
        """Lend a descriptor of the file, for its metadata."""
        if self.watch.fd >= 0:
            yield self.watch.fd
        else:
            with close_after(open_entry(self.place.fd, self.place.name, READ_FLAGS)) as fd:
                yield fd

    def close(self) -> None:
        if self.is_own:
            self.watch.close()

    def _look_at(self, name: str, old: bytes | None) -> DisplacedFile:
        return hash_entry(self.place, name, awaited=(old, self.expected))


def watch_entry(
    call: StepContext, target: Target, expected: str, watch: FileWatch | None, *, old: bytes | None = None
) -> WatchedEntry:
    """Return the file at a target, with the watch that its reader began or a new one; refuse other bytes."""
    is_own = watch is None
    try:
        place = call.directories.find_slot(target)
        status = place.read_status()
        if status is None:
            raise vanished_error(target.key, expected)
        if not is_regular(status):
            raise not_a_file_error(status.st_mode, target.key)
        watch = watch or watch_file(call.kernel, partial(open_own, place.fd, place.name))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise vanished_error(target.key, expected) from error
    entry = WatchedEntry(call=call, place=place, watch=watch, expected=expected, is_own=is_own)
    try:
        entry.check_bytes(old)
    except BaseException:
        entry.close()
        raise
    return entry
