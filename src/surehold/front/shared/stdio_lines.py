"""Claims standard input and output for the client, and carries lines over them in both directions.

1. After `claim_stdio`, descriptor 0 is empty and descriptor 1 is standard error: what a library prints never reaches
   the client.
2. Reading and writing happen in two daemon threads; the event loop never blocks on them, and shutdown never waits for
   them.
"""

import asyncio
import fcntl
import os
import queue
import select
import stat
import sys
import termios
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
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
_MAX_LINES_AHEAD = 16
_MAX_DIRECT_BYTES = 1 << 15
"""What an empty pipe takes without blocking."""


class StdioLines:
    """Reads lines from one descriptor, and writes lines to another."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._is_pipe = stat.S_ISFIFO(os.fstat(outgoing).st_mode)
        self._loop = asyncio.get_running_loop()
        self._read = asyncio.Queue[bytes | None]()
        self._room = threading.Semaphore(_MAX_LINES_AHEAD)
        self._to_write = queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]]()
        for work in (self._read_loop, self._write_loop):
            threading.Thread(target=work, daemon=True).start()

    async def read_lines(self) -> AsyncIterator[bytes]:
        """Yield lines until the other side closes its end."""
        while (line := await self._read.get()) is not None:
            self._room.release()
            yield line

    async def write_line(self, line: bytes) -> None:
        """Write a line, and return when it has left; `OSError` when the reader has left."""
        line += b"\n"
        if self._can_write_now(len(line)):
            _write_all(self._outgoing, line)
            return
        done = self._loop.create_future()
        self._to_write.put((line, done))
        await done

    @property
    def has_reader(self) -> bool:
        poll = select.poll()
        poll.register(self._outgoing, 0)
        return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))

    def _can_write_now(self, count: int) -> bool:
        """Tell whether so many bytes can be written without waiting; the thread is for the rest."""
        if count > _MAX_DIRECT_BYTES or not self._is_pipe:
            return False
        unread = fcntl.ioctl(self._outgoing, termios.FIONREAD, bytes(4))
        return not any(unread)

    def _read_loop(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            for line in _split_lines(self._incoming):
                self._room.acquire()
                self._loop.call_soon_threadsafe(self._read.put_nowait, line)
            self._loop.call_soon_threadsafe(self._read.put_nowait, None)

    def _write_loop(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            while True:
                line, done = self._to_write.get()
                trouble: OSError | None = None
                try:
                    _write_all(self._outgoing, line)
                except OSError as error:
                    trouble = error
                self._loop.call_soon_threadsafe(_settle_write, done, trouble)


def _settle_write(done: "asyncio.Future[None]", trouble: OSError | None) -> None:
    if done.done():
        return
    if trouble is None:
        done.set_result(None)
    else:
        done.set_exception(trouble)


def _split_lines(descriptor: int) -> Iterator[bytes]:
    """Yield the lines of a descriptor, of any length; the last one may lack its end."""
    pieces = list[bytes]()
    while True:
        try:
            chunk = os.read(descriptor, _CHUNK_BYTES)
        except OSError:
            chunk = b""
        if not chunk:
            break
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield b"".join((*pieces, line))
            pieces.clear()
        if rest:
            pieces.append(rest)
    if pieces:
        yield b"".join(pieces)


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
