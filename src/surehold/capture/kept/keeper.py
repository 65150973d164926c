"""Keeps what the entries below the roots were, before a command changes them.

Rules:
1. A path is looked at once, at the first call that touches it; what is found is what it was when the command began.
2. Content is kept once for each file, not for each name: the names of a hard-linked file share it.
3. Below a directory that the command made, or put where another one was, nothing was there before.
4. A directory is looked through before it gets another name: its entries keep the paths that they had.
5. A hard link in the stash is the file itself, so it becomes a copy before that file is written under another name.
6. A file outside of the roots, or from there, that has several names may be one of the tree: it is kept like any other.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from surehold.capture.calls import CallRefused
from surehold.capture.kept.covered import CoveredPaths
from surehold.capture.kept.occupants import FileBytes, Occupant
from surehold.capture.kept.stash import (
    SMALL_BYTES,
    Attributes,
    EntryFacts,
    JournalRecord,
    KeptContent,
    Stash,
    facts_of,
    read_whole,
)
from surehold.capture.kept.walk import DirectoryWalk
from surehold.disk.entries import Holes, find_holes, read_attributes
from surehold.disk.tree import open_own

if TYPE_CHECKING:
    import re

    from surehold.capture.turns import PathTurns

_TREE_BUDGET_BYTES = 1 << 30
_DUMP_TIME = "a core dump was written into it; when it had changed before is not known"
UNLISTED = "it could not be listed ({}), so what happens below it is not known"
_FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Keeper:
    """What is known of the entries below the roots as they were."""

    def __init__(self, stash: Stash, covered: CoveredPaths) -> None:
        self.stash, self.roots, self.covers, self._prefixes = stash, covered.roots, covered.covers, covered.prefixes
        self.occupants: dict[bytes, Occupant | None] = {}  # what each path was; None where nothing was
        self.files: dict[tuple[int, int], FileBytes] = {}
        self.notes: dict[tuple[bytes, str], None] = {}  # what was not kept, and why; no path for all of the run
        self.renamed = set[bytes]()  # the paths of entries that got another one
        self.dump_name: re.Pattern[bytes] | None = None  # of core dumps, once those that were there are known
        self.before_change: Callable[[bytes, bytes], None] | None = None  # told of a path, and of what takes its place
        self.turns: PathTurns | None = None  # with other commands, where there are any
        self.has_strangers = False  # something that was outside of the roots may have names below them by now
        self._listed = set[bytes]()  # directories of which every entry is known: what else is there is new
        self._original: dict[bytes, bool] = {}
        self._looked: tuple[bytes, os.stat_result] | None = None  # the path that `touch` looked at last, what it saw
        self._linked: dict[tuple[int, int], list[bytes]] | None = None  # the names of files that have more than one

    def add_note(self, path: bytes, why: str) -> None:
        """Remember that something could not be kept."""
        if (path, why) not in self.notes:
            self.notes[path, why] = None
            with suppress(OSError):
                self.stash.write_record(b"N", path, _NOTHING, {"why": why})

    # What the calls of the command do.
    def touch(self, path: bytes) -> Occupant | None:
        """Remember what a path is, before the first call that changes it."""
        try:
            return self.occupants[path]
        except KeyError:
            occupant = self._look_first(path)
            self.stash.flush()
            return occupant

    def _look_first(self, path: bytes) -> Occupant | None:
        """Look at a path that no call has touched; what is found waits to be written with more, or by `flush`."""
        directory = path.rpartition(b"/")[0] or b"/"
        is_there = self._is_original(directory) and directory not in self._listed
        is_new = path not in self.roots and (self._is_new_dump(path) or not is_there)
        try:
            status = None if is_new else os.lstat(path)
        except FileNotFoundError:
            status = None
        except OSError as error:
            self.add_note(path, f"it could not be looked at ({os.strerror(error.errno or 0)})")
            return None
        if status is None:
            self.stash.add_record(b"A", path, _NOTHING)
            self.occupants[path] = None
            return None
        self._looked = path, status
        return self._occupy(path, facts_of(status))

    def _look(self, path: bytes) -> os.stat_result:
        """Return what a path is, right after it was touched: it need not be looked at again then."""
        looked, self._looked = self._looked, None
        return looked[1] if looked and looked[0] == path else os.lstat(path)

    def touch_directory(self, path: bytes) -> None:
        """Remember the times of a directory whose entries are about to change."""
        if path not in self.occupants and self.covers(path):
            self.touch(path)

    def touch_facts(self, path: bytes) -> None:
        """Remember what a path is, before its mode, its times or its attributes change."""
        self.touch(path)
        with suppress(OSError):
            if file := self._meet_stranger(os.lstat(path)):  # what is there now, which may have come from elsewhere
                file.has_set_times = True

    def keep_written(self, path: bytes) -> None:
        """Keep the content of a file that is about to be opened for writing."""
        if self.before_change:
            self.before_change(path, b"")
        self._looked = None
        if path not in self.occupants:
            self._look_first(path)
        self._keep_before_write(path)
        self.stash.flush()

    def keep_other_name(self, path: bytes, status: os.stat_result, *, written: bool) -> Sequence[bytes]:
        """Keep a file of the tree that is about to change under a name outside of it; return its names in the tree."""
        names = () if self.is_known_file(status) else self._names_in_tree((status.st_dev, status.st_ino))
        for name in names:
            self.touch(name)
        if written:
            self._looked = None
            self._keep_before_write(path, status)
        return names

    def _keep_before_write(self, path: bytes, status: os.stat_result | None = None) -> None:
        try:
            status = status or self._look(path)
        except OSError:
            return
        if not stat.S_ISREG(status.st_mode) or (file := self._meet_stranger(status)) is None:
            return  # the command made it
        if file.content is None:
            self._keep_content(path, file, goes_away=False)
        elif file.content.is_link:
            with _NamedFailures(self, path, file):
                self.stash.break_link(file.content, file.facts)

    def keep_removed(self, path: bytes, *, for_path: bytes = b"") -> Occupant | None:
        """Keep an entry that is about to lose its name, perhaps to what has another path now."""
        if self.before_change:
            self.before_change(path, for_path)
        self._looked = None
        occupant = self.occupants[path] if path in self.occupants else self._look_first(path)
        try:
            status = self._look(path)
        except OSError:
            self.stash.flush()
            return occupant
        file = self.files.get((status.st_dev, status.st_ino)) if stat.S_ISREG(status.st_mode) else None
        if file is not None and file.content is None:
            self._keep_content(path, file, goes_away=True)
        self.stash.flush()
        if stat.S_ISDIR(status.st_mode):
            self._original.clear()
        return occupant

    def keep_renamed(self, path: bytes, *, leaves: bool) -> None:
        """Remember an entry that gets another name; if that is outside of the roots, keep its content too."""
        self._original.clear()
        occupant = self.touch(path)
        try:
            status = os.lstat(path)
        except OSError:
            return
        if stat.S_ISREG(status.st_mode) and (file := self.files.get((status.st_dev, status.st_ino))):
            if leaves and file.content is None:
                self._keep_content(path, file, goes_away=True)
            self._mark_renamed(path, file)
        if not occupant or occupant.facts.identity != (status.st_dev, status.st_ino):
            return
        self._add_renamed(path, occupant)
        if stat.S_ISDIR(status.st_mode):
            found = [path]
            for below in self.list_below(path):
                self._keep_moved(below, leaves=leaves)
                found.append(below)
            self._listed.update(found)
            self._original.clear()  # what was found there is about to be elsewhere

    def _keep_moved(self, path: bytes, *, leaves: bool) -> None:
        """Remember an entry whose directory gets another name."""
        if leaves:
            self.keep_removed(path)
            return
        if occupant := self.touch(path):
            self._add_renamed(path, occupant)
        with suppress(OSError):
            status = os.lstat(path)
            file = self.files.get((status.st_dev, status.st_ino)) if stat.S_ISREG(status.st_mode) else None
            if file is not None:
                self._mark_renamed(path, file)

    def _add_renamed(self, path: bytes, occupant: Occupant) -> None:
        if path not in self.renamed and occupant.facts.is_directory:
            self.stash.write_record(b"M", path, occupant.facts)
        self.renamed.add(path)

    def _mark_renamed(self, path: bytes, file: FileBytes) -> None:
        if not file.was_renamed:
            file.was_renamed = True
            self.stash.write_record(b"M", path, file.facts)

    def forget_places(self) -> None:
        """Look again where directories are, since one is about to appear or to go."""
        self._original.clear()

    def is_known_file(self, status: os.stat_result) -> bool:
        """Tell whether a file was there before, under any name that a call has touched."""
        return (status.st_dev, status.st_ino) in self.files

    # Where calls cannot be noticed.
    def keep_tree(self) -> None:
        """Keep everything below the roots, as far as that is affordable; the rest is named when it has changed."""
        budget, self.before_change = _TREE_BUDGET_BYTES, None
        for root in self.roots:
            self.touch(root)
            for path in self.list_below(root):
                occupant = self.touch(path) if self.covers(path) else None
                if occupant and occupant.facts.is_file and occupant.facts.size <= budget:
                    budget -= occupant.facts.size
                    self.keep_written(path)

    def find_new(self) -> None:
        """Look for entries that were not there before."""
        for root in self.roots:
            for path in self.list_below(root):
                if self.covers(path):
                    self.occupants.setdefault(path, None)

    def _names_in_tree(self, identity: tuple[int, int]) -> Sequence[bytes]:
        """Return the names of a hard-linked file; the tree is searched once, since calls that give names are noticed."""
        if self._linked is None:
            self._linked = {}
            for root in self.roots:
                for path in self.list_below(root):
                    with suppress(OSError):
                        status = os.lstat(path)
                        if status.st_nlink > 1 and stat.S_ISREG(status.st_mode) and self.covers(path):
                            self._linked.setdefault((status.st_dev, status.st_ino), []).append(path)
        return self._linked.get(identity, ())

    def _meet_stranger(self, status: os.stat_result) -> FileBytes | None:
        """Look whether a file that came from outside has names in the tree that it had before."""
        identity = status.st_dev, status.st_ino
        if self.has_strangers and status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
            for name in self._names_in_tree(identity):
                self.touch(name)
        return self.files.get(identity)

    def list_below(self, directory: bytes) -> Iterator[bytes]:
        """Yield everything below a directory; one that cannot be listed is named."""
        with DirectoryWalk() as walk:
            yield from walk.list_below(directory)
        for path, why in walk.missed.items():
            self.add_note(path, UNLISTED.format(why))

    # How it is remembered.

    def _is_new_dump(self, path: bytes) -> bool:
        if self.dump_name is None:
            return False
        directory, _, name = path.rpartition(b"/")
        if not self.dump_name.fullmatch(name):
            return False
        if os.path.lexists(path) and self.occupants.get(directory, self) is not None:
            self.add_note(directory, _DUMP_TIME)
        return True

    def _is_original(self, directory: bytes) -> bool:
        """Tell whether a directory is the one that had this path when the command began."""
        if (known := self._original.get(directory)) is not None:
            return known
        if directory in self.roots or not directory.startswith(self._prefixes):
            verdict = True
        elif directory not in self.occupants:
            verdict = self._is_original(directory.rpartition(b"/")[0] or b"/")
        elif (occupant := self.occupants[directory]) is None:
            verdict = False
        else:
            try:
                status = os.lstat(directory)
                verdict = (status.st_dev, status.st_ino) == occupant.facts.identity
            except OSError:
                verdict = False
            verdict = verdict and self._is_original(directory.rpartition(b"/")[0] or b"/")
        self._original[directory] = verdict
        return verdict

    def _occupy(self, path: bytes, facts: EntryFacts) -> Occupant:
        target = os.readlink(path) if facts.is_link else b""
        attributes = () if facts.is_link else read_attributes(path)
        if facts.is_file and (file := self.files.get(facts.identity)) and file.facts.links > 1:
            facts, attributes = file.facts, file.attributes  # another name of a file that may be changed by now
        extra: dict[str, object] = {}
        if target:
            extra["target"] = target.hex()
        if attributes:
            extra["attributes"] = [[name, value.hex()] for name, value in attributes]
        self.stash.add_record(b"O", path, facts, extra)
        return self._add_occupant(path, facts, target, attributes)

    def _add_occupant(self, path: bytes, facts: EntryFacts, target: bytes, attributes: Attributes) -> Occupant:
        file = None
        if facts.is_file:
            file = self.files.get(facts.identity)
            if file is None or file.facts.links == 1:  # else another name of a file that was seen before
                file = self.files[facts.identity] = FileBytes(facts, attributes)
        occupant = self.occupants[path] = Occupant(path, facts, file, target, attributes)
        return occupant

    def _keep_content(self, path: bytes, file: FileBytes, *, goes_away: bool) -> None:
        with _NamedFailures(self, path, file):
            facts = file.facts
            if goes_away and facts.size > SMALL_BYTES:
                with suppress(OSError):
                    file.content = self.stash.keep_link(path, facts)
                    return
            try:
                fd = open_own(None, path)
            except PermissionError:
                file.content = self.stash.keep_link(path, facts)  # not written by this call either, or by a link
                return
            try:
                file.content = self._keep_open(fd, facts)
            finally:
                os.close(fd)

    def _keep_open(self, fd: int, facts: EntryFacts) -> KeptContent:
        holes: Holes = find_holes(fd, facts.size) if facts.is_sparse else ()
        if facts.size <= SMALL_BYTES:
            return self.stash.keep_small(read_whole(fd, facts.size), facts, holes)
        return self.stash.keep_copy(fd, facts, holes)

    # What a later process reads.
    def load_records(self) -> None:
        """Take up what a dead process had kept."""
        for record in self.stash.read_records():
            self._load_record(record)
        for file in self.files.values():
            file.has_set_times = True  # that is not recorded

    def _load_record(self, record: JournalRecord) -> None:
        extra = record.extra
        match record.type:
            case b"A":
                self.occupants[record.name] = None
            case b"O":
                pairs = tuple((name, bytes.fromhex(value)) for name, value in extra.get("attributes", ()))
                self._add_occupant(record.name, record.facts, bytes.fromhex(extra.get("target", "")), pairs)
            case b"C":
                holes = tuple((begin, end) for begin, end in extra.get("holes", ()))
                name = str(extra.get("file", ""))
                size = record.facts.size if name else record.size
                kept = KeptContent(size, -1 if name else record.offset, name, bool(extra.get("link")), holes)
                self.files.setdefault(record.facts.identity, FileBytes(record.facts)).content = kept
            case b"N":
                self.notes[record.name, str(extra["why"])] = None
            case b"M" if record.facts.is_directory:
                self.renamed.add(record.name)
            case b"M":
                self.files.setdefault(record.facts.identity, FileBytes(record.facts)).was_renamed = True


_NOTHING = EntryFacts(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


class _NamedFailures:
    """Names a file whose content cannot be kept; a full disk is told to the one who asked."""

    def __init__(self, keeper: Keeper, path: bytes, file: FileBytes) -> None:
        self._keeper, self._path, self._file = keeper, path, file

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, OSError):
            return False
        if error.errno in _FULL_ERRNOS:
            raise CallRefused(errno.ENOSPC) from error
        if error.errno != errno.ENOENT:
            self._file.lost = f"its content could not be kept ({os.strerror(error.errno or 0)})"
            self._keeper.add_note(self._path, self._file.lost)
        return True
