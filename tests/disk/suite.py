"""What every disk test uses: a disk, and a way to look at it and to meddle with it from outside."""

import hashlib
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from doubles.memory_disk import MemoryDisk
from surehold.disk.base import Create, Disk, Remove, Rename, Replace, Step, Target
from surehold.disk.kernel import Kernel
from surehold.disk.local import LocalDisk
from surehold.disk.steps.staging import Durability

KERNELS = {
    "local": Kernel(leases=False),
    "local-without-openat2": Kernel(openat2=False, leases=False),
    "local-without-swap": Kernel(exchange=False, noreplace=False, tmpfile=False, leases=False),
}
"""Without leases: here the other program is this process, which would wait for itself. See test_outside_writers."""
AsNobody = Callable[[Callable[[], str]], str]
"""Runs something in a child process without privileges and returns what it says."""
BARE = KERNELS["local-without-swap"]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def no_fence() -> None:
    """Agree to everything."""


@dataclass(kw_only=True)
class World:
    """A disk under test."""

    disk: Disk
    put: Callable[[str, bytes | None], None]
    """Write or remove a file as an outside program would."""
    listing: Callable[[], dict[str, bytes]]
    """Every file, temporary ones included."""
    kept: list[bytes] = field(default_factory=list[bytes])

    def keep(self, key: str, data: bytes) -> None:
        """Take bytes of an outside program."""
        del key
        self.kept.append(data)

    def target(self, path: str) -> Target:
        return self.disk.resolve(path)

    def read(self, path: str) -> bytes | None:
        stored = self.disk.read(self.target(path), limit=1 << 30)
        return None if stored is None else stored.data

    def apply(self, *steps: Step, fence: Callable[[], None] = no_fence, tag: str = "t1") -> None:
        self.disk.apply(steps, tag=tag, fence=fence, keep=self.keep)

    def create(self, path: str, data: bytes) -> Create:
        return Create(target=self.target(path), data=data)

    def replace(self, path: str, data: bytes, *, expected: bytes) -> Replace:
        return Replace(target=self.target(path), data=data, expected=sha(expected))

    def remove(self, path: str, *, expected: bytes) -> Remove:
        return Remove(target=self.target(path), expected=sha(expected))

    def rename(self, path: str, to: str, *, expected: bytes) -> Rename:
        return Rename(source=self.target(path), target=self.target(to), expected=sha(expected))


@dataclass(kw_only=True)
class LocalWorld(World):
    """A local disk under test."""

    root: Path
    outside: Path

    def entries(self) -> list[str]:
        """Every file and directory below the root."""
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*"))


def memory_world() -> World:
    disk = MemoryDisk()
    return World(disk=disk, put=disk.poke, listing=disk.all_files)


def local_world(
    base: Path, kernel: Kernel, *, roots: Sequence[str] = ("ws",), durability: Durability = "none"
) -> LocalWorld:
    for name in (*roots, "outside"):
        (base / name).mkdir()
    root = base / roots[0]
    disk = LocalDisk(
        [base / name for name in roots], kernel=kernel, durability=durability, lock_dir=str(base / "outside")
    )

    def put(path: str, data: bytes | None) -> None:
        if data is None:
            (root / path).unlink(missing_ok=True)
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)

    def listing() -> dict[str, bytes]:
        files = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(files)}

    return LocalWorld(disk=disk, put=put, listing=listing, root=root, outside=base / "outside")


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@contextmanager
def ordinary_user(uid: int = 65534, gid: int = 65534, groups: Sequence[int] = ()) -> Generator[None]:
    """Let this process be another user for a block, without the rights of root."""
    before = os.getgroups()
    os.setgroups(groups)
    os.setresgid(gid, gid, 0)
    os.setresuid(uid, uid, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(before)


def as_nobody(work: Callable[[], str]) -> str:
    """Run `work` as a user who is neither root nor the owner of anything."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            try:
                said = work()
            except BaseException as error:  # noqa: BLE001  # whatever it is, the parent shall show it
                said = repr(error)
            os.write(send, said.encode())
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as answer:
        said = answer.read().decode()
    os.waitpid(child, 0)
    return said
