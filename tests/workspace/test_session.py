import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.errors import AlreadyExists, NotFound, StaleFile
from surehold.stores.base import Sighting
from surehold.text.anchored.operations import ReplaceLine
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import merge_ranges, sha256_hex
from surehold.workspace.proposal import Proposal, Unchanged
from surehold.workspace.settings import Limits
from workspaces import Bench, make_bench, real_workspace


@requirement("engine:proof:seen", "promise:unseen:stale")
def test_a_file_that_was_not_read_is_not_overwritten(bench: Bench) -> None:
    bench.put("a", b"one\n")

    with pytest.raises(StaleFile) as refused:
        bench.workspace.session().write("a", "two\n")

    assert (refused.value.reason, bench.get("a")) == ("not_read", b"one\n")


@requirement("engine:proof:seen", "promise:unseen:stale")
def test_a_file_that_changed_since_it_was_read_is_not_overwritten(bench: Bench) -> None:
    bench.put("a", b"one\n")
    session = bench.workspace.session()
    session.read("a")
    bench.put("a", b"outside\n")

    with pytest.raises(StaleFile):
        session.write("a", "two\n")

    assert bench.get("a") == b"outside\n"


@requirement("front:library:open_workspace", "session:sighting:own_write")
def test_a_file_that_was_read_can_be_overwritten_and_again_after_that(bench: Bench) -> None:
    bench.put("a", b"one\n")
    session = bench.workspace.session(agent="me")
    session.read("./a")

    session.write("a", "two\n")
    session.edit("a", ("two", "three"))
    session.write("a", "four\n")

    assert bench.get("a") == b"four\n"
    assert {entry.call.agent for entry in bench.workspace.history.log()} == {"me"}


@requirement("engine:proof:seen_whole", "session:sighting:adds_up")
def test_a_part_that_was_read_does_not_allow_to_overwrite_the_whole(bench: Bench) -> None:
    bench.put("a", b"1\n2\n3\n4\n")
    session = bench.workspace.session()
    session.page("a", start=2, count=2)

    with pytest.raises(StaleFile) as refused:
        session.write("a", "x")
    assert (refused.value.reason, refused.value.details) == ("partially_read", {"seen_lines": [[2, 3]]})

    session.page("a", start=1, count=1)
    session.page("a", start=4, count=1)
    session.write("a", "all\n")
    assert bench.get("a") == b"all\n"


@requirement("session:sighting:own_only")
def test_what_one_session_read_is_no_evidence_for_another(bench: Bench) -> None:
    bench.put("a", b"one\n")
    bench.workspace.session().read("a")

    with pytest.raises(StaleFile):
        bench.workspace.session().write("a", "two\n")


def test_a_session_goes_on_under_its_id(bench: Bench) -> None:
    bench.put("a", b"one\n")
    bench.workspace.session(id="s1").read("a")

    bench.workspace.session(id="s1").write("a", "two\n")

    assert bench.get("a") == b"two\n"


@requirement("session:sighting:own_write")
def test_own_edits_move_the_lines_that_were_seen(bench: Bench) -> None:
    bench.put("a", b"".join(b"line %d\n" % n for n in range(1, 11)))
    session = bench.workspace.session(id="s")
    session.page("a", start=5, count=3)

    session.edit("a", ("line 2\n", "two\nand a half\n"))

    newest = bench.store.list_sightings("s", "a")[0]
    assert newest.spans == ((2, 3), (6, 8))
    assert newest.sha256 == sha256_hex(bench.get("a") or b"")


@requirement("session:sighting:own_write")
def test_an_edit_above_and_below_keeps_both_sides_seen(bench: Bench) -> None:
    bench.put("a", b"1\n2\n3\n4\n5\n")
    session = bench.workspace.session(id="s")
    session.read("a")

    session.edit("a", ("2\n", ""), ("4\n", "4a\n4b\n"))

    newest = bench.store.list_sightings("s", "a")[0]
    assert (newest.whole, newest.spans) == (True, ((1, 5),))


def test_a_version_that_was_shown_is_kept_unless_it_is_too_large(tmp_path: Path) -> None:
    bench = make_bench("memory", "memory", tmp_path, limits=Limits(sighting_bytes=10))
    bench.put("small", b"x" * 10)
    bench.put("large", b"x" * 11)
    session = bench.workspace.session()
    session.read("small")
    session.read("large")

    assert [bench.store.has_blob(sha256_hex(b"x" * size)) for size in (10, 11)] == [True, False]


