"""Many changes are switched at once: all of them, or the part that can be; what is in the way is named."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from surehold.errors import NotFound, UndoConflict
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.workspace.history import History
from surehold.workspace.past.selectors import Selectors
from surehold.workspace.proposal import CallAuthor, Exact, Proposal
from workspaces import Bench, call, make_bench

TEXT = b"".join(b"line %d\n" % number for number in range(1, 41))
ADA, BOB = Selectors(agent="ada"), Selectors(agent="bob")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench("sqlite", "local", tmp_path)
    for name in "abcd":
        made.put(name, TEXT)
    yield made
    made.workspace.close()


def edit(bench: Bench, agent: str, path: str, line: int, new: str, *, old: str = "") -> str:
    one = StringEdit(old=f"{old or f'line {line}'}\n", new=f"{new}\n")
    proposal = Proposal(path=path, edit=SnapshotEdits((one,)), proof=Exact())
    return bench.workspace.write(proposal, call=call(agent=agent)).change_id


def texts(bench: Bench, *names: str) -> list[list[str]]:
    """Return of each file the lines that are not as they were in the beginning."""
    before = TEXT.decode().splitlines()
    return [[row for row in (bench.get(name) or b"").decode().splitlines() if row not in before] for name in names]


def refusal(history: History, words: Selectors, *, partial: bool = False, redo: bool = False) -> UndoConflict:
    switch = history.redo_selected if redo else history.undo_selected
    with pytest.raises(UndoConflict) as refused:
        switch(words, partial=partial)
    return refused.value


def test_what_is_in_the_way_is_named_and_a_part_is_offered_and_made(bench: Bench) -> None:
    history = bench.workspace.history
    first, second = edit(bench, "ada", "a", 5, "five"), edit(bench, "ada", "b", 5, "five")
    edit(bench, "bob", "a", 5, "FIVE", old="five")

    refused = refusal(history, ADA)

    assert refused.path == "a"
    assert refused.message.startswith("`a` cannot be taken back: ")
    assert "The same goes" not in refused.message
    assert [(one["path"], one["lines"]) for one in refused.details["conflicts"]] == [("a", [5])]
    assert refused.action == "--partial does what can be done: 1 of 2 changes."
    assert "since" not in refused.details
    assert texts(bench, "a", "b") == [["FIVE"], ["five"]]
    done = history.undo_selected(ADA, author=CallAuthor(agent="eve"), partial=True)
    assert texts(bench, "a", "b") == [["FIVE"], []]
    (said,) = done.left_out
    assert said.startswith(f"`a`: not undone ({first}), since ")
    assert done.warnings[0] == said
    assert [(one.path, one.change.undoes) for one in done.files] == [("b", (f"{second}#0",))]
    assert {(entry.call.agent, entry.call.operation) for entry in done.entries} == {("eve", "undo")}


@pytest.mark.parametrize(("others", "said"), [(1, "1 more file."), (2, "2 more files.")])
def test_several_files_that_are_in_the_way_are_counted(bench: Bench, others: int, said: str) -> None:
    names = "abc"[: others + 1]
    for name in names:
        edit(bench, "ada", name, 5, "five")
        edit(bench, "bob", name, 5, "FIVE", old="five")

    refused = refusal(bench.workspace.history, ADA)

    assert refused.message.endswith(f" The same goes for {said}")
    assert [one["path"] for one in refused.details["conflicts"]] == [*names]


def test_where_nothing_can_be_done_the_moment_to_go_back_to_is_named(bench: Bench) -> None:
    edit(bench, "ada", "a", 5, "five")
    edit(bench, "bob", "a", 5, "FIVE", old="five")
    first = bench.workspace.history.log()[-1].timestamp

    for partial in (False, True):
        refused = refusal(bench.workspace.history, ADA, partial=partial)
        assert refused.details["since"] == first
        assert "--partial" not in refused.action
    assert texts(bench, "a") == [["FIVE"]]


def test_what_another_program_wrote_is_in_the_way_as_well(bench: Bench) -> None:
    edit(bench, "ada", "a", 5, "five")
    edit(bench, "ada", "b", 5, "five")
    bench.put("a", TEXT.replace(b"line 5\n", b"by hand\n"))

    refused = refusal(bench.workspace.history, ADA)

    assert refused.action.endswith(" --partial does what can be done: 1 of 2 changes.")
    assert len(refused.action) > len("--partial does what can be done: 1 of 2 changes.") + 1
    done = bench.workspace.history.undo_selected(ADA, partial=True)
    assert (texts(bench, "a", "b"), len(done.left_out)) == ([["by hand"], []], 1)


def test_of_one_file_the_changes_go_that_can_go(bench: Bench) -> None:
    history = bench.workspace.history
    first = edit(bench, "ada", "a", 5, "five")
    edit(bench, "bob", "a", 5, "FIVE", old="five")
    second = edit(bench, "ada", "a", 15, "fifteen")
    third = edit(bench, "ada", "a", 25, "twenty-five")

    refused = refusal(history, ADA)
    assert refused.action == "--partial does what can be done: 2 of 3 changes."
    done = history.undo_selected(ADA, partial=True)

    assert texts(bench, "a") == [["FIVE"]]
    assert done.files[0].change.undoes == tuple(sorted((f"{second}#0", f"{third}#0")))
    (said,) = done.left_out
    assert said.startswith(f"`a`: not undone ({first}), since ")


def test_what_is_undone_comes_back_and_is_in_the_way_of_nothing(bench: Bench) -> None:
    history = bench.workspace.history
    for name in "ab":
        edit(bench, "ada", name, 5, "five")
    with pytest.raises(NotFound, match="Nothing that was selected is undone"):
        history.redo_selected(ADA)
    history.undo_selected(ADA)
    assert texts(bench, "a", "b") == [[], []]
    with pytest.raises(NotFound, match="Everything that was selected is undone already") as refused:
        history.undo_selected(ADA)
    assert refused.value.reason == "no_such_change"
    rehearsed = history.redo_selected(ADA, dry_run=True)
    assert (rehearsed.dry_run, texts(bench, "a", "b")) == (True, [[], []])

    history.redo_selected(ADA)

    assert texts(bench, "a", "b") == [["five"], ["five"]]


def test_a_later_change_of_the_same_lines_is_in_the_way_of_making_it_again(bench: Bench) -> None:
    history = bench.workspace.history
    edit(bench, "ada", "a", 5, "five")
    edit(bench, "ada", "b", 5, "five")
    history.undo_selected(ADA)
    edit(bench, "bob", "a", 5, "FIVE")

    refused = refusal(history, ADA, redo=True)

    assert refused.message.startswith("`a` cannot be made again: ")
    done = history.redo_selected(ADA, partial=True)
    assert (texts(bench, "a", "b"), len(done.left_out)) == ([["FIVE"], ["five"]], 1)
    assert "not redone" in done.left_out[0]


def test_what_was_undone_one_by_one_is_told_apart_from_the_rest(bench: Bench) -> None:
    history = bench.workspace.history
    one, two = edit(bench, "ada", "a", 5, "five"), edit(bench, "ada", "a", 15, "fifteen")
    history.undo(one)

    history.undo_selected(ADA)
    assert texts(bench, "a") == [[]]
    history.redo(two)
    assert texts(bench, "a") == [["fifteen"]]
    history.redo_selected(ADA)
    assert texts(bench, "a") == [["five", "fifteen"]]
