"""Which steps files took, which are in effect, and what switching one of them comes to."""

from collections.abc import Sequence

import pytest

from surehold.stores.base import Change, Entry
from surehold.text.snapshot import Meta, Version, sha256_hex
from surehold.workspace.undo.recorded_changes import RecordedChange
from surehold.workspace.undo.timeline import OUTSIDE, Timeline, outside_step
from workspaces import call


def v(text: str, mode: int | None = None) -> Version:
    return Version(sha256=sha256_hex(text.encode()), size=len(text), meta=None if mode is None else Meta(mode=mode))


ONE, TWO, THREE = v("1"), v("2"), v("3")


class History:
    """Changes in the order of the ledger; each has its number as its time."""

    def __init__(self) -> None:
        self.changes = list[RecordedChange]()

    def add(self, name: str, *changes: Change, undoes: str = "", operation: str = "edit") -> "History":
        number = len(self.changes) + 1
        asked = call(operation, undoes=undoes)  # type: ignore[arg-type]
        entries = [
            Entry(seq=number, change_id=name, index=index, timestamp=f"t{number}", call=asked, change=change)
            for index, change in enumerate(changes)
        ]
        self.changes.append(RecordedChange.from_entries(name, entries))
        return self

    def timeline(self, *, switching: bool = True) -> Timeline:
        return Timeline(self.changes, switching=switching)


def edit(before: Version | None, after: Version | None, path: str = "a", undoes: Sequence[str] = ()) -> Change:
    return Change(path=path, before=before, after=after, undoes=tuple(undoes))


def move(version: Version, path: str, to: str, displaced: Version | None = None) -> Change:
    return Change(path=path, to_path=to, before=version, after=version, displaced=displaced)


def names(*entries: str) -> frozenset[str]:
    return frozenset({OUTSIDE, *entries})


EDITS = History().add("c1", edit(ONE, TWO)).add("c2", edit(TWO, THREE))
UNDONE = History().add("c1", edit(ONE, TWO)).add("u1", edit(TWO, ONE), undoes="c1")
REDONE = (
    History().add("c1", edit(ONE, TWO)).add("u1", edit(TWO, ONE), undoes="c1").add("r1", edit(ONE, TWO), undoes="u1")
)


def test_an_undo_switches_off_what_it_undid_and_a_redo_switches_it_on() -> None:
    assert EDITS.timeline().active == names("c1#0", "c2#0")
    assert UNDONE.timeline().active == names()
    assert REDONE.timeline().active == names("c1#0")
    assert UNDONE.timeline(switching=False).active == names("c1#0", "u1#0")
    assert [REDONE.timeline().root_of(name) for name in ("c1", "u1", "r1")] == ["c1"] * 3
    assert [UNDONE.timeline(switching=False).root_of(name) for name in ("c1", "u1")] == ["c1", "u1"]


def test_an_undo_of_what_is_not_known_is_a_change_of_its_own() -> None:
    timeline = History().add("u1", edit(TWO, ONE), undoes="before").timeline()

    assert (timeline.active, timeline.own_entries) == (names("u1#0"), frozenset({"u1#0"}))


def test_an_undo_of_several_switches_the_entries_that_it_names() -> None:
    timeline = (
        History()
        .add("c1", edit(ONE, TWO), edit(ONE, TWO, "b"))
        .add("c2", edit(TWO, THREE))
        .add("u", edit(THREE, ONE, undoes=["c1#0", "c2#0"]))
        .timeline()
    )

    assert timeline.active == names("c1#1")
    assert timeline.own_entries == {"c1#0", "c1#1", "c2#0"}
    assert timeline.entries_of("u") == {"c1#0", "c2#0"}
    assert timeline.entries_of("c1", "c2") == {"c1#0", "c1#1", "c2#0"}
    assert [file.key for file in timeline.files_of(["c1#0", "c1#1", "c2#0"])] == ["a", "b"]


