"""Undo follows files, leaves later work alone, and says truly what must come first."""

import stat
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.errors import InvalidArgument, UndoConflict
from surehold.stores.base import LedgerQuery
from surehold.text.plan import Delete, Keep
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import sha256_hex
from surehold.workspace.access.permission import Approval, Permission
from surehold.workspace.history import History
from surehold.workspace.past.selectors import Selectors
from surehold.workspace.proposal import Absent, Exact, Proposal, Sha256
from workspaces import Bench, call, make_bench

TEXT = b"one\ntwo\nthree\n"


def edit(bench: Bench, name: str, old: str, new: str, *, agent: str = "") -> str:
    proposal = Proposal(path=name, edit=SnapshotEdits((StringEdit(old=old, new=new),)), proof=Exact())
    return bench.workspace.write(proposal, call=call(agent=agent)).change_id


def move(bench: Bench, name: str, to_name: str) -> str:
    proposal = Proposal(path=name, to_path=to_name, edit=Keep(), proof=Exact())
    return bench.workspace.write(proposal, call=call("move")).change_id


def move_over(bench: Bench, name: str, to_name: str, *, agent: str = "") -> str:
    proposal = Proposal(path=name, to_path=to_name, edit=Keep(), proof=Exact(), to_proof=Exact())
    return bench.workspace.write(proposal, call=call("move", agent=agent)).change_id


def create(bench: Bench, name: str, text: str, *, agent: str = "") -> str:
    proposal = Proposal(path=name, edit=WriteText(text), proof=Absent())
    return bench.workspace.write(proposal, call=call("create", agent=agent)).change_id


def delete(bench: Bench, name: str) -> str:
    return bench.workspace.write(Proposal(path=name, edit=Delete(), proof=Exact()), call=call("delete")).change_id


def refusal_of(bench: Bench, change_id: str = "") -> UndoConflict:
    with pytest.raises(UndoConflict) as refused:
        bench.workspace.history.undo(change_id)
    return refused.value


@requirement("engine:undo:moves")
def test_an_edit_is_undone_and_redone_where_an_undone_move_put_the_file(bench: Bench) -> None:
    bench.put("f", TEXT)
    moved, edited = move(bench, "f", "g"), edit(bench, "g", "two", "TWO")
    history = bench.workspace.history

    history.undo(moved)
    assert (bench.get("f"), bench.get("g")) == (b"one\nTWO\nthree\n", None)
    history.undo(edited)
    assert bench.get("f") == TEXT
    history.redo(edited)
    assert bench.get("f") == b"one\nTWO\nthree\n"
    history.redo(moved)
    assert (bench.get("f"), bench.get("g")) == (None, b"one\nTWO\nthree\n")
    history.undo(edited)
    assert bench.get("g") == TEXT


@requirement("engine:undo:moves")
def test_an_edit_is_undone_where_a_later_move_put_the_file(bench: Bench) -> None:
    bench.put("f", TEXT)
    edited = edit(bench, "f", "two", "TWO")
    move(bench, "f", "g")
    move(bench, "g", "deep/h")

    bench.workspace.history.undo(edited)

    assert (bench.get("f"), bench.get("g"), bench.get("deep/h")) == (None, None, TEXT)


@requirement("engine:undo:moves", "engine:undo:advice")
def test_a_name_that_another_file_has_by_now_is_a_conflict_that_names_that_file(bench: Bench) -> None:
    bench.put("f", TEXT)
    moved, newer = move(bench, "f", "g"), create(bench, "f", "unrelated")

    refused = refusal_of(bench, moved)

    assert refused.message == "`f` cannot be taken back: another file has that name now."
    assert (refused.details, refused.action) == ({"later": [newer]}, f"First, in this order: surehold undo {newer}.")
    assert (bench.get("f"), bench.get("g")) == (b"unrelated", TEXT)
    bench.workspace.history.undo(newer)
    bench.workspace.history.undo(moved)
    assert (bench.get("f"), bench.get("g")) == (TEXT, None)


