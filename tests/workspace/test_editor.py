"""A workspace whose files are open in an editor: the same promises, as far as an editor lets them be kept."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from disk.editors import Editor
from spec.marks import requirement
from surehold.disk.editor.disk import EditorDisk
from surehold.disk.local import LocalDisk
from surehold.errors import DeniedByRule, OutsideWorkspace, RecoveryRequired, StaleFile, Unavailable
from surehold.library.workspace import AgentWorkspace
from surehold.text.plan import Delete
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.snapshot import sha256_hex
from surehold.workspace.proposal import Exact, Proposal
from surehold.workspace.settings import Limits
from surehold.workspace.workspace import Workspace
from workspaces import real_workspace


@dataclass
class Desk:
    """A workspace, the editor that its files are open in, and the files."""

    workspace: Workspace
    editor: Editor
    root: Path

    def open(self, name: str, data: bytes, *, typed: str | None = None) -> Path:
        path = self.root / name
        path.write_bytes(data)
        if typed is not None:
            self.editor.type(path, typed)
        return path

    def operations(self) -> list[tuple[str, bool]]:
        """What the ledger holds, oldest first."""
        return [(entry.call.operation, entry.ok) for entry in self.workspace.history.log()][::-1]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    root, editor = tmp_path / "root", Editor()
    root.mkdir()
    with real_workspace(root, editor=editor, deny=("secret",)) as workspace:
        yield Desk(workspace, editor, root)


def proposal(path: str, old: str, new: str) -> Proposal:
    return Proposal(path=path, edit=SnapshotEdits((StringEdit(old=old, new=new),)), proof=Exact())


def test_the_editor_of_the_settings_is_what_files_are_read_through(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with real_workspace(tmp_path / "root", editor=Editor()) as with_editor:
        assert isinstance(with_editor, AgentWorkspace)
        assert isinstance(with_editor.disk, EditorDisk)
    with real_workspace(tmp_path / "root") as without:
        assert isinstance(without.disk, LocalDisk)


@requirement("multi_edit:acp:editor_files")
def test_an_edit_changes_what_the_user_sees_and_not_the_disk(desk: Desk) -> None:
    path = desk.open("a", b"saved\n", typed="one typed\ntwo\n")

    receipt = desk.workspace.session().edit("a", ("one", "1"))

    assert (desk.editor.text(path), path.read_bytes()) == ("1 typed\ntwo\n", b"saved\n")
    assert receipt.files[0].before_sha256 == sha256_hex(b"one typed\ntwo\n")
    assert receipt.files[0].after_sha256 == desk.workspace.fingerprint("a")
    assert receipt.diff.splitlines()[3:] == ["-one typed", "+1 typed", " two"]


@requirement("multi_edit:acp:editor_files")
def test_the_tools_read_and_edit_unsaved_text(desk: Desk) -> None:
    path = desk.open("a", b"saved\n", typed="typed\n")
    assert isinstance(desk.workspace, AgentWorkspace)
    session = desk.workspace.session()

    page = session.read_file("a")
    edited = session.edit_file("a", [("typed", "edited")], expected_sha256=page.sha256 or "")

    assert (page.content, edited.before_sha256) == ("typed\n", sha256_hex(b"typed\n"))
    assert (desk.editor.text(path), path.read_bytes()) == ("edited\n", b"saved\n")


def test_what_was_on_the_disk_below_unsaved_text_is_kept(desk: Desk) -> None:
    desk.open("a", b"saved\n", typed="typed\n")

    desk.workspace.session().edit("a", ("typed", "edited"))

    for data in (b"saved\n", b"typed\n", b"edited\n"):
        assert desk.workspace.store.read_blob(sha256_hex(data)) == data


@requirement("multi_edit:acp:editor_files")
def test_a_session_has_seen_what_the_editor_showed_it(desk: Desk) -> None:
    path = desk.open("a", b"saved\n", typed="typed\n")
    session = desk.workspace.session()
    assert session.read("a").data == b"typed\n"
    session.write("a", "written\n")

    desk.editor.type(path, "typed again\n")
    with pytest.raises(StaleFile) as refused:
        session.write("a", "over it\n")

    assert refused.value.details["actual_sha256"] == sha256_hex(b"typed again\n")
    assert (desk.editor.text(path), path.read_bytes()) == ("typed again\n", b"saved\n")


@requirement("multi_edit:acp:editor_files")
def test_undo_and_redo_go_through_the_editor(desk: Desk) -> None:
    path = desk.open("a", b"saved\n", typed="typed\n")
    session = desk.workspace.session()
    session.edit("a", ("typed", "edited"))
    desk.editor.type(path, "edited\nand more\n")

    session.undo()
    assert (desk.editor.text(path), path.read_bytes()) == ("typed\nand more\n", b"saved\n")
    session.redo()
    assert (desk.editor.text(path), path.read_bytes()) == ("edited\nand more\n", b"saved\n")


@requirement("multi_edit:acp:editor_files")
def test_two_files_change_together_or_not_at_all(desk: Desk) -> None:
    a = desk.open("a", b"a saved\n", typed="a typed\n")
    b = desk.open("b", b"b\n")
    desk.editor.broken = {"b"}

    with pytest.raises(Unavailable):
        desk.workspace.session().apply(proposal("a", "typed", "edited"), proposal("b", "b", "c"))

    assert (desk.editor.text(a), desk.editor.text(b)) == ("a typed\n", "b\n")
    assert (a.read_bytes(), b.read_bytes()) == (b"a saved\n", b"b\n")
    assert desk.operations() == [("patch", False), ("patch", False)]
    assert desk.workspace.store.open_intents() == ()


def test_reading_edited_text_again_is_no_outside_edit_before_or_after_it_is_saved(desk: Desk) -> None:
    path = desk.open("a", b"one\n")
    session = desk.workspace.session()
    for old, new in (("one", "two"), ("two", "three")):
        session.edit("a", (old, new))
        session.read("a")
    desk.editor.save(path)
    session.read("a")
    session.edit("a", ("three", "four"))

    assert desk.operations() == [("edit", True)] * 3


def test_what_a_formatter_makes_of_it_is_an_outside_edit(desk: Desk) -> None:
    desk.open("a", b"one\n")
    desk.editor.formatter = str.lower
    session = desk.workspace.session()

    session.edit("a", ("one", "TWO"))
    session.edit("a", ("two", "three"))

    assert desk.operations() == [("edit", True), ("external", True), ("edit", True)]
    assert desk.workspace.read("a").data == b"three\n"


@requirement("multi_edit:acp:editor_files")
def test_a_file_with_unsaved_changes_is_not_deleted_or_moved(desk: Desk) -> None:
    path = desk.open("a", b"saved\n", typed="typed\n")
    session = desk.workspace.session()
    session.read("a")

    for refuse in (lambda: session.delete("a"), lambda: session.move("a", "b")):
        with pytest.raises(StaleFile) as refused:
            refuse()
        assert refused.value.reason == "unsaved_changes"

    assert (path.read_bytes(), desk.editor.text(path)) == (b"saved\n", "typed\n")
    desk.editor.save(path)
    session.delete("a")
    assert not path.exists()
    session.undo()
    assert path.read_bytes() == b"typed\n"


def test_what_the_rules_or_the_roots_exclude_never_reaches_the_editor(desk: Desk) -> None:
    desk.open("secret", b"x\n")
    (desk.root.parent / "outside").write_bytes(b"x\n")
    session = desk.workspace.session()

    for path, error in (("secret", DeniedByRule), ("../outside", OutsideWorkspace)):
        with pytest.raises(error):
            session.read(path)
        with pytest.raises(error):
            session.edit(path, ("x", "y"))

    assert desk.editor.asked == []


def test_new_and_restored_files_are_made_on_the_disk(desk: Desk) -> None:
    session = desk.workspace.session()
    session.create("dir/new", "text\n")
    assert (desk.root / "dir" / "new").read_bytes() == b"text\n"

    trash_id = session.delete("dir/new").files[0].change.trash_id
    session.restore(trash_id)

    assert ((desk.root / "dir" / "new").read_bytes(), desk.editor.written) == (b"text\n", [])


def test_a_search_shows_what_is_on_the_disk_and_its_lines_are_no_proof_of_unsaved_text(desk: Desk) -> None:
    from surehold.search.query import Search

    desk.open("a", b"needle saved\n", typed="a line\nneedle typed\n")
    desk.open("b", b"needle\n")

    found = desk.workspace.finder.search(Search(query="needle", mode="text"))

    assert [(match.path, match.line) for match in found.matches] == [("a", 1), ("b", 1)]
    assert [one.sha256 for one in found.files] == [sha256_hex(b"needle saved\n"), sha256_hex(b"needle\n")]
    assert desk.editor.asked == []


def test_a_workspace_without_the_editor_sees_the_disk_and_its_edits_are_refused_to_nobody(desk: Desk) -> None:
    path = desk.open("a", b"saved\n", typed="typed\n")
    desk.workspace.session().edit("a", ("typed", "edited"))

    with real_workspace(desk.root, state=desk.root.parent / "root-state") as other:
        assert other.read("a").data == b"saved\n"
        other.session().edit("a", ("saved", "by another"))

    assert path.read_bytes() == b"by another\n"
    assert desk.operations() == [("edit", True), ("external", True), ("edit", True)]
    assert desk.editor.text(path) == desk.workspace.read("a").text == "edited\n"


CHILD = """
import os, signal, sys
from pathlib import Path
from disk.editors import Editor
from surehold import Settings, open_workspace
from workspace.test_editor import proposal
root, state, saves, where = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "saves", sys.argv[4]
editor = Editor(saves=saves)
if not saves:
    editor.type(root / "a", "typed one\\n")
