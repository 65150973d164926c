from datetime import timedelta

import pytest

from surehold.errors import AlreadyExists, InvalidArgument, NotFound, UndoConflict
from surehold.stores.base import Query
from surehold.text.hashing import sha256
from surehold.text.plan import Delete, Keep
from surehold.text.rewrite import WriteText
from surehold.text.string_edits import SnapshotEdits, StringEdit
from surehold.workspace.proposal import Absent, Exact, Proposal, Sha256
from surehold.workspace.receipt import Receipt
from workspaces import Bench, call

TEXT = b"".join(b"line %d\n" % n for n in range(1, 21))


def edit(bench: Bench, path: str, old: str, new: str) -> Receipt:
    proposal = Proposal(path=path, edit=SnapshotEdits((StringEdit(old=old, new=new),)), proof=Exact())
    return bench.workspace.write(proposal, call=call())


def test_undo_brings_back_the_bytes_and_redo_the_change(bench: Bench) -> None:
    bench.put("a", TEXT)
    change = edit(bench, "a", "line 5\n", "five\n").change_id
    history = bench.workspace.history

    history.undo(change)
    assert bench.get("a") == TEXT
    history.redo(change)
    assert bench.get("a") == TEXT.replace(b"line 5\n", b"five\n")
    history.undo()
    assert bench.get("a") == TEXT

    assert [e.call.operation for e in history.log()] == ["undo", "redo", "undo", "edit"]


def test_an_earlier_change_is_undone_and_later_ones_stay(bench: Bench) -> None:
    bench.put("a", TEXT)
    first = edit(bench, "a", "line 3\n", "three\n").change_id
    edit(bench, "a", "line 15\n", "fifteen\nand more\n")

    bench.workspace.history.undo(first)

    assert bench.get("a") == TEXT.replace(b"line 15\n", b"fifteen\nand more\n")


def test_an_undo_over_an_outside_edit_elsewhere_in_the_file_keeps_it(bench: Bench) -> None:
    bench.put("a", TEXT)
    change = edit(bench, "a", "line 10\n", "ten\n").change_id
    bench.put("a", b"outside\n" + TEXT.replace(b"line 10\n", b"ten\n"))

    bench.workspace.history.undo(change)

    assert bench.get("a") == b"outside\n" + TEXT


def test_an_undo_that_later_lines_forbid_is_refused_and_changes_nothing(bench: Bench) -> None:
    bench.put("a", TEXT)
    first = edit(bench, "a", "line 5\n", "five\n").change_id
    edit(bench, "a", "five\n", "FIVE\n")
    now = bench.get("a")

    with pytest.raises(UndoConflict):
        bench.workspace.history.undo(first)

    assert bench.get("a") == now


def test_a_change_is_undone_once(bench: Bench) -> None:
    bench.put("a", TEXT)
    change = edit(bench, "a", "line 5\n", "five\n").change_id
    bench.workspace.history.undo(change)

    with pytest.raises(InvalidArgument) as refused:
        bench.workspace.history.undo(change)

    assert refused.value.reason == "already_undone"


def test_a_change_that_stands_cannot_be_redone(bench: Bench) -> None:
    bench.put("a", TEXT)
    change = edit(bench, "a", "line 5\n", "five\n").change_id

    with pytest.raises(InvalidArgument) as refused:
        bench.workspace.history.redo(change)

    assert refused.value.reason == "not_undone"


def test_undo_without_a_name_walks_back_through_the_changes(bench: Bench) -> None:
    bench.put("a", b"0\n")
    for n in range(3):
        edit(bench, "a", f"{n}\n", f"{n + 1}\n")

    seen = list[bytes | None]()
    for _ in range(3):
        bench.workspace.history.undo()
        seen.append(bench.get("a"))

    assert seen == [b"2\n", b"1\n", b"0\n"]
    with pytest.raises(NotFound):
        bench.workspace.history.undo()


def test_creating_deleting_and_moving_can_be_undone(bench: Bench) -> None:
    write, history = bench.workspace.write, bench.workspace.history
    created = write(Proposal(path="n/a", edit=WriteText("x"), proof=Absent()), call=call("create"))
    history.undo(created.change_id)
    assert bench.get("n/a") is None

    bench.put("b", b"bytes\0")
    deleted = write(Proposal(path="b", edit=Delete(), proof=Exact()), call=call("delete"))
    history.undo(deleted.change_id)
    assert bench.get("b") == b"bytes\0"

    moved = write(Proposal(path="b", to_path="c/d", edit=Keep(), proof=Exact()), call=call("move"))
    history.undo(moved.change_id)
    assert (bench.get("b"), bench.get("c/d")) == (b"bytes\0", None)


def test_a_move_that_overwrote_a_file_is_undone_for_both(bench: Bench) -> None:
    bench.put("a", b"A")
    bench.put("b", b"B")
    proposal = Proposal(path="a", to_path="b", edit=Keep(), proof=Exact(), to_proof=Sha256(sha256(b"B")))
    moved = bench.workspace.write(proposal, call=call("move"))

    bench.workspace.history.undo(moved.change_id)

    assert (bench.get("a"), bench.get("b")) == (b"A", b"B")


