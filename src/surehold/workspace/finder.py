"""Finds files in a workspace: listing, globbing and searching, within its rules and limits."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from surehold.disk.base import StoredFile, Target
from surehold.errors import (
    InvalidArgument,
    InvalidPattern,
    NotAFile,
    NotFound,
    OutsideWorkspace,
    PermissionDenied,
    SureholdError,
)
from surehold.search.content import SnapshotOf, search_file, search_tree
from surehold.search.engine import DEFAULT_SECONDS, Deadline, Engine, Progress, Scope
from surehold.search.file_types import canonical_type
from surehold.search.glob import GlobFilter, is_glob
from surehold.search.listing import find_glob, find_newest, list_directory, search_paths
from surehold.search.literal_engine import LiteralEngine, escape_regex
from surehold.search.query import GlobResult, Listing, NewestResult, ResultWindow, Search, SearchResult
from surehold.search.result_page import Highlights, highlight_matches
from surehold.search.ripgrep.engine import Ripgrep, TooManyExclusions, find_binary
from surehold.search.ripgrep.program import needs_look_around
from surehold.search.walk import Allowed, TreeWalk
from surehold.text.measure import ANY_SIZE, TextRoom
from surehold.text.snapshot import Snapshot

if TYPE_CHECKING:
    from surehold.workspace.reader import WorkspaceReader

_MAX_QUERY_CHARS = 10_000
_MAX_FILE_BYTES = 1 << 28
_MAX_CONTEXT_LINES = 100
VERSION_CONTROL_DIRECTORIES = (".git", ".svn", ".hg", ".jj", ".bzr", ".sl")
"""Directories with the data of version control programs."""
BUILD_DIRECTORIES = ("node_modules", "target", "__pycache__")
"""Directories of generated files."""
_LITERAL_ENGINE_FOR_RULES = LiteralEngine(
    why="rules deny more files than ripgrep can be told to leave out",
    way_out="Search a smaller directory, or search for literal text.",
)


class Finder:
    """Finds files, and matches in them. What a rule denies is neither listed, nor matched, nor read."""

    def __init__(self, workspace: "WorkspaceReader", *, seconds: float = DEFAULT_SECONDS) -> None:
        self._workspace, self._disk, self._policy = workspace, workspace.disk, workspace.policy
        self._seconds = seconds

    def list(
        self,
        path: str = ".",
        *,
        recursive: bool = False,
        max_depth: int = 8,
        hidden: bool = False,
        ignore: bool = True,
        limit: int = 5000,
        room: TextRoom = ANY_SIZE,
        after: str = "",
    ) -> Listing:
        """Return one page of a directory's entries, in path order; links are named, never followed.

        A page ends at the limit, or when the names fill the room.
        """
        _check_count("limit", limit, least=1)
        _check_count("max_depth", max_depth, least=1)
        walk = self._walk_below(path, hidden=hidden, ignore=ignore)
        return list_directory(walk, recursive=recursive, max_depth=max_depth, limit=limit, room=room, after=after)

    def glob(
        self,
        pattern: str,
        *,
        root: str = ".",
        exclude: Sequence[str] = (),
        limit: int = 1000,
        hidden: bool = False,
        ignore: bool = True,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> GlobResult:
        """Return the files and directories that a pattern matches, from `root` on, in path order.

        A pattern that is absolute and leads below a root of the workspace begins there.
        """
        _check_count("limit", limit, least=1)
        deadline = Deadline(self._seconds, progress=progress, cancelled=cancelled)
        walk = self._walk_below(root, hidden=hidden, ignore=ignore)
        if pattern.startswith("/"):
            directory, names = _split_pattern(pattern)
            with suppress(OutsideWorkspace):  # then the slash only says that it begins at `root`
                walk, pattern = self._walk_below(directory, hidden=hidden, ignore=ignore), names
        return find_glob(walk, pattern, exclude=exclude, limit=limit, deadline=deadline)

    def glob_newest(
        self,
        pattern: str,
        *,
        root: str = ".",
        closed: Sequence[str] = VERSION_CONTROL_DIRECTORIES,
        limit: int = 250,
        hidden: bool = True,
        ignore: bool = True,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> NewestResult:
        """Return the files that a pattern matches, newest first; an absolute pattern includes its root."""
        _check_count("limit", limit, least=1)
        if pattern.startswith("/"):
            root, pattern = _split_pattern(pattern)
        deadline = Deadline(self._seconds, progress=progress, cancelled=cancelled)
        walk = self._walk_below(root, hidden=hidden, ignore=ignore)
        return find_newest(walk, pattern, closed=closed, limit=limit, deadline=deadline)

    def search(
        self,
        search: Search,
        *,
        limit: int = 100,
        after: str = "",
        room: TextRoom = ANY_SIZE,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> SearchResult:
        """Return one page of matches in names, or in the text of files.

        A page ends at the limit, or when the matches fill the room.
        """
        window = ResultWindow(
            want="matches", before=search.context, after=search.context, limit=limit, cursor=after, room=room
        )
        _check_search(search, window)
        deadline = Deadline(self._seconds, progress=progress, cancelled=cancelled)
        if search.mode == "path":
            walk = self._walk_below(search.root, hidden=search.hidden, ignore=search.ignore)
            return search_paths(walk, search, window, deadline=deadline)
        return self._search_content(search, window, deadline)

    def grep(
        self,
        search: Search,
        window: ResultWindow,
        *,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> SearchResult:
        """Return one page of the files, counts or lines that match, and the totals of the whole tree.

        An expression with look-around is matched by PCRE2. One that cannot be read is refused; if its characters occur in
        files as they are, the refusal names the expression that finds them.
        """
        _check_search(search, window)
        deadline = Deadline(self._seconds, progress=progress, cancelled=cancelled)
        try:
            return self._search_content(search, window, deadline)
        except InvalidPattern as error:
            if needs_look_around(error):
                return self._search_content(replace(search, look_around=True), window, deadline)
            if error.reason == "invalid_regex":
                self._add_hint(error, search, deadline)
            raise

    def mark_matches(self, search: Search, found: SearchResult) -> Highlights:
        search = replace(search, look_around=found.look_around)
        return highlight_matches(search, self._choose_engine(), found.rows, Deadline(self._seconds))

    def _add_hint(self, error: InvalidPattern, search: Search, deadline: Deadline) -> None:
        """Add the expression that finds the characters as they are, if they occur anywhere."""
        with suppress(SureholdError):
            literal = replace(search, mode="text", multiline=False)
            found = self._search_content(literal, ResultWindow(limit=1), deadline)
            if found.total_files:
                escaped = escape_regex(search.query)
                files = "1 file" if found.total_files == 1 else f"{found.total_files} files"
                error.action = f"These characters occur literally in {files}: send `{escaped}`."
                error.details |= {"as_text": escaped, "files_with_text": found.total_files}

    def _search_content(self, search: Search, window: ResultWindow, deadline: Deadline) -> SearchResult:
        target, engine = self._workspace.target(search.root), self._choose_engine()
        if self._is_file(target):
            snapshot = self._read_whole(target)
            return search_file(search, engine, window, target=target, snapshot=snapshot, deadline=deadline)
        scope = self._make_scope(search)
        snapshot_of = self._snapshot_factory()
        try:
            return search_tree(scope, engine, window, snapshot_of=snapshot_of, deadline=deadline)
        except TooManyExclusions:
            engine = _LITERAL_ENGINE_FOR_RULES
            return search_tree(scope, engine, window, snapshot_of=snapshot_of, deadline=deadline)

    def _make_scope(self, search: Search) -> Scope:
        directory = self._resolve_directory(search.root)
        above = "/".join((directory.root, *directory.parts))
        return Scope(
            disk=self._disk,
            directory=directory,
            search=replace(
                search,
                include=tuple(_relative_pattern(above, pattern) for pattern in search.include),
                exclude=tuple(_relative_pattern(above, pattern) for pattern in search.exclude),
                closed=tuple(name for name in search.closed if name not in directory.parts),
            ),
            allowed=self._allowed,
            max_file_bytes=self._max_file_bytes,
        )

    @property
    def _max_file_bytes(self) -> int:
        return min(_MAX_FILE_BYTES, self._workspace.limits.max_file_bytes)

    def _read_whole(self, target: Target) -> Snapshot:
        stored = self._disk.read(target, limit=self._max_file_bytes)
        if stored is None:
            raise NotFound(f"`{target}` is gone.", path=target.key)
        return self._snapshot_factory()(target, stored)

    def _choose_engine(self) -> Engine:
        program = find_binary()
        with self._disk.open_directory(self._disk.resolve(".")) as fd:
            is_on_this_machine = fd is not None
        return Ripgrep(program=program) if program and is_on_this_machine else LiteralEngine()

    def _walk_below(self, root: str, *, hidden: bool, ignore: bool) -> TreeWalk:
        start = self._resolve_directory(root)
        return TreeWalk(disk=self._disk, start=start, allowed=self._allowed, hidden=hidden, ignore=ignore)

    def _resolve_directory(self, root: str) -> Target:
        directory = self._workspace.target(root)
        if name := "/".join(directory.parts):
            self._policy.check_read(name + "/", name, key=directory.key)
        return directory

    @property
    def _allowed(self) -> Allowed | None:
        return self._may_read if self._policy.deny or self._policy.state_dir else None

    def _may_read(self, target: Target, directory: bool) -> bool:
        name = "/".join(target.parts)
        try:
            self._policy.check_read(name + "/" if directory else name, name, key=target.key)
        except PermissionDenied:
            return False
        return True

    def _is_file(self, target: Target) -> bool:
        look = self._workspace.names.stat_entry(target)
        if look is None:
            message, action = f"There is no file or directory `{target}`.", "Check the path, or search above it."
            raise NotFound(message, path=target.key, action=action)
        if look.type == "other":
            raise NotAFile(f"`{target}` is neither a file nor a directory.", path=target.key, reason="not_a_file")
        return look.type == "file"

    def _snapshot_factory(self) -> SnapshotOf:
        """Return what makes snapshots of many files and reads each .editorconfig once, also if it does not exist."""
        charset_of = partial(self._workspace.configured_charset, read=cache(self._disk.read))
        detector = self._workspace.detector

        def make_snapshot(target: Target, stored: StoredFile) -> Snapshot:
            return Snapshot(stored.data, meta=stored.meta, configured=partial(charset_of, target), detector=detector)

        return make_snapshot


def _check_count(name: str, value: int, *, least: int) -> None:
    if value < least:
        raise InvalidArgument(f"`{name}` is {value}; it must be at least {least}.", reason="bad_limit")


def _check_search(search: Search, window: ResultWindow) -> None:
    if not search.query:
        raise InvalidArgument("The query is empty.", reason="empty_query")
    if len(search.query) > _MAX_QUERY_CHARS:
        raise InvalidArgument(f"The query has more than {_MAX_QUERY_CHARS} characters.", reason="query_too_long")
    if "\0" in search.query or any("\ud800" <= sign <= "\udfff" for sign in search.query):
        raise InvalidPattern("The query contains a character that text cannot contain.", reason="invalid_query")
    GlobFilter(search.include, search.exclude)  # refuses what cannot be read
    for name in search.types:
        canonical_type(name)
    _check_count("offset", window.offset, least=0)
    if window.limit is not None:
        _check_count("limit", window.limit, least=1)
    if not 0 <= min(window.before, window.after) <= max(window.before, window.after) <= _MAX_CONTEXT_LINES:
        raise InvalidArgument(f"The lines around a match must be 0 to {_MAX_CONTEXT_LINES}.", reason="bad_limit")


def _split_pattern(pattern: str) -> tuple[str, str]:
    """Split an absolute pattern into its directory and the rest, which is at least one name."""
    names = pattern.split("/")
    fixed = next((at for at, name in enumerate(names) if is_glob(name) or "\\" in name), len(names) - 1)
    return "/".join(names[:fixed]) or "/", "/".join(names[fixed:])


def _relative_pattern(directory: str, pattern: str) -> str:
    """Return an absolute pattern relative to a directory that it begins with, any other unchanged."""
    rest = pattern.removeprefix(directory)
    return rest if rest.startswith("/") and rest.strip("/") else pattern
