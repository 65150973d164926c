"""Tests, in a real directory, the mechanisms that the guarantees depend on.

Rules:
1. Everything happens in a new directory inside the one being tested, and that directory is removed afterwards.
2. A trial uses the same calls as the disk does. What cannot be tested is reported, never raised.
3. `ok` is about the mechanism alone; `fallback` says what happens without it. Without both, a guarantee does not hold.
"""

import errno
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path

from surehold.disk.kernel import (
    O_DIRECTORY,
    O_NOFOLLOW,
    Kernel,
    Unsupported,
    close_after,
    filesystem_of,
    is_coherent,
    locks_reach_others,
    sync,
)
from surehold.disk.locks import try_directory
from surehold.disk.tree import ACL

PREFIX = ".surehold-doctor-"
_MIN_FREE_BYTES = 64 << 20
_SYNC_ROUNDS = 5
_CHILD_WAIT_SECONDS = 20
# A system that lacks something says one of these; anything else is trouble that no fallback mends.
_UNSUPPORTED_ERRNOS = frozenset(
    {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.EACCES, errno.ENOTTY}
    | {errno.EBADF, errno.ENOLCK, errno.EMLINK, errno.EXDEV, errno.EISDIR}
)
_TRY_LOCK = """
import os, sys
sys.path.insert(0, sys.argv[2])
from surehold.disk.locks import try_directory
sys.exit(0 if try_directory(os.open(sys.argv[1], os.O_RDONLY)) else 7)
"""
_REFUSED_LOCK = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    name: str
    ok: bool
    detail: str
    fallback: str = ""
    """What is done instead where the mechanism is missing; empty when nothing can be."""


Trial = Callable[[Path, Kernel], str]


def probe_directory(directory: Path, *, kernel: Kernel | None = None) -> tuple[ProbeResult, ...]:
    """Try everything that files need, inside `directory`; `OSError` when nothing can be made there."""
    return _run_trials(directory, kernel or Kernel(), _DIRECTORY_TRIALS)


def probe_state(directory: Path) -> tuple[ProbeResult, ...]:
    """Try everything that the history needs, inside `directory`; `OSError` when nothing can be made there."""
    return _run_trials(directory, Kernel(), _STATE_TRIALS)


class _MechanismMissing(Exception):
    """The trial ran, and the mechanism is not there."""


def _run_trials(directory: Path, kernel: Kernel, trials: Sequence[tuple[str, Trial, str]]) -> tuple[ProbeResult, ...]:
    place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=directory))
    try:
        return tuple(_run_trial(name, trial, fallback, place, kernel) for name, trial, fallback in trials)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _run_trial(name: str, trial: Trial, fallback: str, place: Path, kernel: Kernel) -> ProbeResult:
    ground = place / name
    try:
        ground.mkdir()
        return ProbeResult(name=name, ok=True, detail=trial(ground, kernel))
    except _MechanismMissing as missing:
        detail = str(missing)
    except Unsupported:
        detail = "not available here"
    except OSError as error:
        detail = error.strerror or str(error)
        fallback = fallback if error.errno in _UNSUPPORTED_ERRNOS else ""
    return ProbeResult(name=name, ok=False, detail=detail, fallback=fallback)


def _require(condition: object, otherwise: str) -> None:
    if not condition:
        raise _MechanismMissing(otherwise)


def _try_contained_open(place: Path, kernel: Kernel) -> str:
    (place / "inside").mkdir()
    (place / "way-out").symlink_to("..")
    with _open_directory(place) as fd:
        os.close(kernel.open_beneath(fd, "inside", os.O_RDONLY))
        for escape in ("way-out", "inside/../.."):
            try:
                os.close(kernel.open_beneath(fd, escape, os.O_RDONLY))
            except OSError:
                continue
            raise _MechanismMissing("the kernel followed a way out")
    return "openat2 follows no link and no way out"


def _try_exchange(place: Path, kernel: Kernel) -> str:
    _write_files(place, one=b"1", other=b"2")
    with _open_directory(place) as fd:
        kernel.swap(fd, "one", "other")
    _require(_read_files(place) == {"one": b"2", "other": b"1"}, "the two files did not trade places")
    return "two files trade names in one step"