def test_a_change_of_many_files_is_undone_as_one(bench: Bench) -> None:
    for name in "abc":
        bench.put(name, name.encode())
    proposals = [Proposal(path=n, edit=WriteText(n * 2), proof=Exact()) for n in "abc"]
    change = bench.workspace.write(*proposals, call=call("patch")).change_id
    bench.put("b", b"touched by another")

    with pytest.raises(UndoConflict):
        bench.workspace.history.undo(change)
    assert (bench.get("a"), bench.get("c")) == (b"aa", b"cc")

    bench.put("b", b"bb")
    bench.workspace.history.undo(change)
    assert [bench.get(n) for n in "abc"] == [b"a", b"b", b"c"]


def test_an_undo_can_be_tried_without_doing_it(bench: Bench) -> None:
    bench.put("a", b"1\n")
    change = edit(bench, "a", "1", "2").change_id

    receipt = bench.workspace.history.undo(change, dry_run=True)

    assert ("+1" in receipt.diff, bench.get("a")) == (True, b"2\n")


def test_a_deleted_file_comes_back_from_the_trash(bench: Bench) -> None:
    bench.put("a", b"precious")
    bench.workspace.write(Proposal(path="a", edit=Delete(), proof=Exact()), call=call("delete"))
    (item,) = bench.workspace.history.trash()
    assert (item.path, item.version.sha256) == ("a", sha256(b"precious"))

    bench.workspace.history.restore(item.id, to_path="elsewhere/a")
    assert bench.get("elsewhere/a") == b"precious"
    assert bench.workspace.history.trash() == ()


def test_restoring_never_overwrites(bench: Bench) -> None:
    bench.put("a", b"old")
    bench.workspace.write(Proposal(path="a", edit=Delete(), proof=Exact()), call=call("delete"))
    bench.put("a", b"new")

    with pytest.raises(AlreadyExists):
        bench.workspace.history.restore(bench.workspace.history.trash()[0].id)

    assert bench.get("a") == b"new"


def test_a_permanent_delete_is_not_in_the_trash_but_can_be_undone(bench: Bench) -> None:
    bench.put("a", b"x")
    gone = bench.workspace.write(Proposal(path="a", edit=Delete(), proof=Exact(), permanent=True), call=call("delete"))
    assert bench.workspace.history.trash() == ()

    bench.workspace.history.undo(gone.change_id)

    assert bench.get("a") == b"x"


def test_emptied_trash_is_gone(bench: Bench) -> None:
    bench.put("a", b"x")
    bench.workspace.write(Proposal(path="a", edit=Delete(), proof=Exact()), call=call("delete"))
    (item,) = bench.workspace.history.trash()

    assert bench.workspace.history.empty_trash() == 1
    with pytest.raises(NotFound) as refused:
        bench.workspace.history.restore(item.id)
    assert refused.value.reason == "trash_entry_missing"


def test_clean_up_drops_old_bytes_and_says_so_when_they_are_asked_for(bench: Bench) -> None:
    bench.put("a", b"one\n")
    old = edit(bench, "a", "one", "two").change_id
    bench.clock.now += timedelta(days=40)
    new = edit(bench, "a", "two", "three").change_id

    assert bench.workspace.history.gc(keep=timedelta(days=30), dry_run=True).blobs == 1
    assert bench.workspace.history.gc(keep=timedelta(days=30)).blobs == 1

    bench.workspace.history.undo(new)
    assert bench.get("a") == b"two\n"
    with pytest.raises(NotFound) as refused:
        bench.workspace.history.undo(old)
    assert refused.value.reason == "blob_missing"
    assert bench.workspace.history.verify().ok


def test_a_change_is_found_by_a_unique_part_of_its_id(bench: Bench) -> None:
    bench.put("a", b"1\n")
    change = edit(bench, "a", "1", "2").change_id
    edit(bench, "a", "2", "3")

    assert bench.workspace.history.show(change[2:]).id == change
    with pytest.raises(InvalidArgument):
        bench.workspace.history.show("id00")
    with pytest.raises(NotFound):
        bench.workspace.history.show("nonsense")


def test_a_large_diff_is_cut_in_the_ledger_and_whole_when_asked_for(bench: Bench) -> None:
    bench.put("a", b"".join(b"row number %d\n" % n for n in range(10_000)))
    text = "".join(f"ROW number {n}\n" for n in range(10_000))
    change = bench.workspace.write(Proposal(path="a", edit=WriteText(text), proof=Exact()), call=call("write"))

    (entry,) = bench.workspace.history.log(Query(change_id=change.change_id))
    assert (entry.change.diff_truncated, len(entry.change.diff) <= 65536) == (True, True)
    assert bench.workspace.history.diff(change.change_id).count("\n+ROW") == 10_000
