"""An acknowledged write has reached the disk: the file, its directory, and the ledger."""

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spec.marks import requirement

EDIT = """
import os, sys
from pathlib import Path
from surehold import Settings, open_workspace
workspace = open_workspace(sys.argv[1], settings=Settings(state_dir=Path(sys.argv[2]), durability=sys.argv[3]))
session = workspace.session()
os.write(2, b"begin")
session.edit("a.txt", ("one", "two"))
os.write(2, b"acknowledged")
"""


def traced(tmp_path: Path, durability: str) -> list[tuple[str, str]]:
    """Return every call that changes or syncs a file, with the file it is about, up to the acknowledgement."""
    root, state, log = tmp_path / "root", tmp_path / "state", tmp_path / "trace"
    root.mkdir()
    (root / "a.txt").write_bytes(b"one\n")
    calls = "trace=write,pwrite64,fsync,fdatasync,renameat2,linkat"
    strace = ["strace", "-f", "-y", "-o", str(log), "-e", calls]
    done = subprocess.run(
        [*strace, sys.executable, "-c", EDIT, str(root), str(state), durability], capture_output=True, check=False
    )
    if done.stderr != b"beginacknowledged":
        pytest.skip(f"strace may not trace: {done.stderr.decode()}")
    story = in_order(log.read_text(errors="replace").partition('"begin"')[2].partition('"acknowledged"')[0])
    return re.findall(r"^\d+ +(\w+)\(\d+<([^>]*)>", story, re.MULTILINE)


@requirement("promise:half_done:machine", "promise:nothing_lost:checkpoint")
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_an_acknowledged_write_is_synced_file_directory_and_ledger(tmp_path: Path) -> None:
    story = traced(tmp_path, "full")
    root, ledger = str(tmp_path / "root"), str(tmp_path / "state" / "state.db-wal")
    swap = next(at for at, (call, where) in enumerate(story) if call in ("renameat2", "linkat") and where == root)
    before = [where for call, where in story[:swap] if call in ("fsync", "fdatasync")]
    after = [where for call, where in story[swap:] if call in ("fsync", "fdatasync")]

    assert ledger in before, "the old bytes and the intent come first"
    assert any(where.startswith(f"{root}/") for where in before), "then the new bytes"
    assert root in after, "then the directory"
    assert ledger in after, "then the entry"
    last_entry = max(at for at, (call, where) in enumerate(story) if "write" in call and where == ledger)
    assert {call for call, where in story[last_entry:] if where == ledger} >= {"pwrite64", "fdatasync"}


@requirement("engine:disk:durability")
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_without_durability_nothing_is_synced(tmp_path: Path) -> None:
    assert [call for call, _ in traced(tmp_path, "none") if call in ("fsync", "fdatasync")] == []


ANY_CHANGE = """
import errno, os, sys
from pathlib import Path
from surehold import Settings, SureholdError, open_workspace
from surehold.disk.kernel import Kernel, Unsupported
from surehold.disk.steps import rename, replace, staging
from surehold.stores.base import Call
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.workspace.proposal import Exact, Proposal

def unsupported(*_):
    raise Unsupported

def swap_all_but_b(kernel, fd, one, other, swap=Kernel.swap):
    if other == "b.txt":
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    swap(kernel, fd, one, other)

def fail(*paths):
    Kernel.swap = swap_all_but_b
    edit = SnapshotEdits((StringEdit(old="one", new="two"),))
    try:
        workspace.write(*(Proposal(path=path, edit=edit, proof=Exact()) for path in paths), call=call)
    except SureholdError:
        return
    raise AssertionError("it should have failed")

call = Call(tool="patch", operation="patch", writer="patch")
workspace = open_workspace(sys.argv[1], settings=Settings(state_dir=Path(sys.argv[2]), durability="full", blobs=sys.argv[4]))
session = workspace.session()
os.write(2, b"begin")
exec(sys.argv[3])
os.write(2, b"acknowledged")
"""
_CHANGES = "write,pwrite64,ftruncate,rename,renameat,renameat2,link,linkat,mkdir,mkdirat"
_CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += \d", re.MULTILINE)


def in_order(story: str) -> str:
    """Return what strace saw with every call where it returned: two threads may be in one at the same time."""
    begun, rows = dict[str, str](), list[str]()
    for row in story.splitlines():
        thread, _, call = row.partition(" ")
        if call.endswith("<unfinished ...>"):
            begun[thread] = row.removesuffix("<unfinished ...>").rstrip()
        elif found := re.match(r" *<\.\.\. \w+ resumed>(.*)", call):
            rows.append(f"{begun.pop(thread, thread)}{found[1]}")
        else:
            rows.append(row)
    return "\n".join(rows)


def unsynced(story: str, *below: Path) -> tuple[set[str], set[str]]:
    """Return what was changed below some directories, files and directories, and what of it was not synced afterwards."""
    changed, waiting = set[str](), set[str]()
    for call, arguments in _CALL.findall(story):
        descriptors = re.findall(r"\d<([^>]*)>", arguments)
        if call in ("fsync", "fdatasync"):
            waiting -= set(descriptors)
            continue
        named = {os.path.dirname(name) for name in re.findall(r'"(/[^"]*)"', arguments) if "/proc/" not in name}  # noqa: PTH120
        touched = descriptors[:1] if call in ("write", "pwrite64", "ftruncate") else [*descriptors, *named]
        here = {path for path in touched if any(Path(path).is_relative_to(place) for place in below)}
        changed |= here
        waiting |= here
    return changed, waiting


