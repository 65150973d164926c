"""The steps of a call, each of them atomic: before it the old state is at the path, after it the new one.

Rules:
1. `stage` prepares and shows nothing. `publish` is one system call that changes what is at the path, then a look at
   what it displaced; other bytes than expected make it raise.
2. `undo` may be called at any time after a failure. It looks at the directory, not at what was meant to happen, so it
   is right wherever the failure struck.
3. A version that an outside program wrote is never dropped: the newest stays at the path, an older one goes to `keep`.
4. `settle` comes after everything is durable and only drops what was displaced.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from surehold.disk.base import Create, Remove, Target
from surehold.disk.content import write_all
from surehold.disk.facts import restore_facts
from surehold.disk.failures import displaced, no_parent, not_a_file, taken, vanished
from surehold.disk.kernel import Unsupported
from surehold.disk.places import Place
from surehold.disk.staging import Call, Seen, identity, look, open_temporary
from surehold.errors import StaleFile

_MAX_NAMELESS = 64  # each holds a descriptor open until it is published


class Action(Protocol):
    """A step on its way to the disk."""

    @property
    def key(self) -> str:
        """The path it is about."""
        ...

    def stage(self) -> None:
        """Prepare it, invisibly."""
        ...

    def publish(self) -> None:
        """Make it visible."""
        ...

    def undo(self) -> None:
        """Bring the old state back, however far it got, and remove what was staged."""
        ...

    def settle(self) -> None:
        """Drop what was displaced."""
        ...


@dataclass(slots=True, kw_only=True)
class Creation:
    """Puts a new file where nothing is."""

    call: Call
    index: int
    target: Target
    fill: Callable[[int], str]
    """Writes bytes and facts into a descriptor and returns the sha256 of the bytes."""
    parents: bool = True
    """Missing directories are made."""
    _place: Place | None = None
    _fd: int = -1
    """The nameless file, while it has no name."""
    _temp: str = ""
    _identity: tuple[int, int] = (0, 0)
    _sha256: str = ""
    _begun: bool = False

    @property
    def key(self) -> str:
        """Name the path it is about."""
        return self.target.key

    def stage(self) -> None:
        """Prepare it, invisibly."""
        place = self._place = self._find_place()
        status = place.status()
        if status is not None:
            raise taken(status.st_mode, self.key)
        try:
            if self.index >= _MAX_NAMELESS:
                raise Unsupported  # noqa: TRY301  # the fallback is the same, whoever asks for it
            fd = self._fd = self.call.kernel.open_nameless(place.fd, 0o666)
        except Unsupported:
            temp = self.call.temp_name(self.index, "tmp")
            fd = open_temporary(place, temp, 0o666)
            self._temp = temp
        try:
            self._sha256 = self.fill(fd)
            self._identity = identity(os.fstat(fd))
            self.call.sync_file(fd)
        finally:
            if self._temp:
                os.close(fd)

    def publish(self) -> None:
        """Make it visible."""
        place = _staged(self._place)
        self._begun = True
        try:
            if self._temp:
                self.call.move_new(place, self._temp, place, place.name)
            else:
                self.call.kernel.name(self._fd, place.fd, place.name)
        except FileExistsError as error:
            status = place.status()
            raise taken(status.st_mode if status else stat.S_IFREG, self.key) from error
        place.directory.dirty = True
        self._close()

    def undo(self) -> None:
        """Bring the old state back, however far it got."""
        self._close()
        if self._place is None:
            return
        if self._temp:
            self.call.drop(self._place, self._temp, None)
        status = self._place.status() if self._begun else None
        if status is not None and identity(status) == self._identity:
            remove_ours(self.call, self.index, self._place, self._sha256)

    def settle(self) -> None:
        """Nothing was displaced."""

    def _find_place(self) -> Place:
        if self.parents:
            return self.call.directories.new_place(self.target)
        try:
            return self.call.directories.place(self.target)
        except FileNotFoundError as error:
            raise no_parent(self.key) from error

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def creation(call: Call, index: int, step: Create) -> Creation:
    """Return the action for a step."""

    def fill(fd: int) -> str:
        sha256 = write_all(fd, (step.data,))
        if step.meta is not None:
            restore_facts(fd, step.meta, mode=step.mode)
        elif step.mode is not None:
            os.fchmod(fd, step.mode)
        return sha256

    return Creation(call=call, index=index, target=step.target, fill=fill, parents=step.parents)


@dataclass(slots=True, kw_only=True)
class Removal:
    """Takes a file away, first under another name, for good when everything else is through."""

    call: Call
    index: int
    target: Target
    expected: str
    _place: Place | None = None
    _seen: Seen | None = None

    @property
    def key(self) -> str:
        """Name the path it is about."""
        return self.target.key

    def stage(self) -> None:
        """Prepare it, invisibly."""
        self.at(existing(self.call, self.target, self.expected))

    def at(self, place: Place) -> None:
        """Stage it at a place that is open already."""
        self._place = place

    def publish(self) -> None:
        """Make it visible."""
        place, old = _staged(self._place), self._old
        try:
            try:
                self.call.kernel.rename_new(place.fd, place.name, place.fd, old)
            except Unsupported:
                # Nobody else uses this name, so there is nothing it could destroy.
                os.rename(place.name, old, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        except FileNotFoundError as error:
            raise vanished(self.key, self.expected) from error
        place.directory.dirty = True
        self._seen = look(place, old)
        check(self._seen, self.expected, self.key)

    def undo(self) -> None:
        """Bring the old state back, however far it got."""
        if self._place is None or self._place.status(self._old) is None:
            return
        put_back(self.call, self._place, self._old, self._place)

    def settle(self) -> None:
        """Drop what was displaced."""
        self.call.drop(_staged(self._place), self._old, self._seen)

    @property
    def _old(self) -> str:
        return self.call.temp_name(self.index, "old")


def removal(call: Call, index: int, step: Remove) -> Removal:
    """Return the action for a step."""
    return Removal(call=call, index=index, target=step.target, expected=step.expected)


def existing(call: Call, target: Target, expected: str) -> Place:
    """Return the place of a regular file that must be there."""
    try:
        place = call.directories.place(target)
        status = place.status()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise vanished(target.key, expected) from error
    if status is None:
        raise vanished(target.key, expected)
    if not stat.S_ISREG(status.st_mode):
        raise not_a_file(status.st_mode, target.key)
    return place


def check(seen: Seen, expected: str, key: str) -> None:
    """Raise unless the bytes are the expected ones."""
    if seen.sha256 is None:
        raise not_a_file(seen.status.st_mode, key)
    if seen.sha256 != expected:
        raise displaced(key, expected, seen.sha256)


def put_back(call: Call, source: Place, name: str, place: Place) -> None:
    """Move displaced bytes to their path again; if a newer file is there by now, it stays and they are kept."""
    try:
        call.move_new(source, name, place, place.name)
    except FileExistsError:
        there, displaced_file = place.status(), source.status(name)
        if there is None or displaced_file is None or identity(there) != identity(displaced_file):
            call.keep_file(source, name)
        call.drop(source, name, None)


def remove_ours(call: Call, index: int, place: Place, sha256: str) -> None:
    """Remove a file that this call made, unless somebody wrote into it since."""
    target = Target(root="", parts=(place.name,), key=place.key)
    ours = Removal(call=call, index=index, target=target, expected=sha256)
    ours.at(place)
    try:
        ours.publish()
    except StaleFile:
        ours.undo()
    except OSError:
        ours.undo()
        raise
    else:
        ours.settle()


def _staged(place: Place | None) -> Place:
    assert place is not None, "a step is staged before it is published"
    return place
