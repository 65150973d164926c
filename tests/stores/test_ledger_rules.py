"""The rules of the ledger, each by itself."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from surehold.stores import ledger_rules
from surehold.stores.base import Call, Change, Entry, Head, Intent
from surehold.stores.ledger_rules import OutsideEdit
from surehold.stores.owner import Owner
from surehold.stores.upkeep import TrashItem
from surehold.text.snapshot import Version

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CALL = Call(tool="edit", operation="edit", writer="edit", agent="ada", session="s")


def v(name: str) -> Version:
    return Version(sha256=name, size=1)


def change(path: str = "a", before: str = "", after: str = "", **facts: object) -> Change:
    return Change(path=path, before=v(before) if before else None, after=v(after) if after else None, **facts)  # type: ignore[arg-type]


def move(to: str, displaced: str = "") -> Change:
    return change("a", "1", "1", to_path=to, displaced=v(displaced) if displaced else None)


def intent(*changes: Change, call: Call = CALL) -> Intent:
    return Intent(id="c1", call=call, changes=changes, owner=Owner(host="h", boot="", pid=1, started=""), began="t")


def head(path: str, name: str, age: float = 0) -> Head:
    timestamp = (NOW - timedelta(seconds=age)).isoformat()
    return Head(path=path, version=v(name) if name else None, writer="edit", seq=1, timestamp=timestamp)


def test_each_path_of_some_changes_is_named_once() -> None:
    assert ledger_rules.touched_paths([change("a", "1", "2")]) == ("a",)
    assert ledger_rules.touched_paths([move("b")]) == ("a", "b")
    assert ledger_rules.touched_paths([change("c"), move("b"), change("b", "1", "2"), change("a")]) == ("c", "a", "b")


def test_an_outside_edit_is_what_the_ledger_did_not_know_of_the_first_version() -> None:
    first, then = change("a", "2", "3"), change("a", "3", "4")
    known, same, gone = head("a", "1"), head("a", "2"), head("a", "")

    def found(one: Head | None, *changes: Change) -> list[OutsideEdit]:
        return [*ledger_rules.find_outside_edits(intent(*changes), {"a": one})]

    assert found(known, first, then) == [OutsideEdit(head=known, found=v("2"))]
    assert found(same, first, then) == found(None, first) == []
    assert found(known, change("a", "", "3")) == [OutsideEdit(head=known, found=None)]
    assert found(gone, change("a", "", "3")) == []
    assert found(gone, first) == [OutsideEdit(head=gone, found=v("2"))]
    other = head("b", "9")
    moved = ledger_rules.find_outside_edits(intent(move("b", "8")), {"a": head("a", "1"), "b": other})
    assert [*moved] == [OutsideEdit(head=other, found=v("8"))]


@pytest.mark.parametrize(
    ("age", "fence", "found", "known", "is_stale"),
    [
        (1, 2, "old", True, True),
        (-1, 2, "old", True, True),
        (2, 2, "old", True, False),
        (-2, 2, "old", True, False),
        (1, 2, "old", False, False),
        (1, 2, "", True, False),
        (0, 0, "old", True, False),
        (0, -1, "old", True, False),
    ],
    ids=["recent", "of a clock set back", "older", "of a clock set far back", "not ours", "gone", "no fence", "less"],
)
def test_an_older_version_of_ours_is_a_stale_read_for_a_while(
    age: float, fence: float, found: str, known: bool, is_stale: bool
) -> None:
    edit = OutsideEdit(head=head("a", "new", age), found=v(found) if found else None)

    def knows(path: str, sha256: str) -> bool:
        return known and (path, sha256) == ("a", "old")

    assert ledger_rules.is_stale_read(edit, now=NOW, fence=fence, knows=knows) is is_stale


@pytest.mark.parametrize(
    ("argv", "cut"),
    [
        (("rm", "a"), ("rm", "a")),
        (("x" * 999, "y"), ("x" * 999, "…")),
        (("x" * 1000,), ("x" * 1000 + "…",)),
        (("x" * 998, "yz", "z"), ("x" * 998, "y…")),
        (("x" * 900, "y" * 99, "z"), ("x" * 900, "y" * 99 + "…")),
    ],
)
def test_only_the_first_entry_of_a_change_has_all_of_a_long_command(
    argv: tuple[str, ...], cut: tuple[str, ...]
) -> None:
    call = Call(tool="run", operation="run", writer="run", argv=argv)
    rows = [*ledger_rules.entries_of(intent(*map(change, "abc"), call=call), timestamp="t")]

    assert [one.call.argv for one in rows] == [argv, cut, cut]
    assert [(one.change_id, one.index, one.timestamp, one.change.path) for one in rows] == [
        ("c1", 0, "t", "a"),
        ("c1", 1, "t", "b"),
        ("c1", 2, "t", "c"),
    ]


def test_what_other_programs_did_has_entries_that_can_be_named() -> None:
    outside = ledger_rules.outside_entry("a", v("1"), None, seq=7, timestamp="t")
    assert outside == Entry(change_id="outside-7", timestamp="t", call=ledger_rules.EXTERNAL, change=change("a", "1"))

    kept = ledger_rules.kept_entry("a", v("1"), v("2"), seq=8, timestamp="t")
    assert (kept.change_id, kept.change) == ("kept-8", change("a", "1", "2", trash_id="kept-8"))
    assert kept.message.startswith("Another program wrote these bytes")


def test_a_clean_up_says_up_to_when_and_makes_no_head() -> None:
    entry = ledger_rules.gc_entry(blobs=2, sightings=3, before="2026-01-01", seq=9, timestamp="t")

    assert entry.message == "Removed 2 blobs and 3 sightings that only entries before 2026-01-01 needed."
    assert (entry.change_id, ledger_rules.pruned_before(entry)) == ("gc-9", "2026-01-01")
    said = Entry(change_id="c", timestamp="t", call=CALL, change=change(), message=entry.message)
    assert ledger_rules.pruned_before(said) == ""
    assert [ledger_rules.makes_heads(one) for one in (entry, said)] == [False, True]
    refused = Entry(change_id="c", timestamp="t", call=CALL, change=change(), ok=False)
    assert not ledger_rules.makes_heads(refused)


def test_the_trash_gets_what_was_deleted_or_displaced() -> None:
    def item(one: Change) -> TrashItem | None:
        return ledger_rules.trash_item(Entry(change_id="c1", timestamp="t", call=CALL, change=one))

    facts: dict[str, Any] = {"id": "t1", "change_id": "c1", "trashed": "t", "agent": "ada", "session": "s"}
    assert item(change("a", "1", trash_id="t1")) == TrashItem(path="a", version=v("1"), **facts)
    assert item(change("a", "1", "1", to_path="b", displaced=v("2"), trash_id="t1")) == TrashItem(
        path="b", version=v("2"), **facts
    )
    assert item(change("a", "1")) is None
    assert item(change("a", "", "1", trash_id="t1")) is None
    assert item(change("a", "1", "1", to_path="b", trash_id="t1")) is None


def test_a_change_names_what_it_switched_and_which_bytes_it_needs() -> None:
    assert ledger_rules.switched_changes(change(undoes=("c2#0", "c1#1", "c2#3"))) == ("c2", "c1")
    assert ledger_rules.version_hashes(change("a", "1", "2")) == ["1", "2"]
    assert ledger_rules.version_hashes(change()) == []
    everything = change("a", "1", "2", to_path="b", displaced=v("3"), proposal_sha256="4")
    assert ledger_rules.version_hashes(everything) == ["1", "2", "3", "4"]
