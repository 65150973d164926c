"""The file that a step replaces or removes, watched from its read, else from the staging of the step.

Rules:
1. Facts and lease are looked at immediately before the file is displaced, so that nothing is shown that is refused.
2. They are looked at first thing afterwards. Bytes are only compared where no lease vouches for them.
3. They are looked at once more when everything is durable: a program that had found the file before it was displaced
   waits by then. After that look no program can reach the displaced file.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from surehold.disk.base import Target
from surehold.disk.errno_errors import displaced_error, not_a_file_error, translate_vanished, vanished_error
from surehold.disk.kernel import close_after
from surehold.disk.steps.staging import (
    DirectorySlot,
    DisplacedFile,
    StepContext,
    check_displaced,
    hash_entry,
    hash_open_file,
)
from surehold.disk.tree import READ_FLAGS, is_regular, open_entry, open_own
from surehold.disk.watch import FileWatch, file_facts, lasting_facts, watch_file
from surehold.errors import SureholdError
from surehold.text.lines import sha256_hex


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
            check_displaced(self._look_at_watched(old), self.expected, self.place.key)
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

    def _look_at_watched(self, old: bytes | None) -> DisplacedFile:
        """Look at what was opened: opening it once more may change its facts."""
        if self.watch.fd < 0:
            return self._look_at(self.place.name, old)
        return hash_open_file(self.watch.fd, awaited=(old, self.expected))

    def _look_at(self, name: str, old: bytes | None) -> DisplacedFile:
        return hash_entry(self.place, name, awaited=(old, self.expected))


def watch_entry(
    call: StepContext, target: Target, expected: str, watch: FileWatch | None, *, old: bytes | None = None
) -> WatchedEntry:
    """Return the file at a target, with the watch that its reader began or a new one; refuse other bytes."""
    with translate_vanished(target.key, expected):
        place = call.directories.find_slot(target)
        status = place.read_status()
        if status is None:
            raise vanished_error(target.key, expected)
        if not is_regular(status):
            raise not_a_file_error(status.st_mode, target.key)
        is_own, watch = watch is None, watch or watch_file(call.kernel, partial(open_own, place.fd, place.name))
    entry = WatchedEntry(call=call, place=place, watch=watch, expected=expected, is_own=is_own)
    try:
        entry.check_bytes(old)
    except BaseException:
        entry.close()
        raise
    return entry
