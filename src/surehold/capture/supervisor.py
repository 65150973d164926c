"""Hears of the calls of a process tree, has the earlier state kept, and lets each call go on.

Rules:
1. A call goes on only after what it changes was kept, or after it was named as not kept. Where other commands run, it has
   the turn of its paths from before that until it has happened.
2. A call outside of the roots goes on at once, unless the file there has other names, which may be in the tree.
   Nothing is prepared before the first call inside of them.
3. A full disk is told to the command as such: its call fails, and nothing is lost.
"""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, Protocol

from surehold.capture.calls import CALLS, NO_FOLLOW, CallRefused, CallShape, tables_of, why_unkept
from surehold.capture.dumps import DumpWatch
from surehold.capture.notices import AT_EMPTY_PATH, BEGINS_BELOW, CallerMemory, CallNotice, Listener, Unreadable
from surehold.capture.places import AT_FDCWD, PathFinder, Place, gives_rights, goes_away, is_same_entry, read_link
from surehold.capture.turns import UNTOLD, CallWatch

if TYPE_CHECKING:
    from surehold.capture.kept.keeper import Keeper
    from surehold.capture.own_history import OwnHistory

_RENAME_NOREPLACE, _RENAME_EXCHANGE, _SYMLINK_FOLLOW = 1, 2, 0x400
_UNREADABLE = "the path of a call could not be read"


class DeletionGuard(Protocol):
    """Decides about calls that remove much, or that change what is protected."""

    def allows_change(self, path: bytes, keeper: "Keeper") -> bool:
        """Tell whether a path may change; this may take as long as a person needs to answer."""
        ...

    def allows_removal(self, path: bytes, keeper: "Keeper") -> bool:
        """Tell whether what a path leads to may go away."""
        ...


