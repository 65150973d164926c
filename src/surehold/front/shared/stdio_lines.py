"""Claims standard input and output for the client, and reads and writes lines of any length.

After `claim_stdio`, descriptor 0 is empty and descriptor 1 is standard error: what a library prints never reaches the
client.
"""

import fcntl
import os
import select
import stat
import sys
import termios
from collections.abc import Iterator
from dataclasses import dataclass

from surehold.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class StdioDescriptors:
    """The two descriptors of the client, out of reach for other code."""

    incoming: int
    outgoing: int


def claim_stdio() -> StdioDescriptors:
    """Claim the standard streams: what is printed from now on goes to standard error."""
    sys.stdout.flush()
    try:
        pipes = StdioDescriptors(os.dup(0), os.dup(1))
    except OSError:
        message = "Standard input or output is closed, so no client can be served on them."
        action = "Let an MCP client start it, or serve HTTP with --http."
        raise InvalidArgument(message, reason="no_pipes", action=action) from None
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return pipes


_CHUNK_BYTES = 1 << 16
_MAX_DIRECT_BYTES = 1 << 15
"""What an empty pipe or socket takes without blocking."""


class LineSplitter:
    """Cuts what arrives in pieces into lines of any length."""

    def __init__(self) -> None:
        self._pieces = list[bytes]()

    def split_chunk(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this piece completes."""
        first, *others = chunk.split(b"\n")
        if not others:
            self._pieces.append(first)
            return []
        lines = [b"".join((*self._pieces, first)), *others]
        self._pieces = [lines.pop()]
        return lines

    def last_line(self) -> bytes:
        """Return what came after the last line end."""
        return b"".join(self._pieces)


def read_chunk(descriptor: int) -> bytes:
    """Return what has arrived; nothing when the other side has closed its end."""
    try:
        return os.read(descriptor, _CHUNK_BYTES)
    except OSError:
        return b""


def read_lines(descriptor: int) -> Iterator[bytes]:
    """Yield the lines of a descriptor; the last one may lack its end."""
    splitter = LineSplitter()
    while chunk := read_chunk(descriptor):
        yield from splitter.split_chunk(chunk)
    if rest := splitter.last_line():
        yield rest


def write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:  # the client made its end non-blocking
            select.select((), (descriptor,), ())


class OutgoingEnd:
    """The descriptor on which a client listens, and what can be known about it without writing."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        kind = os.fstat(descriptor).st_mode
        self._is_pipe, self._is_socket = stat.S_ISFIFO(kind), stat.S_ISSOCK(kind)

    @property
    def has_reader(self) -> bool:
        return not self._events(0) & (select.POLLERR | select.POLLHUP)

    def can_write_now(self, count: int) -> bool:
        """Tell whether so many bytes can be written without waiting."""
        if count > _MAX_DIRECT_BYTES:
            return False
        if self._is_pipe:
            return not any(fcntl.ioctl(self.descriptor, termios.FIONREAD, bytes(4)))
        return self._is_socket and self._events(select.POLLOUT) == select.POLLOUT

    def _events(self, wanted: int) -> int:
        poll = select.poll()
        poll.register(self.descriptor, wanted)
        return sum(event for _, event in poll.poll(0))