def out_of_order(story: str, root: Path, state: Path, blobs: Path) -> list[tuple[str, set[str]]]:
    """Return every step that was made too early, with what was not synced before it.

    A path below the root changes only when the history, the old bytes and the new bytes are synced; the history goes on
    only when nothing below the root waits for its sync.
    """
    wrong, waiting = list[tuple[str, set[str]]](), set[str]()
    for call, arguments in _CALL.findall(story):
        (first, *_), history = re.findall(r"\d<([^>]*)>", arguments) or [""], str(state / "state.db-wal")
        if call in ("fsync", "fdatasync"):
            waiting.discard(first)
            continue
        inside = Path(first).is_relative_to(root)
        if first == history:
            too_early = {path for path in waiting if Path(path).is_relative_to(root)}
        elif inside and (call.startswith(("rename", "link")) or not is_staged(first)):
            too_early = {path for path in waiting if path != first and not Path(path).is_dir()}
        else:
            too_early = set[str]()
        wrong += [(f"{call}({arguments})", too_early)] if too_early else []
        if inside or first == history or Path(first).is_relative_to(blobs):
            waiting.add(first)
    return wrong


def is_staged(path: str) -> bool:
    """Tell whether bytes are written where no reader looks: into a nameless file, a temporary one, or a new directory."""
    return Path(path).is_dir() or path.endswith("(deleted)") or Path(path).name.startswith((".surehold-", "#"))


def story_of(change: str, tmp_path: Path, *, blobs: Path | None = None) -> str:
    """Make a change and return every call that changes or syncs a file, up to the acknowledgement."""
    root, state, log = tmp_path / "root", tmp_path / "state", tmp_path / "trace"
    (root / "sub").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "linked.txt"):
        (root / name).write_bytes(b"one\n")
    (root / "second.txt").hardlink_to(root / "linked.txt")
    (root / "large.txt").write_bytes(b"one\n" + random.Random(1).randbytes(100_000).hex().encode())
    strace = ["strace", "-f", "-y", "-o", str(log), "-e", f"trace={_CHANGES},fsync,fdatasync"]
    program = [sys.executable, "-c", ANY_CHANGE, str(root), str(state), change, str(blobs or "")]

    done = subprocess.run([*strace, *program], capture_output=True, check=False)

    if b"strace: " in done.stderr:
        pytest.skip(f"strace may not trace: {done.stderr.decode()}")
    assert done.stderr == b"beginacknowledged"
    return in_order(log.read_text(errors="replace").partition('"begin"')[2].partition('"acknowledged"')[0])


@requirement("promise:half_done:machine", "promise:nothing_lost:checkpoint")
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize(
    ("change", "directories"),
    [
        pytest.param('session.edit("a.txt", ("one", "two"))', {""}, id="edit"),
        pytest.param('session.create("new/deep/c.txt", "c")', {"", "new", "new/deep"}, id="create"),
        pytest.param('session.delete("a.txt", expected_sha256=workspace.fingerprint("a.txt"))', {""}, id="delete"),
        pytest.param('session.move("a.txt", "sub/c.txt")', {"", "sub"}, id="move"),
        pytest.param('session.edit("linked.txt", ("one", "two"))', set[str](), id="hard link"),
        pytest.param('Kernel.swap = unsupported; session.edit("a.txt", ("one", "two"))', {""}, id="without swap"),
        pytest.param(
            'Kernel.swap = replace.link_file = staging.link_file = unsupported; session.edit("a.txt", ("one", "two"))',
            {""},
            id="without swap and links",
        ),
        pytest.param(
            'Kernel.rename_new = unsupported; session.move("a.txt", "sub/c.txt")', {"", "sub"}, id="move by a link"
        ),
        pytest.param(
            'Kernel.rename_new = rename.link_file = unsupported; session.move("a.txt", "sub/c.txt")',
            {"", "sub"},
            id="move by a copy",
        ),
        pytest.param('session.edit("large.txt", ("one", "two"))', {""}, id="large file"),
        pytest.param('fail("a.txt", "b.txt")', {""}, id="failed batch"),
        pytest.param('fail("linked.txt", "b.txt")', set[str](), id="failed batch in place"),
    ],
)
def test_everything_that_a_change_touched_is_synced_before_it_is_acknowledged(
    tmp_path: Path, change: str, directories: set[str]
) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    story = story_of(change, tmp_path)

    changed, waiting = unsynced(story, root, state / "blobs")
    assert waiting == set()
    assert out_of_order(story, root, state, state / "blobs") == []
    assert {path for path in changed if Path(path).is_dir() and Path(path).is_relative_to(root)} == {
        str(root / directory) for directory in directories
    }
    assert any(Path(path).is_relative_to(state / "blobs") for path in changed) == ("large" in change)


@requirement("promise:half_done:machine", "promise:nothing_lost:checkpoint")
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_large_version_kept_elsewhere_is_synced_before_its_file_changes(tmp_path: Path) -> None:
    root, blobs = tmp_path / "root", tmp_path / "versions"
    story = story_of('session.edit("large.txt", ("one", "two"))', tmp_path, blobs=blobs)

    changed, waiting = unsynced(story, root, blobs)
    assert waiting == set()
    assert out_of_order(story, root, tmp_path / "state", blobs) == []
    assert {Path(path).suffix for path in changed if Path(path).is_relative_to(blobs)} == {"", ".tmp"}
    assert str(blobs) in changed
