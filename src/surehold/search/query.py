"""The data classes of a search: what a caller asks for, and the results it gets back."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from surehold.disk.base import EntryType
from surehold.text.snapshot import Snapshot

Mode = Literal["path", "text", "regex"]
EngineName = Literal["ripgrep", "python"]
Want = Literal["files", "counts", "lines"]
"""What is to be known of each file with matches: that it is one, how many there are, or on which lines."""


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
    closed: tuple[str, ...] = ()
    """Names of directories that are not entered, at any depth."""
    dot_all: bool = False
    """Let a dot match line ends too; only with multiline."""
    look_around: bool = False
    """Allow look-around and backreferences, which take another and slower matcher."""


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


class NewestFile(NamedTuple):
    """One file that a pattern matches; a tuple, since there are thousands of them."""

    mtime_ns: int
    key: str
    """How the workspace names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestResult:
    """The files that a pattern matches, newest first."""

    directory: str
    files: tuple[NewestFile, ...]
    total: int = 0
    complete: bool = True
    """Whether there was time to look everywhere."""
    skipped: Skipped = field(default_factory=Skipped)
    elsewhere: int | None = None
    """How many ignored or hidden files match; known only when nothing else does."""
    below: int | None = None
    """How many files match below the directory; known only when the pattern looks in the directory alone, for nothing."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedLine:
    """One line of a file: it matches, or stands beside one that does."""

    path: str
    line: int
    text: str
    """The line, or the part of it around the first match."""
    is_match: bool
    is_whole: bool = True
    """Whether the text is all of the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultWindow:
    """Which part of an answer is wanted."""

    want: Want = "files"
    before: int = 0
    """Lines before each matching one."""
    after: int = 0
    offset: int = 0
    """How many files, or rows, are passed over."""
    limit: int | None = None
    """How many files, or rows, are shown; None for as many as there is room for."""
    room: int = 1 << 40
    """How many characters they may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepResult:
    """One page of what a sweep found, in path order, and the facts about all of it."""

    want: Want
    engine: EngineName
    counts: tuple[tuple[str, int], ...] = ()
    """The files of this page, each with its matches, or its matching lines."""
    rows: tuple[MatchedLine, ...] = ()
    files: tuple[FileHits, ...] = ()
    """The versions that the rows show."""
    total_files: int = 0
    total_lines: int | None = None
    """Matching lines in all files; None when nobody counted."""
    total_matches: int | None = None
    further: bool = False
    """Whether there is more behind this page."""
    files_scanned: int | None = None
    """None when the search was cut short."""
    skipped: Skipped = field(default_factory=Skipped)
    complete: bool = True
    """Whether there was time and room for everything."""
    look_around: bool = False
    """Whether the slower matcher was needed."""
    elsewhere: int | None = None
    """How many files match that are ignored, hidden or in closed directories; known only when no other does."""
    notes: tuple[str, ...] = ()
