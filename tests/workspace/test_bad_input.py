"""Every kind of bad input is a clear error with the next step; the files stay, and nothing is left behind."""

import os
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from surehold.errors import (
    BinaryFile,
    FileTooLarge,
    InvalidArgument,
    NotAFile,
    NotFound,
    OutsideWorkspace,
    StateCorrupt,
    StateTooNew,
    StateUnavailable,
    SureholdError,
)
from surehold.workspace.workspace import Workspace
from surehold.workspace.write_path import Limits
from workspaces import real_workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "root"
    directory.mkdir()
    (directory / "a.txt").write_bytes(b"one\n")
    return directory


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with real_workspace(root) as opened:
        yield opened


def contents(root: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in root.iterdir() if p.is_file() and not p.is_symlink()}


def refuse(workspace: Workspace, path: str) -> list[SureholdError]:
    """Try to read and to change a path; return what was said."""
    session = workspace.session()
    said = list[SureholdError]()
    for attempt in (
        lambda: session.read(path),
        lambda: session.page(path),
        lambda: session.edit(path, ("one", "two")),
        lambda: session.delete(path, expected_sha256="0" * 64),
        lambda: session.move(path, "elsewhere.txt"),
    ):
        with pytest.raises(SureholdError) as refused:
            attempt()
        said.append(refused.value)
    return said


def make_fifo(root: Path) -> str:
    os.mkfifo(root / "odd")
    return "odd"


def make_socket(root: Path) -> str:
    here = Path.cwd()
    os.chdir(root)  # a socket's path must be short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("odd")
    finally:
        os.chdir(here)
    return "odd"


def make_directory(root: Path) -> str:
    (root / "odd").mkdir()
    return "odd"


def link(target: str) -> object:
    def make(root: Path) -> str:
        (root / "odd").symlink_to(target)
        return "odd"

    return make


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda _: "missing.txt", NotFound),
        (lambda _: "missing/deep/er.txt", NotFound),
        (make_directory, NotAFile),
        (make_fifo, NotAFile),
        (make_socket, NotAFile),
        (link("/dev/zero"), OutsideWorkspace),
        (link("nowhere"), NotFound),
        (link("odd"), SureholdError),
        (link("/etc/hostname"), OutsideWorkspace),
        (lambda _: "../root-evil/a.txt", OutsideWorkspace),
        (lambda _: "..", OutsideWorkspace),
        (lambda _: "/etc/hostname", OutsideWorkspace),
        (lambda _: "~/a.txt", NotFound),
        (lambda _: "a\0b", InvalidArgument),
        (lambda _: "x" * 5000, InvalidArgument),
        (lambda _: "x" * 300, InvalidArgument),
        (lambda _: "", InvalidArgument),
        (lambda _: "a.txt/b.txt", NotFound),
        (lambda _: "\ud800", InvalidArgument),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_path_that_names_no_file_is_refused_everywhere(
    workspace: Workspace, root: Path, make: object, kind: type[SureholdError]
) -> None:
    path = make(root)  # type: ignore[operator]  # a function that prepares the path
    before = contents(root)

    said = refuse(workspace, path)

    assert all(isinstance(error, kind) for error in said), said
    assert all(error.message.endswith(".") and error.action for error in said)
    assert contents(root) == before


def test_a_binary_file_is_not_edited_as_text_but_can_be_moved_and_deleted(workspace: Workspace, root: Path) -> None:
    (root / "b.bin").write_bytes(b"\0one\0")
    session = workspace.session()

    with pytest.raises(BinaryFile):
        session.edit("b.bin", ("one", "two"))
    session.move("b.bin", "c.bin")
    session.read("c.bin")
    session.delete("c.bin")
    session.undo()

    assert (root / "c.bin").read_bytes() == b"\0one\0"


