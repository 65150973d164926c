"""Where earlier bytes are kept while a command runs: a journal that a later process can read, and files beside it.

Rules:
1. What is about to change is in the journal before the call that changes it goes on. A kill at any moment loses nothing.
2. Small contents are in the journal itself. Larger ones are hard links (for files that go away), clones or copies.
3. A record is never split over two `write`s; a last one that is cut short belongs to a call that never went on.
"""

import errno
import json
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from surehold.disk.entries import Holes, find_holes
from surehold.disk.tree import open_own

SMALL_BYTES = 64 * 1024
_COPY_BYTES = 1 << 24
_FICLONE = 0x40049409
_HEADER = struct.Struct("<cIIQ3IIQQQQqqq")
_DIRECTORY_MODE, _FILE_MODE = 0o700, 0o600

RecordType = Literal[b"A", b"O", b"C", b"N", b"M"]
"""Absent, occupant, content, note, moved."""


class EntryFacts(NamedTuple):
    """What `lstat` says of an entry, as far as it matters."""

    mode: int
    uid: int
    gid: int
    links: int
    device: int
    inode: int
    size: int
    blocks: int
    mtime_ns: int
    ctime_ns: int

    @property
    def identity(self) -> tuple[int, int]:
        return self.device, self.inode

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_sparse(self) -> bool:
        return self.is_file and self.blocks * 512 < self.size