@requirement("engine:undo:advice")
def test_only_the_changes_in_the_way_are_named_newest_first(bench: Bench) -> None:
    bench.put("f", TEXT)
    first = edit(bench, "f", "two", "2")
    edit(bench, "f", "one", "1")
    second = edit(bench, "f", "2", "II")
    edit(bench, "f", "three", "3")
    gone = delete(bench, "f")

    refused = refusal_of(bench, first)

    assert refused.details["later"] == [gone, second]
    for change_id in (gone, second, first):
        bench.workspace.history.undo(change_id)
    assert bench.get("f") == b"1\ntwo\n3\n"


@requirement("engine:undo:advice")
def test_a_file_that_was_deleted_and_created_again_is_another_file(bench: Bench) -> None:
    bench.put("f", TEXT)
    edited = edit(bench, "f", "two", "TWO")
    gone, again = delete(bench, "f"), create(bench, "f", "one\nTWO\nthree\n")

    assert refusal_of(bench, edited).details["later"] == [again, gone]
    assert bench.get("f") == b"one\nTWO\nthree\n"


@requirement("engine:undo:advice")
def test_the_advice_names_an_undo_that_must_be_redone_first(bench: Bench) -> None:
    """The name of a deleted file was given back to an older one by undoing: that undo is in the way."""
    bench.put("f", TEXT)
    moved, newer = move(bench, "f", "g"), create(bench, "f", "newer")
    gone = delete(bench, "f")
    bench.workspace.history.undo(moved)

    refused = refusal_of(bench, gone)

    assert refused.action == f"First, in this order: surehold redo {moved}."
    bench.workspace.history.redo(moved)
    for change_id in (gone, newer, moved):
        bench.workspace.history.undo(change_id)
    assert (bench.get("f"), bench.get("g")) == (TEXT, None)


@requirement("engine:undo:adjacent")
@pytest.mark.parametrize("final", [b"\n", b""], ids=["terminated", "unterminated"])
def test_edits_of_adjacent_lines_are_undone_in_either_order(bench: Bench, final: bytes) -> None:
    text = TEXT.rstrip() + final
    for name, lines in (("a", ("one", "two")), ("b", ("three", "two")), ("c", ("two", "one"))):
        bench.put(name, text)
        first, _ = (edit(bench, name, line, line.upper()) for line in lines)
        bench.workspace.history.undo(first)
        assert bench.get(name) == text.replace(lines[1].encode(), lines[1].upper().encode())


@requirement("engine:undo:adjacent")
def test_an_outside_edit_of_the_next_line_is_kept(bench: Bench) -> None:
    bench.put("a", b"one\ntwo\n")
    change = edit(bench, "a", "one", "1")
    bench.put("a", b"1\noutside\n")

    bench.workspace.history.undo(change)

    assert bench.get("a") == b"one\noutside\n"


@requirement("engine:undo:advice")
def test_an_outside_edit_of_the_same_lines_is_said_to_be_one(bench: Bench) -> None:
    bench.put("a", TEXT)
    change = edit(bench, "a", "two", "2")
    bench.put("a", b"one\noutside\nthree\n")

    refused = refusal_of(bench, change)

    assert refused.message == "`a` cannot be taken back: an outside edit touches the same lines (2)."
    (outside,) = bench.workspace.history.log(LedgerQuery(operation="external"))
    assert refused.details["later"] == [outside.change_id]
    bench.workspace.history.undo(outside.change_id)
    bench.workspace.history.undo(change)
    assert bench.get("a") == TEXT


@requirement("engine:undo:advice")
def test_a_recorded_outside_edit_is_named_and_undone_like_any_change(bench: Bench) -> None:
    bench.put("a", TEXT)
    change = edit(bench, "a", "two", "2")
    bench.put("a", b"one\noutside\nthree\n")
    edit(bench, "a", "three", "3")
    (outside,) = bench.workspace.history.log(LedgerQuery(operation="external"))

    refused = refusal_of(bench, change)

    assert refused.message == "`a` cannot be taken back: an outside edit touches the same lines (2)."
    assert refused.details["later"] == [outside.change_id]
    bench.workspace.history.undo(outside.change_id)
    bench.workspace.history.undo(change)
    assert bench.get("a") == b"one\ntwo\n3\n"


