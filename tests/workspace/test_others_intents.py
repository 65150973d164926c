"""Open intents of other paths delay nothing, whether their processes are dead, stopped or slow. Counted, never timed."""

import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.app import Settings, open_workspace
from surehold.disk.base import Target
from surehold.disk.local import LocalDisk
from surehold.errors import LockTimeout, StaleFile
from surehold.stores import ledger_entries
from surehold.stores.base import Intent
from surehold.workspace.settings import Limits

COUNT = 60

PATCHES = """
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from surehold.disk.local import LocalDisk
from surehold.stores.base import Blob, Call, Change, Intent
from surehold.stores.owner import current_owner
from surehold.stores.sqlite.store import SqliteStore
from surehold.text.snapshot import sha256_hex
from surehold.text.snapshot import Version

root, state, name, count, lease = sys.argv[1:]
disk = LocalDisk([root], durability="none")
store = SqliteStore(Path(state), clock=lambda: datetime.now(UTC), durability="none")
call, new = Call(tool="t", operation="patch", writer="files"), b"new\\n"
version = Version(sha256=sha256_hex(new), size=len(new))
with ExitStack() as stack:
    for number in range(int(count)):
        path = f"{name}/{number}/a.txt"
        Path(root, path).parent.mkdir(parents=True)
        stack.enter_context(disk.lock([disk.resolve(path)], timeout=60))
        change = Change(path=path, before=None, after=version)
        intent = Intent(id=f"{name}-{number}", call=call, changes=(change,), owner=current_owner(), began="2026")
        store.begin(intent, [Blob(data=new, sha256=version.sha256)], lease=float(lease), fence=0)
    print("ready", flush=True)
    sys.stdin.read()
"""


@contextmanager
def patches(root: Path, state: Path, name: str, *, lease: float) -> "Generator[subprocess.Popen[bytes]]":
    """Run a process with many patches under way, each of which has begun and holds its lock."""
    command = [sys.executable, "-c", PATCHES, str(root), str(state), name, str(COUNT), str(lease)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


class Spy:
    """Counts which intents are read, and which locks are tried for how long."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.read, self.locked = 0, list[tuple[str, float]]()
        lock, from_text = LocalDisk.lock, ledger_entries.intent_from_text

        def spy_lock(disk: LocalDisk, targets: Sequence[Target], *, timeout: float) -> AbstractContextManager[None]:
            self.locked += [(target.key, timeout) for target in targets]
            return lock(disk, targets, timeout=timeout)

        def spy_text(text: str) -> Intent:
            self.read += 1
            return from_text(text)

        patch.setattr(LocalDisk, "lock", spy_lock)
        patch.setattr(ledger_entries, "intent_from_text", spy_text)


@requirement("engine:recover:own_paths", "engine:recover:on_open")
def test_patches_of_dead_and_stopped_processes_delay_only_their_own_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    (root / "mine.txt").write_text("one\n")
    settings = Settings(state_dir=state, recover_on_open=False, limits=Limits(lock_timeout=0.01))
    with patches(root, state, "stopped", lease=-1) as stopped, open_workspace(root, settings=settings) as workspace:
        stopped.send_signal(signal.SIGSTOP)
        with patches(root, state, "dead", lease=3600):
            pass
        session, spy = workspace.session(id="s"), Spy(monkeypatch)

        session.read("mine.txt")
        session.edit("mine.txt", ("one", "two"))
        with pytest.raises(StaleFile):
            session.edit("mine.txt", ("two", "three"), expected_sha256="0" * 64)
        assert (spy.read, {key for key, _ in spy.locked}) == (0, {"mine.txt"})
        assert len(workspace.store.open_intents()) == 2 * COUNT

        session.create("dead/7/a.txt", "mine\n")
        with pytest.raises(LockTimeout):
            session.create("stopped/7/a.txt", "mine\n")
        left = {busy.intent.id for busy in workspace.store.open_intents()}
        assert len(left) == 2 * COUNT - 1
        assert "dead-7" not in left

        spy.locked.clear()
        open_workspace(root, settings=Settings(state_dir=state)).close()
        assert {timeout for _, timeout in spy.locked} == {0}
        assert {busy.intent.id.split("-")[0] for busy in workspace.store.open_intents()} == {"stopped"}
        assert len(workspace.store.open_intents()) == COUNT
