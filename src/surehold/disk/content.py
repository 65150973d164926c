"""Bytes through a descriptor: whole, in pieces, or only their hash.

Rules:
1. A file is read once into memory, not once more to join it.
2. Whatever is opened here never blocks: no FIFO, no device, no lease is waited for.
3. Only regular files have content.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator

from surehold.disk.kernel import O_NOFOLLOW, O_NONBLOCK

PIECE = 1 << 20
_COMPARED = 1 << 17  # small enough to stay in the cache
READING = os.O_RDONLY | O_NONBLOCK | O_NOFOLLOW
"""Flags to open a file for reading."""
_LARGEST_READ = 0x7FFF_F000  # what Linux gives in one call


def pieces(fd: int) -> Iterator[bytes]:
    """Yield everything from the current position on."""
    while piece := os.read(fd, PIECE):
        yield piece


def read_all(fd: int, *, size: int, limit: int) -> bytes:
    """Return the content, at most `limit` + 1 bytes of it; `size` is what `fstat` promised."""
    data = os.read(fd, min(size + 1, limit + 1, _LARGEST_READ))
    # One byte more was asked for than promised: getting exactly the promise means the end was seen.
    if len(data) == size > 0 or len(data) > limit:
        return data
    parts = [data]
    got = len(data)
    while got <= limit and (piece := os.read(fd, min(limit + 1 - got, _LARGEST_READ, max(size + 1 - got, PIECE)))):
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
    """Write every byte at `offset`."""
    while data:
        written = os.pwrite(fd, data, offset)
        data = data[written:]
        offset += written


def hash_of(fd: int, *, size: int) -> str:
    """Return the sha256 of everything from the current position on."""
    digest = hashlib.sha256()
    piece = os.read(fd, min(size + 1, PIECE))
    digest.update(piece)
    # One byte more was asked for than promised: getting exactly the promise means the end was seen.
    if len(piece) != size or size == 0:
        for further in pieces(fd):
            digest.update(further)
    return digest.hexdigest()


def holds(fd: int, data: bytes) -> bool:
    """Tell whether everything from the current position on is exactly these bytes."""
    at = 0
    while piece := os.read(fd, _COMPARED):
        if piece != data[at : at + len(piece)]:
            return False
        at += len(piece)
    return at == len(data)


def same_moment(one: os.stat_result, other: os.stat_result) -> bool:
    """Tell whether nothing happened to a file between two looks at it."""
    return (one.st_size, one.st_mtime_ns, one.st_ctime_ns) == (other.st_size, other.st_mtime_ns, other.st_ctime_ns)


def is_regular(status: os.stat_result) -> bool:
    """Tell whether it is a file in the plain sense."""
    return stat.S_ISREG(status.st_mode)