@requirement("engine:undo:advice")
def test_a_file_that_was_removed_outside_is_said_to_be(bench: Bench) -> None:
    bench.put("a", TEXT)
    change = edit(bench, "a", "two", "2")
    bench.put("a", None)

    refused = refusal_of(bench, change)

    assert refused.message == "`a` cannot be taken back: it was removed outside of Surehold."
    (outside,) = refused.details["later"]
    bench.workspace.history.undo(outside)
    assert bench.get("a") == b"one\n2\nthree\n"
    bench.workspace.history.undo(change)
    bench.put("a", None)
    with pytest.raises(UndoConflict) as again:
        bench.workspace.history.redo(change)
    assert again.value.message == "`a` cannot be made again: it was removed outside of Surehold."


@requirement("engine:undo:advice", "engine:undo:moves")
def test_an_unknown_file_or_a_directory_at_the_old_name_is_never_overwritten(tmp_path: Path) -> None:
    bench = make_bench("sqlite", "local", tmp_path)
    bench.put("f", TEXT)
    gone = delete(bench, "f")
    bench.put("f", b"foreign")

    refused = refusal_of(bench, gone)
    assert refused.message == "`f` cannot be taken back: a file that was made outside of Surehold has that name now."
    (outside,) = bench.workspace.history.log(LedgerQuery(operation="external"))
    assert refused.details["later"] == [outside.change_id]
    assert bench.get("f") == b"foreign"

    bench.put("f", None)
    (bench.root / "f").mkdir()
    assert refusal_of(bench, gone).message == "`f` cannot be taken back: a directory has that name now."
    (bench.root / "f").rmdir()
    bench.workspace.history.undo(gone)
    assert bench.get("f") == TEXT
    bench.workspace.close()


@requirement("engine:undo:newest", "engine:undo:advice")
def test_undo_without_a_name_says_which_change_can_be_undone_instead(bench: Bench) -> None:
    for name in "abc":
        bench.put(name, TEXT)
    possible, blocked, newest = (edit(bench, name, "two", "2") for name in "abc")
    bench.put("b", None)
    bench.put("c", None)

    refused = refusal_of(bench)

    assert refused.details["candidate"] == possible
    assert refused.action.endswith(f" The newest change that can be undone now: surehold undo {possible}")
    assert {newest, blocked} & set(refused.action.split()) == set()


@requirement("engine:undo:once")
def test_what_undid_and_redid_a_change_is_told_for_each_of_them(bench: Bench) -> None:
    bench.put("a", TEXT)
    history = bench.workspace.history
    change = edit(bench, "a", "two", "2")
    undo, redo, last = (act(change).change_id for act in (history.undo, history.redo, history.undo))

    assert [history.undone_by(one) for one in (change, undo, redo, last)] == [last, redo, last, ""]
    with pytest.raises(InvalidArgument) as refused:
        history.undo(redo)
    assert refused.value.reason == "already_undone"
    history.undo(last)
    assert (bench.get("a"), history.undone_by(change)) == (b"one\n2\nthree\n", "")


@requirement("engine:undo:advice")
def test_an_undo_whose_content_a_person_changed_is_a_change_of_its_own(bench: Bench) -> None:
    bench.put("a", TEXT)
    first = edit(bench, "a", "two", "2")
    second = edit(bench, "a", "three", "3")
    person = Permission(
        "default", approver=lambda request: Approval(allowed=True, contents={request.files[0].path: "1\n2\nIII\n"})
    )
    undo = History(bench.workspace, permission=person).undo(second)
    assert (undo.user_modified, bench.get("a")) == (True, b"1\n2\nIII\n")

    bench.workspace.history.undo(first)
    assert bench.get("a") == b"1\ntwo\nIII\n"