workspace = open_workspace(root, settings=Settings(state_dir=state, editor=editor))
die = lambda *args, **more: os.kill(os.getpid(), signal.SIGKILL)
if where == "second":
    editor.on_write = lambda path: die() if path.endswith("b") else None
else:
    workspace.store.finish = die
workspace.session().apply(proposal("a", "one", "two"), proposal("b", "three", "four"))
"""


def killed(tmp_path: Path, *, saves: bool, where: str) -> Path:
    """Kill a process in the middle of a change to two files."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_bytes(b"one\n")
    (root / "b").write_bytes(b"three\n")
    command = [sys.executable, "-c", CHILD, str(root), str(tmp_path / "state"), "saves" if saves else "", where]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    assert subprocess.run(command, check=False, env=env).returncode == -signal.SIGKILL
    return root


@requirement("multi_edit:acp:editor_files")
@pytest.mark.parametrize("where", ["second", "finish"])
def test_what_reached_only_a_buffer_leaves_the_disk_alone_when_the_editor_is_gone(tmp_path: Path, where: str) -> None:
    root = killed(tmp_path, saves=False, where=where)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in root.iterdir()}

    with real_workspace(root, state=tmp_path / "state") as workspace:
        assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in root.iterdir()} == before
        assert workspace.store.open_intents() == ()
        assert [entry.ok for entry in workspace.history.log()] == [False, False]
        for data in (b"typed one\n", b"typed two\n", b"three\n", b"four\n"):
            assert workspace.store.read_blob(sha256_hex(data)) == data
        workspace.session().edit("a", ("one", "1"))

    assert {path.name: path.read_bytes() for path in root.iterdir()} == {"a": b"1\n", "b": b"three\n"}