@requirement("engine:write:dry_run")
def test_every_method_of_a_session_can_be_tried_without_doing_it(bench: Bench) -> None:
    bench.put("a", b"one\n")
    session = bench.workspace.session()
    session.read("a")

    session.create("n", "x", dry_run=True)
    session.write("a", "two\n", dry_run=True)
    session.edit("a", ("one", "two"), dry_run=True)
    session.delete("a", dry_run=True)
    session.move("a", "b", dry_run=True)

    assert (bench.get("a"), bench.get("b"), bench.get("n")) == (b"one\n", None, None)


def test_sha256_is_evidence_enough_without_a_read(bench: Bench) -> None:
    bench.put("a", b"one\n")
    session = bench.workspace.session()

    session.write("a", "two\n", expected_sha256=sha256_hex(b"one\n"))
    session.delete("a", expected_sha256=sha256_hex(b"two\n"))

    assert bench.get("a") is None


@requirement("engine:bad_input:missing", "engine:proof:absent")
def test_missing_and_existing_files_are_told_apart(bench: Bench) -> None:
    bench.put("here", b"x")
    session = bench.workspace.session()

    for attempt in (
        lambda: session.read("gone"),
        lambda: session.write("gone", "x"),
        lambda: session.edit("gone", ("a", "b")),
    ):
        with pytest.raises(NotFound):
            attempt()
    with pytest.raises(AlreadyExists):
        session.create("here", "x")


@requirement("engine:undo:every_operation", "promise:nothing_lost:trash")
def test_deleted_files_come_back_through_the_session(bench: Bench) -> None:
    bench.put("a", b"x")
    session = bench.workspace.session(agent="me")
    session.read("a")
    session.delete("a")

    session.restore(bench.workspace.history.trash()[0].id)
    assert bench.get("a") == b"x"
    session.undo()
    assert bench.get("a") is None
    session.redo()
    assert bench.get("a") == b"x"


def test_spans_that_touch_are_one() -> None:
    assert merge_ranges([(5, 6), (1, 2), (3, 3), (9, 9), (6, 7)]) == ((1, 3), (5, 7), (9, 9))


def test_a_binary_file_is_seen_as_a_whole(bench: Bench) -> None:
    bench.put("a", b"\0\1\2")

    bench.workspace.session(id="s").read("a")

    assert bench.store.list_sightings("s", "a") == (
        Sighting(session="s", path="a", sha256=sha256_hex(b"\0\1\2"), spans=(), whole=True),
    )


@requirement("session:sighting:read")
def test_a_read_is_a_sighting_of_exactly_what_was_shown(bench: Bench) -> None:
    bench.put("a", b"1\n2\n3\n4\n")
    session = bench.workspace.session(id="s")
    shown = Sighting(session="s", path="a", sha256=sha256_hex(b"1\n2\n3\n4\n"), spans=((2, 3),))

    session.page("./a", start=2, count=2)
    assert bench.store.list_sightings("s", "a") == (shown,)

    session.read("a")
    assert bench.store.list_sightings("s", "a") == (replace(shown, spans=((1, 4),), whole=True),)


@requirement("session:library:attributed")
def test_what_a_session_does_is_recorded_with_its_id_and_its_agent(bench: Bench) -> None:
    bench.put("a", b"one\n")
    session = bench.workspace.session(id="s", agent="me")

    session.edit("a", ("one", "two"))
    session.undo()
    with pytest.raises(NotFound):
        session.edit("missing", ("one", "two"))

    calls = [entry.call for entry in bench.workspace.history.log()]
    assert [(c.operation, c.session, c.agent) for c in calls] == [
        ("edit", "s", "me"),
        ("undo", "s", "me"),
        ("edit", "s", "me"),
    ]


@requirement("session:turn:library", "session:turn:call_id")
def test_what_is_done_for_a_request_is_recorded_with_its_turn(bench: Bench) -> None:
    bench.put("a", b"one\n")
    session = bench.workspace.session(id="s")

    session.edit("a", ("one", "two"))
    with session.turn("Make it three") as first:
        session.with_call_id("toolu_1").edit("a", ("two", "three"))
        session.undo()
        with pytest.raises(NotFound):
            session.edit("missing", ("one", "two"))
    with session.turn("Once more", id="prompt-9") as second, session.turn(id="1"):
        session.redo()
    session.edit("a", ("three", "four"))

    calls = [entry.call for entry in bench.workspace.history.log()][::-1]
    assert [(c.operation, c.turn, c.call_id) for c in calls] == [
        ("edit", "", ""),
        ("edit", "1", "toolu_1"),
        ("undo", "1", ""),
        ("edit", "1", ""),
        ("redo", "1", ""),
        ("edit", "", ""),
    ]
    assert bench.store.list_turns("s") == (first, second)
    assert [(turn.id, turn.title) for turn in (first, second)] == [("1", "Make it three"), ("prompt-9", "Once more")]


