"""Keeps the questions that wait for a person's answer while their calls wait in threads.

1. A call asks from its own thread, and the client is asked on the event loop.
2. Cancelling a call withdraws its question, and so does the end of the server.
3. The number of waiting questions is limited, because each one holds a thread that other calls need.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future

from surehold.errors import Cancelled, PermissionRequired
from surehold.front.mcp.approval_form import ElicitationForm, ElicitationReply

Deliver = Callable[[ElicitationForm], Awaitable[ElicitationReply]]
_MAX_WAITING_QUESTIONS = 16


class QuestionChannel:
    """Asks on behalf of one call, from its thread."""

    def __init__(self, deliver: Deliver, slots: threading.Semaphore) -> None:
        self._deliver = deliver
        self._slots = slots
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._open: Future[ElicitationReply] | None = None
        self._closed = False

    def __call__(self, question: ElicitationForm) -> ElicitationReply:
        """Ask and wait."""
        if not self._slots.acquire(blocking=False):
            raise PermissionRequired(
                "Too many questions wait for an answer already.",
                reason="too_many_questions",
                action="Wait until the person has answered some of them, then call again.",
            )
        try:
            return self._start_question(question).result()
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

    def _start_question(self, question: ElicitationForm) -> "Future[ElicitationReply]":
        with self._lock:
            if self._closed or self._loop.is_closed():
                raise Cancelled("The call was taken back before somebody was asked.")
            self._open = asyncio.run_coroutine_threadsafe(self._deliver_question(question), self._loop)
            return self._open

    async def _deliver_question(self, question: ElicitationForm) -> ElicitationReply:
        return await self._deliver(question)


class ApprovalQueue:
    """Every question of one server that waits for an answer."""

    def __init__(self, *, most: int = _MAX_WAITING_QUESTIONS) -> None:
        self._slots = threading.Semaphore(most)
        self._open = set[QuestionChannel]()
        self._closed = False

    def open_channel(self, deliver: Deliver) -> QuestionChannel:
        """Return the way in which one call asks."""
        asking = QuestionChannel(deliver, self._slots)
        self._open.add(asking)
        if self._closed:
            asking.close()
        return asking

    def drop_channel(self, asking: QuestionChannel) -> None:
        """Forget a call that has ended."""
        asking.close()
        self._open.discard(asking)

    def close(self) -> None:
        """Take every question back: the client has left, or the server ends."""
        self._closed = True
        for asking in list(self._open):
            asking.close()