@requirement("multi_edit:acp:editor_files")
def test_what_an_editor_saved_in_some_files_only_is_taken_back_on_the_disk(tmp_path: Path) -> None:
    root = killed(tmp_path, saves=True, where="second")
    assert (root / "a").read_bytes() == b"two\n"

    with real_workspace(root, state=tmp_path / "state") as workspace:
        assert [entry.ok for entry in workspace.history.log()] == [False, False]

    assert [(root / name).read_bytes() for name in "ab"] == [b"one\n", b"three\n"]


@pytest.mark.parametrize(
    ("a", "b", "ok", "left"),
    [
        ("typed two\n", "four\n", True, ("typed two\n", "four\n")),
        ("typed two\n", "three\n", False, ("typed one\n", "three\n")),
        ("typed since\n", "four\n", False, ("typed since\n", "three\n")),
    ],
)
def test_an_editor_that_is_still_there_decides_what_became_of_a_change(
    tmp_path: Path, a: str, b: str, ok: bool, left: tuple[str, str]
) -> None:
    root, editor = killed(tmp_path, saves=False, where="finish"), Editor()
    editor.type(root / "a", a)
    editor.type(root / "b", b)

    with real_workspace(root, state=tmp_path / "state", editor=editor) as workspace:
        workspace.recover()  # not done on opening: an editor answers only once it knows the session
        assert [entry.ok for entry in workspace.history.log()] == [ok, ok]

    assert (editor.text(root / "a"), editor.text(root / "b")) == left
    assert [(root / name).read_bytes() for name in "ab"] == [b"one\n", b"three\n"]


def test_a_change_is_settled_as_soon_as_the_editor_can_be_asked(tmp_path: Path) -> None:
    root, editor = killed(tmp_path, saves=False, where="second"), Editor()
    editor.type(root / "a", "typed two\n")
    editor.silent = True

    with real_workspace(root, state=tmp_path / "state", editor=editor) as workspace:
        assert len(workspace.store.open_intents()) == 1
        editor.silent = False
        assert workspace.read("a").data == b"typed one\n"
        assert workspace.store.open_intents() == ()


def test_an_editor_that_leaves_in_the_middle_leaves_the_change_open_until_it_is_back(tmp_path: Path) -> None:
    root, editor = tmp_path / "root", Editor()
    root.mkdir()
    (root / "a").write_bytes(b"one\n")
    (root / "b").write_bytes(b"three\n")
    with real_workspace(root, editor=editor, limits=Limits(lease=0)) as workspace:
        editor.on_write = lambda path: setattr(editor, "silent", path.endswith("b"))
        with pytest.raises(RecoveryRequired):
            workspace.session().apply(proposal("a", "one", "two"), proposal("b", "three", "four"))
        assert (editor.text(root / "a"), len(workspace.store.open_intents())) == ("two\n", 1)

        editor.silent = False
        assert workspace.read("a").data == b"one\n"
        assert [entry.ok for entry in workspace.history.log()] == [False, False]
    assert [(root / name).read_bytes() for name in "ab"] == [b"one\n", b"three\n"]


@requirement("multi_edit:acp:weaker_guarantee")
def test_an_edit_through_the_editor_warns_that_its_guarantee_is_weaker(desk: Desk) -> None:
    desk.open("a", b"one\n")
    desk.open("zero", b"zero\0byte")
    session = desk.workspace.session()

    receipt = session.apply(proposal("a", "one", "two"), Proposal(path="zero", edit=Delete(), proof=Exact()))

    (said,) = receipt.files[0].warnings
    assert said == (
        "`a` was written through the editor, which cannot compare and write in one step: what was typed in that moment "
        "may be lost. It is not saved yet: the file on the disk is as before."
    )
    assert receipt.files[1].warnings == ()
    assert session.edit("a", ("two", "one"), dry_run=True).warnings == ()
