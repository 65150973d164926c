"""The contract of a disk: it resolves, reads, locks and changes files, and makes no decisions.

Rules for every disk:
1. A `Target` comes from `DiskReader.resolve` and contains no symbolic link. Nothing else creates one.
2. No operation follows a link, leaves the roots, or touches anything but a regular file.
3. `Disk.apply` makes all of its steps visible, or none of them and raises.
4. A step is applied only to the bytes it expects. Unexpected bytes are put back, or handed to `keep`.
5. Whatever a dead process staged carries the tag of its call, so that `remove_leftovers` finds it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, Self

from surehold.text.snapshot import Kind, Meta, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A path that has been resolved and lies inside a root."""

    root: str
    """The root it lies in: absolute, without links."""
    parts: tuple[str, ...]
    """The names below the root; never `.`, `..` or a link. Bytes that are not UTF-8 are surrogate-escaped."""
    key: str
    """How the store and people name it: relative to the first root, absolute below any other."""
    asked: str = field(default="", compare=False)
    """The path as the caller spelled it, when a caller did: rules apply to that name too."""

    def __str__(self) -> str:
        return self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """One consistent read of a regular file."""

    data: bytes
    meta: Meta
    links: int
    """Number of names the file has."""


class SteadyFile(Protocol):
    """An open file that no program has open for writing, as long as it is steady; whoever wants to write does not wait long."""

    @property
    def facts(self) -> tuple[int, ...]:
        """Device, inode, size and times. A file that is steady again and has the same ones has the same bytes."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether the file is old enough that every later write changes its facts."""
        ...

    def is_steady(self) -> bool:
        """Tell whether no program has opened the file for writing since this was opened."""
        ...

    def read_from(self, offset: int) -> Iterator[bytes]:
        """Yield the file piece by piece from a byte on; `StaleFile` as soon as it is not steady any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    """One consistent look at an entry of any kind; links are not followed."""

    version: Version
    data: bytes
    """The bytes of a file, or where a link leads to."""
    links: int
    identity: tuple[int, int]
    """Which file it is: names with the same one are hard links."""
    names: tuple[str, ...] = ()
    """What a directory contains."""


EntryType = Literal["file", "directory", "symlink", "other"]


class EntryStat(NamedTuple):
    """The metadata of an entry at one moment; a link is not followed."""

    type: EntryType
    size: int
    mtime_ns: int
    ctime_ns: int


class OpenListing(Protocol):
    """The names in a directory, which is kept open: what is asked of them is asked of this very directory."""

    entries: dict[str, EntryType]
    """All names with their types, in no order; links are not followed. There may be a million of them."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def stat_entries(self, names: Sequence[str]) -> list[EntryStat | None]:
        """Return the metadata of some entries; None for those that are gone."""
        ...

    def modified_times(self, names: Sequence[str]) -> list[int | None]:
        """Return when some entries were modified, in nanoseconds; None for those that are gone."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create a file where nothing exists."""

    target: Target
    data: bytes
    meta: Meta | None = None
    """Metadata to restore (restore, undo); None for an ordinary new file."""
    mode: int | None = None
    """Permission bits for a new file; None follows the umask."""
    parents: bool = True
    """Make missing parent directories; otherwise the step is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replace:
    """Replace the bytes `expected`; all metadata stays."""

    target: Target
    data: bytes
    expected: str
    """sha256 of the bytes that must be there."""
    old: bytes | None = None
    """Those bytes, if available: comparing large files is faster than hashing them."""
    mode: int | None = None
    """New permission bits; None keeps them."""
    holes: tuple[tuple[int, int], ...] = ()
    """Where the file needs no blocks on the disk, if it is written in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Delete the file whose bytes are `expected`."""

    target: Target
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """Rename the file whose bytes are `expected` to a name that does not exist; missing parent directories are made."""

    source: Target
    target: Target
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PutEntry:
    """Put an entry of any kind at a path, with all of its facts; what is there must be as expected, and goes."""

    target: Target
    version: Version
    data: bytes
    """The bytes of a file, or where a link leads to."""
    link_to: Target | None = None
    """Another name of the same file, if that has these bytes by then."""
    expected: Version | None = None
    """What is there; None for nothing. Never a directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeEntry:
    """Remove an entry of any kind; a directory must be empty by then."""

    target: Target
    expected: Version
    refuge: Target
    """In the directory of this target the entry waits until all else is done: its own directory may have to go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFacts:
    """Give an entry another mode, owner, attributes or time; its content stays."""

    target: Target
    kind: Kind
    before: Meta
    after: Meta


WholeStep = PutEntry | TakeEntry | SetFacts
"""Steps that switch an entry as a whole: kind, content, facts and names."""
Step = Create | Replace | Remove | Rename | WholeStep
KeepBytes = Callable[[str, bytes], None]
"""Takes bytes of another program, with the path that they had to leave; empty for bytes that are still at their path."""


def step_targets(step: Step) -> tuple[Target, ...]:
    return (step.source, step.target) if isinstance(step, Rename) else (step.target,)


class DiskReader(Protocol):
    """Finds and reads files."""

    @property
    def roots(self) -> tuple[str, ...]:
        """The directories below which everything happens, the first one being the main one."""
        ...

    @property
    def is_coherent(self) -> bool:
        """Whether a read always sees the latest write of every process (not so on network mounts)."""
        ...

    @property
    def shows_saved(self) -> bool:
        """Whether reads show what is saved, and not the unsaved text of an editor."""
        ...

    def resolve(self, path: str) -> Target:
        """Follow links inside the roots; refuse what leads out. The leaf need not exist."""
        ...

    def read(self, target: Target, *, limit: int) -> StoredFile | None:
        """Return the whole file in one consistent read, or None when nothing is there."""
        ...

    def read_chunks(self, target: Target) -> Iterator[bytes]:
        """Yield the file piece by piece, for files that should not be held in memory."""
        ...

    def open_steady(self, target: Target) -> AbstractContextManager[SteadyFile | None]:
        """Open a file for a block in which no program writes to it unnoticed; None where that cannot be known."""
        ...

    def read_heads(self, directory: Target, names: Sequence[str], count: int) -> list[bytes | None]:
        """Return the first bytes of some regular files of a directory; None for anything else, and for what cannot be read."""
        ...

    def locate(self, key: str) -> Target:
        """Return the target of a name that the history recorded, without following any link."""
        ...

    def read_entry(self, target: Target, *, limit: int) -> StoredEntry | None:
        """Return what a located target leads to, of any kind; None when nothing is there."""
        ...

    def missing_directories(self, target: Target) -> tuple[str, ...]:
        """Return the keys of the directories above a target that do not exist, the outermost first."""
        ...

    def open_listing(self, directory: Target) -> OpenListing:
        """Open a directory for a block, and return what is in it."""
        ...

    def stat_entries(self, directory: Target, names: Sequence[str]) -> list[EntryStat | None]:
        """Return the metadata of some entries of a directory; None for those that are gone."""
        ...

    def target_below(self, directory: Target, names: Sequence[str]) -> Target:
        """Return the target that names found below a directory lead to."""
        ...

    def open_directory(self, directory: Target) -> AbstractContextManager[int | None]:
        """Open a directory and yield its descriptor, as a cwd for subprocesses; None for a disk without one."""
        ...


class Disk(DiskReader, Protocol):
    """Finds and reads files, keeps other writers away, and changes files."""

    def lock(self, targets: Sequence[Target], *, timeout: float) -> AbstractContextManager[None]:
        """Hold all targets, against other threads and processes; `LockTimeout` when it takes too long."""
        ...

    def lock_located(self, targets: Sequence[Target], *, timeout: float) -> AbstractContextManager[None]:
        """Hold located targets, of which there may be very many, some below what is not a directory now."""
        ...

    def read_watched(self, target: Target, *, limit: int, in_place: bool = False) -> StoredFile | None:
        """Read a file whose lock is held, and watch it until the lock is released.

        `apply` then refuses with `StaleFile` what another program touched since. `in_place`: whoever waits for the file has
        made us start again before, so it is to be written without giving up its inode.
        """
        ...

    def apply(
        self, steps: Sequence[Step], *, tag: str, fence: Callable[[], None], keep: KeepBytes, leased: bool = True
    ) -> None:
        """Stage every step, call `fence` (which may raise), then make all of them visible, or none.

        `keep` receives bytes of an outside writer that could not stay at their path, with the name of that path. Where
        `fence` waits for another program, which may write these files itself, no lease of ours may keep it out.
        """
        ...

    def replaces_in_place(self, target: Target) -> bool:
        """Tell whether a new version would have to be written into the same inode (hard links, foreign owner)."""
        ...

    def remove_leftovers(self, targets: Sequence[Target], *, tag: str, keep: KeepBytes) -> None:
        """Remove what a dead process staged for `tag`; bytes in it go to `keep` first."""
        ...

    def remove_empty(self, directory: Target, *, may_go: Callable[[], bool], timeout: float) -> bool:
        """Remove a located directory if it is empty, is not a root, and `may_go` agrees; tell whether it is gone now.

        No writer of ours has a name in it in that moment. `may_go` is asked of empty directories only.
        """
        ...

    def write_caution(self, target: Target) -> str:
        """Say how the last write to a path falls short of these rules; empty when it does not."""
        ...

    def read_caution(self) -> str:
        """Say why what is read may not be what the paths of the roots lead to; empty when it is."""
        ...

    def close(self) -> None:
        """Close everything that is open."""
        ...


class EditorFiles(Protocol):
    """Files as an editor holds them, saved or not. Called from any thread; failures are Surehold errors."""

    def read_text(self, path: str) -> str | None:
        """Return the text of an absolute path as the user sees it; None when the editor has no such file."""
        ...

    def write_text(self, path: str, text: str) -> None:
        """Replace the text; the editor decides whether to save it."""
        ...