def test_undoing_an_undo_puts_back_on_what_it_turned_off() -> None:
    timeline = UNDONE.timeline()

    assert timeline.undo_switches(["u1"], frozenset()) == {"c1#0"}
    assert timeline.undo_switches(["c1"], frozenset({"c1#0"})) == frozenset()  # it is undone already
    assert timeline.undo_switches(["c1", "u1"], frozenset({"c1#0"})) == frozenset()
    assert EDITS.timeline().undo_switches(["c1"], frozenset({"c1#0"})) == {"c1#0"}
    assert REDONE.timeline().undo_switches(["r1"], frozenset()) == {"c1#0"}
    assert REDONE.timeline().undo_switches(["u1", "r1"], frozenset()) == frozenset()


def test_a_change_is_switched_by_the_command_that_its_state_asks_for() -> None:
    timeline = EDITS.timeline()
    assert timeline.switch_change(timeline.active, "c1") == ("undo", names("c2#0"))
    assert timeline.switch_change(names("c2#0"), "c1") == ("redo", names("c1#0", "c2#0"))

    several = (
        History()
        .add("c1", edit(ONE, TWO))
        .add("c2", edit(TWO, THREE))
        .add("u", edit(THREE, ONE, undoes=["c1#0", "c2#0"]))
    )
    assert several.timeline().switch_change(names(), "u") == ("undo", names("c1#0", "c2#0"))
    again = several.add("r", edit(ONE, TWO, undoes=["c1#0"])).timeline()
    assert again.switch_change(again.active, "u") == ("undo", names("c1#0", "c2#0"))
    assert again.switch_change(again.active, "r") == ("undo", names())
    several.add("other", edit(ONE, TWO, "b"))
    whole = several.add("q", edit(TWO, THREE, undoes=["c2#0"])).timeline()
    assert whole.switch_change(whole.active, "u") == ("", whole.active)


def test_what_cancels_out_since_a_change_is_not_switched_back() -> None:
    history = (
        History()
        .add("c1", edit(ONE, TWO))
        .add("c2", edit(TWO, THREE))
        .add("u2", edit(THREE, TWO), undoes="c2")
        .add("c3", edit(TWO, ONE))
        .add("c4", edit(ONE, ONE, "b"))
    )

    assert history.timeline().switched_since("c1") == ["c4", "c3"]
    assert history.timeline().switched_since("c2") == ["c4", "c3", "c2"]
    assert history.timeline().switched_since("c4") == []
    assert history.timeline().active_before("c3") == names("c1#0")
    assert history.timeline().active_before("c1") == names()
    assert history.timeline().active_before("u2") == names("c1#0", "c2#0")


def test_a_change_that_was_made_again_is_switched_back_once() -> None:
    history = History().add("c1", edit(ONE, TWO)).add("c2", edit(TWO, THREE))
    history.add("u2", edit(THREE, TWO), undoes="c2").add("r2", edit(TWO, THREE), undoes="u2")

    assert history.timeline().switched_since("c1") == ["c2"]


def test_what_other_programs_did_stays_in_effect_before_a_change() -> None:
    history = History().add("c1", edit(ONE, TWO)).add("x1", edit(TWO, THREE), operation="external")
    assert history.add("c2", edit(THREE, ONE)).timeline().active_before("c1") == names("x1#0")


def test_it_is_known_since_when_something_is_undone() -> None:
    timeline = UNDONE.timeline()

    assert (timeline.began("c1"), timeline.undone_since(frozenset({"c1#0"}))) == ("t1", "t2")
    assert timeline.undone_since(frozenset({"other#0"})) == ""
    assert EDITS.timeline().undone_since(frozenset({"c1#0"})) == ""
    again = History()
    again.changes = [*REDONE.changes]
    assert again.add("u2", edit(TWO, ONE), undoes="r1").timeline().undone_since(frozenset({"c1#0"})) == "t4"
    two = History().add("c1", edit(ONE, TWO)).add("c2", edit(ONE, TWO, "b"))
    two.add("u1", edit(TWO, ONE), undoes="c1").add("u2", edit(TWO, ONE, "b"), undoes="c2")
    assert two.timeline().undone_since(frozenset({"c1#0", "c2#0"})) == "t3"
    assert two.timeline().undone_since(frozenset({"c2#0"})) == "t4"


