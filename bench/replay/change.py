"""A file that really changed, and its difference as whole lines.

The difference comes from git, not from the engine: what is judged must not choose its own questions.
"""

import difflib
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from surehold.text.snapshot import Snapshot

_HEADER = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")
_GIT = ("git", "-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "diff", "--no-index", "--no-ext-diff")
_GIT_OPTIONS = ("--no-color", "--no-textconv", "--no-renames", "--text", "--histogram", "-U3", "--", "old", "new")
_QUIET = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file before and after."""

    path: str
    before: bytes
    after: bytes


class Hunk(NamedTuple):
    """Lines `start` to `end` (0-based, half-open) of the old version become these."""

    start: int
    end: int
    new: tuple[str, ...]
    """With their terminators."""


class Difference:
    """What turns one version into the other."""

    def __init__(self, change: Change, folder: Path) -> None:
        self.change = change
        self.before = Snapshot(change.before)
        self.after = Snapshot(change.after, encoding=self.before.encoding)
        self._folder = folder

    @cached_property
    def lines(self) -> list[str]:
        """The old lines with their terminators."""
        return _decoded(self.before)

    @cached_property
    def is_odd(self) -> bool:
        """Whether lines are not what git takes for lines: lone CR ends them, or characters are wide."""
        return any(each.needs_table for each in (self.before, self.after))

    @property
    def keeps_spelling(self) -> bool:
        """Whether both versions have the same encoding and byte order mark, which no edit of text can change."""
        own = Snapshot(self.change.after).encoding
        return (own.name, own.bom) == (self.before.encoding.name, self.before.encoding.bom)

    @property
    def keeps_line_ends(self) -> bool:
        """Whether all lines end alike in both versions; operations on lines have no words for anything else."""
        old, new = self.before.lines, self.after.lines
        return old.style == new.style != "mixed" and new.final_newline >= old.final_newline

    @cached_property
    def unified(self) -> bytes:
        """The hunks as git prints them, without the names of the files."""
        (self._folder / "old").write_bytes(self.change.before)
        (self._folder / "new").write_bytes(self.change.after)
        told = subprocess.run(
            (*_GIT, *_GIT_OPTIONS), cwd=self._folder, capture_output=True, check=False, env=os.environ | _QUIET
        )
        if told.returncode != 1:
            raise RuntimeError(told.stderr.decode(errors="replace"))
        return told.stdout[told.stdout.index(b"\n@@ ") + 1 :]

    @cached_property
    def hunks(self) -> tuple[Hunk, ...]:
        """Every run of changed lines, from top to bottom; between two of them at least one line stays."""
        found = tuple(self._matched() if self.is_odd else self._parsed())
        if "".join(applied(self.lines, found)) != "".join(_decoded(self.after)):
            raise RuntimeError(f"The difference of {self.change.path} was not understood.")
        return found

    def _matched(self) -> Iterator[Hunk]:
        new = _decoded(self.after)
        matcher = difflib.SequenceMatcher(None, self.lines, new, autojunk=False)
        for tag, start, end, new_start, new_end in matcher.get_opcodes():
            if tag != "equal":
                yield Hunk(start, end, tuple(new[new_start:new_end]))

    def _parsed(self) -> Iterator[Hunk]:
        new, line, shift = _decoded(self.after), 0, 0
        for sign, rows in groupby(self.unified.split(b"\n")[:-1], key=_kind):
            if sign == b"@":
                line = _start(list(rows)[-1])
            elif sign == b" ":
                line += len(list(rows))
            else:
                signs = [row[:1] for row in rows]
                removed, added = signs.count(b"-"), signs.count(b"+")
                begin = line + shift
                if removed or added:  # else it is only the note that an unchanged last line has no terminator
                    yield Hunk(line, line + removed, tuple(new[begin : begin + added]))
                line, shift = line + removed, shift + added - removed


def applied(lines: Sequence[str], hunks: Sequence[Hunk]) -> list[str]:
    """Return the lines after some of the hunks."""
    out, at = list[str](), 0
    for hunk in hunks:
        out += (*lines[at : hunk.start], *hunk.new)
        at = hunk.end
    return [*out, *lines[at:]]


def _kind(row: bytes) -> bytes:
    """Removed and added rows belong together, and so does the note that a line has no terminator."""
    return b"-" if row[:1] in (b"-", b"+", b"\\") else row[:1]


def _start(header: bytes) -> int:
    match = _HEADER.match(header)
    if match is None:
        raise RuntimeError(f"Not a hunk: {header!r}")
    return int(match[1]) - (match[2] != b"0")


def _decoded(snapshot: Snapshot) -> list[str]:
    return [snapshot.encoding.decode(row) for row in snapshot.lines.raw]
