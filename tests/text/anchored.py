"""What the tests of anchored edits share: a file with its anchors, an edit, and a refused edit."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from surehold.errors import LineEditError
from surehold.text.anchored.edits import AnchoredEdits
from surehold.text.anchored.lines import AnchoredLine, ShownVersion, anchor_lines_at
from surehold.text.anchored.operations import (
    DeleteLine,
    DeleteRange,
    InsertAfter,
    InsertBefore,
    Operation,
    ReplaceLine,
    ReplaceRange,
)
from surehold.text.plan import EditPlan
from surehold.text.snapshot import Snapshot


def shown_version(snapshot: Snapshot, **more: Any) -> ShownVersion:
    """Return a version that was shown and whose bytes are kept."""
    return ShownVersion(sha256=snapshot.sha256, load=lambda: snapshot.data, **more)


@dataclass(frozen=True)
class File:
    """One version of a file; lines are counted from 1."""

    data: bytes

    @cached_property
    def snapshot(self) -> Snapshot:
        return Snapshot(self.data)

    @cached_property
    def rows(self) -> dict[int, AnchoredLine]:
        return anchor_lines_at(self.snapshot, range(1, len(self.snapshot.lines) + 1))

    def anchor(self, line: int) -> str:
        """Return what a caller copies: `118#5da3f1.7`."""
        return self.rows[line].anchor

    def hash(self, line: int) -> str:
        return self.rows[line].hash

    def row(self, line: int) -> str:
        return str(self.rows[line])

    def shown(self, *spans: tuple[int, int]) -> ShownVersion:
        """Return what a session knows that was shown these lines, or all of them."""
        return shown_version(self.snapshot, spans=spans or ((1, len(self.rows)),))

    def reread(self) -> ShownVersion:
        """Return what a session knows that was shown all lines with their anchors, and nothing else."""
        return shown_version(self.snapshot, spans=((1, len(self.rows)),), anchored=((1, len(self.rows)),))

    def written(self, *anchored: tuple[int, int]) -> ShownVersion:
        """Return what a session knows that wrote this version itself: all lines, but only these by their anchors."""
        return shown_version(self.snapshot, spans=((1, len(self.rows)),), anchored=anchored)

    def plan(self, *operations: Operation, **settings: Any) -> EditPlan:
        return AnchoredEdits(operations=operations, **settings).plan(Snapshot(self.data))

    def edit(self, *operations: Operation, **settings: Any) -> bytes:
        return self.plan(*operations, **settings).after.data

    def refuse(self, *operations: Operation, **settings: Any) -> LineEditError:
        with pytest.raises(LineEditError) as caught:
            self.plan(*operations, **settings)
        return caught.value


def words(text: str) -> File:
    """Return a file with one word on every line."""
    return File("".join(f"{word}\n" for word in text.split()).encode())


def lines(count: int) -> File:
    """Return a file of distinct lines."""
    return File(b"".join(b"line number %d\n" % number for number in range(1, count + 1)))


def on_line(op: str, anchor: str) -> Operation:
    """Return the single-line operation of that name."""
    if op == "delete_line":
        return DeleteLine(hash=anchor)
    kinds = {each.op: each for each in (ReplaceLine, InsertAfter, InsertBefore)}
    return kinds[op](hash=anchor, content="x")


def on_range(op: str, start: str, end: str) -> Operation:
    """Return the range operation of that name."""
    if op == "delete_range":
        return DeleteRange(start_hash=start, end_hash=end)
    return ReplaceRange(start_hash=start, end_hash=end, content="x")
