"""The lines of outside edits, which are counted when they are asked for."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from doubles.memory_store import MemoryStore
from spec.marks import requirement
from surehold.stores.base import Blob, Change, Entry
from surehold.stores.ledger_rules import outside_entry
from surehold.text.snapshot import Snapshot, Version
from surehold.workspace.undo.recorded_changes import count_lines, with_line_counts
from workspaces import call

LARGEST = 256 * 1024


def counted(store: MemoryStore, before: Version | None, after: Version | None) -> tuple[int, int]:
    change = with_line_counts(store, outside_entry("a", before, after, seq=1, timestamp="")).change
    return change.added, change.removed


@requirement("outside:record:counted")
def test_lines_of_an_outside_edit_are_counted_where_both_versions_are_kept_and_small() -> None:
    store = MemoryStore(clock=lambda: datetime.now(UTC))
    texts = [b"one\n", b"one\ntwo\n", b"x" * (LARGEST - 1) + b"\n", b"x" * LARGEST + b"\n"]
    for text in texts:
        store.keep_blob(Blob(data=text, sha256=Snapshot(text).sha256))
    one, two, largest, larger = (Snapshot(text).version for text in texts)
    assert one
    lost = Snapshot(b"not kept\n").version

    assert counted(store, one, two) == (1, 0)
    assert counted(store, two, one) == (0, 1)
    assert counted(store, None, two) == (2, 0)
    assert counted(store, two, None) == (0, 2)
    assert counted(store, one, largest) == (1, 1)
    assert counted(store, one, larger) == (0, 0)
    assert counted(store, lost, two) == counted(store, two, lost) == (0, 0)
    assert counted(store, replace(one, kind="link"), two) == (0, 0)


@pytest.mark.parametrize(
    ("added", "removed", "diff", "counted"),
    [
        (0, 0, "--- a\n+++ a\n@@ -1 +1,2 @@\n-1\n+2\n+3\n", (2, 1)),
        (5, 0, "--- a\n+++ a\n@@ -1 +1,2 @@\n+2\n", (5, 0)),
        (0, 7, "--- a\n+++ a\n@@ -1 +1,2 @@\n-2\n", (0, 7)),
        (5, 7, "", (5, 7)),
        (0, 0, "", (0, 0)),
    ],
    ids=["all of the diff", "a cut one that adds", "a cut one that removes", "none", "nothing"],
)
def test_lines_are_counted_by_the_plan_where_the_diff_is_cut(
    added: int, removed: int, diff: str, counted: tuple[int, int]
) -> None:
    change = Change(path="a", before=None, after=None, diff=diff, added=added, removed=removed)
    assert count_lines(Entry(change_id="c", timestamp="t", call=call(), change=change)) == counted
