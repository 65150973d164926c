import os
import sqlite3
import stat
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.errors import AlreadyExists, InvalidArgument, NotFound, StateCorrupt, UndoConflict
from surehold.stores.base import Entry, LedgerQuery, Operation
from surehold.stores.upkeep import ALL_TRASH, TrashItem, TrashQuery
from surehold.text.plan import Delete, Keep
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.rewrite import WriteBytes, WriteText
from surehold.text.snapshot import sha256_hex
from surehold.workspace.past.blame import blame_file
from surehold.workspace.proposal import NO_AUTHOR, Absent, Exact, Proposal, Receipt, Sha256
from surehold.workspace.undo.recorded_changes import load_changes
from workspaces import Bench, call, make_bench

TEXT = b"".join(b"line %d\n" % n for n in range(1, 21))


def edit(bench: Bench, path: str, old: str, new: str) -> Receipt:
    proposal = Proposal(path=path, edit=SnapshotEdits((StringEdit(old=old, new=new),)), proof=Exact())
    return bench.workspace.write(proposal, call=call())


@requirement("engine:undo:itself", "promise:nothing_lost:undo")
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


@pytest.mark.parametrize("word", ["id000001", "ID000001", "id0000", "0001", "000001"])
def test_a_change_is_named_by_its_id_or_by_a_beginning_or_an_end_of_four_characters(bench: Bench, word: str) -> None:
    bench.put("a", TEXT)
    made = edit(bench, "a", "line 5\n", "five\n")

    assert made.change_id == "id000001"
    assert bench.workspace.history.show(word).entries == made.entries


def test_a_word_that_names_no_change_or_several_is_refused(bench: Bench) -> None:
    bench.put("a", TEXT)
    names = [edit(bench, "a", f"line {number}\n", "other\n").change_id for number in range(1, 13)]
    reasons = dict[str, str]()
    for word in ("001", "id0", "0013", "id00", ""):
        with pytest.raises((NotFound, InvalidArgument)) as caught:
            bench.workspace.history.show(word)
        reasons[word] = caught.value.reason
        assert caught.value.details.get("candidates", names[:10]) == names[:10]

    assert reasons == {
        "001": "no_such_change",
        "id0": "no_such_change",
        "0013": "no_such_change",
        "id00": "ambiguous_change",
        "": "empty_reference",
    }


@requirement("history:blame:lines")
def test_a_line_that_an_undo_removed_and_a_redo_brought_back_is_from_its_change(bench: Bench) -> None:
    bench.put("a", TEXT)
    change = edit(bench, "a", "line 5\n", "five\nmore\n").change_id
    history = bench.workspace.history

    history.undo(change)  # the file is a version again that was there before
    other = edit(bench, "a", "line 15\n", "fifteen\n").change_id
    history.redo(change)  # and this one is new

    names = {line.text: line.entry.change_id for line in blame_file(bench.workspace, "a") if line.entry}
    assert names == {"five": change, "more": change, "fifteen": other}


@requirement("engine:undo:selective")
def test_an_earlier_change_is_undone_and_later_ones_stay(bench: Bench) -> None:
    bench.put("a", TEXT)
    first = edit(bench, "a", "line 3\n", "three\n").change_id
    edit(bench, "a", "line 15\n", "fifteen\nand more\n")

    bench.workspace.history.undo(first)

    assert bench.get("a") == TEXT.replace(b"line 15\n", b"fifteen\nand more\n")


@requirement("engine:undo:selective")
def test_an_undo_over_an_outside_edit_elsewhere_in_the_file_keeps_it(bench: Bench) -> None:
    bench.put("a", TEXT)
    change = edit(bench, "a", "line 10\n", "ten\n").change_id
    bench.put("a", b"outside\n" + TEXT.replace(b"line 10\n", b"ten\n"))

    bench.workspace.history.undo(change)

    assert bench.get("a") == b"outside\n" + TEXT