@requirement("engine:undo:every_operation")
def test_a_move_over_a_file_that_was_edited_before_is_undone_for_both(bench: Bench) -> None:
    bench.put("a", b"A\n")
    bench.put("b", TEXT)
    edited = edit(bench, "b", "two", "2")
    over = Proposal(path="a", to_path="b", edit=Keep(), proof=Exact(), to_proof=Sha256(sha256_hex(b"one\n2\nthree\n")))
    moved = bench.workspace.write(over, call=call("move")).change_id

    assert refusal_of(bench, edited).details["later"] == [moved]
    bench.workspace.history.undo(moved)
    bench.workspace.history.undo(edited)
    assert (bench.get("a"), bench.get("b"), bench.workspace.history.trash()) == (b"A\n", TEXT, ())


@requirement("engine:undo:any_order")
def test_a_selection_whose_file_meets_an_equal_file_of_the_same_name_is_undone_whole(tmp_path: Path) -> None:
    bench = make_bench("sqlite", "local", tmp_path)
    history = bench.workspace.history
    bench.put("b", b"other\n")
    created = create(bench, "a", "one\n", agent="ada")
    history.undo(created)
    history.restore(history.trash()[0].id)
    edited = edit(bench, "a", "one", "two", agent="ada")
    moved = move_over(bench, "a", "b", agent="ada")
    history.redo(created)

    history.undo_selected(Selectors(agent="ada"))

    assert (bench.get("a"), bench.get("b")) == (b"one\n", b"other\n")
    assert all(history.undone_by(one) for one in (created, edited, moved))
    bench.workspace.close()


@requirement("engine:undo:any_order")
def test_a_change_of_the_mode_of_a_new_file_is_undone(tmp_path: Path) -> None:
    bench = make_bench("sqlite", "local", tmp_path)
    create(bench, "a", "one\n")
    (bench.root / "a").chmod(0o640)
    proposal = Proposal(path="a", edit=Keep(), proof=Exact(), mode=0o755)
    changed = bench.workspace.write(proposal, call=call()).change_id

    bench.workspace.history.undo(changed)

    assert stat.S_IMODE((bench.root / "a").stat().st_mode) == 0o640
    assert bench.workspace.history.undone_by(changed)
    deleted = delete(bench, "a")
    bench.workspace.history.undo(deleted)
    assert stat.S_IMODE((bench.root / "a").stat().st_mode) == 0o640
    bench.workspace.close()


@requirement("engine:undo:advice")
def test_advice_that_takes_the_change_back_by_itself_says_instead(tmp_path: Path) -> None:
    bench = make_bench("sqlite", "local", tmp_path)
    history, words = bench.workspace.history, Selectors(agent="ada")
    bench.put("a", TEXT)
    bench.put("c", b"C\n")
    moved = move_over(bench, "a", "c", agent="ada")
    create(bench, "a", "another\n", agent="ada")
    history.undo_selected(words)
    again = history.redo_selected(words).change_id

    with pytest.raises(UndoConflict) as caught:
        history.undo(moved)

    assert caught.value.action == f"Instead, in this order: surehold undo {again}."
    history.undo(again)
    assert history.undone_by(moved)
    assert (bench.get("a"), bench.get("c")) == (TEXT, b"C\n")
    bench.workspace.close()


@requirement("history:undo:removed_outside")
def test_a_selection_is_undone_also_where_another_program_removed_what_it_made(tmp_path: Path) -> None:
    bench = make_bench("sqlite", "local", tmp_path)
    history, words = bench.workspace.history, Selectors(agent="ada")
    bench.put("a", TEXT)
    made = create(bench, "new", "one\n", agent="ada")
    edit(bench, "a", "two", "2", agent="ada")
    bench.put("new", None)

    undone = history.undo_selected(words)

    assert [one.path for one in undone.files] == ["a"]
    assert (bench.get("a"), bench.get("new"), bool(history.undone_by(made))) == (TEXT, None, True)
    history.redo_selected(words)
    assert (bench.get("a"), bench.get("new")) == (b"one\n2\nthree\n", None)
    create(bench, "new", "again\n", agent="ada")
    history.undo_selected(words)
    assert (bench.get("a"), bench.get("new")) == (TEXT, None)
    bench.workspace.close()
