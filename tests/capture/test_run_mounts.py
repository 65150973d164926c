"""A workspace, or a part of it, that is mounted at another place too."""

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from capture.desk import RunDesk
from capture.fingerprint import take_fingerprint
from spec.marks import requirement
from surehold import open_workspace
from surehold.capture.calls import tables_of
from surehold.capture.filter import can_listen
from surehold.capture.mounts import OtherPlaces

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")


def mount(source: Path, place: Path) -> Generator[None]:
    place.mkdir(exist_ok=True)
    if os.geteuid() != 0 or subprocess.run(["mount", "--bind", source, place], check=False).returncode:
        pytest.skip("only root may mount")
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.fixture
def elsewhere(desk: RunDesk) -> Generator[Path]:
    """Return another place of the workspace."""
    place = desk.root.parent / "else where"
    for _ in mount(desk.root, place):
        yield place


@pytest.fixture
def inside(desk: RunDesk) -> Generator[Path]:
    """Return a directory outside of the workspace that is mounted in it, at `here`."""
    source = desk.root.parent / "source"
    source.mkdir()
    (source / "b.txt").write_text("two\n")
    for _ in mount(source, desk.root / "here"):
        yield source


def check_undo(desk: RunDesk, script: str) -> None:
    before = take_fingerprint(desk.root)

    assert desk.run(script).returncode == 0

    report = desk.read_report()
    assert (report["change_id"] is not None, report["complete"]) == (True, True)
    assert take_fingerprint(desk.root) != before
    with open_workspace(desk.root, settings=desk.settings()) as workspace:
        workspace.history.undo(report["change_id"])
    assert take_fingerprint(desk.root) == before


@requirement("run:report:complete")
@pytest.mark.parametrize(
    "script",
    [
        "echo x > '{place}/sub/b.txt'",
        "rm '{place}/sub/b.txt'",
        "cd '{place}'; mv sub moved; echo x >> moved/b.txt; echo new > new",
        "exec 3<'{place}/a.txt'; chmod 600 /proc/self/fd/3",
        "cd '{place}/sub'; ln b.txt c; echo x > c",
    ],
)
def test_what_is_changed_at_another_place_comes_back(desk: RunDesk, elsewhere: Path, script: str) -> None:
    check_undo(desk, script.format(place=elsewhere))


@requirement("run:report:complete")
@pytest.mark.parametrize("script", ["echo x > '{place}/b.txt'", "rm '{place}/b.txt'; mkdir '{place}/d'"])
def test_what_is_changed_where_a_part_of_the_workspace_is_from_comes_back(
    desk: RunDesk, inside: Path, script: str
) -> None:
    check_undo(desk, script.format(place=inside))


@requirement("run:report:complete")
def test_other_places_are_those_of_the_same_directory(tmp_path: Path) -> None:
    root = os.fsencode(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("sub")
    table = b"1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:1 %b %b/link rw - ext4 /dev/a rw\n3 1 8:1 /no /no rw - ext4 /dev/a rw\n"

    others = OtherPlaces([root], table % (root + b"/sub", root))

    assert others.path_in_roots(root + b"/link/x") == root + b"/sub/x"
    assert [others.path_in_roots(path) for path in (b"/no/x", root + b"/linked", root)] == [
        b"/no/x",
        root + b"/linked",
        root,
    ]
    assert not OtherPlaces([b"/nowhere"], b"")


@requirement("run:report:complete")
@pytest.mark.parametrize(
    ("name", "arguments", "path", "why"),
    [
        ("open_tree", (-100, b".", 1), "", "it changed what is mounted where"),
        ("open_tree_attr", (-100, b".", 1, 0, 0), "", "it changed what is mounted where"),
        ("fsmount", (-1, 0, 0), "", "it changed what is mounted where"),
        ("acct", (b"missing",), "", "it let the kernel itself write to a file (acct, swapon)"),
        ("swapon", (b"a.txt", 0), "", "it let the kernel itself write to a file (acct, swapon)"),
        ("ioctl", (0, 0x5000940F, 0), "sub", "it made, changed or removed a btrfs subvolume"),
        ("ioctl", (0, 0x40806685, 0), "sub", "it changed the flags of a file (chattr)"),
    ],
)
def test_a_call_that_leads_round_all_paths_is_named(
    desk: RunDesk, name: str, arguments: tuple[object, ...], path: str, why: str
) -> None:
    number = tables_of(os.uname().machine)[0].numbers[name]
    program = f"import ctypes, os; os.dup2(os.open('sub', 0), 0); ctypes.CDLL(None).syscall({number}, *{arguments!r})"
    words = [*desk.words(), sys.executable, "-I", "-S", "-c", program]

    assert subprocess.run(words, cwd=desk.root, capture_output=True, check=False).returncode == 0

    report = desk.read_report()
    assert (report["complete"], report["not_kept"]) == (False, [{"path": path, "why": why}])


@requirement("run:report:complete")
def test_a_tree_that_is_only_opened_by_its_path_is_no_mount(desk: RunDesk) -> None:
    number = tables_of(os.uname().machine)[0].numbers["open_tree"]
    program = f'import ctypes; ctypes.CDLL(None).syscall({number}, -100, b".", 0)'
    words = [*desk.words(), sys.executable, "-I", "-S", "-c", program]

    assert subprocess.run(words, cwd=desk.root, capture_output=True, check=False).returncode == 0

    assert desk.read_report()["complete"] is True