@requirement("history:blame:lines")
def test_no_one_is_named_for_the_lines_of_an_outside_edit_that_is_not_recorded_yet(bench: Bench) -> None:
    bench.put("a", b"one\ntwo\n")
    change = edit(bench, "a", "two\n", "three\n").change_id
    bench.put("a", b"outside\none\nthree\n")

    with bench.disk.lock([bench.workspace.target("a")], timeout=0):  # as long as a writer is at work
        lines = blame_file(bench.workspace, "a")

    assert [(one.text, one.entry.change_id if one.entry else "") for one in lines] == [
        ("outside", ""),
        ("one", ""),
        ("three", change),
    ]


@requirement("engine:undo:conflict")
def test_an_undo_that_later_lines_forbid_is_refused_and_changes_nothing(bench: Bench) -> None:
    bench.put("a", TEXT)
    first = edit(bench, "a", "line 5\n", "five\n").change_id
    later = edit(bench, "a", "five\n", "FIVE\n").change_id
    now = bench.get("a")

    with pytest.raises(UndoConflict) as refused:
        bench.workspace.history.undo(first)

    assert refused.value.message == "`a` cannot be taken back: later changes touch the same lines (5)."
    assert refused.value.details == {"lines": [5], "later": [later]}
    assert bench.get("a") == now


@requirement("engine:undo:once")
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


@requirement("engine:undo:newest")
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


@requirement("engine:undo:itself")
def test_redo_without_a_name_walks_the_way_of_undo_back(bench: Bench) -> None:
    bench.put("a", b"0\n")
    for n in range(3):
        edit(bench, "a", f"{n}\n", f"{n + 1}\n")
    for _ in range(3):
        bench.workspace.history.undo()

    seen = list[bytes | None]()
    for _ in range(3):
        bench.workspace.history.redo()
        seen.append(bench.get("a"))

    assert seen == [b"1\n", b"2\n", b"3\n"]
    with pytest.raises(NotFound):
        bench.workspace.history.redo()


@requirement("engine:undo:every_operation")
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


@requirement("engine:undo:every_operation", "promise:nothing_lost:undo")
def test_a_move_that_overwrote_a_file_is_undone_for_both(bench: Bench) -> None:
    bench.put("a", b"A")
    bench.put("b", b"B")
    proposal = Proposal(path="a", to_path="b", edit=Keep(), proof=Exact(), to_proof=Sha256(sha256_hex(b"B")))
    moved = bench.workspace.write(proposal, call=call("move"))

    bench.workspace.history.undo(moved.change_id)

    assert (bench.get("a"), bench.get("b")) == (b"A", b"B")


@requirement("engine:undo:every_operation")
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


@requirement("engine:trash:list", "engine:trash:elsewhere", "promise:nothing_lost:trash")
def test_a_deleted_file_comes_back_from_the_trash(bench: Bench) -> None:
    bench.put("a", b"precious")
    bench.workspace.write(Proposal(path="a", edit=Delete(), proof=Exact()), call=call("delete"))
    (item,) = bench.workspace.history.trash()
    assert (item.path, item.version.sha256) == ("a", sha256_hex(b"precious"))

    bench.workspace.history.restore(item.id, to_path="elsewhere/a")
    assert bench.get("elsewhere/a") == b"precious"
    assert bench.workspace.history.trash() == ()


@requirement("engine:trash:restore")
def test_undoing_a_delete_takes_the_file_out_of_the_trash(bench: Bench) -> None:
    bench.put("a", b"x")
    gone = bench.workspace.write(Proposal(path="a", edit=Delete(), proof=Exact()), call=call("delete"))

    bench.workspace.history.undo(gone.change_id)
    assert bench.workspace.history.trash() == ()
    bench.workspace.history.redo(gone.change_id)

    assert [item.path for item in bench.workspace.history.trash()] == ["a"]


@requirement("engine:trash:list")
def test_what_was_deleted_stays_in_the_trash_when_an_undo_of_everything_leaves_no_file(bench: Bench) -> None:
    for text in ("first", "second"):
        bench.workspace.write(Proposal(path="a", edit=WriteText(text), proof=Absent()), call=call("create"))
        if text == "first":
            bench.workspace.write(Proposal(path="a", edit=Delete(), proof=Exact()), call=call("delete"))

    bench.workspace.history.switch_entries(bench.workspace.history.log(), "undo", author=NO_AUTHOR)

    assert bench.get("a") is None
    assert sha256_hex(b"first") in [item.version.sha256 for item in bench.workspace.history.trash()]


