"""Lines between descriptors and the loop, by two threads that nobody ever waits for."""

import asyncio
import fcntl
import os
import queue
import select
import stat
import termios
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

_CHUNK = 1 << 16
_AHEAD = 16
_AT_ONCE = 1 << 15
"""What an empty pipe takes without making anybody wait."""


class Pump:
    """Reads lines from one descriptor, and writes lines to another."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._is_pipe = stat.S_ISFIFO(os.fstat(outgoing).st_mode)
        self._loop = asyncio.get_running_loop()
        self._read = asyncio.Queue[bytes | None]()
        self._room = threading.Semaphore(_AHEAD)
        self._to_write = queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]]()
        for work in (self._reading, self._writing):
            threading.Thread(target=work, daemon=True).start()

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield lines until the other side closes its end."""
        while (line := await self._read.get()) is not None:
            self._room.release()
            yield line

    async def write(self, line: bytes) -> None:
        """Write a line, and return when it has left; `OSError` when nobody reads any more."""
        line += b"\n"
        if self._takes(len(line)):
            _write_all(self._outgoing, line)
            return
        done = self._loop.create_future()
        self._to_write.put((line, done))
        await done

    @property
    def is_read(self) -> bool:
        """Whether somebody is still there to read what is written."""
        poll = select.poll()
        poll.register(self._outgoing, 0)
        return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))

    def _takes(self, count: int) -> bool:
        """Tell whether so many bytes can be written without waiting; the thread is for the rest."""
        if count > _AT_ONCE or not self._is_pipe:
            return False
        unread = fcntl.ioctl(self._outgoing, termios.FIONREAD, bytes(4))
        return not any(unread)

    def _reading(self) -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile
            for line in _lines(self._incoming):
                self._room.acquire()
                self._loop.call_soon_threadsafe(self._read.put_nowait, line)
            self._loop.call_soon_threadsafe(self._read.put_nowait, None)

    def _writing(self) -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile
            while True:
                line, done = self._to_write.get()
                trouble: OSError | None = None
                try:
                    _write_all(self._outgoing, line)
                except OSError as error:
                    trouble = error
                self._loop.call_soon_threadsafe(_settle, done, trouble)


def _settle(done: "asyncio.Future[None]", trouble: OSError | None) -> None:
    if done.done():
        return
    if trouble is None:
        done.set_result(None)
    else:
        done.set_exception(trouble)


def _lines(descriptor: int) -> Iterator[bytes]:
    """Yield the lines of a descriptor, of any length; the last one may lack its end."""
    pieces = list[bytes]()
    while True:
        try:
            chunk = os.read(descriptor, _CHUNK)
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