READER = """
import sys
from pathlib import Path
from surehold import Settings, open_workspace
with open_workspace(sys.argv[1], settings=Settings(state_dir=Path(sys.argv[2]))) as workspace:
    workspace.session(id="s", agent="me").read("a")
"""


@requirement("session:store:survives")
def test_a_session_survives_the_process_that_began_it(tmp_path: Path) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    (root / "a").write_bytes(b"one\n")

    subprocess.run([sys.executable, "-c", READER, str(root), str(state)], check=True)
    with real_workspace(root, state=state) as workspace:
        workspace.session(id="s").write("a", "two\n")
        row = workspace.store.find_session("s")

    assert (root / "a").read_bytes() == b"two\n"
    assert (row and row.agent) == "me"


@requirement("session:library:reopened", "session:store:idle")
def test_a_session_that_is_opened_again_by_its_id_goes_on_with_what_it_was_shown(tmp_path: Path) -> None:
    root, settings = tmp_path / "root", Settings(state_dir=tmp_path / "state")
    root.mkdir()
    (root / "a").write_bytes(b"same\nfirst\nsame\nsecond\n")
    with open_workspace(root, settings=settings) as workspace:
        session = workspace.session(agent="me")
        rows = str(session.read_file("a", hashes=True).content).splitlines()
        third = rows[2].partition("|")[0].rstrip("!~")
    (root / "a").write_bytes(b"same\nnew\nsame\nfirst\nsame\nsecond\n")

    with open_workspace(root, settings=settings) as workspace:
        workspace.session(id=session.id).edit_lines("a", [ReplaceLine(hash=third, content="changed")])
        workspace.session(id=session.id).claude.Edit("a", "changed", "CHANGED")
    forgetful = replace(settings, limits=Limits(session_idle=0))
    with open_workspace(root, settings=forgetful) as workspace, pytest.raises(StaleFile):
        workspace.session(id=session.id).claude.Edit("a", "CHANGED", "again")

    assert (root / "a").read_bytes() == b"same\nnew\nsame\nfirst\nCHANGED\nsecond\n"


@requirement("engine:proof:not_times")
def test_times_neither_refuse_nor_excuse(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\n")
    with real_workspace(tmp_path, state=tmp_path.parent / f"{tmp_path.name}-state") as workspace:
        session = workspace.session()
        session.read("a")
        os.utime(tmp_path / "a", ns=(1, 1))
        session.write("a", "two\n")

        before = (tmp_path / "a").stat()
        (tmp_path / "a").write_bytes(b"TWO\n")
        os.utime(tmp_path / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
        with pytest.raises(StaleFile):
            session.write("a", "three\n")

    assert (tmp_path / "a").read_bytes() == b"TWO\n"


def test_a_page_of_a_file_with_cr_alone_may_begin_anywhere(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "a").write_bytes(b"one\rtwo\rthree")
    with real_workspace(tmp_path / "r") as workspace:
        page = workspace.session().page("a", start=2, count=1)

    assert (page.rows, page.line_count) == ((b"two\r",), 3)


@pytest.mark.parametrize("start", [1, 2, 100])
def test_lines_that_end_with_cr_are_counted_also_when_the_page_is_shorter_than_the_first(
    bench: Bench, start: int
) -> None:
    bench.put("a", b"sixsix\r" * 100)

    page = bench.workspace.page("a", start=start, max_bytes=3)

    assert (page.line_count, page.style, page.rows) == (100, "cr", (b"six",))


@requirement("session:library:unchanged")
def test_a_file_is_unchanged_if_it_is_what_the_session_was_shown_last_or_was_never_shown(bench: Bench) -> None:
    session = bench.workspace.session()
    bench.put("a", b"one\n")

    def write(text: str, *, may_be_new: bool = False) -> None:
        proof = Unchanged(may_be_new=may_be_new)
        session.apply(Proposal(path="a", edit=WriteText(text), proof=proof))

    write("two\n")  # never shown
    write("three\n")  # its own
    session.read("a")
    bench.put("a", b"two\n")  # as it was once
    with pytest.raises(StaleFile, match="changed since"):
        write("four\n")
    session.read("a")
    write("four\n")
    bench.put("a", None)
    with pytest.raises(NotFound):
        write("five\n")
    write("five\n", may_be_new=True)

    assert bench.get("a") == b"five\n"
