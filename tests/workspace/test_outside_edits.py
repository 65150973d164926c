"""Outside edits in the history: recorded when they are noticed, and never lost when they collide with a change of ours."""

import hashlib
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from disk.test_outside_writers import Striking, held_open
from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.disk.local import LocalDisk
from surehold.errors import NotFound, OldTextNotFound, OutsideWorkspace, StaleFile
from surehold.library.workspace import AgentWorkspace
from surehold.stores.base import LedgerQuery
from surehold.stores.ledger_entries import utc_now
from surehold.stores.owner import current_owner
from surehold.stores.sqlite.store import SqliteStore
from surehold.text.snapshot import Version


@dataclass(frozen=True, kw_only=True)
class Desk:
    root: Path
    workspace: AgentWorkspace

    def history(self, path: str) -> list[tuple[str, bytes | None, bytes | None]]:
        """Return the entries of a path, oldest first: operation, bytes before, bytes after."""
        store = self.workspace.store

        def read(version: Version | None) -> bytes | None:
            return store.read_blob(version.sha256) if version else None

        entries = reversed(self.workspace.history.log(LedgerQuery(path=path, ok_only=True)))
        return [(one.call.operation, read(one.change.before), read(one.change.after)) for one in entries]


@pytest.fixture
def kernel() -> Striking:
    return Striking(leases=False)


@pytest.fixture
def desk(tmp_path: Path, kernel: Striking) -> Desk:
    root = tmp_path / "root"
    root.mkdir()
    disk = LocalDisk([root], kernel=kernel, durability="none")
    store = SqliteStore(tmp_path / "state", clock=utc_now, durability="none")
    return Desk(root=root, workspace=AgentWorkspace(disk=disk, store=store, owner=current_owner))


@requirement("outside:record:noticed")
@pytest.mark.parametrize("notice", ["read", "page", "refusal", "dry run", "search", "deleted"])
def test_an_outside_edit_is_recorded_when_it_is_noticed(desk: Desk, notice: str) -> None:
    session = desk.workspace.session()
    session.create("a", "one\n")
    sha256 = session.read("a").sha256
    (desk.root / "a").write_bytes(b"outside\n")

    if notice == "read":
        desk.workspace.read("a")
    elif notice == "page":
        desk.workspace.page("a")
    elif notice == "refusal":
        with pytest.raises(StaleFile):
            session.edit("a", ("one", "two"), expected_sha256=sha256)
    elif notice == "dry run":
        session.edit("a", ("outside", "two"), dry_run=True)
    elif notice == "search":
        assert session.search_files("out").total_matches == 1
    else:
        (desk.root / "a").unlink()
        with pytest.raises(Exception, match="does not exist"):
            desk.workspace.read("a")

    left = None if notice == "deleted" else b"outside\n"
    assert desk.history("a") == [("create", None, b"one\n"), ("external", b"one\n", left)]
    desk.workspace.history.undo(desk.workspace.history.log(LedgerQuery(path="a", ok_only=True))[0].change_id)
    assert (desk.root / "a").read_bytes() == b"one\n"


@requirement("outside:record:noticed", "anchored:continuity:mixed")
@pytest.mark.parametrize("notice", ["read", "refusal", "edit"])
def test_an_outside_edit_of_a_file_that_was_only_read_is_recorded_and_counts(desk: Desk, notice: str) -> None:
    (desk.root / "a").write_bytes(b"one\ntwo\n")
    session = desk.workspace.session()
    sha256 = session.read("a").sha256
    (desk.root / "a").write_bytes(b"one\ntwo\noutside\n")

    known = desk.workspace.know_file("a", session=session.id)
    assert (known.baseline_continuity, known.writers, known.last_writer) == ("mixed", ("external",), "external")
    if notice == "read":
        session.read("a")
    elif notice == "refusal":
        with pytest.raises(StaleFile):
            session.edit("a", ("one", "1"), expected_sha256=sha256)
    else:
        session.edit("a", ("one", "1"))

    assert desk.history("a")[0] == ("external", b"one\ntwo\n", b"one\ntwo\noutside\n")
    known = desk.workspace.know_file("a", session=session.id)
    assert (known.baseline_continuity, known.writers[0]) == ("mixed", "external")
    if notice != "edit":
        session.read("a")
        session.edit("a", ("one", "1"))
    assert [one[0] for one in desk.history("a")] == ["external", "edit"]
    assert desk.workspace.know_file("a", session=session.id).baseline_continuity == "mixed"


