"""What a power cut leaves: every system call of some processes is recorded, and everything that was not synced is dropped.

1. Bytes of a file are on the disk when a sync of that file returns, as far as they were written before it began.
2. Names in a directory are on the disk when a sync of that directory returns.
3. A strict cut drops all else. A random one keeps some of the written bytes, in any order, and the names as of some moment
   since the last sync of a directory: the journal of a file system may have been written by itself.
4. What was answered is known by the order of the record: an answer is a line in a diary.
"""

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CALLS = (
    "open,openat,openat2,creat,write,pwrite64,writev,pwritev,ftruncate,truncate,rename,renameat,renameat2,link,linkat,"
    "unlink,unlinkat,mkdir,mkdirat,rmdir,fsync,fdatasync,close"
)
_LINE = re.compile(r"(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)")
_STRING = r'"((?:\\x[0-9a-f]{2})*)"'
_AT = rf"(?:AT_FDCWD|\d+)(?:<((?:\\x[0-9a-f]{{2}})*)>)?(?:\(deleted\))?, {_STRING}"
_FD = re.compile(r"(\d+)<((?:\\x[0-9a-f]{2})*)>(\(deleted\))?")
_FD_LINK = re.compile(r"/proc/self/fd/(\d+)")


class Node:
    """One file: its bytes now, those on the disk, and what was written since."""

    def __init__(self, data: bytes = b"") -> None:
        self.now = bytearray(data)
        self.synced = data
        self.synced_at = 0
        self.pending: list[tuple[int, bytes | None]] = []

    def write(self, at: int, data: bytes) -> None:
        self.pending.append((at, data))
        _put(self.now, at, data)

    def cut(self, size: int) -> None:
        self.pending.append((size, None))
        _put(self.now, size, None)

    def after_cut(self, luck: random.Random | None) -> bytes:
        left = bytearray(self.synced)
        for at, data in self.pending if luck else ():
            if luck and luck.random() < 0.5:
                _put(left, at, data)
        return bytes(left)


def _put(data: bytearray, at: int, new: bytes | None) -> None:
    if new is None:
        del data[at:]
        data.extend(bytes(at - len(data)))
        return
    data.extend(bytes(max(at - len(data), 0)))
    data[at : at + len(new)] = new


Names = dict[str, Node | None]
"""Every path below the place; None is a directory."""