class Supervisor:
    """Answers the calls of one process tree."""

    def __init__(
        self,
        listener: Listener,
        covers: Callable[[bytes], bool],
        open_keeper: "Callable[[], Keeper]",
        guard: DeletionGuard | None = None,
        finder: PathFinder | None = None,
    ) -> None:
        self._listener, self._covers, self._open_keeper, self._guard = listener, covers, open_keeper, guard
        self._memory = CallerMemory()
        self._finder = finder or PathFinder()
        self._keeper: Keeper | None = None
        self._notes: list[tuple[bytes, str]] = []
        self.history: OwnHistory | None = None
        self.dumps = DumpWatch(lambda: self.keeper)
        self._seen_processes = set[int]()
        self._mounts = read_link(b"/proc/self/ns/mnt")
        actions: dict[str, Callable[[CallNotice, CallShape], None]] = {
            "open": self._on_open,
            "truncate": self._on_truncate,
            "remove": self._on_remove,
            "rename": self._on_rename,
            "link": self._on_link,
            "make": self._on_make,
            "facts": self._on_facts,
            "bind": self._on_bind,
            "execute": self._on_execute,
            "leave": self._on_leave,
            "limit": self._on_limit,
            "unkept": self._on_unkept,
        }
        self._actions = {
            (table.arch, number): (actions[CALLS[name].action], CALLS[name])
            for table in tables_of(os.uname().machine)
            for name, number in table.numbers.items()
            if name in CALLS
        }

    @property
    def notes(self) -> list[tuple[bytes, str]]:
        """What makes the run incomplete, although nothing was kept yet."""
        return self._notes

    @property
    def keeper(self) -> "Keeper":
        """The keeper; it is made when it is first needed."""
        if self._keeper is None:
            self._keeper = self._open_keeper()
            if self.history:
                self.history.add_stash(os.fsencode(self._keeper.stash.files))
            for path, why in self._notes:
                self._keeper.add_note(path, why)
        return self._keeper

    @property
    def has_keeper(self) -> bool:
        return self._keeper is not None

    def answer_next(self) -> None:
        """Take one call, keep what it changes, and let it go on."""
        notice = self._listener.receive()
        if notice is None:
            return
        if code := self._keep_for(notice):
            self._listener.refuse(notice, code)
            self.end_turns()
            return
        turns = self._keeper.turns if self._keeper is not None else None
        watch = turns.watch(notice) if turns is not None and turns.has_any else None
        self._listener.let_pass(notice)
        if turns is not None and turns.has_any:
            self.end_turns(watch)

    def end_turns(self, watch: CallWatch | None = None) -> None:
        """Let other commands change the paths that are held, once the call has happened."""
        if self._keeper is not None and self._keeper.turns is not None:
            for path in self._keeper.turns.release(watch):
                self._keeper.add_note(path, UNTOLD)

    def _keep_for(self, notice: CallNotice) -> int:
        """Keep what a call changes; return the error that it is to fail with, or 0."""
        try:
            if notice.pid not in self._seen_processes:
                self._look_at_process(notice.pid)
            known = self._actions.get((notice.arch, notice.number))
            if known is None:
                self.note(b"", "a program of another architecture took part")
            else:
                act, shape = known
                act(notice, shape)
        except Unreadable:
            if self._listener.still_waits(notice):
                self.note(b"", _UNREADABLE)
        except CallRefused as refused:
            return refused.code
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                return error.errno or 0
            self.note(b"", f"a call could not be followed ({error.strerror})")
        return 0

    def note(self, path: bytes, why: str) -> None:
        """Remember that the run is incomplete."""
        if self._keeper is not None:
            self._keeper.add_note(path, why)
        elif (path, why) not in self._notes:
            self._notes.append((path, why))

    def keep_descriptor(self, pid: int, fd: int) -> None:
        """Keep the file that a process has open for writing from the beginning."""
        try:
            path = self._finder.descriptor_path(pid, fd)
        except Unreadable:
            path = self.note(b"", _UNREADABLE)
        if path is not None and self._covers(path):
            self.keeper.keep_written(path)
        elif path is not None:
            self._reach_outside(path, written=True)

    # Where a call goes.

    def _look_at_process(self, pid: int) -> None:
        """Notice, at the first call of a process, whether it sees other names than we do."""
        self._seen_processes.add(pid)
        if not self._finder.sees_other_names and read_link(b"/proc/%d/root" % pid) not in {b"/", b""}:
            self._finder.sees_other_names = True
        mounts = read_link(b"/proc/%d/ns/mnt" % pid)
        if mounts and mounts != self._mounts:
            self._finder.sees_other_names = True
            self.note(b"", "a process had mounts of its own")

    def _find_place(
        self,
        notice: CallNotice,
        path: int,
        at: int,
        *,
        follow: bool,
        effect: Literal["", "facts", "content", "emptied", "removed", "moved"] = "",
        below: bool = False,
    ) -> Place | None:
        """Return the place that an argument names, if it is below a root; `effect` is what becomes of the file there."""
        raw = self._memory.read_path(notice.pid, notice.arguments[path])
        where = notice.signed(at) if at >= 0 else AT_FDCWD
        find = self._finder.find_below if below else self._finder.find
        place = find(notice.pid, where, raw, follow=follow)
        if not self._listener.still_waits(notice):
            raise Unreadable
        if place is not None and effect in {"emptied", "removed", "moved"}:
            self._check_history(notice.pid, place.path, moves=effect == "moved")
        if place is None or self._covers(place.path):
            return place
        if effect in {"facts", "content", "emptied"}:
            self._reach_outside(place.path, written=effect != "facts")
        return None

    def _check_history(self, pid: int, path: bytes, *, moves: bool) -> None:
        code = self.history.refusal_for(pid, path, moves=moves) if self.history else 0
        if code:
            raise CallRefused(code)

    def _reach_outside(self, path: bytes, *, written: bool) -> bool:
        """Keep a file of the tree that a name outside of it leads to, or a link of /proc; tell whether it is one."""
        try:
            status = os.stat(path) if path.startswith(b"/proc/") else os.lstat(path)
        except OSError:
            return False
        is_known = self.has_keeper and self.keeper.is_known_file(status)
        if not stat.S_ISREG(status.st_mode) or (status.st_nlink < 2 and not is_known):  # noqa: PLR2004
            return False
        for name in self.keeper.keep_other_name(path, status, written=written):
            self._check_change(name)
        return self.keeper.is_known_file(status)

    def _flags_of(self, notice: CallNotice, shape: CallShape) -> int:
        if shape.how >= 0:
            return self._memory.read_open_flags(notice.pid, notice.arguments[shape.how])
        return shape.constant_flags | (notice.arguments[shape.flags] if shape.flags >= 0 else 0)

    # What the calls do.

    def _on_open(self, notice: CallNotice, shape: CallShape) -> None:
        flags = self._flags_of(notice, shape)
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_TRUNC)
        if not writes and not flags & os.O_CREAT:
            return
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            return  # it has no name yet
        follow = not flags & os.O_NOFOLLOW and flags & (os.O_CREAT | os.O_EXCL) != os.O_CREAT | os.O_EXCL
        effect, below = "content" if writes else "", bool(flags & BEGINS_BELOW)
        effect = "emptied" if flags & os.O_TRUNC else effect
        place = self._find_place(notice, shape.path, shape.at, follow=follow, effect=effect, below=below)
        if place is None:
            return
        path = place.path
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            if flags & os.O_CREAT:
                self._check_change(path)
                self.keeper.touch_directory(place.directory)
                self.keeper.keep_written(path)
            return
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISFIFO(status.st_mode):
            return
        if not writes or stat.S_ISFIFO(status.st_mode):  # what goes through a FIFO changes its time
            self.keeper.touch(path)
            return
        self._check_change(path)
        self.keeper.keep_written(path)

    def _on_truncate(self, notice: CallNotice, shape: CallShape) -> None:
        if place := self._find_place(notice, shape.path, shape.at, follow=True, effect="emptied"):
            self._check_change(place.path)
            self.keeper.keep_written(place.path)

    def _on_remove(self, notice: CallNotice, shape: CallShape) -> None:
        if (place := self._find_place(notice, shape.path, shape.at, follow=False, effect="removed")) is None:
            return
        path, keeper = place.path, self.keeper
        if self._guard is not None and goes_away(path, self._flags_of(notice, shape)):
            self._check_removal(path)
        keeper.touch_directory(place.directory)
        keeper.keep_removed(path)

    def _on_rename(self, notice: CallNotice, shape: CallShape) -> None:
        source = self._find_place(notice, shape.path, shape.at, follow=False, effect="moved")
        to = self._find_place(notice, shape.to_path, shape.to_at, follow=False, effect="moved")
        for place in (source, to):
            if place is not None:
                self._check_change(place.path)
        flags = self._flags_of(notice, shape)
        if source is not None:
            self.keeper.touch_directory(source.directory)
            self.keeper.keep_renamed(source.path, leaves=to is None)
        elif to is not None:
            self.keeper.has_strangers = True
        if to is not None and flags & _RENAME_EXCHANGE:
            self.keeper.touch_directory(to.directory)
            self.keeper.keep_renamed(to.path, leaves=source is None)
        elif to is not None:
            self.keeper.touch_directory(to.directory)
            if source is None or not is_same_entry(source.path, to.path):
                if source is not None and not flags & _RENAME_NOREPLACE and os.path.lexists(to.path):
                    self._check_removal(source.path)  # one path is left of two; what is new there is a change
                self.keeper.keep_removed(to.path, for_path=source.path if source else b"")

    def _on_link(self, notice: CallNotice, shape: CallShape) -> None:
        """Remember how many names a file had, too: from now on it has one more."""
        path = self._find_source(notice, shape, self._flags_of(notice, shape))
        if path is None:
            self.keeper.has_strangers = True
        else:
            self._check_change(path)  # by the new name it could be changed unasked
            self.keeper.touch(path)
        if place := self._find_place(notice, shape.to_path, shape.to_at, follow=False):
            self._make(place)

    def _find_source(self, notice: CallNotice, shape: CallShape, flags: int) -> bytes | None:
        """Return the path of the file that gets another name, if it is one of the tree."""
        if flags & AT_EMPTY_PATH and not self._memory.read_path(notice.pid, notice.arguments[shape.path]):
            path = self._finder.descriptor_path(notice.pid, notice.signed(shape.at))
            return path if path is not None and self._covers(path) else None
        place = self._find_place(notice, shape.path, shape.at, follow=bool(flags & _SYMLINK_FOLLOW))
        return place.path if place else None

    def _on_make(self, notice: CallNotice, shape: CallShape) -> None:
        if place := self._find_place(notice, shape.path, shape.at, follow=False):
            self._make(place)

    def _make(self, place: Place) -> None:
        if self._guard is not None and not os.path.lexists(place.path):
            self._check_change(place.path)
        self.keeper.forget_places()
        self.keeper.touch_directory(place.directory)
        self.keeper.touch(place.path)

    def _on_facts(self, notice: CallNotice, shape: CallShape) -> None:
        flags = self._flags_of(notice, shape)
        if shape.by_descriptor or not notice.arguments[shape.path]:
            self._touch_descriptor(notice, notice.signed(shape.path if shape.by_descriptor else shape.at))
            return
        if flags & AT_EMPTY_PATH and not self._memory.read_path(notice.pid, notice.arguments[shape.path]):
            self._touch_descriptor(notice, notice.signed(shape.at))
            return
        follow = shape.follows and not flags & NO_FOLLOW
        if place := self._find_place(notice, shape.path, shape.at, follow=follow, effect="facts"):
            self._check_change(place.path)
            self.keeper.touch_facts(place.path)

    def _touch_descriptor(self, notice: CallNotice, fd: int) -> None:
        path = self._finder.descriptor_path(notice.pid, fd)
        if path is None:
            with suppress(OSError):
                status = os.stat(b"/proc/%d/fd/%d" % (notice.pid, fd))
                if status.st_nlink and self.has_keeper and self.keeper.is_known_file(status):
                    self.note(b"", "facts of a file were changed after its name was removed")
        elif self._covers(path):
            self._check_change(path)
            self.keeper.touch_facts(path)
        else:
            self._reach_outside(path, written=False)

    def _on_bind(self, notice: CallNotice, shape: CallShape) -> None:
        raw = self._memory.read_socket_name(notice.pid, notice.arguments[shape.path], notice.arguments[2])
        place = self._finder.find(notice.pid, AT_FDCWD, raw, follow=False) if raw else None
        if place is not None and self._covers(place.path):
            self._make(place)

    def _on_execute(self, notice: CallNotice, shape: CallShape) -> None:
        raw = self._memory.read_path(notice.pid, notice.arguments[shape.path])
        at = notice.signed(shape.at) if shape.at >= 0 else AT_FDCWD
        with suppress(OSError):
            path = self._finder.program_path(notice.pid, at, raw)
            if gives_rights(os.stat(path), notice.pid):
                self.note(b"", f"a set-uid program took part: {os.fsdecode(raw or os.readlink(path))}")

    def _on_leave(self, _: CallNotice, shape: CallShape) -> None:
        self._finder.sees_other_names = True
        self._seen_processes.clear()
        if shape.why:
            self.note(b"", shape.why)

    def _on_limit(self, notice: CallNotice, shape: CallShape) -> None:
        pointer = notice.arguments[shape.how]
        if pointer and any(self._memory.read_bytes(notice.pid, pointer, 8)):
            self.dumps.begin()

    def _on_unkept(self, notice: CallNotice, shape: CallShape) -> None:
        if shape.path == 1:  # a descriptor comes first: what is outside of the roots does not matter
            path = self._finder.descriptor_path(notice.pid, notice.signed(0))
            if path is None or not (self._covers(path) or self._reach_outside(path, written=False)):
                return
            self.note(path, why_unkept(shape, notice.arguments[1]))
            return
        self.note(b"", shape.why)

    def _check_change(self, path: bytes) -> None:
        if self._guard is not None and not self._guard.allows_change(path, self.keeper):
            raise CallRefused(errno.EPERM)

    def _check_removal(self, path: bytes) -> None:
        if self._guard is not None and not self._guard.allows_removal(path, self.keeper):
            raise CallRefused(errno.EPERM)