def test_a_file_above_the_limit_is_read_page_by_page_only(root: Path) -> None:
    with (root / "big").open("wb") as file:
        file.write(b"first\n")
        file.truncate(2 << 30)
    with real_workspace(root) as workspace:
        session = workspace.session()
        with pytest.raises(FileTooLarge) as refused:
            session.edit("big", ("first", "second"))
        assert refused.value.details["size"] == 2 << 30
    (root / "big").unlink()


def test_the_limit_can_be_chosen(root: Path) -> None:
    with real_workspace(root, limits=Limits(max_file_bytes=3)) as workspace:
        with pytest.raises(FileTooLarge):
            workspace.read("a.txt")
        assert workspace.page("a.txt").rows == (b"one\n",)


def test_a_name_that_is_not_utf8_works_like_any_other(workspace: Workspace, root: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    session = workspace.session()

    session.create(name, "one\n")
    session.edit(name, ("one", "two"))
    session.undo()

    assert Path(os.fsencode(root).decode("utf-8", "surrogateescape"), name).read_bytes() == b"one\n"
    assert workspace.history.log()[0].change.path == name


def test_a_state_directory_that_cannot_be_made_is_said_before_anything_is_written(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(StateUnavailable) as refused:
        real_workspace(root, state=tmp_path / "file" / "state")

    assert "--state-dir" in refused.value.action
    assert contents(root) == {"a.txt": b"one\n"}


def test_a_state_from_a_newer_version_is_refused(root: Path, tmp_path: Path) -> None:
    real_workspace(root, state=tmp_path / "state").close()
    with sqlite3.connect(tmp_path / "state" / "state.db") as database:
        database.execute("PRAGMA user_version = 999")
    database.close()

    with pytest.raises(StateTooNew):
        real_workspace(root, state=tmp_path / "state")


@pytest.mark.parametrize("damage", [b"", b"garbage" * 100])
def test_a_damaged_database_is_said_and_the_files_stay(root: Path, tmp_path: Path, damage: bytes) -> None:
    with real_workspace(root, state=tmp_path / "state") as workspace:
        workspace.session().edit("a.txt", ("one", "two"))
    path = tmp_path / "state" / "state.db"
    path.write_bytes(damage or path.read_bytes()[:5000])

    with pytest.raises(StateCorrupt), real_workspace(root, state=tmp_path / "state") as workspace:
        workspace.session().edit("a.txt", ("two", "three"))

    assert contents(root) == {"a.txt": b"two\n"}


def test_a_damaged_blob_is_named_when_it_is_needed(root: Path, tmp_path: Path) -> None:
    with real_workspace(root, state=tmp_path / "state") as workspace:
        change = workspace.session().edit("a.txt", ("one", "two")).change_id
        database = sqlite3.connect(tmp_path / "state" / "state.db")
        database.execute("UPDATE blobs SET data = zeroblob(length(data))")
        database.commit()
        database.close()

        with pytest.raises(StateCorrupt) as refused:
            workspace.history.undo(change)
        assert "surehold verify" in refused.value.action
        assert not workspace.history.verify().ok
    assert contents(root) == {"a.txt": b"two\n"}


def test_a_read_only_directory_is_refused_without_litter(root: Path) -> None:
    """Root may write anywhere, so the attempt is made by a child that is somebody else."""
    root.chmod(0o555)
    (root / "a.txt").chmod(0o444)
    for parent in (root.parent, *root.parent.parents[:3]):
        parent.chmod(parent.stat().st_mode | 0o055) if parent.stat().st_uid == os.getuid() else None
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            state = Path("/tmp") / f"surehold-test-{os.getpid()}"
            workspace = real_workspace(root, state=state)
            try:
                workspace.session().create("new.txt", "x")
                said = "created"
            except SureholdError as error:
                said = f"{error.kind} {error.reason}"
            finally:
                workspace.close()
                import shutil

                shutil.rmtree(state)
        except BaseException as error:  # noqa: BLE001 - the parent must hear about anything
            said = repr(error)
        os.write(write_end, said.encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)

    assert said == "permission_denied os_denied"
    assert sorted(p.name for p in root.iterdir()) == ["a.txt"]
