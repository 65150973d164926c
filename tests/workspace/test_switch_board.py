"""What became of changes, told from those that undid and redid others."""

import pytest

from surehold.errors import InvalidArgument
from surehold.stores.base import Change, Entry
from surehold.text.snapshot import Meta, Version
from surehold.workspace.undo.switch_board import ChangeView, SwitchBoard, refuse_undone, require_undone
from workspaces import call


def entry(
    name: str, seq: int, index: int = 0, *, undoes: str = "", several: tuple[str, ...] = (), ok: bool = True
) -> Entry:
    operation = {"u": "undo", "r": "redo"}.get(name[0], "edit")
    return Entry(
        seq=seq,
        change_id=name,
        index=index,
        timestamp="t",
        call=call(operation, undoes=undoes, agent="ada", reason="why"),  # type: ignore[arg-type]
        change=Change(path=f"{name}{index}", before=None, after=None, undoes=several),
        ok=ok,
    )


ONE, TWO, LATER = entry("c1", 1), entry("c1", 2, 1), entry("c2", 3)
UNDO, REDO, AGAIN = entry("u1", 4, undoes="c1"), entry("r1", 5, undoes="u1"), entry("u2", 6, undoes="c1")
PART = entry("u3", 7, several=("c1#0", "c2#0"))
PART_BACK = entry("r3", 8, several=("c1#0",))
OTHER_BACK = entry("r4", 9, several=("c2#0",))
WHOLE_BACK = entry("r5", 10, undoes="u3")


@pytest.mark.parametrize(
    ("switching", "on", "undone_by"),
    [
        ((), (True, True, True), ("", "")),
        ((UNDO,), (False, False, True), ("u1", "")),
        ((UNDO, REDO), (True, True, True), ("", "")),
        ((REDO, UNDO), (True, True, True), ("", "")),
        ((UNDO, REDO, AGAIN), (False, False, True), ("u2", "")),
        ((PART,), (False, True, False), ("", "u3")),
        ((PART, PART_BACK), (True, True, False), ("", "u3")),
        ((PART, PART_BACK, OTHER_BACK), (True, True, True), ("", "")),
        ((PART, WHOLE_BACK), (True, True, True), ("", "")),
        ((UNDO, PART), (True, False, False), ("", "u3")),
    ],
)
def test_an_entry_is_in_effect_that_was_switched_an_even_number_of_times(
    switching: tuple[Entry, ...], on: tuple[bool, ...], undone_by: tuple[str, str]
) -> None:
    board = SwitchBoard(switching)

    assert tuple(map(board.is_on, (ONE, TWO, LATER))) == on
    assert (board.undone_by("c1", [ONE, TWO]), board.undone_by("c2", [LATER])) == undone_by
    assert board.is_partly_undone([ONE, TWO]) is (on[0] != on[1])
    assert not board.is_partly_undone([ONE, entry("c1", 2, 1, ok=False)])


def test_what_undid_others_is_undone_when_all_of_that_was_switched_again() -> None:
    assert SwitchBoard([UNDO]).undone_by("u1", [UNDO]) == ""
    assert SwitchBoard([UNDO, REDO]).undone_by("u1", [UNDO]) == "r1"
    assert SwitchBoard([UNDO, REDO]).undone_by("r1", [REDO]) == ""
    assert SwitchBoard([UNDO, REDO, AGAIN]).undone_by("u1", [UNDO]) == "r1"
    assert SwitchBoard([UNDO, REDO, AGAIN]).undone_by("r1", [REDO]) == "u2"
    assert SwitchBoard([PART, PART_BACK]).undone_by("u3", [PART]) == ""
    assert SwitchBoard([PART, PART_BACK, OTHER_BACK]).undone_by("u3", [PART]) == "r4"
    assert SwitchBoard([PART, WHOLE_BACK]).undone_by("u3", [PART]) == "r5"
    assert [SwitchBoard([UNDO, REDO]).is_on(one) for one in (UNDO, REDO)] == [False, True]


def test_a_refused_change_has_nothing_to_undo() -> None:
    refused = entry("c1", 1, ok=False)
    assert SwitchBoard([]).undone_by("c1", [refused]) == ""
    assert SwitchBoard([UNDO]).undone_by("c1", [refused]) == ""


def test_a_change_shows_who_made_it_and_what_it_touched() -> None:
    meta = Meta(mode=0o755, mtime_ns=1)
    folders = [Version(sha256="d", size=0, meta=one, kind="directory") for one in (meta, Meta(mode=0o755, mtime_ns=2))]
    times = Entry(
        seq=1, change_id="c", timestamp="t", call=call(), change=Change(path=".", before=folders[0], after=folders[1])
    )
    moved = Entry(
        seq=2,
        change_id="c",
        index=1,
        timestamp="t",
        call=call(),
        change=Change(path="a", before=None, after=None, to_path="b"),
    )
    outside = Entry(
        seq=1, change_id="x", timestamp="t", call=call("external"), change=Change(path="a", before=None, after=None)
    )

    assert ChangeView(id="c", entries=(times, moved, moved)).paths == ("b",)
    assert ChangeView(id="c", entries=(times,)).paths == (".",)
    view = ChangeView(id="c1", entries=(ONE, TWO))
    assert (view.change_id, view.agent, view.reason, view.undoes) == ("c1", "ada", "why", ())
    assert ChangeView(id="x", entries=(outside,)).agent == "outside"
    assert ChangeView(id="u3", entries=(PART, UNDO)).undoes == ("c1", "c2")


def test_what_can_be_switched_instead_is_named() -> None:
    refuse_undone(ChangeView(id="c1", entries=(ONE,)))
    with pytest.raises(InvalidArgument, match=r"Change c1 was undone already, by u1\.") as refused:
        refuse_undone(ChangeView(id="c1", entries=(ONE,), undone_by="u1"))
    assert (refused.value.reason, refused.value.action) == ("already_undone", "To make it again: surehold redo c1")

    require_undone(ChangeView(id="c1", entries=(ONE,), undone_by="u1"))
    for view, message, action in (
        (
            ChangeView(id="c1", entries=(ONE,)),
            "Change c1 was not undone.",
            "It is in effect already. To take it back: surehold undo c1",
        ),
        (
            ChangeView(id="c1", entries=(entry("c1", 1, ok=False),)),
            "Change c1 was not undone.",
            "It was refused, so there is nothing to redo; the agent has to make it again.",
        ),
        (
            ChangeView(id="u1", entries=(UNDO,)),
            "Change u1 is an undo, and was not undone itself.",
            "To make again what it took back: surehold redo c1",
        ),
    ):
        with pytest.raises(InvalidArgument) as refused:
            require_undone(view)
        assert (refused.value.message, refused.value.action, refused.value.reason) == (message, action, "not_undone")