@requirement("outside:open:removed")
def test_what_a_program_writes_to_a_file_that_it_holds_open_survives_every_call(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    settings = Settings(state_dir=tmp_path / "state", durability="none")
    with open_workspace(root, settings=settings) as workspace:
        session = workspace.session()
        other = session.create("other", "other\n")

        def check(call: Callable[[], object]) -> None:
            (root / "log").write_bytes(b"one\n")
            with held_open(root / "log") as write:
                with pytest.raises(StaleFile) as caught:
                    call()
                write()
            assert caught.value.reason == "open_for_writing"
            assert (root / "log").read_bytes() == b"one\nOUTSIDE"
            assert not (root / "moved").exists()

        sha256 = hashlib.sha256(b"one\n").hexdigest()
        check(lambda: session.delete_file("log", expected_sha256=sha256))
        check(
            lambda: session.move_file(
                "other",
                "log",
                expected_sha256=other.entries[0].change.after.sha256,  # pyright: ignore[reportOptionalMemberAccess]
                overwrite=True,
                expected_dest_sha256=sha256,
            )
        )
        patch = "*** Begin Patch\n*** Update File: log\n*** Move to: moved\n@@\n-one\n+two and more\n*** End Patch"
        check(lambda: session.apply_patch(patch))


@requirement("outside:record:noticed")
def test_an_outside_edit_is_recorded_once(desk: Desk) -> None:
    session = desk.workspace.session()
    session.create("a", "one\n")
    (desk.root / "a").write_bytes(b"outside\n")
    for _ in range(3):
        session.read("a")
    session.edit("a", ("outside", "edited"))
    session.read("a")
    assert [operation for operation, _, _ in desk.history("a")] == ["create", "external", "edit"]


@requirement("outside:retry:again")
def test_a_quoted_edit_that_met_an_outside_append_is_made_on_what_the_file_says_now(
    desk: Desk, kernel: Striking
) -> None:
    (desk.root / "a").write_bytes(b"one\n")
    kernel.before.append(lambda: (desk.root / "a").write_bytes(b"one\nappended\n"))
    desk.workspace.session().edit("a", ("one", "two"))
    assert (desk.root / "a").read_bytes() == b"two\nappended\n"
    assert [entry.ok for entry in desk.workspace.history.log()] == [True]


@requirement("outside:retry:again")
def test_an_edit_with_a_sha256_that_met_an_outside_append_is_refused_with_what_the_file_says_now(
    desk: Desk, kernel: Striking
) -> None:
    session = desk.workspace.session()
    (desk.root / "a").write_bytes(b"one\n")
    sha256 = session.read("a").sha256
    kernel.before.append(lambda: (desk.root / "a").write_bytes(b"one\nappended\n"))
    with pytest.raises(StaleFile) as caught:
        session.edit("a", ("one", "two"), expected_sha256=sha256)
    assert caught.value.details["edits_still_apply"] is True
    assert (desk.root / "a").read_bytes() == b"one\nappended\n"


@requirement("outside:retry:again")
def test_a_program_that_saves_before_every_swap_does_not_keep_the_change_from_being_made(
    desk: Desk, kernel: Striking
) -> None:
    (desk.root / "a").write_bytes(b"one\n")

    def save(number: int) -> None:
        (desk.root / "save").write_bytes(b"one\n%d\n" % number)
        (desk.root / "save").replace(desk.root / "a")

    kernel.before.extend([lambda number=number: save(number) for number in range(100)])
    desk.workspace.session().edit("a", ("one", "two"))
    assert (desk.root / "a").read_bytes().startswith(b"two\n")  # after two rounds it was written in place
    newest, *earlier = desk.workspace.history.log()
    assert (newest.call.operation, newest.ok) == ("edit", True)
    assert {entry.call.operation for entry in earlier} <= {"external"}


@requirement("outside:record:kept")
def test_bytes_of_another_program_that_could_not_stay_are_reached_by_log_undo_and_trash(
    desk: Desk, kernel: Striking
) -> None:
    session = desk.workspace.session()
    session.create("a", "head\ntail\n")

    def append(text: bytes) -> None:
        with (desk.root / "a").open("ab") as file:
            file.write(text)

    kernel.before.append(lambda: append(b"first\n"))
    kernel.after.append(lambda: append(b"second\n"))
    session.edit("a", ("head", "AGENT"))

    lost = b"AGENT\ntail\nsecond\n"  # appended to the version that was taken back
    assert (desk.root / "a").read_bytes() == b"AGENT\ntail\nfirst\n"
    assert ("external", b"head\ntail\n", lost) in desk.history("a")
    (item,) = desk.workspace.store.list_trash()
    assert desk.workspace.store.read_blob(item.version.sha256) == lost
    desk.workspace.history.gc(keep=timedelta(days=30))
    session.restore(item.id, to_path="b")
    assert (desk.root / "b").read_bytes() == lost
    assert desk.workspace.store.verify().ok


@requirement("outside:record:ours")
def test_readers_beside_a_writer_record_no_outside_edit(tmp_path: Path) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    (root / "a").write_text("count 0\n")
    edit = (
        "import sys; from surehold import Settings, open_workspace\n"
        "with open_workspace(sys.argv[1], settings=Settings(state_dir=sys.argv[2], durability='none')) as workspace:\n"
        "    session = workspace.session()\n"
        "    for n in range(200):\n"
        "        session.edit('a', (f'count {n}\\n', f'count {n + 1}\\n'))\n"
    )
    with (
        open_workspace(root, settings=Settings(state_dir=state, durability="none")) as workspace,
        subprocess.Popen([sys.executable, "-c", edit, str(root), str(state)]) as writer,
    ):
        while writer.poll() is None:
            workspace.read("a")
        assert writer.returncode == 0
        assert (root / "a").read_text() == "count 200\n"
        operations = [entry.call.operation for entry in workspace.history.log(LedgerQuery(limit=1000))]
    assert operations == ["edit"] * 200


@requirement("outside:root:replaced")
def test_a_workspace_whose_root_was_replaced_refuses_to_write(desk: Desk) -> None:
    (desk.root / "a").write_bytes(b"one\n")
    desk.root.rename(desk.root.with_name("moved"))
    desk.root.mkdir()
    (desk.root / "a").write_bytes(b"one\n")
    with pytest.raises(OutsideWorkspace) as caught:
        desk.workspace.session().edit("a", ("one", "two"))
    assert caught.value.reason == "root_replaced"
    assert [(place / "a").read_bytes() for place in (desk.root, desk.root.with_name("moved"))] == [b"one\n"] * 2


@requirement("outside:open:in_place")
def test_the_receipt_says_that_another_program_has_the_file_open(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "log").write_bytes(b"one\n")
    settings = Settings(state_dir=tmp_path / "state", durability="none")
    with open_workspace(root, settings=settings) as workspace, held_open(root / "log") as write:
        receipt = workspace.session().edit("log", ("one", "two and more"))
        write()
        assert any("open for writing" in warning for warning in receipt.warnings)
        assert (root / "log").read_bytes() == b"two and more\nOUTSIDE"


@requirement("outside:retry:taken_over")
@pytest.mark.parametrize("proven", [True, False])
@pytest.mark.parametrize(
    ("old", "new", "left"),
    [("one", "1", b"1\ntwo\n"), ("one\n", "one\nhalf\n", b"one\nhalf\ntwo\n")],
    ids=["replaced", "added"],
)
def test_a_change_that_another_program_took_over_while_it_was_visible_is_made_once(
    desk: Desk, kernel: Striking, old: str, new: str, left: bytes, *, proven: bool
) -> None:
    session = desk.workspace.session()
    sha256 = session.create("a", "one\ntwo\n").sha256
    path, taken = desk.root / "a", list[bytes]()

    def save(data: bytes) -> None:
        (desk.root / "a~").write_bytes(data)
        (desk.root / "a~").rename(path)

    kernel.before.append(lambda: save(b"one\ntwo\noutside\n"))
    kernel.after.extend([lambda: taken.append(path.read_bytes()), lambda: save(taken[0] + b"later\n")])

    done = session.edit("a", (old, new), expected_sha256=sha256 if proven else "")

    assert (path.read_bytes(), done.already_applied, done.change_id) == (left + b"later\n", True, "")
    assert done.warnings == (
        "Another program read this change while it was being made, and wrote it back with its own.",
    )
    versions = [after for _, _, after in desk.history("a")]
    assert b"one\ntwo\noutside\n" in versions
    assert versions[-1] == left + b"later\n"


@requirement("outside:retry:taken_over")
def test_a_change_that_left_nothing_is_not_taken_for_made_because_anything_holds_nothing(
    desk: Desk, kernel: Striking
) -> None:
    session, path = desk.workspace.session(), desk.root / "a"
    session.create("a", "one\n")

    def save() -> None:
        (desk.root / "a~").write_bytes(b"outside\n")
        (desk.root / "a~").rename(path)

    kernel.before.append(save)

    with pytest.raises(OldTextNotFound):
        session.edit("a", ("one\n", ""))

    assert path.read_bytes() == b"outside\n"


class Meddled(LocalDisk):
    """A disk on which something happens right before each change."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.before = list[Callable[[], object]]()

    def apply(self, *args: Any, **options: Any) -> None:
        if self.before:
            self.before.pop(0)()
        super().apply(*args, **options)


@pytest.fixture
def meddled(tmp_path: Path) -> Generator[tuple[Path, Meddled, AgentWorkspace]]:
    root = tmp_path / "root"
    root.mkdir()
    disk = Meddled([root], durability="none")
    store = SqliteStore(tmp_path / "state", clock=utc_now, durability="none")
    with AgentWorkspace(disk=disk, store=store, owner=current_owner) as workspace:
        yield root, disk, workspace


@requirement("outside:refused:left_alone")
def test_a_file_that_another_program_removes_first_is_not_made_again_by_a_refused_deletion(
    meddled: tuple[Path, Meddled, AgentWorkspace],
) -> None:
    root, disk, workspace = meddled
    session, seen = workspace.session(), list[bool]()
    sha256 = session.create("a", "one\n").sha256
    disk.before += [(root / "a").unlink, lambda: seen.append((root / "a").exists())]

    with pytest.raises(NotFound):
        session.delete_file("a", expected_sha256=sha256)

    assert (seen, list(root.iterdir())) == ([], [])
    assert workspace.history.log(LedgerQuery(path="a", ok_only=True))[0].call.operation == "external"


@requirement("outside:refused:left_alone")
def test_the_same_edit_by_another_program_is_not_taken_back_by_a_refused_one(
    meddled: tuple[Path, Meddled, AgentWorkspace],
) -> None:
    root, disk, workspace = meddled
    session, path, saved = workspace.session(), root / "a", list[int]()
    session.create("a", "one\ntwo\n")

    def save() -> None:
        (root / "a~").write_bytes(b"1\ntwo\n")
        saved.append((root / "a~").stat().st_ino)
        (root / "a~").rename(path)

    disk.before.append(save)

    assert session.edit("a", ("one", "1")).already_applied
    assert ([path.stat().st_ino], path.read_bytes()) == (saved, b"1\ntwo\n")
    assert workspace.history.log(LedgerQuery(path="a"))[0].call.operation == "external"


@requirement("outside:refused:left_alone")
def test_a_directory_that_becomes_a_link_during_a_change_refuses_it_and_leaves_nothing_unknown(
    meddled: tuple[Path, Meddled, AgentWorkspace], tmp_path: Path
) -> None:
    root, disk, workspace = meddled
    session = workspace.session()
    session.create("in/a", "one\n")

    def swap_directory() -> None:
        (root / "in").rename(root / "was")
        (root / "in").symlink_to(tmp_path)

    disk.before.append(swap_directory)

    with pytest.raises(OutsideWorkspace):
        session.edit("in/a", ("one", "two"))

    assert (root / "was" / "a").read_bytes() == b"one\n"
    assert workspace.recover() == ()
