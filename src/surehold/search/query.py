"""The data of a search: what a caller asks for, the results it gets back, and the notes in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from surehold.disk.base import EntryType
from surehold.text.measure import ANY_SIZE, TextRoom
from surehold.text.snapshot import LineRanges, Snapshot, merge_ranges

Mode = Literal["path", "text", "regex"]
EngineName = Literal["ripgrep", "python"]
Want = Literal["files", "counts", "lines", "matches"]
"""What to report of each file with matches: its name, the number of matches, the matching lines, or every match."""
_NAMES_IN_NOTE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    query: str
    mode: Mode = "text"
    root: str = "."
    """The directory to search, or one file."""
    include: tuple[str, ...] = ()
    """Globs; a file must match one of them. A glob without a slash matches a name at any depth."""
    exclude: tuple[str, ...] = ()
    """Globs of files and directories to leave out."""
    context: int = 0
    """How many lines before and after each match are shown."""
    case_sensitive: bool = True
    multiline: bool = False
    """Let a regular expression match across lines."""
    hidden: bool = False
    """Include names that begin with a dot, which are left out even if an ignore file includes them with `!`."""
    ignore: bool = True
    """Leave out what .gitignore and .ignore files name."""
    types: tuple[str, ...] = ()
    """File types by ripgrep's names, such as `py` or `rust`."""
    closed: tuple[str, ...] = ()
    """Names of directories that are not entered, at any depth."""
    dot_all: bool = False
    """Let a dot match line ends too; only with multiline."""
    look_around: bool = False
    """Allow look-around and backreferences, which need PCRE2, a slower matcher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """How many files and directories were not searched, or could not be shown."""

    binary: int = 0
    """Files with matches that are not text."""
    too_large: int = 0
    denied: int = 0
    """Files and directories that a rule of the workspace denies."""
    unreadable: int = 0
    ignored: int | None = None
    """Entries that an ignore file names; None if not counted."""
    hidden: int | None = None
    """Entries whose name begins with a dot; None if not counted."""
    changed: int = 0
    """Files that kept changing while they were read."""


class ListedEntry(NamedTuple):
    """One entry of a listing; a tuple, since there are thousands of them."""

    name: str
    key: str
    """Its path in the workspace."""
    relative: str
    """Its path below the listed directory."""
    type: EntryType
    size: int
    mtime_ns: int
    depth: int
    """1 for the directory's own entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Entries of a directory in path order: compared name by name, a directory before its content."""

    directory: str
    entries: tuple[ListedEntry, ...]
    truncated: bool = False
    next: str = ""
    """What to pass as `after` to continue; empty at the end."""
    total: int | None = None
    """The number of entries; None if that is not known yet."""
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
    """Its path in the workspace."""


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
    """How many ignored or hidden files match; known only if no other file does."""
    below: int | None = None
    """How many files match below the directory; known only if the pattern has no slash and nothing matches."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    path: str
    line: int | None = None
    """None if the path itself is the match."""
    column: int | None = None
    """In characters, from 1."""
    preview: str = ""
    """The line, or the part of it around the match."""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    whole_lines: tuple[int, ...] = ()
    """Those of its lines that are shown from their beginning to their end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedLine:
    """One line of a file that matches, or that is shown as context of a match."""

    path: str
    line: int
    text: str
    """The line, or the part of it around the first match."""
    is_match: bool
    is_whole: bool = True
    """Whether the text is the whole line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHits:
    """One file with matches, in the version that is shown."""

    path: str
    sha256: str
    match_count: int
    """All matches in the file, or all matching lines, also those on other pages."""
    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultWindow:
    """Which part of the result is wanted."""

    want: Want = "files"
    before: int = 0
    """Lines before each match."""
    after: int = 0
    """Lines after each match."""
    offset: int = 0
    """How many files, or lines, are skipped."""
    cursor: str = ""
    """Where the previous page of matches ended: its `next`."""
    limit: int | None = None
    """How many files, lines or matches are shown at most; None for as many as fit."""
    room: TextRoom = ANY_SIZE
    """How much of the page they may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """One page of a search, in path order, and the totals of all pages."""

    want: Want
    engine: EngineName
    matches: tuple[Hit, ...] = ()
    rows: tuple[MatchedLine, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    """The files of this page, each with the number of its matches or matching lines."""
    files: tuple[FileHits, ...] = ()
    """The versions that the matches and rows show."""
    total_files: int = 0
    total_lines: int | None = None
    """Matching lines in all files; None if not counted."""
    total_matches: int | None = None
    truncated: bool = False
    """Whether there is more after this page."""
    next: str = ""
    """The cursor of the next page of matches; empty at the end."""
    files_scanned: int | None = None
    """None if the search was cut short, or if counting would take another walk."""
    skipped: Skipped = field(default_factory=Skipped)
    complete: bool = True
    """Whether there was time and room for everything."""
    look_around: bool = False
    """Whether PCRE2 was needed."""
    elsewhere: int | None = None
    """How many ignored, hidden or build files match; known only if no other file does."""
    left_out: tuple[str, ...] = ()
    """Files of a directory whose content is searched only if they are named themselves."""
    notes: tuple[str, ...] = ()

    def whole_lines(self) -> Iterator[tuple[FileHits, LineRanges]]:
        """Yield the lines of each file that are shown completely: of a line that is cut, the rest was not shown."""
        shown = dict[str, list[tuple[int, int]]]()
        for row in self.rows:
            if row.is_whole:
                shown.setdefault(row.path, []).append((row.line, row.line))
        for hit in self.matches:
            shown.setdefault(hit.path, []).extend((line, line) for line in hit.whole_lines)
        yield from ((file, merge_ranges(shown.get(file.path, ()))) for file in self.files)


def name_some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMES_IN_NOTE]) + (" …" if len(names) > _NAMES_IN_NOTE else "")
