"""What a dead process left open is closed by looking at the bytes; what a living one does is left alone."""

import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from spec.marks import requirement
from surehold.errors import StateUnavailable
from surehold.stores.base import Blob, Change, Intent
from surehold.stores.owner import Owner, current_owner
from surehold.text.snapshot import Meta, Version, sha256_hex
from surehold.workspace.recovery import SettledIntent, is_mixture
from surehold.workspace.settings import Limits
from workspaces import Bench, call, make_bench, real_workspace

DEAD = Owner(host="elsewhere", boot="", pid=1, started="")


def version(data: bytes) -> Version:
    return Version(sha256=sha256_hex(data), size=len(data))


def leave_open(
    bench: Bench, *changes: Change, blobs: tuple[bytes, ...], owner: Owner = DEAD, lease: float = -1
) -> Intent:
    """Open an intent and leave it, as a process does that dies between its two commits."""
    intent = Intent(id="left", call=call(), changes=changes, owner=owner, began=bench.clock().isoformat())
    bench.store.begin(intent, [Blob(data=d, sha256=sha256_hex(d)) for d in blobs], lease=lease, fence=0)
    return intent


@requirement("engine:recover:torn")
def test_a_torn_write_into_the_same_inode_gets_its_old_bytes_back_and_the_torn_ones_are_kept(bench: Bench) -> None:
    bench.put("a", b"NEd bytes")
    changed = Change(path="a", before=version(b"old bytes"), after=version(b"NEW bytes"), in_place=True)
    leave_open(bench, changed, blobs=(b"old bytes", b"NEW bytes"))

    assert bench.workspace.recover() == (SettledIntent(change_id="left", direction="backward", paths=("a",)),)

    assert (bench.get("a"), bench.store.read_blob(sha256_hex(b"NEd bytes"))) == (b"old bytes", b"NEd bytes")


def test_an_outside_edit_after_the_crash_is_not_taken_for_a_torn_write(bench: Bench) -> None:
    bench.put("a", b"by hand!!")
    changed = Change(path="a", before=version(b"old bytes"), after=version(b"NEW bytes"), in_place=True)
    leave_open(bench, changed, blobs=(b"old bytes", b"NEW bytes"))

    assert bench.workspace.recover() == (
        SettledIntent(change_id="left", direction="conflict", paths=("a",), conflicts=("a",)),
    )
    assert bench.get("a") == b"by hand!!"
    assert not bench.store.has_blob(sha256_hex(b"by hand!!"))


@pytest.mark.parametrize("size", [10, 600, 5000])
@pytest.mark.parametrize("growth", [-7, 0, 9])
def test_a_write_in_place_that_stops_anywhere_leaves_a_mixture(size: int, growth: int) -> None:
    before, after = b"a" * size, b"b" * (size + growth)
    shown = bytearray(before)

    assert is_mixture(bytes(shown), before, after)
    shown.extend(after[size:])
    for done in range(0, min(size, len(after)), 13):
        shown[:done] = after[:done]
        assert is_mixture(bytes(shown), before, after)
    assert not is_mixture(b"c" * size, before, after)


@requirement("engine:recover:torn")
def test_bytes_with_two_half_written_blocks_are_not_those_of_one_torn_write() -> None:
    before, after = b"a" * 1536, b"b" * 1536
    half_written = b"b" * 100 + b"a" * 412

    assert is_mixture(half_written + b"a" * 1024, before, after)
    assert is_mixture(b"b" * 512 + half_written + b"a" * 512, before, after)
    assert not is_mixture(half_written * 2 + b"a" * 512, before, after)
    assert not is_mixture(half_written + b"b" * 512 + half_written, before, after)