def _try_lease(place: Path, kernel: Kernel) -> str:
    _write_files(place, one=b"1")
    with close_after(os.open(place / "one", os.O_RDONLY)) as fd:
        if kernel.take_lease(fd, exclusive=False) != "held":
            raise Unsupported
    return "programs that open a file for writing wait while it is changed"


def _try_no_replace(place: Path, kernel: Kernel) -> str:
    _write_files(place, one=b"1", other=b"2")
    with _open_directory(place) as fd:
        try:
            kernel.rename_new(fd, "one", fd, "other")
        except FileExistsError:
            kernel.rename_new(fd, "one", fd, "third")
    _require(_read_files(place) == {"other": b"2", "third": b"1"}, "a rename replaced a file")
    return "a rename refuses a name that is taken"


def _try_nameless_file(place: Path, kernel: Kernel) -> str:
    with _open_directory(place) as fd, close_after(kernel.open_nameless(fd, 0o600)) as new:
        os.write(new, b"1")
        kernel.give_name(new, fd, "named")
    _require(_read_files(place) == {"named": b"1"}, "the file did not get its name")
    return "a new file gets its name when it is complete"


def _try_sync_file(place: Path, _: Kernel) -> str:
    with (place / "file").open("wb") as file:
        return f"{_median_sync_ms(file.fileno(), lambda: os.pwrite(file.fileno(), os.urandom(4096), 0)):.1f} ms"


def _try_sync_directory(place: Path, _: Kernel) -> str:
    with _open_directory(place) as fd:
        return f"{_median_sync_ms(fd, lambda: Path(tempfile.mkdtemp(dir=place)).rmdir()):.1f} ms"


def _median_sync_ms(fd: int, change: Callable[[], object]) -> float:
    rounds = list[float]()
    for _ in range(_SYNC_ROUNDS):
        change()
        began = time.perf_counter()
        sync(fd)
        rounds.append((time.perf_counter() - began) * 1000)
    return statistics.median(rounds)


def _try_attributes(place: Path, _: Kernel) -> str:
    _write_files(place, file=b"")
    _set_attribute(place / "file", "user.surehold", b"1")
    return "extended attributes can be set and read"


def _try_access_lists(place: Path, _: Kernel) -> str:
    _write_files(place, file=b"")
    # (tag, bits, id): the owner, one more user, the group, the mask that such a list needs, and all others.
    entries = ((0x01, 6, -1), (0x02, 4, os.getuid()), (0x04, 4, -1), (0x10, 6, -1), (0x20, 4, -1))
    packed = b"".join(struct.pack("<HHI", tag, bits, id_ & 0xFFFFFFFF) for tag, bits, id_ in entries)
    _set_attribute(place / "file", ACL, struct.pack("<I", 2) + packed)
    return "access lists can be set and read"


def _set_attribute(path: Path, name: str, value: bytes) -> None:
    if not hasattr(os, "setxattr"):
        raise Unsupported
    os.setxattr(path, name, value)
    _require(os.getxattr(path, name) == value, "what was set does not come back")


def _try_hard_links(place: Path, _: Kernel) -> str:
    _write_files(place, one=b"1")
    (place / "two").hardlink_to(place / "one")
    _require((place / "one").stat().st_nlink > 1, "the number of names is not counted")
    return "a file may have several names"


def _try_letter_case(place: Path, _: Kernel) -> str:
    _write_files(place, A=b"")
    _require(not (place / "a").exists(), "`A` and `a` are the same file")
    return "`A` and `a` are two files"


def _try_unicode_names(place: Path, _: Kernel) -> str:
    composed, decomposed = "\u00e9", "e\u0301"
    _write_files(place, **{composed: b""})
    _require(not (place / decomposed).exists(), "two spellings of `é` are the same file")
    _require([entry.name for entry in place.iterdir()] == [composed], "the file system changes the spelling of names")
    return "names are kept as they are spelled"


def _try_lock(place: Path, _: Kernel) -> str:
    if sys.platform == "win32":
        raise Unsupported
    with _open_directory(place) as fd, _open_directory(place) as second:
        _require(try_directory(fd), "the lock of a new directory is taken")
        _require(not try_directory(second), "two threads held the same lock")
        _require(_locks_out_child(place), "two processes held the same lock")
    return "it keeps other threads and processes out"