def test_a_file_is_followed_under_its_names() -> None:
    timeline = (
        History()
        .add("c1", edit(ONE, TWO))
        .add("c2", move(TWO, "a", "b"))
        .add("c3", edit(None, ONE))
        .add("c4", edit(TWO, None, "b"))
        .timeline()
    )
    first, second = timeline.files

    assert (first.key, [one.entry_name for one in first.steps]) == ("a", ["c1#0", "c2#0", "c4#0"])
    assert (second.key, [one.entry_name for one in second.steps]) == ("", ["c3#0"])
    assert [first.find_key(frozenset(one)) for one in ((), ("c2#0",), ("c2#0", "c4#0"))] == ["a", "b", ""]
    assert (list(timeline.found), timeline.placed_by) == (["a"], {"b": "c2", "a": "c3"})
    assert timeline.heads == {"a": ONE, "b": None}
    assert timeline.has_other_at("a", first, frozenset({"c3#0"}))
    assert not timeline.has_other_at("a", second, frozenset({"c2#0", "c3#0"}))
    assert timeline.has_other_at("a", second, frozenset({"c3#0"}))
    assert not timeline.has_other_at("c", second, frozenset())


def test_a_move_over_a_file_ends_that_file() -> None:
    timeline = History().add("c1", move(ONE, "a", "b", displaced=TWO)).timeline()
    gone, moved = timeline.files

    assert [(one.key, one.to_key) for one in gone.steps] == [("b", "")]
    assert [(one.key, one.to_key) for one in moved.steps] == [("a", "b")]
    assert timeline.found == {"b": moved}


def test_an_undone_move_leaves_the_file_under_its_old_name() -> None:
    timeline = History().add("c1", move(ONE, "a", "b")).add("u1", move(ONE, "b", "a"), undoes="c1").timeline()
    (file,) = timeline.files

    assert (timeline.found, timeline.placed_by) == ({"a": file}, {"b": "c1", "a": "c1"})
    assert file.place == "a"


def test_what_other_programs_removed_and_brought_back_is_the_same_file() -> None:
    outside = {"operation": "external"}
    history = History().add("c1", edit(ONE, TWO)).add("x1", edit(TWO, None), **outside)
    back = (
        History().add("c1", edit(ONE, TWO)).add("x1", edit(TWO, None), **outside).add("x2", edit(None, TWO), **outside)
    )
    ours = history.add("c2", edit(None, TWO))

    (file,) = back.timeline().files
    assert [one.entry_name for one in file.list_steps(back.timeline().active)] == ["c1#0"]  # no trace is left
    assert len(ours.timeline().files) == 2
    assert [back.timeline().is_outside(name) for name in (OUTSIDE, "c1", "x1")] == [True, False, True]


def test_what_we_deleted_and_others_made_again_is_another_file() -> None:
    history = History().add("x1", edit(ONE, TWO), operation="external").add("c1", edit(TWO, None))
    assert len(history.add("x2", edit(None, TWO), operation="external").timeline().files) == 2


def test_what_an_entry_says_of_its_lines_is_kept_where_it_is_ours() -> None:
    said = Change(path="a", before=ONE, after=TWO, diff="said")
    ours, theirs = History().add("c1", said), History().add("x1", said, operation="external")
    assert [one.timeline().files[0].steps[0].diff for one in (ours, theirs)] == ["said", ""]
    assert ours.timeline().placed_by == {}


def test_outside_edits_in_a_row_are_one_step() -> None:
    history = History().add("c1", edit(ONE, TWO))
    history.add("x1", edit(TWO, THREE), operation="external").add("x2", edit(THREE, ONE), operation="external")
    timeline = history.add("c2", edit(ONE, TWO)).timeline()
    (file,) = timeline.files

    assert [(one.change_id, one.before, one.after) for one in file.list_steps(timeline.active)] == [
        ("c1", ONE, TWO),
        ("x2", TWO, ONE),
        ("c2", ONE, TWO),
    ]
    assert [one.change_id for one in file.list_steps(frozenset({"x1#0"}))] == ["x1"]