@requirement("engine:recover:again", "engine:recover:temporaries")
def test_what_a_killed_recovery_left_beside_the_files_is_removed_and_kept(tmp_path: Path) -> None:
    bench = make_bench("sqlite", "local", tmp_path)
    bench.put("a", b"new a")
    bench.put("b", b"old b")
    changes = (
        Change(path="a", before=version(b"old a"), after=version(b"new a")),
        Change(path="b", before=version(b"old b"), after=version(b"new b")),
    )
    intent = leave_open(bench, *changes, blobs=(b"old a", b"new a", b"old b", b"new b"))
    bench.put(f".surehold-{intent.id}-1.tmp", b"new b, staged by the call")
    for index in range(2):  # whatever names a recovery uses, the next one may meet them
        bench.put(f".surehold-{intent.id}r-{index}.tmp", b"old, staged by a recovery")

    (settled,) = bench.workspace.recover()

    assert (settled.direction, settled.problem) == ("backward", "")
    assert {path.name: path.read_bytes() for path in bench.root.iterdir()} == {"a": b"old a", "b": b"old b"}
    for kept in (b"new b, staged by the call", b"old, staged by a recovery"):
        assert bench.store.read_blob(sha256_hex(kept)) == kept
    bench.workspace.close()


@requirement("engine:recover:backward", "promise:half_done:many_files")
def test_a_call_that_is_done_in_some_files_only_is_taken_back_in_all(bench: Bench) -> None:
    bench.put("a", b"new a")
    bench.put("b", b"old b")
    bench.put("c", b"new c")
    changes = (
        Change(path="a", before=version(b"old a"), after=version(b"new a")),
        Change(path="b", before=version(b"old b"), after=version(b"new b")),
        Change(path="c", before=None, after=version(b"new c")),
    )
    leave_open(bench, *changes, blobs=(b"old a", b"new a", b"old b", b"new b", b"new c"))

    bench.workspace.recover()

    assert [bench.get(name) for name in "abc"] == [b"old a", b"old b", None]
    assert [entry.ok for entry in bench.workspace.history.log()] == [False, False, False]


@requirement("engine:recover:backward")
def test_a_move_that_took_a_file_away_and_did_not_arrive_puts_it_back(bench: Bench) -> None:
    bench.put("a", b"mine")
    moved = Change(path="a", to_path="b", before=version(b"mine"), after=version(b"mine"), displaced=version(b"theirs"))
    leave_open(bench, moved, blobs=(b"mine", b"theirs"))

    assert bench.workspace.recover() == (SettledIntent(change_id="left", direction="backward", paths=("a", "b")),)
    assert (bench.get("a"), bench.get("b")) == (b"mine", b"theirs")


@requirement("engine:recover:forward", "engine:recover:backward")
@pytest.mark.parametrize(("mode", "direction"), [(0o644, "backward"), (0o755, "forward")])
def test_a_change_of_the_mode_alone_has_happened_when_the_file_has_the_new_mode(
    tmp_path: Path, mode: int, direction: str
) -> None:
    bench = make_bench("sqlite", "local", tmp_path)
    bench.put("a", b"same")
    (bench.root / "a").chmod(mode)
    before, after = (replace(version(b"same"), meta=Meta(mode=one)) for one in (0o644, 0o755))
    leave_open(bench, Change(path="a", before=before, after=after), blobs=(b"same",))

    (settled,) = bench.workspace.recover()

    assert settled.direction == direction
    assert stat.S_IMODE((bench.root / "a").stat().st_mode) == mode
    assert [entry.ok for entry in bench.workspace.history.log()] == [direction == "forward"]
    bench.workspace.close()


@requirement("engine:recover:lock_first", "engine:store:living_owner")
def test_the_change_of_a_living_owner_is_not_settled_by_somebody_else(bench: Bench) -> None:
    bench.put("a", b"new")
    change = Change(path="a", before=version(b"old"), after=version(b"new"))
    intent = leave_open(bench, change, blobs=(b"old", b"new"), owner=current_owner(), lease=60)

    assert bench.workspace.recover() == ()

    assert (bench.get("a"), bench.workspace.checkpoints.open()) == (b"new", (intent,))


HOLDER = """
import sys
from surehold.disk.local import LocalDisk
disk = LocalDisk([sys.argv[1]])
with disk.lock([disk.resolve("a")], timeout=120):
    print("held", flush=True)
    sys.stdin.read()
"""


