"""Reads, writes and hashes the bytes of an open file.

Rules:
1. A file is read into memory once; its parts are not copied again to join them.
2. Nothing opened here ever blocks: not on a FIFO, a device or a lease.
3. Only regular files have content.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator

from surehold.disk.kernel import O_NOFOLLOW, O_NONBLOCK

PIECE_BYTES = 1 << 20
_COMPARE_BYTES = 1 << 17  # small enough to stay in the cache
READ_FLAGS = os.O_RDONLY | O_NONBLOCK | O_NOFOLLOW
"""Flags to open a file for reading."""
_MAX_READ_BYTES = 0x7FFF_F000  # what Linux gives in one call


def read_pieces(fd: int) -> Iterator[bytes]:
    """Yield everything from the current position on."""
    while piece := os.read(fd, PIECE_BYTES):
        yield piece


def read_all(fd: int, *, size: int, limit: int) -> bytes:
    """Return the content, at most `limit` + 1 bytes of it; `size` is what `fstat` promised."""
    data = os.read(fd, min(size + 1, limit + 1, _MAX_READ_BYTES))
    # One byte more was asked for than promised: getting exactly the promise means the end was seen.
    if len(data) == size > 0 or len(data) > limit:
        return data
    parts = [data]
    got = len(data)
    while got <= limit and (
        piece := os.read(fd, min(limit + 1 - got, _MAX_READ_BYTES, max(size + 1 - got, PIECE_BYTES)))
    ):
        parts.append(piece)
        got += len(piece)
    return data if len(parts) == 1 else b"".join(parts)


def write_all(fd: int, data: Iterable[bytes]) -> str:
    """Write every byte at the current position and return their sha256."""
    digest = hashlib.sha256()
    for piece in data:
        digest.update(piece)
        view = memoryview(piece)
        while view:
            view = view[os.write(fd, view) :]
    return digest.hexdigest()


def write_at(fd: int, data: memoryview, offset: int) -> None:
    while data:
        written = os.pwrite(fd, data, offset)
        data = data[written:]
        offset += written


def hash_of(fd: int, *, size: int) -> str:
    """Return the sha256 of everything from the current position on."""
    digest = hashlib.sha256()
    piece = os.read(fd, min(size + 1, PIECE_BYTES))
    digest.update(piece)
    # One byte more was asked for than promised: getting exactly the promise means the end was seen.
    if len(piece) != size or size == 0:
        for further in read_pieces(fd):
            digest.update(further)
    return digest.hexdigest()


def has_content(fd: int, data: bytes) -> bool:
    """Tell whether everything from the current position on is exactly these bytes."""
    at = 0
    while piece := os.read(fd, _COMPARE_BYTES):
        if piece != data[at : at + len(piece)]:
            return False
        at += len(piece)
    return at == len(data)


def is_unchanged(one: os.stat_result, other: os.stat_result) -> bool:
    """Tell whether nothing happened to a file between two looks at it."""
    return (one.st_size, one.st_mtime_ns, one.st_ctime_ns) == (other.st_size, other.st_mtime_ns, other.st_ctime_ns)


def is_regular(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode)
