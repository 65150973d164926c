"""What a command does to hard-linked files by names outside of the workspace."""

import sys
from pathlib import Path

import pytest

from capture.desk import RunDesk
from spec.marks import requirement
from surehold import open_workspace
from surehold.capture.filter import can_listen

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")

_LARGE = b"large\n" * 20_000


def facts_of(path: Path) -> tuple[bytes, int, int]:
    status = path.stat()
    return path.read_bytes(), status.st_mode, status.st_mtime_ns


@pytest.fixture
def outside(desk: RunDesk) -> Path:
    """Return a directory outside of the workspace, with another name of a file in it."""
    folder = desk.root.parent / "outside"
    folder.mkdir()
    (folder / "a").hardlink_to(desk.root / "sub/b.txt")
    (folder / "alone").write_text("alone\n")
    return folder


@requirement("run:links:outside")
@pytest.mark.parametrize(
    "script",
    [
        "echo via > ../outside/a",
        "echo via >> ../outside/a",
        "truncate -s 1 ../outside/a",
        "chmod 640 ../outside/a",
        "touch -d 2001-01-01 ../outside/a",
        "exec 3< ../outside/a; chmod 604 /proc/self/fd/3",
        "ln -s ../outside/a ../outside/link; echo via > ../outside/link",
        "rm sub/b.txt; echo via > ../outside/a",
        "mv sub moved; echo via > ../outside/a",
        "ln a.txt ../outside/new; echo via > ../outside/new",
    ],
)
def test_a_file_that_is_changed_by_a_name_outside_comes_back(desk: RunDesk, outside: Path, script: str) -> None:
    names = [desk.root / name for name in ("a.txt", "sub/b.txt")]
    before = [facts_of(name) for name in names]

    assert desk.run(script).returncode == 0

    report = desk.read_report()
    assert (report["change_id"] is not None, report["complete"]) == (True, False)
    assert "hard links outside" in report["not_kept"][0]["why"]
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(report["change_id"])
    assert [facts_of(name) for name in names] == before


@requirement("run:links:outside")
@pytest.mark.parametrize("script", ["mv big ../outside; echo x > ../outside/big", "rm big; echo x > ../outside/large"])
def test_a_file_that_left_and_is_written_then_comes_back(desk: RunDesk, outside: Path, script: str) -> None:
    (desk.root / "big").write_bytes(_LARGE)
    if "large" in script:
        (outside / "large").hardlink_to(desk.root / "big")

    assert desk.run(script).returncode == 0

    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(desk.read_report()["change_id"])
    assert (desk.root / "big").read_bytes() == _LARGE


@requirement("run:links:outside", "run:nothing:no_entry")
def test_hard_links_that_are_not_of_the_workspace_do_not_matter(desk: RunDesk, outside: Path) -> None:
    (outside / "other").hardlink_to(outside / "alone")

    assert desk.run("echo via > ../outside/other; chmod 600 ../outside/alone").returncode == 0

    report = desk.read_report()
    assert (report["change_id"], report["complete"], report["not_kept"]) == (None, True, [])


@requirement("run:report:fields")
@pytest.mark.parametrize(
    ("script", "counts"),
    [("mv d d2", (0, 0, 5)), ("mv d/l d/m; mv d/h h", (0, 0, 2)), ("rm d/l; ln -s c d/m; mv d/c c", (1, 1, 1))],
)
def test_whatever_got_another_path_counts_as_moved(desk: RunDesk, script: str, counts: tuple[int, int, int]) -> None:
    (desk.root / "d/e").mkdir(parents=True)
    (desk.root / "d/c").write_text("c\n")
    (desk.root / "d/l").symlink_to("c")
    (desk.root / "d/h").hardlink_to(desk.root / "a.txt")

    desk.run(script)

    report = desk.read_report()
    assert (report["created"], report["deleted"], report["moved"]) == counts


@requirement("run:links:outside", "run:guard:refuses")
def test_a_protected_file_is_protected_by_its_other_names_too(desk: RunDesk, outside: Path) -> None:
    (desk.root / ".bashrc").write_text("as it was\n")
    (outside / "rc").hardlink_to(desk.root / ".bashrc")

    done = desk.run("setsid -w sh -c 'echo via > ../outside/rc'", "--guard", "100")

    assert (done.returncode != 0, (desk.root / ".bashrc").read_text()) == (True, "as it was\n")


@requirement("run:links:outside")
@pytest.mark.parametrize(
    "script",
    [
        "mv ../outside/a in; echo via > in",
        "ln ../outside/a in; echo via > in",
        "mv ../outside/a a.txt; echo via > a.txt; echo one > a.txt",
        "mv ../outside in; echo via >> in/a",
        "mv ../outside/a in; truncate -s 1 in",
        "mv ../outside/a in; chmod 640 in",
        "mv ../outside/a in; chmod 640 in; rm in",
        "mv ../outside/a in; exec 3< in; chmod 604 /proc/self/fd/3",
        "mv ../outside/a in; mv sub moved; echo via > in",
    ],
)
def test_a_file_that_is_changed_by_a_name_that_came_in_comes_back(desk: RunDesk, outside: Path, script: str) -> None:
    before = facts_of(desk.root / "sub/b.txt")

    assert desk.run(script).returncode == 0

    report = desk.read_report()
    assert not report["complete"]
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(report["change_id"])
    assert facts_of(desk.root / "sub/b.txt") == before


@requirement("run:undo:exact")
@pytest.mark.parametrize("source", ["os.open('a.txt', os.O_RDONLY), b''", "-100, b'a.txt'"])
def test_a_file_that_got_another_name_by_its_descriptor_comes_back(desk: RunDesk, source: str) -> None:
    before = facts_of(desk.root / "a.txt")
    link = f"ctypes.CDLL(None).linkat({source}, -100, b'new', 0x1000)"

    desk.run(f"{sys.executable} -c \"import ctypes, os; {link} == 0 or os.link('a.txt', 'new')\"; echo via > new")

    report = desk.read_report()
    assert (report["created"], report["changed"], report["complete"]) == (1, 1, True)
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(report["change_id"])
    assert facts_of(desk.root / "a.txt") == before
    assert not (desk.root / "new").exists()