def facts_of(status: os.stat_result) -> EntryFacts:
    return EntryFacts(
        status.st_mode,
        status.st_uid,
        status.st_gid,
        status.st_nlink,
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_blocks,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


Attributes = tuple[tuple[str, bytes], ...]


@dataclass(slots=True)
class KeptContent:
    """The bytes of a file before the command changed it: in the journal, or in a file of the stash."""

    size: int
    offset: int = -1
    """Where they are in the journal; -1 for a file of the stash."""
    file: str = ""
    is_link: bool = False
    """The file of the stash is the very file, which has other names."""
    holes: Holes = ()


_NO_FACTS = EntryFacts(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


@dataclass(slots=True)
class JournalRecord:
    """One line of the journal."""

    type: RecordType
    name: bytes
    """The path it is about; for a content, nothing."""
    facts: EntryFacts = _NO_FACTS
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    offset: int = -1
    size: int = 0


class Stash:
    """The journal of one run, and the directory for contents that are too large for it."""

    def __init__(self, folder: str, *, files: str = "", read_only: bool = False) -> None:
        """`files`: another directory, on the file system of the root, for hard links and clones."""
        self.folder, self.files = folder, files or folder
        flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT | os.O_APPEND
        self._fd = os.open(f"{folder}/journal", flags | os.O_CLOEXEC, _FILE_MODE)
        self._end = os.fstat(self._fd).st_size
        self._count = 0
        self._clones = True
        self._waiting: list[bytes] = []

    def write_record(
        self,
        record_type: RecordType,
        name: bytes,
        facts: EntryFacts,
        extra: dict[str, Any] | None = None,
        data: bytes = b"",
    ) -> int:
        """Append one record, after those that wait; return where its data begins."""
        self._write(b"".join((*self._waiting, *_spell_record(record_type, name, facts, extra, data))))
        return self._end - len(data)

    def add_record(
        self, record_type: RecordType, name: bytes, facts: EntryFacts, extra: dict[str, Any] | None = None
    ) -> None:
        """Have a record written together with the next one; `flush` comes before the call goes on."""
        self._waiting += _spell_record(record_type, name, facts, extra, b"")

    def flush(self) -> None:
        """Write what waits."""
        if self._waiting:
            self._write(b"".join(self._waiting))

    def _write(self, rows: bytes) -> None:
        written = os.write(self._fd, rows)
        if written != len(rows):  # the disk is full: take the half back
            os.ftruncate(self._fd, self._end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._end += written
        self._waiting.clear()  # what could not be written waits on

    def read_records(self) -> Iterator[JournalRecord]:
        at = 0
        while len(head := os.pread(self._fd, _HEADER.size, at)) == _HEADER.size:
            record_type, names, words, size, *facts, _ = _HEADER.unpack(head)
            body = at + _HEADER.size
            text = os.pread(self._fd, names + words, body)
            at = body + names + words + size
            if at > self._end:
                return
            extra = cast("dict[str, Any]", json.loads(text[names:])) if words else {}
            yield JournalRecord(record_type, text[:names], EntryFacts(*facts), extra, at - size, size)

    def keep_small(self, data: bytes, facts: EntryFacts, holes: Holes = ()) -> KeptContent:
        extra = {"holes": holes} if holes else None
        return KeptContent(size=len(data), offset=self.write_record(b"C", b"", facts, extra, data), holes=holes)

    def keep_link(self, path: bytes, facts: EntryFacts) -> KeptContent:
        """Give a file that is about to lose its name another one here."""
        name = self._next_name()
        os.link(path, f"{self.files}/{name}", follow_symlinks=False)
        self.write_record(b"C", b"", facts, {"file": name, "link": True})
        return KeptContent(size=facts.size, file=name, is_link=True)

    def keep_copy(self, fd: int, facts: EntryFacts, holes: Holes) -> KeptContent:
        """Clone an open file, or copy it."""
        name = self._next_name()
        self._copy(fd, name, facts.size, holes)
        self.write_record(b"C", b"", facts, {"file": name, "holes": holes})
        return KeptContent(size=facts.size, file=name, holes=holes)

    def break_link(self, content: KeptContent, facts: EntryFacts) -> None:
        """Turn a hard link into a copy, since the file is about to be written under another name."""
        name = self._next_name()
        fd = self.open_content(content)
        try:
            holes = find_holes(fd, facts.size) if facts.is_sparse else ()
            self._copy(fd, name, content.size, holes)
        finally:
            os.close(fd)
        self.write_record(b"C", b"", facts, {"file": name, "holes": holes})
        with suppress(OSError):
            os.unlink(f"{self.files}/{content.file}")
        content.file, content.is_link, content.holes = name, False, holes

    def open_content(self, content: KeptContent) -> int:
        """Open what was kept in a file."""
        return open_own(None, f"{self.files}/{content.file}")

    def read_content(self, content: KeptContent) -> bytes:
        if content.offset >= 0:
            return os.pread(self._fd, content.size, content.offset)
        fd = self.open_content(content)
        try:
            return read_whole(fd)
        finally:
            os.close(fd)

    def take_out(self, content: KeptContent, facts: EntryFacts, to: str) -> None:
        """Move a content out of the stash; `to` is on the file system of its files."""
        if not content.file:
            data, content.file = self.read_content(content), self._next_name()
            with open(f"{self.files}/{content.file}", "xb") as file:
                file.write(data)
        elif content.is_link and os.lstat(f"{self.files}/{content.file}").st_nlink > 1:
            self.break_link(content, facts)
        os.rename(f"{self.files}/{content.file}", to)

    def close(self) -> None:
        os.close(self._fd)

    def remove(self) -> None:
        """Remove everything: what was kept is in the history by now."""
        import shutil

        os.close(self._fd)
        for folder in {self.files, self.folder}:
            shutil.rmtree(folder, ignore_errors=True)

    def _next_name(self) -> str:
        self._count += 1
        return f"{os.getpid()}-{self._count}"

    def _copy(self, fd: int, name: str, size: int, holes: Holes) -> None:
        path = f"{self.files}/{name}"
        to = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
        try:
            if not self._clone(fd, to):
                _copy_data(fd, to, size, holes)
        except OSError:
            os.unlink(path)
            raise
        finally:
            os.close(to)

    def _clone(self, fd: int, to: int) -> bool:
        import fcntl

        if not self._clones:
            return False
        try:
            fcntl.ioctl(to, _FICLONE, fd)
        except OSError:
            self._clones = False  # this file system has no clones
            return False
        return True


def _spell_record(
    record_type: RecordType, name: bytes, facts: EntryFacts, extra: dict[str, Any] | None, data: bytes
) -> tuple[bytes, bytes, bytes, bytes]:
    words = json.dumps(extra).encode("ascii") if extra else b""
    return _HEADER.pack(record_type, len(name), len(words), len(data), *facts, 0), name, words, data


def make_stash(folder: str, root: str) -> Stash:
    """Make the stash of a run in its folder; its files are on the file system of the root wherever that is possible."""
    os.makedirs(folder, _DIRECTORY_MODE, exist_ok=True)
    device = os.stat(root).st_dev
    files = ""
    if os.stat(folder).st_dev != device:
        above = os.path.dirname(root)
        name = f"{above}/.surehold-stash-{os.path.basename(folder)}"
        with suppress(OSError):
            if os.stat(above).st_dev == device:
                os.mkdir(name, _DIRECTORY_MODE)
                files = name
    if files:
        with open(f"{folder}/files", "wb") as note:
            note.write(os.fsencode(files))
    return Stash(folder, files=files)


def open_stash(folder: str, *, read_only: bool = False) -> Stash:
    """Open the stash that a dead process left, or look into that of a living one."""
    try:
        with open(f"{folder}/files", "rb") as note:
            files = os.fsdecode(note.read())
    except OSError:
        files = ""
    return Stash(folder, files=files, read_only=read_only)


def list_journal(folder: str) -> list[bytes]:
    """Return the paths that the run of a folder has begun to change; none if it has just ended."""
    try:
        stash = Stash(folder, read_only=True)
    except OSError:
        return []
    try:
        return [record.name for record in stash.read_records() if record.type in {b"A", b"O"}]
    finally:
        stash.close()


def read_whole(fd: int, size: int = 0) -> bytes:
    """Read a file to its end; one that has the expected size is read by one call."""
    first = os.read(fd, size + 1 if size else _COPY_BYTES)
    if len(first) <= size:
        return first
    parts = [first]
    while piece := os.read(fd, _COPY_BYTES):
        parts.append(piece)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _copy_data(fd: int, to: int, size: int, holes: Holes) -> None:
    at = 0
    for begin, end in (*holes, (size, size)):
        while at < begin:
            done = _copy_piece(fd, to, min(_COPY_BYTES, begin - at), at)
            if not done:
                break
            at += done
        at = max(at, end)
    os.ftruncate(to, size)


def _copy_piece(fd: int, to: int, count: int, at: int) -> int:
    try:
        return os.copy_file_range(fd, to, count, at, at)
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}:
            raise
    return os.pwrite(to, os.pread(fd, count, at), at)