@dataclass
class Drive:
    """The files below one place, as the programs see them and as the disk has them."""

    place: str
    pauses_at_writes: bool = False
    """Whether it can be cut after every write too, and not only when something was synced or answered."""
    now: Names = field(default_factory=dict[str, Node | None])
    synced: Names = field(default_factory=dict[str, Node | None])
    snapshots: list[Names] = field(default_factory=list[Names])
    """The names after every change since a directory was synced."""
    answers: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    _nameless: dict[tuple[str, str], Node] = field(default_factory=dict[tuple[str, str], Node])
    """Files that were opened without a name, by thread and descriptor."""
    _written: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """How far a descriptor was written."""
    _syncs: dict[str, tuple[Node | str, int, bytes | Names, int]] = field(
        default_factory=dict[str, tuple["Node | str", int, "bytes | Names", int]]
    )
    """What every thread is syncing, since when, and what was there by then."""
    _directory_synced_at: dict[str, int] = field(default_factory=dict[str, int])
    """When the sync of a directory began that is the last one to count: of two at once, the other may end later."""
    _clock: int = 0

    def load(self) -> None:
        for folder, _, names in os.walk(self.place):
            self.now[folder] = None
            self.now |= {path: Node(Path(path).read_bytes()) for path in (f"{folder}/{name}" for name in names)}
        self.synced = dict(self.now)
        self.snapshots = [dict(self.now)]

    def play(self, log: Path) -> Generator[str]:
        """Repeat what was recorded; yield after every answer, and after all that reached the disk."""
        begun = dict[str, tuple[str, str]]()
        with log.open(encoding="ascii", errors="replace") as lines:
            for line in lines:
                found = _LINE.match(line)
                if not found:
                    continue
                thread, resumed, name, rest = found.groups()
                if name and rest.endswith("<unfinished ...>"):
                    begun[thread] = (name, rest.removesuffix(" <unfinished ...>"))
                    self._begin(thread, name, rest)
                    continue
                if resumed:
                    name, start = begun.pop(thread)
                    rest = start + rest
                else:
                    self._begin(thread, name, rest)
                words, _, result = rest.rpartition(" = ")
                words = words.rstrip(" )")
                self._clock += 1
                if not result.startswith("-") and not result.startswith("?"):
                    yield from self._end(thread, name, words, result)

    def write_cut(self, into: Path, luck: random.Random | None = None) -> None:
        """Make what a power cut would leave now; without luck, nothing but what was synced."""
        names = luck.choice(self.snapshots) if luck else self.synced
        for path in sorted(names):
            node = names[path]
            copy = into / os.path.relpath(path, self.place)
            if node is None:
                if copy.parent.is_dir():
                    copy.mkdir(exist_ok=True)
            elif copy.parent.is_dir() and not path.endswith("-shm"):
                copy.write_bytes(node.after_cut(luck))

    def _begin(self, thread: str, name: str, words: str) -> None:
        if name not in {"fsync", "fdatasync"}:
            return
        path, node = self._file(thread, words)
        self._clock += 1
        if node is not None:
            self._syncs[thread] = (node, self._clock, bytes(node.now), len(node.pending))
        elif path in self.now:
            self._syncs[thread] = (path, self._clock, dict(self.now), 0)

    def _file(self, thread: str, words: str) -> tuple[str, Node | None]:
        """Return what a descriptor means, as path and file."""
        found = _FD.match(words)
        if not found:
            return "", None
        path = _text(found[2])
        return path, self._nameless.get((thread, found[1])) or self.now.get(path)

    def _end(self, thread: str, name: str, words: str, result: str) -> Iterator[str]:
        match name:
            case "fsync" | "fdatasync":
                yield from self._end_sync(thread)
            case "open" | "openat" | "openat2" | "creat":
                self._opened(thread, words, result)
            case "write" | "writev" | "pwrite64" | "pwritev":
                yield from self._write(thread, name, words, int(result.split(maxsplit=1)[0]))
            case "ftruncate":
                if node := self._file(thread, words)[1]:
                    node.cut(int(words.rpartition(", ")[2]))
            case _:
                self._renamed(thread, name, words)

    def _end_sync(self, thread: str) -> Iterator[str]:
        if thread not in self._syncs:
            return
        what, began, seen, count = self._syncs.pop(thread)
        if isinstance(seen, bytes) and isinstance(what, Node):
            if what.synced_at < began:
                what.synced, what.synced_at = seen, began
                what.pending = what.pending[count:]
        elif not isinstance(seen, bytes) and self._directory_synced_at.get(str(what), 0) < began:
            self._directory_synced_at[str(what)] = began
            kept = {name: node for name, node in self.synced.items() if os.path.dirname(name) != what}  # noqa: PTH120 - text
            self.synced = kept | {name: node for name, node in seen.items() if os.path.dirname(name) == what}  # noqa: PTH120
            self.snapshots = [dict(self.now)]
        yield "synced"

    def _opened(self, thread: str, words: str, result: str) -> None:
        opened = _FD.match(result)
        if not opened:
            return
        path = _text(opened[2])
        self._nameless.pop((thread, opened[1]), None)
        self._written[thread, opened[1]] = 0
        if not path.startswith(self.place):
            return
        if "O_TMPFILE" in words:
            self._nameless[thread, opened[1]] = Node()
        elif "O_CREAT" in words and path not in self.now:
            self._name(path, Node())
        elif "O_TRUNC" in words and (node := self.now.get(path)):
            node.cut(0)

    def _write(self, thread: str, name: str, words: str, count: int) -> Iterator[str]:
        number = words.partition("<")[0]
        path, node = self._file(thread, words)
        data = b"".join(_bytes(one) for one in re.findall(_STRING, words))[:count]
        if path.endswith(".diary"):
            self.answers += [tuple(json.loads(line)) for line in data.splitlines()]
            yield "answered"
        elif node is not None:
            at = self._written.get((thread, number), 0)
            if name.startswith("p"):
                at = int(words.rpartition(", ")[2])
            else:
                self._written[thread, number] = at + count
            node.write(at, data)
            if self.pauses_at_writes:
                yield "written"

    def _renamed(self, thread: str, name: str, words: str) -> None:
        places = [os.path.join(_text(at), _text(word)) for at, word in re.findall(_AT, words)]  # noqa: PTH118 - text
        if name in {"rename", "link", "unlink", "mkdir", "rmdir", "truncate"}:
            places = [_text(word) for word in re.findall(_STRING, words)]
        if not any(place.startswith(self.place) for place in places):
            return
        match name.removesuffix("2").removesuffix("at"), places:
            case "mkdir", [path]:
                self._name(path, None)
            case "unlink" | "rmdir", [path]:
                self._name(path, None, gone=True)
            case "link", [path, new]:
                nameless = _FD_LINK.search(path)
                self._name(new, self._nameless[thread, nameless[1]] if nameless else self.now[path])
            case "rename", [path, new]:
                one, other = self.now[path], self.now.get(new)
                if "RENAME_EXCHANGE" in words:
                    self.now[path] = other
                else:
                    del self.now[path]
                self._name(new, one)
            case _:
                raise AssertionError(f"{name}({words}")

    def _name(self, path: str, node: Node | None, *, gone: bool = False) -> None:
        if gone:
            self.now.pop(path, None)
        else:
            self.now[path] = node
        self.snapshots.append(dict(self.now))


def _bytes(escaped: str) -> bytes:
    return bytes.fromhex(escaped.replace("\\x", ""))


def _text(escaped: str) -> str:
    return os.fsdecode(_bytes(escaped))


def record(place: Path, log: Path, command: Sequence[str]) -> Drive:
    """Run a command that changes files below a place, and record how; return the drive as it was before."""
    drive = Drive(place=str(place))
    drive.load()
    tracer = [
        "strace",
        "-f",
        "-y",
        "-xx",
        "-s",
        "9999999",
        "--seccomp-bpf",
        "-e",
        "signal=none",
        "-e",
        f"trace={CALLS}",
    ]
    done = subprocess.run(
        [*tracer, "-o", str(log), sys.executable, *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return drive
