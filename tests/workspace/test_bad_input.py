"""Every kind of bad input is a clear error with the next step; the files stay, and nothing is left behind."""

import os
import socket
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.errors import (
    BinaryFile,
    FileTooLarge,
    InvalidArgument,
    NotAFile,
    NotEncodable,
    NotFound,
    OutsideWorkspace,
    StateCorrupt,
    StateTooNew,
    StateUnavailable,
    SureholdError,
)
from surehold.workspace.settings import Limits
from surehold.workspace.workspace import Workspace
from workspaces import real_workspace

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make devices and become another user")


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


def make_device(root: Path) -> str:
    os.mknod(root / "odd", 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero, which never ends
    return "odd"


def make_directory(root: Path) -> str:
    (root / "odd").mkdir()
    return "odd"


def named(path: str) -> Callable[[Path], str]:
    return lambda _: path


def link(target: str) -> Callable[[Path], str]:
    def make(root: Path) -> str:
        (root / "odd").symlink_to(target)
        return "odd"

    return make


@requirement(
    "engine:bad_input:missing",
    "engine:bad_input:directory",
    "promise:contained:devices",
    "engine:bad_input:dangling_link",
    "engine:bad_input:looping_link",
    "engine:bad_input:nul",
    "engine:bad_input:long_path",
    "engine:bad_input:nothing_left",
    "promise:contained:dotdot",
    "promise:contained:links",
    "promise:contained:spelling",
    "promise:refusal:next_step",
)
@pytest.mark.parametrize(
    ("make", "kind", "reason"),
    [
        (named("missing.txt"), NotFound, "no_such_file"),
        (named("missing/deep/er.txt"), NotFound, "no_such_file"),
        (make_directory, NotAFile, "is_a_directory"),
        (make_fifo, NotAFile, "not_a_file"),
        (make_socket, NotAFile, "not_a_file"),
        pytest.param(make_device, NotAFile, "not_a_file", marks=only_root),
        (link("/dev/zero"), OutsideWorkspace, "symlink_escape"),
        (link("nowhere"), NotFound, "no_such_file"),
        (link("odd"), NotFound, "symlink_loop"),
        (link("/etc/hostname"), OutsideWorkspace, "symlink_escape"),
        (named("../root-evil/a.txt"), OutsideWorkspace, "dotdot"),
        (named(".."), OutsideWorkspace, "dotdot"),
        (named("/etc/hostname"), OutsideWorkspace, "absolute"),
        (named("~/a.txt"), NotFound, "no_such_file"),
        (named("a\0b"), InvalidArgument, "nul_in_path"),
        (named("x" * 5000), InvalidArgument, "path_too_long"),
        (named("x" * 300), InvalidArgument, "name_too_long"),
        (named(""), InvalidArgument, "empty_path"),
        (named("a.txt/b.txt"), NotFound, "not_a_directory"),
        (named("\ud800"), InvalidArgument, "lone_surrogate"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_path_that_names_no_file_is_refused_everywhere(
    workspace: Workspace, root: Path, make: Callable[[Path], str], kind: type[SureholdError], reason: str
) -> None:
    path = make(root)
    before = contents(root)

    said = refuse(workspace, path)

    assert {(type(error), error.reason) for error in said} == {(kind, reason)}
    assert all(error.message.endswith(".") and error.action for error in said)
    assert contents(root) == before


@requirement("promise:contained:devices")
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (make_fifo, "a FIFO"),
        (make_socket, "a socket"),
        pytest.param(make_device, "a character device", marks=only_root),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_no_regular_file_is_refused_by_name_and_at_once(
    workspace: Workspace, root: Path, make: Callable[[Path], str], name: str
) -> None:
    path = make(root)

    messages = {error.message for error in refuse(workspace, path)}

    assert messages == {f"`odd` is {name}, not a regular file."}


@requirement("engine:bad_input:dangling_link", "promise:contained:links")
def test_nothing_is_created_behind_a_link_that_leads_out(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    (root / "odd").symlink_to(tmp_path / "new.txt")

    with pytest.raises(OutsideWorkspace):
        workspace.session().create("odd", "x")

    assert not (tmp_path / "new.txt").exists()
    assert (root / "odd").is_symlink()


def test_a_directory_whose_name_is_not_utf8_is_found_by_the_bytes_that_were_shown(
    workspace: Workspace, root: Path
) -> None:
    directory = root / "caf\udce9"
    directory.mkdir()
    (directory / "a.txt").write_bytes(b"one\n")

    assert workspace.session().read("caf\\xe9/a.txt").text == "one\n"


def test_a_link_into_a_directory_that_is_gone_leads_to_no_file_that_could_be_deleted(
    workspace: Workspace, root: Path
) -> None:
    (root / "odd").symlink_to("gone/a.txt")

    with pytest.raises(NotFound) as refused:
        workspace.session().delete("odd")
    assert refused.value.reason == "no_such_file"


@requirement("engine:bad_input:content_not_utf8", "text:encoding:raw", "text:encoding:unencodable")
def test_content_that_is_not_utf8_is_edited_with_ascii_only(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_bytes(b"caf\xe9 one\n")
    session = workspace.session()
    assert session.read("a.txt").text == "caf\\xe9 one\n"

    with pytest.raises(NotEncodable) as refused:
        session.edit("a.txt", ("one", "größe"))
    assert refused.value.details == {"characters": ["U+00DF", "U+00F6"], "encoding": "bytes"}
    session.edit("a.txt", ("one", "two"))

    assert contents(root) == {"a.txt": b"caf\xe9 two\n"}


@requirement("engine:bad_input:unreadable")
@only_root
def test_a_file_that_may_not_be_read_is_permission_denied(root: Path) -> None:
    (root / "a.txt").chmod(0)

    said = as_nobody(root, lambda workspace: workspace.session().read("a.txt"))

    assert said == "permission_denied os_denied"


@requirement("text:binary:nul")
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


@requirement("engine:bad_input:too_large")
def test_a_file_above_the_limit_is_read_page_by_page_only(root: Path) -> None:
    with (root / "big").open("wb") as file:
        file.write(b"first\n")
        file.truncate(2 << 30)
    with real_workspace(root) as workspace:
        session = workspace.session()
        with pytest.raises(FileTooLarge) as refused:
            session.edit("big", ("first", "second"))
        assert refused.value.details == {"size": 2 << 30, "limit": 1 << 30}
    (root / "big").unlink()


@requirement("engine:bad_input:too_large")
def test_the_limit_can_be_chosen(root: Path) -> None:
    with real_workspace(root, limits=Limits(max_file_bytes=3)) as workspace:
        with pytest.raises(FileTooLarge):
            workspace.read("a.txt")
        assert workspace.page("a.txt").rows == (b"one\n",)


@requirement("engine:bad_input:name_not_utf8")
def test_a_name_that_is_not_utf8_works_like_any_other(workspace: Workspace, root: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    session = workspace.session()

    session.create(name, "one\n")
    session.edit(name, ("one", "two"))
    session.undo()

    assert Path(os.fsencode(root).decode("utf-8", "surrogateescape"), name).read_bytes() == b"one\n"
    assert workspace.history.log()[0].change.path == name


@requirement("engine:bad_input:state_not_writable")
def test_a_state_directory_that_cannot_be_made_is_said_before_anything_is_written(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(StateUnavailable) as refused:
        real_workspace(root, state=tmp_path / "file" / "state")

    assert "--state-dir" in refused.value.action
    assert contents(root) == {"a.txt": b"one\n"}


@requirement("engine:bad_input:state_too_new")
def test_a_state_from_a_newer_version_is_refused(root: Path, tmp_path: Path) -> None:
    real_workspace(root, state=tmp_path / "state").close()
    with sqlite3.connect(tmp_path / "state" / "state.db") as database:
        database.execute("PRAGMA user_version = 999")
    database.close()

    with pytest.raises(StateTooNew):
        real_workspace(root, state=tmp_path / "state")


@requirement("engine:bad_input:truncated_database")
@pytest.mark.parametrize("damage", [b"", b"garbage" * 100])
def test_a_damaged_database_is_said_and_the_files_stay(root: Path, tmp_path: Path, damage: bytes) -> None:
    with real_workspace(root, state=tmp_path / "state") as workspace:
        workspace.session().edit("a.txt", ("one", "two"))
    path = tmp_path / "state" / "state.db"
    path.write_bytes(damage or path.read_bytes()[:5000])

    with pytest.raises(StateCorrupt), real_workspace(root, state=tmp_path / "state") as workspace:
        workspace.session().edit("a.txt", ("two", "three"))

    assert contents(root) == {"a.txt": b"two\n"}


@requirement("engine:bad_input:corrupt_blob")
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


@requirement("engine:bad_input:read_only_directory")
def test_a_read_only_directory_is_refused_without_litter(root: Path) -> None:
    root.chmod(0o555)
    (root / "a.txt").chmod(0o444)

    said = as_nobody(root, lambda workspace: workspace.session().create("new.txt", "x"))

    assert said == "permission_denied os_denied"
    assert {path.name: path.read_bytes() for path in root.iterdir()} == {"a.txt": b"one\n"}


def as_nobody(root: Path, attempt: Callable[[Workspace], object]) -> str:
    """Root may do anything, so the attempt is made by a child of another user; return what it was told."""
    for parent in (root.parent, *root.parent.parents[:3]):
        if parent.stat().st_uid == os.getuid():
            parent.chmod(parent.stat().st_mode | 0o055)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            with tempfile.TemporaryDirectory() as state, real_workspace(root, state=Path(state)) as workspace:
                said = repr(attempt(workspace))
        except SureholdError as error:
            said = f"{error.kind} {error.reason}"
        except BaseException as error:  # noqa: BLE001 - the parent must hear about anything
            said = repr(error)
        os.write(write_end, said.encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said