def test_outside_edits_that_leave_no_trace_are_no_step() -> None:
    first, same = v("1", 0o644), Version(sha256=ONE.sha256, size=1, meta=Meta(mode=0o644, mtime_ns=9))
    history = (
        History().add("x1", edit(first, TWO), operation="external").add("x2", edit(TWO, same), operation="external")
    )
    timeline = history.add("c1", edit(same, THREE)).timeline()
    (file,) = timeline.files
    assert [one.change_id for one in file.list_steps(timeline.active)] == ["c1"]

    history = (
        History().add("x1", edit(None, ONE), operation="external").add("x2", edit(ONE, None), operation="external")
    )
    (file,) = history.timeline().files
    assert [*file.list_steps(names("x1#0", "x2#0"))] == []
    assert [one.change_id for one in file.list_steps(names("x1#0"))] == ["x1"]
    assert [one.change_id for one in file.list_steps(names("x2#0"))] == ["x2"]

    history = History().add("x1", edit(v("1", 0o644), v("1", 0o600)), operation="external")
    assert len([*history.timeline().files[0].list_steps(history.timeline().active)]) == 1


def test_a_file_that_was_edited_under_a_new_name_keeps_the_old_one_without_the_move() -> None:
    timeline = History().add("c1", move(ONE, "a", "b")).add("c2", edit(ONE, TWO, "b")).timeline()
    (file,) = timeline.files
    assert [file.find_key(frozenset(one)) for one in (("c2#0",), ("c1#0",), ("c1#0", "c2#0"))] == ["a", "b", "b"]


def test_a_mode_that_others_changed_between_two_changes_is_a_step_of_theirs() -> None:
    first, found, last = v("1", 0o644), v("2", 0o755), v("3", 0o755)
    timeline = History().add("c1", edit(first, v("2", 0o644))).add("c2", edit(found, last)).timeline()
    (file,) = timeline.files

    assert [(one.change_id, one.after and one.after.mode) for one in file.steps] == [
        ("c1", 0o644),
        (OUTSIDE, 0o755),
        ("c2", 0o755),
    ]
    other = History().add("c1", edit(first, v("2", 0o644))).add("c2", edit(v("3", 0o755), last)).timeline()
    assert [one.change_id for one in other.files[0].steps] == ["c1", "c2"]  # those are other bytes
    assert file.steps[1].is_outside_mode
    assert not file.steps[0].is_outside_mode
    assert not outside_step("a", "a", ONE, TWO).is_outside_mode
    assert outside_step("a", "a", ONE, TWO).outside
    assert not outside_step("a", "a", ONE, TWO)._replace(before=None, after=ONE).is_outside_mode
    assert not outside_step("a", "", ONE, None).is_outside_mode


def test_the_usual_mode_of_a_new_file_is_learned_from_the_next_change() -> None:
    timeline = History().add("c1", edit(None, v("1"))).add("c2", edit(v("1", 0o664), v("2", 0o664))).timeline()
    (file,) = timeline.files
    assert [one.after and one.after.mode for one in file.steps] == [0o664, 0o664]

    other = History().add("c1", edit(None, v("1"))).add("c2", edit(v("2", 0o664), v("3", 0o664))).timeline()
    assert other.files[0].steps[0].after == v("1")  # those are other bytes


@pytest.mark.parametrize(
    ("change", "operation", "has_runs"),
    [
        (edit(ONE, TWO), "run", True),
        (edit(ONE, TWO), "edit", False),
        (Change(path="a", before=ONE, after=TWO, whole=True), "undo", True),
    ],
)
def test_changes_of_commands_are_told_apart(change: Change, operation: str, has_runs: bool) -> None:
    timeline = History().add("c1", change, operation=operation).add("c2", edit(TWO, ONE)).timeline()
    assert timeline.has_runs(["c1", "c2"]) is has_runs
    assert not timeline.has_runs(["c2"])
