"""Questions that wait for an answer while their calls wait for them.

1. A call asks from its thread, and the client is asked on the loop.
2. A call that is taken back takes its question back, and so does the end of the server: nobody answers any more.
3. Only some may wait at once, since each holds a thread that other calls need.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future

from surehold.errors import Cancelled, PermissionRequired
from surehold.front.mcp.questions import Question, Reply

Deliver = Callable[[Question], Awaitable[Reply]]
_MOST = 16


class Asking:
    """Asks on behalf of one call, from its thread."""

    def __init__(self, deliver: Deliver, slots: threading.Semaphore) -> None:
        self._deliver = deliver
        self._slots = slots
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._open: Future[Reply] | None = None
        self._closed = False

    def __call__(self, question: Question) -> Reply:
        """Ask and wait."""
        if not self._slots.acquire(blocking=False):
            raise PermissionRequired(
                "Too many questions wait for an answer already.",
                reason="too_many_questions",
                action="Wait until the person has answered some of them, then call again.",
            )
        try:
            return self._begun(question).result()
        except CancelledError:
            raise Cancelled("The call was taken back while somebody was asked.") from None
        finally:
            self._slots.release()

    def close(self) -> None:
        """Take the question back, and ask no other."""
        with self._lock:
            self._closed = True
            if self._open is not None:
                self._open.cancel()

    def _begun(self, question: Question) -> "Future[Reply]":
        with self._lock:
            if self._closed or self._loop.is_closed():
                raise Cancelled("The call was taken back before somebody was asked.")
            self._open = asyncio.run_coroutine_threadsafe(self._delivered(question), self._loop)
            return self._open

    async def _delivered(self, question: Question) -> Reply:
        return await self._deliver(question)


class Desk:
    """Every question of one server that waits for an answer."""

    def __init__(self, *, most: int = _MOST) -> None:
        self._slots = threading.Semaphore(most)
        self._open = set[Asking]()
        self._closed = False

    def open(self, deliver: Deliver) -> Asking:
        """Return the way in which one call asks."""
        asking = Asking(deliver, self._slots)
        self._open.add(asking)
        if self._closed:
            asking.close()
        return asking

    def drop(self, asking: Asking) -> None:
        """Forget a call that has ended."""
        asking.close()
        self._open.discard(asking)

    def close(self) -> None:
        """Take every question back: the client has left, or the server ends."""
        self._closed = True
        for asking in list(self._open):
            asking.close()
