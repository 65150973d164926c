"""Finding files in a workspace: listing, globbing, searching, within its rules and limits."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from surehold.disk.base import Stored, Target
from surehold.errors import InvalidArgument, InvalidPattern, NotFound, PermissionDenied
from surehold.search.budget import SECONDS, Budget, Progress
from surehold.search.engine import Engine, Scope
from surehold.search.fallback import PythonEngine
from surehold.search.glob import Filter
from surehold.search.grep import search_one, search_text
from surehold.search.listing import Place, find_glob, list_directory
from surehold.search.paths import search_paths
from surehold.search.ripgrep import Ripgrep, TooManyRules, binary
from surehold.search.types import canonical
from surehold.search.values import GlobResult, Listing, Search, SearchResult
from surehold.text.encoding import Detector
from surehold.text.snapshot import Snapshot
from surehold.workspace.editorconfig import charset_of

if TYPE_CHECKING:
    from surehold.workspace.read_path import ReadPath

_MAX_QUERY = 10_000
_MAX_FILE_BYTES = 1 << 28
_MAX_CONTEXT = 100


class Finder:
    """Finds files, and places in them. What a rule denies is neither listed, nor matched, nor read."""

    def __init__(self, workspace: "ReadPath", *, detector: Detector | None = None, seconds: float = SECONDS) -> None:
        self._workspace = workspace
        self._disk = workspace.disk
        self._policy = workspace.policy
        self._detector = detector
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
        room: int = 1 << 40,
        after: str = "",
    ) -> Listing:
        """Return one page of a directory's entries, in path order; links are named, never followed.

        A page ends at the limit, or when the names fill so many characters.
        """
        _check_count("limit", limit, least=1)
        _check_count("max_depth", max_depth, least=1)
        return list_directory(
            self._place(path),
            recursive=recursive,
            max_depth=max_depth,
            hidden=hidden,
            ignore=ignore,
            limit=limit,
            room=room,
            after=after,
        )

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
        """Return the files and directories that a pattern matches, from `root` on, in path order."""
        _check_count("limit", limit, least=1)
        budget = Budget(self._seconds, progress=progress, cancelled=cancelled)
        return find_glob(
            self._place(root), pattern, exclude=exclude, limit=limit, hidden=hidden, ignore=ignore, budget=budget
        )

    def search(
        self,
        search: Search,
        *,
        limit: int = 100,
        after: str = "",
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> SearchResult:
        """Return one page of matches in names, or in the text of files."""
        _check_count("limit", limit, least=1)
        _check_query(search)
        search = _with_any_line_end(search)
        budget = Budget(self._seconds, progress=progress, cancelled=cancelled)
        if search.mode == "path":
            return search_paths(self._place(search.root), search, limit=limit, after=after, budget=budget)
        target = self._workspace.target(search.root)
        if self._is_file(target):
            return self._search_file(search, target, limit=limit, after=after, budget=budget)
        place = self._place(search.root)
        scope = Scope(
            disk=self._disk,
            directory=place.directory,
            search=search,
            allowed=place.allowed,
            max_file_bytes=min(_MAX_FILE_BYTES, self._workspace.limits.max_file_bytes),
        )
        try:
            return search_text(
                scope, self._engine(), snapshot_of=self._snapshot, limit=limit, after=after, budget=budget
            )
        except TooManyRules:
            return search_text(
                scope, PythonEngine(), snapshot_of=self._snapshot, limit=limit, after=after, budget=budget
            )

    def _search_file(self, search: Search, target: Target, *, limit: int, after: str, budget: Budget) -> SearchResult:
        stored = self._disk.read(target, limit=min(_MAX_FILE_BYTES, self._workspace.limits.max_file_bytes))
        if stored is None:
            raise NotFound(f"`{target}` is gone.", path=target.key)
        return search_one(
            search,
            self._engine(),
            target=target,
            snapshot=self._snapshot(target, stored),
            limit=limit,
            after=after,
            budget=budget,
        )

    def _engine(self) -> Engine:
        path = binary()
        with self._disk.held(self._disk.resolve(".")) as fd:
            is_on_this_machine = fd is not None
        return Ripgrep(path=path) if path and is_on_this_machine else PythonEngine()

    def _place(self, path: str) -> Place:
        directory = self._workspace.target(path)
        name = "/".join(directory.parts)
        if name:
            self._policy.check_read(name + "/", name, key=directory.key)
        return Place(disk=self._disk, directory=directory, allowed=self._allowed if self._has_rules() else None)

    def _has_rules(self) -> bool:
        return bool(self._policy.deny or self._policy.state_dir)

    def _allowed(self, target: Target, directory: bool) -> bool:
        name = "/".join(target.parts)
        try:
            self._policy.check_read(name + "/" if directory else name, name, key=target.key)
        except PermissionDenied:
            return False
        return True

    def _is_file(self, target: Target) -> bool:
        if not target.parts:
            return False
        above = self._disk.below(self._disk.resolve(target.root), target.parts[:-1])
        look = self._disk.looks(above, target.parts[-1:])[0]
        return look is not None and look.type == "file"

    def _snapshot(self, target: Target, stored: Stored) -> Snapshot:
        return Snapshot(
            stored.data,
            meta=stored.meta,
            configured=lambda: charset_of(self._disk, target),
            detector=self._detector,
        )


def _check_count(name: str, value: int, *, least: int) -> None:
    if value < least:
        raise InvalidArgument(f"`{name}` is {value}; it must be at least {least}.", reason="bad_limit")


def _with_any_line_end(search: Search) -> Search:
    """Let a text of several lines be found whichever way the file ends its lines."""
    if search.mode != "text" or "\n" not in search.query:
        return search
    rows = re.split(r"\r?\n", search.query)
    return replace(search, mode="regex", multiline=True, query=r"\r?\n".join(map(re.escape, rows)))


def _check_query(search: Search) -> None:
    if not search.query:
        raise InvalidArgument("There is nothing to search for.", reason="empty_query")
    if len(search.query) > _MAX_QUERY:
        raise InvalidArgument(f"The query has more than {_MAX_QUERY} characters.", reason="query_too_long")
    if "\0" in search.query or any("\ud800" <= sign <= "\udfff" for sign in search.query):
        raise InvalidPattern("The query holds a character that text cannot hold.", reason="invalid_query")
    _ = (
        Filter(search.include, search.exclude),
        [canonical(name) for name in search.types],
    )  # refuses what makes no sense
    if not 0 <= search.context <= _MAX_CONTEXT:
        raise InvalidArgument(f"`context` must be 0 to {_MAX_CONTEXT}.", reason="bad_limit")
