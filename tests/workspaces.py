"""Workspaces to test with: every store on every disk, and a way to look at files behind Surehold's back."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from doubles.memory_disk import MemoryDisk
from doubles.memory_store import MemoryStore
from surehold.app import Settings, open_workspace
from surehold.disk.base import Disk
from surehold.disk.local import LocalDisk
from surehold.stores.base import Call, Operation, Store
from surehold.stores.owner import current_owner
from surehold.stores.sqlite.store import SqliteStore
from surehold.workspace.paths import Policy
from surehold.workspace.settings import Limits
from surehold.workspace.workspace import Workspace

StoreKind = Literal["sqlite", "memory"]
DiskKind = Literal["local", "memory"]
PAIRS: tuple[tuple[StoreKind, DiskKind], ...] = (
    ("sqlite", "local"),
    ("sqlite", "memory"),
    ("memory", "local"),
    ("memory", "memory"),
)


class Clock:
    """Time that moves only when a test says so, and a microsecond with every look."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(microseconds=1)
        return self.now


@dataclass(frozen=True)
class Bench:
    """A workspace, and the files under it as an outside program sees them."""

    workspace: Workspace
    disk: Disk
    store: Store
    root: Path
    clock: Clock
    get: Callable[[str], bytes | None]
    put: Callable[[str, bytes | None], None]


def make_store(kind: StoreKind, directory: Path, clock: Callable[[], datetime]) -> Store:
    return MemoryStore(clock=clock) if kind == "memory" else SqliteStore(directory, clock=clock, durability="none")


def make_bench(
    store_kind: StoreKind,
    disk_kind: DiskKind,
    directory: Path,
    *,
    policy: Policy | None = None,
    limits: Limits | None = None,
) -> Bench:
    """Build a workspace on a disk and a store; ids count upwards, so that two runs are alike."""
    clock, root = Clock(), directory / "root"
    root.mkdir(exist_ok=True)
    store = make_store(store_kind, directory / "state", clock)
    numbers = itertools.count(1)
    disk: Disk
    if disk_kind == "memory":
        disk = memory = MemoryDisk()
        get, put = memory.peek, memory.poke
    else:
        disk = LocalDisk([str(root)], durability="none")
        get, put = _reader(root), _putter(root)
    workspace = Workspace(
        disk=disk,
        store=store,
        owner=current_owner,
        policy=policy,
        limits=limits,
        clock=clock,
        new_id=lambda: f"id{next(numbers):06d}",
    )
    return Bench(workspace, disk, store, root, clock, get, put)


def real_workspace(root: Path, *, state: Path | None = None, **settings: object) -> Workspace:
    """Open a workspace the way a user does, with its state beside the root."""
    chosen = Settings(state_dir=state or root.parent / f"{root.name}-state", **settings)  # type: ignore[arg-type]
    return open_workspace(root, settings=chosen)


def call(operation: Operation = "edit", **facts: Any) -> Call:
    return Call(tool=operation, operation=operation, writer=operation, **facts)


def _reader(root: Path) -> Callable[[str], bytes | None]:
    return lambda path: (root / path).read_bytes() if (root / path).is_file() else None


def _putter(root: Path) -> Callable[[str, bytes | None], None]:
    def put(path: str, data: bytes | None) -> None:
        if data is None:
            (root / path).unlink()
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)

    return put
