"""A file that was removed or damaged, and brought back, is the same file: what was done to it before can still be undone."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import permutations

import pytest

from spec.marks import requirement
from surehold.errors import NotFound, UndoConflict
from surehold.stores.base import LedgerQuery
from surehold.text.plan import Delete
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.workspace.past.blame import blame_file
from surehold.workspace.past.net_diff import net_diff
from surehold.workspace.past.selectors import Selectors
from surehold.workspace.past.versions import revert_files
from surehold.workspace.proposal import CallAuthor, Exact, Proposal
from workspaces import Bench, call

TEXT = b"one\ntwo\nthree\n"
EDITED = b"one\nTWO\nthree\n"
ADA = Selectors(agent="ada")


def edit(bench: Bench, name: str, old: str, new: str, *, agent: str = "ada") -> str:
    proposal = Proposal(path=name, edit=SnapshotEdits((StringEdit(old=old, new=new),)), proof=Exact())
    return bench.workspace.write(proposal, call=call(agent=agent)).change_id


def put_noticed(bench: Bench, content: bytes | None) -> None:
    """Let another program change the file, and notice that."""
    bench.put("f", content)
    with suppress(NotFound):
        bench.workspace.read("f")


def delete(bench: Bench) -> str:
    return bench.workspace.write(Proposal(path="f", edit=Delete(), proof=Exact()), call=call("delete")).change_id


def restore(bench: Bench, *, to_path: str = "") -> str:
    return bench.workspace.history.restore(bench.workspace.history.trash()[0].id, to_path=to_path).change_id


def revert(bench: Bench) -> str:
    return revert_files(bench.workspace, ["f"], None, author=CallAuthor(agent="ben")).change_id


def delete_and_restore(bench: Bench) -> list[str]:
    return [delete(bench), restore(bench)]


def delete_and_revert(bench: Bench) -> list[str]:
    return [delete(bench), revert(bench)]


def remove_outside_and_revert(bench: Bench) -> list[str]:
    bench.put("f", None)
    return [revert(bench)]


def damage_and_revert(bench: Bench) -> list[str]:
    bench.put("f", b"one\ndamage\nthree\n")
    return [revert(bench)]


def damage_twice_and_revert(bench: Bench) -> list[str]:
    bench.put("f", b"one\ndamage\nthree\n")
    bench.workspace.read("f")
    bench.put("f", b"nothing\n")
    return [revert(bench)]


WAYS: Sequence[Callable[[Bench], list[str]]] = (
    delete_and_restore,
    delete_and_revert,
    remove_outside_and_revert,
    damage_and_revert,
    damage_twice_and_revert,
)


@requirement("history:undo:brought_back")
@pytest.mark.parametrize("bring_back", WAYS)
def test_what_was_done_before_is_undone_and_made_again_by_itself(
    bench: Bench, bring_back: Callable[[Bench], list[str]]
) -> None:
    bench.put("f", TEXT)
    edited = edit(bench, "f", "two", "TWO")
    bring_back(bench)
    assert bench.get("f") == EDITED

    bench.workspace.history.undo(edited)
    assert bench.get("f") == TEXT
    bench.workspace.history.redo(edited)
    assert bench.get("f") == EDITED


@requirement("history:undo:brought_back")
@pytest.mark.parametrize("bring_back", WAYS)
def test_a_selection_takes_it_back_and_its_difference_shows_nothing_else(
    bench: Bench, bring_back: Callable[[Bench], list[str]]
) -> None:
    bench.put("f", TEXT)
    edit(bench, "f", "two", "TWO")
    bring_back(bench)
    edit(bench, "f", "three", "3", agent="ben")

    (net,) = net_diff(bench.workspace, bench.workspace.history.select_done(ADA))
    assert [row for row in net.diff.splitlines() if row[0] in "+-"][2:] == ["-two", "+TWO"]
    bench.workspace.history.undo_selected(ADA)
    assert bench.get("f") == b"one\ntwo\n3\n"
    bench.workspace.history.redo_selected(ADA)
    assert bench.get("f") == b"one\nTWO\n3\n"


@requirement("history:undo:brought_back")
@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_in_any_order_of_undoing_the_file_is_what_it_was_before(bench: Bench, order: Sequence[int]) -> None:
    bench.put("f", TEXT)
    changes = [edit(bench, "f", "two", "TWO"), *delete_and_restore(bench), edit(bench, "f", "three", "3")]
    left = [changes[number] for number in order]

    while left:
        done = next(one for one in left if undoes(bench, one))
        left.remove(done)

    assert bench.get("f") == TEXT


def undoes(bench: Bench, change: str) -> bool:
    """Undo a change, unless others must be undone first."""
    try:
        bench.workspace.history.undo(change)
    except UndoConflict:
        return False
    return True


@requirement("history:undo:brought_back")
def test_it_is_followed_to_the_name_under_which_it_came_back(bench: Bench) -> None:
    bench.put("f", TEXT)
    edited, deleted = edit(bench, "f", "two", "TWO"), delete(bench)
    restored = restore(bench, to_path="g")

    history = bench.workspace.history
    history.undo(edited)
    assert (bench.get("f"), bench.get("g")) == (None, TEXT)
    history.undo(restored)
    assert (bench.get("f"), bench.get("g")) == (None, None)
    history.undo(deleted)
    assert (bench.get("f"), bench.get("g")) == (TEXT, None)
    for change in (deleted, restored, edited):
        history.redo(change)
    assert (bench.get("f"), bench.get("g")) == (None, EDITED)


@requirement("history:undo:brought_back")
def test_a_removal_is_not_undone_while_the_file_is_back(bench: Bench) -> None:
    bench.put("f", TEXT)
    edited, deleted = edit(bench, "f", "two", "TWO"), delete(bench)
    restored = restore(bench)
    bench.workspace.history.undo(edited)

    with pytest.raises(UndoConflict) as refused:
        bench.workspace.history.undo(deleted)

    assert refused.value.details["later"] == [restored]
    assert bench.get("f") == TEXT


@requirement("history:blame:detours")
@pytest.mark.parametrize("meanwhile", [None, TEXT, b"another\n"])
def test_lines_that_other_programs_took_away_and_brought_back_are_those_of_who_wrote_them(
    bench: Bench, meanwhile: bytes | None
) -> None:
    bench.put("f", TEXT)
    edited = edit(bench, "f", "two", "TWO")
    for content in (meanwhile, EDITED):
        put_noticed(bench, content)
    assert len(bench.workspace.history.log(LedgerQuery(operation="external"))) == 2

    written = [line.entry and line.entry.change_id for line in blame_file(bench.workspace, "f")]

    assert written == [None, edited, None]


@requirement("history:blame:detours")
def test_what_other_programs_left_different_is_theirs(bench: Bench) -> None:
    bench.put("f", TEXT)
    edited = edit(bench, "f", "two", "TWO")
    for content in (None, b"one\nTWO\n3\n"):
        put_noticed(bench, content)

    newest = bench.workspace.history.log(LedgerQuery(operation="external"))[0].change_id
    written = [line.entry and line.entry.change_id for line in blame_file(bench.workspace, "f")]

    assert newest in written
    assert edited not in written  # the file was removed, and another one came