@requirement("engine:recover:lock_first")
def test_a_path_that_somebody_holds_is_settled_only_when_it_is_free(tmp_path: Path) -> None:
    bench = make_bench("sqlite", "local", tmp_path, limits=Limits(lock_timeout=0.1))
    bench.put("a", b"new")
    leave_open(bench, Change(path="a", before=version(b"old"), after=version(b"new")), blobs=(b"old", b"new"))
    command = [sys.executable, "-c", HOLDER, str(bench.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        (while_held,) = bench.workspace.recover()
        holder.communicate()

    assert (while_held.direction, while_held.paths) == ("failed", ("a",))
    assert "Try again" in while_held.problem
    assert bench.workspace.recover() == (SettledIntent(change_id="left", direction="forward", paths=("a",)),)
    bench.workspace.close()


KILLED = """
import os, signal, sys
from pathlib import Path
from surehold import Settings, open_workspace
workspace = open_workspace(sys.argv[1], settings=Settings(state_dir=Path(sys.argv[2])))
workspace.store.finish = lambda *args, **more: os.kill(os.getpid(), signal.SIGKILL)
workspace.session().edit("a", ("one", "two"))
"""


@requirement("engine:recover:on_open", "engine:recover:forward", "promise:half_done:one_file")
def test_opening_a_workspace_closes_what_a_killed_process_left_open(tmp_path: Path) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    (root / "a").write_bytes(b"one\n")

    done = subprocess.run([sys.executable, "-c", KILLED, str(root), str(state)], check=False)
    assert done.returncode == -signal.SIGKILL

    with real_workspace(root, state=state) as workspace:
        assert workspace.checkpoints.open() == ()
        assert [(e.call.operation, e.ok) for e in workspace.history.log()] == [("edit", True)]
        assert (root / "a").read_bytes() == b"two\n"
        workspace.session().undo()
    assert list(root.iterdir()) == [root / "a"]
    assert (root / "a").read_bytes() == b"one\n"


@requirement("engine:recover:again")
def test_recovery_may_run_twice(bench: Bench) -> None:
    bench.put("a", b"new")
    leave_open(bench, Change(path="a", before=version(b"old"), after=version(b"new")), blobs=(b"old", b"new"))

    first, second = bench.workspace.recover(), bench.workspace.recover()

    assert ([settled.direction for settled in first], second) == (["forward"], ())
    assert bench.workspace.history.verify().ok


def give_up(bench: Bench, intent: Intent) -> None:
    """Let this process give a change up, as the only one, and leave the rest to the test."""
    leases = bench.workspace.reader.recovery.leases
    leases.close()
    for other in leases.list_given_up():  # by another test of this process
        leases.forget(other.id)
    leases.give_up(intent)


@requirement("engine:store:given_up")
def test_what_this_process_gave_up_is_settled_once(bench: Bench) -> None:
    bench.put("a", b"new")
    changed = Change(path="a", before=version(b"old"), after=version(b"new"))
    intent = leave_open(bench, changed, blobs=(b"old", b"new"), owner=current_owner(), lease=60)
    leases = bench.workspace.reader.recovery.leases
    assert bench.workspace.recover() == ()
    give_up(bench, intent)
    assert [leases.may_settle(busy) for busy in bench.store.open_intents()] == [True]

    assert bench.workspace.recover() == (SettledIntent(change_id="left", direction="forward", paths=("a",)),)

    assert leases.list_given_up() == ()
    assert bench.workspace.recover() == ()


@requirement("engine:store:given_up")
@pytest.mark.parametrize("lease", [60, -1], ids=["living", "dead"])
def test_what_was_given_up_and_cannot_be_settled_is_said_once_and_stays_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lease: float
) -> None:
    bench = make_bench("memory", "memory", tmp_path, limits=Limits(lock_timeout=0))
    bench.put("a", b"new")
    changed = Change(path="a", before=version(b"old"), after=version(b"new"))
    owner = current_owner() if lease > 0 else DEAD
    intent = leave_open(bench, changed, blobs=(b"old", b"new"), owner=owner, lease=lease)
    give_up(bench, intent)
    leases = bench.workspace.reader.recovery.leases

    with monkeypatch.context() as patch:

        def refuse(*_: object, **__: object) -> NoReturn:
            raise StateUnavailable("The disk with the history is full.", reason="disk_full")

        patch.setattr(bench.store, "finish", refuse)
        (failed,) = bench.workspace.recover()
        assert (failed.direction, failed.paths) == ("failed", ("a",))
        assert "is full" in failed.problem
        assert leases.list_given_up() == (intent,)

    bench.store.finish(intent.id)
    assert bench.workspace.recover() == ()  # it is closed
    leases.forget(intent.id)
