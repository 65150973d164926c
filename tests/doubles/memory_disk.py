"""A disk in memory: the guarantees of a real disk without the machine, for tests."""

import hashlib
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Self, assert_never

from surehold.disk.base import (
    Create,
    EntryStat,
    EntryType,
    KeepBytes,
    PutEntry,
    Remove,
    Rename,
    Replace,
    SetFacts,
    SteadyFile,
    Step,
    StoredEntry,
    StoredFile,
    TakeEntry,
    Target,
)
from surehold.disk.errno_errors import (
    displaced_error,
    name_taken_error,
    no_parent_error,
    not_a_directory_error,
    not_a_file_error,
    not_listable_error,
    vanished_error,
)
from surehold.disk.paths import check_spelling
from surehold.disk.steps.staging import check_tag
from surehold.disk.tree import split_path
from surehold.errors import FileTooLarge, InvalidArgument, LockTimeout, NotFound, OutsideWorkspace
from surehold.text.snapshot import Meta, Version

Parts = tuple[str, ...]
_DIRECTORY = 0o040000
_FILE = 0o100000
_PIECE_BYTES = 1 << 20


@dataclass(slots=True, kw_only=True)
class _MemoryTree:
    """All files and directories at one moment."""

    files: dict[Parts, StoredFile] = field(default_factory=dict[Parts, StoredFile])
    directories: set[Parts] = field(default_factory=set[Parts])

    def copy(self) -> "_MemoryTree":
        return _MemoryTree(files=dict(self.files), directories=set(self.directories))

    def put_file(self, parts: Parts, stored: StoredFile) -> None:
        self.files[parts] = stored
        self.directories |= {parts[:depth] for depth in range(len(parts))}

    def check_free(self, target: Target) -> None:
        if target.parts in self.files:
            raise name_taken_error(_FILE, target.key)
        if target.parts in self.directories:
            raise name_taken_error(_DIRECTORY, target.key)
        if any(target.parts[:depth] in self.files for depth in range(len(target.parts))):
            raise not_a_directory_error(target.key)

    def find_existing(self, target: Target, expected: str) -> StoredFile:
        if target.parts in self.directories:
            raise not_a_file_error(_DIRECTORY, target.key)
        stored = self.files.get(target.parts)
        if stored is None:
            raise vanished_error(target.key, expected)
        return stored

    def find_expected(self, target: Target, expected: str) -> StoredFile:
        stored = self.find_existing(target, expected)
        actual = hashlib.sha256(stored.data).hexdigest()
        if actual != expected:
            raise displaced_error(target.key, expected, actual)
        return stored


