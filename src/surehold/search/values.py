"""What is asked for, and what is found."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from surehold.disk.base import EntryType
from surehold.text.snapshot import Snapshot

Mode = Literal["path", "text", "regex"]
EngineName = Literal["ripgrep", "python"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What to look for, and where."""

    query: str
    mode: Mode = "text"
    root: str = "."
    """The directory to search, or one file."""
    include: tuple[str, ...] = ()
    """Globs; a file must match one of them. Without a slash they are about the name, at any depth."""
    exclude: tuple[str, ...] = ()
    """Globs of files and directories to leave out."""
    context: int = 0
    """How many lines before and after each match are shown."""
    case_sensitive: bool = True
    multiline: bool = False
    """Let a regular expression match across lines."""
    hidden: bool = False
    """Look also at names that begin with a dot."""
    ignore: bool = True
    """Leave out what .gitignore and .ignore files name."""
    types: tuple[str, ...] = ()
    """Kinds of files by ripgrep's names, such as `py` or `rust`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """What was not looked at, or could not be shown."""

    binary: int = 0
    """Files with matches that are not text."""
    too_large: int = 0
    denied: int = 0
    """Files and directories that a rule of the workspace hides."""
    unreadable: int = 0
    ignored: int | None = None
    """Entries that an ignore file names; None when nobody counted."""
    hidden: int | None = None
    """Entries whose name begins with a dot; None when nobody counted."""
    changed: int = 0
    """Files that kept changing while they were read."""


class ListedEntry(NamedTuple):
    """One entry of a listing; a tuple, since there are thousands of them."""

    name: str
    key: str
    """How the workspace names it."""
    relative: str
    """Its path below the directory that was asked for."""
    type: EntryType
    size: int
    mtime_ns: int
    depth: int
    """1 for the directory's own entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Entries of a directory, in path order: names are compared one after the other, a directory before what is in it."""

    directory: str
    entries: tuple[ListedEntry, ...]
    truncated: bool = False
    next: str = ""
    """What to pass as `after` to go on; empty at the end."""
    total: int | None = None
    """How many entries there are; None when that is not known without going on."""
    skipped: Skipped = field(default_factory=Skipped)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobResult:
    """What a glob matches, in path order."""

    directory: str
    matches: tuple[ListedEntry, ...]
    truncated: bool = False
    total: int = 0
    skipped: Skipped = field(default_factory=Skipped)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One match."""

    path: str
    line: int | None = None
    """None when the path itself is the match."""
    column: int | None = None
    """In characters, from 1."""
    preview: str = ""
    """The line, or the part of it around the match."""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHits:
    """One file with matches, in the version that the hits show."""

    path: str
    sha256: str
    match_count: int
    """All matches in the file, also those on other pages."""
    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """One page of matches, in order of path, line and column, and the facts about all of them."""

    matches: tuple[Hit, ...]
    files: tuple[FileHits, ...]
    """The files of this page."""
    files_scanned: int
    engine: EngineName
    skipped: Skipped = field(default_factory=Skipped)
    truncated: bool = False
    next: str = ""
    """What to pass as `after` to go on; empty at the end."""
    total_matches: int = 0
    counts: tuple[tuple[str, int], ...] = ()
    """Every file with matches, and how many, over all pages."""
    complete: bool = True
    """Whether every match was collected."""
    notes: tuple[str, ...] = ()