def test_restoring_never_overwrites(bench: Bench) -> None:
    bench.put("a", b"old")
    bench.workspace.write(Proposal(path="a", edit=Delete(), proof=Exact()), call=call("delete"))
    bench.put("a", b"new")

    with pytest.raises(AlreadyExists):
        bench.workspace.history.restore(bench.workspace.history.trash()[0].id)

    assert bench.get("a") == b"new"


@requirement("engine:trash:permanent")
def test_a_permanent_delete_is_not_in_the_trash_but_can_be_undone(bench: Bench) -> None:
    bench.put("a", b"x")
    gone = bench.workspace.write(Proposal(path="a", edit=Delete(), proof=Exact(), permanent=True), call=call("delete"))
    assert bench.workspace.history.trash() == ()

    bench.workspace.history.undo(gone.change_id)

    assert bench.get("a") == b"x"


@requirement("engine:trash:pages", "engine:trash:empty")
def test_a_trash_of_several_pages_is_searched_and_emptied_as_a_whole(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcde":
        bench.put(name, name.encode())
        bench.workspace.write(Proposal(path=name, edit=Delete(), proof=Exact()), call=call("delete"))
    pages = list[int]()
    original = bench.workspace.store.list_trash

    def list_trash(query: TrashQuery = ALL_TRASH) -> tuple[TrashItem, ...]:
        found = original(replace(query, limit=min(query.limit, 2)))
        pages.append(len(found))
        return found

    monkeypatch.setattr(bench.workspace.store, "list_trash", list_trash)
    history = bench.workspace.history
    oldest = bench.workspace.store.list_trash(TrashQuery(path="a"))[0]
    pages.clear()
    assert history.trash_item(oldest.id[1:]) == oldest
    assert pages == [2, 2, 1, 0]

    assert history.count_trash() == 5
    assert history.empty_trash() == 5
    assert (history.count_trash(), history.trash()) == (0, ())


@requirement("engine:trash:empty", "engine:trash:list")
def test_emptied_trash_is_gone(bench: Bench) -> None:
    bench.put("a", b"x")
    bench.workspace.write(Proposal(path="a", edit=Delete(), proof=Exact()), call=call("delete"))
    (item,) = bench.workspace.history.trash()

    assert bench.workspace.history.empty_trash() == 1
    with pytest.raises(NotFound) as refused:
        bench.workspace.history.restore(item.id)
    assert refused.value.reason == "trash_entry_missing"


@requirement("engine:gc:keeps")
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


@requirement("engine:history:show")
def test_a_change_is_found_by_a_unique_part_of_its_id(bench: Bench) -> None:
    bench.put("a", b"1\n")
    change = edit(bench, "a", "1", "2").change_id
    edit(bench, "a", "2", "3")

    assert bench.workspace.history.show(change[2:]).id == change
    with pytest.raises(InvalidArgument) as refused:
        bench.workspace.history.show("id00")
    assert refused.value.details == {"candidates": sorted({e.change_id for e in bench.workspace.history.log()})}
    with pytest.raises(NotFound):
        bench.workspace.history.show("nonsense")


@requirement("engine:history:diff", "engine:ledger:bounded_diff")
def test_a_large_diff_is_cut_in_the_ledger_and_whole_when_asked_for(bench: Bench) -> None:
    bench.put("a", b"".join(b"row number %d\n" % n for n in range(10_000)))
    text = "".join(f"ROW number {n}\n" for n in range(10_000))
    change = bench.workspace.write(Proposal(path="a", edit=WriteText(text), proof=Exact()), call=call("write"))

    (entry,) = bench.workspace.history.log(LedgerQuery(change_id=change.change_id))
    assert (entry.change.diff_truncated, len(entry.change.diff) <= 65536) == (True, True)
    assert bench.workspace.history.diff(change.change_id).count("\n+ROW") == 10_000


def several(*proposals: Proposal, operation: Operation) -> tuple[tuple[Proposal, ...], Operation]:
    return proposals, operation


@requirement("engine:undo:every_operation", "promise:nothing_lost:undo")
@pytest.mark.parametrize(
    ("proposals", "operation"),
    [
        several(Proposal(path="new", edit=WriteText("x"), proof=Absent()), operation="create"),
        several(Proposal(path="text", edit=WriteText("other\n"), proof=Exact()), operation="write"),
        several(Proposal(path="binary", edit=WriteBytes(b"\0other"), proof=Exact()), operation="write"),
        several(Proposal(path="damaged", edit=WriteBytes(b""), proof=Exact()), operation="write"),
        several(
            Proposal(path="damaged", edit=SnapshotEdits((StringEdit(old="a", new="b\nc"),)), proof=Exact()),
            operation="edit",
        ),
        several(Proposal(path="binary", edit=Delete(), proof=Exact()), operation="delete"),
        several(Proposal(path="binary", to_path="d/e", edit=Keep(), proof=Exact()), operation="move"),
        several(
            Proposal(path="text", to_path="d/e", edit=WriteText("other\n"), proof=Exact()),
            Proposal(path="binary", edit=Delete(), proof=Exact()),
            Proposal(path="new", edit=WriteText("x"), proof=Absent()),
            operation="patch",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_operation_is_undone_to_the_byte_and_redone(
    bench: Bench, proposals: tuple[Proposal, ...], operation: Operation
) -> None:
    files = {"text": b"one\r\ntwo", "binary": b"\0\1\2", "damaged": b"\xef\xbb\xbf\xffa\r\n\n"}
    for name, data in files.items():
        bench.put(name, data)
    paths = (*files, "new", "d/e")
    before = {path: bench.get(path) for path in paths}

    change = bench.workspace.write(*proposals, call=call(operation)).change_id
    after = {path: bench.get(path) for path in paths}
    bench.workspace.history.undo(change)
    undone = {path: bench.get(path) for path in paths}
    bench.workspace.history.redo(change)

    assert after != before
    assert undone == before
    assert {path: bench.get(path) for path in paths} == after


@requirement("engine:undo:once")
def test_a_change_that_changed_nothing_cannot_be_undone(bench: Bench) -> None:
    with pytest.raises(NotFound):
        edit(bench, "missing", "a", "b")
    (refusal,) = bench.workspace.history.log()

    with pytest.raises(InvalidArgument) as refused:
        bench.workspace.history.undo(refusal.change_id)

    assert refused.value.reason == "nothing_to_undo"


@requirement("engine:trash:restore")
def test_a_restored_file_has_its_mode_and_times_back(tmp_path: Path) -> None:
    bench = make_bench("sqlite", "local", tmp_path)
    bench.put("a", b"precious")
    (bench.root / "a").chmod(0o751)
    os.utime(bench.root / "a", ns=(1, 1_000_000_007))
    bench.workspace.write(Proposal(path="a", edit=Delete(), proof=Exact()), call=call("delete"))

    bench.workspace.history.restore(bench.workspace.history.trash()[0].id)

    found = (bench.root / "a").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_mtime_ns, bench.get("a")) == (0o751, 1_000_000_007, b"precious")
    bench.workspace.close()


@requirement("engine:trash:restore", "engine:bad_input:corrupt_blob")
def test_a_damaged_file_is_not_restored(tmp_path: Path) -> None:
    bench = make_bench("sqlite", "local", tmp_path)
    bench.put("a", b"precious")
    bench.workspace.write(Proposal(path="a", edit=Delete(), proof=Exact()), call=call("delete"))
    with sqlite3.connect(tmp_path / "state" / "state.db") as database:
        database.execute("UPDATE blobs SET data = zeroblob(length(data))")
    database.close()

    with pytest.raises(StateCorrupt):
        bench.workspace.history.restore(bench.workspace.history.trash()[0].id)

    assert list(bench.root.iterdir()) == []
    bench.workspace.close()


@requirement("engine:trash:empty")
def test_named_items_of_the_trash_are_given_up_and_the_others_stay(bench: Bench) -> None:
    for name in "abc":
        bench.put(name, name.encode())
        bench.workspace.write(Proposal(path=name, edit=Delete(), proof=Exact()), call=call("delete"))
    _, b, _ = bench.workspace.history.trash()

    assert bench.workspace.history.empty_trash([b.id]) == 1

    assert [item.path for item in bench.workspace.history.trash()] == ["c", "a"]


def mode_of(bench: Bench, path: str) -> int:
    stored = bench.disk.read(bench.disk.resolve(path), limit=1000)
    assert stored is not None
    return stored.meta.mode


@requirement("engine:undo:every_operation")
@pytest.mark.parametrize("change", [Keep(), WriteText("other\n")], ids=["moved", "moved and edited"])
def test_undoing_a_move_brings_the_mode_back_and_redo_the_new_one(bench: Bench, change: Keep | WriteText) -> None:
    bench.put("a", b"text\n")
    before = mode_of(bench, "a")
    proposal = Proposal(path="a", to_path="b", edit=change, proof=Exact(), mode=0o755)
    moved = bench.workspace.write(proposal, call=call("move")).change_id
    assert (before, mode_of(bench, "b")) == (0o644, 0o755)

    bench.workspace.history.undo(moved)
    assert (bench.get("a"), mode_of(bench, "a")) == (b"text\n", before)
    bench.workspace.history.redo(moved)

    assert mode_of(bench, "b") == 0o755


@requirement("engine:history:show", "engine:history:diff")
def test_an_empty_reference_names_no_change(bench: Bench) -> None:
    bench.put("a", b"1\n")
    edit(bench, "a", "1", "2")

    for look in (bench.workspace.history.show, bench.workspace.history.diff):
        with pytest.raises(InvalidArgument) as refused:
            look("")
        assert refused.value.reason == "empty_reference"


@requirement("engine:undo:selective", "engine:undo:newest")
def test_an_outside_edit_is_undone_when_it_is_named_and_skipped_otherwise(bench: Bench) -> None:
    bench.put("a", TEXT)
    edit(bench, "a", "line 3\n", "three\n")
    ours = TEXT.replace(b"line 3\n", b"three\n")
    bench.put("a", ours.replace(b"line 10\n", b"outside\n"))
    edit(bench, "a", "line 15\n", "fifteen\n")
    history = bench.workspace.history
    (outside,) = history.log(LedgerQuery(operation="external"))

    history.undo(outside.change_id)
    assert bench.get("a") == ours.replace(b"line 15\n", b"fifteen\n")
    history.redo()
    assert bench.get("a") == ours.replace(b"line 10\n", b"outside\n").replace(b"line 15\n", b"fifteen\n")
    history.undo()
    history.undo()

    assert bench.get("a") == TEXT.replace(b"line 10\n", b"outside\n")
    with pytest.raises(NotFound):
        history.undo()


@requirement("engine:undo:every_operation")
def test_a_file_that_was_deleted_outside_comes_back_by_undoing_that(bench: Bench) -> None:
    create = Proposal(path="a", edit=WriteText("ours"), proof=Absent())
    bench.workspace.write(create, call=call("create"))
    bench.put("a", None)
    bench.workspace.write(create, call=call("create"))
    bench.workspace.write(Proposal(path="a", edit=Delete(), proof=Exact()), call=call("delete"))
    (outside,) = bench.workspace.history.log(LedgerQuery(operation="external"))

    bench.workspace.history.undo(outside.change_id)

    assert bench.get("a") == b"ours"


@requirement("engine:undo:newest")
def test_undoing_again_and_again_asks_the_store_no_more_than_the_first_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put("a", b"0\n")
    for n in range(20):
        edit(bench, "a", f"{n}\n", f"{n + 1}\n")
    entries, asked = bench.store.list_entries, list[LedgerQuery]()

    def counted(query: LedgerQuery) -> tuple[Entry, ...]:
        asked.append(query)
        return entries(query)

    monkeypatch.setattr(bench.store, "list_entries", counted)
    counts = list[int]()
    for _ in range(20):
        asked.clear()
        bench.workspace.history.undo()
        counts.append(len(asked))

    assert (bench.get("a"), set(counts)) == (b"0\n", {counts[0]})


def test_a_refused_change_has_nothing_to_be_loaded(bench: Bench) -> None:
    with pytest.raises(NotFound):
        bench.workspace.write(Proposal(path="gone", edit=Keep(), proof=Exact()), call=call())
    (refused,) = bench.store.list_entries(LedgerQuery(limit=1))

    assert not refused.ok
    with pytest.raises(NotFound) as caught:
        load_changes(bench.store, refused.change_id)
    assert caught.value.reason == "no_such_change"