class MemoryDisk:
    """Files that exist in this process alone; safe to be used by several threads."""

    def __init__(self, files: Mapping[str, bytes] | None = None, *, root: str = "/memory") -> None:
        self._root = root
        self._changing = threading.RLock()
        self._freed = threading.Condition()
        self._held: set[Parts] = set()
        self._clock = 0
        self._tree = _MemoryTree(directories={()})
        for path, data in (files or {}).items():
            self.poke(path, data)

    @property
    def roots(self) -> tuple[str, ...]:
        """The one directory below which everything happens."""
        return (self._root,)

    @property
    def is_coherent(self) -> bool:
        """Whether a read sees the latest write: always."""
        return True

    def close(self) -> None:
        """Let go of what is open: nothing."""

    def resolve(self, path: str) -> Target:
        """Walk to the path; there are no links, but files are in the way as ever."""
        spelled = check_spelling(path)
        names = split_path(spelled)
        if spelled.startswith("/"):
            root = split_path(self._root)
            if names[: len(root)] != root:
                raise OutsideWorkspace(f"`{path}` is in none of the workspace roots.", path=path, reason="absolute")
            names = names[len(root) :]
        with self._changing:
            parts = self._walk_names(names, path)
            if spelled.endswith(("/", "/.")) and parts not in self._tree.directories:
                raise InvalidArgument(
                    f"`{path}` ends in a slash, but no directory is there.",
                    path=path,
                    reason="trailing_slash",
                    action="Leave the slash out to name a file.",
                )
        return Target(root=self._root, parts=parts, key="/".join(parts) or ".")

    def locate(self, key: str) -> Target:
        """Return the target of a recorded name."""
        parts = split_path(key)
        return Target(root=self._root, parts=parts, key="/".join(parts) or ".")

    def read_entry(self, target: Target, *, limit: int) -> StoredEntry | None:
        """Return a file; there are no links, and a directory has no facts."""
        stored = self.read(target, limit=limit)
        if stored is None:
            return None
        version = Version(sha256=hashlib.sha256(stored.data).hexdigest(), size=len(stored.data), meta=stored.meta)
        return StoredEntry(version=version, data=stored.data, links=1, identity=(0, hash(target.parts)))

    def lock_located(self, targets: Sequence[Target], *, timeout: float) -> AbstractContextManager[None]:
        """Hold located targets."""
        return self.lock(targets, timeout=timeout)

    def missing_directories(self, target: Target) -> tuple[str, ...]:
        """Return the keys of the directories above a target that do not exist."""
        above = [target.parts[:depth] for depth in range(1, len(target.parts))]
        return tuple("/".join(parts) for parts in above if parts not in self._tree.directories)

    def remove_empty(self, directory: Target, *, may_go: Callable[[], bool], timeout: float) -> bool:
        """Remove a directory if nothing is in it."""
        del timeout
        parts, tree = directory.parts, self._tree
        used = any(name[: len(parts)] == parts != name for name in (*tree.files, *tree.directories))
        if not parts or used or parts not in tree.directories or not may_go():
            return False
        tree.directories.remove(parts)
        return True

    def _walk_names(self, names: Parts, path: str) -> Parts:
        parts: Parts = ()
        for index, name in enumerate(names):
            if name == "..":
                if not parts:
                    raise OutsideWorkspace(f"`..` in `{path}` leads out of the workspace.", path=path, reason="dotdot")
                parts = parts[:-1]
                continue
            parts = (*parts, name)
            rest = names[index + 1 :]
            if rest and parts in self._tree.files:
                raise not_a_directory_error(path)
            if ".." in rest and parts not in self._tree.directories:
                raise NotFound(f"There is no directory `{name}` in `{path}`.", path=path)
        return parts

    @property
    def shows_saved(self) -> bool:
        """Say that reads show what is saved."""
        return True

    def read_watched(self, target: Target, *, limit: int, in_place: bool = False) -> StoredFile | None:
        """Read a file whose lock is held; no outside program can open it."""
        del in_place
        return self.read(target, limit=limit)

    def read(self, target: Target, *, limit: int) -> StoredFile | None:
        """Return the whole file, or None when nothing is there."""
        with self._changing:
            if target.parts in self._tree.directories:
                raise not_a_file_error(_DIRECTORY, target.key)
            stored = self._tree.files.get(target.parts)
        if stored is not None and len(stored.data) > limit:
            size = len(stored.data)
            message = f"`{target}` has {size} bytes, more than {limit}."
            raise FileTooLarge(message, path=target.key, size=size, limit=limit)
        return stored

    def read_chunks(self, target: Target) -> Iterator[bytes]:
        """Yield the file piece by piece."""
        stored = self.read(target, limit=1 << 62)
        if stored is None:
            raise NotFound(f"There is no file `{target}`.", path=target.key)
        for start in range(0, len(stored.data), _PIECE_BYTES):
            yield stored.data[start : start + _PIECE_BYTES]

    def open_steady(self, target: Target) -> AbstractContextManager[SteadyFile | None]:
        """Yield nothing: there are no leases here."""
        del target
        return nullcontext(None)

    def read_heads(self, directory: Target, names: Sequence[str], count: int) -> list[bytes | None]:
        """Return the first bytes of some files of a directory; None for what is none."""
        with self._changing:
            self._check_directory(directory)
            found = [self._tree.files.get((*directory.parts, name)) for name in names]
        return [stored.data[:count] if stored else None for stored in found]

    def open_listing(self, directory: Target) -> "MemoryListing":
        """Return what is in a directory."""
        return MemoryListing(self, directory)

    def list_entries(self, directory: Target) -> dict[str, EntryType]:
        """Return all names in a directory with their types, in no order."""
        depth = len(directory.parts)
        with self._changing:
            self._check_directory(directory)
            tree = self._tree
            files = [parts for parts in tree.files if len(parts) == depth + 1 and parts[:depth] == directory.parts]
            inner = [
                parts for parts in tree.directories if len(parts) == depth + 1 and parts[:depth] == directory.parts
            ]
        return dict[str, EntryType](
            {parts[-1]: "file" for parts in files}, **{parts[-1]: "directory" for parts in inner}
        )

    def stat_entries(self, directory: Target, names: Sequence[str]) -> list[EntryStat | None]:
        """Return the facts about some entries of a directory; None for those that are gone."""
        with self._changing:
            self._check_directory(directory)
            return [self._stat_entry((*directory.parts, name)) for name in names]

    def _stat_entry(self, parts: Parts) -> EntryStat | None:
        if parts in self._tree.directories:
            return EntryStat("directory", 0, 0, 0)
        stored = self._tree.files.get(parts)
        if stored is None:
            return None
        return EntryStat("file", len(stored.data), stored.meta.mtime_ns, stored.meta.mtime_ns)

    def _check_directory(self, directory: Target) -> None:
        if directory.parts in self._tree.files:
            raise not_listable_error(directory.key)
        if directory.parts not in self._tree.directories:
            raise NotFound(f"There is no directory `{directory}`.", path=directory.key, reason="no_such_directory")

    def target_below(self, directory: Target, names: Sequence[str]) -> Target:
        """Return the target that names found below a directory lead to."""
        parts = (*directory.parts, *names)
        return Target(root=self._root, parts=parts, key="/".join(parts) or ".")

    def open_directory(self, directory: Target) -> AbstractContextManager[None]:
        """Have no directory that another program could start in."""
        del directory
        return nullcontext()

    @contextmanager
    def lock(self, targets: Sequence[Target], *, timeout: float) -> Generator[None]:
        """Hold the directories of all targets at once; not reentrant."""
        wanted = {target.parts[:-1] for target in targets}
        deadline = time.monotonic() + timeout
        with self._freed:
            while busy := wanted & self._held:
                if not self._freed.wait(max(0.0, deadline - time.monotonic())) and wanted & self._held:
                    raise _timeout_error(next(each for each in targets if each.parts[:-1] in busy), timeout)
            self._held |= wanted
        try:
            yield
        finally:
            with self._freed:
                self._held -= wanted
                self._freed.notify_all()

    def apply(
        self, steps: Sequence[Step], *, tag: str, fence: Callable[[], None], keep: KeepBytes, leased: bool = True
    ) -> None:
        """Apply all steps to a copy of the tree, then make the copy the tree."""
        check_tag(tag)
        del keep, leased  # nothing is displaced before it is looked at, and no other program sees it
        with self._changing:
            self._run_steps(self._tree.copy(), steps, look_only=True)
        fence()
        with self._changing:
            tree = self._tree.copy()
            self._run_steps(tree, steps, look_only=False)
            self._tree = tree

    def _run_steps(self, tree: _MemoryTree, steps: Sequence[Step], *, look_only: bool) -> None:
        find = tree.find_existing if look_only else tree.find_expected
        for step in steps:
            if not step.target.parts:
                raise not_a_file_error(_DIRECTORY, step.target.key)
            match step:
                case Create():
                    tree.check_free(step.target)
                    if not step.parents and step.target.parts[:-1] not in tree.directories:
                        raise no_parent_error(step.target.key)
                    tree.put_file(step.target.parts, self._new_file(step))
                case Replace():
                    old = find(step.target, step.expected)
                    mode = old.meta.mode if step.mode is None else step.mode
                    meta = replace(old.meta, mode=mode, mtime_ns=self._next_tick())
                    tree.put_file(step.target.parts, replace(old, data=step.data, meta=meta))
                case Remove():
                    find(step.target, step.expected)
                    del tree.files[step.target.parts]
                case Rename():
                    moved = find(step.source, step.expected)
                    tree.check_free(step.target)
                    del tree.files[step.source.parts]
                    tree.put_file(step.target.parts, moved)
                case PutEntry() | TakeEntry() | SetFacts():
                    raise NotImplementedError("Here are only files.")
                case _:
                    assert_never(step)

    def _new_file(self, step: Create) -> StoredFile:
        meta = step.meta or Meta(mode=0o644, mtime_ns=self._next_tick())
        if step.mode is not None:
            meta = replace(meta, mode=step.mode)
        if not meta.mtime_ns:
            meta = replace(meta, mtime_ns=self._next_tick())
        return StoredFile(data=step.data, meta=meta, links=1)

    def _next_tick(self) -> int:
        self._clock += 1
        return self._clock

    def replaces_in_place(self, target: Target) -> bool:
        """Tell whether a file must keep its inode: never, it has none."""
        del target
        return False

    def remove_leftovers(self, targets: Sequence[Target], *, tag: str, keep: KeepBytes) -> None:
        """Do nothing: what a dead process staged here died with it."""

    def read_caution(self) -> str:
        """Say nothing: its root cannot be replaced."""
        return ""

    def write_caution(self, target: Target) -> str:
        """Say nothing: every write keeps all promises."""
        del target
        return ""

    def poke(self, path: str, data: bytes | None) -> None:
        """Write or remove a file as an outside program would, past every check."""
        target = self.resolve(path)
        with self._changing:
            if data is None:
                self._tree.files.pop(target.parts, None)
                return
            old = self._tree.files.get(target.parts)
            mode = old.meta.mode if old else 0o644
            stored = StoredFile(data=data, meta=Meta(mode=mode, mtime_ns=self._next_tick()), links=1)
            self._tree.put_file(target.parts, stored)

    def peek(self, path: str) -> bytes | None:
        """Return the bytes at a path, None when nothing is there."""
        stored = self._tree.files.get(self.resolve(path).parts)
        return None if stored is None else stored.data

    def all_files(self) -> dict[str, bytes]:
        """Return every file and its bytes."""
        with self._changing:
            return {"/".join(parts): stored.data for parts, stored in sorted(self._tree.files.items())}


class MemoryListing:
    """What is in a directory of a disk in memory."""

    def __init__(self, disk: MemoryDisk, directory: Target) -> None:
        self._disk, self._directory = disk, directory
        self.entries = disk.list_entries(directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Have nothing to close."""

    def stat_entries(self, names: Sequence[str]) -> list[EntryStat | None]:
        """Return the facts about some entries; None for those that are gone."""
        return self._disk.stat_entries(self._directory, names)

    def modified_times(self, names: Sequence[str]) -> list[int | None]:
        """Return when some entries were modified; None for those that are gone."""
        return [look and look.mtime_ns for look in self.stat_entries(names)]


def _timeout_error(target: Target, timeout: float) -> LockTimeout:
    return LockTimeout(
        f"Another writer held the directory of `{target}` for more than {timeout:g} s.",
        path=target.key,
        seconds=timeout,
    )