def _locks_out_child(place: Path) -> bool:
    command = [sys.executable, "-I", "-S", "-c", _TRY_LOCK, str(place), str(Path(__file__).parents[2])]
    done = subprocess.run(  # noqa: S603 - our own interpreter with a constant program
        command, check=False, timeout=_CHILD_WAIT_SECONDS, capture_output=True
    )
    return done.returncode == _REFUSED_LOCK


def _try_mount(place: Path, _: Kernel) -> str:
    kind = mount_kind(str(place))
    _require(is_coherent(str(place)), f"{kind}: a read may show an older version for a while")
    return f"{kind}: every read sees the latest write"


def _try_lock_reach(place: Path, _: Kernel) -> str:
    kind = mount_kind(str(place))
    _require(locks_reach_others(str(place)), f"{kind}: the lock holds on this machine only")
    return f"{kind}: the lock holds for everyone who has this file system"


def mount_kind(path: str, *, table: str = "/proc/self/mountinfo") -> str:
    return filesystem_of(path, table=table) or "unknown file system"


def _try_space(place: Path, _: Kernel) -> str:
    usage = shutil.disk_usage(place)
    _require(usage.free >= _MIN_FREE_BYTES, f"only {usage.free / (1 << 20):.0f} MB free")
    if hasattr(os, "statvfs"):
        names = os.statvfs(place)
        _require(names.f_favail or not names.f_files, "no room for another file name")
    return f"{usage.free / (1 << 30):.1f} GB free"


def _try_database(place: Path, _: Kernel) -> str:
    import sqlite3

    path = place / "trial.db"
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as one:
            mode = one.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            _require(mode == "wal", f"the write-ahead log cannot be used ({mode})")
            one.execute("CREATE TABLE trial (number)")
            one.execute("INSERT INTO trial VALUES (1)")
            with closing(sqlite3.connect(path)) as other:
                row = other.execute("SELECT number FROM trial").fetchone()
                _require(row == (1,), "a second reader does not see what was written")
    except sqlite3.Error as error:
        raise _MechanismMissing(str(error)) from error
    return f"SQLite {sqlite3.sqlite_version} with a write-ahead log"


def _open_directory(place: Path) -> AbstractContextManager[int]:
    return close_after(os.open(place, os.O_RDONLY | O_DIRECTORY))


def _write_files(place: Path, **files: bytes) -> None:
    for name, data in files.items():
        (place / name).write_bytes(data)


def _read_files(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir()}


_WALK_FALLBACK = "a walk that opens one name at a time and follows no link"
_SPACE_FALLBACK = "a change that does not fit is refused before anything is written"
_DIRECTORY_TRIALS: tuple[tuple[str, Trial, str], ...] = (
    ("contained_open", _try_contained_open, _WALK_FALLBACK if O_NOFOLLOW and os.open in os.supports_dir_fd else ""),
    ("exchange", _try_exchange, "look, then rename: a program that saves in that very moment may be overwritten"),
    ("lease", _try_lease, "identity, size and times are compared right before and after a change"),
    ("no_replace", _try_no_replace, "a hard link, which never replaces anything either"),
    ("nameless_file", _try_nameless_file, "a temporary name beside the file, swept by `surehold recover`"),
    ("sync_file", _try_sync_file, ""),
    ("sync_directory", _try_sync_directory, "this file system has nothing to sync in a directory"),
    ("attributes", _try_attributes, "files have none here, so none can be lost"),
    ("access_lists", _try_access_lists, "files have none here, so none can be lost"),
    ("hard_links", _try_hard_links, "files have one name here, so none can be split off"),
    ("letter_case", _try_letter_case, "rules ignore case; two spellings of one file have two histories"),
    ("unicode_names", _try_unicode_names, "two spellings of one file have two histories"),
    ("lock", _try_lock, "a lock file in the temporary directory, for this user on this machine"),
    ("lock_reach", _try_lock_reach, "between machines, the fence of a history they share (--state) and a new attempt"),
    ("mount", _try_mount, "our own older versions are recognised by their content and not taken for news"),
    ("space", _try_space, _SPACE_FALLBACK),
)
"""Every trial of a workspace directory: its name, how it goes, and what happens where it fails."""
_STATE_TRIALS: tuple[tuple[str, Trial, str], ...] = (
    ("state_database", _try_database, ""),
    ("state_sync", _try_sync_file, ""),
    ("state_mount", _try_mount, "the history should lie on a local disk; name one with --state-dir"),
    ("state_space", _try_space, _SPACE_FALLBACK),
)
