"""Runs the adapter's synchronous work in threads, so that many calls run at once.

1. A read-only call may be abandoned: its flag is set, its thread ends when it notices, and nothing waits for it.
2. A change is never abandoned: its flag is set, which stops it as long as nothing was written, and its end is
   awaited.
3. Progress goes from the thread to the event loop at most ten times a second or at every hundredth, and only upwards.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, TypeVar

import anyio

from surehold.front.mcp.progress import ProgressThrottle
from surehold.text.escape import ensure_utf8
from surehold.tools.call import ProgressListener, ignore_progress

T = TypeVar("T")
Send = Callable[[float, float | None, str | None], Awaitable[None]]
Work = Callable[[ProgressListener, Callable[[], bool]], T]
_MAX_THREADS = 48
"""More than calls can wait for approval: the others go on."""


class ProgressRelay:
    """Carries progress from a worker thread to the client."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._waiting = deque[tuple[float, float | None, str]]()
        self._sending: asyncio.Task[None] | None = None
        self._closed = False
        self._throttle = ProgressThrottle()

    def __call__(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report from any thread; most reports are dropped."""
        if not self._throttle.accepts(done, total):
            return
        with suppress(RuntimeError):  # the loop has ended; the work has not
            self._loop.call_soon_threadsafe(self._queue_report, (done, total, message))

    async def send_remaining(self) -> None:
        """Send what was reported before the work ended; the answer follows."""
        if self._sending:
            await self._sending

    def close(self) -> None:
        self._closed = True
        if self._sending:
            self._sending.cancel()

    def _queue_report(self, report: tuple[float, float | None, str]) -> None:
        self._waiting.append(report)
        if not self._closed and (self._sending is None or self._sending.done()):
            self._sending = asyncio.ensure_future(self._send_all())

    async def _send_all(self) -> None:
        while self._waiting:
            done, total, message = self._waiting.popleft()
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the client has left
                await self._send(done, total, ensure_utf8(message) or None)


class CallThreads:
    """The calls of one server that are under way."""

    def __init__(self) -> None:
        self.under_way = 0
        """How many calls have not been answered yet."""
        self._pool = ThreadPoolExecutor(_MAX_THREADS, "call")
        self._changes = set[Future[Any]]()

    async def run_in_thread(self, work: "Work[T]", *, changes: bool, send: Send | None = None) -> T:
        """Run something in a thread; a change runs to its end even when its call is cancelled."""
        flag = threading.Event()
        relay = ProgressRelay(send) if send else None
        job = self._pool.submit(work, relay or ignore_progress, flag.is_set)
        if changes:
            self._changes.add(job)
            job.add_done_callback(self._changes.discard)
        outcome = asyncio.wrap_future(job)
        self.under_way += 1
        try:
            result = await (asyncio.shield(outcome) if changes else outcome)
            if relay:
                await relay.send_remaining()
            return result  # noqa: TRY300 - a cancellation of the last reports is one of the call
        except asyncio.CancelledError:
            flag.set()
            if changes and not job.cancel():
                with anyio.CancelScope(shield=True):
                    await asyncio.wait([outcome])
            raise
        finally:
            flag.set()
            self.under_way -= 1
            if relay:
                relay.close()

    def wait_for_changes(self, timeout: float) -> bool:
        """Wait until every change has ended; False when that takes too long."""
        return not wait(self._changes.copy(), timeout).not_done

    @property
    def is_changing(self) -> bool:
        return bool(self._changes)
