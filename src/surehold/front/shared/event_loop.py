"""What front ends with an event loop share: lines over standard input and output, and questions from other threads.

Reading and writing happen in two daemon threads; the event loop never blocks on them, and shutdown never waits for them.
"""

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from surehold.front.shared.pending_approval import client_gone_error
from surehold.front.shared.stdio_lines import OutgoingEnd, read_lines, write_all
from surehold.workspace.access.permission import Approval

_MAX_LINES_AHEAD = 16


class StdioLines:
    """Reads lines from one descriptor, and writes lines to another."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming, self._outgoing = incoming, OutgoingEnd(outgoing)
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
        if self._outgoing.can_write_now(len(line)):
            write_all(self._outgoing.descriptor, line)
            return
        done = self._loop.create_future()
        self._to_write.put((line, done))
        await done

    @property
    def has_reader(self) -> bool:
        return self._outgoing.has_reader

    def _read_loop(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            for line in read_lines(self._incoming):
                self._room.acquire()
                self._loop.call_soon_threadsafe(self._read.put_nowait, line)
            self._loop.call_soon_threadsafe(self._read.put_nowait, None)

    def _write_loop(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            while True:
                line, done = self._to_write.get()
                trouble: OSError | None = None
                try:
                    write_all(self._outgoing.descriptor, line)
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


def run_on_loop(question: Coroutine[Any, Any, Approval], loop: asyncio.AbstractEventLoop) -> Future[Approval]:
    """Ask by a coroutine of an event loop, from another thread."""
    try:
        return asyncio.run_coroutine_threadsafe(question, loop)
    except RuntimeError:  # the loop has ended
        question.close()
        raise client_gone_error() from None
